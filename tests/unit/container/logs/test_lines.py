import re

import pytest
from estimator_container.logs.frames import EVENT, NO_RANK, STDERR, STDOUT, TOOLKIT, Frame, number_of
from estimator_container.logs.lines import LONGEST_LINE, LONGEST_REDRAWN, MOST_HELD, STATE_SIZE, LineAssembler
from hypothesis import given
from hypothesis import strategies as st

# A rank's output as a pipe delivers it: in pieces that end anywhere.
PIECES = st.lists(
    st.sampled_from([b"a", b"\n", b"\r", b"\0", b"\xff\xfe", "é".encode()[:1], b"word ", b"x" * 70000]), max_size=20
)


def assemble(frames, host="algo-1"):
    assembler = LineAssembler(host)
    blocks = [*filter(None, map(assembler.feed, frames)), *assembler.flush()]
    assert [block.tagged() for block in blocks] == [
        b"".join(line.tagged() for line in block.lines()) for block in blocks
    ]
    return [line for block in blocks for line in block.lines()]


def from_rank(pieces, rank=0, stream=STDOUT):
    return [Frame(at, rank, stream, piece) for at, piece in enumerate(pieces)]


@given(PIECES)
def test_the_lines_of_a_stream_are_its_bytes(pieces):
    assert b"".join(line.data for line in assemble(from_rank(pieces))) == b"".join(pieces)


@given(PIECES)
def test_every_line_but_the_last_ends_at_a_newline_or_where_a_long_one_is_drawn_again(pieces):
    *lines, _ = [line.data for line in assemble(from_rank(pieces))] or [b""]
    assert all(line.count(b"\n") == line.endswith(b"\n") for line in lines)
    assert all(line.endswith((b"\n", b"\r")) for line in lines)


@given(PIECES.map(lambda pieces: [piece.replace(b"\r", b" ") for piece in pieces]))
def test_lines_of_ordinary_length_that_are_not_drawn_again_are_whole(pieces):
    lines = [line.data for line in assemble(from_rank(pieces))]
    assert lines == [line for line in re.split(rb"(?<=\n)", b"".join(pieces)) if line]


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, NO_RANK]), st.sampled_from([STDOUT, STDERR, TOOLKIT]), PIECES), max_size=8
    )
)
def test_streams_that_write_at_the_same_time_never_tear_each_others_lines(writes):
    frames = [Frame(0, rank, stream, piece) for rank, stream, pieces in writes for piece in pieces]
    written = {}
    for frame in frames:
        key = (None if frame.rank == NO_RANK else frame.rank, {1: "stdout", 2: "stderr", 4: "toolkit"}[frame.stream])
        written[key] = written.get(key, b"") + frame.data
    shown = {}
    for line in assemble(frames):
        shown.setdefault((line.rank, line.stream), []).append(line.data)
    assert {key: b"".join(lines) for key, lines in shown.items()} == written
    assert all(line.count(b"\n") <= 1 for lines in shown.values() for line in lines)


def test_a_line_is_given_once_its_end_has_come_and_not_before():
    assembler = LineAssembler("algo-1")
    assert assembler.feed(Frame(1, 0, STDOUT, b"half a ")) is None
    block = assembler.feed(Frame(2, 0, STDOUT, b"line\nand"))
    assert block is not None and block.data == b"half a line\n"
    assert [block.data for block in assembler.flush()] == [b"and"]
    assert list(assembler.flush()) == []


def test_a_progress_bar_stays_one_line():
    (line,) = assemble(from_rank([b"\r 10 %", b"\r 20 %", b"\r 100 %\n"]))
    assert line.data == b"\r 10 %\r 20 %\r 100 %\n"


def held(assembler):
    return sum(len(block.data) for block in assembler.flush())


def test_a_progress_bar_that_never_ends_comes_in_pieces_that_end_where_it_is_drawn_again():
    assembler = LineAssembler("algo-1")
    states = [b"\r%6d of 100000 |#####     |" % number for number in range(30_000)]
    blocks = [*filter(None, map(assembler.feed, from_rank(states)))]
    assert len(blocks) > 5
    assert all(block.data.endswith(b"\r") and len(block.data) <= LONGEST_REDRAWN + 100 for block in blocks)
    assert len(b"".join(block.data for block in blocks)) + held(assembler) == sum(map(len, states))


