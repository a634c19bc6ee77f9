"""The files of the values that scripts log: cells of 32 bytes, appended by the process that logs.

    cell    time (8 bytes, seconds since 1970), step (8, signed), value (8), number of the name (4), kind (4)
    kinds   1 a value, 2 a value without a step, 3 a name of `step` bytes, which are in the cells that follow

Numbers are little-endian. A process names a metric before its first value; a file has the name of the rank, or
`script` where there is no world, and of the process. What follows the last whole cell was cut short.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import time
from collections.abc import Iterator, Mapping

from ..contract.names import Layout, name_of_rank, rank_of_name

VALUE, WITHOUT_STEP, NAME = 1, 2, 3
_CELL = struct.Struct("<dqdII")
_LONGEST_NAME = 256
MOST_STEPS = 1 << 53
"""Below which a step is: the whole numbers that a float has."""
_NO_TIME_MORE = 253402300800.0  # the year 10000

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    class LoggedValue(NamedTuple):
        """A value that a script has logged."""

        time: float
        step: int | None
        name: str
        value: float
else:
    from collections import namedtuple  # `typing` would cost a rank more than all else here

    LoggedValue = namedtuple("LoggedValue", ["time", "step", "name", "value"])


class ValueLog:
    """Appends what this process logs."""

    def __init__(self, folder: str, rank: str | None) -> None:
        """`folder` is `Layout.logged_metrics`. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # and none above it, as `private_folder.make_below`, which costs imports
        path = os.path.join(folder, f"{name_of_rank(rank)}-{os.getpid()}")
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._names: dict[str, int] = {}
        self._told = 0
        """How many of the names are in the file."""
        # An earlier process with this number may have left half a cell.
        os.write(self._fd, bytes(-os.fstat(self._fd).st_size % _CELL.size))

    def add(self, step: int | None, values: Mapping[str, float]) -> None:
        """Append values, all at once. Raises OSError."""
        now = time.time()
        kind = WITHOUT_STEP if step is None else VALUE
        cells = []
        for name in values.keys() - self._names.keys():
            self._names[name] = len(self._names)
        for name, value in values.items():
            number = self._names[name]
            if number >= self._told:
                cells.append(_name_cells(name, number))
            cells.append(_CELL.pack(now, step or 0, value, number, kind))
        data = b"".join(cells)
        written = os.write(self._fd, data)
        if written < len(data):
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._told = len(self._names)


class LoggedValues:
    """Makes values of the bytes of one file, in pieces of any size."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[LoggedValue]:
        """The values that `data` completes."""
        data = self._rest + data
        at = 0
        while at + _CELL.size <= len(data):
            moment, step, value, number, kind = _CELL.unpack_from(data, at)
            end = at + _CELL.size
            if kind == NAME and 0 < step <= _LONGEST_NAME:
                end += -(-step // _CELL.size) * _CELL.size
                if end > len(data):
                    break
                name = data[at + _CELL.size : at + _CELL.size + step]
                self._names[number] = name.decode("utf-8", "replace")
            elif kind in (VALUE, WITHOUT_STEP) and number in self._names and 0 <= moment < _NO_TIME_MORE:
                is_step = kind == VALUE and abs(step) < MOST_STEPS
                yield LoggedValue(moment, step if is_step else None, self._names[number], value)
            at = end  # a cell that is none of these is damaged, or a script's own
        self._rest = data[at:]


def rank_of_file(name: str) -> int | None:
    """The rank whose file has this name; None where there is no world. Raises ValueError for another file."""
    return rank_of_name(name.partition("-")[0])


def folder_of_job(variables: Mapping[str, str]) -> str | None:
    """Where a script with these variables logs its values; None where nobody reads them."""
    output = variables.get("SM_OUTPUT_DIR")
    layout = Layout(os.path.dirname(output)) if output else None
    # A host of ours has a file that names the folder of its ranks' pages; other toolkits have none.
    return layout.logged_metrics if layout is not None and os.path.exists(layout.training_steps) else None


def checked(name: object, value: object) -> float:
    """A value as a number. Raises TypeError or ValueError with a sentence for what is not one."""
    if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "replace")) <= _LONGEST_NAME:
        raise ValueError(f"metrics.log: {name!r} is not a name: use a text of 1 to {_LONGEST_NAME} bytes")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        kind = type(value).__name__
        raise TypeError(f"metrics.log: {name} must be one number, not {value!r} ({kind}); log its mean, say") from None


def _name_cells(name: str, number: int) -> bytes:
    data = name.encode("utf-8", "replace")
    return _CELL.pack(0.0, len(data), 0.0, number, NAME) + data + bytes(-len(data) % _CELL.size)
