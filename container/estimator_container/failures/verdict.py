"""Why a job ended: which rank on which host, how, and in whose words."""

from __future__ import annotations

import itertools
import json
import re
import signal
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace

from ..contract.names import EXIT_STOPPED, FAILURE_TEXT_LIMIT
from ..logs.frames import world_and_rank
from .kind import Kind, Origin

_TRACEBACK = "Traceback (most recent call last):"
_CHAIN_LINKS = ("direct cause of the following exception", "another exception occurred")
_IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError")
_CRASH = re.compile(  # as faulthandler tells of it
    r"^(Fatal Python error: .*\n)(?s:.*?)^(Current thread .*)\(most recent call first\):\n((?:  .*\n?)+)", re.MULTILINE
)
_OURS = "/ranks/script_runner.py"  # on any host, which may have the toolkit elsewhere
LAST_LINES = 20
LINES_BEFORE_A_CRASH = 5  # in which native code may have said what is wrong
SHOWN_OF_A_LINE = 80  # characters of a step's line in a message
# In the words of the kernel, gloo, NCCL and gRPC.
_ANOTHER_IS_GONE = re.compile(
    r"connection (?:was )?(?:closed|reset|refused|aborted)|broken pipe|socket closed|remote process exited"
    r"|failed to connect|failed to recv",
    re.IGNORECASE,
)
_WAYS_OUT = (
    (
        re.compile(r"MPI\.Intracomm\.Spawn.*\n.*MPI_ERR_INTERN"),
        "Ranks of a single host cannot reach those that they start unless the code mentions it (e.g. `Spawn`): "
        "write `custom_mpi_options='-oversubscribe'`.",
    ),
    (
        re.compile("MPI_ERR_WIN: invalid window"),
        "Open MPI needs UCX for windows between hosts, but an option disabled it or this Open MPI lacks it; below "
        "`MPI_THREAD_MULTIPLE` they work without it: set `mpi4py.rc.thread_level = 'serialized'` and "
        "`custom_mpi_options='-mca osc pt2pt'`.",
    ),
)
"""Words of a culprit -> what helps more than what its kind says."""


