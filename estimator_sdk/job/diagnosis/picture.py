"""A diagnosis, and runs that are compared, as a picture: bars in SVG, which a browser, a notebook or a report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from .shares import KINDS, Kind, RankShares

COLOURS: Mapping[Kind, str] = {
    "input": "#d55e00",
    "communication": "#0072b2",
    "checkpoint": "#cc79a7",
    "idle": "#999999",
    "computing": "#009e73",
}
"""Of the palette of Okabe and Ito, which people tell apart who see colours differently."""
NAMES: Mapping[Kind, str] = {
    "input": "waiting for input",
    "communication": "communicating",
    "checkpoint": "checkpointing",
    "idle": "idle",
    "computing": "computing",
}
STYLE = (
    "<style>@media (prefers-color-scheme: dark) "
    "{ .estimator-picture { fill: #e4e6eb } .estimator-picture .paper { fill: #1d2026 } }</style>"
)
"""Words and background on a dark page; what shows no styles shows it on white."""
WIDTH, LEFT, RIGHT = 760, 200, 150
ROW, BAR, TOP = 24, 16, 34
MOST_ROWS = 64
"""Of ranks; more could not be told apart."""


@dataclass(frozen=True)
class PictureBar:
    """One row: a name, pieces of a bar with their colours, and what stands behind it. Pieces are from 0 to 1."""

    name: str
    pieces: Sequence[tuple[float, str]]
    behind: str = ""


def of_ranks(title: str, ranks: Sequence[RankShares]) -> str:
    """Where a step's time goes: a bar for each rank, as long as its step is beside the longest."""
    longest = max((rank.step for rank in ranks), default=0.0) or 1.0
    bars = [
        PictureBar(
            f"{'script' if rank.rank is None else f'rank {rank.rank}'} on {rank.host}",
            [((rank.share(kind) or 0.0) * rank.step / longest, COLOURS[kind]) for kind in KINDS],
            f"{rank.step:.4g} s",
        )
        for rank in ranks[:MOST_ROWS]
    ]
    return svg(title, bars, [(NAMES[kind], COLOURS[kind]) for kind in KINDS])


def of_rates(title: str, rates: Mapping[str, tuple[float, float, float]]) -> str:
    """How fast a script was: a bar for each way, to the median, with a line from the least to the most."""
    most = max((high for _, _, high in rates.values()), default=0.0) or 1.0
    green, dark = COLOURS["computing"], "#004d38"
    bars = [
        PictureBar(
            name,
            [(low / most, green), ((middle - low) / most, dark), ((high - middle) / most, "#7fceb9")],
            f"{middle:.4g} steps/s",
        )
        for name, (middle, low, high) in rates.items()
    ]
    return svg(title, bars, [("least", green), ("median", dark), ("most", "#7fceb9")])


def svg(title: str, bars: Sequence[PictureBar], legend: Sequence[tuple[str, str]]) -> str:
    """The picture. All words in it are escaped."""
    height = TOP + ROW * (len(bars) + 1) + 6
    style = 'font-family="sans-serif" font-size="12"'
    words = [f'<text x="4" y="16" font-weight="bold">{escape(title)}</text>']
    for number, bar in enumerate(bars):
        words += _row(bar, TOP + ROW * number)
    at, below = LEFT, TOP + ROW * len(bars) + 12
    for name, colour in legend:
        words.append(f'<rect x="{at}" y="{below - 9}" width="10" height="10" fill="{colour}"/>')
        words.append(f'<text x="{at + 14}" y="{below}">{escape(name)}</text>')
        at += 30 + 7 * len(name)
    box = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    background = f'<rect class="paper" width="{WIDTH}" height="{height}" fill="white"/>'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" class="estimator-picture" {box} {style}>{STYLE}'
    return f"{opening}{background}{''.join(words)}</svg>\n"


def _row(bar: PictureBar, top: int) -> list[str]:
    room = WIDTH - LEFT - RIGHT
    made = [f'<text x="{LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(bar.name[:32])}</text>']
    at = float(LEFT)
    for share, colour in bar.pieces:
        width = room * min(1.0, max(0.0, share))
        if width >= 0.05:
            made.append(f'<rect x="{at:.1f}" y="{top}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>')
        at += width
    made.append(f'<text x="{at + 6:.1f}" y="{top + 13}">{escape(bar.behind)}</text>')
    return made
