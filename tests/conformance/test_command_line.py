"""The command line runs the same job on every backend: the same ranks, words, outputs and exit code."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from estimator_sdk import Job
from tests.conformance.jobs import UP_AND_WAIT, wait_until_up
from tests.waiting import kill, wait_for

DOCUMENT = Path(__file__).parents[2] / "docs" / "command_line.md"
ESTIMATOR = [sys.executable, "-m", "estimator_sdk"]
DEADLINE = 300  # seconds after which a command is stuck, however slow the machine
ECHO = """
import json, os, pathlib, sys
world = [os.environ.get(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SM_CURRENT_HOST")]
words = [os.fsencode(word).decode("latin-1") for word in sys.argv[1:]]
print(json.dumps([*world, words, pathlib.Path("new.txt").read_text(), os.environ.get("COLOUR")]), flush=True)
pathlib.Path(os.environ["SM_MODEL_DIR"], "rank").write_text(str(world[0]))
"""
WORLD_OF_2_X_2 = [[str(rank), str(rank % 2), "4", f"algo-{rank // 2 + 1}"] for rank in range(4)]
WORDS = [
    b"data file.csv",
    b"--layer",
    b"64",
    b"--layer",
    b"10",
    b"-v",
    b"-v",
    b"",
    b"$HOME `id` \\ \"q\" 'q' ; *",
    b"two\nlines",
    "žluť 馬".encode(),
    b"not text: \xff\xfe",
    b"--",
    b"--json",
]

Estimator = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def project(tmp_path) -> Path:
    """A repository with a script, a change that is not committed, and a file that git does not know."""
    folder = tmp_path / "project"
    folder.mkdir()
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    (folder / "train.py").write_text("raise SystemExit('the committed script was run')")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    (folder / "train.py").write_text(ECHO)
    (folder / "new.txt").write_text("not committed")
    return folder


@pytest.fixture
def options(where) -> list[str]:
    """Those that choose the backend."""
    image = ["--image", where["image_uri"]] if "image_uri" in where else []
    machines = ["--hosts", where["hosts"]] if "hosts" in where else []
    return ["--backend", where["backend"], *image, *machines]


@pytest.fixture
def estimator(project) -> Estimator:
    """The command `estimator`, in the project, as a process."""

    def run(*words: str | bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*ESTIMATOR, *words], cwd=project, capture_output=True, timeout=DEADLINE, check=False)

    return run


def said(done: subprocess.CompletedProcess[bytes]) -> list[list[object]]:
    """What the ranks printed by ECHO, in the order of their numbers."""
    lines = re.findall(rb"^\[[^\]]+\]<stdout>:(\[.*\])$", done.stdout, re.MULTILINE)
    return sorted(map(json.loads, lines), key=lambda words: words[0] or "")


def documented(start: str) -> list[list[str]]:
    """The commands of the document that begin so, each as words."""
    found = re.findall(rf"^[ -]*(?:run: )?({re.escape(start)}.*)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    return [shlex.split(command)[1:] for command in found]


@pytest.mark.law("A3")
def test_the_first_example_of_the_document_gives_the_same_on_every_backend(estimator, options, tmp_path):
    (example,) = documented("estimator run --instance-type local --distributed 2")
    done = estimator("run", *options, *example[1:])
    assert (done.returncode, done.stderr) == (0, b"")
    arguments = ["--lr", "0.1", "--layer", "64", "--layer", "10", "data.csv"]
    assert said(done) == [[*world, arguments, "not committed", None] for world in WORLD_OF_2_X_2]
    job = Job.attach(json.loads(estimator("ps", "--json").stdout)[0]["name"])
    assert estimator("download", job.name, "--to", str(tmp_path / "model")).returncode == 0
    assert (tmp_path / "model" / "rank").read_text() in ("0", "1")  # of the first host


@pytest.mark.law("W5")
def test_processes_per_host_are_the_gpus_of_the_instance_type(estimator, options):
    (example,) = documented("estimator run --instance-type ml.p3.8xlarge --distributed 2")
    plan = json.loads(estimator("plan", "--json", *options, *example[1:]).stdout)
    assert [(rank["rank"], rank["host"]) for rank in plan["ranks"]] == [(n, f"algo-{n // 4 + 1}") for n in range(8)]
    example[example.index("ml.p3.8xlarge")] = "ml.g7.12xlarge"  # of two GPUs
    done = estimator("run", *options, *example[1:])
    assert [words[:5] for words in said(done)] == [[*world, ["--lr", "0.1"]] for world in WORLD_OF_2_X_2]


@pytest.mark.law("W5")
def test_distributed_1_is_several_processes_on_one_host(estimator, options):
    done = estimator("run", *options, "--distributed", "1", "--processes-per-host", "2", "--", "python", "train.py")
    assert [words[:4] for words in said(done)] == [["0", "0", "2", "algo-1"], ["1", "1", "2", "algo-1"]]


@pytest.mark.law("A1")
@pytest.mark.parametrize(
    "command",
    [[b"python", b"train.py"], [b"python3", b"-X", b"dev", b"train.py"], [b"bash", b"run.sh"], [b"./program"]],
    ids=["entry point", "interpreter option", "shell", "program"],
)
def test_the_words_of_a_command_reach_every_rank_byte_for_byte(estimator, options, project, command):
    (project / "run.sh").write_text('exec python3 train.py "$@"\n')
    (project / "program").write_text('#!/bin/sh\nexec python3 train.py "$@"\n')
    (project / "program").chmod(0o755)
    env = ["--env", "COLOUR=a b=c"]
    done = estimator("run", *options, *env, "-d", "2", "--processes-per-host", "2", "--", *command, *WORDS)
    assert done.returncode == 0, done.stderr
    words = [word.decode("latin-1") for word in WORDS]
    assert said(done) == [[*world, words, "not committed", "a b=c"] for world in WORLD_OF_2_X_2]


@pytest.mark.law("A1")
def test_options_with_values_are_hyperparameters_too_and_arrive_in_their_order(estimator, options, project):
    (project / "train.py").write_text("import os, sys; print(os.environ['SM_HPS'], sys.argv[1:])")
    done = estimator("run", *options, "--", "python", "train.py", "--lr", "1e-3", "--epochs", "3", "-b", "0.50")
    shown = b"""{"b":"0.50","epochs":3,"lr":"1e-3"} ['--lr', '1e-3', '--epochs', '3', '-b', '0.50']"""
    assert shown in done.stdout


@pytest.mark.law("C1")
def test_a_binary_runs_as_it_is(estimator, options, project):
    (project / "tool").write_bytes(Path("/bin/echo").read_bytes())
    (project / "tool").chmod(0o755)
    done = estimator("run", *options, "--", "./tool", "-n", "a  b")
    assert (done.returncode, b"]<stdout>:a  b\n" in done.stdout) == (0, True)


@pytest.mark.law("C1")
def test_a_script_beside_a_package_is_run_and_not_installed(estimator, options, project):
    (project / "pyproject.toml").write_text("this is no project")
    done = estimator("run", *options, "-d", "1", "--", "python", "train.py", "x")
    assert [words[:1] + words[4:5] for words in said(done)] == [["0", ["x"]]]


@pytest.mark.law("E2")
def test_the_exit_code_is_that_of_the_first_failing_rank(estimator, options, project):
    (project / "train.py").write_text(
        "import os, sys, time\n"
        "print('last words of', os.environ['RANK'], '\\x1b[0m & <b>', flush=True)\n"
        "sys.exit(7) if os.environ['RANK'] == '3' else time.sleep(600)\n"
    )
    files = ["--junit", "result.xml", "--summary", "result.md"]
    world = ["--distributed", "2", "--processes-per-host", "2"]
    done = estimator("run", "--json", *options, *world, *files, "--", "python", "train.py")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["exit_code"], answer["status"]) == (7, 7, "Failed")
    assert (answer["verdict"]["rank"], answer["verdict"]["host"]) == (3, "algo-2")
    suite = ElementTree.parse(project / "result.xml").getroot()[0]
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "0", "skipped": "3"}
    (culprit,) = suite.findall("testcase[failure]")
    assert culprit.get("name") == "rank 3 on algo-2"
    assert culprit.findtext("system-out") == "last words of 3 \\x1b[0m & <b>"
    assert "| 3 | algo-2 | **failed** |" in (project / "result.md").read_text()
    assert estimator("attach", answer["name"]).returncode == 7
    why = estimator("why", answer["name"])
    assert (why.returncode, b"rank 3 on algo-2 exited with code 7" in why.stdout) == (0, True)


@pytest.mark.law("E2")
def test_a_signal_is_128_and_its_number(estimator, options):
    assert estimator("run", *options, "--", "bash", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL


@pytest.mark.law("E4")
def test_ctrl_c_stops_every_rank_and_the_exit_code_is_130(options, project, tmp_path):
    (project / "train.py").write_text(UP_AND_WAIT)
    name = f"ctrl-c-{os.urandom(4).hex()}"
    world = ["--distributed", "2", "--processes-per-host", "2", "--job-name", name, "--max-run", str(DEADLINE)]
    command = [*ESTIMATOR, "run", *options, *world, "--junit", "result.xml", "--", "python", "train.py"]
    started = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert sum(1 for _ in itertools.islice((line for line in started.stdout if b"<stdout>:up" in line), 4)) == 4
        started.send_signal(signal.SIGINT)
        shown, words = started.communicate(timeout=DEADLINE)
    finally:
        if started.poll() is None:
            started.kill()
            started.communicate()
    assert (started.returncode, words) == (130, b"")
    assert (Job.attach(name).status, b"stopping" in shown) == ("Stopped", True)
    assert ElementTree.parse(project / "result.xml").getroot()[0].get("errors") == "4"


@pytest.mark.law("E4")
def test_a_second_ctrl_c_returns_and_leaves_the_job_to_stop_by_itself(options, project):
    (project / "train.py").write_text(
        "import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: os.write(1, b'asked\\n'))\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(600)\n"
    )
    name = f"ctrl-c-{os.urandom(4).hex()}"
    limits = ["--job-name", name, "--max-run", str(DEADLINE), "--stop-timeout", "600"]
    command = [*ESTIMATOR, "run", *options, *limits, "--", "python", "train.py"]
    started = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert any(b"<stdout>:up" in line for line in started.stdout)
        started.send_signal(signal.SIGINT)
        assert any(b"stopping; press Ctrl-C again" in line for line in started.stdout)
        job = Job.attach(name)
        assert any(line.data == b"asked\n" for line in job.logs(follow=True))
        started.send_signal(signal.SIGINT)
        _, words = started.communicate(timeout=DEADLINE)
        assert (started.returncode, words) == (130, b"")
        wait_for(lambda: job.status == "Stopping", DEADLINE)  # the ranks are asked before it is written down
    finally:
        if started.poll() is None:
            started.kill()
            started.communicate()
        end_supervisor(name)


def end_supervisor(name: str) -> None:
    """What a job leaves whose ranks would go on for ten minutes: its hosts end with their supervisor."""
    supervisor = Job.attach(name)._started.record().supervisor
    if supervisor is not None and supervisor.is_alive():
        kill(supervisor.pid)


def test_a_job_is_asked_from_other_processes(estimator, options):
    name = f"asked-{os.urandom(4).hex()}"
    started = estimator("run", *options, "--detach", "--job-name", name, "-d", "2", "--", "python", "train.py", "x")
    assert (started.returncode, started.stdout) == (0, f"{name}\n".encode())
    followed = estimator("logs", name, "--follow")
    assert [words[4] for words in said(followed)] == [["x"], ["x"]]
    attached = estimator("attach", name)
    assert attached.returncode == 0
    assert attached.stdout.endswith(f"{name} is Completed\n".encode())
    assert said(estimator("logs", name, "--rank", "1", "--host", "algo-2", "--grep", "not .*ted"))[0][0] == "1"
    assert estimator("logs", name, "--grep", "nowhere to be seen").stdout == b""
    line = json.loads(estimator("logs", name, "--rank", "0", "--json").stdout)
    assert (line["host"], line["rank"], line["stream"]) == ("algo-1", 0, "stdout")
    described = json.loads(estimator("describe", name, "--json").stdout)
    assert (described["status"], described["hosts"]) == ("Completed", ["algo-1", "algo-2"])
    assert estimator("stop", name, "--wait").stdout == f"{name} is Completed\n".encode()
    assert name.encode() in estimator("ps", "--status", "Completed").stdout


def test_a_reader_that_has_enough_ends_the_command_without_a_word(estimator, options, project):
    (project / "train.py").write_text("for number in range(100_000): print(number)")
    name = f"long-{os.urandom(4).hex()}"
    assert estimator("run", *options, "--logs", "none", "--job-name", name, "--", "python", "train.py").returncode == 0
    with subprocess.Popen([*ESTIMATOR, "logs", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        assert reading.stdout.readline() == b"[algo-1]<stdout>:0\n"
        reading.stdout.close()
        assert (reading.wait(DEADLINE), reading.stderr.read()) == (128 + signal.SIGPIPE, b"")


def test_a_running_job_is_stopped(estimator, options, project):
    (project / "train.py").write_text(UP_AND_WAIT)
    name = f"stopped-{os.urandom(4).hex()}"
    assert (
        estimator("run", *options, "--detach", "--job-name", name, "-d", "1", "--", "python", "train.py").returncode
        == 0
    )
    wait_until_up(Job.attach(name), 1)
    stopped = estimator("stop", name, "--wait", "--json")
    assert json.loads(stopped.stdout) == {"name": name, "status": "Stopped"}
    assert estimator("attach", name).returncode == 143


def test_snapshots_are_listed_verified_and_pulled(estimator, options, project, tmp_path):
    (project / "train.py").write_text(
        "import os, pathlib; pathlib.Path(os.environ['SM_CHECKPOINT_DIR'], 'weights').write_bytes(b'w' * 100000)"
    )
    store = tmp_path / "store"
    store.mkdir()
    run = estimator("run", "--json", *options, "--checkpoint-uri", f"file://{store}", "--", "python", "train.py")
    name = json.loads(run.stdout)["name"]
    listed = json.loads(estimator("checkpoints", "ls", name, "--json").stdout)
    assert [(each["files"], each["bytes"], each["job"]) for each in listed] == [(["weights"], 100000, name)]
    assert estimator("checkpoints", "verify", name).returncode == 0
    pulled = estimator("checkpoints", "pull", "--uri", f"file://{store}", "--to", "here")
    assert pulled.returncode == 0, pulled.stderr
    assert (project / "here" / "weights").read_bytes() == b"w" * 100000
    again = estimator("checkpoints", "pull", name, "--to", "here")
    assert (again.returncode, b"is not an empty folder" in again.stderr) == (2, True)
    (data,) = (path for path in (store / ".estimator" / "data").rglob("*") if path.is_file())
    data.write_bytes(b"x" * 100000)
    damaged = estimator("checkpoints", "verify", name, "--json")
    assert (damaged.returncode, json.loads(damaged.stdout)[0]["is_whole"]) == (1, False)
    snapshot = listed[0]["snapshot"]
    refused = estimator("checkpoints", "pull", name, "--snapshot", snapshot, "--to", "there")
    assert (refused.returncode, b"is not complete" in refused.stderr) == (1, True)
    assert not (project / "there").exists()


def test_the_smoke_jobs_of_the_document_leave_their_reports(estimator, options, project):
    commands = documented("estimator run --distributed 2 --processes-per-host 2 --max-run 300")
    assert len(commands) == 2
    for command in commands:
        done = estimator("run", *options, *command[1:])
        assert done.returncode == 0, done.stderr
        suite = ElementTree.parse(project / "smoke.xml").getroot()[0]
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "0", "0")
        assert (project / "smoke.md").read_text().count("| passed |") == 4
        (project / "smoke.xml").unlink()
        (project / "smoke.md").unlink()
