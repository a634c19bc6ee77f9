from __future__ import annotations

import os
import subprocess
import sys

import pytest

from estimator_sdk.cli.complete import candidates


@pytest.fixture
def jobs(home) -> None:
    for number, name in enumerate(("train-old", "train-new", "other")):
        (home / "jobs" / name).mkdir(parents=True)
        os.utime(home / "jobs" / name, (number, number))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["p"], ["plan", "ps"]),
        (["why", ""], ["other", "train-new", "train-old"]),
        (["why", "tr"], ["train-new", "train-old"]),
        (["why", "other", ""], []),
        (["logs", "--rank", "0", "o"], ["other"]),
        (["logs", "-f", "o"], ["other"]),
        (["logs", "--fo"], ["--follow"]),
        (["logs", "--stream", ""], ["stdout", "stderr", "toolkit"]),
        (["checkpoints", "v"], ["verify"]),
        (["checkpoints", "ls", "train-o"], ["train-old"]),
        (["run", "--backend", ""], ["process", "docker", "sagemaker"]),
        (["run", "--instance-type", "ml.g5.48"], ["ml.g5.48xlarge"]),
        (["run", "--max-r"], ["--max-run", "--max-retry-attempts"]),
        (["run", "--junit", ""], []),
        (["run", "--", "--ba"], []),
        (["run", "--detach", ""], []),
        (["nonsense", ""], []),
        (["completion", ""], ["bash", "zsh"]),
    ],
)
def test_what_may_stand_at_the_last_word(jobs, words, found):
    assert sorted(candidates(len(words), words)) == sorted(found)


def test_jobs_come_the_newest_first(jobs):
    assert candidates(2, ["stop", ""]) == ["other", "train-new", "train-old"]


def test_without_jobs_there_is_nothing_to_complete(home):
    assert candidates(2, ["why", ""]) == []


@pytest.mark.parametrize(
    ("line", "replies"),
    [(["estimator", "lo"], ["logs"]), (["estimator", "stop", "train-"], ["train-new", "train-old"])],
)
def test_bash_completes_a_line(jobs, tmp_path, estimator, line, replies):
    _, script, _ = estimator("completion", "bash")
    program = tmp_path / "estimator"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m estimator_sdk "$@"\n')
    program.chmod(0o755)
    asked = f'COMP_WORDS=({" ".join(line)}); COMP_CWORD={len(line) - 1}; _estimator; printf "%s\\n" "${{COMPREPLY[@]}}"'
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == replies
    assert done.stderr == ""
