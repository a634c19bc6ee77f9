from __future__ import annotations

import gzip
import io
import struct

import pytest
from estimator_container.agents.channels import stream as streams
from estimator_container.agents.channels.channel import ChannelError, ChannelTask
from estimator_container.agents.channels.stream import stream, unpacked, wrapped
from estimator_container.storage import SourceChanged, open_store
from hypothesis import given
from hypothesis import strategies as st

PLAIN = ChannelTask("train", "file:///", "")


def in_pieces(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 40), st.integers(1, 50), st.booleans())
def test_members_and_padding_are_unpacked_whatever_the_pieces(members, size, bound, padding):
    data = (b"\0" * 7 * padding).join(map(gzip.compress, members)) + b"\0" * 9 * padding
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "PIECE", bound)
        found = list(unpacked(in_pieces(data, size), "a.gz"))
    assert b"".join(found) == b"".join(members)
    assert all(len(piece) <= max(bound, 300) for piece in found)


def test_what_unpacks_to_much_comes_in_bounded_pieces():
    found = list(unpacked([gzip.compress(bytes(20 << 20))], "a.gz"))
    assert sum(map(len, found)) == 20 << 20
    assert max(map(len, found)) <= streams.PIECE


WHOLE = gzip.compress(b"x" * 1000, mtime=0)


@pytest.mark.parametrize("data", [b"plain", WHOLE[:-9], WHOLE + b"more"], ids=["plain", "cut", "with more"])
def test_what_is_no_whole_gzip_file_is_named(data):
    with pytest.raises(ChannelError, match=r"^s3://b/a.gz is not a complete gzip file"):
        list(unpacked([data], "s3://b/a.gz"))


@given(st.binary(max_size=50), st.integers(1, 9))
def test_a_record_has_its_length_and_is_padded(data, size):
    found = io.BytesIO(b"".join(wrapped(in_pieces(data, size), "a")))
    magic, length = struct.unpack("<II", found.read(8))
    assert (hex(magic), found.read(length)) == ("0xced7230a", data)
    assert found.read() == bytes(-len(data) % 4)


def test_an_object_too_large_for_a_record_is_named(monkeypatch):
    monkeypatch.setattr(streams, "_LARGEST_RECORD", 5)
    with pytest.raises(ChannelError, match="s3://b/a has more than 5 bytes"):
        list(wrapped([b"abc", b"def"], "s3://b/a"))


def test_objects_of_all_sizes_are_streamed_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "PIECE", 10)
    store = open_store(f"file://{tmp_path}")
    files = {f"{number:03d}": bytes([number]) * (number % 35) for number in range(120)}
    for key, data in files.items():
        (tmp_path / key).write_bytes(data)
    assert b"".join(stream(store, store.list(), PLAIN)) == b"".join(files.values())


def test_an_object_that_is_overwritten_under_the_stream_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "PIECE", 10)
    store = open_store(f"file://{tmp_path}")
    (tmp_path / "a").write_bytes(bytes(15))
    listed = list(store.list())
    (tmp_path / "a").write_bytes(b"b" * 15)
    with pytest.raises(SourceChanged, match=f"file://{tmp_path}/a was overwritten"):
        list(stream(store, listed, PLAIN))


def test_no_more_is_read_ahead_than_the_bound(tmp_path):
    store = open_store(f"file://{tmp_path}")
    asked = []

    class Listing:
        def __iter__(self):
            for number in range(100):
                asked.append(number)
                (tmp_path / f"{number:02d}").write_bytes(b"x")
                found = store.head(f"{number:02d}")
                assert found is not None
                yield found

    found = stream(store, Listing(), PLAIN)
    next(found)
    assert len(asked) == streams.AHEAD + 1


def test_what_is_too_large_for_a_record_is_not_all_held_before_that_is_said(monkeypatch):
    monkeypatch.setattr(streams, "_LARGEST_RECORD", 10)
    taken = []
    pieces = (taken.append(1) or b"abcd" for _ in range(1000))
    with pytest.raises(ChannelError, match="s3://b/a has more than 10 bytes"):
        list(wrapped(pieces, "s3://b/a"))
    assert len(taken) == 3
