"""The program that builds Horovod, as far as it goes without building."""

import dataclasses
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "container" / "horovod" / "build_horovod.py"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(PROGRAM.parent))
    import build_horovod

TARGET = build_horovod.Target("cp311", "linux_x86_64", "2.21.0", "2.13.0+cpu", "pip")


def test_a_wheel_has_a_folder_of_its_own_for_everything_it_is_tied_to():
    others = [
        dataclasses.replace(TARGET, **change)
        for change in (
            {"python": "cp312"},
            {"platform": "linux_aarch64"},
            {"tensorflow": "2.20.0"},
            {"tensorflow": None},
            {"torch": "2.12.0+cpu"},
            {"torch": None},
            {"mpi": "system"},
            {"cuda": "13.0"},
        )
    ]
    assert len({target.key for target in [TARGET, *others]}) == len(others) + 1
    assert TARGET.key.startswith("horovod-0.28.1-cp311-linux_x86_64-")


def test_the_version_of_a_wheel_says_what_it_was_built_for():
    assert TARGET.label == "tf2.21.0.torch2.13.0"
    assert dataclasses.replace(TARGET, tensorflow=None).label == "torch2.13.0"


@pytest.mark.parametrize(
    ("line", "percent", "part"),
    [
        (
            "  [  4%] Building CXX object third_party/gloo/gloo/CMakeFiles/gloo.dir/allgatherv.cc.o\n",
            4,
            "Gloo",
        ),
        ("  [ 70%] Linking CXX static library libgloo.a\n", 70, "Gloo"),
        (
            "  [ 92%] Building CXX object horovod/tensorflow/CMakeFiles/tensorflow.dir/__/common/ops/"
            "gloo_operations.cc.o\n",
            92,
            "TensorFlow",
        ),
        ("[ 95%] Building CXX object horovod/torch/CMakeFiles/pytorch.dir/mpi_ops_v2.cc.o\n", 95, "PyTorch"),
        (
            "[100%] Linking CXX shared library /tmp/b/lib.linux/horovod/tensorflow/mpi_lib.so\n",
            100,
            "TensorFlow",
        ),
        ("  -- Found MPI: TRUE (found version 3.1)\n", None, "CMake"),
        ("  50% of the warnings in [object] files\n", None, "CMake"),
    ],
)
def test_progress_is_what_make_says(line, percent, part):
    progress = build_horovod.Progress(io.StringIO(), started=0)
    progress.read(line)
    assert (progress.percent, progress.part) == (percent, part)


def test_without_a_terminal_progress_is_a_line_every_fifteen_seconds():
    stream = io.StringIO()
    progress = build_horovod.Progress(stream, started=100)
    progress.read("[ 42%] Building CXX object third_party/gloo/x.cc.o")
    for second in range(61):
        progress.show(100 + second)
    lines = stream.getvalue().splitlines()
    assert [line.partition(" after ")[2][:4] for line in lines] == ["0:00", "0:15", "0:30", "0:45", "1:00"]
    assert lines[0] == "building Horovod 0.28.1: 42 % (Gloo) after 0:00; it takes about 3-7 minutes on two cores"


def test_missing_tools_are_named_in_one_sentence_with_the_command_that_installs_them(tmp_path):
    distribution = tmp_path / "packages" / "tensorflow-9.9.dist-info"
    distribution.mkdir(parents=True)
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 9.9\n")
    ended = subprocess.run(
        [sys.executable, PROGRAM, "--cache", tmp_path / "cache", "--mpi", "system"],
        check=False,
        env={"PATH": "", "PYTHONPATH": str(tmp_path / "packages")},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    sentence = ended.stderr.strip()
    assert "\n" not in sentence
    assert sentence.startswith("build_horovod: To build Horovod, install g++, make, cmake, ")
    assert ": apt-get install -y g++ make cmake " in sentence
    assert sentence.endswith("libopenmpi-dev openmpi-bin")


def test_an_interpreter_without_a_framework_is_told_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(
        build_horovod.BuildError, match=r"needs TensorFlow or PyTorch: .* -m pip install tensorflow-cpu"
    ):
        build_horovod.target_of_this_interpreter("pip")


def test_the_compiler_gets_the_newer_standard_after_the_one_that_horovod_asks_for(tmp_path):
    compiler = tmp_path / "bin" / "g++"
    compiler.parent.mkdir()
    compiler.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    compiler.chmod(0o755)
    wrapper = build_horovod.compiler_wrapper(tmp_path)
    ended = subprocess.run(
        [wrapper, "-std=c++14", "a b.cc"],
        env={"PATH": str(compiler.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    words = ended.stdout.splitlines()
    assert words[:3] == ["-std=c++14", "a b.cc", "-std=c++17"]
    assert "-Wl,-rpath,$ORIGIN/../../../.." in words


def test_a_command_that_fails_is_shown_with_its_log_and_the_end_of_what_it_said(tmp_path):
    quiet = build_horovod.Progress(io.StringIO(), 0, "quiet")
    script = "for i in range(99): print('line', i)\nraise SystemExit(3)"
    with (tmp_path / "build.log").open("w") as log, pytest.raises(build_horovod.BuildError) as raised:
        build_horovod.run([sys.executable, "-c", script], log, quiet)
    message = str(raised.value)
    assert "exit code 3" in message
    assert str(tmp_path / "build.log") in message
    assert message.endswith("line 97\nline 98\n")
    assert "line 9\n" not in message
    assert "line 0\n" in (tmp_path / "build.log").read_text()


def test_nobody_else_can_put_a_wheel_into_the_cache(tmp_path):
    before = os.umask(0)
    try:
        build_horovod.make_private(tmp_path / "cache" / "wheels" / "key")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "cache").rglob("*")} == {0o700}
