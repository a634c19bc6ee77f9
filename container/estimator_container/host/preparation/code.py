"""Put the user's code into the code folder."""

from __future__ import annotations

import os
import shutil
import stat

from ...contract.names import CODE_CHANNEL
from ...runtime.errors import ConfigurationError

_ARCHIVE_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def bundle_of(channel: str) -> str | None:
    """The bundle that the platform has put into the folder of the code's channel, if there is such a channel."""
    if not os.path.isdir(channel):
        return None
    names = os.listdir(channel)
    if len(names) != 1:
        raise ConfigurationError(f"{channel} must hold one code bundle, but holds {len(names)} files: {names}")
    return os.path.join(channel, names[0])


def fetch(source: str, code: str) -> None:
    """Fill the empty folder `code` from a folder, an archive or a single file of this machine.

    Raises ConfigurationError for a source that is not there, not supported or not safe; nothing is
    left in `code` then.
    """
    if os.listdir(code):
        return
    path = source[len("file://") :] if source.startswith("file://") else source
    if "://" in path:
        raise ConfigurationError(
            f"the code is at {source}, which this toolkit cannot fetch; bring it in the channel "
            f"{CODE_CHANNEL!r}, or use a local archive, or an image that holds the code in /opt/ml/code"
        )
    if not os.path.exists(path):
        raise ConfigurationError(f"the code should be at {source}, but nothing is there")
    try:
        if os.path.isdir(path):
            shutil.copytree(path, code, symlinks=True, dirs_exist_ok=True)
        elif path.endswith(_ARCHIVE_ENDINGS) or _is_archive(path):
            _unpack(path, code)
        else:
            shutil.copy2(path, code)
        _keep_private(code)
    except ConfigurationError:
        _empty(code)
        raise
    except Exception as error:
        # Besides OSError whatever a decompressor says of a damaged archive; each has exceptions of its own.
        _empty(code)
        raise ConfigurationError(f"cannot take the code from {source}: {error}") from None


def _is_archive(path: str) -> bool:
    import tarfile  # not loaded for code that comes as a folder

    return tarfile.is_tarfile(path)


def _unpack(path: str, code: str) -> None:
    from ...runtime import archive

    def refuse(what: str) -> None:
        raise archive.Unsafe(what)

    try:
        archive.unpack(path, code, _mode, 0o700, refuse)
    except archive.Unsafe as found:
        raise ConfigurationError(f"{path} holds {found}: it was refused, and nothing was run") from None


def _mode(bits: int) -> int:
    """What a checkout has: of the archive's bits only the one that makes a program."""
    return 0o700 if bits & 0o100 else 0o600


def _keep_private(folder: str) -> None:
    """Take from others what the umask, or a source with modes of its own, gives them."""
    for place, _, files in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in files)):
            mode = os.lstat(path).st_mode
            if mode & 0o7077 and not stat.S_ISLNK(mode):
                os.chmod(path, mode & 0o700)


def _empty(folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
