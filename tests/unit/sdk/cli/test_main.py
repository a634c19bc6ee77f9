"""From the words of a command line to an exit code."""

from __future__ import annotations

import os

import pytest

from estimator_sdk.cli.main import main


def full_disk() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def pipe_that_nobody_reads() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize(("output", "code"), [(full_disk, 1), (pipe_that_nobody_reads, 128 + 13)])
def test_what_others_have_printed_does_not_fail_once_more_at_exit(monkeypatch, output, code):
    """As the module of another package's backend prints: what cannot be written stays in Python's buffer."""
    with open(output(), "w") as stdout:  # noqa: PTH123 - of a descriptor
        monkeypatch.setattr("sys.stdout", stdout)
        print("loaded")
        assert main(["--version"]) == code
        stdout.flush()
