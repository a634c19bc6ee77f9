"""Which packages this Python environment has, and copies of them that travel to where hosts are."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..values.home import make_folder
from .port import Missing

if TYPE_CHECKING:
    from ..plan.plan import Plan

CLIENT_OF_STORES = ("obstore", "typing_extensions")
"""The client of s3:// stores, and what it needs."""


def needs_client_of_stores(plan: Plan) -> bool:
    """Whether what runs on the first host reads or writes s3:// stores."""
    uris = (plan.output_path, plan.checkpoint_uri or "", *(channel.source for channel in plan.channels))
    return any(uri.startswith("s3://") for uri in uris)


def is_installed(name: str) -> bool:
    """Whether a package can be imported; a mere folder of that name, such as one in a checkout, does not count."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None


def version_of(name: str) -> str | None:
    """A package's version, or `there` if it has none; None if it cannot be imported."""
    from importlib.metadata import PackageNotFoundError, version

    if not is_installed(name):
        return None
    try:
        return version(name)
    except PackageNotFoundError:
        return "there"


def package(name: str, fix: str) -> Callable[[], str]:
    """What looks for a package, for a `Check`; `fix` installs it."""

    def look() -> str:
        found = version_of(name)
        if found is None:
            raise Missing(f"the package {name} is not installed", fix)
        return found

    return look


def files_of(*packages: str) -> dict[str, Path]:
    """The modules of packages, by their names below a folder to import them from; of one that is missing, none."""
    found = {}
    for package in packages:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        origin = Path(spec.origin)
        if spec.submodule_search_locations is None:
            found[origin.name] = origin
            continue
        for path in origin.parent.rglob("*"):
            if path.suffix in (".py", ".so"):
                found[f"{package}/{path.relative_to(origin.parent)}"] = path
    return found


def digest_of(files: Mapping[str, Path]) -> str:
    """The start of a hash of their names and contents, by which copies of them are told apart."""
    digest = hashlib.sha256()
    for name, file in sorted(files.items()):
        content = file.read_bytes()
        digest.update(f"{len(name)} {name}{len(content)} ".encode() + content)
    return digest.hexdigest()[:16]


def copy_files(files: Mapping[str, Path], folder: Path) -> None:
    """Copy each to its name below a folder. Raises OSError."""
    for name, file in files.items():
        make_folder((folder / name).parent)
        shutil.copyfile(file, folder / name)
