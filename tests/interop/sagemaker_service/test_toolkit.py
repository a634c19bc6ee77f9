"""What is submitted is enough for our toolkit on the instances: code, the world's secret, arguments, failures."""

from __future__ import annotations

import json

import pytest

from estimator_sdk import Job, JobFailed, JobSpec
from estimator_sdk.values import job_name
from tests.conformance.jobs import MEET

from .conftest import cloud
from .instances import Containers, Instances
from .stand_in import ACCOUNT, REGION

WORLD = {"mpi": {"enabled": True, "processes_per_host": 2}}
SUM = """
import json, os, sys
from mpi4py import MPI
total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.Get_rank())
print("sum", total, sys.argv[1:], os.environ["SM_CHANNELS"], flush=True)
if MPI.COMM_WORLD.Get_rank() == 0:
    open(os.path.join(os.environ["SM_MODEL_DIR"], "sum"), "w").write(str(total))
"""


@pytest.fixture
def instances(platform, tmp_path):
    """Starts the instances of a submitted job."""

    def start(name: str) -> Instances:
        made = Instances(platform, name, tmp_path / "instances")
        made.start()
        return made

    return start


def test_a_world_over_two_hosts_runs_from_the_description_alone(platform, instances, script, data, tmp_path):
    script.write_text(SUM)
    estimator = cloud(script, instance_count=2, distribution=WORLD, hyperparameters={"lr": 0.1})
    job = estimator.fit({"train": data}, wait=False, job_name="toolkit-1")
    instances("toolkit-1").finish()
    assert job.wait() == "Completed"
    lines = list(job.logs(stream="stdout"))
    assert sorted(line.rank for line in lines) == [0, 1, 2, 3]
    assert {line.data for line in lines} == {b"""sum 6 ['--lr', '0.1'] ["train"]\n"""}
    assert {line.host for line in job.logs(rank=2)} == {"algo-2"}
    assert (job.download(tmp_path / "model") / "sum").read_text() == "6"


def test_a_failing_rank_is_named(platform, instances, script):
    script.write_text("import os, sys\nif os.environ.get('RANK') == '3':\n    sys.exit('no such digit')\n")
    job = cloud(script, instance_count=2, distribution=WORLD).fit(wait=False, job_name="toolkit-2")
    instances("toolkit-2").finish()
    with pytest.raises(JobFailed, match="rank 3 on algo-2 exited with code 1") as raised:
        job.wait()
    assert (raised.value.verdict.rank, raised.value.verdict.host) == (3, "algo-2")
    assert "no such digit" in job.why()


def test_without_a_network_the_code_comes_all_the_same(platform, instances, script):
    script.write_text("import sys; print(sys.argv)\n")
    estimator = cloud(script, enable_network_isolation=True, hyperparameters={"a": "b c"})
    job = estimator.fit(wait=False, job_name="toolkit-3")
    described = platform.client("sagemaker").describe_training_job(TrainingJobName="toolkit-3")
    place = json.loads(described["HyperParameters"]["sagemaker_submit_directory"])
    assert place.startswith("/opt/ml/input/data/estimator-code/") and place.endswith(".tar.gz")
    instances("toolkit-3").finish()
    assert job.wait() == "Completed" and [line.data for line in job.logs()] == [b"['train.py', '-a', 'b c']\n"]


@pytest.fixture
def role(moto_server) -> dict[str, str]:
    keys = {"AWS_ACCESS_KEY_ID": "role", "AWS_SECRET_ACCESS_KEY": "role-secret"}
    return {**keys, "AWS_ENDPOINT_URL": moto_server, "AWS_REGION": REGION}


def without_channels(platform, name: str, **hyperparameters: str) -> None:
    """Submit the job once more as SageMaker's SDK would, with its code in S3 and no channel for it."""
    client = platform.client("sagemaker")
    request = JobSpec.from_description(client.describe_training_job(TrainingJobName=name)).to_request()
    request["HyperParameters"] |= hyperparameters
    del request["InputDataConfig"]
    client.create_training_job(**{**request, "TrainingJobName": f"{name}-again"})


