"""The machines of a pool, as `horovodrun -H`, hostfiles of Open MPI and people write them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import InvalidArgument
from ...values.naming import shown

FORM = "write 'name', 'user@name:2222' or 'name:4' for four slots, as in hosts='a:4,b:4'"
LEAST_PORT = 22
"""A number after the name that is smaller than this is one of slots, any other a port."""
_MOST = 1 << 20
"""Characters of a hostfile."""
_HOST = re.compile(r"(?:[\w.+-]+@)?[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9_])?")
_SLOTS = re.compile(r"(?:slots|cpu|count)\s*=\s*(\d+)", re.IGNORECASE)
_LIMIT = re.compile(r"max[-_]slots\s*=\s*\d+", re.IGNORECASE)


class PoolHost(NamedTuple):
    """One machine."""

    name: str
    """What `ssh` is told: a name of the user's configuration or of the network, with `user@` before it or not."""
    port: int | None = None
    """None is what the user's configuration says."""
    slots: int | None = None
    """How many ranks it takes; None where nothing is said of that."""

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name}:{self.port}"

    @property
    def command(self) -> str:
        """How it is reached by hand."""
        return f"ssh {self.name}" if self.port is None else f"ssh -p {self.port} {self.name}"

    def to_document(self) -> dict[str, Any]:
        """As a job's document has it, without what is not said."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def from_argument(given: Sequence[str] | str, where: str = "hosts") -> tuple[PoolHost, ...]:
    """The machines of `hosts=`: a list, or text with commas. Raises InvalidArgument.

    >>> from_argument("a:4,user@b:2222:2")
    (PoolHost(name='a', port=None, slots=4), PoolHost(name='user@b', port=2222, slots=2))
    """
    words = given.split(",") if isinstance(given, str) else given
    return _distinct([_host(word.strip(), f"{where}[{number}]") for number, word in enumerate(words)], where)


def from_file(path: str) -> tuple[PoolHost, ...]:
    """The machines of a hostfile, one a line: `a slots=4`, `a:4` or `a`, and comments. Raises InvalidArgument."""
    try:
        lines = _text_of(path).splitlines()
    except (OSError, ValueError) as error:
        raise InvalidArgument("hostfile", f"hostfile {path!r} cannot be read: {error}; name a text file") from None
    found = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            found.append(_line(text, f"hostfile {path}, line {number}"))
    return _distinct(found, f"hostfile {path}")


def from_either(given: str) -> tuple[PoolHost, ...]:
    """The machines of a hostfile, or of text with commas where there is no such file. Raises InvalidArgument."""
    is_file = os.path.exists(given) and not os.path.isdir(given)  # noqa: PTH110, PTH112 - text may be longer than a path
    return from_file(given) if is_file else from_argument(given)


def from_document(given: object) -> tuple[PoolHost, ...]:
    """The machines of a job's document. Raises InvalidArgument."""
    try:
        assert isinstance(given, Sequence)
        found = [PoolHost(**dict(each)) for each in given]
        texts = [str(PoolHost(each.name, each.port)) for each in found]
        parsed = [_host(text, f"hosts[{number}]") for number, text in enumerate(texts)]
    except (AssertionError, TypeError, ValueError):
        what = f"hosts is {shown(given)}, which does not list machines"
        raise InvalidArgument("hosts", f"{what}; {FORM}") from None
    slots = [_number(each.slots, "hosts") for each in found]
    return _distinct([each._replace(slots=count) for each, count in zip(parsed, slots)], "hosts")


def _text_of(path: str) -> str:
    """Raises OSError, and ValueError for what is not a text of sensible length."""

    def opened(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NONBLOCK)  # a FIFO that nobody writes to is empty

    with open(path, encoding="utf-8-sig", opener=opened) as file:
        os.set_blocking(file.fileno(), True)
        text = file.read(_MOST + 1)
    if len(text) > _MOST:
        raise ValueError(f"it has more than {_MOST} characters")
    return text


def _line(text: str, where: str) -> PoolHost:
    text = _LIMIT.sub("", text)
    slots = _SLOTS.search(text)
    host = _host(_SLOTS.sub("", text).strip(), where)
    return host if slots is None else host._replace(slots=_number(int(slots[1]), where))


def _host(text: str, where: str) -> PoolHost:
    if "::" in text or "[" in text:
        what = f"{where} is {shown(text)}, which looks like an address of IPv6"
        raise InvalidArgument(where, f"{what}; a pool needs IPv4, so write such an address, or a name")
    name, *numbers = text.split(":")
    if _HOST.fullmatch(name) is None or len(numbers) > 2 or not all(each.isdecimal() for each in numbers):
        raise InvalidArgument(where, f"{where} is {shown(text)}, which does not name a machine; {FORM}")
    counts = [int(each) for each in numbers]
    port = counts.pop(0) if counts and (len(counts) == 2 or counts[0] >= LEAST_PORT) else None
    if port is not None and not 0 < port < 65536:
        raise InvalidArgument(where, f"{where} is {shown(text)}, but {port} is not a port; {FORM}")
    return PoolHost(name, port, _number(counts[0], where) if counts else None)


def _number(slots: object, where: str) -> int | None:
    if slots is not None and (not isinstance(slots, int) or isinstance(slots, bool) or slots < 1):
        raise InvalidArgument(where, f"{where} has {shown(slots)} slots; give at least 1, or leave the number out")
    return slots


def _distinct(found: Sequence[PoolHost], where: str) -> tuple[PoolHost, ...]:
    if not found:
        raise InvalidArgument(where, f"{where} names no machine; {FORM}")
    for number, host in enumerate(found):
        if any((host.name, host.port) == (other.name, other.port) for other in found[:number]):
            raise InvalidArgument(where, f"{where} names {host} twice; give each machine once, with its slots")
    return tuple(found)
