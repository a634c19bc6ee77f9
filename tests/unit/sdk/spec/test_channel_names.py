import pytest

from estimator_sdk import InvalidArgument, JobSpec
from estimator_sdk.backends import BUILT_IN

SOURCE = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/a"}}


def planned(*names, backend="process", job="job"):
    channels = [{"ChannelName": name, "DataSource": SOURCE} for name in names]
    return JobSpec.from_request({"TrainingJobName": job, "InputDataConfig": channels}).plan(backend=backend)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path))


# Called `backend`, the parameter would have its engine started.
@pytest.mark.parametrize("where", BUILT_IN)
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["."], "no folder can have it"),
        ([".."], "no folder can have it"),
        (["a/b"], "is not a valid channel name"),
        (["x" * 65], "is not a valid channel name"),
        (["train", "Train"], "would both be SM_CHANNEL_TRAIN"),
        (["train", "test", "train"], "names two channels"),
    ],
)
def test_names_that_no_job_can_have_are_refused_for_every_backend(where, names, words):
    with pytest.raises(InvalidArgument, match=r"inputs\[") as raised:
        planned(*names, backend=where)
    assert words in str(raised.value)


@pytest.mark.parametrize("where", BUILT_IN)
def test_the_name_of_a_job_is_checked_for_every_backend(where):
    with pytest.raises(InvalidArgument, match=r"TrainingJobName '\.\./x' is not allowed"):
        planned("train", backend=where, job="../x")


def test_a_document_that_was_exported_has_our_channels_and_is_planned_without_them():
    assert [channel.name for channel in planned("train", "estimator-world").channels] == ["train"]
