import os
import re
import time

import pytest
from estimator_container.failures.kind import Kind

from estimator_sdk.backends.slurm import accounting, queue
from estimator_sdk.backends.slurm.backend import SlurmBackend
from estimator_sdk.backends.slurm.files import SlurmFolder
from estimator_sdk.backends.slurm.job import LONG_OVER_SECONDS, SlurmJob, _ended
from estimator_sdk.backends.slurm.options import SlurmOptions
from estimator_sdk.backends.slurm.queue import Queued
from estimator_sdk.backends.status import AttemptRecord
from estimator_sdk.backends.supervised.job_folder.record import Process, Record, read_record, write_record
from estimator_sdk.errors import BackendError, EstimatorError, InvalidArgument


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job").mkdir()
    return SlurmFolder(tmp_path / "job")


def record(**changes):
    given = {"name": "digits", "status": "InProgress", "backend": "slurm", "created": 1.0, "hosts": ("algo-1",)}
    return Record(**{**given, **changes})


def ended(folder, state, **changes):
    known = Queued(state, "None") if state is not None else None
    return _ended(record(**changes), 4711, known, folder)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("CANCELLED", "job 4711 of Slurm was cancelled"),
        ("CANCELLED by 1000", "job 4711 of Slurm was cancelled"),
        ("TIMEOUT", "job 4711 of Slurm reached Slurm's time limit"),
    ],
)
def test_a_job_that_somebody_or_a_limit_ended_is_stopped(folder, state, reason):
    found = ended(folder, state)
    assert (found.status, found.reason, found.verdict) == ("Stopped", reason, None)
    assert found.ended is not None


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        ("NODE_FAIL", Kind.HOST_LOST, "a node of job 4711 of Slurm failed"),
        ("BOOT_FAIL", Kind.HOST_LOST, "did not boot"),
        ("OUT_OF_MEMORY", Kind.OUT_OF_MEMORY, "needed more memory than it was granted"),
        ("PREEMPTED", Kind.PREEMPTED, "was preempted, and is not started again"),
        ("DEADLINE", Kind.PLATFORM, "before its deadline"),
        ("FAILED", Kind.PLATFORM, "the supervisor of digits ended without a result; job 4711 of Slurm is FAILED"),
        ("COMPLETED", Kind.PLATFORM, "ended without a result; job 4711 of Slurm is COMPLETED"),
        (None, Kind.PLATFORM, "ended without a result; job 4711 of Slurm is no longer known"),
    ],
)
def test_a_job_that_ended_in_another_way_has_failed_and_says_where_to_look(folder, state, kind, words):
    found = ended(folder, state)
    assert (found.status, found.verdict.kind) == ("Failed", kind)
    assert words in found.verdict.message
    assert found.verdict.message.endswith(f"; see {folder.supervisor_log}")


def test_the_last_words_of_a_supervisor_are_in_the_verdict(folder):
    folder.supervisor_log.write_text("Traceback\nMemoryError: no room\n")
    assert "MemoryError: no room" in ended(folder, "FAILED").verdict.detail


def test_what_its_script_said_before_the_supervisor_began_is_no_reason_to_run_it_again(folder):
    folder.supervisor_log.write_text("slurm['python']: /old/python is not Python 3.9 or later on n1\n")
    verdict = ended(folder, "FAILED").verdict
    assert verdict.kind is Kind.CONFIGURATION and "before the supervisor of digits began" in verdict.message
    assert ended(folder, "FAILED", attempts=(AttemptRecord(1, 1.0),)).verdict.kind is Kind.PLATFORM


def test_an_attempt_that_ran_ends_with_its_job(folder):
    before = AttemptRecord(1, 1.0, 2.0)
    first, last = ended(folder, "NODE_FAIL", attempts=(before, AttemptRecord(2, 3.0))).attempts
    assert first == before
    assert last.ended is not None and last.verdict.kind is Kind.HOST_LOST


def test_a_folder_tells_the_number_that_was_written_there(folder):
    assert folder.read_number() is None
    folder.write_number(4711)
    assert (folder.read_number(), folder.read_cluster()) == (4711, "")
    folder.write_number(4712, "alps")
    assert (folder.read_number(), folder.read_cluster()) == (4712, "alps")


@pytest.mark.parametrize("damaged", ["", "{", "[]", "{}", "[7]", '{"number": "1", "cluster": 1}', "[" * 100_000])
def test_a_damaged_number_is_none(folder, damaged):
    folder.submission.write_text(damaged)
    assert (folder.read_number(), folder.read_cluster()) == (None, "")


def test_a_number_of_an_earlier_version_is_one_of_a_cluster_that_is_not_known(folder):
    folder.submission.write_text('{"number": 4711}')
    assert (folder.read_number(), folder.read_cluster()) == (4711, "")


def test_a_job_whose_controller_does_not_answer_goes_on_as_far_as_anybody_knows(folder, monkeypatch):
    write_record(record(), folder)
    folder.write_number(4711)
    monkeypatch.setenv("PATH", "/nowhere")  # where no squeue answers
    monkeypatch.setattr(queue, "_last", queue._Look(-queue.ASK_AGAIN_SECONDS, -queue.ASK_AGAIN_SECONDS, None))
    job = SlurmJob(folder)
    first, since = job.record(), queue.silent_since()
    assert (first.status, first.verdict) == ("InProgress", None)
    assert re.match("unknown since [-0-9]+ [:0-9]+, because Slurm's controller does not answer; see", first.reason)
    assert queue.look(0.0) is None and queue.silent_since() == since


