"""Pages, searches and downloads of logs: each line once, whole and in order, wherever frames and pieces end."""

from __future__ import annotations

import asyncio
import random

import pytest
from estimator_container.logs.frames import EVENT, NO_RANK, STDERR, STDOUT, FrameWriter

from estimator_sdk import InvalidArgument
from estimator_sdk.backends.supervised.watch import Watch
from estimator_sdk.server import changes
from estimator_sdk.server.jobs.story import Story
from estimator_sdk.server.logs import download, page, pieces, search
from estimator_sdk.server.logs.selection import LogFile, Place, Selection, decode, encode

HOSTS, LINES = 3, 1500


@pytest.fixture
def small_pieces(monkeypatch):
    """A log of some hundred kB is then read as one of some GB would be."""
    monkeypatch.setattr(page, "_PIECE", 5000)
    monkeypatch.setattr(page, "_LEAST_PIECE", 3000)
    monkeypatch.setattr(pieces, "_LOOK", 4096)
    monkeypatch.setattr(search, "_PIECE", 20000)


@pytest.fixture(params=range(2))
def written(request, tmp_path):
    """The logs of three hosts with two ranks each, and what each rank wrote; many lines are torn."""
    chance = random.Random(request.param)
    files = [LogFile(number, f"algo-{number + 1}", tmp_path / str(number)) for number in range(HOSTS)]
    writers = [FrameWriter(str(file.path)) for file in files]
    wrote = {rank: [] for rank in range(2 * HOSTS)}
    for number in range(LINES):
        rank = chance.randrange(2 * HOSTS)
        frames = writers[rank // 2]
        data = (
            f"line {number} of {rank} {'x' * chance.choice([0, 10, 300, 9000 if number % 50 == 0 else 0])}\n".encode()
        )
        wrote[rank].append(data)
        cut = chance.randrange(len(data))
        if chance.random() < 0.2:
            frames.write(rank, STDOUT, data[:cut])
            if chance.random() < 0.5:
                frames.write(NO_RANK, EVENT, b'{"event": "rank_thawed", "rank": null}')
            frames.write(rank, STDOUT, data[cut:])
        elif chance.random() < 0.2:
            more = f"second {number}\n".encode()
            wrote[rank].append(more)
            frames.write(rank, STDOUT, data + more)
        else:
            frames.write(rank, STDOUT, data)
    return files, wrote


def selections(files, is_final):
    yield Selection(tuple(files), is_final=is_final), range(2 * HOSTS)
    yield Selection((files[1],), rank=2, is_final=is_final), [2]
    yield Selection((files[0],), stream=STDOUT, is_final=is_final), [0, 1]
    yield Selection((files[0],), stream=STDERR, is_final=is_final), []


def pages(turn, cursor):
    """All pages from a cursor on, which is carried as a client would."""
    for _ in range(10 * LINES):
        found = turn(cursor)
        yield found
        if found.is_start if turn.__name__ == "back" else found.is_end:
            return
        cursor = decode(encode(found.before if turn.__name__ == "back" else found.after))
    raise AssertionError("the pages have no end")


def check(lines, wrote, ranks):
    assert [each.time_ns for each in lines] == sorted(each.time_ns for each in lines)
    assert {rank: [each.data for each in lines if each.rank == rank] for rank in ranks} == {
        rank: wrote[rank] for rank in ranks
    }
    assert len(lines) == sum(len(wrote[rank]) for rank in ranks)


@pytest.mark.parametrize("is_final", [True, False])
def test_pages_have_every_line_once_in_order(small_pieces, written, is_final):
    files, wrote = written
    for selection, ranks in selections(files, is_final):

        def back(cursor, selection=selection):
            return page.backward(selection, cursor, 70)

        def ahead(cursor, selection=selection):
            return page.forward(selection, cursor, 70)

        from_end = [[each.line for each in found.lines] for found in pages(back, None)]
        check([line for lines in reversed(from_end) for line in lines], wrote, ranks)
        check([each.line for found in pages(ahead, {}) for each in found.lines], wrote, ranks)


def test_a_search_finds_every_line_once(small_pieces, written):
    files, wrote = written
    for selection, ranks in selections(files, True):
        found, before = [], None
        while True:
            step = search.search(selection, "LINE 13", before)
            found += [each.line.data for _, each in step.lines]
            if step.is_over:
                break
            before = decode(encode(step.to))
        assert sorted(found) == sorted(each for rank in ranks for each in wrote[rank] if b"line 13" in each)


def test_a_download_has_what_a_rank_wrote(small_pieces, written):
    files, wrote = written
    assert b"".join(download.text_of(Selection((files[1],), 2, STDOUT))) == b"".join(wrote[2])
    tagged = b"".join(download.text_of(Selection(tuple(files))))
    assert tagged.count(b"\n") == sum(map(len, wrote.values())) and tagged.startswith(b"[1,")


def test_a_page_of_a_time_begins_shortly_before_it(small_pieces, written):
    files, _ = written
    selection = Selection(tuple(files))
    every = [
        each.line for found in pages(lambda cursor: page.forward(selection, cursor, 500), {}) for each in found.lines
    ]
    wanted = every[LINES // 2]
    found = page.forward(selection, pieces.places_at(selection, wanted.time_ns), 1000)
    assert wanted in [each.line for each in found.lines]
    assert every.index(found.lines[0].line) > LINES // 4


def test_what_was_written_before_the_first_look_has_grown_too(tmp_path):
    """A page that looked before that would show nothing until the next line, which may never come."""
    path = tmp_path / "log"
    path.write_bytes(b"up")

    async def watch():
        listener = changes.ListeningPage()
        watching = asyncio.create_task(changes._keep_watching(Watch(), [path], listener))
        await asyncio.wait_for(listener._wake.wait(), 60)
        watching.cancel()

    asyncio.run(watch())


def test_what_is_being_written_is_left_for_the_next_page(tmp_path):
    path = tmp_path / "log"
    frames = FrameWriter(str(path))
    frames.write(0, STDOUT, b"first\n")
    whole = path.read_bytes()
    frames.write(0, STDOUT, b"second\nand")
    both = path.read_bytes()
    selection = Selection((LogFile(0, "algo-1", path),), is_final=False)
    for length in range(len(whole), len(both)):
        path.write_bytes(both[:length])
        found = page.backward(selection, None, 10)
        assert [each.line.data for each in found.lines] == [b"first\n"]
        path.write_bytes(both)
        following = page.forward(selection, found.after, 10)
        assert [each.line.data for each in following.lines] == [b"second\n"]
        assert [each.data for each in following.open] == [b"and"]


def test_a_line_of_ten_megabytes_is_cut_and_hides_no_other(tmp_path):
    path = tmp_path / "log"
    frames = FrameWriter(str(path))
    frames.write(0, STDOUT, b"before\n")
    for _ in range(160):
        frames.write(0, STDOUT, b"x" * 65536)
    frames.write(0, STDOUT, b"\nafter\n")
    selection = Selection((LogFile(0, "algo-1", path),))
    found = [each.line.data for each in page.backward(selection, None, 10).lines]
    assert found[-1] == b"after\n" and b"before\n" in found and all(set(each) <= set(b"x\n") for each in found[1:-1])
    assert (
        b"".join(download.text_of(Selection(selection.files, 0, STDOUT)))
        == b"before\n" + b"x" * (160 << 16) + b"\nafter\n"
    )


def test_bytes_of_the_format_in_a_log_are_text(tmp_path):
    path = tmp_path / "log"
    frames = FrameWriter(str(path))
    inner = tmp_path / "inner"
    FrameWriter(str(inner)).write(7, STDERR, b"forged\n")
    for number in range(50):
        frames.write(0, STDOUT, b"real %d " % number + inner.read_bytes() + b"\xf5ESF\x01\n")
    lines = page.forward(Selection((LogFile(0, "algo-1", path),)), {}, 1000).lines
    assert len({each.line.rank for each in lines}) == 1
    assert sum(each.line.data.count(b"forged") for each in lines) == 50


def test_a_story_reads_on_where_it_was(tmp_path):
    path = tmp_path / "log"
    frames = FrameWriter(str(path))
    selection = Selection((LogFile(0, "algo-1", path),), is_final=False)
    story = Story()
    assert story.update(selection) and story.now() == ""
    frames.write(NO_RANK, EVENT, b'{"event": "phase_started", "phase": "run"}')
    frames.write(0, STDOUT, b"a line\n" * 10000)
    assert story.update(selection) and story.now() == "running the script on 1 host"
    facts = b'"ranks": [0, 1], "steps": [4, 5], "numbers": [4, 5], "first": [1, 1], "last": [9, 9]'
    step = b'{"event": "training_steps", %s}' % facts
    written = path.read_bytes()
    frames.write(NO_RANK, EVENT, step)
    whole = path.read_bytes()
    for length in range(len(written), len(whole)):  # it is being written
        path.write_bytes(whole[:length])
        story.update(selection)
        assert story.now() == "running the script on 1 host"
    path.write_bytes(whole)
    assert story.update(selection) and story.now() == "training, the ranks at steps 4 to 5"


@pytest.mark.parametrize("cursor", ["1", "a:1:1", "1:1:1:1", "1:-1:0", "1:1:1 ", "9999999:1:1", "0:0:1." * 20000])
def test_a_cursor_that_was_not_given_is_refused(cursor):
    with pytest.raises(InvalidArgument, match="not given by an earlier answer"):
        decode(cursor)


def test_a_cursor_comes_back_as_it_was():
    places = {0: Place(0, 0), 12: Place(1 << 40, 17)}
    assert decode(encode(places)) == places
    assert decode("") == {}
