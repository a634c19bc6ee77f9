import os
import random
import subprocess
import sys
import time

import pytest
from estimator_container.logs.frames import (
    EVENT,
    HEADER_SIZE,
    MAGIC,
    MAX_PAYLOAD,
    NO_RANK,
    STDERR,
    STDOUT,
    TOOLKIT,
    FrameParser,
    FrameWriter,
    number_of,
    world_and_rank,
)
from hypothesis import example, given
from hypothesis import strategies as st

# Payloads that themselves hold (parts of) magic numbers are the interesting ones.
PAYLOADS = st.lists(st.sampled_from([b"a", b"\n", b"\0", b"\xff", MAGIC, MAGIC[:3], b"line\n"]), min_size=1).map(
    b"".join
)
CALM_PAYLOADS = st.binary(min_size=1, max_size=60).map(lambda data: data.replace(MAGIC[:1], b"."))
STREAMS = st.sampled_from([STDOUT, STDERR, EVENT, TOOLKIT])
RANKS = st.sampled_from([NO_RANK, 0, 1, 1023, number_of(2, 0), number_of(65535, 65535)])


def frame(rank=0, stream=STDOUT, data=b"data\n"):
    """The bytes that a writer appends for one frame, without touching a disk."""
    fd = os.memfd_create("frames")
    writer = FrameWriter(f"/proc/self/fd/{fd}")
    writer.write(rank, stream, data)
    writer.close()
    with os.fdopen(fd, "rb") as file:
        return file.read()


def parse(content, size=1 << 20):
    parser = FrameParser()
    frames = []
    for at in range(0, len(content), size):
        frames += parser.feed(content[at : at + size])
    return frames + parser.finish()


def facts(frames):
    return [(frame.rank, frame.stream, frame.data) for frame in frames]


@given(st.lists(st.tuples(RANKS, STREAMS, PAYLOADS), max_size=6), st.integers(1, 100))
def test_frames_come_back_from_pieces_of_any_size(written, size):
    content = b"".join(frame(*each) for each in written)
    assert facts(parse(content, size)) == written


def test_a_frame_is_given_as_soon_as_its_last_byte_is_there():
    content = frame(3, STDERR, b"here")
    parser = FrameParser()
    for at in range(len(content) - 1):
        assert parser.feed(content[at : at + 1]) == []
    assert facts(parser.feed(content[-1:])) == [(3, STDERR, b"here")]


def test_a_frame_carries_the_time_of_its_writing_and_28_bytes_of_header():
    before = time.time_ns()
    content = frame(data=b"x")
    (one,) = parse(content)
    assert before <= one.time_ns <= time.time_ns()
    assert (len(content), HEADER_SIZE) == (29, 28)


@pytest.mark.parametrize("length", [1, MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 3 * MAX_PAYLOAD])
def test_a_long_write_is_split_and_loses_nothing(tmp_path, length):
    data = random.Random(length).randbytes(length)
    writer = FrameWriter(str(tmp_path / "frames"))
    writer.write(1, STDOUT, data)
    writer.close()
    frames = parse((tmp_path / "frames").read_bytes(), 1 << 16)
    assert b"".join(frame.data for frame in frames) == data
    assert len(frames) == -(-length // MAX_PAYLOAD)


def test_an_empty_write_leaves_no_frame():
    assert frame(data=b"") == b""


def test_a_later_writer_appends(tmp_path):
    for data in (b"one", b"two"):
        writer = FrameWriter(str(tmp_path / "frames"))
        writer.write(0, STDOUT, data)
        writer.close()
    assert [each.data for each in parse((tmp_path / "frames").read_bytes())] == [b"one", b"two"]


WRITER = """
import random, sys
from estimator_container.logs.frames import STDOUT, FrameWriter
rank, writer = int(sys.argv[1]), FrameWriter(sys.argv[2])
dice = random.Random(rank)
for number in range(400):
    writer.write(rank, STDOUT, b"%d:%d:" % (rank, number) + bytes([65 + rank]) * dice.choice([1, 80, 4096, 70000]))
"""


def test_the_frames_of_several_processes_on_one_file_never_mix(tmp_path):
    path = tmp_path / "frames"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(rank), str(path)]) for rank in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    parser = FrameParser()
    numbers = {rank: [] for rank in range(4)}
    for each in parser.feed(path.read_bytes()):
        rank, number, filler = each.data.split(b":")
        assert int(rank) == each.rank
        assert set(filler) == {65 + each.rank}
        numbers[each.rank].append(int(number))
    assert numbers == {rank: list(range(400)) for rank in range(4)}
    assert parser.finish() == []


# Frames that were cut short.


