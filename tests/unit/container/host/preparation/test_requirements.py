"""What is installed for a job's code, and kept for later jobs."""

import os
import subprocess

import pytest
from estimator_container.host.preparation import kept_environment, requirements

BELOW = requirements._packages_below()


@pytest.mark.parametrize(
    "text",
    [
        "numpy",
        "numpy==2.0\n# a comment / with a path\n\ntorch>=2 # see https://a/b",
        "--index-url https://a/b\nx[y]~=1.0",
    ],
)
def test_what_is_named_for_an_index_is_kept_under_the_same_key(text):
    assert kept_environment.key_of(text.encode(), BELOW) == kept_environment.key_of(text.encode(), BELOW)
    assert kept_environment.key_of(text.encode(), BELOW) != kept_environment.key_of(f"{text}\nother".encode(), BELOW)


@pytest.mark.parametrize(
    "text",
    [
        "./slow",
        "slow/",
        "-e .",
        "-r other.txt",
        "-c b.txt",
        "a.whl",
        "a @ file:///b",
        "git+https://a/b",
        "a==${V}",
    ],
)
def test_what_may_change_behind_its_name_is_not_kept(text):
    assert kept_environment.key_of(f"numpy\n{text}\n".encode(), BELOW) is None


def test_the_settings_of_pip_make_another_environment(monkeypatch):
    before = kept_environment.key_of(b"numpy", BELOW)
    monkeypatch.setenv("PIP_INDEX_URL", "https://a/b")
    assert kept_environment.key_of(b"numpy", BELOW) != before


def test_packages_that_come_or_go_below_it_make_another(tmp_path):
    before = kept_environment.key_of(b"numpy", [str(tmp_path)])
    os.utime(tmp_path, (1, 1))
    assert kept_environment.key_of(b"numpy", [str(tmp_path)]) != before


def test_an_environment_is_made_once_and_again_where_that_failed(tmp_path):
    made = []

    def install(outcome):
        def installs(place):
            assert not (tmp_path / "kept" / "key").exists()
            (tmp_path / "kept" / "key").mkdir()
            made.append(place)
            return outcome

        return installs

    place = str(tmp_path / "kept" / "key")
    assert [kept_environment.ensure(place, install(code)) for code in (1, 0, 1)] == [1, 0, 0]
    assert made == [place] * 2


def test_a_job_sees_what_is_kept_below_its_own_environment_and_its_programs(tmp_path):
    kept, own = tmp_path / "kept", tmp_path / "own"
    requirements.create_overlay(str(kept))
    (site,) = kept.glob("lib/python*/site-packages")
    (site / "only_kept.py").write_text("")
    (kept / "bin" / "tool").write_text("#!/bin/sh\necho tool\n")
    (kept / "bin" / "tool").chmod(0o755)
    python = requirements.create_overlay(str(own), str(kept))
    kept_environment.link_programs(str(kept), str(own))
    source = "import only_kept, pytest, sys; print(only_kept.__file__); print(sys.prefix)"
    done = subprocess.run([python, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(site / "only_kept.py"), str(own)]
    assert subprocess.run([own / "bin" / "tool"], capture_output=True, text=True, check=True).stdout == "tool\n"


def test_requirements_are_installed_into_what_is_kept_and_local_ones_into_the_jobs_own(tmp_path):
    code, overlay, kept = tmp_path / "code", tmp_path / "overlay", tmp_path / "kept"
    code.mkdir()
    (code / "requirements.txt").write_text("pytest\n")  # which is there already
    assert requirements.install_once(str(code), False, str(overlay), str(kept)) == 0
    assert [path.suffix for path in sorted(kept.iterdir())] == ["", ".lock"]
    assert (overlay / "bin" / "python").exists()
    (code / "requirements.txt").write_text("./none\n")
    assert requirements.install_once(str(code), False, str(tmp_path / "other"), str(kept)) != 0
    assert len(list(kept.iterdir())) == 2
