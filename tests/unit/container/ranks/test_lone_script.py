"""A script without a world is run as `python` runs it."""

import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest
from estimator_container.contract.entry_point import Program
from estimator_container.ranks import script_runner


def said(folder, *start, path="", **env):
    env = {"PYTHONPATH": f"{folder}:{path}", "PATH": "/usr/bin:/bin", **env}
    done = subprocess.run(
        [sys.executable, "-u", *start], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", ["signal", "types", "enum", "functools", "json", "estimator_container"])
def test_a_file_beside_it_may_be_called_as_one_of_the_standard_library(tmp_path, name):
    (tmp_path / "train.py").write_text("print('hello')")
    (tmp_path / f"{name}.py").write_text("print('a helper')")
    assert said(tmp_path, script_runner.LONE_SCRIPT, "train.py") == (0, "hello\n", "")


@pytest.mark.parametrize(
    "script",
    [
        "import sys; print(sys.argv, sys.path[0], __name__, __file__)",
        "__builtins__.print('a module')",
        "1 / 0",
        "import sys; sys.exit('no such digit')",
        "import atexit; atexit.register(print, 'at exit'); raise KeyError('a')",
        "def f(:",
        "print(type(__loader__), __loader__.name, __loader__.path)",
        "import sys; sys.excepthook = lambda kind, error, traceback: print(kind, sys.exc_info(), error.args); 1 / 0",
        "import sys; sys.excepthook = lambda *what: {}['of the hook']; 1 / 0",
        "import sys; sys.excepthook = lambda: None; 1 / 0",
        "import sys; sys.excepthook = lambda *what: sys.exit(7); 1 / 0",
        "raise KeyboardInterrupt",
    ],
)
def test_it_says_and_ends_as_under_python(tmp_path, script):
    (tmp_path / "train.py").write_text(script)
    code, out, err = said(tmp_path, script_runner.LONE_SCRIPT, "train.py")
    plain_code, plain_out, plain_err = said(tmp_path, "train.py")
    assert (code, out.replace(f"{tmp_path}/train.py", "train.py")) == (
        plain_code,
        plain_out.replace(f"{tmp_path}/train.py", "train.py"),
    )
    assert err.replace(f"{tmp_path}/train.py", "train.py") == plain_err.replace(f"{tmp_path}/train.py", "train.py")


def test_a_safe_path_stays_safe(tmp_path):
    (tmp_path / "train.py").write_text("import sys; print(sys.path)")
    safe = {"PYTHONPATH": "", "PYTHONSAFEPATH": "1"}
    assert said(tmp_path, script_runner.LONE_SCRIPT, "train.py", **safe) == said(tmp_path, "train.py", **safe)


def test_it_is_the_same_by_the_command_of_the_plan(tmp_path):
    """As a backend of another package runs it."""
    (tmp_path / "train.py").write_text("import sys; print(sys.argv, sys.path[0], __name__); 1 / 0")
    _, _, *words = Program("train.py", False, False).command("python", False, ["--lr", "0.1"])
    toolkit = str(Path(estimator_container.__file__).absolute().parents[1])
    by_name = said(tmp_path, *words, path=toolkit)
    assert by_name == said(tmp_path, script_runner.LONE_SCRIPT, "train.py", "--lr", "0.1", path=toolkit)
    assert by_name[0] == 1 and "ZeroDivisionError" in by_name[2] and "lone_script" not in by_name[2]


@pytest.mark.parametrize(("imports", "loaded"), [("torch", True), ("json", False)])
def test_what_counts_steps_is_loaded_once_a_script_imports_a_framework_and_not_before(tmp_path, imports, loaded):
    (tmp_path / "torch.py").touch()
    (tmp_path / "train.py").write_text(f"import {imports}, sys; print('estimator_container.drift' in sys.modules)")
    toolkit = str(Path(estimator_container.__file__).parents[1])
    assert said(tmp_path, script_runner.LONE_SCRIPT, "train.py", path=toolkit) == (0, f"{loaded}\n", "")


def test_a_script_whose_python_has_no_toolkit_trains_all_the_same(tmp_path):
    (tmp_path / "torch.py").touch()
    (tmp_path / "estimator_container.py").touch()
    (tmp_path / "train.py").write_text("import torch; print('trained')")
    assert said(tmp_path, script_runner.LONE_SCRIPT, "train.py") == (0, "trained\n", "")
