"""What a user's secrets meet on their way: which hosts see them, who else does, and where they are written down."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from estimator_container.logs.masking import in_line

from estimator_sdk import InvalidArgument, Job, JobSpec, Plan
from estimator_sdk.cli.main import main
from estimator_sdk.plan import inheritance
from tests.conformance.conftest import Script

SAY_WHAT_IS_THERE = 'import os; print(*sorted(name for name in os.environ if name.startswith(("AWS_", "CI_", "H"))))'


@pytest.fixture(autouse=True)
def shell(monkeypatch):
    """The environment of a user who has credentials in it."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "CI_", "HF_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "CI_PASSWORD", "HF_TOKEN"):
        monkeypatch.setenv(name, "x")


# Which variables a host has.


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        (None, "AWS_PROFILE AWS_SESSION_TOKEN CI_PASSWORD HF_TOKEN"),
        (True, "AWS_PROFILE AWS_SESSION_TOKEN CI_PASSWORD HF_TOKEN"),
        (False, ""),
        ([], ""),
        (["HF_TOKEN", "AWS_*", "ABSENT"], "AWS_PROFILE AWS_SESSION_TOKEN HF_TOKEN"),
        (["hf_token", "HF_TOKE"], ""),
    ],
)
def test_a_rank_sees_of_the_users_variables_those_that_are_chosen(script: Script, out, chosen, seen):
    job = script.run(SAY_WHAT_IS_THERE, inherit_environment=chosen)
    found = out(job).decode().split()
    assert [name for name in found if name.startswith(("AWS_", "CI_", "HF_"))] == seen.split()
    assert "HOME" in found


def test_a_world_starts_without_the_users_variables_and_environment_counts(script: Script, out):
    script_ = "import os; print(os.environ['HF_TOKEN'], 'CI_PASSWORD' in os.environ)"
    job = script.run(script_, hosts=2, processes=1, inherit_environment=False, environment={"HF_TOKEN": "given"})
    assert out(job) == b"given False\n" * 2


@pytest.mark.parametrize(
    ("chosen", "inherited", "shown"),
    [
        (None, ("*",), "inherits      all variables of this process"),
        (True, ("*",), "inherits      all variables of this process"),
        (False, inheritance.NEEDED, "inherits      CUDA_VISIBLE_DEVICES ESTIMATOR_* HOME"),
        (["AWS_*"], (*inheritance.NEEDED, "AWS_*"), "VIRTUAL_ENV AWS_*"),
    ],
)
def test_what_is_inherited_is_in_the_plan_and_travels_with_the_job(script: Script, chosen, inherited, shown):
    plan = script.estimator("", inherit_environment=chosen).plan()
    assert plan.inherited == inherited and shown in str(plan)
    assert Plan.from_json(plan.to_json()) == plan
    assert JobSpec.from_request(plan.request).plan("process").inherited == inherited


def of_document(script: Script, value: str) -> JobSpec:
    request = script.estimator("", inherit_environment=False).plan().request
    (name,) = (name for name in request["HyperParameters"] if name.endswith("_inherit_environment"))
    return JobSpec.from_request({**request, "HyperParameters": {**request["HyperParameters"], name: value}})


@pytest.mark.parametrize("value", ['"AWS_*"', "1", '["a", 1]', '[""]', '{"a": true}', "all"])
def test_a_document_with_another_kind_of_choice_is_refused(script, value):
    with pytest.raises(InvalidArgument, match="must be True, False, or a list of names") as refused:
        of_document(script, value).plan("process")
    assert refused.value.argument == "inherit_environment"


def test_a_container_gets_those_that_are_named_as_if_they_were_the_users_own(script: Script):
    def made(chosen: bool | list[str] | None) -> Mapping[str, str]:
        plan = script.estimator("", environment={"HF_TOKEN": "given"}, inherit_environment=chosen).plan()
        around = {"AWS_PROFILE": "p", "HF_TOKEN": "inherited", "PATH": "/bin"}
        return inheritance.for_containers(plan, around).environment

    assert made(["AWS_*", "HF_TOKEN"]) == {"AWS_PROFILE": "p", "HF_TOKEN": "given"}
    for nothing in (None, False, []):
        assert made(nothing) == {"HF_TOKEN": "given"}
    with pytest.raises(InvalidArgument, match="its image's own PATH"):
        made(True)


