import json
import os
import shlex
import subprocess
import sys

import pytest

from estimator_sdk.backends.slurm.batch import nodes_python, packages
from estimator_sdk.backends.slurm.options import SlurmOptions
from estimator_sdk.errors import InvalidArgument


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


@pytest.fixture
def old_python(tmp_path):
    """What a Python says that is too old."""
    path = tmp_path / "python3.6"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def shell(lines, **variables):
    """How a shell ends that runs the lines, and what it says."""
    done = subprocess.run(
        ["/bin/sh"],
        input="\n".join([*lines, "echo goes on"]),
        env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": "n3", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_without_a_word_it_is_the_python_that_calls_fit():
    assert nodes_python.checked(SlurmOptions()) == sys.executable
    assert shell(nodes_python.before_start(SlurmOptions())) == (0, "goes on\n")


def test_a_node_without_the_python_that_calls_fit_is_named(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    code, said = shell(nodes_python.before_start(SlurmOptions()))
    assert (code, said.splitlines()[-1].endswith(": /nowhere/python is not on n3")) == (1, True)
    assert said.startswith("name a Python of the nodes in slurm['python'], or call fit() from one that they share")


def test_one_that_is_here_and_cannot_run_a_job_is_refused(tmp_path, old_python):
    with pytest.raises(InvalidArgument, match=r"is not Python 3\.9 or later; name one that is"):
        nodes_python.checked(SlurmOptions(python=old_python))
    with pytest.raises(InvalidArgument, match="cannot be run"):
        nodes_python.checked(SlurmOptions(python=str(tmp_path)))


@pytest.mark.parametrize("program", ["/bin/true", "/bin/cat"])
def test_a_program_that_is_no_python_is_refused_and_says_nothing(program, capfd):
    with pytest.raises(InvalidArgument, match=r"is not Python 3\.9 or later"):
        nodes_python.checked(SlurmOptions(python=program))
    assert capfd.readouterr() == ("", "")


def test_a_node_without_it_is_named(old_python):
    nowhere = SlurmOptions(python="/nowhere/it\u0027s/python")
    assert nodes_python.checked(nowhere) == nowhere.python
    code, said = shell(nodes_python.before_start(nowhere))
    assert (code, "/nowhere/it's/python is not Python 3.9 or later on n3" in said) == (1, True)
    for wrong in (old_python, "/bin/true"):
        assert shell(nodes_python.before_start(SlurmOptions(python=wrong)))[0] == 1
    assert shell(nodes_python.before_start(SlurmOptions(python=sys.executable))) == (0, "goes on\n")


def test_modules_are_loaded_with_what_the_site_has_for_that(tmp_path):
    init = tmp_path / "lmod" / "init"
    init.mkdir(parents=True)
    (init / "sh").write_text('module() { echo "$# words: $*"; [ "$3" != none ]; }\n')
    lines = list(nodes_python.before_start(SlurmOptions(modules=["openmpi/4.1.8", "cuda"])))
    assert shell(lines, LMOD_PKG=str(tmp_path / "lmod")) == (0, "3 words: load openmpi/4.1.8 cuda\ngoes on\n")
    lines = list(nodes_python.before_start(SlurmOptions(modules=["openmpi", "none"])))
    code, said = shell(lines, LMOD_PKG=str(tmp_path / "lmod"))
    assert (code, "slurm['modules']: module load openmpi none fails on n3" in said) == (1, True)


def test_the_packages_travel_as_a_copy_that_needs_nothing_else(tmp_path):
    place = packages.copy()
    assert place.parent == tmp_path / "home" / "packages" and not place.exists()
    packages.make_copy()
    made = place.stat().st_mtime_ns
    packages.make_copy()
    assert place.stat().st_mtime_ns == made and len([*place.parent.iterdir()]) == 1
    source = "import estimator_sdk.backends.slurm.allocation.program as it; print(it.__file__)"
    program = f"import sys; sys.path.insert(0, {json.dumps(str(place))}); {source}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(place)), shlex.join(done.args)
