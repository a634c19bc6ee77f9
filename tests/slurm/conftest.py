"""The cluster that the tests of the backend `slurm` share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

FAILS = """#!/bin/sh
case "$*" in *--job-name={step}*)
  echo >>{count}
  if [ "$(wc -l <{count})" -le {times} ]; then
    echo "srun: error: {why}" >&2
    exit 1
  fi ;;
esac
exec {srun} "$@"
"""
SILENCE = "Unable to contact slurm controller (connect failure)"


@pytest.fixture(scope="session", autouse=True)
def in_slurm(slurm: object) -> None:
    """Every test here sees the cluster, as somebody does who is logged in on one of its machines."""


@pytest.fixture
def srun_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int, str], Callable[[], int]]:
    """Has srun not start a step, so many times, for a reason; returns what says how often it was asked to."""
    folder, count = tmp_path / "bin", tmp_path / "count"

    def made(step: str, times: int, why: str) -> Callable[[], int]:
        folder.mkdir()
        count.touch()
        text = FAILS.format(step=step, count=count, times=times, why=why, srun=shutil.which("srun"))
        (folder / "srun").write_text(text)
        (folder / "srun").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return lambda: count.read_text().count("\n")

    return made
