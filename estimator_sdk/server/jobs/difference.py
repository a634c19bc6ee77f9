"""What differs between two jobs: their CreateTrainingJob documents, and the files of their code, line by line."""

from __future__ import annotations

import difflib
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...code import store
from ...errors import EstimatorError
from ...spec import masking
from ...spec.job_document import JobDocument

if TYPE_CHECKING:
    from ...backends.port import StartedJob

MOST_CODE = 1 << 26
"""Bytes of the files of a job that are compared."""
MOST_TEXT = 1 << 19
"""Bytes of a file that is compared line by line; of a larger one it is only said that it differs."""
MOST_LINES = 4000
"""Lines of a file that is compared line by line: the time grows with their square."""
MOST_SHOWN = 5000
"""Lines of an answer."""
MOST_FILES = 500
"""Files of an answer."""
LONGEST_LINE = 2000
"""Characters of a line of an answer."""


def between(job: StartedJob, other: StartedJob) -> dict[str, object]:
    """What `other` has in another way than `job`, in the lines of a unified diff without its heads.

    Raises EstimatorError where the code of one of them is not on this machine, and is not the same as the other's.
    """
    before, after = dict(job.request()), dict(other.request())
    told = {"request": _Lines().of(_lines_of(before), _lines_of(after)), "files": [], "why": "", "is_cut": False}
    try:
        return {**told, **_files(_code_of(before, job.name), _code_of(after, other.name))}
    except EstimatorError as error:  # the documents are worth their place without the code
        return {**told, "why": str(error)}


class _Lines:
    """Diffs, of as many lines as an answer may have."""

    def __init__(self) -> None:
        self.left = MOST_SHOWN

    def of(self, before: list[str], after: list[str]) -> list[str]:
        lines = difflib.unified_diff(before, after, n=3, lineterm="")
        found = [line[:LONGEST_LINE] for line in list(lines)[2:][: self.left]]
        self.left -= len(found)
        return found


def _lines_of(request: Mapping[str, object]) -> list[str]:
    return json.dumps(masking.in_document(request), indent=2, sort_keys=True, ensure_ascii=False).splitlines()


def _code_of(request: Mapping[str, object], name: str) -> Path | None:
    """The archive of a job's code; None for a job without any."""
    given = JobDocument.from_request(dict(request)).decoded.reserved.submit_directory
    if given is None:
        return None
    place = store.here(given)
    if place is None or not place.is_file():
        what = f"the code of {name} is not on this machine any more: it was {given}"
        raise EstimatorError(f"{what}; compare the sources themselves")
    return place


def _files(before: Path | None, after: Path | None) -> dict[str, object]:
    if before == after:
        return {}
    old, new = _contents(before), _contents(after)
    names = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    lines = _Lines()
    files = [_file(name, old.get(name), new.get(name), lines) for name in names[:MOST_FILES]]
    return {"files": files, "is_cut": lines.left <= 0 or len(names) > MOST_FILES}


def _file(name: str, before: bytes | None, after: bytes | None, lines: _Lines) -> dict[str, object]:
    change = "added" if before is None else "removed" if after is None else "changed"
    texts = [_text(each) for each in (before or b"", after or b"")]
    first, second = texts
    if first is None or second is None:
        return {"name": name, "change": change, "is_text": False, "lines": []}
    return {"name": name, "change": change, "is_text": True, "lines": lines.of(first, second)}


def _text(data: bytes) -> list[str] | None:
    """The lines of a text that is not too long; None for anything else."""
    if len(data) > MOST_TEXT or b"\0" in data:
        return None
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        return None
    return lines if len(lines) <= MOST_LINES else None


def _contents(archive: Path | None) -> dict[str, bytes]:
    """The files of an archive, and where its links lead. Raises EstimatorError for one that cannot be read."""
    if archive is None:
        return {}
    try:
        with tarfile.open(archive, "r|*") as opened:
            return dict(_members(opened, archive))
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        raise EstimatorError(f"the code in {archive} cannot be read: {error}; compare the sources themselves") from None


def _members(opened: tarfile.TarFile, archive: Path) -> Iterator[tuple[str, bytes]]:
    left = MOST_CODE
    for member in opened:
        left -= member.size
        if left < 0:
            what = f"the code in {archive} has more than {MOST_CODE >> 20} MiB, which are not compared here"
            raise EstimatorError(f"{what}; unpack both archives and use `diff -r`")
        if member.isfile():
            content = opened.extractfile(member)
            yield member.name, content.read() if content is not None else b""
        elif member.issym():
            yield member.name, f"-> {member.linkname}".encode()
