"""Jobs whose files say what no job says, and jobs that go while somebody looks: nothing stays broken."""

from __future__ import annotations

import json
import math
import shutil
import socket
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from estimator_container.contract import agent_events, events
from estimator_container.contract.names import Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.telemetry.logged import NAME, VALUE, ValueLog

from estimator_sdk import Job
from estimator_sdk.backends.supervised.job_folder.record import read_record, write_record
from estimator_sdk.job.traces import trace
from estimator_sdk.server.app import OPERATIONS
from estimator_sdk.server.state import Reckoned
from estimator_sdk.values import strict_json
from tests.console.folders import make_job, tell, writer
from tests.console.server import PATIENCE, console, wait_until

MARKUP = "<img src=x onerror=alert(1)>"
ENDED = 1.7e9  # when a job of a million seconds did
CELL = struct.Struct("<dqdII")
HALF = "half a \udcff"  # a surrogate, as in the name of a file that is not UTF-8


def make_hostile(home: Path) -> None:
    """A job that failed, and whose script wrote whatever it could into its folder."""
    folder = make_job(home, "hostile", "Failed")
    verdict = Verdict(Kind("raised"), HALF, "algo-1", 0, detail=f"OSError: {HALF}\n{MARKUP}")
    write_record(replace(read_record(folder), verdict=verdict, reason=HALF), folder)
    folder.request.write_text(json.dumps({"TrainingJobName": "hostile", "HyperParameters": {HALF: MARKUP}}))
    frames = writer(folder)
    epochs = (f"Epoch {'9' * 400}/9", "1/1 0s - loss: 2", "loss: nan")
    lines = ("step: -1e308, loss: 1e308", "step: 1e308, loss: -1e308", *epochs)
    frames.write(0, 1, "".join(f"{line}\n" for line in lines).encode())
    tell(frames, events.PhaseEnded(HALF, math.inf))
    tell(frames, events.TrainingSteps([0], [2], [2], [math.nan], [math.inf]))
    tell(frames, agent_events.CheckpointPublished(HALF, 1, 1, 1, math.nan))
    frames.close()
    layout = Layout(str(folder.host("algo-1")))
    log = ValueLog(layout.logged_metrics, "0")
    log.add(1, {MARKUP: 1.0, "inf": math.inf, "huge": 1.7e308})
    log.add(2, {f"many/{number:04}": 1.0 for number in range(600)})
    (own,) = Path(layout.logged_metrics).iterdir()
    with own.open("ab") as file:
        file.write(CELL.pack(0.0, -CELL.size, 0.0, 0, NAME) + CELL.pack(math.nan, 1 << 62, 1.0, 0, VALUE))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    make_hostile(folder)
    other = make_job(folder, "other", created=ENDED - 1e6)
    write_record(replace(read_record(other), ended=ENDED), other)
    return folder


@pytest.fixture(scope="module")
def server(home):
    with console(home) as running:
        yield running


def strict(body: bytes | str):
    return json.loads(body, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize(
    "path", [each.path for each in OPERATIONS if each.method == "GET" and each.stream is None and "{job}" in each.path]
)
def test_every_view_of_a_hostile_job_is_answered(server, path):
    query = {"/logs/search": "?text=loss", "/difference": "?other=other"}
    words = next((each for end, each in query.items() if path.endswith(end)), "")
    status, _, body = server.ask(f"{path.format(job='hostile')}{words}")
    assert status == 200, body
    assert strict(body)


def test_curves_are_told_whatever_their_steps_values_and_names_are(server):
    def read():
        found.update(server.get("jobs/hostile/curves?limit=4"))
        return found["is_complete"]

    found = {}
    wait_until(read, "the curves are never complete")
    assert found["total"] == 604
    by_name = {each["name"]: each for each in found["curves"]}
    assert len(by_name) == 4
    (many,) = server.get("jobs/hostile/curves?text=MANY/0599")["curves"]
    assert many["steps"] == [2]
    (loss,) = server.get("jobs/hostile/curves?text=loss")["curves"]
    assert (loss["steps"], loss["not_finite"]) == ([1, 2, 3, 4], 1)
    (infinite,) = server.get("jobs/hostile/curves?text=inf")["curves"]
    assert (infinite["mean"], infinite["newest"]) == ([None], [None, None])


def test_a_trace_has_only_events_of_a_time(home, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(home))
    made = trace.make(Job.attach("hostile").started)
    assert strict(strict_json.dumps(made)) == made
    assert all(each["ts"] >= 0 for each in made["traceEvents"] if each["ph"] != "M")


@pytest.mark.parametrize(
    "path",
    ["logs?after=0:999999999999999:7", "logs?before=0:3:1", "logs/search?text=x&before=0:999999999999999:7"],
)
def test_a_cursor_of_another_log_is_taken_as_far_as_there_is_one(server, path):
    found = server.get(f"jobs/hostile/{path}")
    assert found.get("searched", 0) < 1 << 20


def test_more_points_than_an_answer_may_have_are_refused(server):
    status, _, body = server.ask("/api/jobs/other/machines?resolution=2")
    assert (status, "give at least 250, or a later start" in json.loads(body)["error"]) == (400, True), body
    for resolution in (250, 86400):
        assert server.get(f"jobs/other/machines?resolution={resolution}")["series"] == []
    assert server.get(f"jobs/other/machines?resolution=2&start={ENDED - 60}")["series"] == []


def test_a_log_that_cannot_be_read_is_not_shown_as_an_empty_one(server, home):
    frames = Path(Layout(str(make_job(home, "unreadable").host("algo-1"))).frames)
    frames.symlink_to(frames)
    for part in ("logs", "logs/search?text=x", "story"):
        status, _, body = server.ask(f"/api/jobs/unreadable/{part}")
        assert status == 503 and str(frames) in json.loads(body)["error"], (part, body)


def test_a_job_that_goes_while_it_is_open_is_said_to_be_gone(server, home):
    folder = make_job(home, "going", "Failed")
    writer(folder).write(0, 1, b"loss: 1\n")
    head = f"Host: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    wait_until(lambda: server.get("jobs?text=going")["total"] == 1)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as page:
        page.sendall(f"GET /api/events?job=going HTTP/1.1\r\n{head}".encode())
        said = page.recv(1 << 16)
        for part in ("", "/logs", "/story", "/curves", "/machines", "/timeline", "/ledger", "/inputs", "/window"):
            assert server.ask(f"/api/jobs/going{part}")[0] == 200, part
        shutil.rmtree(folder.path)
        for part in ("", "/logs", "/story", "/curves", "/machines", "/timeline", "/ledger", "/inputs", "/window"):
            status, _, body = server.ask(f"/api/jobs/going{part}")
            assert status == 404 and "going" in json.loads(body)["error"], (part, body)
        while b'"removed": ["going"]' not in said:
            said += page.recv(1 << 16)
    assert server.get("jobs?text=going")["total"] == 0


def test_the_ledger_of_a_job_that_runs_is_not_made_for_every_look():
    running, ended = (1.0, False, 10), (1.0, True, 10)
    assert Reckoned(running, None, math.inf).answers((1.0, False, 20))
    assert not Reckoned(running, None, 0.0).answers(running)
    assert not Reckoned(running, None, math.inf).answers(ended)
    assert not Reckoned(running, None, math.inf).answers((2.0, False, 10))
    assert Reckoned(ended, None, math.inf).answers(ended)
    assert not Reckoned(ended, None, math.inf).answers((1.0, True, 11))
