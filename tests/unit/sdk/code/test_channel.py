import json

import pytest

from estimator_sdk import JobSpec
from estimator_sdk.code.channel import without


def spec(submitted: str | None, **channels: str) -> JobSpec:
    return JobSpec.from_request(
        {
            "TrainingJobName": "a",
            "HyperParameters": {} if submitted is None else {"sagemaker_submit_directory": json.dumps(submitted)},
            "InputDataConfig": [
                {
                    "ChannelName": name.replace("_", "-"),
                    "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}},
                }
                for name, uri in channels.items()
            ],
        }
    )


@pytest.mark.parametrize("submitted", ["s3://b/x.tar.gz", "/opt/ml/input/data/estimator-code/x.tar.gz", None])
def test_our_channels_are_left_out_and_the_code_is_named_where_it_is(submitted):
    given = spec(submitted, train="s3://b/a", estimator_code="s3://b/x.tar.gz", estimator_world="s3://b/w")
    assert without(given) == spec("s3://b/x.tar.gz", train="s3://b/a")


def test_code_that_another_sdk_brings_by_a_channel_is_named_where_it_is_and_its_channel_is_kept():
    given = spec("/opt/ml/input/data/code/sourcedir.tar.gz", code="s3://b/job/sourcedir.tar.gz")
    assert without(given) == spec("s3://b/job/sourcedir.tar.gz", code="s3://b/job/sourcedir.tar.gz")


@pytest.mark.parametrize("submitted", ["/opt/ml/code", "s3://b/y.tar.gz", "/opt/ml/input/data/code/other.tar.gz"])
def test_a_job_whose_channels_bring_no_code_is_left_as_it_is(submitted):
    given = spec(submitted, code="s3://b/job/sourcedir.tar.gz")
    assert without(given) == given
