"""The world works with Debian's Open MPI as with PyPI's."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"

RUN = """
import json, sys
from estimator_sdk import Estimator, JobFailed
settings = json.loads(sys.argv[1])
try:
    job = Estimator(**settings).fit(logs="none")
except JobFailed as failed:
    print(json.dumps({"failed": str(failed), "rank": failed.verdict.rank, "host": failed.verdict.host}))
else:
    print(json.dumps({line.rank: line.data.decode() for line in job.logs(stream="stdout")}))
"""


def run(python: Path, home: Path, **settings: object) -> dict[str, object]:
    """Run an estimator in the environment of `python`; returns the last line of each rank, or the failure."""
    # PATH as a login shell of that environment has it: the test's own environment has another mpirun.
    env = {**os.environ, "PATH": f"{python.parent}:/usr/bin:/bin", "ESTIMATOR_HOME": str(home)}
    done = subprocess.run(
        [str(python), "-c", RUN, json.dumps(settings)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def script(tmp_path: Path):
    def written(text: str) -> str:
        path = tmp_path / "train.py"
        path.write_text(text)
        return str(path)

    return written


def mpi(processes: int) -> dict[str, object]:
    return {"mpi": {"enabled": True, "processes_per_host": processes}}


REPORT = """
from mpi4py import MPI
world = MPI.COMM_WORLD
node = world.Split_type(MPI.COMM_TYPE_SHARED)
print(world.rank, world.size, node.rank, node.size, world.allreduce(world.rank), MPI.Get_library_version().split()[2])
"""


@pytest.mark.parametrize(("hosts", "processes"), [(1, 2), (2, 1), (2, 2), (4, 2)])
def test_the_world_is_right(debian_python, script, tmp_path, hosts, processes):
    said = run(
        debian_python,
        tmp_path / "home",
        entry_point=script(REPORT),
        instance_count=hosts,
        distribution=mpi(processes),
    )
    size = hosts * processes
    total = sum(range(size))
    version = subprocess.run(["/usr/bin/mpirun", "--version"], capture_output=True, text=True, check=True).stdout
    expected = version.split()[3]
    assert said == {
        str(rank): f"{rank} {size} {rank % processes} {processes} {total} v{expected},\n" for rank in range(size)
    }


def test_a_failing_rank_is_named(debian_python, script, tmp_path):
    source = "from mpi4py import MPI\nif MPI.COMM_WORLD.rank == 3: raise ValueError('here')\nMPI.COMM_WORLD.Barrier()\n"
    said = run(debian_python, tmp_path / "home", entry_point=script(source), instance_count=2, distribution=mpi(2))
    assert (said["rank"], said["host"]) == (3, "algo-2")
    assert "ValueError: here" in str(said["failed"])


def test_the_numpy_example_learns(debian_python, tmp_path):
    said = run(
        debian_python,
        tmp_path / "home",
        entry_point="digits_numpy_mpi.py",
        source_dir=str(ENTRYPOINTS),
        instance_count=2,
        distribution=mpi(2),
        hyperparameters={"epochs": 12},
    )
    name, accuracy = str(said["0"]).split()
    assert name == "test_accuracy:" and float(accuracy) > 0.95
