"""What Slurm says of jobs, by its own programs; and what they are told."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...errors import BackendError
from . import waiting_line

ANSWER_SECONDS = 30.0  # that Slurm's controller may take
ASK_AGAIN_SECONDS = 10.0
"""Between two looks at the queue by one process, however many jobs it asks about, for a controller has many users."""
OVER = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
        "TIMEOUT",
    )
)
"""The states of a job that is over ("JOB STATE CODES" in the manual of squeue, 22.05). In any other it may go on."""
WAITING = ("PENDING", "RESV_DEL_HOLD")
"""The states of a job that waits for nodes; the second, once its reservation was removed."""

_FORMAT = "%i|%T|%r|%S|%e|%U|%P|%Q"
"""Number, state, reason, start, end, the user's number, partitions, priority (manual of squeue, 22.05)."""
_OPTIONS = ("SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_", "SLURM_TIME_FORMAT")
"""How the names of variables start which set options of these programs: they are meant for people."""


class Queued(NamedTuple):
    """A job in the queue, or not long gone from it."""

    state: str
    """In full and in capitals, such as PENDING."""
    reason: str
    """Why it is in this state, in Slurm's word, such as Priority."""
    starts: str = ""
    """When Slurm expects it to start, as it writes a time; empty where it does not know."""
    ends: str = ""
    """The same for its end."""
    ahead: int = 0
    """How many jobs Slurm would rather start, of those that wait for the same partitions, as far as that is known."""

    @property
    def why_pending(self) -> str:
        """What somebody who waits for it is told; the day only where that is not today.

        >>> Queued("PENDING", "Priority", "2020-11-25T14:20:00", ahead=3).why_pending
        'Priority, 3 ahead, estimated 2020-11-25 14:20'
        >>> Queued("PENDING", "Resources").why_pending
        'Resources'
        >>> Queued("PENDING", "None", ahead=2).why_pending
        '2 ahead'
        """
        day, _, hour = self.starts.rpartition("T")
        when = hour[:5] if day == time.strftime("%Y-%m-%d") else f"{day} {hour[:5]}".strip()
        ahead = f"{self.ahead} ahead" if self.ahead else ""
        reason = "" if self.reason == "None" else self.reason  # the scheduler has not looked at it yet
        return ", ".join(filter(None, (reason, ahead, when and f"estimated {when}")))

    @property
    def is_over(self) -> bool:
        """Whether it will not change any more."""
        return self.state in OVER

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for nodes, so that nothing of it runs."""
        return self.state in WAITING

    @property
    def ended(self) -> float | None:
        """When it did, in seconds since the epoch; None where Slurm does not say so in a way that is understood."""
        try:
            return time.mktime(time.strptime(self.ends, "%Y-%m-%dT%H:%M:%S"))
        except (ValueError, OverflowError):
            return None


class _Look(NamedTuple):
    asked: float
    at: float
    """When there was an answer, or none any more."""
    jobs: Mapping[int, Queued] | None
    """None where the controller did not answer."""
    cluster: tuple[str | None, ...] = ()
    """What says which one that is."""
    silent_since: float | None = None
    """When the first of the looks in a row was that had no answer, in seconds since 1970; None where there was one."""


_cluster: tuple[tuple[str | None, ...], float, str] = ((), 0.0, "")
"""What selects the cluster, when it was asked for its name, and the name."""
_last = _Look(-ASK_AGAIN_SECONDS, -ASK_AGAIN_SECONDS, None)
_line = waiting_line.Seen()


def look(age: float | None = None, in_line: bool = False) -> Mapping[int, Queued] | None:
    """This user's jobs by their numbers, as Slurm knew them at most `age` seconds ago; None without an answer.

    `age` is ASK_AGAIN_SECONDS unless there is a reason to ask more often, which is not for long. With `in_line` they
    say how many others are ahead: once in a while Slurm is asked about all jobs, in the place of this user's alone.
    """
    global _last
    asked, cluster = time.monotonic(), _which()
    if cluster != _last.cluster or asked - _last.at >= (ASK_AGAIN_SECONDS if age is None else age):
        of_all = in_line and _line.is_old(asked)
        whose = () if of_all else ("--me",)
        try:
            said = ask("squeue", *whose, "--noheader", "--states=all", f"--format={_FORMAT}").splitlines()
        except BackendError:
            since = _last.silent_since if cluster == _last.cluster else None
            _last = _Look(asked, time.monotonic(), None, cluster, since or time.time())
        else:
            if of_all:
                _line.see(asked, filter(None, map(waiting_line.parsed, said)))
            _last = _Look(asked, time.monotonic(), dict(filter(None, map(_parsed, said))), cluster)
    return _last.jobs


def cluster() -> str:
    """The name of the cluster that Slurm's programs talk to here; empty as long as its controller does not answer."""
    global _cluster
    which, asked, name = _cluster
    if which != _which() or (not name and time.monotonic() - asked >= ASK_AGAIN_SECONDS):
        name = ""
        with suppress(BackendError):
            pairs = (line.partition("=") for line in ask("scontrol", "show", "config").splitlines())
            name = next((value.strip() for key, _, value in pairs if key.strip() == "ClusterName"), "")
        _cluster = (_which(), time.monotonic(), name)
    return name


