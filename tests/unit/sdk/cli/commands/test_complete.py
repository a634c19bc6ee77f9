from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from estimator_sdk.cli.commands.complete import candidates


@pytest.fixture
def jobs(home) -> None:
    for number, name in enumerate(("train-old", "train-new", "other")):
        (home / "jobs" / name).mkdir(parents=True)
        os.utime(home / "jobs" / name, (number, number))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["p"], ["plan", "ps", "pool"]),
        (["why", ""], ["other", "train-new", "train-old"]),
        (["why", "tr"], ["train-new", "train-old"]),
        (["why", "other", ""], []),
        (["logs", "--rank", "0", "o"], ["other"]),
        (["logs", "-f", "o"], ["other"]),
        (["logs", "--fo"], ["--follow"]),
        (["logs", "--stream", ""], ["stdout", "stderr", "toolkit"]),
        (["checkpoints", "v"], ["verify"]),
        (["checkpoints", "ls", "train-o"], ["train-old"]),
        (["run", "--backend", ""], ["process", "docker", "slurm", "ssh", "spark", "sagemaker"]),
        (["run", "--instance-type", "s"], ["slurm", "spark"]),
        (["run", "--instance-type", "ml.g5.48"], ["ml.g5.48xlarge"]),
        (["run", "--max-r"], ["--max-run", "--max-retry-attempts"]),
        (["run", "--junit", ""], []),
        (["run", "--", "--ba"], []),
        (["run", "--detach", ""], []),
        (["nonsense", ""], []),
        (["doctor", "ru"], ["run"]),
        (["doctor", "run", "--roun"], ["--rounds"]),
        (["completion", ""], ["bash", "zsh"]),
    ],
)
def test_what_may_stand_at_the_last_word(jobs, words, found):
    assert sorted(candidates(len(words), words)) == sorted(found)


def test_jobs_come_the_newest_first(jobs):
    assert candidates(2, ["stop", ""]) == ["other", "train-new", "train-old"]


def test_without_jobs_there_is_nothing_to_complete(home):
    assert candidates(2, ["why", ""]) == []


LINES = pytest.mark.parametrize(
    ("line", "replies"),
    [
        (["lo"], ["logs"]),
        (["stop", "train-"], ["train-new", "train-old"]),
        (["stop", ""], ["other", "train-new", "train-old"]),
        (["run", "--junit", ""], []),
    ],
)


@LINES
def test_bash_completes_a_line(jobs, tmp_path, estimator, line, replies):
    asked = (
        f"COMP_WORDS=(estimator {shlex.join(line)}); COMP_CWORD={len(line)}; _estimator; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert said_by("bash", asked, tmp_path, estimator) == replies


@LINES
def test_zsh_completes_a_line(jobs, tmp_path, estimator, line, replies):
    asked = f"words=(estimator {shlex.join(line)}); CURRENT={len(line) + 1}; _estimator"
    theirs = 'compdef() {}; _files() {}; compadd() { shift; print -l -- "$@"; }'  # what zsh has in its line editor
    assert said_by("zsh", asked, tmp_path, estimator, theirs) == replies


def said_by(shell: str, asked: str, tmp_path, estimator, before: str = "") -> list[str]:
    """What a shell prints that has read its script, and finds the command on PATH."""
    _, script, _ = estimator("completion", shell)
    program = tmp_path / "estimator"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m estimator_sdk "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": ":".join(filter(None, sys.path))}
    command = [shell, "-c", f"{before}\n{script}\n{asked}"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()
