"""What a script may call: in a job, outside of one, and in children of a rank."""

import os
import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest

from tests.waiting import SECONDS

TOOLKIT = str(Path(estimator_container.__file__).parents[1])
MARKS = "from estimator_container.training import mark_step\n"


@pytest.fixture
def run(host, tmp_path):
    output = tmp_path / "output"
    output.mkdir()
    (output / "training-steps").write_text(str(host.pages))

    def ran(source, **environment):
        given = {**os.environ, "PYTHONPATH": TOOLKIT, **environment}
        subprocess.run([sys.executable, "-c", MARKS + source], env=given, check=True, timeout=SECONDS)
        return [(count.rank, count.steps, count.number) for count in host.read()]

    return lambda source, **environment: ran(source, **{"SM_OUTPUT_DIR": str(output), **environment})


def test_in_a_job_a_mark_counts_for_the_rank(run):
    assert run("for step in range(3): mark_step()", RANK="2") == [(2, 3, 3)]


def test_the_script_may_say_which_step_it_was(run):
    assert run("mark_step(500); mark_step(501)", RANK="2") == [(2, 2, 501)]


@pytest.mark.parametrize("step", ["7.0", "'7'", "2**63"])
def test_a_step_that_is_no_number_is_said_in_a_sentence(run, step):
    tried = f"try: mark_step({step})\nexcept TypeError as error: assert 'whole number below 2**63' in str(error)\n"
    assert run(tried + "else: raise AssertionError", RANK="2") == []


def test_without_a_world_it_counts_for_the_script_of_the_host(run):
    assert run("mark_step()") == [(None, 1, 1)]


@pytest.mark.parametrize("output", ["", "/nowhere/output"])
def test_outside_of_a_job_it_does_nothing(run, output):
    assert run("mark_step()", SM_OUTPUT_DIR=output) == []


def test_a_child_of_a_rank_does_not_count_for_it(run):
    source = "import os\nmark_step()\npid = os.fork()\nmark_step()\nif pid: os.waitpid(pid, 0)"
    assert run(source, RANK="0") == [(0, 2, 2)]


def test_marks_make_no_system_calls(run, tmp_path):
    script, trace = tmp_path / "train.py", tmp_path / "trace"
    around = "open('/dev/null').close()\n"
    script.write_text(f"{MARKS}mark_step()\n{around}for _ in range(1000): mark_step()\n{around}")
    run(f"import subprocess\nsubprocess.run(['strace', '-o', '{trace}', '{sys.executable}', '{script}'])", RANK="0")
    between = trace.read_text().split('"/dev/null"')[1].splitlines()
    assert len(between) < 20
