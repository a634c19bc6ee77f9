"""Outputs that take nothing or not everything, and a home that takes nothing: the job and its exit code stand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from estimator_sdk import Estimator, EstimatorError, HorovodRunner, Job, JobFailed, list_jobs
from estimator_sdk.backends.docker.images import build
from estimator_sdk.backends.sagemaker import submitted
from estimator_sdk.cli.main import main
from estimator_sdk.code import store as code_store
from tests.unit.sdk.backends.supervised.job_folder.test_listing import fill
from tests.waiting import SECONDS

CODE = 5
SCRIPT = """
import sys
for number in range(2000):
    sys.stdout.buffer.write(f"\\N{CHECK MARK} line {number}\\n".encode())
sys.exit(5)
"""
FIT = """
import sys
from estimator_sdk import Estimator, JobFailed
try:
    Estimator(entry_point="train.py", backend="process").fit(job_name=sys.argv[1])
except JobFailed as failed:
    sys.exit(failed.verdict.exit_code)
"""
ESTIMATOR = [sys.executable, "-m", "estimator_sdk"]
DOORS: dict[str, Callable[[str], list[str]]] = {
    "fit() from Python": lambda name: [sys.executable, "-c", FIT, name],
    "run": lambda name: [*ESTIMATOR, "run", "--job-name", name, "--", "python", "train.py"],
    "run --json": lambda name: [*ESTIMATOR, "run", "--json", "--job-name", name, "--", "python", "train.py"],
    "fit": lambda name: [*ESTIMATOR, "fit", "job.yaml", "--job-name", name],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "job.yaml").write_text("entry_point: train.py\nbackend: process\n")
    return folder


def close_all() -> None:
    for fd in range(3):
        os.close(fd)


def ended(command: list[str], where: Path, way: str) -> tuple[int, bytes]:
    """The exit code of a command, and what it says on standard error where that is not lost too."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1" if way == "a full disk, unbuffered" else ""}
    full = os.open("/dev/full", os.O_WRONLY)
    reading, writing = os.pipe()
    out, err, before = {
        "a full disk": (full, subprocess.PIPE, None),
        "a full disk, unbuffered": (full, subprocess.PIPE, None),
        "a full disk for all": (full, full, None),
        "closed": (subprocess.PIPE, subprocess.PIPE, lambda: os.close(1)),
        "all closed": (None, None, close_all),
        "nobody reads": (writing, subprocess.PIPE, None),
    }[way]
    os.close(reading)
    try:
        done = subprocess.run(
            command, cwd=where, env=env, stdout=out, stderr=err, preexec_fn=before, timeout=SECONDS, check=False
        )
    finally:
        os.close(full)
        os.close(writing)
    assert b"Traceback" not in (done.stderr or b"") and b"Exception ignored" not in (done.stderr or b""), done.stderr
    return done.returncode, done.stderr or b""


@pytest.mark.parametrize(
    ("door", "way"),
    [
        ("fit() from Python", "a full disk"),
        ("fit() from Python", "a full disk, unbuffered"),
        ("fit() from Python", "nobody reads"),
        ("run", "a full disk for all"),
        ("run", "all closed"),
        ("run", "nobody reads"),
        ("run --json", "a full disk"),
        ("fit", "nobody reads"),
    ],
)
def test_a_job_is_not_left_alone_for_want_of_an_output(project, door, way):
    name = f"unseen-{uuid.uuid4().hex[:8]}"
    assert ended(DOORS[door](name), project, way)[0] == CODE
    job = Job.attach(name)
    assert (job.status, job.verdict.exit_code) == ("Failed", CODE)


@pytest.mark.parametrize("door", ["fit() from Python", "run"])
def test_what_an_encoding_does_not_have_is_escaped(project, door):
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    name = f"escaped-{uuid.uuid4().hex[:8]}"
    done = subprocess.run(DOORS[door](name), cwd=project, env=env, capture_output=True, timeout=SECONDS, check=False)
    assert (done.returncode, b"[algo-1]<stdout>:\\u2713 line 1999\n" in done.stdout) == (CODE, True), done.stderr


@pytest.fixture(scope="module")
def finished(project, home) -> str:
    name = f"finished-{uuid.uuid4().hex[:8]}"
    with pytest.raises(JobFailed):
        Estimator(entry_point=str(project / "train.py"), backend="process").fit(job_name=name, logs="none")
    return name


