"""A YAML file as plain values, with the line of each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..errors import InvalidArgument

Place = tuple[str | int, ...]
"""Keys and indices from the top of the file to a value."""
_TAG = "tag:yaml.org,2002:"


class Document:
    """What a YAML 1.2 file says."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidArgument for a file that cannot be read, is no YAML, is empty, or has a key twice."""
        self.path = path
        self._lines: dict[Place, int] = {}
        self._texts: dict[Place, str] = {}
        root = self._compose()
        self.value: dict[str, Any] = self._mapping(root, ())

    def line(self, place: Sequence[str | int]) -> int:
        """The line, from 1, of a value, or of the nearest one around it that is in the file."""
        for end in range(len(place), -1, -1):
            if tuple(place[:end]) in self._lines:
                return self._lines[tuple(place[:end])]
        return 1

    def text(self, place: Place) -> str | None:
        """A scalar as it is written, such as `2.20` for a number; None for what is no scalar or not there."""
        return self._texts.get(place)

    def refuse(self, place: Sequence[str | int], argument: str, message: str) -> InvalidArgument:
        """An error about a value, which begins with the file and the line."""
        return self._error(self.line(place), message, argument)

    def _error(self, line: int, message: str, argument: str = "job_file") -> InvalidArgument:
        return InvalidArgument(argument, f"{self.path}:{line}: {message}")

    def _compose(self) -> MappingNode:
        try:
            root = YAML(typ="safe", pure=True).compose(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            what = f"the job file {str(self.path)!r} cannot be read: {error.strerror}"
            raise InvalidArgument("job_file", f"{what}; check its path") from None
        except UnicodeDecodeError as error:
            raise self._error(1, f"the byte {error.start} is not UTF-8; save the file as UTF-8") from None
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = error.problem or error.context
            line = mark.line + 1 if mark else 1
            raise self._error(line, f"this is no YAML: {what}; mend the indentation or the quotes here") from None
        except YAMLError as error:
            raise self._error(1, f"this is no YAML: {str(error).splitlines()[0]}; take the character out") from None
        if root is None:
            raise self._error(1, "the file is empty; write `steps:` or `entry_point:`, or see docs/job_files.md")
        if not isinstance(root, MappingNode):
            raise self._error(root.start_mark.line + 1, "a job file is a mapping of `key: value` lines; write it so")
        return root

    def _plain(self, node: Node, place: Place, around: tuple[Node, ...]) -> Any:  # noqa: ANN401 - any JSON value
        if node in around:
            raise self._error(node.start_mark.line + 1, "an alias stands within its own anchor; write the value out")
        if isinstance(node, MappingNode):
            return self._mapping(node, place, around)
        if isinstance(node, SequenceNode):
            items = enumerate(node.value)
            return [self._placed(item, (*place, index), item, (*around, node)) for index, item in items]
        assert isinstance(node, ScalarNode)
        return self._scalar(node, place)

    def _mapping(self, node: MappingNode, place: Place, around: tuple[Node, ...] = ()) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in self._pairs(node):
            name = key.value
            inner = (*place, name)
            if name in found:
                earlier = self._lines[inner]
                what = f"the key {name!r} is in line {earlier} already"
                raise self._error(key.start_mark.line + 1, f"{what}; leave out one of the two", name)
            found[name] = self._placed(value, inner, key, (*around, node))
        return found

    def _pairs(self, node: MappingNode) -> Iterator[tuple[ScalarNode, Node]]:
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or key.tag != f"{_TAG}str":
                shown = f"the key {key.value!r}" if isinstance(key, ScalarNode) else "this key"
                raise self._error(key.start_mark.line + 1, f"{shown} is no string; put it into quotes")
            yield key, value

    def _placed(self, node: Node, place: Place, marked: Node, around: tuple[Node, ...]) -> Any:  # noqa: ANN401
        self._lines[place] = marked.start_mark.line + 1
        return self._plain(node, place, around)

    def _scalar(self, node: ScalarNode, place: Place) -> Any:  # noqa: ANN401 - any JSON value
        self._texts[place] = text = node.value
        kind = str(node.tag).removeprefix(_TAG)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind in ("int", "float"):
            return self._number(node, kind)
        if kind in ("str", "timestamp"):  # JSON has no dates: one is the text that it is written as
            return text
        line = node.start_mark.line + 1
        raise self._error(line, f"the tag {node.tag!r} means nothing in a job file; leave it out")

    def _number(self, node: ScalarNode, kind: str) -> int | float:
        text = node.value.lower()
        try:
            if kind == "float":
                return float(text.replace(".inf", "inf").replace(".nan", "nan"))
            has_base = text.lstrip("+-")[:2] in ("0x", "0o", "0b")
            return int(text, 0) if has_base else int(text)
        except ValueError:
            what = f"{node.value!r} is no number, as its tag says it is; mend one of them"
            raise self._error(node.start_mark.line + 1, what) from None
