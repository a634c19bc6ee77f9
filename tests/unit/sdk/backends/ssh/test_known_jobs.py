"""Jobs on a pool, as far as they are known without a connection."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from dataclasses import replace

import pytest
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from estimator_sdk import backends
from estimator_sdk.backends.ssh.backend import SshBackend
from estimator_sdk.backends.ssh.files import SshFolder, Whereabouts
from estimator_sdk.backends.ssh.job import SshJob
from estimator_sdk.backends.ssh.mirror import as_here
from estimator_sdk.backends.ssh.pool import PoolHost
from estimator_sdk.backends.supervised.job_folder.record import AttemptRecord, Process, Record, write_record
from estimator_sdk.errors import BackendError, EstimatorError, JobNotFound
from estimator_sdk.values.home import JobFolder

BEGUN = Record("begun", "InProgress", "ssh", ("algo-1",), 1.0)


@pytest.fixture
def known(tmp_path, monkeypatch):
    """Makes a job known whose client has said as much."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path))

    def made(name: str, created: float, client: Process | None = None) -> SshFolder:
        folder = SshFolder.for_job(name)
        folder.path.mkdir(parents=True, mode=0o700)
        write_record(replace(BEGUN, name=name, created=created, supervisor=client), folder)
        return folder

    return made


def test_a_job_whose_client_ended_while_it_was_started_is_shown_and_can_be_removed(known):
    known("now", time.time())
    known("then", 1.0)
    backend = SshBackend()
    assert backend.attach("now").record().status == "InProgress"
    with pytest.raises(EstimatorError, match="the job now is being started; try again when it is"):
        backend.attach("now").stop()
    then = backend.attach("then")
    assert "then was not started: its client ended before that" in str(then.record().verdict)
    then.delete()
    with pytest.raises(JobNotFound):
        backend.attach("then")


def test_a_job_whose_client_takes_long_to_start_it_is_not_taken_for_failed(known):
    """As with an image or a channel of many gigabytes."""
    with subprocess.Popen(["sleep", "180"]) as client:
        folder = known("slow", 1.0, Process.from_pid(client.pid))
        before = folder.record.read_text()
        job = SshBackend().attach("slow")
        assert [job.record().status, job.summary().status] == ["InProgress"] * 2
        assert folder.record.read_text() == before
        client.kill()
    assert "slow was not started: its client ended before that" in str(job.record().verdict)


def test_a_job_that_another_machine_starts_is_not_taken_for_failed(known):
    known("slow", 1.0, Process(1 << 22, "1", "elsewhere"))
    job = SshBackend().attach("slow")
    assert job.record().status == "InProgress"
    with pytest.raises(BackendError, match="^slow has not ended .* only elsewhere can say more; .*remove .*/ssh/slow$"):
        job.delete()


def test_a_job_whose_first_machine_has_the_same_home_is_known_once_and_as_its_client_knows_it(known):
    known("shared", time.time())
    for name in ("shared", "there"):
        folder = JobFolder.for_job(name)
        folder.path.mkdir(parents=True)
        write_record(replace(BEGUN, name=name, supervisor=Process(1 << 22, "1", "host-1")), folder)
    assert isinstance(backends.attach("shared"), SshJob)
    assert not isinstance(backends.attach("there"), SshJob)
    assert sorted((job.name, isinstance(job, SshJob)) for job in backends.jobs(None, None)) == [
        ("shared", True),
        ("there", False),
    ]


def test_where_a_job_runs_is_read_again_once_its_client_has_ended(known, monkeypatch):
    folder = known("quick", 1.0, Process(1 << 22, "1"))
    job = SshBackend().attach("quick")
    read = SshFolder.read_whereabouts

    def written_meanwhile(folder: SshFolder) -> None:
        folder.whereabouts.write_text("{")
        monkeypatch.setattr(SshFolder, "read_whereabouts", read)

    folder.whereabouts.unlink(missing_ok=True)
    monkeypatch.setattr(SshFolder, "read_whereabouts", written_meanwhile)
    with pytest.raises(EstimatorError, match="where the job quick runs cannot be read"):
        job.record()


def test_a_job_of_which_it_cannot_be_read_where_it_runs_hides_no_other_one(known):
    known("whole", 1.0)
    known("broken", 2.0).whereabouts.write_text("{")
    jobs = SshBackend().list()
    with pytest.warns(UserWarning, match="broken is shown as it was last known: where the job broken runs") as told:
        shown = [job.summary() for _ in range(2) for job in jobs][:2]
    assert len(told) == 1
    assert [(each.name, each.status) for each in shown] == [("broken", "InProgress"), ("whole", "Failed")]


def test_what_is_left_on_the_first_machine_is_told_with_the_machine():
    there = "/home/me/jobs/begun"
    kept, seen = f"what the script left is still in {there}/hosts", f'File "{there}/hosts/algo-1/code/train.py"'
    verdict = Verdict(Kind.OUTPUTS, kept, detail=f"{seen}\nthe job is kept in {there}; {there}-2 is another")
    attempt = AttemptRecord(1, 1.0, verdict=Verdict(Kind.PLATFORM, f"see {there}/supervisor.log"))
    told = replace(BEGUN, status="Failed", verdict=verdict, attempts=(attempt,), reason=f"it is in {there}/output")
    here = as_here(told, Whereabouts(PoolHost("me@gpu1", 2222), there, "file:///out"), BEGUN)
    assert here.verdict.message == f"what the script left is still in me@gpu1:{there}/hosts"
    assert here.verdict.detail == f"{seen}\nthe job is kept in me@gpu1:{there}; {there}-2 is another"
    assert here.attempts[0].verdict.message == f"see me@gpu1:{there}/supervisor.log"
    assert here.reason == f"it is in me@gpu1:{there}/output"


class Answers:
    """A session with the first machine of a job that has ended, and has left a model."""

    def ask_for_data(self, operation, data, **facts):
        output, model = "file:///there/output", "output/model.tar.gz"
        record = replace(BEGUN, name="done", status="Completed", ended=2.0, output=output).fields()
        is_known = model in facts["known"]
        pieces, contents = ([], b"") if is_known else ([(model, -1, 5)], b"model")
        return {"record": record, "files": {model: [1, 5, 0]}, "pieces": pieces, "more": False}, contents

    def close(self):
        pass


def test_of_two_clients_of_a_job_that_ends_one_puts_the_outputs_in_their_place(known, tmp_path, monkeypatch):
    """The other finds it done, and does not take what is gone by then for a fault."""
    folder = known("done", 1.0)
    write_record(replace(BEGUN, name="done", output=f"file://{tmp_path}/place"), folder)
    folder.write_whereabouts(Whereabouts(PoolHost("host-1"), "/there", f"file://{tmp_path}/place"))
    first, second = (SshJob(folder, Answers()) for _ in range(2))
    copied, real = [], shutil.copytree

    def copytree(*places, **options):
        copied.append(places)
        if len(copied) == 1:
            other.start()
            other.join(0.5)  # while this client is slow
        return real(*places, **options)

    found = []
    other = threading.Thread(target=lambda: found.append(second.record()))
    monkeypatch.setattr(shutil, "copytree", copytree)
    found.append(first.record())
    other.join()
    assert [record.status for record in found] == ["Completed"] * 2
    assert len(copied) == 1 and not folder.output.exists()
    assert (tmp_path / "place" / "model.tar.gz").read_text() == "model"
