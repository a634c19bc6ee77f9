"""Records that are foreign, copied or damaged, and names that are paths: nothing is read or signalled by their word."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk import Estimator, EstimatorError, InvalidArgument, Job, JobSpec, list_jobs
from estimator_sdk.backends.supervised.job_folder.record import Process, Record, write_record
from estimator_sdk.backends.supervised.job_folder.supervision import is_supervisor, signal_supervisor
from estimator_sdk.cli.commands import complete
from estimator_sdk.cli.main import main
from estimator_sdk.job import model_files
from estimator_sdk.values.home import JobFolder
from tests.waiting import SECONDS

WAITS = "import time\nprint('up', flush=True)\ntime.sleep(600)"
NOT_NAMES = [
    "..",
    ".",
    "",
    "a/b",
    "../a",
    "/etc",
    "-a",
    "a-",
    "a b",
    "a\nb",
    "a\0b",
    "$(id)",
    "a" * 64,
    "\N{SNOWMAN}",
    "\ud800",
]
VERBS = ["logs", "attach", "stop", "why", "describe", "download", "checkpoints ls"]
ONE_ATTEMPT = [{"number": 1, "began": 1.0, "ended": 2.0, "verdict": None}]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """A home for each test."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def innocent() -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours that has nothing to do with jobs."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def running(tmp_path) -> Iterator[Job]:
    (tmp_path / "train.py").write_text(WAITS)
    job = Estimator(entry_point=str(tmp_path / "train.py"), backend="process").fit(wait=False, job_name="running")
    assert next(job.logs(stream="stdout", follow=True)).data == b"up\n"
    yield job
    job.stop()
    job.wait(SECONDS)


def planted(folder: Path, supervisor: Process | None, /, **fields: object) -> Path:
    """The folder of a job that runs, by its own record's word."""
    folder.mkdir(parents=True)
    record = Record(folder.name, "InProgress", "process", ("algo-1",), 1.0, supervisor=supervisor)
    write_record(record, JobFolder(folder))
    document = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps({**document, **fields}))
    (folder / "request.json").write_text("{}")
    return folder


# Names.


def test_a_path_is_not_a_name_and_nothing_beside_the_jobs_is_read_or_signalled(tmp_path, home, innocent, capfd):
    (home / "jobs").mkdir(parents=True)
    planted(tmp_path / "elsewhere", Process.from_pid(innocent.pid))
    for name in ("../../elsewhere", str(tmp_path / "elsewhere"), "../jobs/../../elsewhere"):
        with pytest.raises(InvalidArgument, match="is not allowed"):
            Job.attach(name).stop()
        for verb in VERBS:
            assert main([*verb.split(), name]) == 2
            assert "is not allowed" in capfd.readouterr().err
    assert innocent.poll() is None


@pytest.mark.parametrize("name", NOT_NAMES, ids=ascii)
def test_what_is_not_a_name_is_refused_at_every_door(home, tmp_path, name):
    script = tmp_path / "train.py"
    script.touch()
    estimator = Estimator(entry_point=str(script), backend="process")
    document = {**estimator.spec(job_name="a").to_request(), "TrainingJobName": name}
    doors = {
        "attach": lambda: Job.attach(name),
        "a folder": lambda: JobFolder.for_job(name),
        "plan": lambda: estimator.plan(job_name=name),
        "fit": lambda: estimator.fit(job_name=name),
        "a document": lambda: JobSpec.from_request(document).fit(backend="process"),
        "a document's name": lambda: estimator.spec(job_name="a").fit(backend="process", job_name=name),
    }
    for door, knock in doors.items():
        with pytest.raises(InvalidArgument):
            knock()
            raise AssertionError(door)
    assert not list(home.glob("jobs/*"))


