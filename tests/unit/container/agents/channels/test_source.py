from __future__ import annotations

import json

import pytest
from estimator_container.agents.channels.channel import ChannelError, ChannelTask
from estimator_container.agents.channels.source import open_source
from estimator_container.storage import InvalidLocation


def channel(uri, **more):
    return ChannelTask("train", uri, "", **more)


def paths(uri, **more):
    return [item.path for item in open_source(channel(uri, **more)).items]


@pytest.fixture
def root(tmp_path):
    for name in ("train/a", "train/deep/b", "train-2/c", "train.csv", "train.csv.old"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("train", ["a", "deep/b"]),
        ("train/", ["a", "deep/b"]),
        ("train.csv", ["train.csv"]),
        ("train.", ["train.csv", "train.csv.old"]),
        ("tr", ["train-2/c", "train.csv", "train.csv.old", "train/a", "train/deep/b"]),
        ("", ["train-2/c", "train.csv", "train.csv.old", "train/a", "train/deep/b"]),
    ],
)
def test_a_uri_is_a_folder_or_an_object_or_the_beginning_of_keys(root, uri, found):
    assert paths(f"file://{root}/{uri}") == found


@pytest.mark.parametrize("uri", ["other", "train.csv/", "train/a/"])
def test_a_uri_of_nothing_is_named(root, uri):
    with pytest.raises(ChannelError, match=f"no object's key starts with file://{root}/{uri}: check"):
        open_source(channel(f"file://{root}/{uri}"))


def test_a_manifest_puts_its_prefix_before_each_name_letter_by_letter(root):
    (root / "manifest").write_text(json.dumps([{"prefix": f"file://{root}/train"}, "/a", ".csv"]))
    (root / "whole").write_text(json.dumps([{"prefix": f"file://{root}/train"}, ".csv"]))
    with pytest.raises(InvalidLocation, match="starts or ends with a slash"):
        open_source(channel(f"file://{root}/manifest", is_manifest=True))
    (item,) = open_source(channel(f"file://{root}/whole", is_manifest=True)).items
    assert (item.key, item.path) == ("train.csv", ".csv")


def test_a_manifest_cannot_reach_out_of_its_prefix(root):
    (root / "manifest").write_text(json.dumps([{"prefix": f"file://{root}/train/"}, "../../etc/passwd"]))
    with pytest.raises(InvalidLocation, match=r"has '.' or '..' as a name"):
        open_source(channel(f"file://{root}/manifest", is_manifest=True))


def test_the_objects_of_a_manifest_have_their_sizes(root):
    (root / "manifest").write_text(json.dumps([{"prefix": f"file://{root}/train/"}, "deep/b", "a"]))
    source = open_source(channel(f"file://{root}/manifest", is_manifest=True))
    assert [(each.key, each.size) for each in source.objects()] == [("deep/b", 12), ("a", 7)]
