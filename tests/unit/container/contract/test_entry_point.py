import stat
import subprocess
import sys

import pytest
from estimator_container.contract.entry_point import CommandLine, Program, check_name, module_name, program, program_in
from estimator_container.runtime.errors import ConfigurationError

IN_WORLD = ["PY", "-u", "-m", "estimator_container.ranks.script_runner"]
ALONE = ["PY", "-u", "-m", "estimator_container.ranks.lone_script"]


@pytest.mark.parametrize(
    "name",
    [
        "train.py",
        "a/b/train.py",
        "train.sh",
        "train",
        "_x.py",
        ".hidden.py",
        "a+b-c.d_e.py",
        "...",
        "0.py",
        "a/-b.py",
        "a/+.py",
    ],
)
def test_a_path_inside_the_code_folder_is_allowed(name):
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../train.py",
        "a/../train.py",
        "./train.py",
        "a/./train.py",
        "/train.py",
        "a//train.py",
        "a/",
        "-c",
        "-train.py",
        "+train.py",
        "train.py ",
        " train.py",
        "my train.py",
        "train.py;ls",
        "$(ls)",
        "`ls`",
        "train.py\n",
        "a\nb.py",
        "a\\b.py",
        "~/train.py",
        "träin.py",
        "a\0.py",
        "s3://bucket/train.py",
    ],
)
def test_any_other_name_is_refused_and_shown(name):
    with pytest.raises(ConfigurationError, match="is not allowed: give a path inside the code folder") as refused:
        check_name(name)
    assert repr(name) in str(refused.value)


@pytest.mark.parametrize(
    ("name", "module"),
    [("train.py", "train"), ("a/b.py", "a/b"), ("train.sh", "train.sh"), ("py", "py"), ("a.pyc", "a.pyc")],
)
def test_a_module_has_its_files_name_without_the_ending(name, module):
    assert module_name(name) == module


# Kinds.


@pytest.mark.parametrize("file", ["setup.py", "pyproject.toml"])
def test_a_python_file_beside_a_package_file_is_a_package(file):
    assert program("train.py", {"train.py", file}, lambda name: b"").is_package
    assert not program("train.sh", {"train.sh", file}, lambda name: b"").is_package
    assert not program("train.py", {"train.py", f"other/{file}"}, lambda name: b"").is_package


@pytest.mark.parametrize(
    ("head", "names"), [(b"#!/b", True), (b"\x7fELF", True), (b"echo", False), (b"#", False), (b"", False)]
)
def test_a_program_names_what_runs_it_by_its_first_bytes(head, names):
    assert program("train", {"train"}, lambda name: head).names_interpreter is names


def test_a_missing_entry_point_is_refused_with_the_files_that_are_there():
    with pytest.raises(ConfigurationError, match="'train.py' is not in the code; there is a.py, b/c.py"):
        program("train.py", {"b/c.py", "a.py"}, lambda name: b"")
    with pytest.raises(ConfigurationError, match="there is nothing"):
        program("train.py", set(), lambda name: b"")


def test_a_name_that_is_not_allowed_is_refused_even_where_such_a_file_is_there():
    with pytest.raises(ConfigurationError, match="not allowed"):
        program("../train.py", {"../train.py"}, lambda name: b"")


@pytest.mark.parametrize(
    ("one", "in_world", "command"),
    [
        (Program("train.py", False, False), False, [*ALONE, "train.py"]),
        (Program("a/train.py", False, True), False, [*ALONE, "a/train.py"]),
        (Program("train.py", False, False), True, [*IN_WORLD, "train.py"]),
        (Program("a/b.py", True, False), False, [*ALONE, "-m", "a.b"]),
        (Program("b.py", True, False), True, [*IN_WORLD, "-m", "b"]),
        (Program("train.sh", False, True), False, ["./train.sh"]),
        (Program("a/train.sh", False, True), True, ["./a/train.sh"]),
        (Program("train.sh", False, False), False, ["/bin/sh", "./train.sh"]),
    ],
)
def test_each_kind_has_its_command(one, in_world, command):
    arguments = ["--lr", "", "--name", "$(ls) 'a b'"]
    assert one.command("PY", in_world, arguments) == [*command, *arguments]
    assert one.command("PY", in_world) == command


# In a folder.


def test_a_script_without_an_interpreter_line_runs_and_gets_its_arguments_untouched(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "train.sh").write_text("printf '%s|' \"$@\"\n")
    command = program_in("run/train.sh", str(tmp_path)).command(sys.executable, False, ["--a", "x y", "", "$HOME"])
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "--a|x y||$HOME|"


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755])
def test_a_command_is_made_executable_and_a_python_script_is_left_alone(tmp_path, mode):
    for name in ("train.sh", "train.py"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 3\n")
        (tmp_path / name).chmod(mode)
    command = program_in("train.sh", str(tmp_path)).command(sys.executable, False)
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 3
    program_in("train.py", str(tmp_path))
    assert stat.S_IMODE((tmp_path / "train.py").stat().st_mode) == mode


def test_a_package_is_recognised_in_a_folder(tmp_path):
    for name in ("train.py", "pyproject.toml"):
        (tmp_path / name).touch()
    assert program_in("train.py", str(tmp_path)) == Program("train.py", True, False)


def test_a_missing_file_is_refused(tmp_path):
    (tmp_path / "other.py").touch()
    with pytest.raises(ConfigurationError, match="there is other.py"):
        program_in("train.py", str(tmp_path))


@pytest.mark.parametrize(
    ("words", "in_world", "command"),
    [
        ("python train.py -v", False, "PY -u -m estimator_container.ranks.lone_script train.py -v"),
        ("python3 train.py -v", True, "PY -u -m estimator_container.ranks.script_runner train.py -v"),
        ("python -m train -v", True, "PY -u -m estimator_container.ranks.script_runner -m train -v"),
        ("python -m", True, "PY -u -m"),
        ("python -X dev train.py", True, "PY -u -X dev train.py"),
        ("python", True, "PY -u"),
        ("python3.9 train.py", True, "python3.9 train.py"),
        ("bash run.sh", True, "bash run.sh"),
    ],
)
def test_of_a_whole_command_only_the_interpreter_of_scripts_is_ours(words, in_world, command):
    line = CommandLine(tuple(words.split()))
    assert line.command("PY", in_world) == command.split()
    assert line.name is None