@given(name=st.text(max_size=70) | st.from_regex(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"))
def test_the_folder_of_any_name_is_one_of_the_jobs(name):
    try:
        folder = JobFolder.for_job(name)
    except InvalidArgument:
        return
    assert folder.path.parent == JobFolder.for_job("a").path.parent and folder.path.name == name
    assert os.path.normpath(folder.path) == str(folder.path)


def test_a_folder_whose_name_no_job_may_have_is_no_job(home):
    for name in (
        each for each in NOT_NAMES if "/" not in each and each.strip(".") and each.isascii() and "\0" not in each
    ):
        planted(home / "jobs" / name, None, status="Completed")
    Path(os.fsdecode(os.fsencode(home / "jobs") + b"/\xff")).mkdir()
    planted(home / "jobs" / "real", None, status="Completed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [job.name for job in list_jobs()] == ["real"]
    assert complete.candidates(2, ["why", ""]) == ["real"]


# Who is signalled.


def test_a_record_names_any_process_and_it_is_left_alone(home, innocent):
    folder = planted(home / "jobs" / "planted", Process.from_pid(innocent.pid))
    job = Job.attach("planted")
    job.stop()
    assert main(["stop", "planted"]) == 0
    assert (job.status, innocent.poll()) == ("Failed", None)
    assert "ended without a result" in job.why()
    signal_supervisor(Process.from_pid(innocent.pid), JobFolder(folder), signal.SIGTERM)
    assert innocent.poll() is None


def test_a_copy_of_a_job_s_folder_does_not_stop_the_job(home, running):
    shutil.copytree(running.folder, home / "jobs" / "copied")
    copy = Job.attach("copied")
    copy.stop()
    assert copy.status == "Failed"
    assert running.status == "InProgress"
    supervisor = running._started.record().supervisor
    assert is_supervisor(supervisor, JobFolder(running.folder))
    assert not is_supervisor(supervisor, JobFolder(copy.folder))


def test_a_number_that_another_process_has_now_is_not_signalled(running):
    supervisor = running._started.record().supervisor
    for earlier in (Process(supervisor.pid, "1"), Process(supervisor.pid, "")):
        assert not is_supervisor(earlier, JobFolder(running.folder))
        signal_supervisor(earlier, JobFolder(running.folder), signal.SIGTERM)
    assert running.status == "InProgress"


def test_a_job_is_known_and_stopped_through_a_link_to_the_home(home, running, monkeypatch):
    home.with_name("link").symlink_to(home)
    monkeypatch.setenv("ESTIMATOR_HOME", str(home.with_name("link")))
    job = Job.attach("running")
    assert job.status == "InProgress"
    job.stop()
    assert job.wait(SECONDS) == "Stopped"


def test_another_user_s_process_is_no_supervisor_of_ours_whatever_it_calls_itself(tmp_path, home):
    tmp_path.chmod(0o755)
    script = tmp_path / "estimator_sdk" / "backends" / "supervised"
    folder = planted(home / "jobs" / "planted", None)
    words = ["-c", "sleep 60; :", str(script), str(folder)]
    for user in (65534, os.geteuid()):
        with subprocess.Popen(["sh", *words], user=user, cwd="/") as process:
            try:
                assert is_supervisor(Process.from_pid(process.pid), JobFolder(folder)) == (user == os.geteuid())
            finally:
                process.kill()


# Damage.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just("../../.."),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["pid", "start", "verdict"]), inner),
    max_leaves=4,
)
FIELDS = [
    "name",
    "status",
    "backend",
    "hosts",
    "created",
    "attempts",
    "ended",
    "reason",
    "verdict",
    "output",
    "model_data",
]


def ask(job: Job) -> None:
    """All that a job is asked in passing."""
    _ = (job.status, job.hosts, job.attempts, job.created, job.model_data, job.why(), job.log_files, list(job.logs()))
    job.stop()


@given(fields=st.dictionaries(st.sampled_from([*FIELDS, "supervisor", "format", "more"]), JSON, max_size=3))
def test_any_record_is_a_state_or_a_sentence(tmp_path_factory, fields):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(home))
        folder = planted(home / "jobs" / "damaged", Process(1 << 22, "1"), **fields)
        planted(home / "jobs" / "whole", None, status="Completed")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that names the record
            assert "whole" in [job.name for job in list_jobs()]
        try:
            ask(Job.attach("damaged"))
        except EstimatorError as error:
            assert "damaged cannot be read" in str(error), error
        assert folder.exists()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format": 1e999}', "null", "[]", '{"format": 1, "attempts": 1000000000}', "\0", ""]
)
def test_a_record_that_is_none_is_a_sentence(home, text):
    planted(home / "jobs" / "damaged", None).joinpath("record.json").write_text(text)
    with pytest.raises(EstimatorError, match="the record of the job damaged cannot be read"):
        Job.attach("damaged")


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["a FIFO", "a file without an end"]
)
def test_what_is_not_a_file_is_not_waited_for(home, tmp_path, make):
    folder = planted(home / "jobs" / "planted", None, status="Completed", attempts=ONE_ATTEMPT)
    job = Job.attach("planted")
    log, model = job.log_files[0], tmp_path / "model.tar.gz"
    log.parent.mkdir(parents=True)
    for path in (log, model):
        make(path)
    assert list(job.logs()) == []
    with pytest.raises(EstimatorError, match="it is not a file"):
        model_files.fetch(f"file://{model}", tmp_path)
    for name in ("request.json", "record.json"):
        (folder / name).unlink()
        make(folder / name)
    with pytest.raises(EstimatorError, match="the request of the job planted cannot be read.*it is not a file"):
        _ = job.request
    with pytest.warns(UserWarning, match="the record of the job planted cannot be read.*it is not a file"):
        assert list_jobs() == []


@pytest.mark.parametrize("pid", [0, -1, 1 << 70])
def test_a_number_that_no_process_has_is_a_damaged_record(home, pid):
    planted(home / "jobs" / "planted", None, supervisor={"pid": pid, "start": "1"})
    with pytest.raises(EstimatorError, match=f"cannot be read: .*{pid} is not a process ID"):
        Job.attach("planted")


@pytest.mark.parametrize("text", ["", "[" * 100_000, "5", None])
def test_a_request_that_is_none_is_a_sentence(home, text):
    request = planted(home / "jobs" / "damaged", None, status="Completed") / "request.json"
    request.unlink() if text is None else request.write_text(text)
    with pytest.raises(EstimatorError, match="the request of the job damaged cannot be read"):
        _ = Job.attach("damaged").request


def test_a_host_of_a_record_is_no_path(tmp_path, home):
    planted(home / "jobs" / "planted", None, status="Completed", hosts=["../../../../elsewhere"])
    with pytest.raises(EstimatorError, match="'../../../../elsewhere' is not the name of a host"):
        list(Job.attach("planted").logs())


def test_a_note_of_the_service_that_is_damaged_is_no_note(home):
    from estimator_sdk.backends.sagemaker import submitted

    submitted.note("a", "eu-west-1")
    assert submitted.region_of("a") == "eu-west-1"
    for text in ("", "[]", "{}", '{"region": 5}'):
        (home / "sagemaker" / "a.json").write_text(text)
        assert submitted.region_of("a") is None
    with pytest.raises(InvalidArgument):
        submitted.note("../a", "eu-west-1")
