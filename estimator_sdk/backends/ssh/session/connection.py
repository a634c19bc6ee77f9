"""One machine of a pool, reached by the system's OpenSSH: a session that runs our program there and speaks with it."""

from __future__ import annotations

import contextlib
import json
import select
import shutil
import subprocess
import tempfile
import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from ....errors import BackendError
from ....values.debugging import debug
from ..pool import PoolHost
from . import masters, software

CONNECT_SECONDS = 20
"""That a machine may take to answer at all."""
KEEP_SECONDS = 60
"""For which a connection stays open that nobody uses, so that the next command need not make another."""
END_SECONDS = 5.0
"""That our program on a machine has to remove what it leaves to nobody, after the last it was asked for."""
ANSWER_SECONDS = 60.0
"""That our program on a machine may take to begin an answer."""
_TAKE_LONG = ("image", "put", "channel", "supervise", "delete")
"""What it may be asked that can take any time."""
_OPTIONS = (
    "BatchMode=yes",
    "ControlMaster=auto",
    f"ControlPersist={KEEP_SECONDS}",
    f"ConnectTimeout={CONNECT_SECONDS}",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "RequestTTY=no",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "LogLevel=ERROR",
)
_RUN = "import sys;exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"
_NOT_FOUND = 127  # of a shell, for a program that it does not have
_OF_SSH = 255  # where it has no connection; any other exit code is that of the shell there


class Unreachable(BackendError):
    """The machine does not answer, or the connection to it was cut."""


class Purpose(NamedTuple):
    """What a session is opened for, as far as the machine can begin with it."""

    with_stores: bool = False
    """The software is to have the client of s3:// stores."""
    starts_job: bool = False
    """The supervisor of a job is started next."""
    code: str = ""
    """The name of its code's bundle."""
    keeper: str = ""
    """The name of the keeper that is told next what to do."""


