import os
from pathlib import Path

import pytest
from estimator_container.contract.names import FAILURE_TEXT_LIMIT, Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.frames import NO_RANK, STDERR, STDOUT, FrameWriter

from estimator_sdk.backends.supervised.supervisor import traces

TRACEBACK = "Traceback (most recent call last):\n  File 'train.py', line 1\nValueError: no such digit\n"


def host(folder: Path, failure: str | None = None, stderr: str = "", stdout: str = "") -> Layout:
    layout = Layout(str(folder))
    Path(layout.frames).parent.mkdir(parents=True)
    writer = FrameWriter(layout.frames)
    writer.write(NO_RANK, STDOUT, stdout.encode())
    writer.write(NO_RANK, STDERR, stderr.encode())
    writer.close()
    if failure is not None:
        Path(layout.failure).write_text(failure)
    return layout


def test_a_host_that_exits_says_why_in_its_failure_file_and_on_standard_error(tmp_path):
    layout = host(tmp_path, "ScriptError:\nExitCode 3\n", f"starting\n{TRACEBACK}", "not this")
    found = traces.verdict("algo-1", 1, layout)
    assert (found.kind, found.host, found.exit_code) == ("exit_code", "algo-1", 1)
    assert (found.message, found.detail) == ("algo-1 exited with code 1", f"ScriptError:\nExitCode 3\n\n{TRACEBACK}")


def test_what_the_toolkit_logs_of_its_failure_is_not_repeated(tmp_path):
    failure = "ScriptError:\nExitCode 3"
    found = traces.verdict("algo-1", 1, host(tmp_path, failure, f"{TRACEBACK}ERROR {failure}\nERROR code 1\n"))
    assert found.detail.count(failure) == 1
    assert TRACEBACK in found.detail and found.detail.endswith("ERROR code 1\n")


def test_a_host_without_traces_has_its_exit_code(tmp_path):
    found = traces.verdict("algo-2", 5, Layout(str(tmp_path)))
    assert (found.message, found.detail) == ("algo-2 exited with code 5", "")


def test_a_long_failure_file_is_cut_where_the_service_cuts_it(tmp_path):
    assert traces.verdict("algo-1", 1, host(tmp_path, "x" * 5000)).detail == "x" * FAILURE_TEXT_LIMIT


def test_of_a_long_log_the_end_is_read(tmp_path):
    noise = "".join(f"{number}\n" for number in range(200_000))
    found = traces.verdict("algo-1", 1, host(tmp_path, None, noise + TRACEBACK))
    assert found.detail == TRACEBACK


@pytest.mark.parametrize("left", [b"", b"{", b"[]", b"null", b'{"kind": "none"}', b"\xff"])
def test_what_a_script_has_put_in_the_place_of_a_verdict_is_no_word(tmp_path, left):
    layouts = {name: host(tmp_path / name) for name in ("algo-1", "algo-2")}
    Path(layouts["algo-1"].verdict).write_bytes(left)
    failure = traces.Failure("algo-1", layouts.__getitem__)
    failure.host_ended("algo-2", 5, is_killed=False)
    assert failure.verdict is not None and failure.verdict.message == "algo-2 exited with code 5"
    Path(layouts["algo-2"].verdict).write_text(Verdict(Kind.MPI, "mpirun failed", "algo-2").to_json())
    assert failure.verdict.message == "mpirun failed"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_says_nothing_of_a_host(tmp_path, make):
    layout = Layout(str(tmp_path))
    Path(layout.frames).parent.mkdir(parents=True)
    for place in (layout.verdict, layout.failure, layout.frames):
        make(place)
    failure = traces.Failure("algo-1", lambda host: layout)
    failure.host_ended("algo-1", 5, is_killed=False)
    assert failure.verdict is not None
    assert (failure.verdict.message, failure.verdict.detail) == ("algo-1 exited with code 5", "")


def test_a_host_that_was_killed_is_lost(tmp_path):
    found = traces.verdict("algo-2", -9, host(tmp_path, None, TRACEBACK))
    assert (found.kind, found.host, found.signal) == ("host_lost", "algo-2", "SIGKILL")
    assert (found.message, found.detail) == ("algo-2 was killed by SIGKILL", "")
