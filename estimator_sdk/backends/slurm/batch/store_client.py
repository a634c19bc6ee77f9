"""The client of s3:// stores for a Python of the nodes that has none: a copy that travels with the packages.

It is compiled, for a version of Python and all later ones, or for one version alone. What few jobs need is imported
where it is used, for whoever lists jobs loads this module.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ....errors import BackendError
from ....plan.plan import Plan
from ....values.home import appearing, home, secured
from ...packages import CLIENT_OF_STORES, copy_files, files_of, needs_client_of_stores
from ..options import SlurmOptions

_NAME = CLIENT_OF_STORES[0]
_REQUIREMENT = "obstore>=0.11,<0.13"
"""As the toolkit's extra `s3` has it."""
_FACTS = """
import importlib.util, json, sys
print(json.dumps([importlib.util.find_spec("obstore") is not None, *sys.version_info[:2]]))
"""
_ANSWER_SECONDS = 30.0
_DOWNLOAD_SECONDS = 300.0
Version = tuple[int, int]


class StoreClient(NamedTuple):
    """A copy: where it is, or will be, and for whom."""

    folder: Path
    """What to import it from."""
    version: Version | None
    """The Python whose wheel it is; None where it is that of this process."""


def needed(plan: Plan, options: SlurmOptions) -> StoreClient | None:
    """What the Python that the option names lacks for the stores of a plan; None where it lacks nothing.

    Of a Python that only nodes have nobody knows here, so the client of this process travels to them.
    """
    if options.python is None or not needs_client_of_stores(plan):
        return None
    found = _facts(options.python)
    if found is not None and found[0]:
        return None
    if found is None or _fits(found[1]):
        version = _own_version()
        return None if version is None else StoreClient(_place(version), None)
    return StoreClient(_place(f"for-{'.'.join(map(str, found[1]))}"), found[1])


def make(client: StoreClient) -> None:
    """Make the copy, unless it is there. Raises BackendError where it cannot be had, and OSError."""
    if client.folder.exists():
        return
    secured(client.folder.parent)
    fill: Callable[[Path], None] = _copy_own if client.version is None else _downloader(client.version)
    with appearing(client.folder) as unfinished:
        fill(unfinished)


def _place(what: str) -> Path:
    return home() / "packages" / f"{_NAME}-{what}"


def _facts(python: str) -> tuple[bool, Version] | None:
    """Whether it has a client, and its version; None where it cannot be asked here."""
    import subprocess

    try:
        done = subprocess.run((python, "-I", "-c", _FACTS), capture_output=True, check=True, timeout=_ANSWER_SECONDS)
        has, *version = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return bool(has), (version[0], version[1])


def _own_version() -> str | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(_NAME).version
    except PackageNotFoundError:
        return None


def _fits(version: Version) -> bool:
    """Whether the client of this process can be loaded by that Python: it says so in the tags of its wheel."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        tags = distribution(_NAME).read_text("WHEEL") or ""
    except PackageNotFoundError:
        return False
    return is_for(version, tags)


def is_for(version: Version, tags: str) -> bool:
    """Whether a wheel with such tags is for that Python (PEP 425): with `abi3`, it is for later ones, too.

    >>> is_for((3, 13), "Tag: cp311-abi3-manylinux_2_17_x86_64")
    True
    """
    for major, minor, abi in re.findall(r"^Tag: cp(\d)(\d+)-(\w+)-", tags, re.MULTILINE):
        tagged = (int(major), int(minor))
        if version == tagged or (abi == "abi3" and version > tagged):
            return True
    return False


def _copy_own(folder: Path) -> None:
    copy_files(files_of(*CLIENT_OF_STORES), folder)


def _downloader(version: Version) -> Callable[[Path], None]:
    """What gets the wheels for that Python, as this process's pip gets packages."""
    import subprocess
    import tempfile
    import zipfile

    named = ".".join(map(str, version))

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="est-") as wheels:
            pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
            of_version = ("--only-binary=:all:", f"--python-version={named}", "--implementation=cp")
            command = (*pip, *of_version, f"--dest={wheels}", _REQUIREMENT)
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=_DOWNLOAD_SECONDS,
                    env={name: value for name, value in os.environ.items() if name != "PIP_REQUIRE_VIRTUALENV"},
                )
                failed = done.stderr.strip().rpartition("\n")[2] if done.returncode else ""
            except subprocess.TimeoutExpired:
                failed = f"no answer for {_DOWNLOAD_SECONDS:g} s"
            if failed:
                what = f"slurm['python'] is a Python {named} without {_NAME}, which s3:// needs, and pip cannot get it"
                raise BackendError(f"{what}: {failed}; install {_NAME} for that Python, and try again")
            for wheel in Path(wheels).iterdir():
                with zipfile.ZipFile(wheel) as packed:
                    packed.extractall(folder)

    return fill
