"""A metric as a small curve: inline SVG, a line for the mean of all ranks in a band from the lowest to the highest."""

from __future__ import annotations

from html import escape

from .series import Point, Series

WIDTH, HEIGHT, MARGIN = 180.0, 30.0, 3.0  # in the units of the drawing, which are pixels unless it is scaled


def svg(name: str, series: Series) -> str:
    """The curve of a series; empty where no value is finite."""
    extremes = series.extremes
    if extremes is None:
        return ""
    low, high = extremes
    found = sorted(series.points.items())
    points = [(_x(place, found[-1][0]), point) for place, point in found]
    mean = [(x, _y(point.mean, low, high)) for x, point in points]
    title = f"{name}: {found[0][1].mean:g} to {found[-1][1].mean:g}, lowest {low:g}, highest {high:g}"
    return (
        f'<svg class="curve" role="img" width="{WIDTH:g}" height="{HEIGHT:g}" viewBox="0 0 {WIDTH:g} {HEIGHT:g}">'
        f"<title>{escape(title)}</title>{_band(points, low, high)}"
        f'<path class="mean" d="M{_path(mean)}"/><circle cx="{mean[-1][0]:.1f}" cy="{mean[-1][1]:.1f}" r="2"/></svg>'
    )


def _band(points: list[tuple[float, Point]], low: float, high: float) -> str:
    if all(point.low == point.high for _, point in points):
        return ""
    above = [(x, _y(point.high, low, high)) for x, point in points]
    below = [(x, _y(point.low, low, high)) for x, point in reversed(points)]
    return f'<path class="band" d="M{_path([*above, *below])}Z"/>'


def _path(points: list[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _x(place: int, last: int) -> float:
    return MARGIN + (WIDTH - 2 * MARGIN) * (place / last if last else 0.5)


def _y(value: float, low: float, high: float) -> float:
    # Halves, for the span of two floats may be more than a float can be.
    share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
    return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * min(1.0, max(0.0, share))
