"""A YAML file as plain values, with the line of each of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..errors import InvalidArgument
from . import composing

Place = tuple[str | int, ...]
"""Keys and indices from the top of the file to a value."""
MAX_SIZE = 1 << 18
"""Bytes of a file, and of the keys and values that it comes to with its aliases written out."""
MAX_NUMBER = 100
"""Characters of a number: no seed has as many digits, and Python reads longer ones ever more slowly."""
MAX_MESSAGE = 2000
"""Characters of what is said of a file."""
_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, dict[str, bool | None]] = {
    "null": dict.fromkeys(("", "~", "null")),
    "bool": {"true": True, "false": False},
}
"""What a scalar of a kind can be written as, in small letters, and what it is."""
# Every Unicode string may have them, and no argument, path or variable can.
_NOT_IN_TEXT = re.compile("[\0\ud800-\udfff]")


class Document:
    """What a YAML 1.2 file says."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidArgument for a file that cannot be read, is not YAML, is empty, or has a key twice.

        And for one that no person wrote: larger than `MAX_SIZE`, also by its aliases, or nested without end.
        """
        self.path = path
        self._lines: dict[Place, int] = {}
        self._texts: dict[Place, str] = {}
        self._size = 0
        self.value: dict[str, Any] = self._plain(self._compose(), (), ())

    def line(self, place: Sequence[str | int]) -> int:
        """The line, from 1, of a value, or of the nearest one around it that is in the file."""
        for end in range(len(place), -1, -1):
            if tuple(place[:end]) in self._lines:
                return self._lines[tuple(place[:end])]
        return 1

    def text(self, place: Place) -> str | None:
        """A scalar as it is written, such as `2.20` for a number; None for anything else."""
        return self._texts.get(place)

    def refuse(self, place: Sequence[str | int], argument: str, message: str) -> InvalidArgument:
        """An error about a value, which begins with the file and the line."""
        return self._error(self.line(place), message, argument)

    def _error(self, line: int, message: str, argument: str = "job_file") -> InvalidArgument:
        if len(message) > MAX_MESSAGE:  # for it may show a name or value of the file
            message = f"{message[: MAX_MESSAGE // 2]} … {message[-MAX_MESSAGE // 2 :]}"
        return InvalidArgument(argument, f"{self.path}:{line}: {message}")

    def _compose(self) -> MappingNode:
        try:
            root = composing.compose(self._read())
        except composing.NotAllowed as error:
            raise self._error(error.line, str(error)) from None
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = error.problem or error.context
            line = mark.line + 1 if mark else 1
            raise self._error(line, f"this is not valid YAML: {what}; fix the indentation or the quotes here") from None
        except YAMLError as error:
            what = str(error).splitlines()[0]
            raise self._error(1, f"this is not valid YAML: {what}; remove the character") from None
        if root is None:
            raise self._error(1, "the file is empty; write `steps:` or `entry_point:`, or see docs/job_files.md")
        if not isinstance(root, MappingNode):
            raise self._error(root.start_mark.line + 1, "a job file must be a mapping of `key: value` lines")
        return root

    def _read(self) -> str:
        try:
            with self.path.open("rb") as file:  # which may be a pipe, or a device without an end
                data = file.read(MAX_SIZE + 1)
        except (OSError, ValueError) as error:
            what = error.strerror if isinstance(error, OSError) else "its path holds a NUL"
            raise InvalidArgument(
                "job_file", f"the job file {str(self.path)!r} cannot be read: {what}; check its path"
            ) from None
        if len(data) > MAX_SIZE:
            raise self._error(1, f"the file is larger than {MAX_SIZE} bytes; keep data in separate files")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self._error(1, f"the byte {error.start} is not UTF-8; save the file as UTF-8") from None

    def _plain(self, node: Node, place: Place, around: tuple[Node, ...]) -> Any:  # noqa: ANN401 - any JSON value
        if node in around:
            raise self._refused(node, "an alias is inside its own anchor; write the value out")
        if len(place) > composing.MAX_DEPTH:
            raise self._refused(node, composing.TOO_DEEP)
        self._grow(node, 1)
        if isinstance(node, MappingNode):
            self._check_tag(node, "map")
            return self._mapping(node, place, around)
        if isinstance(node, SequenceNode):
            self._check_tag(node, "seq")
            items = enumerate(node.value)
            return [self._placed(item, (*place, index), item, (*around, node)) for index, item in items]
        assert isinstance(node, ScalarNode)
        return self._scalar(node, place)

    def _grow(self, node: Node, size: int) -> None:
        self._size += size
        if self._size > MAX_SIZE:
            what = f"with its aliases expanded the file has more than {MAX_SIZE} characters and values"
            raise self._refused(node, f"{what}; use fewer aliases")

    def _check_tag(self, node: Node, *kinds: str) -> None:
        if str(node.tag).removeprefix(_TAG) not in kinds:
            raise self._refused(node, f"the tag {str(node.tag)!r} has no meaning in a job file; remove it")

    def _refused(self, node: Node, message: str) -> InvalidArgument:
        return self._error(node.start_mark.line + 1, message)

    def _mapping(self, node: MappingNode, place: Place, around: tuple[Node, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in self._pairs(node):
            name = key.value
            inner = (*place, name)
            if name in found:
                earlier = self._lines[inner]
                what = f"the key {name!r} is already in line {earlier}"
                raise self._error(key.start_mark.line + 1, f"{what}; remove one of the two", name)
            found[name] = self._placed(value, inner, key, (*around, node))
        return found

    def _pairs(self, node: MappingNode) -> Iterator[tuple[ScalarNode, Node]]:
        for key, value in node.value:
            if isinstance(key, ScalarNode) and str(key.tag) == f"{_TAG}merge":
                raise self._refused(key, "a job file has no merge keys; write the keys of << out")
            if not isinstance(key, ScalarNode) or key.tag != f"{_TAG}str":
                shown = f"the key {key.value!r}" if isinstance(key, ScalarNode) else "this key"
                raise self._refused(key, f"{shown} is not a string; put it in quotes")
            self._check_text(key)
            yield key, value

    def _placed(self, node: Node, place: Place, marked: Node, around: tuple[Node, ...]) -> Any:  # noqa: ANN401
        self._lines[place] = marked.start_mark.line + 1
        return self._plain(node, place, around)

    def _scalar(self, node: ScalarNode, place: Place) -> Any:  # noqa: ANN401 - any JSON value
        self._check_text(node)
        self._texts[place] = text = node.value
        kind = str(node.tag).removeprefix(_TAG)
        if kind in _WORDS:
            if text.lower() not in _WORDS[kind]:
                raise self._refused(node, f"{text!r} does not match its tag; remove the tag")
            return _WORDS[kind][text.lower()]
        if kind in ("int", "float"):
            return self._number(node, kind)
        # JSON has no dates: one is the text that it is written as. `=` and `<<` are values of their own to YAML 1.1.
        self._check_tag(node, "str", "timestamp", "value", "merge")
        return text

    def _check_text(self, node: ScalarNode) -> None:
        self._grow(node, len(node.value))
        found = _NOT_IN_TEXT.search(node.value)
        if found is not None:
            what = f"no argument, path or variable can hold the character {found[0]!r}"
            raise self._refused(node, f"{what}; remove it")

    def _number(self, node: ScalarNode, kind: str) -> int | float:
        text = node.value.lower()
        if len(text) > MAX_NUMBER:
            raise self._refused(
                node, f"a number of {len(text)} characters is too long; shorten it, or put it in quotes"
            )
        try:
            number = _float(text) if kind == "float" else _int(text)
        except ValueError:
            raise self._refused(
                node, f"{node.value!r} is not a number; write one, or write a string in quotes without a tag"
            ) from None
        if math.isinf(number) and "inf" not in text:
            raise self._refused(node, f"{node.value!r} is larger than a number can be; write .inf if you mean that")
        return number


def _float(text: str) -> float:
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


def _int(text: str) -> int:
    return int(text, 0) if text.lstrip("+-")[:2] in ("0x", "0o", "0b") else int(text)
