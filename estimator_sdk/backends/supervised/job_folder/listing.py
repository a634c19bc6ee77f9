"""The jobs of a home in a few words each: of those that have ended from a cache, of the others from their folders.

The cache is one file beside the jobs that nobody needs. What it says of a job counts as long as the job's record is
the very file that it was read from; whoever finds that something in it is missing, old or damaged reads that from the
folders, and replaces the file as a whole, if the disk takes it.
"""

from __future__ import annotations

import json
import os
import warnings
import zlib
from contextlib import suppress
from pathlib import Path

from ....errors import EstimatorError, JobNotFound
from ....values.home import JobFolder, list_cache, private_file, regular_file
from ...port import Summary
from ...status import FINAL
from .record import read_record
from .registry import judged, names

_MARK = "jobs 1"
"""The first word, with the number of the format, of a cache; the second is a checksum of what follows."""
_MANY = 200  # records; for fewer, threads take longer to start than they save
_AT_ONCE = 16  # files that are read
_Entries = dict[str, tuple[list[int], Summary]]
"""The name of a job -> the identity of its record's file, and what that says."""


def summaries(jobs: Path) -> list[Summary]:
    """All jobs of a folder, the newest first.

    Warns of one whose record cannot be understood, and leaves it out. Raises OSError where the folder may not be read.
    """
    cached, kept, found = _read(list_cache(jobs)), _Entries(), list[Summary]()
    every = names(jobs)
    _read_ahead([f"{jobs}/{name}/record.json" for name in every if name not in cached])
    for name in every:
        identity = _identity(f"{jobs}/{name}/record.json")
        known = cached.get(name)
        if known is not None and known[0] == identity:
            summary: Summary | None = known[1]
            is_final = True
        else:
            summary, is_final = _summary(JobFolder(jobs / name))
        if summary is not None:
            found.append(summary)
            if is_final and identity:
                kept[name] = identity, summary
    if kept != cached:
        _write(list_cache(jobs), kept)
    return sorted(found, key=lambda each: each.created or 0.0, reverse=True)


def _read_ahead(paths: list[str]) -> None:
    """Have the system read many files at once, before they are read in turn, for a disk answers several sooner so.

    Of 3.8 s for 10,000 on a disk it saves 2; where the system has them in memory already, it costs 0.2 s.
    """
    if len(paths) < _MANY:
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for start in range(_AT_ONCE):
            pool.submit(_touch, paths[start::_AT_ONCE])


def _touch(paths: list[str]) -> None:
    for path in paths:
        with suppress(OSError), open(path, "rb", opener=regular_file) as file:
            file.read(1)


def _identity(path: str) -> list[int]:
    """What tells a file from the one that took its place; nothing for one that is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path takes more time than the call
    except OSError:
        return []
    return [status.st_mtime_ns, status.st_size, status.st_ino]


def _summary(folder: JobFolder) -> tuple[Summary | None, bool]:
    """What a folder says, and whether it will not change any more."""
    try:
        record = read_record(folder)
        if record is None:
            return None, False  # it is about to be started, or is no job
        state = judged(record, folder)
    except JobNotFound:  # it has just been removed
        return None, False
    except EstimatorError as error:
        warnings.warn(str(error), stacklevel=5)
        return None, False
    return Summary.from_state(state), record.is_final


def _read(path: Path) -> _Entries:
    """Nothing where there is no cache that is whole."""
    try:
        with open(path, encoding="ascii", opener=regular_file) as file:
            head, text = file.readline(), file.read()
        return _decoded(text) if head == _head(text) else {}
    except (OSError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return {}


def _decoded(text: str) -> _Entries:
    """Raises one of several errors for what `_write` has not written."""
    found = _Entries()
    for name, (identity, status, backend, hosts, created, ended) in json.loads(text).items():
        if status not in FINAL:
            raise ValueError(f"{name} goes on")
        summary = Summary(name, status, str(backend), tuple(hosts), float(created), ended and float(ended))
        found[name] = (identity, summary)
    return found


def _write(path: Path, entries: _Entries) -> None:
    text = json.dumps({name: (identity, *summary[1:]) for name, (identity, summary) in entries.items()})
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):  # a disk that is full or may not be written
        try:
            with open(draft, "x", encoding="ascii", opener=private_file) as file:
                file.write(_head(text) + text)
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise


def _head(text: str) -> str:
    return f"{_MARK} {zlib.crc32(text.encode('ascii')):08x}\n"
