import pytest
from estimator_container.storage import InvalidLocation, open_store
from estimator_container.storage.location import Location, check_key, parse, probe_name, unfinished_name


@pytest.mark.parametrize(
    ("uri", "location"),
    [
        ("s3://bucket", Location("s3", "bucket", "")),
        ("s3://bucket/", Location("s3", "bucket", "")),
        ("s3://bucket/a/b/", Location("s3", "bucket", "a/b")),
        ("file:///a/b/", Location("file", "", "/a/b")),
        ("file:///a b%20c", Location("file", "", "/a b%20c")),
        ("file:///", Location("file", "", "/")),
    ],
)
def test_a_uri_names_a_root(uri, location):
    assert parse(uri) == location


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        ("gs://bucket", "write 's3://bucket/prefix' or 'file:///folder'"),
        ("/folder", "write 's3://bucket/prefix' or 'file:///folder'"),
        ("", "write 's3://bucket/prefix' or 'file:///folder'"),
        ("s3://", "names no bucket: write 's3://bucket/prefix'"),
        ("s3:///key", "names no bucket: write 's3://bucket/prefix'"),
        ("file://./folder", "names no absolute folder: write 'file:///folder'"),
        ("s3://bucket/a/../b", "has '.' or '..' as a name"),
        ("s3://bucket/a//b", "has two in a row"),
        ("s3://bucket/a//", "ends with a slash"),
        ("s3://bucket//a", "starts or ends with a slash"),
        ("file:///a\0b", "NUL byte"),
    ],
)
def test_a_uri_that_names_no_store_is_refused_with_what_to_write(uri, hint):
    with pytest.raises(InvalidLocation, match=hint):
        open_store(uri)


def test_a_key_may_have_any_letter_but_control_characters():
    for key in ("a", "a b/ü+%20", "...", "..a", "a" * 1024, ".estimator-notes", "a/.estimator-1.part"):
        assert check_key(key) == key
    for key in ("a\tb", "a\x7f", "a" * 1025, "\udc80", f"a/{unfinished_name()}", probe_name()):
        with pytest.raises(InvalidLocation):
            check_key(key)
