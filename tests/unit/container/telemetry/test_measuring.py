"""What a host measures, beside what the kernel and the processes themselves say."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from estimator_container.runtime import machine
from estimator_container.telemetry import history, measure
from estimator_container.telemetry import metric_table as table
from estimator_container.telemetry.history import LEVELS
from estimator_container.telemetry.machine_load import MachineLoad, busy_seconds
from estimator_container.telemetry.measure import CPU_SHARE, Meter, Timetable
from estimator_container.telemetry.metric_table import KINDS, SeriesKey
from estimator_container.telemetry.rank_load import RankLoad, Rates

from tests.waiting import SECONDS, wait_for

TICK = 1 / os.sysconf("SC_CLK_TCK")
# What it says of itself after its work, and then it waits to be asked to end.
WORKS = """
import os, resource, subprocess, sys, threading, time
def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
kept = bytearray(os.urandom(1)) * (64 << 20)
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
burn(0.3)
subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.2: pass"], check=True)
lives = subprocess.Popen(["sleep", "600"])
with open("written", "wb") as file:
    file.write(os.urandom(4 << 20))
    os.fsync(file.fileno())
for _ in range(1000):  # until it sleeps it may need more memory
    if "nanosleep" in open(f"/proc/{lives.pid}/wchan").read():
        break
    time.sleep(0.01)
times = os.times()
io = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
print(times.user + times.system + times.children_user + times.children_system, io["write_bytes"], lives.pid, flush=True)
sys.stdin.read()
lives.kill()
"""


@pytest.fixture
def worker(tmp_path):
    """A process that has worked, and what it says of itself."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", WORKS], stdin=pipe, stdout=pipe, cwd=tmp_path, text=True)
    words = process.stdout.readline().split()
    yield process, float(words[0]), int(words[1]), int(words[2])
    process.communicate(timeout=SECONDS)


def meminfo():
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in Path("/proc/meminfo").read_text().splitlines()}


