"""Folders of a host that no other user can enter: for its sockets, and for the memory that its ranks share."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat

from .errors import ConfigurationError

SHARED_MEMORY = "/dev/shm"
LONGEST_BASE = 85  # bytes: the path of a socket has at most 107 (unix(7)), and ends in "/est-0123456789ab/host"
_PLACES = ("/tmp", "/var/tmp")


def base(longest: int = LONGEST_BASE) -> str:
    """Where folders with short names are made: $TMPDIR, or the system's own place where that would not do.

    Open MPI's parameters cannot carry a space or a colon. Raises ConfigurationError where no place will do, whose path
    has at most so many bytes.
    """
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    places = [place for place in (*named, *_PLACES) if place and _is_usable(place, longest)]
    if not places:
        raise ConfigurationError(
            f"there is no temporary folder for the sockets of a host: neither $TMPDIR nor {' nor '.join(_PLACES)} is a "
            f"folder that this user may write to, with a path of at most {longest} bytes without spaces and "
            "colons; set TMPDIR to one"
        )
    return next(filter(_keeps_names, places), places[0])


def make(place: str) -> str:
    """A new folder in `place` for this user alone. Raises ConfigurationError."""
    path = os.path.join(place, f"est-{os.urandom(6).hex()}")
    try:
        os.mkdir(path, 0o700)
    except OSError as error:
        raise ConfigurationError(
            f"a host needs a temporary folder of its own, but none can be created in {place}: {error.strerror}; "
            "set TMPDIR to a folder that you can write to, with free space"
        ) from None
    check(path)
    return path


def hold(path: str) -> None:
    """As long as this process lives, keep such a folder from who removes what has not been touched for days.

    systemd-tmpfiles leaves out folders that are locked (tmpfiles.d(5)), with all that is in them.
    """
    import fcntl  # ranks load this module, too

    with contextlib.suppress(OSError):  # where there are no locks
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)


def make_for_memory(scratch: str) -> str:
    """As `make`, in memory; the folder `scratch` where there is no such place."""
    try:
        return make(SHARED_MEMORY)
    except ConfigurationError:
        return scratch


def given(path: str) -> str:
    """The folder that the platform has named, made if it is not there. Raises OSError and ConfigurationError."""
    make_below(path, 0o700)
    check(path)
    return path


def make_below(path: str, mode: int = 0o777) -> None:
    """Make a folder in one that only this user can enter, unless it is there.

    None above it is made, which may have been removed with its job: another's may have the name. Raises OSError.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, mode)


def write(path: str, text: str) -> None:
    """Write a file of such a folder. Raises OSError, which names it also where the disk is full."""
    try:
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as error:
        error.filename = error.filename or path  # the kernel says of an open file only what is wrong
        raise


def replace(path: str, text: str) -> None:
    """As `write`, for a file that others read: it is whole as soon as it has its name, which one before it loses."""
    write(f"{path}.new", text)
    os.rename(f"{path}.new", path)


def clear(path: str) -> None:
    """Remove all that is in such a folder, whoever made it there; the folder stays. Raises OSError."""
    with os.scandir(path) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)


def check(path: str) -> None:
    """Raises ConfigurationError unless it is a folder, and not a link to one, that only this user can enter."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be used for a host's own files: {error.strerror}") from None
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise ConfigurationError(
            f"{path} cannot be used for a host's own files: it belongs to user {status.st_uid} and has mode "
            f"{stat.S_IMODE(status.st_mode):o}, but must belong to user {os.geteuid()} and have mode 700; remove it"
        )


def _is_usable(place: str, longest: int) -> bool:
    fits = place.startswith("/") and len(os.fsencode(place)) <= longest
    plain = place.isprintable() and not set(" :").intersection(place)
    return fits and plain and os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)


def _keeps_names(place: str) -> bool:
    """Whether no other user can put something else in the place of what this user has made there."""
    mode = os.stat(place).st_mode
    return not mode & stat.S_IWOTH or bool(mode & stat.S_ISVTX)
