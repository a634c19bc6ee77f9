"""What is refused, by whom, and in which words."""

from __future__ import annotations

import pytest

from estimator_sdk import BackendError, Estimator, EstimatorError, InvalidArgument, Job, TensorFlow, TrainingInput

from .conftest import cloud
from .stand_in import ACCOUNT, IMAGE, REGION, ROLE


def refusal(script, inputs=None, **arguments) -> EstimatorError:
    with pytest.raises(EstimatorError) as raised:
        cloud(script, **arguments).fit(inputs, wait=False)
    return raised.value


@pytest.mark.parametrize(
    ("arguments", "argument", "words"),
    [
        ({"role": None}, "role", "role is missing, but SageMaker needs the ARN or the name"),
        ({"role": "nobody"}, "role", "role 'nobody' is not a role in this account"),
        ({"image_uri": None}, "image_uri", "image_uri is missing, but SageMaker runs only images"),
        ({"image_uri": "estimator/mpi:py311"}, "image_uri", "is not in a registry that SageMaker reads; push it"),
        (
            {"image_uri": IMAGE.replace(REGION, "us-east-1")},
            "image_uri",
            "image_uri is in us-east-1 but the job would run in eu-west-1",
        ),
        ({"instance_type": "local", "backend": "sagemaker"}, "instance_type", "'local' is this machine"),
        ({"output_path": "file:///tmp/out"}, "output_path", "which SageMaker instances cannot reach"),
        ({"checkpoint_s3_uri": "file:///tmp/out"}, "checkpoint_s3_uri", "cannot reach; copy it to S3"),
        ({"code_location": "file:///tmp/code"}, "code_location", "cannot reach; give an s3:// URI"),
        ({"cpus": 2}, "cpus", "the instance type sets how many CPUs"),
        ({"restart_policy": {"on": ["signal"]}}, "restart_policy", "tries again only what it has failed itself"),
        ({"memory": 2}, "memory", "the instance type sets how much memory"),
        ({"stop_timeout": 5}, "stop_timeout", "SageMaker always gives 120 seconds"),
        ({"hyperparameters": {"a": "b" * 2500}}, "hyperparameters['a']", "the service accepts 2500"),
        ({"subnets": [], "security_group_ids": []}, "CreateTrainingJob", "VpcConfig"),
    ],
)
def test_what_the_service_cannot_do_is_refused_before_anything_is_sent_to_it(
    platform, script, arguments, argument, words
):
    error = refusal(script, **arguments)
    assert isinstance(error, InvalidArgument) and error.argument == argument
    assert words in str(error)


def test_data_of_this_machine_is_refused_by_its_channel(platform, script):
    error = refusal(script, {"train": TrainingInput("file:///data")})
    assert error.argument == "inputs['train']" and "copy it to S3, for example with `aws s3 cp" in str(error)


def test_the_toolkits_channels_are_not_the_users(platform, script):
    assert "name reserved for the toolkit's own channel" in str(refusal(script, {"estimator-world": "s3://a/b"}))


def test_an_image_that_a_version_chooses_has_to_be_pushed_first(platform, script):
    estimator = TensorFlow(
        framework_version="2.21", entry_point=script, role=ROLE, instance_type="ml.m5.xlarge", instance_count=2
    )
    with pytest.raises(InvalidArgument, match=r"'estimator/tensorflow:2.21.0-py311' is not in a registry .*; push it"):
        estimator.plan()


def test_a_role_may_be_given_by_its_name(platform, script):
    iam = platform.client("iam")
    iam.create_role(RoleName="training", AssumeRolePolicyDocument="{}")
    request = cloud(script, role="training").plan().request
    assert request["RoleArn"] == f"arn:aws:iam::{ACCOUNT}:role/training"


def test_no_region(script, settings, monkeypatch):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    error = refusal(script)
    assert isinstance(error, InvalidArgument) and "no AWS region is set" in str(error)