@dataclass(frozen=True)
class Verdict:
    """The cause of a failure, told apart from its consequences."""

    kind: Kind
    message: str
    """One sentence: what happened, on which rank and host."""
    host: str | None = None
    rank: int | None = None
    """One that another rank has spawned has the number that `frames.number_of` gives it: from 65,536 on."""
    exit_code: int | None = None
    signal: str | None = None
    """The signal's name, such as `SIGKILL`."""
    detail: str = ""
    """The traceback of the culprit, or its last words."""
    victims: tuple[int, ...] = ()
    """The ranks that were ended because of the culprit."""
    step: str | None = None
    """The name of the step that ran, in a job with steps."""

    def __post_init__(self) -> None:
        """The kind may be given by its value, as it is in JSON."""
        object.__setattr__(self, "kind", Kind(self.kind))

    @property
    def is_user_failure(self) -> bool:
        """Whether the user's code or settings caused the failure, and not the platform."""
        return self.kind.origin is Origin.USER

    @property
    def may_pass(self) -> bool:
        """Whether another attempt may not meet it again."""
        return self.kind.origin is Origin.PLATFORM

    @property
    def may_be_lost_host(self) -> bool:
        """Whether it is of a process that was killed, as a host that is lost kills all of its own."""
        return self.host is not None and self.signal == "SIGKILL" and self.kind in (Kind.SIGNAL, Kind.MPI)

    @property
    def may_be_a_stop(self) -> bool:
        """Whether it is of a rank that ended by SIGTERM, or with 143, as ranks do when a scheduler stops the job."""
        return self.kind in (Kind.SIGNAL, Kind.EXIT_CODE) and (
            self.signal == "SIGTERM" or self.exit_code == EXIT_STOPPED
        )

    @property
    def blames_another(self) -> bool:
        """Whether the script's own words say that a process elsewhere is gone: that one may be the culprit."""
        return self.kind is Kind.EXCEPTION and _ANOTHER_IS_GONE.search(self.detail) is not None

    def as_out_of_memory(self) -> Verdict:
        """The same for a rank that the kernel killed because its host had no memory left."""
        who = self.message.partition(" was killed")[0]
        message = f"{who} was killed because its host had no memory left; give it more, or a smaller batch"
        return replace(self, kind=Kind.OUT_OF_MEMORY, message=message)

    def with_lost_hosts(self, hosts: Sequence[str]) -> Verdict:
        """The same of a host that is lost, where others may be lost too.

        >>> of_lost_host("algo-1", "algo-3").with_lost_hosts(["algo-1", "algo-2"]).message
        'algo-1 is gone: its connection to algo-3 ended in the middle of the job; algo-2 is lost too'
        """
        *first, last = [host for host in hosts if host != self.host] or [""]
        if not last:
            return self
        others = f"{', '.join(first)} and {last} are" if first else f"{last} is"
        return replace(self, message=f"{self.message}; {others} lost too")

    def not_tried_again(self, why: str) -> Verdict:
        """The same of a job that allows for another attempt, and does not get it."""
        because = "" if why in self.message else f": {why}"
        return replace(self, message=f"{self.message}; it is not tried again{because}")

    def masked(self) -> Verdict:
        """The same without secrets that their form tells, for the script's words are among its own."""
        from ..logs.masking import in_text  # a job that does well has no need of it

        return replace(self, message=in_text(self.message), detail=in_text(self.detail))

    def in_step(self, name: str, line: str) -> Verdict:
        """The same of a job in whose step `name` it happened, which ran `line`."""
        first = line.strip().partition("\n")[0]
        shown = first if first == line.strip() and len(first) <= SHOWN_OF_A_LINE else f"{first[:SHOWN_OF_A_LINE]} …"
        return replace(self, message=f"step {name!r} ({shown}): {self.message}", step=name)

    def text(self) -> str:
        """The whole verdict for people: what happened, in whose words, whom it took along, what to try."""
        return _paragraphs(self.message, self.detail.rstrip().lstrip("\n"), *self._last_paragraphs)

    def failure_text(self) -> str:
        """As `text`, cut to what the platform shows: the detail from its start, then what follows it, then the rest."""
        message, detail, last = self.message, self.detail.rstrip().lstrip("\n"), self._last_paragraphs
        if len(_paragraphs(message, *last)) > FAILURE_TEXT_LIMIT:
            last = ()
        if len(message) >= FAILURE_TEXT_LIMIT:
            message = message[: FAILURE_TEXT_LIMIT - 2] + "…"
        room = FAILURE_TEXT_LIMIT - len(_paragraphs(message, "… ", *last))
        if len(detail) > room:
            detail = f"… {detail[-room:]}" if room > 0 else ""
        return _paragraphs(message, detail, *last)

    @property
    def _last_paragraphs(self) -> tuple[str, ...]:
        ways_out = [way for words, way in _WAYS_OUT if words.search(self.detail)]
        to_try = (*ways_out, self.kind.what_to_try)[0]
        return (f"It ended {names_of(self.victims)} too." if self.victims else "", to_try)

    def to_json(self) -> str:
        """The verdict as a JSON object, as `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """The way back from `to_json`. Raises ValueError for anything else."""
        fields = json.loads(text)
        try:
            return cls(**{**fields, "victims": tuple(fields.get("victims", ()))})
        except TypeError as error:
            raise ValueError(f"not a verdict: {error}") from None


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text) + "\n"


def names_of(ranks: Sequence[int]) -> str:
    """
    >>> names_of([3]), names_of([0, 2, 3]), names_of([1, 65536])
    ('rank 3', 'ranks 0, 2 and 3', 'ranks 1 and 0 of world 2')
    """
    *first, last = (name_of(rank) for rank in ranks)
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"


def odd_one(groups: Collection[Sequence[int]]) -> int | None:
    """The only rank that is apart from all others, where there are at least two of those.

    >>> odd_one([[0, 1], [2]]), odd_one([[0], [1]]), odd_one([[0, 1], [2], [3]])
    (2, None, None)
    """
    if len(groups) != 2:
        return None
    small, large = sorted(groups, key=len)
    return small[0] if len(small) == 1 < len(large) else None


def name_of(rank: int) -> str:
    """The name of a rank in sentences: its number, with that of its world if it was spawned."""
    world, in_world = world_and_rank(rank)
    return str(rank) if world == 1 else f"{in_world} of world {world}"


def of_rank(
    host: str, rank: int | None, code: int, stderr_tail: str, victims: tuple[int, ...] = (), role: str = ""
) -> Verdict:
    """The verdict on a script that ended with `code`: an exit code, or minus a signal's number.

    `role` is what the rank is in its world, where not all are alike.
    """
    who = who_is(host, rank, role)
    if code < 0:
        name = signal_name(-code)
        hint = "; the machine may have run out of memory" if name == "SIGKILL" else ""
        message = f"{who} was killed by {name}{hint}"
        return Verdict(Kind.SIGNAL, message, host, rank, None, name, last_words(stderr_tail), victims)
    words = last_words(stderr_tail)
    message = f"{who} exited with code {code}"
    kind = Kind.EXIT_CODE
    # After a traceback that ended it, Python exits with 1; with another code the script had gone on.
    if code == 1 and words.startswith(_TRACEBACK):
        exception = _exception_in(words)
        message += f": {exception}"
        kind = Kind.IMPORT_ERROR if exception.startswith(_IMPORT_ERRORS) else Kind.EXCEPTION
    return Verdict(kind, message, host, rank, code, None, words, victims)


def who_is(host: str, rank: int | None, role: str = "") -> str:
    """A rank on its host as sentences name it, with its role; or the script of a host without a world."""
    if rank is None:
        return f"the script on {host}"
    return f"{names_of([rank])}{f' ({role})' if role else ''} on {host}"


def of_lost_host(host: str, seen_by: str) -> Verdict:
    """The verdict on a host whose connection ended before the job did."""
    return Verdict(Kind.HOST_LOST, f"{host} is gone: its connection to {seen_by} ended in the middle of the job", host)


def of_silent_host(host: str, heard_by: str, seconds: float) -> Verdict:
    """The verdict on a host whose connection is there and says nothing."""
    what = f"{host} is frozen or cut off: {heard_by} has heard nothing from it for more than {seconds:g} s"
    return Verdict(Kind.HOST_LOST, f"{what}, and its connection was never closed", host)


def of_host_that_never_came(host: str, seconds: float) -> Verdict:
    """The verdict on a host that was started and has never said anything to its platform."""
    what = f"{host} is frozen or cut off: it was started, and its supervisor has heard nothing from it"
    return Verdict(Kind.HOST_LOST, f"{what} for more than {seconds:g} s", host)


def of_frozen_rank(host: str, rank: int | None, signum: int, seconds: float) -> Verdict:
    """The verdict on a rank that somebody has stopped, and nobody has let go on."""
    how = f"was stopped by {signal_name(signum)} and not continued for {seconds:g} s"
    return Verdict(Kind.FROZEN, f"{who_is(host, rank)} {how}", host, rank, None, signal_name(signum))


def last_words(stderr_tail: str) -> str:
    """The last traceback in the text, to its end, or that of a crash after it; without one, the last lines."""
    start = stderr_tail.rfind(_TRACEBACK)
    crash = _CRASH.search(stderr_tail, max(stderr_tail.rfind("Fatal Python error: "), 0))
    if crash is not None and crash.start() > start:
        return _traceback_of_crash(stderr_tail[: crash.start()], *crash.groups())
    if start < 0:
        return "\n".join(stderr_tail.rstrip().splitlines()[-LAST_LINES:])
    while True:
        earlier = stderr_tail.rfind(_TRACEBACK, 0, start)
        # An exception raised while another was handled: the first one is the cause.
        if earlier < 0 or not any(link in stderr_tail[earlier:start] for link in _CHAIN_LINKS):
            return stderr_tail[start:]
        start = earlier


def _traceback_of_crash(before: str, error: str, thread: str, frames: str) -> str:
    """In the order of other tracebacks, whose last line tells most, and without the toolkit's own frames."""
    calls = list(itertools.takewhile(lambda frame: _OURS not in frame, frames.splitlines()))[:LAST_LINES]
    said = before.rstrip().splitlines()[-LINES_BEFORE_A_CRASH:]
    return "\n".join([*said, error, f"{thread}(most recent call last):", *reversed(calls)])


def _exception_in(words: str) -> str:
    """The line that names the exception: the first below the last traceback that is not indented."""
    lines = words[words.rfind(_TRACEBACK) :].rstrip().splitlines()
    margin = re.match(r"(?: +\| )?", lines[1] if len(lines) > 1 else "")  # in an exception group each line has one
    for line in (each.removeprefix(margin[0] if margin else "") for each in lines[1:]):
        if line and not line[0].isspace():
            return line.rstrip()
    return lines[-1].strip()


def signal_name(number: int) -> str:
    """The name of a signal, such as `SIGKILL`, or `signal 64` for a number without one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