ANSWERS = ["ps", "logs JOB", "describe JOB --json", "--help", "ps --help", "complete -- 1 p"]


@pytest.mark.parametrize("words", ANSWERS)
def test_an_answer_that_cannot_be_written_is_a_sentence_or_a_silent_end(finished, project, words):
    command = [*ESTIMATOR, *words.replace("JOB", finished).split()]
    code, said = ended(command, project, "a full disk")
    assert (code, said.count(b"\n")) == (1, 1), said
    assert b"the answer cannot be written to standard output: No space left on device" in said
    other = "a full disk, unbuffered" if "--help" in words else "nobody reads"
    assert ended(command, project, other) == ((1, said) if "--help" in words else (128 + signal.SIGPIPE, b""))


@pytest.mark.parametrize(
    ("way", "code"),
    [
        ("a full disk", CODE),
        ("a full disk for all", CODE),
        ("all closed", CODE),
        ("nobody reads", 128 + signal.SIGPIPE),
    ],
)
def test_attach_ends_as_the_job_unless_its_reader_has_enough(finished, project, way, code):
    assert ended([*ESTIMATOR, "attach", finished], project, way)[0] == code


def test_a_job_whose_viewers_leave_goes_on(project, tmp_path):
    (tmp_path / "train.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(600)")
    job = Estimator(entry_point=str(tmp_path / "train.py"), backend="process").fit(wait=False)
    assert next(job.logs(stream="stdout", follow=True)).data == b"up\n"
    for words in (["attach", job.name], ["logs", "-f", job.name]):
        assert ended([*ESTIMATOR, *words], project, "nobody reads") == (128 + signal.SIGPIPE, b"")
    assert job.status == "InProgress"
    job.stop()
    assert job.wait(SECONDS) == "Stopped"


def test_a_job_that_is_started_and_left_is_named_where_its_name_cannot_be_answered(project):
    name = f"detached-{uuid.uuid4().hex[:8]}"
    command = [*ESTIMATOR, "run", "--detach", "--job-name", name, "--", "python", "train.py"]
    code, said = ended(command, project, "a full disk")
    told = f"estimator run: the job {name} has been started, but the answer"
    assert (code, said.startswith(told.encode())) == (1, True)
    with pytest.raises(JobFailed):
        Job.attach(name).wait(SECONDS)


# A home that takes nothing.

NO_HOMES = {
    "a kernel's folder": ("/proc/estimator", "No such file or directory"),
    "a file": ("{}/file", "Not a directory|File exists"),
    "below a file": ("{}/file/home", "Not a directory"),
    "of a user that there is not": ("~no-such-user/home", "set ESTIMATOR_HOME to one that you can write to"),
}


@pytest.fixture(params=NO_HOMES.values(), ids=NO_HOMES)
def no_home(request, tmp_path, monkeypatch, no_aws) -> str:
    """The words that say what is wrong with it."""
    home, words = request.param
    (tmp_path / "file").touch()
    monkeypatch.setenv("ESTIMATOR_HOME", home.format(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return words


def test_what_would_be_written_is_one_sentence_with_a_way_out(no_home, project, monkeypatch, capfd):
    estimator = Estimator(entry_point=str(project / "train.py"), backend="process")
    for write in (
        estimator.fit,
        estimator.plan,
        lambda: submitted.note("a", "eu-west-1"),
        lambda: code_store.resolve("s3://bucket/code.tar.gz"),
    ):
        with pytest.raises(EstimatorError, match=rf"({no_home}).*set ESTIMATOR_HOME|{no_home}") as raised:
            write()
        assert "set ESTIMATOR_HOME" in str(raised.value)
    monkeypatch.chdir(project)
    for words in (["run", "--", "python", "train.py"], ["plan", "--", "python", "train.py"]):
        assert main(words) == 1
        said = capfd.readouterr().err
        assert "set ESTIMATOR_HOME" in said and said.count("\n") == 1


def test_what_would_be_read_is_nothing_or_a_sentence(no_home, capfd):
    for read in (list_jobs, lambda: Job.attach("any")):
        try:
            assert read() == []
        except EstimatorError as error:
            assert "\n" not in str(error)
    for words in (["ps"], ["logs"], ["why", "any"], ["doctor"]):
        assert main(words) in (0, 1, 2)
        assert "Traceback" not in capfd.readouterr().err


def test_a_cache_that_takes_nothing_is_a_sentence(monkeypatch):
    for cache in ("/proc/estimator", "/dev/null"):
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
        with (
            pytest.raises(EstimatorError, match="image cannot be written: .*; set XDG_CACHE_HOME to a folder"),
            build._lock("estimator/mpi:py311", sys.stderr),
        ):
            raise AssertionError


@pytest.fixture
def small_tmpdir(open_path, monkeypatch) -> Iterator[Path]:
    """A folder for temporary files on a disk of its own, where hardly anything fits."""
    disk = open_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)], check=True)
    monkeypatch.setattr(tempfile, "tempdir", str(disk))  # as $TMPDIR would have it in a process that starts
    monkeypatch.setenv("TMPDIR", str(disk))
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_folder_for_temporary_files_is_named(small_tmpdir):
    full = rf"to {small_tmpdir}/\S* cannot be written: \[Errno 28\] No space left on device.*; set TMPDIR to a folder"
    with pytest.raises(EstimatorError, match=f"the code that calls print {full}"):
        HorovodRunner(np=-1).run(print)
    assert list(small_tmpdir.iterdir()) == []


