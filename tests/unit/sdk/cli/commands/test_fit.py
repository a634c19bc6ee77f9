"""`estimator fit`: a file becomes a plan; that it runs the same job is held by tests/conformance/test_job_files.py."""

from __future__ import annotations

import json
import sys

import pytest

STEPS = "source_dir: .\nsteps:\n  - python train.py\n  - {name: report, run: echo $RANK}\n"


@pytest.fixture
def file(project):
    (project / "job.yaml").write_text(STEPS)
    return project / "job.yaml"


def test_a_dry_run_shows_the_steps_and_starts_nothing(estimator, file, home):
    code, out, err = estimator("fit", "job.yaml", "--dry-run", "--json", "--job-name", "mine")
    plan = json.loads(out)
    assert (code, err, plan["job_name"]) == (0, "", "mine")
    assert [(step["name"], step["command"][-1]) for step in plan["steps"]] == [
        ("1", "train.py"),
        ("report", "echo $RANK"),
    ]
    _, out, _ = estimator("fit", "job.yaml", "--dry-run", "--from-step", "report")
    assert [line for line in out.splitlines() if line.startswith("step")] == [
        "step          report: /bin/sh -e -c 'echo $RANK'"
    ]
    assert not list(home.glob("jobs/*"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["job.yml"], "the job file 'job.yml' cannot be read: No such file or directory; check its path"),
        (
            ["job.yaml", "--from-step", "repotr"],
            "job.yaml:2: from_step 'repotr' is not a step of this job; did you mean",
        ),
        (["job.yaml", "--backend", "doker"], "backend 'doker' is not known; did you mean 'docker'?"),
        ([], "the following arguments are required: FILE"),
    ],
)
def test_wrong_input_is_one_sentence(estimator, file, home, words, sentence):
    code, out, err = estimator("fit", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("estimator fit: ") and sentence in err
    assert not list(home.glob("jobs/*"))


def test_a_package_that_is_missing_is_named(estimator, file, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("estimator_sdk.job_files.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    code, _, err = estimator("fit", "job.yaml")
    assert code == 1
    assert "needs the package ruamel.yaml" in err and "pip install 'estimator-sdk[job-files]'" in err
