"""One rank whose input comes from a generator: decodes slowly, reads many small files, or asks a slow store."""

from __future__ import annotations

import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from estimator_container.training import mark_step, timed_input
from truth import Truth, arguments, compute, work


class Store(BaseHTTPRequestHandler):
    """A store that sends an object of 64 KiB in pieces, as fast as it is told by the object's name."""

    def do_GET(self) -> None:
        """Send the object."""
        self.send_response(200)
        self.send_header("Content-Length", str(16 * 4096))
        self.end_headers()
        for _ in range(16):
            time.sleep(float(self.path.strip("/")) / 16)
            self.wfile.write(bytes(4096))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of each request."""


def from_store(milliseconds: float) -> Iterator[bytes]:
    """Ask the store for one object a batch."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{milliseconds / 1000}") as answer:
            yield answer.read()


def decoded_slowly(milliseconds: float) -> Iterator[bytes]:
    """Sleep while each of 8 samples of a batch is decoded."""
    while True:
        batch = []
        for _ in range(8):
            time.sleep(milliseconds / 8000)
            batch.append(bytes(16))
        yield b"".join(batch)


def decoded_by_cpu(milliseconds: float) -> Iterator[bytes]:
    """Use the CPU while each of 8 samples of a batch is decoded."""
    while True:
        for _ in range(8):
            work(milliseconds / 8)
        yield bytes(128)


def small_files(milliseconds: float) -> Iterator[bytes]:
    """Open, read and close small files for so long, as if a batch were made of so many."""
    folder = Path(tempfile.mkdtemp())
    for number in range(2000):
        (folder / f"{number}.bin").write_bytes(bytes(600))
    number = 0
    while True:
        until, batch = time.perf_counter() + milliseconds / 1000, []
        while time.perf_counter() < until:
            batch.append((folder / f"{number % 2000}.bin").read_bytes())
            number += 1
        yield b"".join(batch)


READERS = {"decode": decoded_slowly, "decode-cpu": decoded_by_cpu, "store": from_store, "files": small_files}


def main() -> None:
    """Train on what one of the readers gives."""
    given = arguments().parse_args()
    truth = Truth(given.truth, 0)

    def told() -> Iterator[bytes]:
        batches = READERS[given.cause](given.cause_ms)
        while True:
            with truth.injected():
                batch = next(batches)
            yield batch

    for number, _ in enumerate(timed_input(told())):
        compute(given.computing_ms)
        mark_step()
        truth.step()
        if number == given.steps:
            break
    truth.write()


main()