def test_an_instance_of_the_service_can_be_given_none(script: Script):
    for nothing in (None, False):
        inheritance.refuse_inherited(script.estimator("", inherit_environment=nothing).plan())
    for chosen in (True, ["HF_TOKEN"]):
        plan = script.estimator("", inherit_environment=chosen).plan()
        with pytest.raises(InvalidArgument, match="shown to everyone who may describe the job"):
            inheritance.refuse_inherited(plan)


# What is shown and kept.

PASSWORD = "hunter2-never-to-be-seen"
SECRETS = {
    "DATABASE_URL": f"postgres://user:{PASSWORD}@db.example.com/x",
    "GH_PAT": PASSWORD,
    "MYSQL_PWD": PASSWORD,
    "AWS_SECRET_ACCESS_KEY": PASSWORD,
    "DEPLOY": f"-----BEGIN PRIVATE KEY-----\n{PASSWORD}\n-----END PRIVATE KEY-----",
    "DSN": f"Server=db;Password={PASSWORD};Encrypt=yes",
    "BUILD_ARGS": f"--index-url https://user:{PASSWORD}@pypi.example.com/simple --token {PASSWORD}",
}
HYPERPARAMETERS = {
    "db-password": PASSWORD,
    "store": {"secret": PASSWORD},
    "url": f"redis://:{PASSWORD}@h:1/0",
    "lr": 0.1,
}
SAY_NOTHING = """
import os, sys
assert sys.argv[2] == os.environ["GH_PAT"] == os.environ["SM_HP_DB_PASSWORD"] == os.environ["MY_TOKEN"]
assert f"user:{sys.argv[2]}@db" in os.environ["DATABASE_URL"]
"""
FAIL = "import os\nraise ConnectionError('no route to ' + os.environ['DATABASE_URL'])\n"