def test_a_line_that_never_ends_comes_in_pieces():
    size = 5000
    assembler = LineAssembler("algo-1")
    frame = Frame(0, 0, STDOUT, b"x" * size)
    blocks = [*filter(None, (assembler.feed(frame) for _ in range(2 * (LONGEST_LINE + size) // size)))]
    assert {len(block.data) for block in blocks} <= {LONGEST_LINE + 1, -(-LONGEST_LINE // size) * size}
    assert held(assembler) < LONGEST_LINE


def test_a_line_of_1_mib_after_a_progress_bar_is_whole():
    line = b"x" * (1 << 20) + b"\n"
    pieces = [b"\r 10 %", b"\r 100 %", b"\r", *(line[at : at + 1000] for at in range(0, len(line), 1000))]
    assert [each.data for each in assemble(from_rank(pieces))] == [b"\r 10 %\r 100 %\r", line]


def test_a_long_line_with_the_end_of_windows_is_whole():
    line = b"x" * (LONGEST_REDRAWN + 1)
    assert [each.data for each in assemble(from_rank([line, b"\r", b"\n"]))] == [line + b"\r\n"]


def test_all_ranks_together_are_held_within_bounds():
    assembler = LineAssembler("algo-1")
    given, passed = 0, 0
    for number in range(3 * MOST_HELD >> 20):
        block = assembler.feed(Frame(0, number, STDOUT, b"x" * (1 << 20)))
        given, passed = given + (1 << 20), passed + (len(block.data) if block else 0)
    left = held(assembler)
    assert left <= MOST_HELD and passed + left == given


def test_the_newest_state_of_an_unfinished_line_is_told_once():
    assembler = LineAssembler("algo-1")
    for at, (rank, piece) in enumerate([(0, b"10 %\r"), (1, b"\rstep 1"), (0, b"20 %\r"), (1, b"\rstep 2")]):
        assembler.feed(Frame(at, rank, STDERR, piece))
    assert assembler.has_news
    news = list(assembler.news())
    assert [(line.rank, line.stream, line.data, line.time_ns) for line in news] == [
        (0, "stderr", b"20 %\r", 2),
        (1, "stderr", b"step 2", 3),
    ]
    assert not assembler.has_news and list(assembler.news()) == []
    assembler.feed(Frame(9, 1, STDERR, b" done\nand" + b"." * 2 * STATE_SIZE))
    assert [line.data[:5] for line in assembler.news()] == [b"and.."] and not assembler.has_news
    assert [len(block.data) for block in assembler.flush()] == [10, 2 * STATE_SIZE + 3]


@pytest.mark.parametrize("pieces", [[b"a\n", b"b\n"], [b"a", b"\n", b"b\n"], [b"a\nb", b"\n"]])
def test_the_time_of_a_line_is_that_of_its_last_byte(pieces):
    frames = from_rank(pieces)
    last = [line.time_ns for line in assemble(frames)]
    ends = [frame.time_ns for frame in frames for _ in range(frame.data.count(b"\n"))]
    assert last == ends


def test_the_time_of_an_unfinished_line_is_that_of_its_last_byte_too():
    (line,) = assemble([Frame(5, 0, STDOUT, b"no "), Frame(9, 0, STDOUT, b"end")])
    assert (line.data, line.time_ns) == (b"no end", 9)


@pytest.mark.parametrize(
    ("rank", "stream", "tag"),
    [
        (0, STDOUT, "[1,0]<stdout>:"),
        (12, STDERR, "[1,12]<stderr>:"),
        (number_of(3, 12), STDERR, "[3,12]<stderr>:"),
        (NO_RANK, STDOUT, "[algo-1]<stdout>:"),
        (NO_RANK, TOOLKIT, "[algo-1]<toolkit>:"),
    ],
)
def test_a_tag_names_the_rank_or_else_the_host(rank, stream, tag):
    (line,) = assemble([Frame(0, rank, stream, b"text\n")])
    assert line.tag == tag
    assert line.tagged() == tag.encode() + b"text\n"


def test_a_tagged_line_always_ends_one_even_where_the_script_did_not():
    (line,) = assemble(from_rank([b"\xff\0no end"]))
    assert line.tagged() == b"[1,0]<stdout>:\xff\0no end\n"


def test_events_are_not_lines():
    assert assemble([Frame(0, NO_RANK, EVENT, b'{"event": "x"}\n')]) == []
