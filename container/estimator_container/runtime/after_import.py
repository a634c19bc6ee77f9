"""Doing something to a module of somebody else's as soon as it has been imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Then = Callable[[ModuleType], object]
_waiting: dict[str, list[Then]] = {}


def after_import(name: str, then: Then) -> None:
    """Call `then` with the module of that name once it has run: at once if it is loaded, else as it is imported."""
    module = sys.modules.get(name)
    if module is not None:
        then(module)
        return
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _waiting.setdefault(name, []).append(then)


class _Finder:
    """Stands before the finders of modules, and gives those that are waited for a loader that tells of them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """A module's own loader, which tells of the module once it has run."""

    def __init__(self, loader: Any) -> None:  # noqa: ANN401 - loaders have no common type
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for then in _waiting.pop(module.__name__, ()):
            then(module)


_FINDER = _Finder()
