"""On this machine, where the tests have all that there is, and in an environment that has nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import estimator_container
import pytest

import estimator_sdk

PACKAGES = os.pathsep.join(str(Path(each.__file__).parents[1]) for each in (estimator_sdk, estimator_container))


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """An interpreter with nothing but the two packages."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return folder


def doctor(python: str | Path, home: Path, *words: str, **environment: str) -> tuple[int, dict[str, dict[str, object]]]:
    env = {"PATH": "/nowhere", "HOME": str(home), "ESTIMATOR_HOME": str(home / "state"), "PYTHONPATH": PACKAGES}
    command = [str(python), "-m", "estimator_sdk", "doctor", "--json", *words]
    env |= {"AWS_EC2_METADATA_DISABLED": "true", **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr == ""
    return done.returncode, {each["what"]: each for each in json.loads(done.stdout)}


def test_each_missing_thing_has_a_command_that_fixes_it(bare, tmp_path):
    code, found = doctor(bare / "bin" / "python", tmp_path)
    missing = {name for name, each in found.items() if not each["is_there"]}
    nothing = "Open MPI,mpi4py,Horovod,Docker engine,images,Slurm,partitions,OpenSSH,pyspark,Java,s3 library,boto3"
    nothing += ",region,credentials,right to submit"
    assert (code, missing) == (1, set(nothing.split(",")))
    assert all(each["fix"] for each in found.values() if not each["is_there"])
    assert found["Open MPI"]["fix"] == "pip install 'estimator-sdk[mpi]'"
    script = str(found["Horovod"]["fix"]).split()[1]
    assert Path(script).is_file()


def test_what_only_some_jobs_need_may_be_missing_unless_it_is_asked_for(tmp_path):
    code, found = doctor(sys.executable, tmp_path)
    assert code == 0
    assert [name for name, each in found.items() if each["is_needed"]] == [
        "Python",
        "Open MPI",
        "state directory",
        "free disk",
    ]
    assert doctor(sys.executable, tmp_path, "--needs", "s3")[0] == 0
    code, found = doctor(sys.executable, tmp_path, "--needs", "sagemaker")
    assert (code, found["region"]["fix"]) == (1, "aws configure set region eu-west-1")


def test_settings_of_aws_are_found(tmp_path):
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hidden-value", "AWS_DEFAULT_REGION": "eu-west-3"}
    code, found = doctor(sys.executable, tmp_path, "--needs", "sagemaker", **keys)
    assert (code, found["region"]["detail"]) == (0, "eu-west-3")
    assert "hidden-value" not in json.dumps(found)


def test_an_engine_that_does_not_answer_is_missing(tmp_path):
    code, found = doctor(sys.executable, tmp_path, "--needs", "docker", DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert (code, found["Docker engine"]["is_there"], found["images"]["is_there"]) == (1, False, False)


def test_a_state_directory_that_cannot_be_made_is_missing(tmp_path):
    (tmp_path / "file").touch()
    code, found = doctor(sys.executable, tmp_path, ESTIMATOR_HOME=str(tmp_path / "file" / "state"))
    assert (code, found["state directory"]["is_there"]) == (1, False)


def test_a_state_directory_that_jobs_would_refuse_is_missing(tmp_path):
    (tmp_path / "all").mkdir()
    (tmp_path / "all").chmod(0o1777)
    for unfit in (tmp_path / "all", tmp_path.joinpath(*["x" * 250] * 17)):
        code, found = doctor(sys.executable, tmp_path, ESTIMATOR_HOME=str(unfit))
        assert (code, found["state directory"]["is_there"]) == (1, False)


def test_another_open_mpi_is_not_taken_for_the_right_one(bare, tmp_path):
    program = tmp_path / "mpirun"
    program.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 5.0.6'\n")
    program.chmod(0o755)
    _, found = doctor(bare / "bin" / "python", tmp_path, PATH=f"{tmp_path}:/bin")
    assert "Open MPI" in found
    assert (found["Open MPI"]["is_there"], "5.0.6" in str(found["Open MPI"]["detail"])) == (False, True)
