"""The report of a run: a page of Markdown and a plot for every panel."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import plot
from .harness import SCALE, number
from .metrics import METRICS
from .results import Run

REASONS = Path(__file__).with_name("reasons.json")
"""Metric -> why a target that it misses is missed, in words; written by people."""


INTRODUCTION = """\
Written by `scripts/bench`; what is timed, and how, is said with each metric. Every figure is the median of runs that
were interleaved with those of the peers and of a *floor*, the least that the machine needs for the same; in brackets
the least and the most. A figure is worth something beside its floor, not alone.
"""


def write(run: Run, out: Path) -> None:
    """Write performance.md, and a plot a panel beside the results."""
    folder = out / "performance"
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.svg"):
        path.unlink()
    for metric in run["metrics"]:
        for panel in metric["panels"]:
            (folder / plot_name(metric, panel)).write_text(plot.svg(panel))
    (out / "performance.md").write_text("\n".join(page(run)) + "\n")


def plot_name(metric: dict[str, Any], panel: dict[str, Any]) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", panel["title"].lower()).strip("-")
    return f"{metric['number'].lower()}-{words}.svg"


def page(run: Run) -> Iterator[str]:
    """The lines of performance.md."""
    reasons = json.loads(REASONS.read_text())
    yield "# Performance\n"
    yield INTRODUCTION
    yield f"- {run['date']}, commit {run['commit']}, {run['runs']} runs, {run['seconds'] / 60:.0f} minutes"
    yield f"- {run['machine']}"
    yield f"- {', '.join(f'{name} {version}' for name, version in run['versions'].items())}"
    if run["quick"]:
        yield "- **a quick run**: few runs, small N, and few of the ways that take minutes"
    if run["left_out"]:
        yield f"- **without these peers**, on demand: {', '.join(run['left_out'])}"
    taken = {metric["number"] for metric in run["metrics"]}
    absent = [metric.number for metric in METRICS if metric.number not in taken]
    if absent:
        yield f"- **not taken**: {', '.join(absent)}"
    yield "\n## All of it\n"
    yield "| | what | at | ours | floor | best peer | targets held |"
    yield "|---|---|---|---|---|---|---|"
    for metric in run["metrics"]:
        yield from overview(metric)
    for metric in run["metrics"]:
        yield from section(metric, run, reasons)


def overview(metric: dict[str, Any]) -> Iterator[str]:
    """A line for each panel, at its greatest N."""
    if metric["failure"]:
        yield f"| {metric['number']} | {metric['title']} | | could not be taken: {metric['failure']} | | | |"
    for panel in metric["panels"]:
        of_role = {role: [way for way in panel["ways"] if way["role"] == role] for role in ("ours", "floor", "peer")}
        own = [int(n) for way in of_role["ours"] for n in way["values"]]
        if not own:
            continue
        # The greatest N that a peer was taken at, if any was: a figure alone says little.
        shared = [n for n in own if any(str(n) in way["values"] for way in of_role["peer"])]
        n = max(shared or own)
        held = [verdict["held"] for verdict in panel["verdicts"]]
        cells = [best(of_role[role], n, panel, role == "peer") for role in ("ours", "floor", "peer")]
        title = f"[{panel['title']}](#{anchor(metric)})"
        yield f"| {metric['number']} | {title} | {panel['axis']} {n} | {' | '.join(cells)} | {target_cell(held)} |"


def target_cell(held: list[bool]) -> str:
    if not held:
        return ""
    return f"all {len(held)}" if all(held) else f"**{sum(held)} of {len(held)}**"


def best(ways: list[dict[str, Any]], n: int, panel: dict[str, Any], named: bool) -> str:
    found = [(statistics.median(way["values"][str(n)]), way["name"]) for way in ways if str(n) in way["values"]]
    if not found:
        return ""
    value, name = max(found) if panel["higher_is_better"] else min(found)
    return f"{number(value, panel['unit'])} {panel['unit']}{f' ({name})' if named else ''}"


def anchor(metric: dict[str, Any]) -> str:
    """What the heading's link is, as GitHub makes it."""
    heading = f"{metric['number']} {metric['title']}".lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def section(metric: dict[str, Any], run: Run, reasons: dict[str, str]) -> Iterator[str]:
    yield f"\n## {metric['number']} {metric['title']}\n"
    yield metric["about"]
    if metric["taken"]:
        yield f"\nTaken by itself: {metric['taken']}."
    if metric["failure"]:
        yield f"\n**Could not be taken:** {metric['failure']}"
    missed = False
    for panel in metric["panels"]:
        yield from figures(metric, panel)
        missed = missed or not all(verdict["held"] for verdict in panel["verdicts"])
    for table in metric["tables"]:
        yield f"\n### {table['title']}\n"
        if table["words"]:
            yield f"{table['words']}\n"
        yield from markdown_table(table["header"], table["rows"])
    if missed:
        yield f"\n**Why a target is missed:** {reasons.get(metric['number'], 'not known yet.')}"


def figures(metric: dict[str, Any], panel: dict[str, Any]) -> Iterator[str]:
    """One panel: the plot, the table, what became of its targets."""
    ns = sorted({int(n) for way in panel["ways"] for n in way["values"]})
    unit = panel["unit"]
    low, high = min(panel["loads"]), max(panel["loads"])
    yield f"\n### {panel['title']}\n"
    yield f"In {unit}, over {panel['axis']}; the load of the machine before each N was {low:.1f} to {high:.1f}.\n"
    yield f"![{panel['title']}](performance/{plot_name(metric, panel)})\n"
    header = ["", *(f"{n}" for n in ns), "a + b N"]
    rows = []
    for way in panel["ways"]:
        cells = [reading(way["values"].get(str(n)), unit) for n in ns]
        rows.append(
            [f"{way['name']}{' *(floor)*' if way['role'] == 'floor' else ''}", *cells, fitted(way["fit"], unit)]
        )
    yield from markdown_table(header, rows)
    if panel["verdicts"]:
        yield ""
    for verdict in panel["verdicts"]:
        yield f"- {'held' if verdict['held'] else '**missed**'}: {verdict['text']}"


def reading(values: list[float] | None, unit: Any) -> str:  # noqa: ANN401 - one of harness.Unit, from JSON
    if not values:
        return ""
    spread = f" ({number(min(values), unit)}–{number(max(values), unit)})" if len(values) > 1 else " (one run)"
    return f"{number(statistics.median(values), unit)}{spread}"


def fitted(fit: list[float] | None, unit: Any) -> str:  # noqa: ANN401
    if fit is None:
        return ""
    a, b = (value * SCALE.get(unit, 1.0) for value in fit)
    return f"{a:.3g} {'+' if b >= 0 else '−'} {abs(b):.3g} N"


def markdown_table(header: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
