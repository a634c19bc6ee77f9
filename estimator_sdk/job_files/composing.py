"""From the text of a YAML file to its nodes, with what a job file may not have refused on the way."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import DocumentStartEvent
from ruamel.yaml.nodes import Node

MAX_DEPTH = 50
"""Lists and mappings in one another. ruamel.yaml takes a few of Python's frames for each."""
TOO_DEEP = f"lists and mappings are nested more than {MAX_DEPTH} deep; make them flatter"


class NotAllowed(Exception):
    """A feature of YAML that job files do not support."""

    def __init__(self, line: int, sentence: str) -> None:
        """`line` counts from 1."""
        super().__init__(sentence)
        self.line = line


def compose(text: str) -> Node | None:
    """The root of a text with one document; None for an empty one. Raises NotAllowed and YAMLError."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _Bounded
    root: Node | None = yaml.compose(text)
    return root


class _Bounded(Composer):
    """Refuses another version of YAML, and depth, before Python's stack does."""

    def __init__(self, loader: Any = None) -> None:  # noqa: ANN401 - the YAML above
        super().__init__(loader)
        self.warn_double_anchors = False  # an anchor may be set again, and the last one counts
        self._level = 0

    def get_single_node(self) -> Any:  # noqa: ANN401 - as the method that it extends
        try:
            return super().get_single_node()
        except (NotAllowed, YAMLError):
            raise
        except Exception as error:  # ruamel.yaml checks no number in an escape, a directive or a tag
            what = f"this is not valid YAML: {error or type(error).__name__}; rewrite this line"
            raise NotAllowed(self.loader.reader.line + 1, what) from None

    def compose_document(self) -> Any:  # noqa: ANN401 - as the method that it extends
        event = self.parser.peek_event()
        version = event.version if isinstance(event, DocumentStartEvent) else None
        if version not in (None, (1, 2)):
            shown = ".".join(map(str, version))
            raise NotAllowed(event.start_mark.line + 1, f"a job file is YAML 1.2; remove the line %YAML {shown}")
        return super().compose_document()

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - as the method that it extends
        if self._level > MAX_DEPTH:
            raise NotAllowed(self.parser.peek_event().start_mark.line + 1, TOO_DEEP)
        self._level += 1
        node = super().compose_node(parent, index)
        self._level -= 1
        return node
