"""A console that runs, as a user starts it: a process of its own, on a home of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import SECONDS

PATIENCE = SECONDS
"""Seconds within which what is waited for comes, on a machine that does much else."""


@dataclass
class Server:
    """A console that listens on loopback."""

    process: subprocess.Popen[str]
    port: int
    token: str

    @property
    def address(self) -> str:
        """What it has printed."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def page(self) -> str:
        """The address without the token."""
        return f"http://127.0.0.1:{self.port}/"

    def ask(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None, token: str | None = ""
    ) -> tuple[int, dict[str, str], bytes]:
        """The status, headers and body of an answer; by default with the right token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        own = {} if token is None else {"Authorization": f"Bearer {token or self.token}"}
        connection.request(method, path, headers={**own, **(headers or {})})
        answer = connection.getresponse()
        found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        connection.close()
        return found

    def get(self, path: str) -> Any:
        """The document of an answer that is one."""
        status, _, body = self.ask(f"/api/{path}")
        assert status == 200, body
        return json.loads(body)

    def memory(self) -> int:
        """Bytes of anonymous memory that it has."""
        facts = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = [each for each in facts if each.startswith("RssAnon:")]
        return int(line.split()[1]) * 1024

    def descriptors(self) -> int:
        """How many files and sockets it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def end(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)


@contextmanager
def console(home: Path, *options: str) -> Iterator[Server]:
    """Start `estimator console`, and end it after the block."""
    words = [sys.executable, "-m", "estimator_sdk", "console", "--no-browser", *options]
    env = {**os.environ, "ESTIMATOR_HOME": str(home)}
    with (home / "console.err").open("w") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, env=env, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("http://127.0.0.1:"), (line, (home / "console.err").read_text())
    place, _, token = line.strip().partition("/?token=")
    server = Server(process, int(place.rpartition(":")[2]), token)
    try:
        yield server
    finally:
        if process.poll() is None:
            server.end()
        process.stdout.close()


def wait_until(condition: Callable[[], object], what: str = "it did not happen in time") -> None:
    """Wait for something that cannot tell."""
    over, deadline = threading.Event(), time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        over.wait(0.05)
