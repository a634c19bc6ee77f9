"""The notebooks run from top to bottom in a kernel of their own, as they stand in git: without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from estimator_sdk.backends.spark.session import COMING
from tests.spark import PATIENT_JAVA

from . import kernels

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
# How many jobs are shown, and how each ends.
JOBS = {
    "1_first_steps": ["Completed", "Completed", "Failed"],
    "2_from_one_process_to_horovod": ["Completed", "Completed"],
    "3_checkpoints_and_resume": ["InProgress", "Completed"],
    "4_a_function_on_two_hosts": ["Completed", "Failed", "Completed"],
    "5_on_spark_executors": ["Completed", "Failed"],
    "6_why_is_it_slow": ["Completed", "Completed"],
}


def test_all_notebooks_are_run():
    assert sorted(JOBS) == sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("name", JOBS)
def test_a_notebook_is_kept_without_outputs(name):
    for cell in nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells:
        assert cell.cell_type == "markdown" or (cell.outputs, cell.execution_count) == ([], None)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name[0] in "26" else ()) for name in JOBS]
)
def test_a_notebook_runs_from_top_to_bottom(name, tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", PATIENT_JAVA)
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    if name == "5_on_spark_executors":
        _give_up_at_once_on_executors(notebook)
    resources = {"metadata": {"path": str(NOTEBOOKS)}}
    kernels.execute(notebook, 600, resources=resources)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    statuses = [html.partition('data-status="')[2].partition('"')[0] for html in shown if "data-status" in html]
    expected = JOBS[name]
    # A cell that ends while its job runs is drawn later, or never once the kernel has gone.
    assert [status for status, known in zip(statuses, expected, strict=True) if known != "InProgress"] == [
        known for known in expected if known != "InProgress"
    ]


def _give_up_at_once_on_executors(notebook: nbformat.NotebookNode) -> None:
    """In the last cell, which asks for more than there are: by then all have come."""
    *_, last = [at for at, cell in enumerate(notebook.cells) if "np=5" in cell.source]
    source = f"spark.sparkContext._jsc.sc().conf().set({COMING!r}, '0s')"
    notebook.cells.insert(last, nbformat.v4.new_code_cell(source))
