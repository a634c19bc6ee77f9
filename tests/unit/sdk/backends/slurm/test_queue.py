import os
import subprocess
import time

import pytest

from estimator_sdk.backends.slurm import queue
from estimator_sdk.backends.slurm.queue import OVER, Queued
from estimator_sdk.errors import BackendError

UID = os.getuid()


def test_a_line_of_the_queue_is_a_job_by_its_number():
    found = queue._parsed(f"4711|PENDING|Priority|2026-11-25T14:20:00|N/A|{UID}|gpu|7")
    assert found == (4711, Queued("PENDING", "Priority", "2026-11-25T14:20:00"))


def test_a_start_that_slurm_does_not_know_is_empty():
    assert queue._parsed(f"4711|PENDING|Resources|N/A|N/A|{UID}|gpu|7") == (4711, Queued("PENDING", "Resources"))


@pytest.mark.parametrize(
    "line",
    [
        *("", "slurm_load_jobs error", "1|RUNNING|None", "x|y|z|N/A"),
        f"4711_3|RUNNING|None|N/A|N/A|{UID}|gpu|7",
        f"4711|RUNNING|None|N/A|N/A|{UID + 1}|gpu|7",
    ],
)
def test_any_other_line_is_no_job_of_ours(line):
    assert queue._parsed(line) is None


def test_who_waits_is_told_why_and_until_when():
    assert Queued("PENDING", "Resources").why_pending == "Resources"
    today = time.strftime("%Y-%m-%d")
    assert (
        Queued("PENDING", "Priority", f"{today}T14:20:00", ahead=3).why_pending == "Priority, 3 ahead, estimated 14:20"
    )
    assert Queued("PENDING", "None", "soon").why_pending == "estimated soon"
    assert Queued("PENDING", "None").why_pending == ""


@pytest.mark.parametrize("state", sorted(OVER))
def test_a_job_in_any_of_these_states_is_over(state):
    assert Queued(state, "None").is_over


@pytest.mark.parametrize(
    "state",
    [
        *("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"),
        *("RESIZING", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "RESV_DEL_HOLD", "OF_A_LATER_SLURM"),
    ],
)
def test_a_job_in_any_other_state_may_go_on(state):
    assert not Queued(state, "None").is_over


def test_the_name_of_a_cluster_is_asked_for_once(monkeypatch):
    asked = []

    def ask(*command, **_):
        asked.append(command)
        if len(asked) == 1:
            raise BackendError("no answer")
        return "Configuration data as of 2026-11-25T14:20:00\nAccountingStorageHost  = db\nClusterName    = Alps\n"

    monkeypatch.setattr(queue, "ask", ask)
    monkeypatch.setattr(queue, "_cluster", ((), 0.0, ""))
    assert (queue.cluster(), queue.talks_to("alps"), len(asked)) == ("", None, 1)  # a controller that is down is spared
    monkeypatch.setattr(queue, "ASK_AGAIN_SECONDS", 0.0)
    assert [queue.cluster() for _ in range(3)] == ["Alps"] * 3
    assert asked == [("scontrol", "show", "config")] * 2
    assert (queue.talks_to("alps"), queue.talks_to("jura")) == (True, False)
    monkeypatch.setenv("SLURM_CONF", "/of/another")
    assert queue.cluster() == "Alps" and len(asked) == 3


def test_who_talks_to_several_clusters_would_take_a_number_for_that_of_a_job_of_any(monkeypatch):
    monkeypatch.setattr(queue, "ask", lambda *_, **__: pytest.fail("`scontrol` says nothing of several"))
    for named, is_known in (("jura", True), ("alps,jura", False), ("all", False)):
        monkeypatch.setenv("SLURM_CLUSTERS", named)
        assert queue.talks_to("jura") is is_known


def test_facts_are_the_words_of_a_line_that_say_something():
    line = "JobId=7 JobName=a=b Reason=TimeLimit Comment= OS=Linux 6.1 #1 SMP Restarts=1"
    assert queue.facts(line) == {
        "JobId": "7",
        "JobName": "a=b",
        "Reason": "TimeLimit",
        "Comment": "",
        "OS": "Linux",
        "Restarts": "1",
    }
    assert queue.facts("") == {}


def test_a_program_that_is_not_there_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendError, match="squeue is not on PATH.*module load slurm"):
        queue.ask("squeue")


def test_what_a_program_says_against_it_is_one_line():
    with pytest.raises(BackendError, match="^/bin/sh says: error: no such partition$"):
        queue.ask("/bin/sh", "-c", "echo 'error:\n no such  partition' >&2; exit 1")
    with pytest.raises(BackendError, match="^/bin/sh says: exit code 3$"):
        queue.ask("/bin/sh", "-c", "exit 3")


def test_a_program_has_its_text_and_its_variables_alone():
    assert queue.ask("/bin/cat", text="#!/bin/sh\n") == "#!/bin/sh\n"
    assert queue.ask("/usr/bin/env", variables={"SLURM_CONF": "/x"}) == "SLURM_CONF=/x\n"


def test_a_controller_that_does_not_answer_is_a_sentence(monkeypatch):
    def late(command, **_):
        raise subprocess.TimeoutExpired(command, 30)

    monkeypatch.setattr(subprocess, "run", late)
    with pytest.raises(BackendError, match="no answer from Slurm's controller for 30 s; see `scontrol ping`"):
        queue.ask("squeue")
