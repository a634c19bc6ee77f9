from argparse import Namespace
from pathlib import Path

import pytest
from estimator_container.contract.names import EXIT_STOPPED, Layout

from estimator_sdk.backends.slurm.allocation.nodes import Node
from estimator_sdk.backends.slurm.allocation.steps import (
    code_of_task,
    is_of_ended_job,
    lacks_node,
    may_be_launched_later,
    why_not_launched,
    without_image,
)


@pytest.mark.parametrize("code", [0, 1, 7, 127, 128])
def test_the_exit_code_of_a_task_is_that_of_its_step(code):
    assert code_of_task(code, True) == code


@pytest.mark.parametrize(("code", "signum"), [(137, 9), (139, 11), (134, 6)])
def test_a_task_that_a_signal_ended_has_the_signals_negative_number(code, signum):
    assert code_of_task(code, True) == -signum


def test_a_host_that_was_told_to_stop_says_so_itself():
    assert code_of_task(EXIT_STOPPED, False) == EXIT_STOPPED


def test_a_step_that_srun_says_nothing_wrong_of_was_lost_unless_its_host_has_succeeded():
    assert code_of_task(0, False) == -9


def test_only_what_srun_says_since_the_step_began_counts(tmp_path):
    log, before = tmp_path / "log", b"srun: error: Task launch for StepId=1.1 failed on node n2\n"
    log.write_bytes(before)
    assert (why_not_launched(log, 0), why_not_launched(log, len(before))) == (before.decode().strip(), "")
    refused = "srun: error: Unable to create step for job 1: Requested node is not available"
    log.write_bytes(before + f"a line\n{refused}\nanother\n".encode())
    assert why_not_launched(log, len(before)) == refused
    assert why_not_launched(tmp_path / "none", 0) == ""


# As slurm_strerror has them: src/common/slurm_errno.c of 22.05.
@pytest.mark.parametrize(
    ("why", "later", "node"),
    [
        ("Unable to confirm allocation for job 1: Unable to contact slurm controller (connect failure)", True, False),
        ("Unable to confirm allocation for job 1: Slurm backup controller in standby mode", True, False),
        ("Unable to create step for job 1: Unable to contact slurm controller (connect failure)", True, False),
        ("Unable to create step for job 1: Socket timed out on send/recv operation", True, False),
        ("Unable to create step for job 1: Zero Bytes were transmitted or received", True, False),
        ("Unable to create step for job 1: Required node not available (down, drained or reserved)", False, True),
        ("Unable to create step for job 1: Requested node configuration is not available", False, True),
        ("Unable to create step for job 1: Invalid node name specified", False, True),
        ("Unable to create step for job 1: Memory required by task is not available", False, False),
        ("Unable to create step for job 1: Invalid generic resource (gres) specification", False, False),
        ("Task launch for StepId=1.1 failed on node n2: Communication connection failure", False, True),
    ],
)
def test_only_what_srun_says_of_a_node_speaks_against_it(why, later, node):
    said = f"srun: error: {why}"
    assert (may_be_launched_later(said), lacks_node(said), is_of_ended_job(said)) == (later, node, False)


@pytest.mark.parametrize(
    "why",
    [
        "Unable to create step for job 1: Job/step already completing or completed",
        "Slurm job 1 has expired",
    ],
)
def test_what_srun_says_of_a_job_that_slurm_has_taken_speaks_against_nothing(tmp_path, why):
    (tmp_path / "log").write_text(f"srun: error: {why}\n")
    said = why_not_launched(tmp_path / "log", 0)
    assert (may_be_launched_later(said), lacks_node(said), is_of_ended_job(said)) == (False, False, True)


def test_a_signal_that_ended_srun_itself_keeps_its_number():
    assert code_of_task(-9, False) == -9


@pytest.fixture
def host_in_image(tmp_path):
    """Asks about a host whose log has these lines; `has_begun` says whether its toolkit took what it is given."""

    def asked(lines, has_begun=False, image="/x.sif"):
        layout = Layout(str(tmp_path / "algo-1"))
        Path(layout.config).mkdir(parents=True)
        if not has_begun:
            Path(layout.world_secret).touch()
        log = tmp_path / "log"
        log.write_text(f"of an earlier start: error\n{lines}")
        node, since = Node("n3", "127.0.0.1", "n3"), len("of an earlier start: error\n")
        return without_image(Namespace(image=image), "algo-1", node, layout, log, since)

    return asked


def test_a_host_whose_image_does_not_run_says_why_and_where(host_in_image):
    said = (
        "pyxis: importing docker image: x\nslurmstepd: error: pyxis: no such image\nsrun: error: n3: task 0: Exited\n"
    )
    found = host_in_image(said)
    assert (found.kind, found.host) == ("image", "algo-1")
    assert found.message.startswith("the image /x.sif does not run on n3: slurmstepd: error: pyxis: no such image; see")


def test_what_says_nothing_is_said_to_say_nothing(host_in_image):
    assert "nothing says why" in host_in_image("srun: error: n3: task 0: Exited with exit code 2\n").message


@pytest.mark.parametrize("state", [{"has_begun": True}, {"image": None}])
def test_a_host_that_has_begun_or_has_no_image_says_itself_why_it_failed(host_in_image, state):
    assert host_in_image("error", **state) is None
