import pytest
from estimator_container.contract import CHECKPOINT_KEEP_HYPERPARAMETER

from estimator_sdk import InvalidArgument, local_plan
from estimator_sdk.plan import HostPlan
from estimator_sdk.spec import JobSpec


def host(name, index, count):
    return HostPlan(name, "", "base", (), {})


@pytest.mark.parametrize("value", ["0", "true", "1.5", "many"])
def test_a_document_with_a_wrong_number_of_snapshots_is_refused(value):
    document = {"TrainingJobName": "job", "HyperParameters": {CHECKPOINT_KEEP_HYPERPARAMETER: value}}
    with pytest.raises(InvalidArgument, match=f"{CHECKPOINT_KEEP_HYPERPARAMETER} must be a whole number from 1"):
        local_plan.base(JobSpec.from_request(document), "process", host)


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
    with pytest.raises(InvalidArgument, match="output_path is so long .* 1 bytes shorter"):
        planned(most - len(below) + 1)


def test_a_document_with_more_hosts_than_a_variable_can_name_is_refused():
    document = {"TrainingJobName": "job", "ResourceConfig": {"InstanceType": "local", "InstanceCount": 10**9}}
    with pytest.raises(InvalidArgument, match="instance_count must be from 1 to 5000, not 1000000000"):
        local_plan.base(JobSpec.from_request(document), "process", host)
