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


def test_a_document_with_more_hosts_than_a_variable_can_name_is_refused():
    document = {"TrainingJobName": "job", "ResourceConfig": {"InstanceType": "local", "InstanceCount": 10**9}}
    with pytest.raises(InvalidArgument, match="instance_count must be from 1 to 5000, not 1000000000"):
        local_plan.base(JobSpec.from_request(document), "process", host)
