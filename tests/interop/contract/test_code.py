"""Where the code comes from, and how each kind of entry point is run."""

from __future__ import annotations

import io
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.test_code import wheel
from tests.stores.servers import BUCKET

from .conftest import SCRIPT
from .containers import Job

NAMES = ["../train.py", "/opt/ml/train.py", "./train.py", "a b.py", "-c"]
RUNS = "open('/opt/ml/model/ran', 'w').write('from the bundle')\n"
WHEEL = "contract_requirement-1.0-py3-none-any.whl"
REQUIRED = {
    "requirements.txt": f"./{WHEEL}\n",
    WHEEL: wheel("contract_requirement", "WORD = 'required'\n"),
}
# A build backend beside the package, so that no index is needed.
PYPROJECT = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
BACKEND = """
import zipfile
def build_wheel(folder, settings=None, metadata=None):
    info = "train-1.0.dist-info"
    with zipfile.ZipFile(folder + "/train-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write("train.py")
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: train\\nVersion: 1.0\\n")
        tags = "Generator: here\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\n" + tags)
        wheel.writestr(info + "/RECORD", "")
    return "train-1.0-py3-none-any.whl"
"""
HOW = """
import importlib.metadata, json, sys
installed = [each.name for each in importlib.metadata.distributions() if each.name == "train"]
open("/opt/ml/model/how", "w").write(json.dumps([installed, __name__, __spec__ is not None, sys.argv[1:]]))
"""
NEEDS = "import contract_requirement; open('/opt/ml/model/ran', 'w').write(contract_requirement.WORD)"
FRAMEWORK = """
import json, os
def train():
    found = [os.environ["SAGEMAKER_TRAINING_MODULE"], os.getcwd()]
    open("/opt/ml/model/called", "w").write(json.dumps(found))
def fails():
    raise ValueError("no such digit")
"""
COMMAND_NEEDS = f'#!/bin/sh\npython -c "{NEEDS}" || echo without > /opt/ml/model/ran\n'


