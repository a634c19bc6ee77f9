"""The build context of an image: what its Dockerfile copies, and the digest that tells whether an image is of today."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import estimator_container

from ....values.home import cache_folder
from .catalogue import Image

_CHECKOUT = Path(__file__).parents[4]
BOOKWORM_GLIBC = (2, 36)


def recipe() -> Path:
    """The folder of the Dockerfile: `container/` in a checkout, package data where the SDK was installed."""
    return _CHECKOUT / "container" if (_CHECKOUT / "container" / "Dockerfile").exists() else Path(__file__).parent


def files(image: Image) -> dict[str, bytes]:
    """What is ours in the context: path -> content."""
    source, toolkit = recipe(), Path(estimator_container.__file__).parent
    found = {
        "Dockerfile": source / "Dockerfile",
        "with-ca": source / "image" / "with-ca",
        **{path.name: path for path in (source / "horovod").glob("*.py")},
        "toolkit/install": source / "image" / "install",
        **{f"toolkit/{toolkit.name}/{path.relative_to(toolkit)}": path for path in toolkit.rglob("*.py")},
    }
    return {
        "constraints.txt": _constraints(image).encode(),
        **{name: path.read_bytes() for name, path in sorted(found.items())},
    }


def digest(image: Image, contents: Mapping[str, bytes]) -> str:
    """A digest of everything that an image is built from."""
    total = hashlib.sha256("\n".join(image.packages).encode())
    for name, content in contents.items():
        total.update(f"\n{name} {len(content)}\n".encode() + content)
    return total.hexdigest()


def write(image: Image, contents: Mapping[str, bytes], folder: Path) -> None:
    """Fill the folder with all that the Dockerfile copies."""
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    _copy_certificates(folder / "ca")
    _copy_wheels(image, folder / "wheels")
    _copy_horovod(image, folder / "horovod-wheels")
    for path in folder.rglob("*"):  # as an image has them: whoever runs there reads them, whatever this user's umask is
        path.chmod(0o755 if path.is_dir() else 0o644)


def _constraints(image: Image) -> str:
    lines = (
        (recipe() / "image" / "constraints" / image.constraints).read_text(encoding="utf-8").splitlines(keepends=True)
    )
    return "".join(line for line in lines if not line.startswith("#"))


def _copy_certificates(folder: Path) -> None:
    """Behind a proxy with an authority of its own, pip in the build needs the certificates that pip here has."""
    folder.mkdir()
    bundle = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if bundle and Path(bundle).is_file():
        shutil.copy(bundle, folder / "bundle.pem")


def _copy_wheels(image: Image, folder: Path) -> None:
    """Wheels of the framework in the folders that pip here looks in, such as a build without CUDA, go before others."""
    folder.mkdir()
    if image.for_gpus:
        return
    for package in image.packages:
        name, _, version = package.partition("==")
        for place in _find_links():
            for wheel in place.glob(f"{name.replace('-', '_')}-{version}[+-]*.whl"):
                shutil.copy(wheel, folder)


def _copy_horovod(image: Image, folder: Path) -> None:
    """A Horovod that was compiled on this machine for the same framework need not be compiled again."""
    folder.mkdir()
    libc, version = platform.libc_ver()
    if libc != "glibc" or tuple(map(int, version.split("."))) > BOOKWORM_GLIBC or not image.packages:
        return  # what needs a newer C library than the image has would not start there
    name, _, release = image.packages[0].partition("==")
    framework = f"-cp311-*-{name.partition('[')[0].removesuffix('-cpu')}-{release}*-mpi-pip*"
    for wheel in (cache_folder() / "wheels").glob(f"horovod-*{framework}/*.whl"):
        if wheel.parent.name.count("-none-") == 1:  # for this framework alone, as the image's own build would be
            (folder / wheel.parent.name).mkdir()
            shutil.copy(wheel, folder / wheel.parent.name)


def _find_links() -> list[Path]:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    listed = subprocess.run(pip, capture_output=True, text=True, check=False).stdout
    words = re.findall(r"find-links='(.*)'", listed)
    places = {word.removeprefix("file://") for line in words for word in line.split()}
    return [Path(place) for place in sorted(places) if Path(place).is_dir()]
