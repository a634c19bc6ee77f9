"""Whether the figures of a panel are as they should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .harness import SCALE, Taken, Target, shown


@dataclass(frozen=True)
class Verdict:
    """What became of a target at one N, or of a slope."""

    text: str
    held: bool


def verdicts(taken: Taken) -> list[Verdict]:
    """Of every target whose ways were taken; one whose reference was left out cannot be judged and is not there."""
    return [verdict for target in taken.panel.targets for verdict in of_target(target, taken)]


def of_target(target: Target, taken: Taken) -> Iterator[Verdict]:
    ours = taken.ways.get(target.ours)
    names = (target.reference,) if isinstance(target.reference, str) else target.reference or ()
    references = {name: taken.ways[name] for name in names if name in taken.ways}
    if ours is None or (names and not references):
        return
    if target.of == "slope":
        found = {name: fit[1] for name, points in references.items() if (fit := points.fit())}
        own = ours.fit()
        if own is not None and found:
            yield judged(target, taken, "slope", own[1], found)
        return
    for n in target.n or tuple(ours.values):
        if n in ours.values and (not names or any(n in points.values for points in references.values())):
            found = {name: points.median(n) for name, points in references.items() if n in points.values}
            yield judged(target, taken, f"{taken.panel.axis} {n}", ours.median(n), found)


def judged(target: Target, taken: Taken, where: str, value: float, found: dict[str, float]) -> Verdict:
    panel, words, bound = taken.panel, [], target.plus
    if found:
        best = (max if panel.higher_is_better else min)(found, key=lambda name: found[name])
        words.append(f"{target.factor:g} × {best}")
        bound += target.factor * found[best]
    if target.plus or not found:
        words.append(f"{target.plus * SCALE.get(panel.unit, 1.0):g} {panel.unit}")
    held = value >= bound if panel.higher_is_better else value <= bound
    asked = f"{'≥' if panel.higher_is_better else '≤'} {' + '.join(words)} = {shown(bound, panel.unit)}"
    return Verdict(f"{target.ours}, {where}: {shown(value, panel.unit)}, to be {asked}", held)
