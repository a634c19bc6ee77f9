"""How a job starts and ends, and what it finds and leaves below `/opt/ml`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from .conftest import ENVIRONMENT, SCRIPT
from .containers import Job

CONFIGURATION = ("hyperparameters", "resourceconfig", "inputdataconfig")
FAILING = """
import sys
print("loading")
try:
    raise ValueError("no such digit")
except ValueError:
    import traceback
    traceback.print_exc()
    sys.exit(3)
"""
KEEPS = "open('/opt/ml/output/failure', 'w').write('the disk of digits is full'); raise SystemExit(7)"
SAVES = """
import pathlib, signal, sys, time
def save(*_):
    pathlib.Path("/opt/ml/model/weights").write_text("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("training", flush=True)
time.sleep(300)
"""


@pytest.mark.contract("P1", "P2")
def test_a_script_that_ends_well(seen):
    assert seen.code == 0 and seen.report
    assert seen.read("output/success") == "" and not seen.has("output/failure")


@pytest.mark.contract("P3", "P4")
def test_a_script_that_fails(toolkit, run):
    ended = run(Job({"train.py": FAILING}))
    assert ended.code == 1 and not ended.has("output/success")
    if toolkit.is_ours:
        assert ended.failure.startswith("the script on algo-1 exited with code 3\n")
        assert "Traceback (most recent call last):" in ended.failure and "ValueError: no such digit" in ended.failure
    else:
        assert "ExecuteUserScriptError:\nExitCode 3" in ended.failure and "train.py" in ended.failure
        assert "algo-1" not in ended.failure and "Traceback" not in ended.failure.partition("ExitCode 3")[2]


@pytest.mark.contract("P5")
def test_a_configuration_file_that_is_missing(toolkit, tmp_path):
    def without(name: str) -> int:
        with toolkit.start(Job({"train.py": SCRIPT}), tmp_path / name, but=f"input/config/{name}.json") as (host,):
            return host.ended().code

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(without, CONFIGURATION)) == [2, 2, 2]


@pytest.mark.contract("P6")
def test_a_configuration_file_that_is_no_json(toolkit, run):
    ended = run(Job({"train.py": SCRIPT}, {"input/config/resourceconfig.json": "{"}))
    assert ended.code == (2 if toolkit.is_ours else 1) and ended.failure


@pytest.mark.contract("P7")
def test_sigterm(toolkit, tmp_path):
    with toolkit.start(Job({"train.py": SAVES}), tmp_path / "job") as (host,):
        host.waits_for("training")
        host.stop(grace=60 if toolkit.is_ours else 2)
        ended = host.ended()
    if toolkit.is_ours:
        assert ended.code == 143 and ended.read("model/weights") == "saved"
    else:
        assert ended.code == 137 and not ended.has("model/weights")


@pytest.mark.contract("P8")
def test_the_platforms_variables_and_the_jobs_own(seen):
    assert ENVIRONMENT.items() <= seen.report["environment"].items()


@pytest.mark.contract("F1", "F5", "V9")
def test_another_base_and_a_platform_that_says_little(run):
    environment = {"SAGEMAKER_BASE_DIR": "/another/base"}
    ended = run(Job({"train.py": SCRIPT}, base="/another/base", environment=environment))
    assert ended.has("output/success")
    variables = ended.report["environment"]
    assert ended.report["folder"] == "/another/base/code"
    assert {name for name, value in variables.items() if name.endswith("_DIR") and "/opt/ml" in value} == set()
    assert variables["SM_NETWORK_INTERFACE_NAME"] == "eth0"
    assert variables["SM_CURRENT_INSTANCE_GROUP"] == "homogeneousCluster"
    assert variables["SM_CURRENT_INSTANCE_TYPE"] == "local"
    for name in ("SM_INSTANCE_GROUPS", "SM_CURRENT_INSTANCE_GROUP_HOSTS", "SM_DISTRIBUTION_INSTANCE_GROUPS"):
        assert variables[name] == "[]"
    assert (variables["SM_INSTANCE_GROUPS_DICT"], variables["SM_IS_HETERO"]) == ("{}", "false")
    assert "SM_TOPOLOGY" not in variables


@pytest.mark.contract("F2", "F3")
def test_where_the_script_is_and_what_its_channels_hold(seen):
    assert seen.report["folder"] == "/opt/ml/code"
    assert (seen.report["data"], seen.report["stream"]) == ("1,2\n", "3,4\n")


@pytest.mark.contract("F9")
@pytest.mark.parametrize("mode", ["File", "Pipe"])
def test_a_channel_without_a_folder(toolkit, run, mode):
    ended = run(Job({"train.py": SCRIPT}, channels={"absent": {"TrainingInputMode": mode}}))
    assert ended.report["environment"]["SM_CHANNEL_ABSENT"] == "/opt/ml/input/data/absent"
    assert not ended.has("input/data/absent")
    if toolkit.is_ours:
        assert "the channel 'absent' should be at /opt/ml/input/data/absent" in ended.log


@pytest.mark.contract("F6", "F7")
def test_what_the_script_writes_stays(seen):
    for place in ("output/data", "output/intermediate", "checkpoints"):
        assert seen.read(f"{place}/written") == "by the script"
    assert json.loads(seen.read("model/report.json")) == seen.report
    assert sorted(seen.report["restored"]) == ["restored", "written"]


@pytest.mark.contract("F8")
def test_a_failure_file_of_the_scripts_own(run):
    ended = run(Job({"train.py": KEEPS}))
    assert (ended.code, ended.failure) == (1, "the disk of digits is full")
