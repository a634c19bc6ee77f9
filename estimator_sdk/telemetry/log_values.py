"""The values of metrics in the lines of a log: by the job's definitions, as `name: value`, and as Keras has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from estimator_container.telemetry.logged import MOST_STEPS

from .metrics import values_in

if TYPE_CHECKING:
    from estimator_container.logs.lines import Block, Line

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
_PAIR = rf"([A-Za-z_][\w./-]{{0,63}}): +({_NUMBER})"
_PAIRS = re.compile(_PAIR)
_PLAIN = re.compile(rf"\s*{_PAIR}(?:(?:\s*[,;|]\s*|\s+-\s+|\s+){_PAIR})*\s*")
_KERAS_BAR = re.compile(rf"\s*(\d+)/(?:\d+|Unknown)\s.*?((?: - {_PAIR})+)\s*")
_KERAS_EPOCH = re.compile(r"Epoch (\d{1,15})/\d+\s*")
_LOOKS = re.compile(rb"[\s\x80-\xff]*(?:[A-Za-z_][\w./\x80-\xff-]{0,255}: |\d+/)|Epoch ")
"""How a line begins that may have values, where it is drawn once."""
_REDRAWING = (b"\r", b"\b", b"\x1b")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x08+")
_STEPS = ("step", "global_step", "iteration", "iter")
_EPOCH = "epoch"
_LONGEST = 4096
"""Bytes of a line with metrics; a longer one is text."""
EVALUATION = "evaluate/"
"""Before the names of metrics in a bar of Keras that belongs to no epoch, but follows one."""


class FoundValue(NamedTuple):
    """A value in a line."""

    name: str
    value: float
    step: int | None
    """What the line says of it; None where it says nothing."""
    is_defined: bool
    """Whether a definition of the job found it."""


class StreamValues:
    """Finds the values in one stream of one rank; Keras says the epoch in a line before."""

    def __init__(self, definitions: Sequence[tuple[str, re.Pattern[str]]]) -> None:
        self._definitions = definitions
        self._epoch: int | None = None
        self._is_told = False

    def of_block(self, block: Block) -> Iterator[FoundValue]:
        """The values in the lines of a block."""
        if self._definitions:
            for line in block.lines():
                yield from self.of_line(line)
            return
        # Most lines have no metric, and few have the look of one.
        if b": " not in block.data and b"Epoch " not in block.data:
            return
        lines: Iterable[bytes] = block.data.split(b"\n")
        if not any(byte in block.data for byte in _REDRAWING):
            lines = filter(_LOOKS.match, lines)
        for data in lines:
            yield from self._plain(data)

    def of_line(self, line: Line) -> Iterator[FoundValue]:
        """The values in a line."""
        for name, value in values_in(line, self._definitions):
            yield FoundValue(name, value, None, True)
        yield from self._plain(line.data)

    def _plain(self, data: bytes) -> Iterator[FoundValue]:
        if len(data) > _LONGEST or not (b": " in data or data.startswith(b"Epoch ")):
            return
        text = data.decode("utf-8", "replace")
        if "\r" in text or "\x1b" in text or "\b" in text:
            text = _ESCAPES.sub("", text.rstrip("\r\n").rpartition("\r")[2])
        epoch = _KERAS_EPOCH.fullmatch(text)
        if epoch is not None:
            self._epoch, self._is_told = int(epoch[1]), False
        elif _PLAIN.fullmatch(text):
            yield from _of_pairs(_PAIRS.findall(text))
        elif bar := _KERAS_BAR.fullmatch(text):
            yield from self._of_bar(_PAIRS.findall(bar[2]))

    def _of_bar(self, pairs: list[tuple[str, str]]) -> Iterator[FoundValue]:
        prefix = EVALUATION if self._is_told else ""
        self._is_told = self._epoch is not None
        for name, value in pairs:
            yield FoundValue(f"{prefix}{name}", float(value), self._epoch, False)


def _of_pairs(pairs: list[tuple[str, str]]) -> Iterator[FoundValue]:
    """The values of a line, of which one may say the step of the others."""
    numbers = {name: float(value) for name, value in pairs}
    said = next((name for name in (*_STEPS, _EPOCH) if _is_step(numbers.get(name))), None)
    step = int(numbers[said]) if said is not None else None
    for name, value in numbers.items():
        if name not in (*_STEPS, _EPOCH):
            yield FoundValue(name, value, step, False)


def _is_step(value: float | None) -> bool:
    return value is not None and value.is_integer() and abs(value) < MOST_STEPS
