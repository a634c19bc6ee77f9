from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_sdk.cli.main import main


@pytest.fixture
def home(tmp_path, monkeypatch, no_aws) -> Path:
    """No job of the user is seen, and no service is asked."""
    folder = tmp_path / "home"
    monkeypatch.setenv("ESTIMATOR_HOME", str(folder))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return folder


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """The current folder, with a script."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('ran')")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def estimator(home, project, capsys) -> Callable[..., tuple[int, str, str]]:
    """The command in this process: its exit code, its standard output and its standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run