@given(CALM_PAYLOADS, st.integers(0, 100), st.lists(CALM_PAYLOADS, min_size=1, max_size=4), st.integers(1, 60))
@example(payload=b"x" * 40, kept=38, later=[b"y"], size=1)
@example(payload=b"x" * 40, kept=39, later=[b"y"], size=1)
def test_of_a_torn_frame_the_bytes_that_are_there_and_every_later_frame_are_kept(payload, kept, later, size):
    torn = frame(1, STDERR, payload)[: -1 - kept % len(payload)]
    salvaged = torn[HEADER_SIZE:]
    content = torn + b"".join(frame(2, STDOUT, data) for data in later)
    expected = [(1, STDERR, salvaged)] if salvaged else []
    assert facts(parse(content, size)) == expected + [(2, STDOUT, data) for data in later]


@given(st.integers(0, HEADER_SIZE - 1), CALM_PAYLOADS, st.integers(1, 60))
def test_a_frame_that_was_cut_inside_its_header_costs_no_other_one(kept, payload, size):
    content = frame()[:kept] + frame(2, STDOUT, payload) + frame(3, STDERR, payload)
    assert facts(parse(content, size)) == [(2, STDOUT, payload), (3, STDERR, payload)]


def test_a_torn_frame_as_the_last_one_is_given_by_finish_alone():
    parser = FrameParser()
    content = frame(1, STDOUT, b"whole") + frame(1, STDOUT, b"cut short")[:-6]
    assert facts(parser.feed(content)) == [(1, STDOUT, b"whole")]
    assert facts(parser.finish()) == [(1, STDOUT, b"cut")]
    assert parser.finish() == []


@pytest.mark.parametrize("cut", range(1, HEADER_SIZE + 1))
def test_nothing_is_salvaged_of_a_header_without_payload(cut):
    assert parse(frame()[:cut]) == []


def test_frames_behind_a_torn_one_that_promised_more_than_ever_came_are_given_by_finish():
    torn = frame(1, STDOUT, b"x" * 100_000)[: HEADER_SIZE + 10]
    parser = FrameParser()
    assert parser.feed(torn + frame(2, STDOUT, b"later")) == []
    assert facts(parser.finish()) == [(1, STDOUT, b"x" * 10), (2, STDOUT, b"later")]


@given(st.binary(max_size=80), st.integers(1, 60))
def test_garbage_never_stops_the_parser_nor_hides_what_follows(garbage, size):
    garbage = garbage.replace(MAGIC[:1], b".")
    content = garbage + frame(2, STDOUT, b"after") + garbage + frame(3, STDOUT, b"again")
    assert facts(parse(content, size)) == [(2, STDOUT, b"after"), (3, STDOUT, b"again")]


@given(
    st.lists(st.sampled_from([MAGIC, MAGIC[:2], b"\x01", b"\0" * 9, b"\xff" * 5, frame()]), max_size=30),
    st.integers(1, 60),
)
def test_only_known_streams_come_out_of_whatever_goes_in(pieces, size):
    for each in parse(b"".join(pieces), size):
        assert each.stream in (STDOUT, STDERR, EVENT, TOOLKIT)
        assert each.data


def test_what_is_parsed_does_not_depend_on_the_pieces():
    dice = random.Random(7)
    whole = b"".join(frame(rank, STDOUT, dice.randbytes(dice.randrange(1, 50))) for rank in range(30))
    for _ in range(30):
        damaged = bytearray(whole)
        for _ in range(5):
            damaged[dice.randrange(len(damaged))] ^= 0xFF
            at = dice.randrange(len(damaged))
            del damaged[at : at + dice.randrange(30)]
        expected = parse(bytes(damaged))
        assert all(parse(bytes(damaged), size) == expected for size in (1, 7, 31))


FULL_DISK = """
import resource, signal, sys
from estimator_container.logs.frames import STDOUT, FrameWriter
writer = FrameWriter(sys.argv[1])
writer.write(0, STDOUT, b"before")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    writer.write(0, STDOUT, bytes(range(65, 91)) * 10)
except OSError as error:
    print(type(error).__name__, end="")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writer.write(0, STDOUT, b"after")
"""


def test_what_a_full_disk_took_of_a_frame_is_salvaged_and_the_writer_says_so(tmp_path):
    path = tmp_path / "frames"
    said = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True)
    assert said.stdout == "OSError"
    before, torn, after = parse(path.read_bytes())
    assert (before.data, after.data) == (b"before", b"after")
    assert torn.data == (bytes(range(65, 91)) * 10)[: 100 - 2 * HEADER_SIZE - len(b"before")]


def test_a_rank_of_any_world_has_a_number_of_its_own():
    places = [(world, rank) for world in (1, 2, 32767) for rank in (0, 1, 65535)]
    assert [world_and_rank(number_of(*place)) for place in places] == places
    assert number_of(40000, 3) == number_of(65535, 3)
