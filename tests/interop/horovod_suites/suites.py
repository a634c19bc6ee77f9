"""Horovod's test files: which there are, how they run on all ranks, and what came of each test."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop.horovod_suites.known import BAD, Known, endless, reasons, surprises
from tests.interop.horovod_suites.on_rank import TEST, VERSIONS
from tests.interop.horovod_suites.world import ROOT, World, install, lines

SUITES = {
    "tensorflow": (
        "test_tensorflow2_keras",
        "test_tensorflow2_keras_process_sets",
        "test_tensorflow_keras",
        "test_keras",
        "test_tensorflow",
        "test_tensorflow_process_sets",
        "test_tensorflow_process_sets_dynamic",
        "test_process_sets_static",
        "test_process_sets_multi_comm",
        "test_adasum_tensorflow",
    ),
    "pytorch": ("test_torch", "test_adasum_pytorch", "test_timeline"),
}
"""Framework -> its files. Process sets of PyTorch are tested in `test_torch`."""
VARIABLES: Mapping[str, Mapping[str, str]] = {"tensorflow": {}, "pytorch": {"ESTIMATOR_DRIFT_GUARD": "warn"}}
"""Framework -> variables of the ranks. `test_dynamic_requires_grad` trains models that differ from the start, for which
the drift guard would end the job."""
PACKAGES = ("pytest", "pytest-timeout", "parameterized", "mock")
"""What Horovod's tests import besides what its users have."""
REWORDED = (
    ("(lr=", "(learning_rate="),
    (", input_length=10", ""),
    ("keras.losses.mean_squared_error", "keras.losses.MeanSquaredError()"),
    ("def __init__(self, name, **kwargs):", "def __init__(self, name, learning_rate=0.1, **kwargs):"),
    ("super().__init__(name=name, **kwargs)", "super().__init__(name=name, learning_rate=learning_rate, **kwargs)"),
    ("def update_step(self, gradient, variable):", "def update_step(self, gradient, variable, learning_rate=None):"),
)
"""What Keras 3 calls otherwise or has no more, with or without Horovod."""
WORST_FIRST = ("failed", "missing", "passed", "skipped")


@dataclass(frozen=True)
class Result:
    """How the tests of a suite ended on all ranks; a test passes where every rank passes it."""

    outcomes: Mapping[str, str]
    why: Mapping[str, str]
    """Test -> the first line of its error, or why it was skipped."""
    versions: Mapping[str, str]
    """Package -> version, of what the ranks run with."""
    completed: bool
    """Whether the job came to its end on all ranks."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Test -> why it was not run: it would never end."""


def code_of_tests(checkout: Path, folder: Path, reworded: bool) -> Path:
    """A code folder of Horovod's tests, of what they import and of the program that runs them."""
    shutil.copytree(checkout / "test" / "parallel", folder / "parallel")
    shutil.copytree(checkout / "test" / "utils", folder / "utils")
    shutil.copy(Path(__file__).parent / "on_rank.py", folder)
    install(PACKAGES, folder, "-c", str(ROOT / "constraints.txt"))
    for path in (folder / "parallel").glob("*.py") if reworded else ():
        text = path.read_text()
        for old, new in REWORDED:
            text = text.replace(old, new)
        path.write_text(text)
    return folder


def run(code: Path, suite: str, world: World, known: Sequence[Known], only: str | None = None) -> Result:
    """Run a test file on all ranks; of it only the tests that `only` selects, as pytest's `-k` has it."""
    file = f"parallel/{suite}.py"
    left_out = endless(known, suite, world.ranks)
    deselected = [f"--deselect={file}::{test}" for test in left_out]
    job = world.run(code, ["on_rank.py", file, *deselected, *(["-k", only] if only else [])])
    of_ranks = [[json.loads(line) for line in lines(job, rank, TEST)] for rank in range(world.ranks)]
    outcomes, why = worst([{each["test"]: (each["outcome"], each["why"]) for each in rank} for rank in of_ranks])
    versions = next((json.loads(line) for line in lines(job, 0, VERSIONS)), {})
    return Result(outcomes, why, versions, job.status == "Completed", left_out)


def worst(of_ranks: Sequence[Mapping[str, tuple[str, str]]]) -> tuple[dict[str, str], dict[str, str]]:
    """Test -> the worst outcome of all ranks, and why; a rank that did not come to a test is missing there."""
    outcomes, why = {}, {}
    for test in sorted({test for rank in of_ranks for test in rank}):
        ended = [rank.get(test, ("missing", "")) for rank in of_ranks]
        outcomes[test], why[test] = min(ended, key=lambda each: WORST_FIRST.index(each[0]))
    return outcomes, why


def report(suite: str, result: Result, known: Sequence[Known], reworded: bool, selected: bool) -> tuple[str, bool]:
    """What is said about a suite, and whether it fits the list of known failures."""
    expected = reasons(known, suite, result.versions, reworded)
    found = surprises(result.outcomes, expected, selected)
    if not result.completed:
        found.append("the job did not complete")
    bad = [test for test, how in result.outcomes.items() if how in BAD]
    counts = Counter(result.outcomes.values())
    shown = [", ".join(f"{counts[how]} {how}" for how in ("passed", "skipped", *BAD) if counts[how]) or "no test"]
    skipped = Counter(result.why[test] for test, how in result.outcomes.items() if how == "skipped")
    shown += [f"{count} skipped: {why}" for why, count in sorted(skipped.items())]
    shown += [f"known: {test}: {expected[test]}" for test in bad if test in expected]
    shown += [f"left out: {test}: {why}" for test, why in result.left_out.items()]
    shown += [f"WRONG: {each}" for each in found]
    shown += [f"{test}: {result.why[test][:300]}" for test in bad if test not in expected]
    return f"{suite}: " + "\n    ".join(shown), not found
