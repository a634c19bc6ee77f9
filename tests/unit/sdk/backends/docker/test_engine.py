"""What is said where the engine cannot be reached, or answers and does not do what it is asked."""

from __future__ import annotations

import json
import socket
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from estimator_sdk import BackendError, Estimator
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import build, catalogue

ERROR = json.dumps({"message": "the graph driver is broken"}).encode()
WAYS = {
    "an error": (500, ERROR, "the graph driver is broken"),
    "no rights": (403, ERROR, "the graph driver is broken"),
    "no JSON": (200, b"<html>", "Expecting value"),
    "silence": (None, b"", "Remote end closed connection"),
}


class Answers(BaseHTTPRequestHandler):
    """Says which version of the API it has, and answers anything else as it was told to."""

    way: tuple[int | None, bytes, str]

    def do_GET(self) -> None:
        status, body, _ = (200, b'{"ApiVersion": "1.41"}', "") if self.path == "/version" else self.way
        if status is not None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        self.close_connection = True

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


class Server(socketserver.ThreadingUnixStreamServer):
    def get_request(self) -> tuple[object, tuple[str, int]]:
        return super().get_request()[0], ("", 0)


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def trouble(request, tmp_path, monkeypatch) -> Iterator[str]:
    """An engine with which something is wrong; its own words for it."""
    handler = type("Handler", (Answers,), {"way": request.param})
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, Server(f"{folder}/engine.sock", handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/engine.sock")
        monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
        (tmp_path / "train.py").touch()
        yield request.param[2]
        server.shutdown()


def test_an_engine_that_takes_a_request_and_does_not_answer_is_one_sentence(monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{folder}/engine.sock")
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", address := f"unix://{folder}/engine.sock")
        said = f"the Docker engine at DOCKER_HOST={address} does not answer: it has answered nothing for 0.2 s, "
        with pytest.raises(BackendError, match=said):
            engine.connect(0.2)


def test_an_engine_that_does_not_do_what_it_is_asked_is_one_sentence(trouble, tmp_path):
    script = str(tmp_path / "train.py")
    doors = {
        "the image of another": lambda: Estimator(entry_point=script, image_uri="other:1").plan(),
        "limits": lambda: Estimator(entry_point=script, backend="docker", cpus=1).plan(),
        "an image of ours": lambda: Estimator(entry_point=script, backend="docker").fit(logs="none"),
        "a build": lambda: build.build(engine.connect(), catalogue.MPI, "any:1", "base:1", sys.stderr),
    }
    for door, knock in doors.items():
        with pytest.raises(BackendError, match="the Docker engine could not .*: ") as raised:
            knock()
            raise AssertionError(door)
        assert trouble in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "address", ["unix:///nowhere.sock", "tcp://127.0.0.1:1", "tcp://127.0.0.1:99999", "garbage", "fd://", "tcp://[::1"]
)
def test_an_address_where_no_engine_can_be_is_named(monkeypatch, address):
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(BackendError) as raised:
        engine.connect()
    assert f"no Docker engine answers at DOCKER_HOST={address} (" in str(raised.value)
    assert "fix DOCKER_HOST" in str(raised.value)
