"""What it costs to start: the import of the SDK, and the entrypoint of a host, beside a bare Python.

    python benchmarks/start.py [--runs 15] [--peer PYTHON]

`--peer` names the interpreter of an environment that has the SageMaker Python SDK, to import it in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import estimator_container
import measure
from estimator_container.contract import Layout
from estimator_container.frames import FrameParser

TOOLKIT = str(Path(estimator_container.__file__).parent)


def entrypoint_up() -> float:
    """Seconds from the start of a host's process to its first event."""
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout(folder)
        Path(layout.config).mkdir(parents=True)
        Path(layout.hyperparameters).write_text(json.dumps({"sagemaker_program": "train.sh"}))
        Path(layout.resource_config).write_text(json.dumps({"current_host": "algo-1", "hosts": ["algo-1"]}))
        Path(layout.input_data_config).write_text("{}")
        Path(layout.code).mkdir()
        Path(layout.code, "train.sh").write_text("#!/bin/sh\n")
        started = time.time()
        env = {**os.environ, "SAGEMAKER_BASE_DIR": folder}
        subprocess.run([sys.executable, "-I", "-S", TOOLKIT, "train"], env=env, check=True)
        first = FrameParser().feed(Path(layout.frames).read_bytes())[0]
        return first.time_ns / 1e9 - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--peer", help="an interpreter that has the SageMaker Python SDK")
    settings = parser.parse_args()

    def imports(statement: str, python: str = sys.executable) -> measure.Run:
        return lambda: measure.command([python, "-c", statement])

    ways = {
        "python -c pass": imports("pass"),
        "import estimator_sdk": imports("import estimator_sdk"),
        "from estimator_sdk import Estimator": imports("from estimator_sdk import Estimator"),
    }
    if settings.peer:
        ways["from sagemaker.estimator import Estimator"] = imports(
            "from sagemaker.estimator import Estimator", settings.peer
        )
    measure.report("import", measure.interleaved(ways, settings.runs), "python -c pass")
    ways = {"python -I -S -c pass": lambda: measure.command([sys.executable, "-I", "-S", "-c", "pass"])}
    ways["host entrypoint up"] = entrypoint_up
    measure.report("entrypoint", measure.interleaved(ways, settings.runs), "python -I -S -c pass")


if __name__ == "__main__":
    main()