def test_code_that_is_only_in_s3_is_fetched_with_the_role(platform, script, tmp_path, role):
    script.write_text("print('fetched')\n")
    cloud(script).fit(wait=False, job_name="toolkit-4")
    without_channels(platform, "toolkit-4")
    instances = Instances(platform, "toolkit-4-again", tmp_path / "instances", role)
    instances.start()
    instances.finish()
    assert [line.data for line in Job.attach("toolkit-4-again").logs()] == [b"fetched\n"]


def test_code_is_fetched_from_the_server_that_local_mode_names(platform, script, tmp_path, role):
    script.write_text("print('fetched')\n")
    cloud(script).fit(wait=False, job_name="toolkit-6")
    without_channels(platform, "toolkit-6")
    named = {"S3_ENDPOINT_URL" if name == "AWS_ENDPOINT_URL" else name: value for name, value in role.items()}
    instances = Instances(platform, "toolkit-6-again", tmp_path / "instances", named)
    instances.start()
    instances.finish()
    assert [line.data for line in Job.attach("toolkit-6-again").logs()] == [b"fetched\n"]


def test_code_that_is_not_where_the_job_says_fails_it_with_the_place(platform, script, tmp_path, role):
    cloud(script).fit(wait=False, job_name="toolkit-5")
    nowhere = f"s3://sagemaker-{REGION}-{ACCOUNT}/nowhere.tar.gz"
    without_channels(platform, "toolkit-5", sagemaker_submit_directory=json.dumps(nowhere))
    instances = Instances(platform, "toolkit-5-again", tmp_path / "instances", role)
    instances.start()
    instances.finish()
    assert f"the code could not be fetched: {nowhere} does not exist" in Job.attach("toolkit-5-again").why()


def test_our_image_makes_a_world_of_what_the_service_gives_it(platform, script, tmp_path, image):
    script.write_text(SUM)
    name = job_name.unique("toolkit")
    job = cloud(script, instance_count=2, distribution=WORLD).fit(wait=False, job_name=name)
    run_in_containers(Containers(platform, name, tmp_path / "instances", image, role={}))
    assert job.wait() == "Completed"
    lines = list(job.logs(stream="stdout"))
    assert sorted(line.rank for line in lines) == [0, 1, 2, 3]
    assert {line.data for line in lines} == {b"sum 6 [] []\n"}
    assert not (tmp_path / "instances/algo-1/input/data/estimator-world/worldsecret").exists()


@pytest.mark.parametrize(
    ("distribution", "size"),
    [
        ({"torch_distributed": {"enabled": True, "processes_per_host": 2}}, 4),
        ({"multi_worker_mirrored_strategy": {"enabled": True}}, 2),
    ],
)
def test_our_image_makes_the_other_worlds_too(platform, script, tmp_path, image, distribution, size):
    """Every rank meets the others of its job as PyTorch's or TensorFlow's would."""
    script.write_text(f"{MEET}\nprint('met', size)\n")
    name = job_name.unique("toolkit")
    job = cloud(script, instance_count=2, distribution=distribution).fit(wait=False, job_name=name)
    run_in_containers(Containers(platform, name, tmp_path / "instances", image, role={}))
    assert job.wait() == "Completed"
    lines = list(job.logs(stream="stdout"))
    assert sorted(line.rank for line in lines) == list(range(size))
    assert {line.data for line in lines} == {f"met {size}\n".encode()}


def test_our_image_fetches_code_that_is_only_in_s3(platform, script, tmp_path, image, role):
    script.write_text("print('fetched')\n")
    name = job_name.unique("toolkit")
    cloud(script).fit(wait=False, job_name=name)
    without_channels(platform, name)
    run_in_containers(Containers(platform, f"{name}-again", tmp_path / "instances", image, role))
    assert [line.data for line in Job.attach(f"{name}-again").logs()] == [b"fetched\n"]


def run_in_containers(containers: Containers) -> None:
    try:
        containers.start()
        containers.finish()
    finally:
        containers.remove()
