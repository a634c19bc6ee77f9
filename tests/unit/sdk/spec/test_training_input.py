import pytest

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.spec.job_document import ShuffleConfig
from estimator_sdk.spec.training_input import TrainingInput, channels


def test_no_inputs_are_no_channels():
    assert channels(None) is None
    assert channels({}) is None


def test_a_lone_input_is_the_channel_training():
    (channel,) = channels("s3://bucket/data")
    assert channel.to_document() == {
        "ChannelName": "training",
        "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/data"}},
    }
    assert channels(TrainingInput("s3://bucket/data")) == (channel,)


def test_a_dict_names_its_channels_in_order():
    given = {"train": "s3://bucket/a", "test": TrainingInput("file:///b", input_mode="Pipe")}
    assert [channel.channel_name for channel in channels(given)] == ["train", "test"]
    assert [channel.input_mode for channel in channels(given)] == [None, "Pipe"]


def test_every_argument_is_in_the_channel():
    given = TrainingInput(
        s3_data="s3://bucket/manifest",
        distribution="ShardedByS3Key",
        compression="Gzip",
        content_type="text/csv",
        record_wrapping="RecordIO",
        s3_data_type="AugmentedManifestFile",
        instance_groups=["a"],
        input_mode="Pipe",
        attribute_names=["x", "y"],
        shuffle_config=ShuffleConfig(seed=7),
    )
    assert given.channel("train").to_document() == {
        "ChannelName": "train",
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "AugmentedManifestFile",
                "S3Uri": "s3://bucket/manifest",
                "S3DataDistributionType": "ShardedByS3Key",
                "AttributeNames": ["x", "y"],
                "InstanceGroupNames": ["a"],
            }
        },
        "ContentType": "text/csv",
        "CompressionType": "Gzip",
        "RecordWrapperType": "RecordIO",
        "InputMode": "Pipe",
        "ShuffleConfig": {"Seed": 7},
    }


def test_a_relative_file_uri_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert TrainingInput("file://./data").s3_data == f"file://{tmp_path}/data"


def test_an_absolute_file_uri_stays_as_it_is():
    assert TrainingInput("file:///a b/%20/c").s3_data == "file:///a b/%20/c"


def test_a_plain_path_is_refused_with_the_uri_to_write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument) as raised:
        channels({"train": "data/digits"})
    assert raised.value.argument == "inputs['train']"
    assert f"'file://{tmp_path}/data/digits'" in str(raised.value)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("https://host/x", "https:// is not supported"),
        ("s3://", "names no bucket"),
        ("file://", "names no folder"),
        ("file://host/x", "write 'file:///host/x'"),
    ],
)
def test_another_uri_is_refused(uri, words):
    with pytest.raises(InvalidArgument, match=words):
        TrainingInput(uri)


@pytest.mark.parametrize("name", ["a b", "", "a/b", "x" * 65, 3, None, "é", ".", "..", "train\n"])
def test_a_name_that_no_channel_can_have_is_refused(name):
    with pytest.raises(InvalidArgument, match="is not a valid channel name"):
        channels({name: "s3://bucket/a"})


@pytest.mark.parametrize("name", ["train", "a.b-c_D", "1", "x" * 64])
def test_a_name_that_the_service_takes_is_taken(name):
    assert channels({name: "s3://bucket/a"})[0].channel_name == name


@pytest.mark.parametrize("given", [3, ["s3://bucket/a"], {"train": ["s3://bucket/a"]}, {"train": None}])
def test_an_input_of_another_type_is_refused(given):
    with pytest.raises(InvalidArgument, match="must be a URI"):
        channels(given)


@pytest.mark.parametrize(
    ("arguments", "argument", "words"),
    [
        ({"distribution": "Sharded"}, "distribution", "did you mean 'ShardedByS3Key'"),
        ({"input_mode": "pipe"}, "input_mode", "did you mean 'Pipe'"),
        ({"content_type": 3}, "content_type", "must be a str"),
        ({"attribute_names": "x"}, "attribute_names", "must be a list"),
        ({"shuffle_config": 3}, "shuffle_config", "ShuffleConfig"),
        ({"target_attribute_name": "y"}, "target_attribute_name", "AutoML"),
        ({"input_mod": "Pipe"}, "input_mod", "did you mean 'input_mode'"),
    ],
)
def test_a_wrong_argument_is_refused_and_named(arguments, argument, words):
    with pytest.raises(InvalidArgument, match=words) as raised:
        TrainingInput("s3://bucket/a", **arguments)
    assert raised.value.argument == argument
