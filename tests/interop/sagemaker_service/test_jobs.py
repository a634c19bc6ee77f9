from __future__ import annotations

import os
import re
import signal
import tarfile
import time

import pytest

from estimator_sdk import EstimatorError, InvalidArgument, Job, JobFailed, JobNotFound, list_jobs
from tests.stores.fault_proxy import Request
from tests.waiting import SECONDS

from .conftest import cloud, in_background
from .stand_in import ACCOUNT, IMAGE, REGION, ROLE

BUCKET = f"sagemaker-{REGION}-{ACCOUNT}"


def objects(platform) -> dict[str, bytes]:
    s3 = platform.client("s3")
    found = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return {each["Key"]: s3.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read() for each in found}


def test_fit_submits_the_request_that_the_plan_shows(platform, estimator):
    estimator.hyperparameters, estimator.environment = {"epochs": 3}, {"A": "b"}
    plan = estimator.plan({"train": "s3://data/digits"}, "submits-1")
    job = estimator.fit({"train": "s3://data/digits"}, wait=False, job_name="submits-1")
    described = platform.client("sagemaker").describe_training_job(TrainingJobName="submits-1")
    assert plan.request.items() <= described.items()
    assert (job.name, job.backend, job.status) == ("submits-1", "sagemaker", "InProgress")
    assert described["AlgorithmSpecification"] == {"TrainingImage": IMAGE, "TrainingInputMode": "File"}
    assert described["RoleArn"] == ROLE and described["Environment"] == {"A": "b"}
    assert described["OutputDataConfig"] == {"S3OutputPath": f"s3://{BUCKET}"}
    assert f"sagemaker in {REGION}, 1 host of ml.m5.xlarge" in str(plan)


def test_the_code_is_in_the_default_bucket_once_and_comes_as_a_channel(platform, script, aws_proxy):
    script.write_text("print('only here')\n")
    for name in ("code-1", "code-2"):
        cloud(script).fit(wait=False, job_name=name)
    described = platform.client("sagemaker").describe_training_job(TrainingJobName="code-2")
    (channel,) = described["InputDataConfig"]
    uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
    assert channel["ChannelName"] == "estimator-code" and channel["InputMode"] == "File"
    assert described["HyperParameters"]["sagemaker_submit_directory"] == f'"{uri}"'
    key = uri.removeprefix(f"s3://{BUCKET}/")
    assert key.startswith("estimator-sdk/code/") and key in objects(platform)
    assert [each.method for each in aws_proxy.requests if key in each.target].count("PUT") == 1


def test_several_hosts_share_a_secret_that_the_description_does_not_show(platform, script):
    cloud(script, instance_count=2).fit(wait=False, job_name="world-1")
    described = platform.client("sagemaker").describe_training_job(TrainingJobName="world-1")
    (world,) = (each for each in described["InputDataConfig"] if each["ChannelName"] == "estimator-world")
    uri = world["DataSource"]["S3DataSource"]["S3Uri"]
    secret = objects(platform)[uri.removeprefix(f"s3://{BUCKET}/")]
    assert len(secret) == 32 and len(set(secret)) > 8
    cloud(script, instance_count=2).fit(wait=False, job_name="world-2")
    assert objects(platform)[uri.removeprefix(f"s3://{BUCKET}/").replace("world-1", "world-2")] != secret


def test_no_line_is_shown_before_the_state_in_which_it_was_written(platform, estimator, aws_proxy, capsys):
    """Both come between two questions of one look at the job."""

    def when_asked(request: Request) -> None:
        if request.operation.endswith("DescribeLogStreams") and "Starting" not in states:
            states.append("Starting")
            transitions = [{"Status": state, "StartTime": 1.0, "StatusMessage": ""} for state in states]
            platform.tell("order-1", SecondaryStatusTransitions=transitions)
            platform.writes("order-1", "algo-1", "hello")
            platform.ends("order-1")

    states: list[str] = []
    aws_proxy.choose = when_asked
    estimator.fit(job_name="order-1")
    shown = capsys.readouterr().out
    assert 0 < shown.index("Starting") < shown.index("hello")


