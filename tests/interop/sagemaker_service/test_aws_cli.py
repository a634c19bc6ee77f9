"""The AWS CLI takes the document of a job, and what it says of a job runs on this machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from estimator_sdk import JobSpec
from tests.waiting import SECONDS

from .conftest import cloud
from .stand_in import REGION

AWS = Path(__file__).parents[3] / ".venv-sagemaker" / "bin" / "aws"
SCRIPT = "import os, sys\nprint(sys.argv[1:], os.environ['COLOUR'], os.environ['SM_CHANNELS'])\n"


@pytest.fixture
def aws(platform):
    """Runs the CLI against the service; returns what it prints."""

    def run(*words: str) -> dict[str, Any]:
        if not AWS.exists():
            raise RuntimeError(f"{AWS} is missing: run scripts/setup tests")
        command = [str(AWS), "--endpoint-url", platform.endpoint, "--region", REGION, "--output", "json", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout or "{}")

    return run


def test_the_cli_submits_the_document_and_what_it_describes_runs_here(aws, platform, script, data, tmp_path):
    script.write_text(SCRIPT)
    estimator = cloud(
        script,
        instance_count=2,
        hyperparameters={"lr": 0.1, "text": 'it\'s "quoted" & 馬'},
        environment={"COLOUR": "light blue"},
        tags=[{"Key": "team", "Value": "digits"}],
        max_retry_attempts=2,
    )
    document = estimator.to_training_job_request({"train": data}, "cli-1")
    (tmp_path / "job.json").write_text(json.dumps(document))
    answer = aws("sagemaker", "create-training-job", "--cli-input-json", f"file://{tmp_path / 'job.json'}")
    assert answer["TrainingJobArn"].endswith(":training-job/cli-1")

    described = aws("sagemaker", "describe-training-job", "--training-job-name", "cli-1")
    assert {name: described[name] for name in document if name != "Tags"} == {
        name: value for name, value in document.items() if name != "Tags"
    }
    job = JobSpec.from_description(described).fit(backend="process", logs="none", job_name="cli-2")
    words = """['--lr', '0.1', '--text', 'it\\'s "quoted" & 馬'] light blue ["train"]\n"""
    assert [line.data.decode() for line in job.logs(stream="stdout")] == [words] * 2


def test_the_cli_stops_and_lists_a_job_that_was_submitted_here(aws, platform, script):
    job = cloud(script).fit(wait=False, job_name="cli-3")
    assert aws("sagemaker", "stop-training-job", "--training-job-name", "cli-3") == {}
    assert job.status == "Stopping"
    jobs = aws("sagemaker", "list-training-jobs", "--name-contains", "cli-3")["TrainingJobSummaries"]
    assert [(each["TrainingJobName"], each["TrainingJobStatus"]) for each in jobs] == [("cli-3", "Stopping")]
