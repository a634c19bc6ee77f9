"""Where the SDK keeps jobs and code bundles on the user's machine, and how it keeps other users out of there."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..errors import EstimatorError, InvalidArgument

HOME_VARIABLE = "ESTIMATOR_HOME"
CACHE_VARIABLE = "XDG_CACHE_HOME"
_DAC_OVERRIDE = 1  # linux/capability.h


def home() -> Path:
    """`$ESTIMATOR_HOME`, else a folder in the user's data directory.

    By the XDG Base Directory Specification a relative path in one of its variables is as good as none.
    Raises EstimatorError for a user without any, as a container may run one.
    """
    given = os.environ.get(HOME_VARIABLE)
    try:
        return Path(given).expanduser().absolute() if given else _of_user("XDG_DATA_HOME", ".local/share")
    except RuntimeError as error:
        raise _nowhere(error, HOME_VARIABLE) from None


def cache_folder() -> Path:
    """What can be made again, in the user's cache; `build_horovod.py`, which stands alone, has its `wheels` there."""
    try:
        return _of_user(CACHE_VARIABLE, ".cache")
    except RuntimeError as error:
        raise _nowhere(error, CACHE_VARIABLE) from None


def _of_user(variable: str, below_home: str) -> Path:
    given = Path(os.environ.get(variable, ""))
    return (given if given.is_absolute() else Path.home() / below_home) / "estimator-sdk"


@contextmanager
def writing(what: str, variable: str = HOME_VARIABLE) -> Iterator[None]:
    """Around what writes below the folder that a variable sets. Raises EstimatorError for OSError."""
    try:
        yield
    except OSError as error:
        raise EstimatorError(
            f"{what} cannot be written: {error}; set {variable} to a folder that you can write to, with free space"
        ) from None


@contextmanager
def temporary_folder(what: str, fill: Callable[[Path], None] | None = None) -> Iterator[str]:
    """A folder below $TMPDIR that holds `what`, which `fill` writes, for as long as the block runs.

    Its name says which process it is of, for whoever finds it after that was killed.

    Raises EstimatorError, which names the folder, where the disk does not take it, and as `check_umask`.
    """
    import shutil
    import tempfile

    check_umask()
    with ExitStack() as stack:
        with writing(what, "TMPDIR"):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"est-{os.getpid()}-"))
        # The kernel says of an open file only what is wrong, and copytree() of many files a list.
        with writing(f"{what} to {folder}", "TMPDIR"):
            try:
                if fill is not None:
                    fill(Path(folder))
            except shutil.Error as several:
                raise OSError(several.args[0][0][-1]) from None
        yield folder


@contextmanager
def appearing(place: Path) -> Iterator[Path]:
    """An empty folder that becomes `place` when the block has filled it, unless another process was quicker.

    Raises OSError, and what the block raises.
    """
    import shutil
    from tempfile import mkdtemp

    unfinished = Path(mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        yield unfinished
        unfinished.rename(place)
    except OSError:
        if not place.exists():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def reading() -> Iterator[None]:
    """Around what looks for jobs. Raises EstimatorError for a home that cannot be looked into."""
    try:
        yield
    except OSError as error:
        raise EstimatorError(
            f"the jobs cannot be read: {error}; set {HOME_VARIABLE} to a folder that you can read, or ask its owner"
        ) from None


def _nowhere(error: RuntimeError, variable: str) -> EstimatorError:
    words = str(error).rstrip(".")
    return EstimatorError(f"cannot choose a folder for jobs: {words}; set {variable} to one that you can write to")


def jobs_folder() -> Path:
    """The folder of all local jobs, which may not exist yet. Raises EstimatorError as `home`."""
    return home() / "jobs"


def list_cache(jobs: Path) -> Path:
    """What is known of the jobs of that folder which have ended; it can be removed at any time."""
    return jobs.with_name("jobs.cache")


def bundles_folder() -> Path:
    """Code bundles, each under the hash of its bytes."""
    return home() / "code"


def check_umask() -> None:
    """Raises EstimatorError for a umask that keeps this user out of the folders and files that they make.

    Root enters them all the same, where it has that capability (capabilities(7), CAP_DAC_OVERRIDE).
    """
    with suppress(OSError, KeyError, ValueError):  # of a kernel that does not tell, which is older than 4.7
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        facts = dict(line.split(":\t", 1) for line in lines if line.startswith(("Umask:", "CapEff:")))
        if not int(facts["Umask"], 8) & 0o700 or int(facts["CapEff"], 16) & 1 << _DAC_OVERRIDE:
            return
        what = f"the umask is {facts['Umask']}, so you could not use the folders that are created for you"
        raise EstimatorError(f"{what}; set another one, such as `umask 077`")


def make_folder(folder: Path | str) -> None:
    """Make a folder, and those above it that are missing, each for this user alone. Raises OSError."""
    path = Path(folder)
    try:
        path.mkdir(0o700, exist_ok=True)
    except FileNotFoundError:
        make_folder(path.parent)
        path.mkdir(0o700, exist_ok=True)


def secured(folder: Path, variable: str = HOME_VARIABLE) -> Path:
    """As `make_folder`, for a folder that is kept: one that is there is closed to others, and must be this user's.

    Raises OSError, and InvalidArgument for a folder that others control; `variable` names another place for it.
    Raises EstimatorError as `check_umask`.
    """
    check_umask()
    make_folder(folder)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid():
            raise _not_ours(folder, f"belongs to another user, with the id {status.st_uid}", variable)
        if folder.parent.stat().st_mode & stat.S_IWOTH:
            raise _not_ours(folder.parent, "can be written to by every user of this machine", variable)
        if status.st_mode & 0o077:
            os.fchmod(fd, 0o700)
    finally:
        os.close(fd)
    return folder


def _not_ours(folder: Path, why: str, variable: str) -> InvalidArgument:
    what = f"{folder} {why}, so others could change the code and the state of jobs that are kept there"
    return InvalidArgument(variable, f"{what}; set {variable} to a folder of your own")


def private_file(path: str, flags: int) -> int:
    """An `opener` for `open`, whose new files only this user may read."""
    return os.open(path, flags, 0o600)


def regular_file(path: str, flags: int) -> int:
    """An `opener` for `open` that takes a file alone: a FIFO would be waited for, and a device may have no end."""
    fd = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "it is not a file", path)


