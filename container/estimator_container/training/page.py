"""The page of memory in which a rank keeps count of its steps, and which its host reads now and then.

It is a file that the rank has mapped, so a step costs it no system call. The file holds numbers of 64 bits in the
machine's own order; each is written at once. Times are those of the monotonic clock, in nanoseconds.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from ..contract.names import STEPS_PREFIX, name_of_rank, rank_of_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    Page = memoryview[int]

PID, STEPS, NUMBER, FIRST, LAST, OWN, OWN_STEPS = range(7)
"""The first numbers of a page; `StepCount` says what each is."""
AT, AT_STEPS, INPUT, COMMUNICATION, CHECKPOINT, LOOKED_AT, IDLE, KNOWN = range(7, 15)
"""Those that follow; `StepTime` says what each is."""
WINDOW = 15
"""The last, which the host writes: see `set_window`."""
_FORMAT = struct.Struct("=16q")


class StepCount(NamedTuple):
    """What is on the page of one rank."""

    rank: int | None
    pid: int
    """Of the process that counts; a rank of a job with steps is one after the other."""
    steps: int
    """How many have ended in this process."""
    number: int
    """That of the last one, as the script counts them; `steps`, if it does not."""
    first: int
    """When the first one ended."""
    last: int
    own: int
    """Nanoseconds of its own work, in those steps of which that is known."""
    own_steps: int
    """How many these are."""

    def to_field(self) -> str:
        """As one host tells another."""
        return " ".join(map(str, self[1:] if self.rank is None else self))

    @classmethod
    def from_field(cls, field: str) -> StepCount:
        """The way back from `to_field`."""
        numbers = [int(word) for word in field.split()]
        return cls(*numbers) if len(numbers) == len(cls._fields) else cls(None, *numbers)


class StepTime(NamedTuple):
    """Where the time of a rank's steps went, since the end of the first one of its process. Times are nanoseconds."""

    rank: int | None
    pid: int
    steps: int
    """Those that have ended since the first one."""
    time: int
    """That they took; the rest is in it."""
    input: int | None
    """In which it waited for its input; None where nothing has been seen of that."""
    communication: int | None
    """In which it waited for gradients, those of others included."""
    checkpoint: int | None
    """In which it wrote checkpoints."""
    idle: int | None
    """In which it did none of these, and used no CPU either: by a sample of the steps."""


def open_page(folder_file: str, rank: str | None) -> Page | None:
    """The page of a rank, for this process alone; None where its host reads none, or another process counts.

    `folder_file` is the file that names the folder of the pages, `Layout.training_steps`.
    """
    import fcntl
    import mmap

    try:
        with open(folder_file, encoding="utf-8") as file:
            path = os.path.join(file.read(), f"{STEPS_PREFIX}{name_of_rank(rank)}")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except (OSError, ValueError):
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(fd, bytes(_FORMAT.size), 0)  # a hole in a file on a full disk would end the process that fills it
        page = memoryview(mmap.mmap(fd, _FORMAT.size)).cast("q")  # which keeps the file open, and so the lock
    except OSError:
        return None
    finally:
        os.close(fd)
    page[PID] = os.getpid()
    return page


def set_window(folder: str, number: int) -> list[int | None]:
    """Tell all ranks with a page to record what they do from their next step on, or with 0 no longer.

    Returns these ranks; None is the script of a host without a world.
    """
    found: list[int | None] = []
    for rank, path in _files(folder):
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            os.pwrite(fd, struct.pack("=q", number), 8 * WINDOW)
        finally:
            os.close(fd)
        found.append(rank)
    return found


def read_pages(folder: str) -> list[StepCount]:
    """Those in the folder on which a step is counted."""
    return [StepCount(rank, *numbers[PID : OWN_STEPS + 1]) for rank, numbers in _pages(folder) if numbers[STEPS] > 0]


def read_times(folder: str) -> list[StepTime]:
    """Those in the folder on which more than one step is counted, and where their time went."""
    return [_time(rank, numbers) for rank, numbers in _pages(folder) if numbers[AT_STEPS] > 1]


def _time(rank: int | None, numbers: tuple[int, ...]) -> StepTime:
    time, known = max(0, numbers[AT] - numbers[FIRST]), numbers[KNOWN]
    spent = {kind: numbers[kind] for kind in (INPUT, COMMUNICATION, CHECKPOINT) if known >> kind & 1}
    idle = None
    if known >> IDLE & 1 and numbers[LOOKED_AT] > 0:
        idle = max(0, time - sum(spent.values())) * numbers[IDLE] // numbers[LOOKED_AT]
    kinds = spent.get(INPUT), spent.get(COMMUNICATION), spent.get(CHECKPOINT)
    return StepTime(rank, numbers[PID], numbers[AT_STEPS] - 1, time, *kinds, idle)


def _pages(folder: str) -> Iterator[tuple[int | None, tuple[int, ...]]]:
    for rank, path in _files(folder):
        try:
            with open(path, "rb") as file:
                numbers = _FORMAT.unpack(file.read(_FORMAT.size))
        except (OSError, struct.error):
            continue
        yield rank, numbers


def _files(folder: str) -> Iterator[tuple[int | None, str]]:
    """Each page with its rank, in the order of their names; none where something has removed the folder."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        if name.startswith(STEPS_PREFIX):
            try:
                rank = rank_of_name(name[len(STEPS_PREFIX) :])
            except ValueError:
                continue
            yield rank, os.path.join(folder, name)
