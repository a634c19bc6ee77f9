"""What the ranks of a trial tell of themselves while they wait for input."""

import json
import os
import subprocess
import sys

SCRIPT = """
import os, threading, time
from estimator_container.training.page import INPUT
from estimator_container.training.step_clock import StepClock
from estimator_container.training.trials.watch import InputWatch

clock = StepClock([0] * 64)
InputWatch(clock.account).begin()

def load():
    time.sleep(0.02)

def child():
    until = time.monotonic() + float(os.environ["SECONDS"])
    while time.monotonic() < until:
        time.sleep(0.01)
    os._exit(0)

clock.mark_explicitly(None)
if os.fork() == 0:
    child()
until = time.monotonic() + float(os.environ["SECONDS"])
while time.monotonic() < until:
    clock.account.begin(INPUT)
    load()
    clock.account.end()
    clock.mark_explicitly(None)
os.wait()
"""


def test_a_rank_and_its_children_tell_what_they_do(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)],
        stderr=subprocess.PIPE,
        env={**os.environ, "RANK": "3", "SECONDS": "4"},
        check=True,
        timeout=120,
    )
    told = [json.loads(line.partition(b" ")[2]) for line in done.stderr.splitlines()]
    rank = [one for one in told if not one["child"]][-1]
    child = [one for one in told if one["child"]][-1]
    assert (rank["rank"], child["rank"]) == ("3", "3")
    assert rank["looks"] >= 10
    assert max(rank["doing"], key=rank["doing"].get) == "decode"
    assert any("train.py:11 " in place for place in rank["places"])
    assert rank["input_seconds"] > 0.3
    assert rank["input_cpu"] < rank["input_seconds"] / 2
    assert any("train.py:16 " in place for place in child["places"])
