import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from estimator_container.runtime import private_folder
from estimator_container.runtime.errors import ConfigurationError
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
    lambda name: name not in (".", "..")
)


@pytest.fixture(autouse=True)
def none_named(monkeypatch):
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def place():
    """A folder with a short name, as pytest's own are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@given(st.lists(NAMES, max_size=3))
def test_whatever_tmpdir_is_called_a_socket_fits_and_mpi_can_carry_the_path(names):
    with tempfile.TemporaryDirectory(dir="/tmp") as above, pytest.MonkeyPatch.context() as patch:
        named = Path(above, *names)
        named.mkdir(parents=True, exist_ok=True)
        patch.setenv("TMPDIR", str(named))
        base = private_folder.base()
        path = private_folder.make(base)
        Path(path).rmdir()
    assert base in (str(named), "/tmp") and len(os.fsencode(f"{path}/host")) <= 107
    assert not any(character.isspace() or character == ":" for character in path)


def test_a_fit_tmpdir_is_taken(place, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(place))
    assert private_folder.base() == str(place)
    monkeypatch.setenv("TMPDIR", str(place / "not there"))
    assert private_folder.base() == "/tmp"


def test_a_place_where_others_can_replace_what_this_user_made_is_the_last_choice(place, monkeypatch):
    place.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(place))
    assert private_folder.base() == "/tmp"
    monkeypatch.setattr(private_folder, "_PLACES", ("/nowhere",))
    assert private_folder.base() == str(place)


def test_without_any_place_one_sentence_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "not there"))
    monkeypatch.setattr(private_folder, "_PLACES", ("/nowhere",))
    with pytest.raises(ConfigurationError, match=r"no temporary folder .*\$TMPDIR nor /nowhere .*; set TMPDIR to one$"):
        private_folder.base()


def test_a_place_where_nothing_can_be_made_is_named():
    said = "none can be created in /proc: No such file or directory; set TMPDIR to"
    with pytest.raises(ConfigurationError, match=said):
        private_folder.make("/proc")


def test_a_full_disk_is_named():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        private_folder.write("/dev/full", "text")


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_only_its_user_can_enter_what_is_made(tmp_path, umask):
    before = os.umask(umask)
    try:
        made = [private_folder.make(str(tmp_path)), private_folder.given(str(tmp_path / "given"))]
    finally:
        os.umask(before)
    for path in made:
        assert Path(path).stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_there_must_be_private_and_no_link(tmp_path):
    (tmp_path / "own").mkdir(0o700)
    (tmp_path / "link").symlink_to("own")
    (tmp_path / "file").touch(0o700)
    assert private_folder.given(str(tmp_path / "own")) == str(tmp_path / "own")
    for name in ("link", "file"):
        with pytest.raises(ConfigurationError, match="cannot be used for a host's own files"):
            private_folder.given(str(tmp_path / name))
    (tmp_path / "own").chmod(0o710)
    with pytest.raises(ConfigurationError, match="has mode 710, but must .* have mode 700; remove it$"):
        private_folder.given(str(tmp_path / "own"))


def test_without_shared_memory_the_scratch_folder_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(private_folder, "SHARED_MEMORY", str(tmp_path / "nowhere"))
    assert private_folder.make_for_memory("/scratch") == "/scratch"


def test_whatever_is_in_a_folder_can_be_cleared_from_it_and_nothing_else(place):
    inside, outside = place / "inside", place / "outside"
    (inside / "folder" / "below").mkdir(parents=True)
    (inside / "folder" / "below" / "file").touch()
    (inside / "file").touch()
    outside.mkdir()
    (outside / "file").touch()
    (inside / "link").symlink_to(outside)
    os.mkfifo(inside / "pipe")
    private_folder.clear(str(inside))
    assert list(inside.iterdir()) == [] and (outside / "file").exists()


def test_a_folder_that_is_held_is_locked_as_long_as_the_process_lives(place):
    """As systemd-tmpfiles asks before it removes what is old."""
    program = f"""
import sys, time
sys.path[:0] = {sys.path!r}
from estimator_container.runtime import private_folder
path = private_folder.make({str(place)!r})
private_folder.hold(path)
print(path, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        path = process.stdout.readline().strip()
        fd = os.open(path, os.O_RDONLY)
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            process.kill()
            process.wait()
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(fd)


def test_a_folder_that_is_not_there_any_more_is_not_held(place):
    private_folder.hold(f"{place}/none")
