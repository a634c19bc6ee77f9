"""Copies of packages, and what tells them apart."""

from __future__ import annotations

import pytest

from estimator_sdk.backends.packages import copy_files, digest_of


@pytest.fixture
def files(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(name)
    return {"toolkit/a.py": tmp_path / "a.py", "toolkit/deep/b.py": tmp_path / "b.py"}


def test_the_order_of_files_says_nothing(files):
    assert digest_of(dict(reversed(files.items()))) == digest_of(files)


def test_a_name_and_a_content_that_change_are_told_apart(files):
    before = digest_of(files)
    renamed = {name.replace("deep", "flat"): file for name, file in files.items()}
    files["toolkit/a.py"].write_text("changed")
    assert len({before, digest_of(files), digest_of(renamed)}) == 3


def test_what_moves_from_one_file_to_the_next_is_told_apart(files):
    before = digest_of(files)
    files["toolkit/a.py"].write_text("a.pyb")
    files["toolkit/deep/b.py"].write_text(".py")
    assert digest_of(files) != before


def test_copies_have_the_names_that_they_are_imported_by(files, tmp_path):
    copy_files(files, tmp_path / "copy")
    assert (tmp_path / "copy" / "toolkit" / "deep" / "b.py").read_text() == "b.py"
    assert (tmp_path / "copy" / "toolkit" / "a.py").read_text() == "a.py"
