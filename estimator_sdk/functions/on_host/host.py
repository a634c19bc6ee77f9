"""Call the function that came with the code, on every rank, and leave what became of it in the job's outputs."""

from __future__ import annotations

import json
import linecache
import os
import sys
import traceback
import types
from pathlib import Path

from . import culprit, payload

FUNCTION = "function"
VALUE = "return value"
EXCEPTION = "exception"
FUNCTION_FILE = "function.payload"
VALUE_FILE = "function-return-value.payload"
RANKS_FILE = "ranks.json"
"""What `SM_FRAMEWORK_PARAMS` has of a world of a kind -> the variable that its launcher puts the rank in."""
_REFUSED = 2  # the exit code where the function was not even unpickled


def exception_file(host: str, rank: int | None) -> str:
    """Where a rank leaves its exception; without a world each host has one."""
    return f"function-exception-{host}{'' if rank is None else f'-{rank}'}.payload"


def main(folder: Path) -> None:
    """Run the function in `folder`; what it raises ends this process, as it would end a script."""
    try:
        called = payload.unpack(FUNCTION, (folder / FUNCTION_FILE).read_bytes())
    except payload.PayloadError as error:
        print(error, file=sys.stderr)
        sys.exit(_REFUSED)
    sys.excepthook = _show
    function, args, kwargs, sources = called
    rank = _rank(json.loads((folder / RANKS_FILE).read_text(encoding="utf-8")))
    for name, text in sources.items():
        # So that tracebacks show the lines of a notebook's cells, which are no files.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    own = os.getpid()
    try:
        value = function(*args, **kwargs)
        if _is_first(rank) and os.getpid() == own:  # a child that the function has forked may return, too
            _write(VALUE_FILE, _packed_value(function, value))
    except Exception as error:
        if os.getpid() == own:
            _leave(error, rank)
        raise


def _packed_value(function: object, value: object) -> bytes:
    name = getattr(function, "__name__", "the function")
    try:
        return payload.pack(VALUE, value)
    except Exception as error:
        found = culprit.find("return value", value)
        why = found.sentence() if found else str(error)
        what = f"what {name}() returned cannot be pickled, so it cannot come back"
        raise TypeError(f"{what}: {why}; return plain data, or write a file to SM_MODEL_DIR") from None


def _leave(error: Exception, rank: int | None) -> None:
    """For the caller, who gets the verdict's words alone where the exception cannot be pickled."""
    try:
        data = payload.pack(EXCEPTION, error)
    except Exception as why:
        print(f"the {type(error).__name__} cannot be pickled, so the caller gets its text: {why}", file=sys.stderr)
    else:
        _write(exception_file(os.environ.get("SM_CURRENT_HOST", "algo-1"), rank), data)


def _write(name: str, data: bytes) -> None:
    folder = Path(os.environ["SM_OUTPUT_DATA_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def _rank(variables_of: dict[str, str]) -> int | None:
    """The rank in the world; None for a job without one, whatever a world around it left in its environment."""
    parameters = json.loads(os.environ.get("SM_FRAMEWORK_PARAMS", "{}"))
    variables = [variable for name, variable in variables_of.items() if parameters.get(name) in (True, "True", "true")]
    given = [os.environ[variable] for variable in variables if variable in os.environ]
    return int(given[0]) if given else None


def _is_first(rank: int | None) -> bool:
    if rank is not None:
        return rank == 0
    hosts = json.loads(os.environ.get("SM_HOSTS", "[]"))
    return not hosts or os.environ.get("SM_CURRENT_HOST") == hosts[0]


def _show(kind: type[BaseException], error: BaseException, where: types.TracebackType | None) -> None:
    """The traceback from the function on: how it was called is no part of the user's program."""
    while where is not None and where.tb_next is not None and _is_ours(where.tb_frame.f_code.co_filename):
        where = where.tb_next
    traceback.print_exception(kind, error, where)


def _is_ours(name: str) -> bool:
    path = Path(name).resolve()
    return path.parent == Path(__file__).resolve().parent or path == Path(sys.argv[0]).resolve()
