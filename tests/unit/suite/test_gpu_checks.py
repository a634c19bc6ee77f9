"""The checks that need a GPU: what is said where there is none, and what the page says of a run."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu import __main__ as checks_of_gpus
from tests.gpu import report
from tests.gpu.checks import CannotBeShown
from tests.gpu.machine import Gpu
from tests.waiting import SECONDS

ROOT = Path(__file__).parents[3]
GPU = Gpu(0, "NVIDIA A100-SXM4-40GB", "GPU-a", "0000:07:00.0", "570.86")


def test_without_a_gpu_they_are_refused_and_the_page_stays(tmp_path, monkeypatch):
    page = tmp_path / "gpu.md"
    monkeypatch.setenv("PATH", "/nowhere")  # also where there is one, for its driver's program is not found
    words = [sys.executable, "-m", "tests.gpu", "--page", str(page)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (1, f"{checks_of_gpus.REFUSAL}\n")
    assert not page.exists()


def test_the_page_of_these_documents_is_that_of_a_run_or_says_that_there_was_none():
    text = (ROOT / "docs" / "gpu.md").read_text()
    names = [*checks_of_gpus.OF_MACHINE, *checks_of_gpus.OF_FRAMEWORKS, checks_of_gpus.OF_HOROVOD]
    before = report.page(names)
    assert text == before or text.startswith(f"{report.INTRODUCTION}\n## Run of ")


@pytest.mark.parametrize(
    ("raised", "outcome", "seen"),
    [
        (None, "holds", "2 GPUs"),
        (CannotBeShown("one GPU"), "not shown", "one GPU"),
        (AssertionError("seen 1"), "does not hold", "AssertionError: seen 1"),
        (OSError("no file"), "does not hold", "OSError: no file"),
    ],
)
def test_what_cannot_be_shown_is_neither_a_success_nor_a_failure(raised, outcome, seen):
    def check():
        if raised:
            raise raised
        return "2 GPUs"

    found = checks_of_gpus._outcome("a check", check)
    assert (found.outcome, found.seen) == (outcome, seen)
    page = report.page_of_run("27 November 2026, 10:00 UTC", [GPU], "Python 3.11", [found])
    assert f"| a check | {outcome} | {seen} |" in page and "has not been run" not in page