def archive(*members: tuple[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in members:
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


def submitted(place: str) -> dict[str, str]:
    return {"sagemaker_submit_directory": json.dumps(place)}


@pytest.mark.contract("C1", "C6")
@pytest.mark.parametrize(
    ("place", "files"),
    [
        ("/opt/ml/input/bundle.tar.gz", {"input/bundle.tar.gz": archive(("train.py", RUNS))}),
        ("/opt/ml/input/source", {"input/source/train.py": RUNS}),
        ("/opt/ml/input/train.py", {"input/train.py": RUNS}),
    ],
)
def test_code_from_an_archive_a_folder_and_a_file(run, place, files):
    ended = run(Job(files=files, hyperparameters=submitted(place)))
    assert (ended.code, ended.read("model/ran")) == (0, "from the bundle")


@pytest.mark.contract("C2")
def test_code_from_s3(run, localstack_server):
    localstack_server.client().put_object(Bucket=BUCKET, Key="contract/source.tar.gz", Body=archive(("train.py", RUNS)))
    server = localstack_server.environment()
    environment = {name: server[name] for name in server if name.startswith("AWS_") and "ENDPOINT" not in name}
    environment["AWS_REGION"] = "us-east-1"
    environment["S3_ENDPOINT_URL"] = localstack_server.endpoint
    hyperparameters = submitted(f"s3://{BUCKET}/contract/source.tar.gz")
    ended = run(Job(hyperparameters=hyperparameters, environment=environment, network="host"))
    assert (ended.code, ended.read("model/ran")) == (0, "from the bundle")


@pytest.mark.contract("C3")
def test_code_that_is_there_is_kept(run):
    files = {"input/bundle.tar.gz": archive(("train.py", RUNS))}
    ended = run(Job({"train.py": SCRIPT}, files, submitted("/opt/ml/input/bundle.tar.gz")))
    assert ended.report and not ended.has("model/ran")


@pytest.mark.contract("C4", "C5")
def test_an_archive_that_reaches_out(toolkit, run):
    bundle = archive(("train.py", RUNS), ("../model/evil", "x"), ("/opt/ml/model/worse", "x"))
    ended = run(Job(files={"input/b.tar.gz": bundle}, hyperparameters=submitted("/opt/ml/input/b.tar.gz")))
    assert not ended.has("model/evil") and not ended.has("model/worse")
    assert ended.has("model/ran") == (not toolkit.is_ours)
    if toolkit.is_ours:
        assert ended.code == 2 and "it was refused, and nothing was run" in ended.failure
    else:
        assert ended.code == 0 and "normalized" in ended.log


@pytest.mark.contract("C7", "H5")
@pytest.mark.parametrize("name", ["train.sh", "bin/train"])
def test_a_command(run, name):
    source = '#!/bin/sh\nprintf "%s|" "$PWD" "$@" > /opt/ml/model/ran\n'
    hyperparameters = {"sagemaker_program": json.dumps(name), "a": '"$(id) ; b"'}
    assert run(Job({name: source}, hyperparameters=hyperparameters)).read("model/ran") == "/opt/ml/code|-a|$(id) ; b|"


@pytest.mark.contract("C8", "C9")
@pytest.mark.parametrize("setup", [True, False])
def test_a_package(toolkit, run, setup):
    code = {"train.py": HOW, "backend.py": BACKEND, "pyproject.toml": PYPROJECT, **({"setup.py": ""} if setup else {})}
    installed = setup or toolkit.is_ours
    assert json.loads(run(Job(code, hyperparameters={"a": "1"})).read("model/how")) == [
        ["train"] if installed else [],
        "__main__",
        installed,
        ["-a", "1"],
    ]


@pytest.mark.contract("C10")
def test_requirements_of_a_script(run):
    assert run(Job({"train.py": NEEDS, **REQUIRED})).read("model/ran") == "required"


@pytest.mark.contract("C11")
def test_requirements_of_a_command(toolkit, run):
    ended = run(Job({"train.sh": COMMAND_NEEDS, **REQUIRED}, hyperparameters={"sagemaker_program": "train.sh"}))
    assert ended.read("model/ran") == ("required" if toolkit.is_ours else "without\n")


@pytest.mark.contract("C12")
def test_an_install_that_fails(run):
    ended = run(Job({"train.py": RUNS, "requirements.txt": "./is-not-there-1.0-py3-none-any.whl\n"}))
    assert ended.code == 1 and not ended.has("model/ran")
    assert "is-not-there-1.0-py3-none-any.whl" in ended.log


@pytest.mark.contract("C13")
def test_a_name_that_is_no_plain_path(toolkit, tmp_path):
    def run(name: str) -> bool:
        job = Job({"train.py": RUNS, "a b.py": RUNS}, {"train.py": RUNS}, {"sagemaker_program": json.dumps(name)})
        folder = tmp_path / str(NAMES.index(name))
        with toolkit.start(job, folder) as (host,):
            ended = host.ended()
        assert ended.code != 0 and repr(name) in ended.failure
        return ended.has("model/ran")

    with ThreadPoolExecutor(2) as pool:
        assert not any(pool.map(run, NAMES))


def of_framework(function: str, program: str) -> Job:
    environment = {"SAGEMAKER_TRAINING_MODULE": f"framework:{function}", "PYTHONPATH": "/opt/ml/input/framework"}
    return Job(
        {"train.py": RUNS},
        {"input/framework/framework.py": FRAMEWORK},
        {"sagemaker_program": json.dumps(program)},
        environment=environment,
    )


@pytest.mark.contract("C14")
def test_the_function_of_a_framework(run):
    ended = run(of_framework("train", ""))
    assert ended.code == 0, ended.log
    assert json.loads(ended.read("model/called"))[0] == "framework:train"
    assert not ended.has("model/ran")


@pytest.mark.contract("C14")
def test_the_function_of_a_framework_that_fails(run):
    ended = run(of_framework("fails", ""))
    assert ended.code == 1 and "ValueError: no such digit" in ended.failure


@pytest.mark.contract("C15")
def test_an_entry_point_beside_the_function_of_a_framework(toolkit, run):
    ended = run(of_framework("train", "train.py"))
    assert (ended.has("model/ran"), ended.has("model/called")) == (toolkit.is_ours, not toolkit.is_ours)
