"""A proxy before a server, one request a connection, that does to a request what the test says."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Fault = Literal["cut", "503", "expired", "throttle", "truncate", "end early", "stall", "lose the answer"]
EARLY = 4 << 20  # bytes of an answer that ends early
# What a server says instead of doing what it was asked (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
ERRORS = {
    "503": ("503 Slow Down", "SlowDown", "Reduce your request rate."),
    "expired": ("400 Bad Request", "ExpiredToken", "The provided token has expired."),
}


@dataclass(frozen=True)
class Request:
    """What came from the client."""

    method: str
    target: str
    number: int
    """Of all requests, from 0."""
    access_key: str
    """Who signed it; empty where nobody did."""
    operation: str
    """The operation of a service whose requests all have the same target, such as `SageMaker.CreateTrainingJob`."""
    range: str
    """The bytes that it asks for, such as `bytes=0-99`; empty for all."""
    size: int
    """Bytes of its body."""


class FaultProxy:
    """`choose` says of each request what becomes of it; None lets it pass."""

    def __init__(self, upstream: str, port: int = 0, address: str = "127.0.0.1") -> None:
        """On a free port of an address of this machine, or on that of a proxy that was closed."""
        host, _, upstream_port = upstream.removeprefix("http://").partition(":")
        self._upstream = (host, int(upstream_port))
        self._listener = socket.create_server((address, port), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self.endpoint = f"http://{address}:{self.port}"
        self.choose: Callable[[Request], Fault | None] = lambda request: None
        self.requests: list[Request] = []
        self.answered = 0
        """Bytes that went back, with their headers."""
        self.stalled = threading.Event()
        """Set when a request has been left without an answer."""
        self._released = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def release(self) -> None:
        """Cut the connections that were left without an answer; those that come later are left again."""
        with self._lock:
            released, self._released = self._released, threading.Event()
        self.stalled.clear()
        released.set()

    def close(self) -> None:
        self.release()
        with contextlib.suppress(OSError):  # it has been closed before
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            head, body = read_request(sock)
            if not head:
                return
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            with self._lock:
                request = Request(
                    method,
                    target,
                    len(self.requests),
                    signer(head),
                    header(head, b"x-amz-target"),
                    header(head, b"range"),
                    len(body),
                )
                self.requests.append(request)
            fault = self.choose(request)
            if fault == "cut":
                reset(sock)
            elif fault in ERRORS:
                sock.sendall(refusal(*ERRORS[fault]))
            elif fault == "throttle":
                sock.sendall(answer("400 Bad Request", '{"__type": "ThrottlingException", "message": "Rate exceeded"}'))
            elif fault == "stall":
                with self._lock:
                    released = self._released
                self.stalled.set()
                released.wait()
            else:
                self._answer(sock, self._forward(head, body), fault)

    def _answer(self, sock: socket.socket, chunks: Iterator[bytes], fault: Fault | None) -> None:
        sent = 0
        for chunk in chunks:
            if fault == "end early" and sent > EARLY:
                return
            if fault == "truncate":
                sock.sendall(chunk[: len(chunk) - 1 - len(chunk) // 16])
                return
            if fault != "lose the answer":
                with self._lock:
                    self.answered += len(chunk)  # before the client has it, and looks here
                sock.sendall(chunk)
                sent += len(chunk)

    def _forward(self, head: bytes, body: bytes) -> Iterator[bytes]:
        with socket.create_connection(self._upstream) as upstream:
            upstream.sendall(head[:-2] + b"connection: close\r\n\r\n" + body)
            while chunk := upstream.recv(1 << 20):
                yield chunk


def read_request(sock: socket.socket) -> tuple[bytes, bytes]:
    data = bytearray()
    while b"\r\n\r\n" not in data:
        chunk = sock.recv(1 << 16)
        if not chunk:
            return b"", b""
        data += chunk
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    length = int(header(head, b"content-length") or 0)
    parts = [body]
    missing = length - len(body)
    while missing > 0:
        chunk = sock.recv(min(missing, 1 << 20))
        if not chunk:
            return b"", b""
        parts.append(chunk)
        missing -= len(chunk)
    return head + b"\r\n\r\n", b"".join(parts)


def header(head: bytes, name: bytes) -> str:
    """The value of a header; empty without it."""
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return next((value.strip().decode() for key, _, value in lines if key.lower() == name), "")


def signer(head: bytes) -> str:
    """The access key of a request (https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html)."""
    return head.partition(b"Credential=")[2].partition(b"/")[0].decode()


def refusal(status: str, code: str, message: str) -> bytes:
    return answer(status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>")


def answer(status: str, text: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


def reset(sock: socket.socket) -> None:
    """Close at once, so that the other end sees a reset and not an end."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
