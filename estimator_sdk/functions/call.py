"""A call of a function: checked here, and written as a code folder that any backend can run."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import linecache
import shutil
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_container.contract.reserved import enabled_by

from ..errors import InvalidArgument
from ..spec.distributions import NAMES, options_of
from ..values.naming import suggestion
from ..values.spark_process import is_frame
from . import on_host
from .on_host import culprit, host, payload

PROGRAM = "run_function.py"
"""The entry point of a job that runs a function."""
FOLDER = "estimator_function"
"""Beside it, what it needs."""
_PROGRAM_TEXT = f"""\
import sys
from pathlib import Path

folder = Path(__file__).resolve().parent / "{FOLDER}"
sys.path.insert(0, str(folder / "packages"))
sys.path.insert(0, str(folder.parent))

from {FOLDER}.on_host import host

host.main(folder)
"""


@dataclass(frozen=True)
class Call:
    """A function and what it is called with."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The function's name, or its type's name if it has none."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def check(self) -> None:
        """Raises InvalidArgument for what is not a function, and for arguments that it does not accept."""
        if not callable(self.function):
            what = f"{self.function!r} is not a function, so it cannot be run"
            raise InvalidArgument("main", f"{what}; give a function, and its arguments separately")
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # of a function in C, which says nothing of its arguments
            return
        try:
            signature.bind(*self.args, **self.kwargs)
        except TypeError as error:
            raise InvalidArgument(self.name, self._refused(signature, error)) from None

    def check_pickling(self) -> None:
        """Raises InvalidArgument for what cannot be pickled, as `write` does."""
        self._packed()

    def write(self, folder: Path) -> None:
        """Put the code that makes this call into an empty folder.

        Raises InvalidArgument for what cannot be pickled, by the name of the variable that holds it.
        """
        inside = folder / FOLDER
        (inside / "packages").mkdir(parents=True)
        (folder / PROGRAM).write_text(_PROGRAM_TEXT, encoding="utf-8")
        (inside / "__init__.py").touch()
        (inside / host.FUNCTION_FILE).write_bytes(self._packed())
        ranks = {enabled_by(name): options_of(name).rank_variable for name in NAMES}
        (inside / host.RANKS_FILE).write_text(json.dumps(ranks), encoding="utf-8")
        _copy_package(Path(str(on_host.__file__)).parent, inside / "on_host")
        _copy_package(_package_of("cloudpickle"), inside / "packages" / "cloudpickle")

    def _refused(self, signature: inspect.Signature, error: TypeError) -> str:
        names = list(signature.parameters)
        for name in self.kwargs:
            if name not in names:
                return f"{self.name}() has no argument {name!r}; {suggestion(name, names)}"
        return f"{self.name}() cannot be called this way: {error}; its arguments are {signature}"

    def _named_arguments(self) -> list[tuple[str, Any]]:
        try:
            return list(inspect.signature(self.function).bind(*self.args, **self.kwargs).arguments.items())
        except (TypeError, ValueError):  # of a function in C
            return [(f"args[{index}]", each) for index, each in enumerate(self.args)] + list(self.kwargs.items())

    def _packed(self) -> bytes:
        called = (self.function, self.args, dict(self.kwargs), _sources(self.function))
        with _by_value(self.function):
            try:
                return payload.pack(host.FUNCTION, called)
            except Exception as error:  # a class's own way of pickling may raise anything
                raise InvalidArgument(self.name, self._unpicklable(error)) from None

    def _unpicklable(self, error: Exception) -> str:
        what = f"{self.name}() cannot be sent to the hosts"
        found = culprit.find(self.name, self.function)
        if found is not None:
            hint = "make it inside the function, or pass what it is made of"
            return f"{what}: {found.sentence()}; {_instead(found.value, hint)}"
        for name, each in self._named_arguments():
            found = culprit.find(name, each, self.name)
            if found is not None:
                return f"{what}: {found.sentence()}; {_instead(found.value, 'pass what it is made of')}"
        return f"{what}: {error}"


def _instead(value: object, otherwise: str) -> str:
    """What to do with what cannot be pickled."""
    if not is_frame(value):
        return otherwise
    what = "write it with dataframe.write.parquet(path), and read that in the function"
    return f"{what}, or give an Estimator TrainingInput.from_dataframe(dataframe, path)"


@contextlib.contextmanager
def _by_value(function: Callable[..., Any]) -> Iterator[None]:
    """Let a function of the user's own module travel itself, and not as a name that the hosts would have to import."""
    import cloudpickle

    module = sys.modules.get(getattr(function, "__module__", None) or "")
    known = cloudpickle.list_registry_pickle_by_value()
    if module is None or module.__name__ in (*known, "__main__") or _is_installed(module):
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _is_installed(module: types.ModuleType) -> bool:
    """Whether a module comes with Python or with a package, so that an image can have it."""
    path = getattr(module, "__file__", None)
    if path is None:
        return True
    installed = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return any(Path(path).is_relative_to(folder) for folder in installed)


def _sources(function: Callable[..., Any]) -> dict[str, str]:
    """The text around the function, by the name that tracebacks show."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return {}
    text = "".join(linecache.getlines(code.co_filename))
    return {code.co_filename: text} if text else {}


def _package_of(name: str) -> Path:
    found = importlib.util.find_spec(name)
    assert found is not None and found.origin is not None  # this package depends on it
    return Path(found.origin).parent


def _copy_package(package: Path, target: Path) -> None:
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__"))
