"""A job is its document: what one can submit another can run, in the cloud and on this machine."""

from __future__ import annotations

import io
import json
import tarfile

import pytest

from estimator_sdk import InstanceGroup, InvalidArgument, Job, JobSpec, TrainingInput
from tests.unit.sdk.estimator.test_estimator import EVERYTHING

from .conftest import cloud
from .instances import Instances
from .stand_in import ACCOUNT, IMAGE, REGION, ROLE

SCRIPT = "import os, sys\nprint(sys.argv[1:], os.environ['SAGEMAKER_JOB_NAME'], os.environ['SM_CHANNELS'])\n"


def words_of(job: Job) -> list[str]:
    return [line.data.decode().rstrip() for line in job.logs(stream="stdout")]


def test_the_document_of_an_estimator_runs_wherever_it_is_submitted(platform, script, data, tmp_path):
    script.write_text(SCRIPT)
    document = cloud(script, hyperparameters={"lr": 0.1}).to_training_job_request({"train": data}, "document-1")
    document = json.loads(json.dumps(document))
    platform.client("sagemaker").create_training_job(**document)
    instances = Instances(platform, "document-1", tmp_path / "instances")
    instances.start()
    instances.finish()
    expected = ["""['--lr', '0.1'] document-1 ["train"]"""]
    assert words_of(Job.attach("document-1")) == expected

    here = JobSpec.from_request(document).fit(backend="process", logs="none")
    assert here.backend == "process" and words_of(here) == expected


def test_a_job_of_the_service_is_run_again_on_this_machine(platform, script, data):
    script.write_text(SCRIPT)
    estimator = cloud(script, instance_count=2, hyperparameters={"lr": 0.1}, enable_network_isolation=True)
    estimator.fit({"train": data}, wait=False, job_name="again-1")
    platform.ends("again-1")
    answer = platform.client("sagemaker").describe_training_job(TrainingJobName="again-1")
    spec = JobSpec.from_description(answer)
    job = spec.fit(backend="process", logs="none", job_name="again-2")
    assert words_of(job) == ["""['--lr', '0.1'] again-2 ["train"]"""] * 2
    assert job.model_data.startswith("s3://") and job.model_data.endswith("/again-2/output/model.tar.gz")


def test_a_job_that_sagemakers_sdk_submitted_is_run_again_on_this_machine(platform, data):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        member = tarfile.TarInfo("train.py")
        member.size = len(SCRIPT)
        tar.addfile(member, io.BytesIO(SCRIPT.encode()))
    platform.client("s3").put_object(Bucket="data", Key="v2/source/sourcedir.tar.gz", Body=archive.getvalue())
    hyperparameters = {
        "lr": "0.1",
        "sagemaker_program": '"train.py"',
        "sagemaker_submit_directory": '"s3://data/v2/source/sourcedir.tar.gz"',
        "sagemaker_container_log_level": "20",
        "sagemaker_job_name": '"v2-1"',
        "sagemaker_region": f'"{REGION}"',
    }
    source = {"S3DataType": "S3Prefix", "S3Uri": data, "S3DataDistributionType": "FullyReplicated"}
    platform.client("sagemaker").create_training_job(
        TrainingJobName="v2-1",
        AlgorithmSpecification={"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        RoleArn=ROLE,
        HyperParameters=hyperparameters,
        InputDataConfig=[{"ChannelName": "training", "DataSource": {"S3DataSource": source}}],
        OutputDataConfig={"S3OutputPath": "s3://data/out"},
        ResourceConfig={"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
    )
    answer = platform.client("sagemaker").describe_training_job(TrainingJobName="v2-1")
    job = JobSpec.from_description(answer).fit(backend="process", logs="none")
    assert words_of(job) == ["""['--lr', '0.1'] v2-1 ["training"]"""]


def test_a_job_of_the_service_is_submitted_once_more_under_another_name(platform, script):
    cloud(script, instance_count=2).fit(wait=False, job_name="twice-1")
    client = platform.client("sagemaker")
    first = client.describe_training_job(TrainingJobName="twice-1")
    JobSpec.from_description(first).fit(wait=False, job_name="twice-2")
    second = client.describe_training_job(TrainingJobName="twice-2")
    worlds = [answer["InputDataConfig"][1]["DataSource"]["S3DataSource"]["S3Uri"] for answer in (first, second)]
    assert worlds[0] == worlds[1].replace("twice-2", "twice-1") != worlds[1]
    assert second["InputDataConfig"][0] == first["InputDataConfig"][0]
    assert json.loads(second["HyperParameters"]["sagemaker_job_name"]) == "twice-2"
    assert JobSpec.from_description(second).plan().request["InputDataConfig"] == second["InputDataConfig"]


def test_a_request_with_every_argument_is_what_the_service_takes(platform, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("")
    only_here = (
        "cpus",
        "memory",
        "gpus",
        "stop_timeout",
        "restart_policy",
        "spare_hosts",
        "inherit_environment",
        "slurm",
        "hosts",
        "hostfile",
        "queue",
    )
    arguments = {name: value for name, value in EVERYTHING.items() if name not in only_here}
    arguments |= {"source_dir": tmp_path / "src", "dependencies": [], "backend": None}
    estimator = cloud(tmp_path, **{**arguments, "image_uri": IMAGE, "code_location": "s3://data/code"})
    request = estimator.plan(
        {"train": TrainingInput("s3://bucket/a", hub_access_config={"HubContentArn": "a"})}
    ).request
    channels = [channel["ChannelName"] for channel in request["InputDataConfig"]]
    assert channels == ["train", "start", "estimator-code", "estimator-world"]
    assert request["VpcConfig"] and request["EnableManagedSpotTraining"] and request["RemoteDebugConfig"]
    platform.client("sagemaker").create_training_job(**request)


def test_a_job_of_several_types_has_its_groups_and_one_world(platform, script):
    groups = [
        InstanceGroup(instance_type="ml.c5.xlarge", instance_count=1, instance_group_name="cpu"),
        InstanceGroup(instance_type="ml.m5.xlarge", instance_count=2, instance_group_name="more"),
    ]
    estimator = cloud(script, instance_type="local", instance_groups=groups)
    plan = estimator.plan()
    assert plan.backend == "sagemaker" and [host.name for host in plan.hosts] == ["algo-1", "algo-2", "algo-3"]
    assert [group["InstanceCount"] for group in plan.request["ResourceConfig"]["InstanceGroups"]] == [1, 2]


def test_what_the_model_of_the_service_does_not_allow_is_refused_with_its_member(platform, script):
    document = cloud(script).plan().request
    spec = JobSpec.from_request({**document, "RetryStrategy": {"MaximumRetryAttempts": 0}})
    with pytest.raises(
        InvalidArgument, match=r"CreateTrainingJob does not accept the job: .*RetryStrategy.MaximumRetryAttempts"
    ):
        spec.plan()


def test_the_default_bucket_is_made_in_the_region_of_the_job(platform, script, monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    cloud(script, image_uri=IMAGE.replace(REGION, "us-east-1")).fit(wait=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    cloud(script).fit(wait=False)
    s3 = platform.client("s3")
    places = {
        region: s3.get_bucket_location(Bucket=f"sagemaker-{region}-{ACCOUNT}")["LocationConstraint"]
        for region in (REGION, "us-east-1")
    }
    assert places == {REGION: REGION, "us-east-1": None}
