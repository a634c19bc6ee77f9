"""What a host keeps of its measurements: nothing wrong, nothing torn, and not too much."""

import errno
import os
import random
import zlib
from pathlib import Path

import pytest
from estimator_container.telemetry import blocks, history, recording
from estimator_container.telemetry.blocks import Row
from estimator_container.telemetry.history import LEVELS, MEGABYTE, Level
from estimator_container.telemetry.metric_table import KINDS, METRICS, SeriesKey
from estimator_container.telemetry.recording import ROWS_OF_A_BLOCK, History
from hypothesis import given
from hypothesis import strategies as st

FINE, COARSE, COARSEST = LEVELS
START = 1_700_000_000_000 // 900_000 * 900_000
CPU, MEMORY = SeriesKey("system.cpu.utilization"), SeriesKey("system.memory.usage")
READ = SeriesKey("process.disk.io", 3, "read")


def times_of(samples):
    return [round(1000 * sample.time) for sample in samples]


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.tuples(
                st.integers(0, 10**7),
                st.lists(st.none() | st.integers(-(2**62), 2**62), min_size=width, max_size=width),
            ),
            min_size=1,
            max_size=20,
        )
    ),
    st.sampled_from([blocks.PLAIN, blocks.DEFLATED]),
)
def test_rows_come_back_from_a_block(steps, kind):
    at, rows = START, []
    for step, values in steps:
        at += step
        rows.append(Row(at, values))
    (record,) = blocks.records(blocks.block(kind, rows))
    times, columns = record.columns(len(rows[0].values))
    assert times == [row.time_ms for row in rows]
    assert columns == [list(column) for column in zip(*(row.values for row in rows))]
    assert (record.first_ms, record.last_ms) == (times[0], times[-1])


def test_a_record_that_was_cut_short_is_left_out_and_those_before_it_are_not():
    whole = [blocks.block(blocks.DEFLATED, [Row(START + number, [number])]) for number in range(3)]
    data = b"".join(whole)
    for length in range(len(data)):
        found = [record.first_ms - START for record in blocks.records(data[:length])]
        assert found == list(range(sum(length >= len(b"".join(whole[: count + 1])) for count in range(3))))


def test_a_small_file_cannot_say_that_it_has_millions_of_rows():
    rows = blocks.record(blocks.DEFLATED, zlib.compress(b"\xff\xff\x7f" + bytes(1 << 22)), START, START + 1)
    with pytest.raises(ValueError, match="a block of 2097151 rows"):
        next(blocks.records(rows)).columns(1)


def test_a_block_with_too_few_columns_is_refused():
    (record,) = blocks.records(blocks.block(blocks.PLAIN, [Row(START, [1])]))
    with pytest.raises(ValueError, match="fewer than 2 columns"):
        record.columns(2)


def test_what_was_measured_is_read_to_the_metric_s_precision_at_any_moment(tmp_path):
    folder = str(tmp_path / "telemetry")
    kept = History(folder)
    said = {}
    for number in range(2 * ROWS_OF_A_BLOCK + 7):
        value = number / 1000
        said[START + 2000 * number] = value
        kept.add(START + 2000 * number, {CPU: value})
        found = history.read(folder, FINE, 0, 1 << 60)[CPU]
        assert times_of(found) == list(said)
    assert [sample.mean for sample in found] == pytest.approx(list(said.values()), abs=KINDS[CPU.metric].precision / 2)
    assert all(sample.low == sample.mean == sample.high for sample in found)


def test_a_time_and_metrics_can_be_chosen(tmp_path):
    kept = History(str(tmp_path))
    for number in range(200):
        kept.add(START + 2000 * number, {CPU: 0.5, MEMORY: 4096.0})
    found = history.read(str(tmp_path), FINE, START + 100_000, START + 110_000, ["system.memory.usage"])
    assert list(found) == [MEMORY]
    assert times_of(found[MEMORY]) == list(range(START + 100_000, START + 110_001, 2000))


def test_series_may_come_and_go(tmp_path):
    kept = History(str(tmp_path))
    for number in range(70):
        values = {CPU: 0.5}
        if 10 <= number < 65:
            values[READ] = 1024.0 * number
        kept.add(START + 2000 * number, values)
    found = history.read(str(tmp_path), FINE, 0, 1 << 60)
    assert len(found[CPU]) == 70
    assert [sample.mean for sample in found[READ]] == [1024.0 * number for number in range(10, 65)]
    (first, *_) = history.read(str(tmp_path), COARSE, 0, 1 << 60)[READ]
    assert (first.low, first.high) == (10 * 1024, 29 * 1024)


def test_coarse_rows_have_the_mean_and_the_extremes_of_fine_ones(tmp_path):
    kept = History(str(tmp_path))
    draw = random.Random(1)
    values = [draw.randrange(10_000) / 10_000 for _ in range(1000)]
    for number, value in enumerate(values):
        kept.add(START + 2000 * number, {CPU: value})
    for level in (COARSE, COARSEST):
        found = history.read(str(tmp_path), level, 0, 1 << 60)[CPU]
        in_a_row = level.seconds // 2
        assert len(found) == 1000 // in_a_row
        for place, sample in enumerate(found):
            rows = values[place * in_a_row : (place + 1) * in_a_row]
            assert sample.time * 1000 == START + 1000 * level.seconds * place
            assert (sample.low, sample.high) == pytest.approx((min(rows), max(rows)))
            assert sample.mean == pytest.approx(sum(rows) / in_a_row, abs=1e-4)


