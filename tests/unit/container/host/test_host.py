"""A host alone, as a platform that knows nothing of us would start it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest
from estimator_container.contract.names import EXIT_STOPPED, Layout
from estimator_container.logs.frames import EVENT, FrameParser

from tests.waiting import SECONDS

TOOLKIT = str(Path(estimator_container.__file__).parent)
FRAMEWORK = """
import os, sys
def train():
    print("called with", os.environ["SM_FRAMEWORK_MODULE"], sys.argv[1:])
def fails():
    raise ValueError("no such digit")
"""


ON_A_SLOW_NETWORK = f"""
import os, sys, time
sys.path.append({str(Path(TOOLKIT).parent)!r})
from estimator_container.logs.frames import FrameWriter
from estimator_container.runtime import machine
from estimator_container.train import main
def write(self, *frame, _write=FrameWriter.write):
    time.sleep(0.1)
    _write(self, *frame)
FrameWriter.write = write
machine.may_hang = lambda path: True
os._exit(main())
"""


@pytest.fixture
def run(tmp_path):
    def started(hyperparameters, channels=(), program=(TOOLKIT,), **environment):
        config = tmp_path / "input" / "config"
        config.mkdir(parents=True, exist_ok=True)
        documents = {
            "hyperparameters": hyperparameters,
            "resourceconfig": {"current_host": "algo-1", "hosts": ["algo-1"]},
            "inputdataconfig": dict(channels),
        }
        for name, document in documents.items():
            (config / f"{name}.json").write_text(json.dumps(document))
        (tmp_path / "code").mkdir()
        (tmp_path / "code" / "train.py").write_text("print('the script runs')")
        (tmp_path / "code" / "framework.py").write_text(FRAMEWORK)
        argv = [sys.executable, "-I", "-S", *program, "train"]
        given = {**os.environ, "SAGEMAKER_BASE_DIR": str(tmp_path), **environment}
        return subprocess.run(argv, env=given, capture_output=True, text=True, check=False)

    return started


@pytest.mark.parametrize(("mode", "place"), [("File", "absent"), ("Pipe", "absent_0")])
def test_a_channel_that_is_not_there_is_said_and_ends_nothing(run, tmp_path, mode, place):
    done = run({"sagemaker_program": "train.py"}, {"absent": {"TrainingInputMode": mode}})
    assert done.returncode == 0 and "the script runs\n" in done.stdout
    path = f"{tmp_path}/input/data/{place}"
    said = f"the channel 'absent' should be at {path}, but nothing is there; the script runs anyway"
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize("world", [{}, {"sagemaker_mpi_enabled": "true"}])
def test_where_no_program_is_named_the_function_of_the_framework_is_called(run, world):
    done = run(world, SAGEMAKER_TRAINING_MODULE="framework:train")
    assert done.returncode == 0 and "called with framework:train []\n" in done.stdout


def test_the_failure_of_a_framework_s_function_is_the_job_s(run, tmp_path):
    done = run({}, SAGEMAKER_TRAINING_MODULE="framework:fails")
    assert done.returncode == 1
    assert "ValueError: no such digit" in (tmp_path / "output" / "failure").read_text()


@pytest.mark.parametrize("name", ["framework", ":train", "framework:", "a b:c", "framework:train:more", "-c:x"])
def test_what_names_no_function_is_refused(run, tmp_path, name):
    done = run({}, SAGEMAKER_TRAINING_MODULE=name)
    assert done.returncode == 2
    assert f"'module:function', not {name!r}" in (tmp_path / "output" / "failure").read_text()


def test_hosts_that_were_given_different_secrets_say_so(tmp_path):
    """As a channel that differs from host to host would leave them."""
    listening = socket.create_server(("127.0.0.1", 0))
    addresses = {"algo-1": f"127.0.0.1:{listening.getsockname()[1]}", "algo-2": "127.0.0.1"}
    started = []
    for name in addresses:
        config = tmp_path / name / "input" / "config"
        config.mkdir(parents=True, exist_ok=True)
        (config / "hyperparameters.json").write_text(
            '{"sagemaker_program": "train.py", "sagemaker_mpi_enabled": "true"}'
        )
        (config / "resourceconfig.json").write_text(json.dumps({"current_host": name, "hosts": list(addresses)}))
        (config / "inputdataconfig.json").write_text("{}")
        (config / "worldsecret").write_text(f"the secret of {name}")
        (tmp_path / name / "code").mkdir()
        (tmp_path / name / "code" / "train.py").touch()
        own = {"SAGEMAKER_BASE_DIR": str(tmp_path / name), "ESTIMATOR_WORLD_TIMEOUT": "10"}
        if name == "algo-1":
            own["ESTIMATOR_LISTEN_FD"] = str(listening.fileno())
        given = {**os.environ, **own, "ESTIMATOR_HOST_ADDRESSES": json.dumps(addresses)}
        argv, kept = [sys.executable, "-I", "-S", TOOLKIT, "train"], [listening.fileno()]
        started.append(subprocess.Popen(argv, env=given, pass_fds=kept, stderr=subprocess.PIPE, text=True))
    listening.close()
    (_, first), (_, second) = [each.communicate(timeout=SECONDS) for each in started]
    assert "algo-2 never connected" in first
    assert "could not reach algo-1 within 10 s; the process at that address has a different secret" in second


@pytest.mark.parametrize("name", ["distributed_dataparallel", "pytorch_ddp", "pytorch_xla_multi_worker"])
def test_a_distribution_of_another_toolkit_is_refused_and_not_left_out(run, name):
    done = run({"sagemaker_program": "train.py", f"sagemaker_{name}_enabled": "true"})
    assert done.returncode == 2 and "the script runs" not in done.stdout
    assert f"sagemaker_{name}_enabled asks for a distribution that this toolkit does not have" in done.stderr


def test_a_failure_of_which_no_rank_tells_is_the_last_word_of_the_container(run):
    done = run({})
    sentence = "train: algo-1: sagemaker_program must name the file to run, not None\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)


def test_a_program_that_is_named_runs_also_in_the_image_of_a_framework(run):
    done = run({"sagemaker_program": "train.py"}, SAGEMAKER_TRAINING_MODULE="framework:fails")
    assert done.returncode == 0 and "the script runs\n" in done.stdout


def test_a_host_that_is_told_to_stop_before_it_starts_stops(run, tmp_path):
    stop = tmp_path / "input" / "config" / "stop"
    stop.parent.mkdir(parents=True)
    stop.touch()
    done = run({"sagemaker_program": "train.py"})
    assert (done.returncode, done.stderr) == (EXIT_STOPPED, "")
    assert "the script runs" not in done.stdout


def test_a_host_whose_log_is_on_a_slow_network_leaves_when_the_log_has_everything(run, tmp_path):
    done = run({"sagemaker_program": "train.py"}, program=("-c", ON_A_SLOW_NETWORK), ESTIMATOR_CONSOLE="off")
    assert (done.returncode, done.stdout) == (0, "")
    frames = FrameParser().feed(Path(Layout(str(tmp_path)).frames).read_bytes())
    events = [json.loads(frame.data) for frame in frames if frame.stream == EVENT]
    assert [event["outcome"] for event in events if event["event"] == "ended"] == ["completed"]
