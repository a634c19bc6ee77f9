"""Run Horovod's own tests and examples, from a checkout of its repository, through an Estimator.

    git clone --branch v0.28.1 https://github.com/horovod/horovod
    python -m tests.interop.horovod_suites horovod                       # its tests, on 2 ranks
    python -m tests.interop.horovod_suites horovod --ranks 4 --only test_tensorflow2_keras
    python -m tests.interop.horovod_suites horovod --reworded            # with today's words for what Keras 3 renamed
    python -m tests.interop.horovod_suites horovod --examples            # its examples that download nothing

Nothing of the checkout is changed. The table in `docs/horovod.md` comes of it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from estimator_sdk import Estimator, Job, JobFailed
from tests.interop.horovod_suites.example_on_rank import WEIGHTS
from tests.interop.horovod_suites.on_rank import MARK

SUITES = (
    "test_tensorflow2_keras",
    "test_tensorflow2_keras_process_sets",
    "test_tensorflow_keras",
    "test_keras",
    "test_tensorflow",
    "test_tensorflow_process_sets",
    "test_adasum_tensorflow",
)
PACKAGES = ("parameterized", "mock")
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
EXAMPLES = {
    "tensorflow2/tensorflow2_synthetic_benchmark.py": "--model MobileNetV2 --batch-size 2 --num-warmup-batches 1 "
    "--num-batches-per-iter 1 --num-iters 2",
    "tensorflow2/tensorflow2_keras_synthetic_benchmark.py": "--model MobileNetV2 --batch-size 2 "
    "--num-batches-per-iter 1 --num-iters 2",
}
"""Those that train on numbers that they make themselves, with arguments that let them be quick."""


def code_of_tests(checkout: Path, folder: Path, reworded: bool) -> Path:
    """A code folder of Horovod's tests, of what they import and of the program that runs them."""
    shutil.copytree(checkout / "test" / "parallel", folder / "parallel")
    shutil.copytree(checkout / "test" / "utils", folder / "utils")
    shutil.copy(Path(__file__).parent / "on_rank.py", folder)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", str(folder), *PACKAGES], check=True)
    for path in (folder / "parallel").glob("*.py") if reworded else ():
        text = path.read_text()
        for old, new in REWORDED:
            text = text.replace(old, new)
        path.write_text(text)
    return folder


def run(code: Path, words: list[str], settings: argparse.Namespace) -> Job:
    """The job that runs a command on all ranks, when it has ended, in whatever way."""
    estimator = Estimator(
        command=["python", *words],
        source_dir=code,
        distribution={"mpi": {"enabled": True, "processes_per_host": settings.ranks}},
        environment={"TF_CPP_MIN_LOG_LEVEL": "3", **dict(each.split("=", 1) for each in settings.set)},
        backend="process",
    )
    job = estimator.fit(wait=False, logs="none")
    try:
        job.wait()
    except JobFailed as failed:
        print(failed)
    return job


def tests_of(job: Job, rank: int) -> dict[str, dict[str, str]]:
    """How each test ended on a rank."""
    text = b"".join(line.data for line in job.logs(rank=rank, stream="stdout")).decode("utf-8", "replace")
    found = (json.loads(line.partition(MARK)[2]) for line in text.splitlines() if line.startswith(MARK))
    return {result["test"]: result for result in found}


def report_of_suite(job: Job, ranks: int) -> str:
    """The counts of a suite, and a line for each test that failed on a rank; a test passes where all ranks pass it."""
    of_ranks = [tests_of(job, rank) for rank in range(ranks)]
    worst: dict[str, dict[str, str]] = {}
    for test in sorted({test for each in of_ranks for test in each}):
        ended = [each.get(test, {"test": test, "outcome": "missing", "why": ""}) for each in of_ranks]
        worst[test] = min(ended, key=lambda each: ("failed", "missing", "passed", "skipped").index(each["outcome"]))
    counts = Counter(each["outcome"] for each in worst.values())
    lines = [", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "no test"]
    bad = (each for each in worst.values() if each["outcome"] in ("failed", "missing"))
    return "\n    ".join([*lines, *(f"{each['test']}: {each['outcome']}: {each['why'][:200]}" for each in bad)])


def report_of_example(settings: argparse.Namespace, example: str, words: list[str]) -> str:
    """How an example ended, and whether its ranks came to the same weights."""
    with tempfile.TemporaryDirectory() as folder:
        code = Path(shutil.copytree((settings.checkout / "examples" / example).parent, Path(folder) / "code"))
        shutil.copy(Path(__file__).parent / "example_on_rank.py", code)
        job = run(code, ["example_on_rank.py", Path(example).name, *words], settings)
    told = [line.data for rank in range(settings.ranks) for line in job.logs(rank=rank, stream="stdout")]
    digests = [line for line in told if line.startswith(WEIGHTS.encode())]
    agree = len(digests) == settings.ranks and len(set(digests)) == 1
    return f"{job.status}, and the weights {'agree' if agree else 'do not agree'} on {settings.ranks} ranks"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="suites or examples")
    parser.add_argument("--reworded", action="store_true")
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], help="variables of the ranks, NAME=VALUE")
    parser.add_argument("-k", help="only tests whose names match, as pytest has it")
    settings = parser.parse_args()
    if settings.examples:
        for example, words in EXAMPLES.items():
            if not settings.only or Path(example).stem in settings.only:
                print(f"{example}: {report_of_example(settings, example, words.split())}", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        code = code_of_tests(settings.checkout, Path(folder) / "code", settings.reworded)
        for suite in settings.only or SUITES:
            words = ["on_rank.py", f"parallel/{suite}.py", *(["-k", settings.k] if settings.k else [])]
            print(f"{suite}: {report_of_suite(run(code, words, settings), settings.ranks)}", flush=True)


if __name__ == "__main__":
    main()
