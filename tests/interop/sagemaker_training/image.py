"""Build the image of somebody else's that tests and benchmarks run.

python -m tests.interop.sagemaker_training.image
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import base as bases

TAG = "estimator/sagemaker-training:5.1.4"
FOLDER = Path(__file__).parent


def build() -> str:
    """Build it on the base that ours is built on, and return its name."""
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder, "context")
        shutil.copytree(FOLDER, context, ignore=shutil.ignore_patterns("__pycache__"))
        (context / "ca").mkdir()
        certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
        if certificates and Path(certificates).is_file():
            shutil.copy(certificates, context / "ca" / "bundle.pem")
        base = bases.choose(engine.connect(), sys.stderr)
        command = ["docker", "build", "--network", "host", "--build-arg", f"BASE={base}", "--tag", TAG, str(context)]
        subprocess.run(command, check=True, env={**os.environ, "DOCKER_BUILDKIT": "0"})
    return TAG


if __name__ == "__main__":
    build()
