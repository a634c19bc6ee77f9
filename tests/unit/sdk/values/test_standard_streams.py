"""What is written to a stream arrives in order, or leaves nothing behind."""

from __future__ import annotations

import io
import os
import threading

import pytest

from estimator_sdk.values.standard_streams import Tolerant, can_redraw, put
from tests.waiting import SECONDS

TEXT = "a \N{CHECK MARK} \udcff\n"


@pytest.mark.parametrize("buffering", [-1, 1])
@pytest.mark.parametrize(
    ("encoding", "errors", "expected"),
    [
        ("utf-8", None, b"a \xe2\x9c\x93 \\udcff\n"),
        ("utf-8", "surrogateescape", b"a \xe2\x9c\x93 \xff\n"),
        ("latin-1", None, b"a \\u2713 \\udcff\n"),
        ("ascii", "replace", b"a ? ?\n"),
        ("ascii", "surrogateescape", b"a \\u2713 \\udcff\n"),
        ("utf-16-le", None, "a \N{CHECK MARK} \\udcff\n".encode("utf-16-le")),
        ("utf-16", None, "a \N{CHECK MARK} \\udcff\n".encode("utf-16")),
    ],
)
def test_what_an_encoding_does_not_have_is_escaped(tmp_path, encoding, errors, expected, buffering):
    with (tmp_path / "out").open("w", buffering=buffering, encoding=encoding, errors=errors) as stream:
        put(stream, TEXT)
        assert (tmp_path / "out").read_bytes() == expected


def test_it_comes_between_what_others_print(tmp_path):
    with (tmp_path / "out").open("w") as stream:
        for number in range(3):
            print(number, file=stream)
            put(stream, f"put {number}\n")
            put(stream, b"\xff\n")
        assert stream.tell() == (tmp_path / "out").stat().st_size
    assert (tmp_path / "out").read_bytes() == b"".join(b"%d\nput %d\n\xff\n" % (n, n) for n in range(3))


def test_what_stands_in_for_a_file_gets_text():
    stream = io.StringIO()
    put(stream, TEXT)
    put(stream, b"\xff\n")
    assert stream.getvalue() == TEXT + "\\xff\n"


@pytest.mark.parametrize("unbuffered", [False, True])
def test_what_is_refused_is_forgotten(unbuffered):
    with open("/dev/full", "wb", buffering=0 if unbuffered else -1) as below:  # noqa: PTH123
        stream = io.TextIOWrapper(below, "utf-8", write_through=unbuffered)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                put(stream, TEXT)
            Tolerant(stream).write(TEXT)
            stream.flush()
        stream.detach()


def test_a_stream_that_is_closed_or_none_is_no_error_to_who_is_tolerant(tmp_path):
    stream = (tmp_path / "out").open("w")
    stream.close()
    with pytest.raises(OSError, match="closed file"):
        put(stream, "a")
    for each in (stream, None):
        assert Tolerant(each).write("a") == 1
        assert not Tolerant(each).isatty() and not can_redraw(Tolerant(each))
    assert not can_redraw(stream)


def test_a_pipe_that_does_not_block_gets_all_of_it():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    data = b"x" * (1 << 20)
    with open(writing, "w") as stream, open(reading, "rb") as end:  # noqa: PTH123
        found: list[bytes] = []
        thread = threading.Thread(target=lambda: found.append(end.read(len(data))))
        thread.start()
        put(stream, data)
        thread.join(SECONDS)
    assert found == [data]
