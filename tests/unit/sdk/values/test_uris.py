import pytest

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.values.uris import checked


@pytest.mark.parametrize("uri", ["s3://bucket", "s3://bucket/a b/%20", "file:///a/b", "file:///a/../b"])
def test_a_right_uri_stays_as_it_is(uri):
    assert checked("output_path", uri) == uri


def test_a_relative_file_uri_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert checked("output_path", "file://./out") == f"file://{tmp_path}/out"


@pytest.mark.parametrize(
    ("uri", "absolute"),
    [("file://../out", "{}/../out"), ("file://.", "{}"), ("file://./a/b", "{}/a/b"), ("file://Localhost/a/b", "/a/b")],
)
def test_what_names_this_machine_s_files_is_written_without_a_host(uri, absolute, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert checked("output_path", uri) == f"file://{absolute.format(tmp_path)}"


@pytest.mark.parametrize("rest", ["host/x", "data", "127.0.0.1/x", "localhost:80/x", "~/x", "C:/x", ".hidden/x"])
def test_a_host_in_a_file_uri_is_no_folder(rest):
    with pytest.raises(InvalidArgument, match="names a host") as raised:
        checked("output_path", f"file://{rest}")
    assert f"write 'file:///{rest}', or 'file://./{rest}' for" in str(raised.value)


@pytest.mark.parametrize(
    "wrong", ["", "out", "/out", "s3://", "s3:///key", "file://", "file://localhost", "gs://bucket", "S3://b", None, 3]
)
def test_what_is_no_uri_is_refused_under_the_argument_s_name(wrong):
    with pytest.raises(InvalidArgument, match=r"^output_path ") as raised:
        checked("output_path", wrong)
    assert raised.value.argument == "output_path"
