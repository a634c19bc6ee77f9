"""Why a job ended: which rank on which host, how, and in whose words."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass, replace

from .contract import FAILURE_TEXT_LIMIT

_TRACEBACK = "Traceback (most recent call last):"
_CHAIN_LINKS = ("direct cause of the following exception", "another exception occurred")
LAST_LINES = 20


@dataclass(frozen=True)
class Verdict:
    """The cause of a failure, told apart from its consequences."""

    kind: str
    """`exit_code`, `exception`, `signal`, `out_of_memory`, `mpi`, `requirements`, `configuration`, `channels`,
    `checkpoints`, `outputs`, `host_lost`, `host_missing`, `toolkit` or `platform`."""
    message: str
    """One sentence: what happened, on which rank and host."""
    host: str | None = None
    rank: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    """The signal's name, such as `SIGKILL`."""
    detail: str = ""
    """The traceback of the culprit, or its last words."""
    victims: tuple[int, ...] = ()
    """The ranks that were ended because of the culprit."""

    @property
    def is_user_failure(self) -> bool:
        return self.kind in ("exit_code", "exception", "signal", "out_of_memory", "requirements")

    def for_want_of_memory(self) -> Verdict:
        """The same for a rank that the kernel killed because its host had no memory left."""
        who = self.message.partition(" was killed")[0]
        message = f"{who} was killed because its host had no memory left; give it more, or a smaller batch"
        return replace(self, kind="out_of_memory", message=message)

    def text(self) -> str:
        """The whole verdict for people."""
        return f"{self.message}\n\n{self.detail.rstrip()}\n" if self.detail.strip() else f"{self.message}\n"

    def failure_text(self) -> str:
        """As `text`, cut to what the platform shows: the sentence whole, then the end of the detail."""
        message, detail = self.message, self.detail.rstrip()
        if len(message) >= FAILURE_TEXT_LIMIT:
            message = message[: FAILURE_TEXT_LIMIT - 2] + "…"
        room = FAILURE_TEXT_LIMIT - len(f"{message}\n\n… \n")
        if len(detail) > room:
            detail = f"… {detail[-room:]}" if room > 0 else ""
        return f"{message}\n\n{detail}\n" if detail else f"{message}\n"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """Raises ValueError for text that `to_json` did not make."""
        fields = json.loads(text)
        try:
            return cls(**{**fields, "victims": tuple(fields.get("victims", ()))})
        except TypeError as error:
            raise ValueError(f"not a verdict: {error}") from None


def of_rank(host: str, rank: int | None, code: int, stderr_tail: str, victims: tuple[int, ...] = ()) -> Verdict:
    """The verdict on a script that ended with `code`: an exit code, or minus a signal's number."""
    who = f"rank {rank} on {host}" if rank is not None else f"the script on {host}"
    if code < 0:
        name = signal_name(-code)
        hint = "; the machine may have run out of memory" if name == "SIGKILL" else ""
        message = f"{who} was killed by {name}{hint}"
        return Verdict("signal", message, host, rank, None, name, last_words(stderr_tail), victims)
    words = last_words(stderr_tail)
    message = f"{who} exited with code {code}"
    # After a traceback that ended it, Python exits with 1; with another code the script had gone on.
    kind = "exception" if code == 1 and words.startswith(_TRACEBACK) else "exit_code"
    if kind == "exception":
        message += f": {_exception_in(words)}"
    return Verdict(kind, message, host, rank, code, None, words, victims)


def of_lost_host(host: str, seen_by: str) -> Verdict:
    """The verdict on a host whose connection ended before the job did."""
    return Verdict("host_lost", f"{host} is gone: its connection to {seen_by} ended in the middle of the job", host)


def last_words(stderr_tail: str) -> str:
    """The last traceback in the text, to its end; without one, the last lines."""
    start = stderr_tail.rfind(_TRACEBACK)
    if start < 0:
        return "\n".join(stderr_tail.rstrip().splitlines()[-LAST_LINES:])
    while True:
        earlier = stderr_tail.rfind(_TRACEBACK, 0, start)
        # An exception raised while another was handled: the first one is the cause.
        if earlier < 0 or not any(link in stderr_tail[earlier:start] for link in _CHAIN_LINKS):
            return stderr_tail[start:]
        start = earlier


def _exception_in(words: str) -> str:
    """The line that names the exception: the first below the last traceback that is not indented."""
    lines = words[words.rfind(_TRACEBACK) :].rstrip().splitlines()
    for line in lines[1:]:
        if line and not line[0].isspace():
            return line.rstrip()
    return lines[-1].strip()


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