def test_a_host_without_room_for_temporary_files_says_where_it_looked_for_it(small_tmpdir, project):
    fill(small_tmpdir)
    world = {"mpi": {"enabled": True, "processes_per_host": 2}}
    room = rf"algo-1: \[Errno 28\] No space left on device: '{small_tmpdir}/est-"
    with pytest.raises(JobFailed, match=room) as failed:
        Estimator(entry_point=str(project / "train.py"), backend="process", distribution=world).fit(logs="none")
    assert failed.value.verdict.kind == "platform"  # there may be room later, so it may be tried again


AS_ANOTHER = """
import json, os, sys
sys.path[:0] = json.loads(sys.argv[1])
os.environ["ESTIMATOR_HOME"] = sys.argv[2]
from estimator_sdk.cli.main import main
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.parametrize("existing", ["nothing", "home", "home/code", "home/jobs"])
def test_a_home_that_may_be_read_only_is_a_sentence(as_stranger, packages, open_path, existing):
    """The home of somebody else, in which some folders are."""
    home = open_path / "home"
    if existing != "nothing":
        (open_path / existing).mkdir(parents=True)
        if existing == "home/jobs":
            (home / "code").mkdir(mode=0o777)
            (home / "code").chmod(0o777)
    (open_path / "train.py").write_text("")
    search = json.dumps(packages)
    run = as_stranger(AS_ANOTHER, search, str(home), "run", "--source-dir", str(open_path), "--", "python3", "train.py")
    assert run.returncode in (1, 2) and run.stderr.count("\n") == 1, run.stderr
    why = "belongs to another user" if existing in ("home/code", "home/jobs") else "Permission denied"
    assert why in run.stderr and "set ESTIMATOR_HOME to a folder" in run.stderr
    listed = as_stranger(AS_ANOTHER, search, str(home), "ps")
    assert (listed.returncode, listed.stderr) == (0, "")


WITH_UMASK = "import os; os.umask(0o{:o})\n" + AS_ANOTHER


@pytest.mark.parametrize("umask", [0o177, 0o277, 0o777])
def test_a_umask_that_keeps_its_own_user_out_is_a_sentence(as_stranger, packages, open_path, umask):
    open_path.chmod(0o777)
    (open_path / "train.py").write_text("")
    search = json.dumps(packages)
    words = ["run", "--source-dir", str(open_path), "--", "python3", "train.py"]
    run = as_stranger(WITH_UMASK.format(umask), search, str(open_path / "home"), *words)
    sentence = "you could not use the folders that are created for you; set another one, such as `umask 077`\n"
    assert (run.returncode, run.stderr) == (1, f"estimator run: the umask is {umask:04o}, so {sentence}")
    assert not (open_path / "home").exists()


def test_a_home_that_may_not_be_looked_into_is_a_sentence(as_stranger, packages, open_path):
    open_path.chmod(0o700)
    search = json.dumps(packages)
    for words in (["ps"], ["why", "any"], ["logs"], ["stop", "any"]):
        asked = as_stranger(AS_ANOTHER, search, str(open_path / "home"), *words)
        assert (asked.returncode, asked.stderr.count("\n")) == (1, 1), asked.stderr
        assert "the jobs cannot be read: [Errno 13]" in asked.stderr and "set ESTIMATOR_HOME" in asked.stderr
