"""A diagnosis as a screen shows it: words first, then the table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from . import shares
from .causes import Cause, InputClass
from .shares import SEEN, Kind, RankShares

InputBound = tuple[InputClass, float]
"""How input bound a job is: in the words of TensorFlow's profiler, and the share."""
WIDTH = 100
MOST_RANKS = 32
"""In the table; of more, those are shown that differ most from the others."""
_KINDS: tuple[tuple[Kind, str], ...] = (
    ("input", "input"),
    ("computing", "computing"),
    ("communication", "communicating"),
    ("checkpoint", "checkpointing"),
    ("idle", "idle"),
)


def lines(title: str, found: Sequence[Cause], ranks: Sequence[RankShares], bound: InputBound | None) -> list[str]:
    """All of it, below a title; `bound` says how input bound the job is, where that is known."""
    said = [f"{title}{_steps(ranks)}", *_words(found, ranks, bound), "", *_table(ranks)]
    if any(rank.share(kind) is None for rank in ranks for kind in SEEN):
        said.append("- is not known, and a part of computing; docs/doctor.md says what is seen of which framework")
    return said


def thin_lines(title: str, thin: str, ranks: Sequence[RankShares]) -> list[str]:
    """The same where there is too little evidence, for which it is said why."""
    return [f"{title}{_steps(ranks)}", *wrapped(thin), *(["", *_table(ranks)] if ranks else [])]


def _words(found: Sequence[Cause], ranks: Sequence[RankShares], bound: InputBound | None) -> Iterator[str]:
    if bound is None:
        yield from wrapped(
            "Nothing is known of waiting for input. Batches of DataLoader, `tf.data` and `fit` are seen; wrap any "
            "others: `for batch in timed_input(batches):` (`from estimator_container.training import timed_input`)."
        )
    else:
        name, share = bound
        yield f"{name.capitalize()}: {100 * share:.0f} % of a step is waiting for input."
    for cause in found:
        yield ""
        yield from wrapped(f"{cause.sentence[0].upper()}{cause.sentence[1:]}.")
        yield from wrapped(f"Without it steps would be at most {cause.most_gain:.2g} times as fast.", "  ")
        yield from wrapped(f"What to try: {cause.advice}.", "  ")
    if not found:
        yield from wrapped(_nothing(ranks))


def _nothing(ranks: Sequence[RankShares]) -> str:
    known = {kind: share for kind in SEEN if (share := shares.mean(ranks, kind)) is not None}
    if "input" not in known:
        return "Of what is known, nothing else takes much."
    most = max(known, key=known.__getitem__)
    return (
        f"No bottleneck: nothing but computing takes much of a step, and no more than {100 * known[most]:.0f} % "
        "could be gained from any other part."
    )


def _steps(ranks: Sequence[RankShares]) -> str:
    if not ranks:
        return ""
    slowest = max(ranks, key=lambda rank: rank.step)
    count = "1 rank" if len(ranks) == 1 else f"{len(ranks)} ranks"
    return f": {min(rank.steps for rank in ranks)} steps of {slowest.step:.3g} s on {count}"


def _table(ranks: Sequence[RankShares]) -> list[str]:
    shown = list(ranks)
    if len(ranks) > MOST_RANKS:
        middle = {kind: shares.mean(ranks, kind) or 0.0 for kind, _ in _KINDS}
        far = sorted(ranks, key=lambda rank: sum(abs((rank.share(k) or 0.0) - m) for k, m in middle.items()))
        shown = [rank for rank in ranks if rank in far[-MOST_RANKS:]]
    rows = [["rank", "host", "steps", "a step", *(word for _, word in _KINDS)]]
    for rank in shown:
        cells = ["-" if (share := rank.share(kind)) is None else f"{100 * share:.1f} %" for kind, _ in _KINDS]
        name = "script" if rank.rank is None else str(rank.rank)
        rows.append([name, rank.host, str(rank.steps), f"{rank.step:.4g} s", *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    made = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    left = len(ranks) - len(shown)
    return [*made, f"and {left} more, which differ less from the others (--json has all)"] if left else made


def wrapped(text: str, indent: str = "") -> list[str]:
    """The lines of a text, none wider than a screen."""
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
