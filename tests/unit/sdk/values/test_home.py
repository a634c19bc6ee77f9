"""Where the SDK keeps things, and who else can enter there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from estimator_sdk import Estimator, EstimatorError, InvalidArgument, Job, list_jobs
from estimator_sdk.code.source import Source
from estimator_sdk.values.home import (
    HOME_VARIABLE,
    cache_folder,
    home,
    jobs_folder,
    make_folder,
    secured,
    write_private,
)


@pytest.fixture(params=[0, 0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.usefixtures("umask")
def test_whatever_the_umask_is_only_the_user_can_enter_and_read(tmp_path):
    make_folder(tmp_path / "a" / "b")
    write_private(tmp_path / "a" / "text", "x")
    assert [mode(tmp_path / each) for each in ("a", "a/b", "a/text")] == [0o700, 0o700, 0o600]


@pytest.mark.usefixtures("umask")
def test_a_bundle_is_private_and_opens_no_source(tmp_path):
    (tmp_path / "train.py").write_text("x")
    (tmp_path / "train.py").chmod(0o600)
    Source(str(tmp_path / "train.py")).bundle(tmp_path / "bundle.tar.gz")
    assert mode(tmp_path / "bundle.tar.gz") == 0o600


def test_a_folder_of_an_earlier_version_is_closed(tmp_path):
    (tmp_path / "jobs").mkdir(0o755)
    assert mode(secured(tmp_path / "jobs")) == 0o700


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    (tmp_path / "jobs").mkdir()
    monkeypatch.setattr("os.geteuid", lambda: 4242)
    with pytest.raises(InvalidArgument, match="jobs belongs to another user, .*; set ESTIMATOR_HOME to a folder of yo"):
        secured(tmp_path / "jobs")


def test_a_home_that_everybody_may_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o1777)
    with pytest.raises(InvalidArgument, match=f"{tmp_path} can be written to by every user .*; set ESTIMATOR_HOME to"):
        secured(tmp_path / "jobs")


def test_a_home_of_any_length_is_one_or_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("print('up')")
    estimator = Estimator(entry_point=str(tmp_path / "train.py"), backend="process")
    long = tmp_path.joinpath(*["x" * 100] * 12)
    monkeypatch.setenv(HOME_VARIABLE, str(long))
    assert estimator.fit(logs="none", job_name="any").status == list_jobs()[0].status == "Completed"
    for length in (41, 400):
        monkeypatch.setenv(HOME_VARIABLE, str(tmp_path.joinpath(*["x" * 100] * length)))
        with suppress(EstimatorError):
            assert list_jobs() == []
        for use in (lambda: Job.attach("any"), lambda: estimator.fit(wait=False)):
            with pytest.raises(EstimatorError):
                use()
                raise AssertionError(length, use)


def test_a_home_with_a_colon_is_refused_before_the_start(tmp_path, monkeypatch):
    (tmp_path / "train.py").touch()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "a:b"))
    with pytest.raises(InvalidArgument, match="PYTHONPATH, which cannot .* ':'; set ESTIMATOR_HOME to a folder"):
        Estimator(entry_point=str(tmp_path / "train.py"), backend="process").plan()
    assert not jobs_folder().exists()


@pytest.mark.parametrize("relative", ["share", "./share", "~/share"])
def test_a_relative_path_in_a_variable_of_xdg_is_as_good_as_none(monkeypatch, relative):
    """It would mean another folder for each folder that a process is in, a script's for one."""
    monkeypatch.delenv("ESTIMATOR_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_DATA_HOME", relative)
    monkeypatch.setenv("XDG_CACHE_HOME", relative)
    assert home() == Path("/home/me/.local/share/estimator-sdk")
    assert cache_folder() == Path("/home/me/.cache/estimator-sdk")