@pytest.fixture
def submitted(folder, monkeypatch):
    """Makes the job 4711, of which Slurm's controller says this, and its accounting what a function says."""

    def made(known, accounted=lambda: "", **changes):
        write_record(record(**changes), folder)
        folder.write_number(4711)
        folder.given.touch()
        monkeypatch.setattr(queue, "look", lambda *_, **__: {4711: known} if known is not None else {})
        monkeypatch.setattr(queue, "has_asked_since", lambda moment: True)
        monkeypatch.setattr(accounting, "_last", accounting._Silence(-queue.ASK_AGAIN_SECONDS, ""))
        monkeypatch.setattr(queue, "ask", lambda *command, **_: asked.append(command) or accounted())
        asked = []
        return SlurmJob(folder), asked

    return made


@pytest.fixture
def of_another_cluster(folder, submitted, monkeypatch):
    """The same number on this machine's cluster, `here`, where it is another job."""
    job, asked = submitted(Queued("FAILED", "None"))
    folder.write_number(4711, "there")
    monkeypatch.setattr(queue, "talks_to", lambda its: its == "here")
    return job, asked


def test_what_this_cluster_says_is_not_taken_for_a_job_of_another(folder, of_another_cluster):
    job, asked = of_another_cluster
    found = job.record()
    assert (found.status, found.verdict) == ("InProgress", None)
    assert found.reason == "it was submitted on cluster there, and only that can say whether it still runs"
    with pytest.raises(
        BackendError, match="on cluster there; stop it on a machine of that cluster, or with SLURM_CLUSTERS=there"
    ):
        job.stop()
    with pytest.raises(BackendError, match=f"only cluster there can say more; delete it there.*remove {folder.path}"):
        job.delete()
    assert asked == [] and not folder.stop_request.exists() and folder.given.exists()


@pytest.mark.parametrize("its", ["here", ""])
def test_a_job_of_this_cluster_or_of_one_that_is_not_known_is_judged(folder, of_another_cluster, its):
    job, _ = of_another_cluster
    folder.write_number(4711, its)
    assert job.record().status == "Failed"


def test_nothing_is_judged_or_stopped_while_it_cannot_be_told_whose_the_job_is(folder, of_another_cluster, monkeypatch):
    job, asked = of_another_cluster
    monkeypatch.setattr(queue, "talks_to", lambda its: None)
    assert (job.record().status, job.record().reason[:7]) == ("InProgress", "unknown")
    with pytest.raises(BackendError, match="was not stopped: Slurm's controller does not say"):
        job.stop()
    assert asked == [] and not folder.stop_request.exists() and folder.given.exists()


def test_a_job_that_waits_for_one_of_another_cluster_is_refused(folder, of_another_cluster, monkeypatch):
    backend = SlurmBackend()
    monkeypatch.setattr(backend, "attach", lambda name: of_another_cluster[0])
    with pytest.raises(InvalidArgument, match="a job of cluster there, and no job of another one can wait"):
        backend._after_another(SlurmOptions(after="digits"))


def test_a_job_that_is_held_because_its_reservation_was_removed_waits(folder, submitted):
    job, asked = submitted(Queued("RESV_DEL_HOLD", "ReservationDeleted"))
    assert (job.record().status, job.record().reason) == ("InProgress", "pending: ReservationDeleted")
    assert folder.given.exists()
    job.stop()
    assert asked == [("scancel", "4711")]


@pytest.mark.parametrize("why", ["slurmdbd does not answer", "sacct has had no answer for 30 s"])
def test_a_job_that_only_an_accounting_knows_which_does_not_answer_is_not_taken_for_failed(folder, submitted, why):
    says = []

    def accounted():
        if not says:
            raise BackendError(why)
        return says[0]

    job, asked = submitted(None, accounted)
    first = job.record()
    assert (first.status, why in first.reason) == ("InProgress", True)
    assert job.record() == first and len(asked) == 1  # it is not asked for every look
    assert read_record(folder).status == "InProgress" and folder.given.exists()
    says.append("CANCELLED by 1000|0:15")
    accounting._last = accounting._Silence(-queue.ASK_AGAIN_SECONDS, "")
    assert job.record().status == read_record(folder).status == "Stopped"


@pytest.mark.parametrize(
    "why",
    [
        "sacct says: Slurm accounting storage is disabled",
        "sacct is not on PATH, so this machine is no login node of a Slurm cluster",
    ],
)
def test_a_job_that_nobody_knows_on_a_cluster_without_accounting_has_failed(folder, submitted, why):
    def accounted():
        raise BackendError(why)

    job, _ = submitted(None, accounted)
    assert "job 4711 of Slurm is no longer known" in job.record().verdict.message
    assert read_record(folder).status == "Failed"


def test_a_job_that_runs_on_a_node_is_refused_as_one_that_runs(submitted):
    job, _ = submitted(Queued("RUNNING", "None"), supervisor=Process(7, "1", "n1"))
    with pytest.raises(EstimatorError, match="InProgress") as refused:
        job.delete()
    assert "n1" not in str(refused.value)


def test_an_end_that_the_accounting_has_not_heard_of_yet_is_none(folder, submitted):
    job, _ = submitted(None, lambda: "RUNNING|0:0")
    assert job.record().status == read_record(folder).status == "InProgress"
    assert SlurmJob(folder).record().status == "InProgress"
    long_ago = time.time() - 2 * LONG_OVER_SECONDS
    os.utime(folder.forgotten, (long_ago, long_ago))  # nobody tells it of that end any more
    assert SlurmJob(folder).record().status == "Failed"
