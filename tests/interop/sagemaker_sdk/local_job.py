"""One job in the local mode of SageMaker's SDK 2: `local_job.py FOLDER`, run by the Python of that SDK.

`FOLDER/job.json` has the arguments: of the class `Estimator`, or with `framework` of that one (`PyTorch`), and `inputs`
of `fit`. `FOLDER/outcome.json` then has `model_data`, or the `error` that `fit` raised. There is no account: the
credentials are made up, and the SDK asks nobody whether they are good.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import boto3
import sagemaker.estimator
import sagemaker.pytorch
from sagemaker.local import LocalSession

CLASSES = {"Estimator": sagemaker.estimator.Estimator, "PyTorch": sagemaker.pytorch.PyTorch}
ROLE = "arn:aws:iam::123456789012:role/nobody"


def main(folder: Path) -> None:
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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
