from __future__ import annotations

import pytest

from estimator_sdk import JobSpec
from estimator_sdk.errors import InvalidArgument
from estimator_sdk.plan.local_channels import plans
from estimator_sdk.spec.job_document import AlgorithmSpecification, Channel, DataSource, S3DataSource, ShuffleConfig
from estimator_sdk.spec.training_input import TrainingInput, channels


def planned(inputs, mode="File"):
    algorithm = AlgorithmSpecification(training_input_mode=mode)
    return plans(JobSpec(training_job_name="a", algorithm_specification=algorithm, input_data_config=channels(inputs)))


def test_what_the_script_is_told_of_a_channel():
    given = TrainingInput("s3://bucket/a", distribution="ShardedByS3Key", content_type="text/csv", input_mode="Pipe")
    (plan,) = planned({"train": given})
    assert plan.config == {
        "TrainingInputMode": "Pipe",
        "S3DistributionType": "ShardedByS3Key",
        "RecordWrapperType": "None",
        "ContentType": "text/csv",
    }
    assert (plan.is_piped, plan.is_sharded, plan.is_in_place) == (True, True, False)


def test_the_mode_of_the_job_is_that_of_its_channels():
    assert planned("s3://bucket/a", "Pipe")[0].is_piped


@pytest.mark.parametrize(
    ("arguments", "in_place"),
    [
        ({}, True),
        ({"input_mode": "Pipe"}, False),
        ({"s3_data_type": "ManifestFile"}, False),
        ({"distribution": "ShardedByS3Key"}, False),
        ({"compression": "Gzip"}, True),
    ],
)
def test_a_whole_folder_of_this_machine_is_in_its_place(tmp_path, arguments, in_place):
    assert planned(TrainingInput(f"file://{tmp_path}", **arguments))[0].is_in_place is in_place
    assert planned(TrainingInput("s3://bucket/a", **arguments))[0].is_in_place is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"input_mode": "FastFile"}, "use 'File' or 'Pipe'"),
        ({"s3_data_type": "Converse"}, "'Converse'"),
        ({"s3_data_type": "AugmentedManifestFile", "attribute_names": ["a"]}, "'AugmentedManifestFile'"),
        ({"attribute_names": ["a"]}, "attribute_names"),
        ({"instance_groups": ["a"]}, "instance_groups"),
        ({"record_wrapping": "RecordIO"}, "only works with a pipe"),
        ({"shuffle_config": ShuffleConfig(seed=1)}, "has no order"),
    ],
)
def test_what_is_not_to_be_had_is_refused_by_name(arguments, words):
    with pytest.raises(InvalidArgument, match=r"^inputs\['train'\] asks for") as raised:
        planned({"train": TrainingInput("s3://bucket/a", **arguments)})
    assert raised.value.argument == "inputs['train']" and words in str(raised.value)


def test_a_channel_cannot_have_the_name_of_another_ones_fifo():
    said = r"inputs\['train_1'\] has the same name as a FIFO of the piped channel 'train'"
    with pytest.raises(InvalidArgument, match=said):
        planned({"train": TrainingInput("s3://b/a", input_mode="Pipe"), "train_1": "s3://b/b"})
    assert len(planned({"train": "s3://b/a", "train_1": "s3://b/b"})) == 2


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("s3://bucket/a//b", "has two in a row"),
        ("s3://bucket//a", "starts or ends with a slash"),
        ("s3://bucket/a/../b", "'.' or '..'"),
        ("s3://bucket/a\nb", "control character"),
        ("file:///a\0b", "NUL byte"),
        ("file:///" + "a" * 300, "file name too long"),
        ("file:///dev/null", "neither a file nor a folder"),
        ("gs://bucket", "'s3://bucket/prefix' or 'file:///folder'"),
    ],
)
def test_a_place_that_no_channel_can_be_read_from_is_refused(uri, words):
    source = DataSource(s3_data_source=S3DataSource(s3_data_type="S3Prefix", s3_uri=uri))
    spec = JobSpec(training_job_name="a", input_data_config=(Channel(channel_name="train", data_source=source),))
    with pytest.raises(InvalidArgument, match=r"inputs\['train'\]") as raised:
        plans(spec)
    assert words in str(raised.value)
