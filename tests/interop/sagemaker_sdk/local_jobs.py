"""Jobs in the local mode of SageMaker's SDK 2: `local_jobs.py FOLDER…`, run by the Python of that SDK.

The SDK takes seconds to import, so this process does it once, and each job runs in a child of it, all side by side.

`FOLDER/job.json` has the arguments: of the class `Estimator`, or with `framework` of that one (`PyTorch`), and `inputs`
of `fit`. `FOLDER/log` has what a job writes, and `FOLDER/outcome.json` then has `model_data`, or the `error` that `fit`
raised; `FOLDER/exit_code` is there when the child has ended. There is no account: the credentials are made up, and the
SDK asks nobody whether they are good.
"""

from __future__ import annotations

import json
import os
import random
import sys
import traceback
from pathlib import Path

import boto3
import sagemaker.estimator
import sagemaker.pytorch
from sagemaker.local import LocalSession

CLASSES = {"Estimator": sagemaker.estimator.Estimator, "PyTorch": sagemaker.pytorch.PyTorch}
ROLE = "arn:aws:iam::123456789012:role/nobody"


def run(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    inputs, framework = job.pop("inputs", None), job.pop("framework", "Estimator")
    keys = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing"}
    session = LocalSession(boto3.Session(region_name="eu-west-1", **keys))
    session.config = {"local": {"local_code": True, "container_root": str(folder / "root")}}
    estimator = CLASSES[framework](role=ROLE, instance_type="local", sagemaker_session=session, **job)
    try:
        estimator.fit(inputs)
        outcome = {"model_data": estimator.model_data}
    except RuntimeError as error:
        outcome = {"error": str(error)}
    (folder / "outcome.json").write_text(json.dumps(outcome))


def start(folder: Path) -> int:
    """A child that runs the job; returns its pid."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(log, stream)
        random.seed()  # the SDK names the hosts at random
        run(folder)
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(folders: list[Path]) -> None:
    running = {start(folder): folder for folder in folders}
    while running:
        pid, status = os.wait()
        folder = running.pop(pid)
        (folder / "draft").write_text(str(os.waitstatus_to_exitcode(status)))
        (folder / "draft").rename(folder / "exit_code")


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
