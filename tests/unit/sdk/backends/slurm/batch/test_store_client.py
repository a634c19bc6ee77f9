import json
import shlex
import subprocess
import venv
import zipfile

import pytest

from estimator_sdk import Estimator
from estimator_sdk.backends.slurm.batch import store_client
from estimator_sdk.backends.slurm.options import SlurmOptions
from estimator_sdk.errors import BackendError

FROM_S3 = {"train": "s3://bucket/train"}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "train.py").write_text("print(1)")

    def planned(python, inputs=None, **arguments):
        given = {"instance_type": "slurm", "slurm": {"python": python} if python else {}, **arguments}
        return Estimator(entry_point=str(tmp_path / "train.py"), **given).plan(inputs, job_name="digits")

    return planned


@pytest.fixture
def other(tmp_path):
    """A Python of this version that has no client."""
    venv.create(tmp_path / "env", with_pip=False)
    return str(tmp_path / "env" / "bin" / "python")


@pytest.fixture
def python_3_10(tmp_path):
    """What a Python says that no client of a later one fits."""
    path = tmp_path / "python3.10"
    path.write_text("#!/bin/sh\necho '[false, 3, 10]'\n")
    path.chmod(0o755)
    return str(path)


def wheel(folder, version, tag):
    """A wheel of that name, which says itself which it is."""
    about = f"obstore-{version}.dist-info"
    with zipfile.ZipFile(folder / f"obstore-{version}-{tag}-none-any.whl", "w") as packed:
        packed.writestr("obstore/__init__.py", f"which = {version!r}\n")
        packed.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: obstore\nVersion: {version}\n")
        packed.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}-none-any\n")
        packed.writestr(f"{about}/RECORD", "")


def search_path_in(script):
    return json.loads(shlex.split(script.splitlines()[-1])[-1])


def test_what_nodes_lack_travels_and_can_be_imported_there(plan, other, tmp_path):
    planned = plan(other, FROM_S3)
    copy, folder = search_path_in(planned.script)
    client = store_client.needed(planned, SlurmOptions(python=other))
    assert client is not None and str(client.folder) == folder and copy.startswith(f"{tmp_path}/home/packages/")
    store_client.make(client)
    store_client.make(client)  # it is there
    program = f"import sys; sys.path.append({folder!r}); import obstore.store; print(obstore.__file__)"
    done = subprocess.run([other, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(folder)
    assert sorted(each.name for each in client.folder.parent.iterdir()) == [client.folder.name]


def test_a_job_that_needs_no_such_store_brings_nothing(plan, other, tmp_path):
    assert len(search_path_in(plan(other, {"train": f"file://{tmp_path}"}).script)) == 1
    assert store_client.needed(plan(None, FROM_S3), SlurmOptions()) is None


def test_a_python_that_no_client_of_this_one_fits_gets_one_of_its_own(plan, python_3_10, tmp_path, monkeypatch):
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    wheel(wheels, "0.11.1", "cp310")
    wheel(wheels, "0.12.1", "cp311")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    client = store_client.needed(plan(None, FROM_S3), SlurmOptions(python=python_3_10))
    assert client is not None and client.folder.name == "obstore-for-3.10"
    store_client.make(client)
    assert (client.folder / "obstore" / "__init__.py").read_text() == "which = '0.11.1'\n"


def test_where_there_is_none_for_it_a_sentence_says_so(plan, python_3_10, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    client = store_client.needed(plan(None, FROM_S3), SlurmOptions(python=python_3_10))
    with pytest.raises(BackendError, match="is a Python 3.10 without obstore, which s3:// needs.*; install obstore"):
        store_client.make(client)
    assert [*client.folder.parent.iterdir()] == []


@pytest.mark.parametrize(
    ("tag", "version", "fits"),
    [
        ("cp311-abi3-manylinux_2_17_x86_64", (3, 13), True),
        ("cp311-abi3-manylinux_2_17_x86_64", (3, 10), False),
        ("cp310-cp310-manylinux_2_17_x86_64", (3, 10), True),
        ("cp310-cp310-manylinux_2_17_x86_64", (3, 11), False),
    ],
)
def test_a_wheel_says_whom_it_fits(tag, version, fits):
    assert store_client.is_for(version, f"Wheel-Version: 1.0\nTag: {tag}\n") is fits
