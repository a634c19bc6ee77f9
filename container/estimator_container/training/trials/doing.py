"""What a thread does, by its stack: what it calls, and where in the script that is."""

from __future__ import annotations

import itertools
import linecache
import os
import re
from types import FrameType
from typing import NamedTuple

STORE, FILES, AUGMENTATION, DECODE, WAITING = "store", "files", "augmentation", "decode", "waiting"
"""Asking a store, reading files, changing samples at random, making samples of bytes, waiting for another thread or
process."""
MOST_FRAMES = 60
_STORE = {
    *("socket", "ssl", "http", "urllib", "urllib3", "requests", "httpx", "httpcore", "aiohttp", "fsspec", "gcsfs"),
    *("botocore", "boto3", "s3transfer", "s3fs", "aiobotocore", "obstore"),
}
_FILES = {"pathlib", "os", "io", "posixpath", "genericpath", "glob", "shutil"}
_WAITING = {"queue", "threading", "multiprocessing", "selectors", "concurrent", "asyncio"}
_AUGMENTING = {"albumentations", "imgaug", "kornia"}
_RANDOM = re.compile(r"augment|jitter|^random_|^Random[A-Z]|^_?flip|cutout|mixup", re.IGNORECASE)
_FILE_CALLS = {"open", "read", "readinto", "readline", "readlines", "pread", "preadv", "stat", "fstat", "listdir"}
_CALLED = re.compile(r"(\w+)\s*\(")
_LIBRARIES = ("site-packages", "dist-packages", "estimator_container", "<frozen", os.path.dirname(os.__file__))


class Doing(NamedTuple):
    """What a thread does at one moment."""

    what: str
    place: str
    """The line of the script that it is in, and its words; empty if it is in none."""


def doing(frame: FrameType | None) -> Doing:
    """What a thread with this stack does; the innermost frame that tells anything decides."""
    stack = _stack(frame)
    place = next((_place(each) for each in stack if not _is_of_libraries(each)), "")
    roots = [str(each.f_globals.get("__name__", "")).partition(".")[0] for each in stack]
    if any(root in _STORE or _is_our_storage(each) for root, each in zip(roots, stack)):
        return Doing(STORE, place)
    if roots and roots[0] in _WAITING:
        return Doing(WAITING, place)
    if any(root in _AUGMENTING or _RANDOM.search(each.f_code.co_name) for root, each in zip(roots, stack)):
        return Doing(AUGMENTATION, place)
    if roots and (roots[0] in _FILES or _called(stack[0]) in _FILE_CALLS):
        return Doing(FILES, place)
    return Doing(DECODE, place)


def _stack(frame: FrameType | None) -> list[FrameType]:
    found: list[FrameType] = []
    while frame is not None and len(found) < MOST_FRAMES:
        found.append(frame)
        frame = frame.f_back
    return found


def _is_of_libraries(frame: FrameType) -> bool:
    return any(each in frame.f_code.co_filename for each in _LIBRARIES)


def _is_our_storage(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("estimator_container.storage")


def _called(frame: FrameType) -> str:
    """The name of the built-in function that a frame is in now; empty if it is not known."""
    words = _words(frame)
    found = _CALLED.findall(words)
    return found[0] if found else ""


def _words(frame: FrameType) -> str:
    """The words of what a frame does now: of the instruction, where Python tells (3.11), else of the line."""
    code, line = frame.f_code, linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    if hasattr(code, "co_positions"):
        at = frame.f_lasti // 2
        for first, last, begin, end in itertools.islice(code.co_positions(), at, at + 1):
            if first == last and begin is not None and end is not None:
                return line.encode()[begin:end].decode(errors="replace")
    return line.strip()


def _place(frame: FrameType) -> str:
    name = frame.f_code.co_filename.rpartition("/")[2]
    return f"{name}:{frame.f_lineno} {_words(frame)[:80]}".strip()
