from __future__ import annotations

import json

import pytest
from estimator_container.agents.channels.channel import ChannelError
from estimator_container.agents.channels.manifest import parse


def test_a_manifest_is_a_prefix_and_names():
    text = json.dumps([{"prefix": "s3://bucket/a/"}, "b", "c/d"]).encode()
    assert parse(text, "s3://bucket/m") == ("s3://bucket/a/", ["b", "c/d"])


def test_a_manifest_of_this_machine_may_name_its_files():
    text = b'[{"prefix": "file:///data/"}, "a"]'
    assert parse(text, "file:///m") == ("file:///data/", ["a"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a,b", "is not valid JSON"),
        (b"\xff", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b'[{"prefix": "file:///etc/"}, "hostname"]', "has the prefix 'file:///etc/', which is on this machine"),
        (b"{}", "does not begin with a prefix"),
        (b"[]", "does not begin with a prefix"),
        (b'["a"]', "does not begin with a prefix"),
        (b'[{"prefix": "gs://bucket/"}, "a"]', "has the prefix 'gs://bucket/'"),
        (b'[{"prefix": "s3://bucket"}, "a"]', "has the prefix 's3://bucket'"),
        (b'[{"Prefix": "s3://bucket/"}, "a"]', "has the prefix None"),
        (b'[{"prefix": "s3://bucket/"}]', "lists no objects"),
        (b'[{"prefix": "s3://bucket/"}, "a", 3]', "entry 3 of"),
        (b'[{"prefix": "s3://bucket/"}, ""]', "entry 2 of"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said_with_how_it_should_be(text, words):
    with pytest.raises(ChannelError) as raised:
        parse(text, "s3://bucket/m")
    assert words in str(raised.value)
    assert "s3://bucket/m" in str(raised.value) and '[{"prefix": "s3://bucket/folder/"}' in str(raised.value)
