"""What is done to a module once it is imported, in an interpreter of its own."""

import subprocess
import sys
from pathlib import Path

import estimator_container

TOOLKIT = str(Path(estimator_container.__file__).parents[1])
BEGIN = """
from estimator_container.runtime.after_import import after_import
def said(who):
    return lambda module: print(who, module.__name__, module.complete, type(module.__spec__.loader).__name__)
"""


def ran(folder, script):
    (folder / "theirs").mkdir(exist_ok=True)
    (folder / "theirs" / "__init__.py").write_text("complete = 'whole'")
    (folder / "theirs" / "part.py").write_text("complete = 'a part'")
    (folder / "run.py").write_text(BEGIN + script)
    env = {"PYTHONPATH": TOOLKIT}
    return subprocess.run(
        [sys.executable, "run.py"], cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_each_who_waits_is_called_once_the_module_has_run(tmp_path):
    script = "after_import('theirs.part', said('one'))\nafter_import('theirs.part', said('two'))\nimport theirs.part\n"
    loader = "SourceFileLoader"  # the module's own again
    assert ran(tmp_path, script) == [f"one theirs.part a part {loader}", f"two theirs.part a part {loader}"]


def test_what_is_loaded_is_not_waited_for(tmp_path):
    script = "import theirs\nafter_import('theirs', said('one'))\n"
    assert ran(tmp_path, script) == ["one theirs whole SourceFileLoader"]


def test_what_is_never_imported_costs_nothing(tmp_path):
    assert ran(tmp_path, "after_import('theirs.part', said('one'))\nimport theirs\n") == []
