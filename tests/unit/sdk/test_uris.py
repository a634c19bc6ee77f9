import pytest

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.uris import checked


@pytest.mark.parametrize("uri", ["s3://bucket", "s3://bucket/a b/%20", "file:///a/b", "file:///a/../b"])
def test_a_right_uri_stays_as_it_is(uri):
    assert checked("output_path", uri) == uri


def test_a_relative_file_uri_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert checked("output_path", "file://./out") == f"file://{tmp_path}/out"


@pytest.mark.parametrize(
    "wrong", ["", "out", "/out", "s3://", "s3:///key", "file://", "gs://bucket", "S3://b", None, 3]
)
def test_what_is_no_uri_is_refused_under_the_argument_s_name(wrong):
    with pytest.raises(InvalidArgument, match=r"^output_path ") as raised:
        checked("output_path", wrong)
    assert raised.value.argument == "output_path"