class Deliveries:
    """Sees that machines which share the folder for the software get it once, and all others at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._made: set[str] = set()

    def turn(self, place: str) -> threading.Lock:
        """What to hold while the software is brought to a place."""
        with self._lock:
            return self._turns[place]

    def is_made(self, place: str) -> bool:
        """Whether that was done before; from now on it was."""
        with self._lock:
            before = place in self._made
            self._made.add(place)
            return before


class Session:
    """A program on a machine that answers requests, one after the other; for any thread."""

    def __init__(self, host: PoolHost, purpose: Purpose | None = None, deliveries: Deliveries | None = None) -> None:
        """Connect, and bring the software if it is not there; `deliveries` are those to machines asked at once.

        Raises BackendError with OpenSSH's own words.
        """
        self.host = host
        self.has_code = False
        """Whether the machine has the code's bundle that it was asked for."""
        self._lock = threading.Lock()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - it lasts as long as the session
        self._process = _start(host, self._words)
        try:
            self._bring_software(purpose or Purpose(), deliveries or Deliveries())
        except BaseException:
            self.close()
            raise

    def ask(self, operation: str, data: bytes = b"", **facts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
        """Have an operation done there; returns its answer. Raises BackendError for one that failed."""
        answer, _ = self.ask_for_data(operation, data, **facts)
        return answer

    def ask_for_data(
        self,
        operation: str,
        data: bytes = b"",
        **facts: Any,  # noqa: ANN401 - JSON values
    ) -> tuple[dict[str, Any], bytes]:
        """As `ask`, with the bytes that come with the answer."""
        with self._lock:
            self.send(operation, data, **facts)
            if operation not in _TAKE_LONG:
                self._wait_for_answer(ANSWER_SECONDS)
            answer = self.receive()
            return answer, self._read(int(answer.get("size", 0)))

    def send(self, operation: str, data: bytes = b"", **facts: Any) -> None:  # noqa: ANN401 - JSON values
        """Ask for an operation without waiting for its answer, which `receive` gives. Raises BackendError."""
        self._send({**facts, "operation": operation, "size": len(data)}, data)

    def receive(self) -> dict[str, Any]:
        """The answer to the first request that has none yet. Raises BackendError for one that failed."""
        line = self._output.readline()
        if not line.endswith(b"\n"):
            raise self._lost()
        try:
            answer = dict(json.loads(line))
        except ValueError:
            said = line[:200].decode("utf-8", "replace").strip()
            what = f"{self.host} answers {said!r}, which is not our program's"
            hint = "see that the account may run commands, and that its shell's start-up files print nothing"
            raise BackendError(f"{what}; {hint}") from None
        if "error" in answer:
            raise BackendError(f"{self.host}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the program there; the connection stays for a while, for others."""
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()
        self._words.close()

    def _bring_software(self, purpose: Purpose, deliveries: Deliveries) -> None:
        program, digest = software.BOOT.read_bytes(), software.digest(purpose.with_stores)
        self._write(b"%d\n" % len(program) + program)
        stores = software.STORES if purpose.with_stores else ""
        self._send({**purpose._asdict(), "digest": digest, "stores": stores})
        self._wait_for_answer(CONNECT_SECONDS + ANSWER_SECONDS)
        answer = self.receive()
        self.has_code = answer["has_code"]
        if not answer["needs"]:
            return
        place = f"{answer['place']} {digest}"
        with deliveries.turn(place):
            if deliveries.is_made(place):
                self._send({"size": 0})
                if not self.receive()["needs"]:
                    return
            archive = software.archive(purpose.with_stores)
            debug("%s: copying the software, %d bytes", self.host, len(archive))
            self._send({"size": len(archive)}, archive)
            self.receive()

    def _wait_for_answer(self, seconds: float) -> None:
        """Raises Unreachable where none begins: a file system there may stand still, of which ssh says nothing."""
        waiting = select.poll()
        waiting.register(self._output, select.POLLIN)  # nothing is in its buffer: all before has been answered and read
        if waiting.poll(seconds * 1000):
            return
        self._process.kill()
        said = self._said_by_ssh()
        what = f"our program on {self.host} has not answered for {seconds:g} s{f' ({said})' if said else ''}"
        see = f"see by `{self.host.command} ls` whether a file system there stands still, or a login waits for somebody"
        raise Unreachable(f"{what}; {see}")

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _send(self, facts: Mapping[str, Any], data: bytes = b"") -> None:
        self._write(json.dumps(facts).encode() + b"\n" + data)

    def _write(self, data: bytes) -> None:
        try:
            self._input.write(data)
            self._input.flush()
        except (OSError, ValueError):
            raise self._lost() from None

    def _read(self, size: int) -> bytes:
        data = self._output.read(size) if size else b""
        if len(data) < size:
            raise self._lost()
        return data

    def _lost(self) -> BackendError:
        """What is said of a session that has ended by itself, with what OpenSSH says."""
        with contextlib.suppress(OSError, ValueError):
            self._input.close()
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = None
        return lost(self.host, code, self._said_by_ssh())

    def _said_by_ssh(self) -> str:
        self._words.seek(0)
        return _in_one_line(self._words.read().decode("utf-8", "replace"))


def _in_one_line(words: str) -> str:
    return " ".join(line for line in map(str.strip, words.splitlines()) if line.strip("@"))  # OpenSSH draws boxes of @


def lost(host: PoolHost, code: int | None, words: str) -> BackendError:
    """What is said of a session that has ended by itself.

    `code` is the exit code of its `ssh`, None where that has not ended, and `words` what that wrote.
    """
    said = _in_one_line(words)
    if code == _NOT_FOUND:
        what = f"{host} has no python3 on the PATH of its shell ({said})"
        return BackendError(f"{what}; install Python 3.9 or newer there")
    if "Traceback" in said:
        return BackendError(f"{host}: our program ended: {said[-500:]}")
    if code is not None and 0 <= code != _OF_SSH:
        what = f"the login shell of {host} has ended with code {code} instead of running python3"
        hint = "see that the account may run commands, and that its shell's start-up files let it"
        return Unreachable(f"{what}: {said or 'it said nothing'}; {hint}")
    what = f"{host} cannot be reached by ssh: {said or 'the connection was closed'}"
    return Unreachable(f"{what}; see what `{host.command} true` says, which must ask for nothing")


def _start(host: PoolHost, words: IO[bytes]) -> subprocess.Popen[bytes]:
    if shutil.which("ssh") is None:
        raise BackendError("there is no program ssh on PATH; install OpenSSH's client: apt-get install openssh-client")
    options = [word for each in (*_OPTIONS, f"ControlPath={masters.folder()}/%C") for word in ("-o", each)]
    port = [] if host.port is None else ["-p", str(host.port)]
    return subprocess.Popen(
        ["ssh", *options, *port, "--", host.name, f"exec python3 -I -S -c '{_RUN}'"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=words,
        start_new_session=True,  # a Ctrl-C in this process's terminal is this process's
    )
