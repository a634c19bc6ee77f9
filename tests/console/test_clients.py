"""Clients that leave, and clients that take nothing: what was begun for them ends."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import uvicorn
from anyio import CapacityLimiter

from estimator_sdk.server import serving
from estimator_sdk.server.api.logs import Download
from tests.console.server import PATIENCE, wait_until

SIZE = 64 << 20  # bytes of an answer: more than the kernel keeps for a reader
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


answered = threading.Event()


async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(SIZE)})
    answered.set()


@contextmanager
def served():
    """The port of connections as the console has them, with one large answer."""
    config = uvicorn.Config(answer, http=serving.BoundedConnection, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        running.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            running.join()


def taken_by(client) -> int:
    """Bytes that a client gets, to the end."""
    return sum(map(len, iter(lambda: client.recv(1 << 20), b"")))


def test_a_reader_that_takes_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(serving, "STALLED_SECONDS", 0.1)
    answered.clear()
    with served() as port, socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        client.sendall(REQUEST)
        assert answered.wait(PATIENCE)
        wait_until(lambda: not serving._open, "it is kept")
        assert taken_by(client) < SIZE


def test_a_reader_that_takes_something_meanwhile_gets_all():
    answered.clear()
    with served() as port, socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        client.sendall(REQUEST)
        assert answered.wait(PATIENCE)  # the end of the body, too, which makes what is left larger
        (connection,) = serving._open
        assert connection._stalled
        before = connection.transport.get_write_buffer_size() + 1
        connection.loop.call_soon_threadsafe(connection._abort_if_stalled, before)
        assert taken_by(client) > SIZE


def test_a_download_whose_reader_leaves_reads_no_further():
    async def leave():
        while len(sent) < 3:
            await asyncio.sleep(0.001)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message["type"])

    sent: list[str] = []
    console = SimpleNamespace(downloads=0, threads=CapacityLimiter(1))
    download = Download(console, itertools.repeat(b"a line\n"), "endless.log")
    asyncio.run(asyncio.wait_for(download({}, leave, send), PATIENCE))
    assert len(sent) >= 3 and console.downloads == 0


def test_a_download_that_breaks_off_does_not_end_as_if_it_were_whole():
    def pieces():
        yield b"a line\n"
        raise OSError("the disk is gone")

    async def stay():
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    sent: list[dict[str, object]] = []
    console = SimpleNamespace(downloads=0, threads=CapacityLimiter(1))
    with pytest.raises(OSError, match="the disk is gone"):
        asyncio.run(Download(console, pieces(), "broken.log")({}, stay, send))
    assert [each.get("more_body") for each in sent] == [None, True]
