"""A script on hosts of the SageMaker Python SDK's local mode, with MPI: `sagemaker_local.py IMAGE SCRIPT HOSTS`.

The last line of the output is JSON: when `fit()` was called and when it returned, in seconds since 1970.
"""

import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

# Without this it reports each call to its maker, and waits for the network.
with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as defaults:
    defaults.write("SchemaVersion: '1.0'\nSageMaker: {PythonSDK: {Modules: {TelemetryOptOut: true}}}\n")
os.environ["SAGEMAKER_USER_CONFIG_OVERRIDE"] = defaults.name

from sagemaker.estimator import Estimator
from sagemaker.local import LocalSession

image, script, hosts = sys.argv[1:]
logging.getLogger().setLevel(logging.WARNING)
session = LocalSession()
session.config = {"local": {"local_code": True}}
estimator = Estimator(
    image_uri=image,
    role="arn:aws:iam::123456789012:role/local",
    instance_count=int(hosts),
    instance_type="local",
    entry_point=Path(script).name,
    source_dir=str(Path(script).parent),
    hyperparameters={"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 1},
    sagemaker_session=session,
)
called = time.time()
estimator.fit()
returned = time.time()
Path(defaults.name).unlink()
print(flush=True)
print(json.dumps({"called": called, "returned": returned}), flush=True)
