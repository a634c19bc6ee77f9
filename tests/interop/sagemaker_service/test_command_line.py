from __future__ import annotations

import json
import time
from xml.etree import ElementTree

import pytest

from estimator_sdk.cli.main import main
from estimator_sdk.job import services

from .conftest import IMAGE, ROLE, in_background

RUN = ["run", "--instance-type", "ml.g4dn.12xlarge", "--distributed", "2", "--image", IMAGE, "--role", ROLE]
COMMAND = ["--", "python", "train.py", "--lr", "0.1", "--layer", "64", "--layer", "10"]


@pytest.fixture
def project(settings, script, monkeypatch):
    monkeypatch.chdir(script.parent)
    return script.parent


def test_the_words_of_a_command_are_in_the_request(platform, project, capsys):
    assert main([*RUN, "--detach", "--job-name", "words-1", *COMMAND]) == 0
    assert capsys.readouterr().out == "words-1\n"
    described = platform.client("sagemaker").describe_training_job(TrainingJobName="words-1")
    carried = json.loads(described["HyperParameters"]["sagemaker_estimator_arguments"])
    assert carried == ["--lr", "0.1", "--layer", "64", "--layer", "10"]
    assert described["ResourceConfig"]["InstanceCount"] == 2


def test_a_job_of_the_service_gives_the_exit_code_and_the_report_of_its_rank(platform, project, capsys):
    def run() -> None:
        platform.waits_for("fails-2")
        platform.writes("fails-2", "algo-2", "[1,7]<stderr>:oh no")
        text = "rank 7 on algo-2 exited with code 9: ValueError: no such digit"
        why = f"AlgorithmError: {text}, exit code: 1"
        platform.ends("fails-2", "Failed", FailureReason=why, TrainingEndTime=time.time())

    with in_background(run):
        code = main([*RUN, "--json", "--job-name", "fails-2", "--junit", "result.xml", *COMMAND])
    shown = capsys.readouterr()
    assert (code, json.loads(shown.out)["verdict"]["rank"]) == (9, 7)
    assert "[1,7]<stderr>:oh no" in shown.err
    suite = ElementTree.parse(project / "result.xml").getroot()[0]
    assert suite.get("tests") == "8"  # of 2 hosts with 4 GPUs each
    (culprit,) = suite.findall("testcase[failure]")
    assert (culprit.get("name"), culprit.findtext("system-out")) == ("rank 7 on algo-2", "oh no")


def test_the_jobs_of_the_service_are_listed_described_and_stopped(platform, project, capsys):
    assert main([*RUN, "--detach", "--job-name", "listed-1", *COMMAND]) == 0
    capsys.readouterr()
    assert main(["ps", "--backend", "sagemaker", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert (listed["listed-1"]["status"], len(listed["listed-1"]["hosts"])) == ("InProgress", 2)
    assert isinstance(listed["listed-1"]["created"], float)
    assert main(["stop", "listed-1"]) == 0
    assert capsys.readouterr().out == "listed-1 was asked to stop\n"
    platform.ends("listed-1", "Stopped")
    assert main(["attach", "listed-1"]) == 143
    assert "instance  ml.g4dn.12xlarge" in (main(["describe", "listed-1"]), capsys.readouterr().out)[1]


def test_the_table_has_what_was_submitted_here_and_asks_how_it_is(platform, project, capsys, monkeypatch):
    assert main([*RUN, "--detach", "--job-name", "noted-1", *COMMAND]) == 0
    capsys.readouterr()

    def status() -> str:
        assert main(["ps", "--json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)
        assert (found["name"], found["backend"], len(found["hosts"])) == ("noted-1", "sagemaker", 2)
        return found["status"]

    monkeypatch.setattr(services, "ASKING_SECONDS", 60.0)
    assert status() == "InProgress"
    platform.ends("noted-1", "Completed")
    assert status() == "Completed"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # where nobody answers
    assert status() == "Completed"


def test_a_name_that_nobody_has_is_wrong_input(platform, project, capsys):
    assert main(["why", "no-such-job"]) == 2
    assert capsys.readouterr().err.startswith("estimator why: there is no job 'no-such-job' in ")
