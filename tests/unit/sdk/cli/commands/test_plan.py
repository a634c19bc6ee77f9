from __future__ import annotations

import contextlib
import io
import json
import sys
import tarfile
import threading

import pytest

from estimator_sdk.cli.main import main
from estimator_sdk.estimator import launch
from estimator_sdk.plan.inheritance import NEEDED
from tests.waiting import SECONDS

OPTIONS = "--distributed 2 --processes-per-host 2 --env A=b --env API_TOKEN=abc --tag team=vision --max-run 60".split()
COMMAND = ["--", "python", "train.py", "data", "--lr", "0.1"]


@pytest.mark.parametrize("words", [["plan"], ["run", "--dry-run"]])
def test_a_dry_run_prints_the_plan_and_starts_nothing(estimator, home, words):
    code, out, err = estimator(*words, *OPTIONS, *COMMAND)
    assert (code, err) == (0, "")
    assert "distribution  mpi, 4 processes in all" in out
    assert "train.py data --lr 0.1" in out
    assert ("abc" in out, "environment   A=b" in out) == (False, True)
    assert not (home / "jobs").exists()


def test_the_plan_is_had_as_json(estimator, project):
    (project / "data").mkdir()
    options = ["--input", "train=data", "--metric", "loss=loss: (.*)", "--job-name", "a", "--stop-timeout", "5"]
    _, out, _ = estimator("plan", "--json", *OPTIONS, *options, *COMMAND)
    plan = json.loads(out)
    assert [(rank["rank"], rank["host"]) for rank in plan["ranks"]] == [(n, f"algo-{n // 2 + 1}") for n in range(4)]
    assert plan["command"][-4:] == ["train.py", "data", "--lr", "0.1"]
    assert (plan["job_name"], plan["max_run"], plan["stop_timeout"]) == ("a", 60, 5)
    assert plan["channels"][0]["source"] == f"file://{project}/data"
    assert plan["environment"] == {"A": "b", "API_TOKEN": "<hidden>"}
    assert plan["request"]["Tags"] == [{"Key": "team", "Value": "vision"}]
    assert plan["request"]["AlgorithmSpecification"]["MetricDefinitions"] == [{"Name": "loss", "Regex": "loss: (.*)"}]


def test_a_command_asks_for_what_it_needs_of_slurm(estimator):
    words = "account=lab gpus_per_node=4 exclusive=true requeue=False sbatch_options.contiguous=true".split()
    words += ["comment=a = b", "sbatch_options.begin=now+1hour"]
    options = [each for word in words for each in ("--slurm", word)]
    code, out, err = estimator("plan", "--json", "-t", "slurm.gpu", "-d", "2", *options, *COMMAND)
    assert (code, err) == (0, "")
    plan = json.loads(out)
    assert (plan["backend"], len(plan["ranks"])) == ("slurm", 8)
    said = {line.removeprefix("#SBATCH ") for line in plan["script"].splitlines()}
    assert {"--account=lab", "--gpus-per-node=4", "--exclusive", "--no-requeue", "--contiguous"} <= said
    assert {"--partition=gpu", '--comment="a = b"', "--begin=now+1hour"} <= said


@pytest.mark.parametrize(
    ("words", "inherited"),
    [
        ([], ["*"]),
        (["--inherit-env", "all"], ["*"]),
        (["--inherit-env", "none"], list(NEEDED)),
        (["--inherit-env", "AWS_*", "--inherit-env", "HF_TOKEN"], [*NEEDED, "AWS_*", "HF_TOKEN"]),
    ],
)
def test_the_variables_that_a_command_inherits_are_chosen(estimator, words, inherited):
    _, out, _ = estimator("plan", "--json", *words, *COMMAND)
    assert json.loads(out)["inherited"] == inherited


def test_a_word_that_is_no_text_is_shown_escaped(estimator):
    _, out, _ = estimator("plan", "--", "python", "train.py", "\udcff")
    assert r"\udcff" in out


def test_a_folder_that_somebody_works_in_is_sent_without_what_git_and_the_hosts_would_not_have(estimator, project):
    (project / "env" / "lib").mkdir(parents=True)
    (project / "env" / "pyvenv.cfg").touch()
    (project / "env" / "lib" / "python").symlink_to("/usr/bin/python3")
    (project / "data").symlink_to("/mnt/data")
    (project / ".gitignore").write_text("runs/\nconfig.json\n")
    (project / ".estimatorignore").write_text("!config.json\n")
    (project / "runs").mkdir()
    (project / "config.json").touch()
    code, out, err = estimator("plan", "--json", *COMMAND)
    assert (code, err.splitlines()) == (
        0,
        [
            "estimator: left out of the code, because the hosts cannot use it: data, a link to /mnt/data",
            "estimator: left out of the code, because .gitignore names it: runs; "
            "a line !NAME in .estimatorignore includes one again",
        ],
    )
    with tarfile.open(json.loads(out)["code"].removeprefix("file://")) as tar:
        assert set(tar.getnames()) == {"train.py", "config.json", ".gitignore"}


@pytest.mark.parametrize("command", [["bash", "made.sh"], ["python", "made.py"]])
def test_a_command_whose_script_git_leaves_out_is_refused(estimator, project, command):
    (project / ".gitignore").write_text("made.*\n")
    (project / command[1]).touch()
    code, _, err = estimator("plan", "--", *command)
    assert code == 2 and f"is left out of '.' by .gitignore; add the line !{command[1]} to .estimatorignore" in err


def test_a_copy_of_the_folder_that_takes_long_is_explained(estimator, project, monkeypatch):
    said = threading.Event()
    monkeypatch.setattr("estimator_sdk.cli.commands.run._SLOW", 0.0)
    monkeypatch.setattr("estimator_sdk.estimator.launch.bundle", _waiting_for(said))
    monkeypatch.setattr(sys, "stderr", _Heard(said))
    main(["plan", *COMMAND])
    assert sys.stderr.getvalue() == (
        f"estimator: copying {project} takes a while; list what to leave out in its .estimatorignore\n"
    )


def test_what_a_backend_takes_for_its_plan_is_not_taken_for_the_copy(estimator, project, monkeypatch):
    """As with an engine that does not answer."""
    order, planned = [], launch._planned

    @contextlib.contextmanager
    def note(folder):
        order.append("begins to copy")
        yield
        order.append("has copied")

    monkeypatch.setattr("estimator_sdk.cli.commands.run._note_if_slow", note)
    monkeypatch.setattr(launch, "_planned", lambda *given: order.append("plans") or planned(*given))
    assert estimator("plan", *COMMAND)[0] == 0
    assert order == ["begins to copy", "has copied", "plans"]


class _Heard(io.StringIO):
    def __init__(self, said: threading.Event) -> None:
        super().__init__()
        self._said = said

    def flush(self) -> None:
        if self.getvalue():
            self._said.set()


def _waiting_for(said: threading.Event):
    real = launch.bundle

    def bundle(source):
        assert said.wait(SECONDS)
        return real(source)

    return bundle
