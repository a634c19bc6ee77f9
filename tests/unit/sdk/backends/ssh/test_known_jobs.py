"""Jobs on a pool, as far as they are known without a connection."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from estimator_sdk.backends.ssh.backend import SshBackend
from estimator_sdk.backends.ssh.files import SshFolder
from estimator_sdk.backends.supervised.job_folder.record import Record, write_record
from estimator_sdk.errors import EstimatorError, JobNotFound

BEGUN = Record("begun", "InProgress", "ssh", ("algo-1",), 1.0)


@pytest.fixture
def known(tmp_path, monkeypatch):
    """Makes a job known whose client has said as much."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path))

    def made(name: str, created: float) -> SshFolder:
        folder = SshFolder.for_job(name)
        folder.path.mkdir(parents=True, mode=0o700)
        write_record(replace(BEGUN, name=name, created=created), folder)
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


def test_a_job_of_which_it_cannot_be_read_where_it_runs_hides_no_other_one(known):
    known("whole", 1.0)
    known("broken", 2.0).whereabouts.write_text("{")
    jobs = SshBackend().list()
    with pytest.warns(UserWarning, match="broken is shown as it was last known: where the job broken runs") as told:
        shown = [job.summary() for _ in range(2) for job in jobs][:2]
    assert len(told) == 1
    assert [(each.name, each.status) for each in shown] == [("broken", "InProgress"), ("whole", "Failed")]
