"""What the toolkit does with a host's programs and folders between two attempts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from estimator_container.contract.names import Layout
from estimator_container.host.toolkit import Toolkit
from estimator_container.runtime import children
from estimator_container.runtime.children import Children


@pytest.fixture
def toolkit(loop, tmp_path):
    made = Toolkit.__new__(Toolkit)
    made.loop, made.children = loop, Children(loop)
    made._layout, made._has_platform, made._files_may_hang = Layout(str(tmp_path / "base")), True, False
    made.scratch, made.shared_memory = str(tmp_path / "scratch"), str(tmp_path / "memory")
    made.events = SimpleNamespace(go_on_in=lambda frames: frames.close())
    Path(made.shared_memory).mkdir(0o700)
    return made


def test_other_hosts_hear_of_this_one_while_a_killed_process_takes_its_time(toolkit, loop, monkeypatch):
    """As one does that has much memory, or writes to a slow disk: the signal comes late here."""
    real, beats = children._kill, []
    monkeypatch.setattr(children, "_kill", lambda pid: None)

    def beat():
        beats.append(True)
        monkeypatch.setattr(children, "_kill", real)
        process.kill()

    loop.after(0.1, beat)
    others = children.descendants()  # such as a plug-in's
    with subprocess.Popen(["sleep", "30"]) as process:
        toolkit.end_programs(others)
        assert beats
        assert children.descendants(spare=others) == []


def test_memory_that_a_script_has_removed_is_there_for_the_next_attempt(toolkit):
    shutil.rmtree(toolkit.shared_memory)
    toolkit.end_programs(children.descendants())
    assert Path(toolkit.shared_memory).stat().st_mode & 0o777 == 0o700


def test_what_is_to_be_removed_if_the_host_is_killed_is_said_in_each_attempt(toolkit):
    """What the attempt before has written is set aside, and that with it."""
    toolkit.begin_again()
    said = Path(toolkit._layout.temporary_folders).read_text(encoding="utf-8")
    assert set(said.splitlines()) == {toolkit.scratch, toolkit.shared_memory}
