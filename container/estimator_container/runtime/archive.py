"""Unpack an archive that anybody may have written: nothing of it lands, or leads, outside its folder.

The checks are our own, so they are the same on every Python: `tarfile` has had some since 3.12, and in some releases
before that.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import tarfile
from collections.abc import Sequence
from typing import Callable

_CHUNK = 1 << 20  # bytes
_HEADER = 1 << 20  # bytes of names and attributes, which tarfile reads into memory whole
_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_PATH_MAX = 4096  # bytes, linux/limits.h
_WIDTH = 60  # characters of such a name in a sentence
_DEPTH = 256  # names in a name; to remove a much deeper tree is more than Python can do


class Unsafe(ValueError):
    """What an archive holds that would reach out of the folder."""


class _Member(tarfile.TarInfo):
    """A member that takes bounded time and memory to read.

    Of negative size Pythons before 3.13.6 read it for ever (CVE-2025-8194); and a few kilobytes are enough to make
    a header of gigabytes.
    """

    def _block(self, count: int) -> int:
        if count < 0:
            raise tarfile.ReadError(f"it holds a member of {count} bytes")
        if count > _HEADER and self.type in _HEADERS:
            raise tarfile.ReadError(f"it holds a header of {count} bytes")
        return super()._block(count)  # type: ignore[misc, no-any-return]


def unpack(
    archive: str,
    folder: str,
    file_mode: Callable[[int], int],
    folder_mode: int,
    leave_out: Callable[[str], object],
) -> None:
    """Fill the empty folder, into which nobody else writes, with what is in the archive, of any compression.

    `file_mode` gives a file's permission bits for those in the archive; folders have `folder_mode`, less the umask.
    Owners are not taken over. Of several members of one name the last counts. `leave_out` is told, in words, of each
    member that the rest can do without, a device or a link that leads out, and what it raises ends everything.

    Raises Unsafe, with nothing written, where a name reaches out of the folder; and OSError, or whatever a
    decompressor says, for an archive that is damaged, with part of it written.
    """
    with _opened(archive) as tar:
        members = tar.getmembers()
        # A compressed stream has its checksum behind the last byte, which an archive's own end does not reach.
        while tar.fileobj and tar.fileobj.read(_CHUNK):
            pass
        tree = _Tree(folder, folder_mode)
        links: list[tuple[str, str]] = []
        hard_links: list[tuple[str, str]] = []
        for name, member in _checked(members, leave_out).items():
            if member.isdir():
                tree.make_folder(name)
            elif member.isfile():
                _write(tar, member, tree.place(name), file_mode(member.mode))
            else:
                (links if member.issym() else hard_links).append((name, member.linkname))
    for name, target in hard_links:
        os.link(tree.path(posixpath.normpath(target)), tree.place(name))
    # The links come last, so nothing is ever written through one.
    for name, target in links:
        os.symlink(_as_bytes(target), tree.place(name))
    _remove_escaping(dict(links), tree, leave_out)


class _Tree:
    """The folder, by the names of what is put there: bytes, whatever encoding this machine has."""

    def __init__(self, root: str, mode: int) -> None:
        self.root = os.fsencode(root)
        self._mode = mode
        self._made = {"", "."}

    def path(self, name: str) -> bytes:
        return os.path.join(self.root, _as_bytes(name))

    def make_folder(self, name: str) -> None:
        for each in (*_parents(name), name):
            if each not in self._made:
                os.mkdir(self.path(each), self._mode)
                self._made.add(each)

    def place(self, name: str) -> bytes:
        """The path of something in a folder that is there."""
        self.make_folder(posixpath.dirname(name))
        return self.path(name)


def _opened(archive: str) -> tarfile.TarFile:
    try:
        return tarfile.open(archive, tarinfo=_Member, encoding="utf-8", errors="surrogateescape")
    except tarfile.ReadError:  # which has a line for each compression that it does not have
        raise tarfile.ReadError("it is not a tar archive, or its beginning is damaged") from None


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: bytes, mode: int) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    tar.makefile(member, path)  # which leaves the holes of a sparse file
    os.chmod(path, mode)
    with contextlib.suppress(OSError, OverflowError, ValueError):  # a time that no file can have
        os.utime(path, (member.mtime, member.mtime))


def _checked(members: Sequence[tarfile.TarInfo], leave_out: Callable[[str], object]) -> dict[str, tarfile.TarInfo]:
    """What is to be written, by its name. Raises Unsafe."""
    named = [(_name(member), member) for member in members]
    found = {name: member for name, member in named if not _is_too_long(name)}
    for beginning in sorted({name[:_WIDTH] for name, _ in named if name not in found}):
        leave_out(f"{beginning!r}…, which is too long or too deep for a file")
    files = {name for name, member in found.items() if member.isfile()}
    others = {name for name, member in found.items() if not member.isdir()}
    for name, member in found.items():
        blocking = others.intersection(_parents(name))
        if blocking:
            how = "through a link" if found[min(blocking)].issym() else "into a file"
            raise Unsafe(f"{member.name!r}, which would be written {how}")
    chosen = {}
    for name, member in found.items():
        reason = _reason_to_leave_out(name, member, files)
        if reason:
            leave_out(reason)
        else:
            chosen[name] = member
    return chosen


def _name(member: tarfile.TarInfo) -> str:
    """Its name without detours. Raises Unsafe for one that is not below the folder."""
    name = posixpath.normpath(member.name)
    if posixpath.isabs(member.name) or ".." in member.name.split("/"):
        raise Unsafe(f"{member.name!r}, which would be written outside the folder")
    if "\0" in member.name + member.linkname or (name == "." and not member.isdir()):
        raise Unsafe(f"{member.name!r}, which is not the name of a file")
    return name


def _is_too_long(name: str) -> bool:
    return len(name) > _PATH_MAX or name.count("/") > _DEPTH


def _reason_to_leave_out(name: str, member: tarfile.TarInfo, files: set[str]) -> str:
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        return f"{member.name!r}, a device or a FIFO"
    # A symbolic link is read from the folder it stands in, a hard link from the archive's root.
    if member.issym() and not _stays_inside(posixpath.join(posixpath.dirname(name), member.linkname)):
        return _leads_out(member.name, member.linkname)
    if member.islnk() and posixpath.normpath(member.linkname) not in files:
        return f"the link {member.name!r} to {member.linkname!r}, which is not a file of the archive"
    return ""


def _remove_escaping(links: dict[str, str], tree: _Tree, leave_out: Callable[[str], object]) -> None:
    """A link to a link can lead outside although each name alone stays inside."""
    root = os.path.realpath(tree.root)
    while True:
        # The end of one may change where another leads.
        escaping = [name for name in links if not _is_below(os.path.realpath(tree.path(name)), root)]
        if not escaping:
            return
        for name in escaping:
            os.unlink(tree.path(name))
            leave_out(_leads_out(name, links.pop(name)))


def _leads_out(name: str, target: str) -> str:
    return f"the link {name!r} to {target!r}, outside the folder"


def _is_below(path: bytes, root: bytes) -> bool:
    return os.path.commonpath([root, path]) == root


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _stays_inside(name: str) -> bool:
    return not posixpath.isabs(name) and posixpath.normpath(name).split("/")[0] != ".."


def _as_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