def test_fit_waits_and_shows_the_states_and_the_log(platform, estimator, capsys):
    model = f"s3://{BUCKET}/waits-1/output/model.tar.gz"

    def run() -> None:
        platform.waits_for("waits-1")
        states = [("Starting", "Preparing the instances for training"), ("Training", "")]
        transitions = [{"Status": status, "StartTime": 1.0, "StatusMessage": said} for status, said in states]
        platform.tell("waits-1", SecondaryStatusTransitions=transitions)
        platform.writes("waits-1", "algo-1", "[algo-1]<stdout>:hello", "[algo-1]<stderr>:oh")
        platform.ends("waits-1", ModelArtifacts={"S3ModelArtifacts": model}, TrainingEndTime=time.time())

    with in_background(run):
        job = estimator.fit(job_name="waits-1")
    shown = re.sub(r"estimator +[0-9.]+ s  ", "", capsys.readouterr().out)
    assert shown == (
        "waits-1 on 1 host, backend sagemaker\nStarting: Preparing the instances for training\nTraining\n"
        f"[algo-1]<stdout>:hello\n[algo-1]<stderr>:oh\nCompleted\nmodel  {model}\n"
        'see also: estimator logs|why|download waits-1, or Job.attach("waits-1")\n'
    )
    assert job.status == "Completed" and job.model_data == model and job.log_files == []
    with pytest.raises(EstimatorError, match="has no folder on this machine"):
        _ = job.folder


def test_a_failed_job_raises_with_the_rank_that_the_toolkit_named(platform, script):
    estimator = cloud(script, instance_count=2)
    job = estimator.fit(wait=False, job_name="fails-1")
    text = "rank 3 on algo-2 exited with code 7: ValueError: no such digit\n\nTraceback (most recent call last):\n  oh"
    platform.ends("fails-1", "Failed", FailureReason=f"AlgorithmError: {text}, exit code: 1")
    with pytest.raises(JobFailed) as raised:
        job.wait()
    verdict = raised.value.verdict
    assert (verdict.kind, verdict.rank, verdict.host, verdict.exit_code) == ("exit_code", 3, "algo-2", 7)
    assert verdict.message == "rank 3 on algo-2 exited with code 7: ValueError: no such digit"
    assert job.why().startswith(f"{text}\n") and job.model_data is None


def test_a_job_is_stopped_and_says_why_it_was(platform, estimator):
    job = estimator.fit(wait=False, job_name="stops-1")
    job.stop()
    assert job.status == "Stopping"
    platform.ends("stops-1", "Stopped", SecondaryStatus="MaxRuntimeExceeded")
    job.stop()  # nothing happens to a job that has ended
    assert (job.wait(), job.reason) == ("Stopped", "it ran for longer than max_run")


def test_waiting_ends_at_its_timeout(platform, estimator):
    job = estimator.fit(wait=False, job_name="slow-1")
    assert job.wait(timeout=0.1) == "InProgress"


def test_a_job_is_found_by_its_name_whatever_region_is_configured(platform, estimator, monkeypatch):
    estimator.fit(wait=False, job_name="attach-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert Job.attach("attach-1").status == "InProgress"
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert Job.attach("attach-1").status == "InProgress"


def test_a_job_of_somebody_else_is_found_in_the_configured_region(platform, estimator, monkeypatch, tmp_path):
    estimator.fit(wait=False, job_name="attach-2")
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "elsewhere"))
    assert Job.attach("attach-2").backend == "sagemaker"
    with pytest.raises(JobNotFound, match=r"no job 'attach-3' in .*; and SageMaker in eu-west-1 has no job 'attach-3'"):
        Job.attach("attach-3")


def test_without_credentials_nobody_is_asked_for_a_name_that_is_not_here(settings, monkeypatch, aws_proxy):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(JobNotFound) as raised:
        Job.attach("nowhere")
    assert "SageMaker" not in str(raised.value) and aws_proxy.requests == []