def talks_to(its: str) -> bool | None:
    """Whether Slurm's programs talk here to the cluster of this name, and to no other; None if that is not known."""
    here = os.environ.get("SLURM_CLUSTERS") or cluster()  # of several, `scontrol` says nothing
    return here.casefold() == its.casefold() if here else None


def _which() -> tuple[str | None, ...]:
    """What says which cluster is asked."""
    return tuple(map(os.environ.get, ("SLURM_CONF", "SLURM_CLUSTERS")))


def silent_since() -> float | None:
    """Since when the controller does not answer, in seconds since 1970; None where it does, as far as `look` knows."""
    return _last.silent_since


def has_asked_since(moment: float) -> bool:
    """Whether what `look` said last was asked after a moment, in seconds of time.monotonic()."""
    return _last.asked >= moment


def ask(
    *command: str,
    text: str | None = None,
    variables: Mapping[str, str] | None = None,
    folder: Path | None = None,
    seconds: float = ANSWER_SECONDS,
) -> str:
    """What one of Slurm's programs prints; `text` is its input, and `folder` where it runs.

    Raises BackendError with what it says is wrong, and where an answer takes more than `seconds`.
    """
    import subprocess  # who lists the jobs of a home without any need not load it

    try:
        done = subprocess.run(
            command,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            env=_without_options(os.environ if variables is None else variables),
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
        )
    except FileNotFoundError:
        what = f"{command[0]} is not on PATH, so this machine is no login node of a Slurm cluster"
        raise BackendError(f"{what}; log in to one, or load its module, such as `module load slurm`") from None
    except subprocess.TimeoutExpired:
        what = f"{command[0]} has had no answer from Slurm's controller for {seconds:g} s"
        raise BackendError(f"{what}; see `scontrol ping`, and try again") from None
    except OSError as error:
        raise BackendError(f"{command[0]} cannot be run: {error}; ask the administrator of the cluster") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise BackendError(f"{says(command[0])}{said}")
    return done.stdout


def says(program: str) -> str:
    """How an error of `ask` begins whose words are the program's own."""
    return f"{program} says: "


def _without_options(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not name.startswith(_OPTIONS)}


def node_facts(nodes: str) -> list[dict[str, str]]:
    """What Slurm knows of nodes, given as in SLURM_JOB_NODELIST: a dict of its words for each. Raises BackendError."""
    lines = ask("scontrol", "--oneliner", "show", "node", nodes).splitlines()
    return [facts(line) for line in lines if line.strip()]


def facts(line: str) -> dict[str, str]:
    """A line of `scontrol --oneliner show`, less what has spaces in it.

    >>> facts("NodeName=n1 Arch=x86_64 NodeAddr=10.0.0.1")
    {'NodeAddr': '10.0.0.1', 'Arch': 'x86_64', 'NodeName': 'n1'}

    What people write, such as a comment, comes after what Slurm says, and does not replace it:

    >>> facts("JobState=RUNNING Restarts=0 Comment=see JobState=PENDING")["JobState"]
    'RUNNING'
    """
    pairs = (word.partition("=") for word in reversed(line.split()))
    return {name: value for name, found, value in pairs if found}


def cancel(number: int, *options: str) -> None:
    """`scancel`; nothing happens if the job is over. Raises BackendError where this user may not."""
    try:
        ask("scancel", *options, str(number))
    except BackendError as error:
        if "already completing or completed" not in str(error) and "Invalid job id" not in str(error):
            raise


def kill_steps(number: int, *names: str) -> None:
    """End steps of a job, by their names, with all that runs in them. Raises BackendError."""
    for line in ask("squeue", "--steps", "--noheader", f"--jobs={number}", "--format=%i|%j").splitlines():
        step, _, found = line.strip().partition("|")
        if found in names:
            ask("scancel", "--signal=KILL", step)


def _parsed(line: str) -> tuple[int, Queued] | None:
    """A job of this user's; None for any other line."""
    fields: Sequence[str] = line.split("|")
    if len(fields) != 8 or not fields[0].isdecimal() or fields[5] != str(os.getuid()):
        return None
    number, state, reason, *times = fields[:5]
    starts, ends = ("" if each == "N/A" else each for each in times)
    return int(number), Queued(state, reason, starts, ends, _line.ahead_of(int(number)))