def test_no_credentials(script, settings, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    error = refusal(script)
    assert isinstance(error, BackendError)
    assert "cannot find out the account of the AWS credentials: there are no AWS credentials; set AWS_ACC" in str(error)


def test_a_profile_that_is_not_there(script, settings, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert "The config profile (nobody) could not be found" in str(refusal(script))


def test_a_role_that_the_service_may_not_assume(platform, script):
    error = refusal(script, role=f"arn:aws:iam::{ACCOUNT}:role/unknown")
    assert "Could not assume role" in str(error) and "that sagemaker.amazonaws.com may assume" in str(error)


def test_a_quota(platform, script):
    error = refusal(script, instance_count=101)
    assert "a quota of the account in eu-west-1 does not allow it: The account-level service limit" in str(error)
    assert "Service Quotas" in str(error)


def test_a_name_that_is_taken(platform, estimator):
    estimator.fit(wait=False, job_name="taken")
    with pytest.raises(InvalidArgument, match="job_name 'taken' is already taken in eu-west-1; choose another name"):
        estimator.fit(wait=False, job_name="taken")


def test_a_name_that_is_taken_leaves_the_secret_of_the_job_that_has_it(platform, script):
    estimator = cloud(script, instance_count=2, code_location=f"s3://sagemaker-{REGION}-{ACCOUNT}/taken")
    estimator.fit(wait=False, job_name="taken-world")
    world = {"Bucket": f"sagemaker-{REGION}-{ACCOUNT}", "Key": "taken/worlds/taken-world/worldsecret"}
    secret = platform.client("s3").get_object(**world)["Body"].read()
    with pytest.raises(InvalidArgument, match="is already taken"):
        estimator.fit(wait=False, job_name="taken-world")
    assert platform.client("s3").get_object(**world)["Body"].read() == secret


def test_a_job_that_can_no_longer_be_watched_goes_on_and_that_is_said(platform, script, aws_proxy, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    aws_proxy.choose = lambda request: "throttle" if "Describe" in request.operation else None
    with pytest.raises(BackendError) as raised:
        cloud(script).fit(job_name="unwatched")
    assert "the job is still running, and Job.attach('unwatched') finds it" in str(raised.value)
    aws_proxy.choose = lambda request: None
    assert Job.attach("unwatched").status == "InProgress"


def test_a_control_plane_that_does_not_answer(platform, script, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    error = refusal(script)
    assert isinstance(error, BackendError)
    assert "http://127.0.0.1:9/ does not answer (Could not connect to the endpoint URL" in str(error)


def test_a_submission_whose_answer_is_lost_is_found_to_be_done(platform, script, aws_proxy):
    def choose(request):
        is_first = request.operation not in [each.operation for each in aws_proxy.requests[:-1]]
        return "lose the answer" if request.operation == "SageMaker.CreateTrainingJob" and is_first else None

    aws_proxy.choose = choose
    job = cloud(script).fit(wait=False, job_name="lost-answer")
    assert job.status == "InProgress"
    operations = [each.operation for each in aws_proxy.requests]
    assert operations.count("SageMaker.CreateTrainingJob") == 2


def test_endpoints_of_one_service_are_those_of_botocore(moto_server, platform, script, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for service in ("SAGEMAKER", "S3", "STS", "CLOUDWATCH_LOGS"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", moto_server)
    job = cloud(script).fit(wait=False, job_name="endpoints")
    assert job.status == "InProgress" and list(job.logs()) == []


def test_nothing_is_asked_where_everything_is_said(script, settings, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    plan = cloud(script, code_location="s3://code/here", output_path="s3://code/out").plan()
    assert plan.code_uri.startswith("s3://code/here/") and plan.output_path == "s3://code/out"


def test_the_instance_type_chooses_the_backend(script, platform):
    assert cloud(script).plan().backend == "sagemaker"
    assert Estimator(entry_point=script).plan().backend == "process"