def opened(path: Path) -> BinaryIO | None:
    """A file to be read; None for what is none, or has just been set aside. Raises OSError."""
    try:
        return path.open("rb") if path.is_file() else None
    except FileNotFoundError:
        return None


def write_private(path: Path | str, text: str, errors: str = "strict") -> None:
    """Write a text file that only this user may read, if it is not there yet. Raises OSError."""
    with open(path, "w", encoding="utf-8", errors=errors, opener=private_file) as file:
        file.write(text)


def replace_private(path: Path, text: str) -> None:
    """As `write_private`, for a file that others read: it appears whole, in the place of what has its name.

    That may be a link that somebody else has left there. Raises OSError.
    """
    draft = path.with_name(f".{os.getpid()}-{os.urandom(4).hex()}.new")
    try:
        write_private(draft, text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


class _Place:
    """A file or folder of a job, by its name in the job's folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: JobFolder, owner: type) -> Path:
        return folder.path / self._name


class _JobPath(NamedTuple):
    path: Path
    """The folder itself."""


class JobFolder(_JobPath):
    """The files of one local job. Every path of a job is made here."""

    record = _Place("record.json")
    """The job's state, replaced as a whole with every change."""
    plan = _Place("plan.txt")
    """What runs, for people; secrets are left out."""
    request = _Place("request.json")
    """The job as a CreateTrainingJob document; secrets are left out."""
    reserve = _Place("reserve")
    """Room for the last change of `record` on a disk that the job fills up."""
    supervisor_log = _Place("supervisor.log")
    """What the supervisor writes to its standard output and error."""
    output = _Place("output")
    """The default output path of the job."""
    channels = _Place("channels")
    """The folder of the channels that are fetched for the job."""
    hosts = _Place("hosts")
    """What the hosts have of their own, in a folder each, during the current attempt and after the last one."""

    @classmethod
    def for_job(cls, job_name: str) -> JobFolder:
        """Raises InvalidArgument for what is not a name: it may be a path."""
        from .job_name import checked

        return cls(jobs_folder() / checked(job_name))

    @property
    def name(self) -> str:
        """The job's name."""
        return self.path.name

    def channel(self, name: str) -> Path:
        """The fetched data of a channel, while the job runs."""
        return self.channels / name

    def host(self, host: str) -> Path:
        """The base directory of one host, which takes the place of `/opt/ml`."""
        return self.hosts / host

    def attempt(self, number: int) -> Path:
        """What belongs to one attempt alone."""
        return self.path / "attempts" / str(number)

    def left(self, attempt: int) -> Path:
        """What `hosts` was at the end of an attempt that was followed by another."""
        return self.attempt(attempt) / "hosts"

    def overlay(self, attempt: int) -> Path:
        """The virtual environment that the hosts of an attempt share, if the code has requirements."""
        return self.attempt(attempt) / "environment"
