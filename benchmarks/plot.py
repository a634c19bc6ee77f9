"""A small SVG of a panel: a line for each way, through its medians, with a bar from its least to its most."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from html import escape
from typing import Any

from .harness import SCALE

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 240, 34, 46
COLOURS = {"ours": ["#0b6e4f", "#3fa34d", "#8ac926"], "floor": ["#888888", "#bbbbbb"]}
PEER_COLOURS = ["#c8553d", "#3a6ea5", "#8e5ea2", "#d1a000", "#5b8e7d", "#b0413e", "#444444"]


def svg(panel: dict[str, Any]) -> str:
    """Both axes are logarithmic: what is twice as far apart is twice as much, wherever it is."""
    scale = SCALE.get(panel["unit"], 1.0)
    series = [(way, {int(n): [v * scale for v in vs] for n, vs in way["values"].items()}) for way in panel["ways"]]
    every = [value for _, points in series for values in points.values() for value in values]
    xs = sorted({n for _, points in series for n in points})
    positive = [value for value in every if value > 0] or [1.0]
    # What is nought, such as lines that were damaged, has a line of its own, well below the others.
    has_nought = min(every) <= 0
    floor = min(positive) / 10 if has_nought else min(positive)
    across = axis([float(x) for x in xs], LEFT, WIDTH - RIGHT)
    up = axis([max(value, floor) for value in every], HEIGHT - BOTTOM, TOP)
    lines = [(tick, f"{tick:g}") for tick in ticks(positive)] + ([(floor, "0")] if has_nought else [])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="18" font-size="13" font-weight="bold">{escape(panel["title"])}, {panel["unit"]}</text>',
    ]
    for value, label in lines:
        y = up(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for x in xs:
        parts.append(f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:g}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(panel["axis"])}</text>'
    )
    used = {"ours": 0, "floor": 0, "peer": 0}
    for row, (way, points) in enumerate(series):
        palette = COLOURS.get(way["role"], PEER_COLOURS)
        colour = palette[used[way["role"]] % len(palette)]
        used[way["role"]] += 1
        parts += drawn(points, colour, across, lambda value: up(max(value, floor)), way["role"] == "floor")
        y = TOP + 14 * row + 8
        parts.append(f'<path d="M{WIDTH - RIGHT + 12} {y - 4}h16" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 33}" y="{y}">{escape(way["name"])}</text>')
    return "\n".join([*parts, "</svg>\n"])


def drawn(points: dict[int, list[float]], colour: str, across: Any, up: Any, dashed: bool) -> list[str]:  # noqa: ANN401
    middles = [(across(n), up(statistics.median(values))) for n, values in sorted(points.items())]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in middles)
    dash = ' stroke-dasharray="5 3"' if dashed else ""
    parts = [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>']
    for (x, y), (_, values) in zip(middles, sorted(points.items()), strict=True):
        parts.append(f'<path d="M{x:.1f} {up(min(values)):.1f}V{up(max(values)):.1f}" stroke="{colour}"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
    return parts


def axis(values: Sequence[float], low: float, high: float) -> Any:  # noqa: ANN401
    """A logarithmic scale from the least value to the greatest, with a little room; a single value is in the middle."""
    least, most = math.log(min(values)), math.log(max(values))
    room = 0.05 * (most - least) or 0.5
    least, most = least - room, most + room
    return lambda value: low + (math.log(value) - least) / (most - least) * (high - low)


def ticks(values: Sequence[float]) -> list[float]:
    """Round numbers in the range, and not too many: the powers of ten alone where it is wide."""
    least, most = min(values), max(values)
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1,)):
        found = [
            step * 10.0**power
            for power in powers
            for step in steps
            if least * 0.95 <= step * 10.0**power <= most * 1.05
        ]
        if len(found) <= 9:
            break
    return found or [float(f"{least:.2g}")]
