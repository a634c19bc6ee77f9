"""Another user of the machine, who makes folders and links first, looks, reads, writes and connects."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import pytest
from estimator_container.runtime import private_folder
from estimator_container.runtime.errors import ConfigurationError

from estimator_sdk import InvalidArgument
from estimator_sdk.backends.docker.images import build
from tests.waiting import SECONDS

from .conftest import STRANGER

ENTERS = """
import os, socket, sys
def connect(path):
    socket.socket(socket.AF_UNIX).connect(path)
def reads(path):
    os.open(path, os.O_RDONLY | os.O_NONBLOCK)
def writes(path):
    os.open(path, os.O_WRONLY | os.O_NONBLOCK)
for path in sys.argv[1].split("\\n"):
    for attempt in (os.listdir, reads, writes, connect):
        try:
            attempt(path)
            print(attempt.__name__, path)
        except OSError:
            pass
"""
IS_FIRST = """
import os, shutil, sys
watched, memory = sys.argv[1:]
made = set()
while not os.path.exists(watched + "/stop"):
    for name in set(os.listdir(watched)) - made:
        os.mkdir(memory + "/" + name)
        os.chmod(memory + "/" + name, 0o777)
        made.add(name)
for name in made:
    shutil.rmtree(memory + "/" + name, ignore_errors=True)
"""
MAKES = "import os, sys; os.umask(0); [os.makedirs(path) for path in sys.argv[1:]]"
LINKS = "import os, sys; os.symlink(sys.argv[1], sys.argv[2])"
MEMORY = """
import os
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
status = os.stat(os.environ["OMPI_MCA_btl_vader_backing_directory"])
print(status.st_uid, oct(status.st_mode & 0o777))
"""
WAITS = """
import os, time
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    print(os.environ["OMPI_MCA_orte_tmpdir_base"], os.environ["OMPI_MCA_btl_vader_backing_directory"], flush=True)
while not os.path.exists(os.environ["SM_INPUT_DIR"] + "/go"):
    time.sleep(0.02)
"""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which each user may make something, as in /tmp; the home is in one that belongs to its user."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        Path(folder, "own").mkdir(0o755)
        monkeypatch.setenv("ESTIMATOR_HOME", f"{folder}/own/home")
        yield Path(folder)


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[Path]:
    return [path for path in (folder, *folder.rglob("*")) if not path.is_symlink() and path.lstat().st_mode & 0o077]


@pytest.mark.usefixtures("open_umask")
def test_a_stranger_enters_and_reads_and_connects_to_nothing_of_a_job(script, place, as_stranger):
    home = place / "own" / "home"
    job = script.estimator(WAITS, hosts=2, processes=1).fit(wait=False)
    lines = job.logs(stream="stdout", follow=True)
    private = [home, *map(Path, next(lines).data.decode().split())]
    inside = [str(path) for folder in private for path in (folder, *folder.rglob("*"))]
    assert len(inside) > 50 and any(path.endswith("/host") for path in inside)
    assert as_stranger(ENTERS, "\n".join(inside)).stdout == ""
    for host in ("algo-1", "algo-2"):
        (job.folder / "hosts" / host / "input" / "go").touch(0o600)
    assert job.wait(SECONDS) == "Completed", job.why()
    assert open_to_others(home) == []


@pytest.mark.usefixtures("open_umask")
def test_sources_that_only_their_user_can_read_stay_so(script, place):
    estimator = script.estimator({"train.py": "", "lib/secret.py": "x"})
    for path in Path(estimator.source_dir).rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    plan = estimator.plan()
    assert open_to_others(place / "own" / "home") == []
    with tarfile.open(plan.code) as bundle:
        assert {member.name: member.mode for member in bundle} == {
            "lib": 0o700, "lib/secret.py": 0o600, "train.py": 0o600
        }  # fmt: skip


def test_shared_memory_that_a_stranger_makes_first_is_not_used(script, out, place, as_stranger, monkeypatch):
    """He reads the names in the temporary folder, and makes the same in /dev/shm before a host does."""
    (place / "watched").mkdir()
    monkeypatch.setenv("TMPDIR", str(place / "watched"))
    with ThreadPoolExecutor() as pool:
        stranger = pool.submit(as_stranger, IS_FIRST, str(place / "watched"), "/dev/shm")
        try:
            job = script.run(MEMORY, processes=2)
        finally:
            (place / "watched" / "stop").touch()
        assert stranger.result().stderr == ""
    assert out(job, rank=0) == out(job, rank=1) == b"0 0o700\n"


def test_a_script_that_uses_mpi_alone_keeps_out_of_a_folder_that_a_stranger_made(
    script, out, place, as_stranger, monkeypatch
):
    """Open MPI's own choice is $TMPDIR/ompi.HOST.UID."""
    guessed = place / f"ompi.{os.uname().nodename}.{os.getuid()}"
    assert as_stranger(MAKES, str(guessed)).stderr == ""
    monkeypatch.setenv("TMPDIR", str(place))
    job = script.run(f"from mpi4py import MPI\nimport os\nprint(os.listdir({str(guessed)!r}))")
    assert out(job) == b"[]\n"


@pytest.mark.parametrize("name", ["jobs", "code"])
def test_a_home_in_which_a_stranger_made_a_folder_first_is_refused(script, place, as_stranger, monkeypatch, name):
    monkeypatch.setenv("ESTIMATOR_HOME", str(place))
    (place / "ran").unlink(missing_ok=True)
    assert as_stranger(MAKES, str(place / name)).stderr == ""
    with pytest.raises(InvalidArgument, match="set ESTIMATOR_HOME to a folder of your own"):
        script.run(f"open({str(place / 'ran')!r}, 'w')")
    assert not (place / "ran").exists() and list((place / name).iterdir()) == []


def test_a_link_that_a_stranger_planted_in_a_home_that_all_may_write_to_changes_nothing(
    script, place, as_stranger, monkeypatch
):
    (place / "own" / "public").mkdir(0o755)
    monkeypatch.setenv("ESTIMATOR_HOME", str(place))
    assert as_stranger(LINKS, str(place / "own" / "public"), str(place / "code")).stderr == ""
    with pytest.raises(InvalidArgument, match="can be written to by every user of this machine"):
        script.estimator("").plan()
    public = place / "own" / "public"
    assert list(public.iterdir()) == [] and public.stat().st_mode & 0o777 == 0o755


def test_a_cache_that_belongs_to_a_stranger_is_refused(place, as_stranger, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    assert as_stranger(MAKES, str(place / "cache" / "estimator-sdk" / "images")).stderr == ""
    with (
        pytest.raises(InvalidArgument, match=f"belongs to another user, with the id {STRANGER}.*set XDG_CACHE_HOME"),
        build._lock("estimator/mpi:py311", StringIO()),
    ):
        pass


def link_to_a_private_folder(path: Path, as_stranger: Callable[..., object]) -> None:
    (path.parent / "own" / "private").mkdir(0o700)
    as_stranger(LINKS, str(path.parent / "own" / "private"), str(path))


@pytest.mark.parametrize(
    "plant",
    [lambda path, as_stranger: as_stranger(MAKES, str(path)), link_to_a_private_folder],
    ids=["a folder", "a link"],
)
def test_a_host_refuses_a_private_folder_that_a_stranger_made(place, as_stranger, plant):
    plant(place / "est-1", as_stranger)
    with pytest.raises(ConfigurationError, match="est-1 cannot be used for a host's own files"):
        private_folder.given(str(place / "est-1"))
