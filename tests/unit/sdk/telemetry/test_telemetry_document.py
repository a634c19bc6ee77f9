"""The document has the table of metrics as the code has it."""

from pathlib import Path

from estimator_container.telemetry.history import LEVELS, MEGABYTE
from estimator_container.telemetry.metric_table import KIB, METRICS, PAGE, SHARE

DOCUMENT = (Path(__file__).parents[4] / "docs" / "telemetry.md").read_text(encoding="utf-8")
PRECISIONS = {SHARE: "0.01 %", PAGE: "4 KiB", KIB: "1 KiB/s"}


def row(kind):
    """A metric's line of the table."""
    of_each = "rank" if kind.is_of_ranks else "host"
    parts = f", `{kind.attribute}`" if kind.attribute else ""
    name = f"`{kind.name}`{' (ours)' if kind.is_ours else ''}"
    kept_to = PRECISIONS.get(kind.precision, f"{kind.precision:g}")
    return f"| {name} | `{kind.unit}` | {of_each}{parts} | {kind.meaning} | {kept_to} |"


def test_the_table_of_metrics_is_that_of_the_code():
    table = DOCUMENT.partition("| metric | unit |")[2].partition("\n\n")[0].splitlines()[2:]
    assert table == [row(kind) for kind in METRICS]


def test_the_levels_are_those_of_the_code():
    sizes = [f"{level.most_bytes // MEGABYTE}" for level in LEVELS]
    assert f"at most {sizes[0]}, {sizes[1]} and {sizes[2]} MB" in DOCUMENT.replace("\n", " ")
