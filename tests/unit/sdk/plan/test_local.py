import pytest

from estimator_sdk import InvalidArgument, JobSpec
from estimator_sdk.plan import local as local_plan
from estimator_sdk.plan.plan import HostPlan


def host(name, index, count):
    return HostPlan(name, "", "base", (), {})


@pytest.mark.parametrize("value", ["0", "true", "1.5", "many"])
def test_a_document_with_a_wrong_number_of_snapshots_is_refused(value):
    document = {"TrainingJobName": "job", "HyperParameters": {"sagemaker_estimator_checkpoint_keep": value}}
    with pytest.raises(
        InvalidArgument, match="sagemaker_estimator_checkpoint_keep must be a whole number of at least 1"
    ):
        local_plan.base(JobSpec.from_request(document), "process", host)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sagemaker_estimator_stop_timeout", "soon"),
        ("sagemaker_estimator_stop_timeout", "1e999"),
        ("sagemaker_estimator_stop_timeout", "-1"),
        ("sagemaker_estimator_cpus", "[2]"),
        ("sagemaker_estimator_memory", "true"),
    ],
)
def test_a_document_with_a_wrong_limit_is_refused(name, value):
    document = {"TrainingJobName": "job", "HyperParameters": {name: value}}
    with pytest.raises(InvalidArgument, match=f"{name} must be a number|stop_timeout must be from 0 to 86400"):
        local_plan.base(JobSpec.from_request(document), "process", host)


@pytest.mark.parametrize("value", ["5", "true", "[]", '["a"]', '{"a": 1}', '"\\ud800"', '"a\\u0000"'])
@pytest.mark.parametrize("name", ["sagemaker_program", "sagemaker_submit_directory"])
def test_a_document_whose_code_has_no_name_is_refused(name, value):
    document = {"TrainingJobName": "job", "HyperParameters": {name: value}}
    with pytest.raises(InvalidArgument, match=rf"hyperparameters\['{name}'\] (must be the name of a file|holds a NUL)"):
        local_plan.base(JobSpec.from_request(document), "process", host)


@pytest.mark.parametrize("name", ["sagemaker_job_name", "sagemaker_region", "sagemaker_distribution_instance_groups"])
def test_a_document_with_what_no_variable_can_hold_is_refused(name):
    document = {"TrainingJobName": "job", "HyperParameters": {name: '"a\\u0000"'}}
    with pytest.raises(InvalidArgument, match="which neither a variable nor an argument can hold"):
        local_plan.base(JobSpec.from_request(document), "process", host)


def test_a_document_with_a_distribution_of_another_toolkit_is_refused():
    given = {"sagemaker_distributed_dataparallel_enabled": "true"}
    with pytest.raises(InvalidArgument, match="asks for a distribution that this toolkit does not have") as raised:
        JobSpec.from_request({"TrainingJobName": "job", "HyperParameters": given}).plan("process")
    assert raised.value.argument == "distribution"


@pytest.mark.parametrize("kind", ["a folder", "no archive", "nothing"])
def test_a_document_whose_code_is_no_archive_is_refused(tmp_path, kind):
    code = tmp_path / "code"
    if kind == "a folder":
        code.mkdir()
    elif kind == "no archive":
        code.write_text("print()")
    given = {"sagemaker_program": "train.py", "sagemaker_submit_directory": str(code)}
    with pytest.raises(InvalidArgument, match=f"{code}, which cannot be read as an archive of code: ") as raised:
        JobSpec.from_request({"TrainingJobName": "job", "HyperParameters": given}).plan("process")
    assert raised.value.argument == "sagemaker_submit_directory"


@pytest.mark.parametrize("uri", ["s3://bucket/a//b", "s3://bucket/../b", "file:///a\0b", "gs://bucket"])
@pytest.mark.parametrize(
    ("member", "argument"),
    [
        (lambda uri: {"CheckpointConfig": {"S3Uri": uri}}, "checkpoint_s3_uri"),
        (lambda uri: {"OutputDataConfig": {"S3OutputPath": uri}}, "output_path"),
    ],
)
def test_a_place_that_no_store_can_be_at_is_refused(uri, member, argument):
    with pytest.raises(InvalidArgument) as raised:
        local_plan.base(JobSpec.from_request({"TrainingJobName": "job", **member(uri)}), "process", host)
    assert raised.value.argument == argument


@pytest.mark.parametrize(("place", "most"), [("s3://bucket/", 1024), ("file:///", 4094)])
@pytest.mark.parametrize(
    ("hosts", "below"), [(1, "/job/output/output.tar.gz"), (11, "/job/output/hosts/algo-11/output.tar.gz")]
)
def test_a_place_without_room_for_the_names_of_outputs_is_refused_and_the_next_shorter_one_is_not(
    place, most, hosts, below
):
    def planned(size):
        path = place + "/".join(["d" * 200] * 30)[: size - 1].rstrip("/").ljust(size, "d")
        resources = {"InstanceType": "local", "InstanceCount": hosts}
        document = {"TrainingJobName": "job", "OutputDataConfig": {"S3OutputPath": path}, "ResourceConfig": resources}
        return local_plan.base(JobSpec.from_request(document), "process", host).output_path == path

    assert planned(most - len(below))
    with pytest.raises(InvalidArgument, match="output_path is too long: .* 1 bytes shorter"):
        planned(most - len(below) + 1)


def test_a_document_with_more_hosts_than_a_variable_can_name_is_refused():
    document = {"TrainingJobName": "job", "ResourceConfig": {"InstanceType": "local", "InstanceCount": 10**9}}
    with pytest.raises(InvalidArgument, match="instance_count must be from 1 to 5000, not 1000000000"):
        local_plan.base(JobSpec.from_request(document), "process", host)