def test_cpu_and_network_of_a_machine_are_those_of_proc(tmp_path):
    load = MachineLoad(str(tmp_path))  # where there is no cgroup

    def from_proc():
        cpus = list(map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:8]))
        lines = [line.replace(":", " ").split() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
        others = [words for words in lines if words[0] != "lo"]
        cpu = (sum(cpus) - cpus[3] - cpus[4]) * TICK / os.cpu_count()
        names = {words[0] for words in others}
        return cpu, sum(int(words[1]) for words in others), sum(int(words[9]) for words in others), names

    def at_once():
        return from_proc(), load.totals(), from_proc()

    before, totals, after = at_once()
    while before[-1] != after[-1]:  # a container that ends takes its interface along, with what that has counted
        before, totals, after = at_once()
    keys = [SeriesKey(table.CPU), *(SeriesKey(table.NETWORK, None, part) for part in ("receive", "transmit"))]
    for low, key, high in zip(before, keys, after):
        assert low - 1e-6 <= totals[key] <= high + 1e-6, key
    assert busy_seconds(b"cpu  1 2 4 8 16 32 64 128 256 512\ncpu0 9\n") == pytest.approx((1 + 2 + 4 + 32 + 64) * TICK)


def test_memory_disks_and_pressure_of_a_machine_are_those_of_proc(tmp_path):
    load = MachineLoad(str(tmp_path))
    levels, facts = load.levels(), meminfo()
    assert levels[SeriesKey(table.MEMORY_LIMIT)] == pytest.approx(facts["MemTotal"], rel=0.05)
    assert levels[SeriesKey(table.MEMORY)] == pytest.approx(facts["MemTotal"] - facts["MemAvailable"], abs=3e9)
    assert levels[SeriesKey(table.CPU_COUNT)] <= len(os.sched_getaffinity(0))

    def from_proc():
        disks = {path.name for path in Path("/sys/block").iterdir()}
        whole = {name for name in disks if not name.startswith(("loop", "ram", "zram", "dm-", "md", "sr", "fd"))}
        lines = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
        rows = [words for words in lines if words[2] in whole]
        stalls = {}
        for resource_name in ("cpu", "memory", "io"):
            path = Path(f"/proc/pressure/{resource_name}")
            if path.exists():
                stalls[resource_name] = int(path.read_text().split("total=")[1].split()[0]) / 1e6
        return 512 * sum(int(words[5]) for words in rows), 512 * sum(int(words[9]) for words in rows), stalls

    before, totals, after = from_proc(), load.totals(), from_proc()
    assert before[0] <= totals[SeriesKey(table.DISK, None, "read")] <= after[0]
    assert before[1] <= totals[SeriesKey(table.DISK, None, "write")] <= after[1]
    for name, stalled in before[2].items():
        assert stalled - 1e-6 <= totals[SeriesKey(table.PRESSURE, None, name)] <= after[2][name] + 1e-6


def test_a_cgroup_is_measured_where_the_host_is_one(tmp_path):
    files = {
        "memory.current": "9000000\n",
        "memory.max": "20000000\n",
        "memory.stat": "anon 1\ninactive_file 1000000\npgmajfault 7\n",
        "cpu.stat": "usage_usec 3000000\nuser_usec 1\n",
        "io.stat": "8:0 rbytes=100 wbytes=20 rios=1\n8:16 rbytes=5 wbytes=6 rios=1\n",
        "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n",
        "memory.pressure": "some avg10=0.00 total=10\nfull avg10=0.00 total=500000\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    load = MachineLoad(str(tmp_path))
    levels, totals = load.levels(), load.totals()
    assert levels[SeriesKey(table.MEMORY)] == 8_000_000
    assert levels[SeriesKey(table.MEMORY_LIMIT)] == 20_000_000
    assert totals[SeriesKey(table.CPU)] == pytest.approx(3 / load.cpus)
    assert totals[SeriesKey(table.DISK, None, "read")] == 105
    assert totals[SeriesKey(table.DISK, None, "write")] == 26
    assert totals[SeriesKey(table.MAJOR_FAULTS, None, "major")] == 7
    assert totals[SeriesKey(table.PRESSURE, None, "cpu")] == 1.5
    assert totals[SeriesKey(table.PRESSURE, None, "memory full")] == 0.5


def test_a_rank_is_all_its_processes_those_that_ended_included(worker):
    process, seconds, written, child = worker
    cpus = machine.cpus()
    load = RankLoad(3, process.pid, cpus)
    levels, totals = load.read()
    assert load.pids == {process.pid, child}
    assert levels[SeriesKey(table.RANK_PROCESSES, 3)] == 2
    assert levels[SeriesKey(table.RANK_THREADS, 3)] == 3
    resident = sum(
        int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() for pid in (process.pid, child)
    )
    assert levels[SeriesKey(table.RANK_MEMORY, 3)] == pytest.approx(resident, abs=1 << 20)
    assert resident > 64 << 20
    # What it says and what is read are cut to ticks, in four numbers of each of two processes.
    assert totals[SeriesKey(table.RANK_CPU, 3)] * cpus == pytest.approx(seconds, abs=0.1)
    assert seconds >= 0.5
    assert totals[SeriesKey(table.RANK_DISK, 3, "write")] == written
    load.close()


def test_a_rank_that_has_ended_has_no_values():
    process = subprocess.Popen(["sleep", "600"])
    load = RankLoad(0, process.pid, 1.0)
    assert load.read()[0]
    process.kill()
    process.wait()
    assert load.read() == ({}, {})


def test_a_rate_is_what_a_total_grows_in_a_second():
    rates, key, new = Rates(), SeriesKey(table.CPU), SeriesKey(table.RANK_CPU, 1)
    assert rates.of({key: 10.0}, 100.0) == {}
    assert rates.of({key: 13.0, new: 7.0}, 102.0) == {key: 1.5}
    assert rates.of({key: 12.0, new: 8.0}, 104.0) == {key: 0.0, new: 0.5}  # of a group of which one process went away


@pytest.mark.parametrize("cost", [0.0005, 0.004, 0.03, 1.0])
def test_measuring_is_done_so_rarely_that_it_takes_no_more_than_its_share(cost):
    timetable = Timetable()
    now, times = 1_000_000.7, []
    for _ in range(50):
        now = timetable.next_time(now)
        times.append(now)
        timetable.took(cost)
    assert all(time % LEVELS[0].seconds == 0 for time in times)
    assert cost * len(times[2:]) / (times[-1] - times[1]) <= CPU_SHARE * 1.001
    assert cost > 0.004 or times[-1] - times[0] == 2 * 49


def test_the_program_measures_what_it_is_told_to_until_nobody_reads_its_output(tmp_path, worker):
    process, *_ = worker
    folder, ranks = str(tmp_path / "telemetry"), tmp_path / "ranks"
    ranks.write_text(f"-1 {process.pid}\n")
    read_fd, write_fd = os.pipe()
    command = [sys.executable, "-I", "-S", measure.__file__, folder, str(ranks)]
    program = subprocess.Popen(command, stdout=write_fd)
    os.close(write_fd)
    wait_for(lambda: len(history.read(folder, LEVELS[0], 0, 1 << 60).get(SeriesKey(table.RANK_CPU), ())) >= 2)
    found = history.read(folder, LEVELS[0], 0, 1 << 60)
    assert all(sample.time % 2 == 0 for samples in found.values() for sample in samples)
    assert {key.metric for key in found} >= {
        name for name, kind in KINDS.items() if not name.startswith(("hw.", "process.gpu", "system.pressure"))
    }
    assert found[SeriesKey(table.RANK_MEMORY)][-1].mean > 64 << 20
    with ranks.open("a") as file:  # another step of the job
        file.write(f"5 {os.getpid()}\n")
    wait_for(lambda: SeriesKey(table.RANK_MEMORY, 5) in history.read(folder, LEVELS[0], 0, 1 << 60))
    os.close(read_fd)
    assert program.wait(timeout=SECONDS) == 0


def test_what_measuring_costs_is_measured_too(tmp_path):
    meter = Meter(str(tmp_path / "ranks"))
    began, before = time.monotonic(), time.process_time()
    meter.measure()
    share = meter.measure()[SeriesKey(table.OWN_CPU)]
    assert 0 <= share <= 1.0 + (time.process_time() - before) / max(1e-9, time.monotonic() - began)
