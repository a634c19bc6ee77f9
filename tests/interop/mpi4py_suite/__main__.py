"""Run mpi4py's own tests, from a checkout of its repository, through an Estimator.

    git clone --branch 4.1.2 https://github.com/mpi4py/mpi4py
    python -m tests.interop.mpi4py_suite mpi4py                       # on 2 hosts x 2 ranks, as processes
    python -m tests.interop.mpi4py_suite mpi4py --backend docker --only test_spawn test_futures
    python -m tests.interop.mpi4py_suite mpi4py --hosts 1 --mpi-options="-mca pml ucx"

The version should be the one that is installed. Each file of tests is a job. The command ends with 1 if a test does not
pass that is not in `NOT_PASSING`. Nothing of the checkout is changed. The table in `docs/mpi.md` comes of it.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from estimator_sdk import Estimator, Job, JobFailed
from tests.interop.mpi4py_suite.on_rank import MARK

FOLDERS = ("test", "demo/futures")
NOT_PASSING: dict[str, str] = {}
"""Tests, as patterns of their names, that do not pass for a reason outside of this project -> that reason."""
LEFT_OUT = {
    "*.TestWinCreateDynamic*.testAttachDetach": "Open MPI 4.1 miscounts the regions of a dynamic window, which it "
    "keeps in the order of their addresses, and crashes when one is detached (`ompi_osc_ucx_win_attach`)",
    "test_util_sync.*World.*": "with the windows of UCX in Open MPI 4.1, a rank that only flushes its own window does "
    "not answer the calls of others on it, so all wait for ever",
}
"""Those that take their process along or never end, so that they are left out -> the same."""
LEFT_OUT_IN_CONTAINERS = {"test_io.*World*": "opens one file from all ranks, and containers share no folder for it"}
OUTCOMES = ("failed", "missing", "passed", "skipped")
"""How a test can end on a rank; what comes first here counts for all ranks."""
MODULE_SECONDS = 900


class Ended(NamedTuple):
    """How one test ended."""

    test: str
    outcome: str
    why: str

    @property
    def reason(self) -> str | None:
        """Why it need not pass; None for one that must."""
        return next((why for pattern, why in NOT_PASSING.items() if fnmatch.fnmatchcase(self.test, pattern)), None)

    @property
    def is_news(self) -> bool:
        return self.outcome in ("failed", "missing") and self.reason is None


def modules_of(checkout: Path) -> list[tuple[str, str]]:
    """The files of tests: a folder of the checkout and the name of a module in it."""
    found = [(folder, path) for folder in FOLDERS for path in sorted((checkout / folder).glob("test_*.py"))]
    return [(folder, path.stem) for folder, path in found if "unittest" in path.read_text()]


def run(code: Path, folder: str, module: str, settings: argparse.Namespace) -> Job:
    """The job that runs a file of tests on all ranks, when it has ended, in whatever way."""
    mpi = {"enabled": True, "processes_per_host": settings.ranks}
    if settings.mpi_options:
        mpi["custom_mpi_options"] = settings.mpi_options
    left_out = [*LEFT_OUT, *(LEFT_OUT_IN_CONTAINERS if settings.backend == "docker" else ())]
    estimator = Estimator(
        command=["python", "on_rank.py", folder, module, *left_out],
        source_dir=code,
        instance_count=settings.hosts,
        distribution={"mpi": mpi},
        backend=settings.backend,
        image_uri=settings.image,
        base_job_name="mpi4py",
        max_run=MODULE_SECONDS,
    )
    job = estimator.fit(wait=False, logs="none")
    try:
        job.wait()
    except JobFailed as failed:
        print(failed, flush=True)
    return job


def results_of(job: Job, ranks: int) -> list[Ended]:
    """How each test ended, on the rank where it ended worst."""
    of_ranks = [_results_of_rank(job, rank) for rank in range(ranks)]
    worst = []
    for test in sorted({test for each in of_ranks for test in each}):
        ended = [each.get(test, Ended(test, "missing", "")) for each in of_ranks]
        worst.append(min(ended, key=lambda each: OUTCOMES.index(each.outcome)))
    if job.status != "Completed":
        worst.append(Ended(f"the job {job.name}", "failed", f"it is {job.status}"))
    return worst


def _results_of_rank(job: Job, rank: int) -> dict[str, Ended]:
    text = b"".join(line.data for line in job.logs(rank=rank, stream="stdout")).decode("utf-8", "replace")
    found = (json.loads(line.partition(MARK)[2]) for line in text.splitlines() if line.startswith(MARK))
    return {result["test"]: Ended(**result) for result in found}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2, help="on each host")
    parser.add_argument("--backend", choices=("process", "docker"), default="process")
    parser.add_argument("--image", help="of the hosts, where they are containers")
    parser.add_argument("--mpi-options", help="custom_mpi_options of the jobs")
    parser.add_argument("--only", nargs="*", help="files of tests, such as test_spawn")
    settings = parser.parse_args()
    counts: Counter[str] = Counter()
    news: list[Ended] = []
    with tempfile.TemporaryDirectory() as temporary:
        code = Path(temporary)
        for folder in FOLDERS:
            shutil.copytree(settings.checkout / folder, code / folder)
        shutil.copy(Path(__file__).parent / "on_rank.py", code)
        for folder, module in modules_of(settings.checkout):
            if settings.only and module not in settings.only:
                continue
            started = time.monotonic()
            results = results_of(run(code, folder, module, settings), settings.hosts * settings.ranks)
            ended = Counter(each.outcome if each.reason is None else "known" for each in results)
            told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(ended.items())) or "no test"
            print(f"{module}: {told}, in {time.monotonic() - started:.0f} s", flush=True)
            for each in results:
                if each.is_news:
                    print(f"    {each.test}: {each.outcome}: {each.why[:200]}", flush=True)
                    news.append(each)
            counts += ended
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return 1 if news else 0


if __name__ == "__main__":
    sys.exit(main())
