"""Scripts of PyTorch's process groups, on containers of the image that its version chooses, beside torchrun itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from estimator_container.contract.names import HANG_FLOOR

from estimator_sdk import Estimator, Job, JobFailed, PyTorch
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import build, catalogue
from tests.conformance.jobs import ends_by_hang

ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"
VERSION = "2.13"
ONE_ON_EACH_HOST = {"torch_distributed": {"enabled": True}}
TWO_ON_EACH_HOST = {"torch_distributed": {"enabled": True, "processes_per_host": 2}}

TELL = "import json, os; print(json.dumps(dict(os.environ)), flush=True)"
MEET = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
"""


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def pytorch_image() -> str:
    image = catalogue.find("pytorch", VERSION).name
    build.ensure(engine.connect(), image, sys.stderr)
    return image


def estimator(script: Path, **arguments: object) -> PyTorch:
    return PyTorch(
        **{
            "framework_version": VERSION,
            "entry_point": str(script),
            "instance_count": 2,
            "distribution": TWO_ON_EACH_HOST,
            **arguments,
        }
    )


def lines(job: Job, rank: int = 0) -> list[str]:
    return [line.data.decode().rstrip("\n") for line in job.logs(rank=rank, stream="stdout")]


def in_a_container(image: str, mount: str, shell: str) -> str:
    """What it says on stdout; with a network of its own, so that ports are free."""
    command = ["docker", "run", "--rm", "--network", "none", "-v", mount, "--entrypoint", "sh", image, "-c", shell]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def under_torchrun(image: str, script: Path) -> list[dict[str, str]]:
    """What each rank sees on two hosts with two processes each, which here are two torchruns in one container."""
    run = "torchrun --nnodes 2 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port 29400 --node-rank"
    shell = f"cd /tmp; {run} 1 train.py > 1 & {run} 0 train.py > 0; wait; cat 0 1"
    said = in_a_container(image, f"{script}:/tmp/train.py:ro", shell)
    # Two ranks may write on one line.
    return sorted(map(json.loads, re.findall(r"\{[^{}]*\}", said)), key=lambda env: int(env["RANK"]))


# Of this run's own: a folder of torchrun's, and where the group meets.
OF_ONE_RUN = {"TORCHELASTIC_ERROR_FILE", "MASTER_ADDR", "MASTER_PORT"}
OURS = {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}


def of_the_group(env: Mapping[str, str]) -> dict[str, str]:
    """Without what the machine, the image and the contract of training jobs set."""
    names = re.compile(r"TORCH|OMP_|MASTER_|(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE|NAME)$|GLOO_|NCCL_|PET_")
    return {name: value for name, value in env.items() if names.match(name) and name not in OF_ONE_RUN}


def test_a_script_sees_what_it_sees_under_torchrun(pytorch_image, tmp_path):
    """That ranks meet with it is seen below; PyTorch takes seconds to import."""
    script = tmp_path / "train.py"
    script.write_text(TELL)
    job = estimator(script).fit(logs="none")
    theirs = under_torchrun(pytorch_image, script)
    assert len(theirs) == 4
    for rank in range(4):
        env = json.loads(lines(job, rank)[-1])
        assert set(env) >= {"MASTER_ADDR", "MASTER_PORT"}
        group = of_the_group(env)
        assert {group.pop(name) for name in OURS} == {"eth0"}
        # torchrun's agent keeps the store; with us rank 0 does.
        keeps = "TORCHELASTIC_USE_AGENT_STORE"
        expected = of_the_group(theirs[rank])
        assert (group.pop(keeps), expected.pop(keeps)) == ("False", "True")
        assert group == expected


@pytest.mark.parametrize(
    ("rank", "failure"),
    [pytest.param(0, "raise ValueError('no such digit')", marks=pytest.mark.long), (1, "os._exit(9)")],
)
def test_the_failing_rank_is_named_and_not_those_that_lose_it(tmp_path, rank, failure):
    path = tmp_path / "train.py"
    path.write_text(f"{MEET}\nif dist.get_rank() == {rank}: {failure}\ndist.all_reduce(total)\n")
    with pytest.raises(JobFailed) as failed:
        estimator(path, distribution=ONE_ON_EACH_HOST).fit(logs="none")
    assert (failed.value.verdict.rank, failed.value.verdict.host) == (rank, f"algo-{rank + 1}")


STANDS = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(60):  # of which two looks have to see some each
    dist.all_reduce(torch.ones(2))
    print("step", step, flush=True)
    time.sleep(0.05)
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(2))
else:
    dist.barrier()
"""


def test_where_ranks_stand_still_the_flight_recorder_says_in_which_collective_each_waits(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(STANDS)

    def made(floor: float) -> Estimator:
        environment = {HANG_FLOOR: str(floor), "TORCH_FR_BUFFER_SIZE": "100"}
        return estimator(path, distribution=ONE_ON_EACH_HOST, environment=environment)

    _, found = ends_by_hang(made)
    assert found.kind == "deadlock"
    assert re.search(r"^rank 0 .*; collective 61 of default_pg: gloo:all_reduce, ", found.detail, re.MULTILINE)
    assert re.search(r"^rank 1 .*; collective 61 of default_pg: gloo:barrier, ", found.detail, re.MULTILINE)


def test_the_example_learns_and_resumes_where_a_smaller_world_ended(tmp_path):
    def train(distribution: Mapping[str, object], **hyperparameters: object) -> Job:
        return estimator(
            Path("digits_pytorch_ddp.py"),
            source_dir=ENTRYPOINTS,
            distribution=distribution,
            hyperparameters=hyperparameters,
            checkpoint_s3_uri=f"file://{tmp_path / 'checkpoints'}",
            metric_definitions=[{"Name": "accuracy", "Regex": "test_accuracy: ([0-9.]+)"}],
        ).fit(logs="none")

    assert lines(train(ONE_ON_EACH_HOST, epochs=2))[0] == "training on 1438 images with 2 ranks"
    job = train(TWO_ON_EACH_HOST, epochs=12)
    said = lines(job)
    assert said[0] == "resuming after epoch 2 from /opt/ml/checkpoints/epoch-0002.pt"
    assert [line.split()[1] for line in said if line.startswith("epoch ")] == [f"{n}/12" for n in range(3, 13)]
    assert "weights agree on all 4 ranks" in said
    (accuracy,) = job.metrics()
    assert (accuracy.name, accuracy.rank) == ("accuracy", 0) and accuracy.value > 0.95
    assert (job.download(tmp_path / "model") / "model.pt").stat().st_size > 10_000


@pytest.mark.long
def test_the_example_runs_under_torchrun_and_alone(pytorch_image):
    for start in (
        "python3",
        "torchrun --nproc-per-node 2 --master-addr 127.0.0.1 --master-port 29400",
    ):
        run = f"cp -r /src /tmp/code; cd /tmp/code; {start} digits_pytorch_ddp.py --epochs 1 --model-dir /tmp/model"
        said = in_a_container(pytorch_image, f"{ENTRYPOINTS}:/src:ro", f"{run} --checkpoint-dir /tmp/checkpoints")
        ranks = 1 if start == "python3" else 2
        assert f"training on 1438 images with {ranks} ranks" in said and f"weights agree on all {ranks} ranks" in said
