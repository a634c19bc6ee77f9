"""Put the user's code into the code folder."""

from __future__ import annotations

import os
import posixpath
import shutil
import stat
import tarfile
from collections.abc import Sequence

from .configuration import ConfigurationError
from .contract import CODE_CHANNEL

_ARCHIVE_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def bundle_of(channel: str) -> str | None:
    """The bundle that the platform has put into the folder of the code's channel, if there is such a channel."""
    if not os.path.isdir(channel):
        return None
    names = os.listdir(channel)
    if len(names) != 1:
        raise ConfigurationError(f"{channel} must hold one code bundle, and holds {len(names)} files: {names}")
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
            f"the code is at {source}, which this toolkit cannot fetch; bring it by the channel "
            f"{CODE_CHANNEL!r}, or use a local archive, or an image that holds the code in /opt/ml/code"
        )
    if not os.path.exists(path):
        raise ConfigurationError(f"the code should be at {source}, but there is nothing")
    try:
        if os.path.isdir(path):
            shutil.copytree(path, code, symlinks=True, dirs_exist_ok=True)
        elif path.endswith(_ARCHIVE_ENDINGS) or tarfile.is_tarfile(path):
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


def _unpack(archive: str, code: str) -> None:
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
        # A compressed stream has its checksum behind the last byte, which an archive's own end does not reach.
        while tar.fileobj and tar.fileobj.read(1 << 20):
            pass
        _check(members, archive)
        # Every member has been checked; newer interpreters want to be told so.
        tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        for member in sorted(members, key=_links_last):
            # Ownership is the archive maker's business; the mode keeps only what a checkout has.
            member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
            member.mode = 0o700 if member.isdir() or member.mode & 0o100 else 0o600
            tar.extract(member, code)
    root = os.path.realpath(code)
    for member in members:
        # A link to a link can lead outside although each name alone stays inside.
        target = os.path.realpath(os.path.join(code, member.name))
        if os.path.commonpath([root, target]) != root:
            raise _refused(archive, f"the link {member.name!r} to {member.linkname!r}, outside the code folder")


def _links_last(member: tarfile.TarInfo) -> int:
    """Nothing is ever written through a link of the archive, because the links come after the files."""
    return 2 if member.issym() else 1 if member.islnk() else 0


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


def _refused(archive: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"{archive} holds {what}: refused, nothing was run")


def _check(members: Sequence[tarfile.TarInfo], archive: str) -> None:
    """Raises ConfigurationError for a member that could reach out of the folder when it is unpacked."""
    files = {posixpath.normpath(member.name) for member in members if member.isfile()}
    symlinks = {posixpath.normpath(member.name) for member in members if member.issym()}
    for member in members:
        name, shown = posixpath.normpath(member.name), repr(member.name)
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            raise _refused(archive, f"{shown}, a device or a FIFO")
        if posixpath.isabs(member.name) or ".." in member.name.split("/"):
            raise _refused(archive, f"{shown}, which would be written outside the code folder")
        if any(parent in symlinks for parent in _parents(name)):
            raise _refused(archive, f"{shown}, which would be written through a link")
        # A symbolic link is read from the folder it stands in, a hard link from the archive's root.
        link = f"the link {shown} to {member.linkname!r}"
        if member.issym() and not _stays_inside(posixpath.join(posixpath.dirname(name), member.linkname)):
            raise _refused(archive, f"{link}, outside the code folder")
        if member.islnk() and posixpath.normpath(member.linkname) not in files:
            raise _refused(archive, f"{link}, which is no file of the archive")


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _stays_inside(name: str) -> bool:
    return not posixpath.isabs(name) and posixpath.normpath(name).split("/")[0] != ".."
