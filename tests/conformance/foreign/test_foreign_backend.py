"""A backend that another package brings is started, found, followed, listed, stopped and deleted like ours."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_sdk import Estimator, EstimatorError, Job, JobFailed, JobNotFound, list_jobs
from estimator_sdk.cli.main import main
from tests.conformance.foreign import shell_backend
from tests.waiting import SECONDS, wait_for


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package, as pip leaves it: a name, a version, and an entry point."""
    facts = tmp_path / "site" / "shell_backend-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: shell-backend\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        f"[estimator_sdk.backends]\nshell = {shell_backend.__name__}:{shell_backend.ShellBackend.__name__}\n"
    )
    monkeypatch.syspath_prepend(str(facts.parent))
    monkeypatch.setenv(shell_backend.PLACE, str(tmp_path / "jobs"))
    (tmp_path / "jobs").mkdir()


@pytest.fixture
def fit(tmp_path: Path):
    def fit(source: str, **how: object) -> Job:
        (tmp_path / "train.py").write_text(source)
        return Estimator(entry_point=tmp_path / "train.py", backend="shell").fit(**how)

    return fit


def cli(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def test_it_is_started_and_followed_to_its_end(fit):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        job = fit("print('loss: 0.25')")
    assert (job.status, job.backend) == ("Completed", "shell")
    assert "[algo-1]<stdout>:loss: 0.25\n" in shown.getvalue()


def test_its_failure_is_raised_with_its_verdict(fit):
    with pytest.raises(JobFailed, match="algo-1 exited with code 7"):
        fit("raise SystemExit(7)", logs="none")


def test_it_is_found_and_listed_by_any_process_and_the_command_line(fit):
    job = fit("print('hello')", logs="none")
    found = Job.attach(job.name)
    assert [line.data for line in found.logs()] == [b"hello\n"]
    assert job.name in {each.name for each in list_jobs()}
    assert [each.name for each in list_jobs("shell")] == [job.name]
    _, out, _ = cli("ps", "--json")
    assert ("shell", "Completed") in {(each["backend"], each["status"]) for each in json.loads(out)}
    search = f"import sys; sys.path[:0] = {sys.path!r}"
    program = f"{search}; from estimator_sdk import Job; print(Job.attach({job.name!r}).status)"
    assert subprocess.check_output([sys.executable, "-c", program]) == b"Completed\n"


def test_it_is_stopped(fit):
    job = fit("import time; time.sleep(60)", wait=False)
    wait_for((job.folder / "pid").exists)
    assert cli("stop", job.name, "--wait")[:2] == (0, f"{job.name} is Stopped\n")


def test_it_is_deleted_once_it_has_ended_and_not_before(fit):
    job = fit("import time; time.sleep(60)", wait=False)
    wait_for((job.folder / "pid").exists)
    with pytest.raises(EstimatorError, match="stop it first"):
        job.delete()
    job.stop()
    job.wait(SECONDS)
    assert cli("delete", job.name)[0] == 0
    with pytest.raises(JobNotFound, match="the shell has no job"):
        Job.attach(job.name)


def test_the_doctor_asks_it_what_it_needs():
    _, out, _ = cli("doctor", "--json", "--needs", "shell")
    assert ("shell", True) in {(each["what"], each["is_there"]) for each in json.loads(out)}


def test_a_name_that_is_nearly_its_own_is_corrected(tmp_path):
    (tmp_path / "train.py").touch()
    with pytest.raises(EstimatorError, match="did you mean 'shell'"):
        Estimator(entry_point=tmp_path / "train.py", backend="shel").plan()


@pytest.mark.parametrize("fault", ["raise ImportError('no such thing')", "class ShellBackend:\n    name = 'shell'"])
def test_one_that_cannot_be_used_hides_no_other_job(tmp_path, fault):
    """Such as one that was written for an older SDK."""
    (tmp_path / "site" / "broken_backend.py").write_text(fault)
    (facts,) = (tmp_path / "site").glob("*.dist-info")
    (facts / "entry_points.txt").write_text("[estimator_sdk.backends]\nshell = broken_backend:ShellBackend\n")
    sys.modules.pop("broken_backend", None)
    code, _, err = cli("ps")
    assert code == 0 and "backend 'shell', which another package provides, cannot be used: " in err
    with pytest.warns(UserWarning, match="cannot be used"), pytest.raises(JobNotFound, match="there is no job"):
        Job.attach("of-nobody")
    code, out, _ = cli("doctor", "--json", "--needs", "shell")
    assert (code, {each["what"]: each["is_there"] for each in json.loads(out)}["shell"]) == (1, False)


def test_one_whose_service_is_away_hides_no_other_job(monkeypatch):
    def away(self, *_):
        raise OSError("nobody answers")

    monkeypatch.setattr(shell_backend.ShellBackend, "list", away)
    monkeypatch.setattr(shell_backend.ShellBackend, "attach", away)
    code, _, err = cli("ps")
    assert code == 0 and "the jobs of backend 'shell' cannot be listed: nobody answers" in err
    with pytest.raises(JobNotFound, match="backend 'shell' could not be queried: nobody answers"):
        Job.attach("of-nobody")
