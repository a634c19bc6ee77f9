"""The machine that a job cannot lose: the first one, where its supervisor is."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest
from estimator_container.runtime.children import descendants

from estimator_sdk import Estimator, Job, JobFailed
from estimator_sdk.backends.ssh import job as ssh_job
from estimator_sdk.backends.ssh.pool import PoolHost
from estimator_sdk.backends.ssh.session import connection
from estimator_sdk.errors import BackendError
from tests.ssh import seen
from tests.ssh.pool import pool
from tests.waiting import SECONDS, wait_for

UP = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


@pytest.fixture
def own_pool(tmp_path, monkeypatch):
    """Two machines of this test's own, for it cuts their power."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(ssh_job, "UNREACHABLE_SECONDS", 1.0)
    with pool(2) as made:
        monkeypatch.setenv("PATH", made.path)
        yield made


@pytest.fixture
def job(own_pool, tmp_path):
    """One on both of them, whose hosts are up."""
    (tmp_path / "train.py").write_text(UP)
    made = Estimator(entry_point=str(tmp_path / "train.py"), hosts=own_pool.names, instance_count=2).fit(wait=False)
    with contextlib.closing(made.logs(stream="stdout", follow=True)) as lines:
        assert {next(lines).data, next(lines).data} == {b"up\n"}
    return made


@pytest.mark.long
def test_a_job_whose_first_machine_loses_its_power_says_so_and_has_failed_when_that_is_back(own_pool, job):
    told: list[str] = []
    following = threading.Thread(target=follow, args=(job, told))
    following.start()

    own_pool.cut_power("host-1")
    wait_for(lambda: told)
    assert told[0].startswith("unreachable: host-1 cannot be reached by ssh: ")
    assert "the job goes on if host-1, where its supervisor is, still runs" in told[0]
    wait_for(lambda: not list(seen.processes(job)))
    with pytest.warns(UserWarning, match=f"{job.name} is shown as it was last known: host-1 cannot be reached by ssh"):
        assert (job.status, Job.attach(job.name).status) == ("InProgress", "InProgress")
    with pytest.raises(BackendError, match="not known whether .* was asked to stop: host-1 cannot be reached"):
        job.stop()
    with pytest.warns(UserWarning, match=f"{job.name} is shown as it was last known: host-1 cannot be reached by ssh"):
        assert Job.attach(job.name).started.summary().status == "InProgress"
    with pytest.raises(BackendError, match=f"not known whether {job.name} has ended.*remove .*{job.name} to forget"):
        job.delete()

    own_pool.start_machine("host-1")
    following.join(SECONDS)
    assert told[1:] == ["running: host-1 answers again"]
    with pytest.raises(JobFailed, match="ended without a result"):
        job.wait(SECONDS)
    job.delete()
    assert not job.folder.exists()


@pytest.mark.long
def test_a_first_machine_that_stood_still_is_named_and_no_other(own_pool, job):
    """For so long that the others gave up on the job's supervisor, and ended their hosts."""
    still = [pid for pid, words in own_pool.processes("host-1").items() if job.name in words]
    for pid in still:
        os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: not any(job.name in words for words in own_pool.processes("host-2").values()))
    for pid in still:
        os.kill(pid, signal.SIGCONT)
    itself = (
        "algo-1 stood still or was cut off: |host-2 heard nothing from the job's supervisor on host-1, which stood "
    )
    with pytest.raises(JobFailed, match=itself) as failed:
        job.wait(SECONDS)
    assert failed.value.verdict.host in (None, "algo-1")


def test_a_machine_whose_file_systems_stand_still_is_named_though_ssh_answers(own_pool, monkeypatch):
    with contextlib.closing(connection.Session(PoolHost("host-1"))) as session:
        session.ask("facts")
        monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.5)
        words = own_pool.processes("host-1")
        inside = descendants(own_pool.servers["host-1"].pid)
        (program,) = (pid for pid in inside if words.get(pid, "").startswith("python3 -I -S"))
        os.kill(program, signal.SIGSTOP)
        try:
            with pytest.raises(
                connection.Unreachable, match="on host-1 has not answered for 0.5 s; see by `ssh host-1 ls`"
            ):
                session.ask("facts")
        finally:
            os.kill(program, signal.SIGCONT)


def follow(job: Job, told: list[str]) -> None:
    with contextlib.closing(job._started.blocks(True, lambda host, event: tell(told, event))) as blocks:
        for _ in blocks:
            pass


def tell(told: list[str], event: object) -> None:
    if isinstance(status := getattr(event, "status", None), str):
        told.append(f"{status}: {getattr(event, 'message', '')}")
