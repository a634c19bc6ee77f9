from __future__ import annotations

import tarfile
import warnings
from pathlib import Path

import pytest

from estimator_sdk.code.source import Source
from estimator_sdk.errors import InvalidArgument

HINT = "a line !NAME in .estimatorignore includes one again"


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A home with credentials in it, and a script."""
    home = tmp_path / "home" / "me"
    monkeypatch.setenv("HOME", str(home))
    for name in (
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".netrc",
        ".npmrc",
        ".docker/config.json",
        ".docker/Dockerfile",
    ):
        write(home / name)
    write(home / "train.py")
    return home


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def sent(source: Path, tmp_path: Path, with_git: bool = False) -> tuple[set[str], list[str]]:
    """The files and links of a bundle, and the warnings about it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # an earlier test may have left a socket
        Source(None, str(source), with_git=with_git).bundle(tmp_path / "code.tar.gz")
    with tarfile.open(tmp_path / "code.tar.gz") as tar:
        return {member.name for member in tar if not member.isdir()}, [str(each.message) for each in told]


@pytest.mark.parametrize("with_git", [False, True])
def test_a_home_is_sent_without_its_credentials_and_a_line_names_them(home, tmp_path, with_git):
    kept, told = sent(home, tmp_path, with_git)
    assert kept == {"train.py", ".docker/Dockerfile"}
    names = ".aws, .docker/config.json, .netrc, .npmrc, .ssh"
    assert told == [f"left out of the code, because it holds credentials: {names}; {HINT}"]


def test_a_folder_around_the_home_is_sent_without_them_too(home, tmp_path):
    kept, (told,) = sent(home.parent, tmp_path)
    assert kept == {"me/train.py", "me/.docker/Dockerfile"} and "me/.aws, me/.docker/config.json" in told


def test_of_another_folder_it_is_what_is_at_its_top(home, tmp_path):
    project = tmp_path / "project"
    for name in ("train.py", ".npmrc", ".pip/x", "tests/.aws/config", ".aws/credentials"):
        write(project / name)
    kept, (told,) = sent(project, tmp_path)
    assert kept == {"train.py", ".npmrc", ".pip/x", "tests/.aws/config"} and "credentials: .aws;" in told


def test_what_a_link_of_that_name_leads_to_stays_out_as_well(home, tmp_path):
    write(home / "dotfiles" / "gnupg" / "key")
    (home / ".gnupg").symlink_to("dotfiles/gnupg")
    kept, (told,) = sent(home, tmp_path)
    assert kept == {"train.py", ".docker/Dockerfile"} and ".gnupg, .netrc, .npmrc, .ssh, dotfiles/gnupg;" in told


def test_estimatorignore_takes_one_back(home, tmp_path):
    write(home / ".estimatorignore", "!/.aws/\n")
    kept, (told,) = sent(home, tmp_path)
    assert ".aws/credentials" in kept and ".aws" not in told


def test_a_script_among_them_is_refused_with_the_line_that_takes_it_back(home):
    write(home / ".aws" / "train.py")
    with pytest.raises(InvalidArgument) as refused:
        Source(".aws/train.py", str(home)).check()
    assert "left out of" in str(refused.value) and "add the line !.aws/ to .estimatorignore" in str(refused.value)