def holding(folder: Path) -> set[str]:
    """The files below a folder in which the password is."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)) for path in files if PASSWORD.encode() in path.read_bytes()}


@pytest.fixture
def command(capfd):
    """Runs a command of `estimator`; returns all that it says."""

    def run(*words: object) -> str:
        capfd.readouterr()
        main([str(word) for word in words])
        return "".join(capfd.readouterr())

    return run


@pytest.mark.filterwarnings("ignore:.*looks like a secret")
def test_nothing_that_is_shown_or_kept_of_a_job_has_a_secret_in_it(script: Script, home: Path, command, recwarn):
    steps = [f"true --password {PASSWORD}", {"name": "b", "run": f"API_TOKEN={PASSWORD} true"}]
    options = {"processes": 1, "mpi_options": f"-x MY_TOKEN={PASSWORD}"}
    estimator = script.estimator(SAY_NOTHING, environment=SECRETS, hyperparameters=HYPERPARAMETERS, **options)
    plan = estimator.plan()
    in_steps = script.estimator("", entry_point=None, steps=steps, environment=SECRETS)
    shown = [estimator, plan, estimator.spec(), in_steps, in_steps.plan(), in_steps.spec(), *recwarn]
    assert [each for each in shown if PASSWORD in repr(each) + str(each)] == []
    for each in (estimator, in_steps):
        job = each.fit(logs="all")
        assert PASSWORD not in command("describe", job.name) + command("describe", "--json", job.name) + str(
            job.request
        )
        # What the hosts are told, in a folder that is nobody else's.
        assert job.folder.stat().st_mode & 0o777 == 0o700
        assert {Path(path).name for path in holding(job.folder)} == {"hyperparameters.json"}
    assert PASSWORD not in command("ps")
    beside = [path for path in home.iterdir() if path.is_file()]  # the jobs of other tests have files of any name
    assert beside and [path for path in beside if PASSWORD.encode() in path.read_bytes()] == []
    assert holding(home / "code") == set()


def test_a_failure_is_told_without_the_secrets_that_are_in_its_words(script: Script, tmp_path: Path, command):
    failed = script.fail(FAIL, environment=SECRETS)
    job = Job.attach(failed.job_name)
    assert "no route to postgres://user:<hidden>@db.example.com/x" in str(failed)
    assert PASSWORD not in str(failed) + command("why", job.name) + command("describe", job.name)
    assert {Path(path).name for path in holding(job.folder)} == {"frames"}  # every byte that the script wrote


def test_reports_are_without_secrets(script: Script, tmp_path: Path, command, monkeypatch):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text(FAIL + "# and no more\n")
    monkeypatch.chdir(tmp_path / "project")
    files = ["--junit", tmp_path / "junit.xml", "--summary", tmp_path / "summary.md"]
    env = ["--env", f"DATABASE_URL={SECRETS['DATABASE_URL']}", "--env", f"GH_PAT={PASSWORD}"]
    words = ["python", "train.py", "--token", PASSWORD, f"--db-password={PASSWORD}"]
    said = command("run", "--backend", "process", "--logs", "none", *files, *env, "--", *words)
    assert "<hidden>" in said and PASSWORD not in said
    assert PASSWORD not in command("plan", *env, "--", *words) + command("plan", "--json", *env, "--", *words)
    for name in ("junit.xml", "summary.md"):
        report = (tmp_path / name).read_text()
        assert PASSWORD not in report and "no route to postgres://user:" in report


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"hyperparameters": {"db-password": PASSWORD}}, "hyperparameters['db-password']"),
        ({"hyperparameters": {"api_key": 123456789, "x": {"client_secret": "abc"}}}, "hyperparameters['x']"),
        ({"hyperparameters": {"store": SECRETS["DATABASE_URL"]}}, "hyperparameters['store']"),
        ({"arguments": ["--token", PASSWORD]}, "a word of the command"),
        ({"entry_point": None, "steps": [f"fit --token {PASSWORD}"]}, "a word of the command"),
    ],
)
def test_a_secret_among_the_arguments_is_warned_of_with_the_way_to_pass_one(script: Script, arguments, name):
    with pytest.warns(UserWarning, match="looks like a secret") as warned:
        script.estimator("", **arguments).plan()
    (message,) = (str(each.message) for each in warned)
    assert name in message and "environment=" in message and PASSWORD not in message


def test_ordinary_arguments_are_neither_warned_of_nor_hidden(script: Script, recwarn):
    ordinary = {
        "max_tokens": 512,
        "tokenizer": "bert-base-uncased",
        "pad_token": "<pad>",
        "data": "s3://bucket/a@b/c:d",
        "revision": "c3edd14f0b8a1d2e3f405162738495a6b7c8d9e0",
        "author": "me",
        "sort_key": "loss",
        "weights": {"a": 0.5},
    }
    environment = {"PWD": "/home/me", "TOKENIZERS_PARALLELISM": "false", "AUTHOR": "me", "OMP_NUM_THREADS": "1"}
    plan = script.estimator("", hyperparameters=ordinary, environment=environment).plan()
    assert plan.without_secrets() == plan and "<hidden>" not in str(plan)
    assert not [each for each in recwarn if "secret" in str(each.message)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"environment": {"DB_PASSWORD": 12345678}},
        {"environment": {"A": [PASSWORD, SECRETS["DATABASE_URL"]][1:]}},
        {"output_path": SECRETS["DATABASE_URL"]},
        {"processes": 1, "mpi_options": f"-x MY_TOKEN={PASSWORD} '"},
        {"inherit_environment": SECRETS["DATABASE_URL"]},
    ],
)
def test_an_error_does_not_quote_a_secret(script: Script, arguments):
    with pytest.raises(InvalidArgument) as refused:
        script.estimator("", **arguments)
    assert "<hidden>" in str(refused.value)
    assert PASSWORD not in str(refused.value) and "12345678" not in str(refused.value)


@pytest.mark.filterwarnings("ignore:.*looks like a secret")
@pytest.mark.parametrize("member", ["Environment", "HyperParameters"])
def test_a_document_that_was_kept_without_its_secrets_is_not_run(script: Script, member):
    plan = script.estimator("", environment={"GH_PAT": "x"}, hyperparameters={"api_key": "y"}).plan()
    kept = plan.without_secrets().request
    with pytest.raises(InvalidArgument, match="saved without its secrets"):
        JobSpec.from_request({**plan.request, member: kept[member]}).plan("process")
    assert JobSpec.from_request(plan.request).plan("process").environment == {"GH_PAT": "x"}


LARGEST = 128 << 10  # bytes of one argument
LONG = {
    "a dict": ",".join(f"key{number}={number}" for number in range(10_000)),
    "addresses": "://a:" * (LARGEST // 5),
    "equals signs": "a=" * (LARGEST // 2),
    "half a token": "eyJ-" * (LARGEST // 4),
}


@pytest.fixture
def few_seconds():
    """Of CPU, however busy the machine is."""

    def give_up(signum, frame):
        raise AssertionError("this takes too long")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, 4)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_secrets_are_looked_for_in_the_longest_argument_at_once(few_seconds, text):
    assert in_line(f"{text} --token {PASSWORD}").endswith("--token <hidden>")