def test_jobs_are_listed_page_by_page_the_newest_first(platform, estimator):
    plan = estimator.plan(job_name="list-0")
    client = platform.client("sagemaker")
    for number in range(105):
        client.create_training_job(**{**plan.request, "TrainingJobName": f"list-{number}"})
    names = [job.name for job in list_jobs(backend="sagemaker", limit=103)]
    assert names == [f"list-{number}" for number in range(104, 1, -1)]
    assert len(list_jobs(backend="sagemaker")) == 100
    assert list_jobs() == [] and list_jobs(backend="docker") == []
    with pytest.raises(InvalidArgument, match="backend 'sagmaker' is not known; did you mean 'sagemaker'"):
        list_jobs(backend="sagmaker")


def test_the_model_is_downloaded_from_s3(platform, estimator, tmp_path):
    job = estimator.fit(wait=False, job_name="model-1")
    (tmp_path / "weights").write_bytes(b"12345")
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "weights", "weights")
    with pytest.raises(EstimatorError, match="has no model"):
        job.download(tmp_path / "model")
    s3 = platform.client("s3")
    s3.upload_file(str(tmp_path / "model.tar.gz"), BUCKET, "model-1/output/model.tar.gz")
    model = f"s3://{BUCKET}/model-1/output/model.tar.gz"
    platform.ends("model-1", ModelArtifacts={"S3ModelArtifacts": model})
    assert (job.download(tmp_path / "model") / "weights").read_bytes() == b"12345"


def test_a_model_that_was_not_compressed_is_downloaded_as_it_is(platform, estimator, tmp_path):
    job = estimator.fit(wait=False, job_name="model-2")
    s3 = platform.client("s3")
    for name in ("a", "deep/b"):
        s3.put_object(Bucket=BUCKET, Key=f"model-2/output/model/{name}", Body=name.encode())
    model = f"s3://{BUCKET}/model-2/output/model/"
    platform.ends("model-2", ModelArtifacts={"S3ModelArtifacts": model})
    folder = job.download(tmp_path / "model")
    assert {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()} == {
        "a": "a",
        "deep/b": "deep/b",
    }


def test_metrics_are_read_from_the_log_by_the_jobs_own_definitions(platform, script):
    definitions = [{"Name": "loss", "Regex": "loss: ([0-9.]+)"}]
    job = cloud(script, metric_definitions=definitions).fit(wait=False, job_name="metrics-1")
    platform.writes("metrics-1", "algo-1", "[1,0]<stdout>:loss: 0.5", "[1,1]<stdout>:loss: 0.25")
    assert [(each.name, each.value, each.rank) for each in job.metrics()] == [("loss", 0.5, 0), ("loss", 0.25, 1)]


def test_ctrl_c_stops_the_job_and_waits_for_its_end(platform, estimator, aws_proxy, capsys):
    def is_watched() -> bool:
        return any(each.operation == "SageMaker.DescribeTrainingJob" for each in aws_proxy.requests)

    def run() -> None:
        platform.waits_until(is_watched)
        os.kill(os.getpid(), signal.SIGINT)
        platform.waits_for("ctrl-c", "Stopping")
        platform.ends("ctrl-c", "Stopped")

    with in_background(run), pytest.raises(KeyboardInterrupt):
        estimator.fit(job_name="ctrl-c")
    assert "Stopped: stop() or StopTrainingJob was called" in capsys.readouterr().out


def test_ctrl_c_stops_a_job_whose_submission_has_not_been_answered(platform, estimator, aws_proxy):
    def choose(request):
        if request.operation != "SageMaker.CreateTrainingJob":
            return None
        return "stall" if submissions.pop() else "lose the answer"

    def run() -> None:
        assert aws_proxy.stalled.wait(SECONDS)
        os.kill(os.getpid(), signal.SIGINT)

    submissions = [True, False]
    aws_proxy.choose = choose
    with in_background(run), pytest.raises(KeyboardInterrupt):
        estimator.fit(job_name="early-ctrl-c")
    platform.waits_for("early-ctrl-c", "Stopping")