def test_a_level_keeps_the_newest_of_it(tmp_path):
    level = Level(2, 40_000, 1)
    kept = History(str(tmp_path), [level])
    draw = random.Random(2)
    for number in range(40_000):
        kept.add(START + 2000 * number, {CPU: draw.random()})
    assert 0.5 * level.most_bytes < sum(path.stat().st_size for path in tmp_path.iterdir()) < 1.3 * level.most_bytes
    found = times_of(history.read(str(tmp_path), level, 0, 1 << 60)[CPU])
    assert found == list(range(found[0], START + 2000 * 40_000, 2000))
    assert history.first_time_ms(str(tmp_path), level) == found[0]
    assert history.last_time_ms(str(tmp_path), level) == found[-1]


def noisy_host(draw, number):
    """What a host of 4 ranks and 4 GPUs measures in training: noise around what is usual."""
    ranks, gpus = range(4), [str(gpu) for gpu in range(4)]
    values = {}
    for kind in METRICS:
        parts = {"": [""], "hw.id": gpus, "resource and kind": ["cpu", "memory", "memory full", "io", "io full"]}
        directions = ["receive", "transmit"] if "network" in kind.attribute else ["read", "write"]
        for part in parts.get(kind.attribute, directions if "io" in kind.attribute else ["major"]):
            for rank in ranks if kind.is_of_ranks else (None,):
                if kind.name == "process.gpu.memory.usage" and part != str(rank):
                    continue
                values[SeriesKey(kind.name, rank, part)] = noise(draw, kind, number)
    return values


def noise(draw, kind, number):
    if kind.unit == "1":
        return min(1.0, max(0.0, draw.gauss(0.85, 0.05)))
    if kind.unit == "By":
        return 3e10 + 1e6 * draw.randrange(200) + 1e5 * (number % 1000)
    if kind.unit == "By/s":
        return draw.expovariate(1e-6) if draw.random() < 0.5 else 0.0
    if kind.unit in ("W", "Cel"):
        return draw.gauss(300 if kind.unit == "W" else 65, 8)
    return float(draw.choice((8, 8, 8, 9)))


def test_thirty_days_of_a_host_take_less_than_50_megabytes(tmp_path):
    hours = 2
    kept = History(str(tmp_path))
    draw = random.Random(3)
    for number in range(hours * 1800):
        kept.add(START + 2000 * number, noisy_host(draw, number))
    whole = 0.0
    for level in LEVELS:
        paths = list(tmp_path.glob(f"{level.seconds}[-.]*"))
        rows = hours * 3600 / level.seconds
        of_level = sum(path.stat().st_size for path in paths) / rows * 30 * 86400 / level.seconds
        # Beside its files a level has at most one that is not full, and what makes no block yet.
        whole += min(of_level, 1.15 * level.most_bytes)
        assert level == FINE or of_level < level.most_bytes, (
            f"{level} cannot hold 30 days: {of_level / MEGABYTE:.1f} MB"
        )
    assert whole < 50 * MEGABYTE
    assert 1.08 * sum(level.most_bytes for level in LEVELS) < 50 * MEGABYTE


def test_another_writer_goes_on_where_one_was_killed(tmp_path):
    for first in (0, 70, 140):
        kept = History(str(tmp_path))
        for number in range(first, first + 65):
            kept.add(START + 2000 * number, {CPU: 0.5})
    found = times_of(history.read(str(tmp_path), FINE, 0, 1 << 60)[CPU])
    assert found == [START + 2000 * number for first in (0, 70, 140) for number in range(first, first + 65)]


@pytest.mark.parametrize(
    "damage",
    [
        blocks.record(blocks.SERIES, b"not JSON"),
        blocks.record(blocks.SERIES, b'[["system.cpu.utilization", "rank", []]]'),
        blocks.record(blocks.SERIES, b"[" * 100_000),
        blocks.record(blocks.DEFLATED, b"not deflated", START, START + (1 << 50)),
        blocks.record(blocks.PLAIN, b"\x01" + b"\xff" * 50_000, START, START + 1),
        blocks.record(b"X", b"", START, START + 1),
        b"\0" * 1000,
    ],
)
def test_what_a_script_writes_into_a_file_does_no_harm(tmp_path, damage):
    kept = History(str(tmp_path))
    kept.add(START, {CPU: 0.5})
    tail = tmp_path / "2.tail"
    tail.write_bytes(tail.read_bytes() + damage)
    assert times_of(history.read(str(tmp_path), FINE, 0, 1 << 60)[CPU]) == [START]
    (tmp_path / "2-notes.rows").write_text("mine")
    os.mkfifo(tmp_path / "2-00000000000001.rows")
    assert times_of(history.read(str(tmp_path), FINE, 0, 1 << 60)[CPU]) == [START]


def test_a_folder_that_was_removed_with_those_above_it_is_not_made_again(tmp_path):
    with pytest.raises(FileNotFoundError):
        History(str(tmp_path / "removed" / "telemetry"))
    assert list(tmp_path.iterdir()) == []


def open_files():
    return {link.readlink() for link in Path("/proc/self/fd").iterdir() if link.exists()}


def test_a_history_that_a_full_disk_has_ended_leaves_no_file_open(tmp_path, monkeypatch):
    before = open_files()
    write, made = os.write, History(str(tmp_path))
    made.add(START, {CPU: 0.5})

    def full(fd, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        made.add(START + 2000, {CPU: 0.5})
    made.close()
    assert open_files() <= before
    monkeypatch.setattr(os, "write", write)
    calls = []
    monkeypatch.setattr(recording, "_keep_tail", lambda *_: calls.append(1) or (len(calls) < 3 or os.write(-1, b"")))
    with pytest.raises(OSError, match="Bad file descriptor"):
        History(str(tmp_path))
    assert open_files() <= before
