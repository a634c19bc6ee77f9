"""S1: what it costs to import the SDK, to ask the command line for help, and to start a host's toolkit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import estimator_container
from estimator_container.contract.names import Layout
from estimator_container.logs.frames import FrameParser

import estimator_sdk

from .. import harness, peers
from ..harness import Case, Extent, Metric, Panel, Target, Way

TOOLKIT = Path(estimator_container.__file__).parent
SDK = Path(estimator_sdk.__file__).parent
MB = 1_000_000
ASK_FOR_HELP = (
    "import sys; sys.argv = ['estimator', '--help']; from estimator_sdk.cli.main import main; sys.exit(main())"
)
BARE, IMPORT, HELP = "python -c pass", "import of Estimator", "estimator --help"
IMPORTS = Panel(
    "a process that imports the SDK",
    "processes",
    "ms",
    (Target(IMPORT, BARE, plus=0.060), Target(HELP, BARE, plus=0.060)),
)
ENTRYPOINT = Panel("a host's toolkit, to its first event", "processes", "ms", (Target("the toolkit", plus=0.100),))
SIZE = Panel("installed, with all it needs", "environments", "MB", (Target("the SDK alone", plus=15),))


def python(statement: str, interpreter: str | Path = sys.executable) -> float:
    # What a user's shell has; a checkout on PYTHONPATH would be searched in vain by the peer.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or interpreter == sys.executable}
    return harness.command([str(interpreter), "-c", statement], env)


def toolkit_up() -> float:
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
        subprocess.run([sys.executable, "-I", "-S", str(TOOLKIT), "train"], env=env, check=True)
        return FrameParser().feed(Path(layout.frames).read_bytes())[0].time_ns / 1e9 - started


def megabytes(*folders: Path, without: tuple[str, ...] = ()) -> float:
    """Of the files in folders, but for what lies in those of some names."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if not set(path.parts) & set(without)) / MB


def sagemaker_size() -> float:
    (packages,) = peers.SAGEMAKER.parents[1].glob("lib/python*/site-packages")
    return megabytes(packages, without=("pip", "setuptools"))


def cases(extent: Extent) -> Iterator[Case]:
    ways = [
        Way(BARE, "floor", partial(python, "pass")),
        Way(IMPORT, "ours", partial(python, "from estimator_sdk import Estimator")),
        Way(HELP, "ours", partial(python, ASK_FOR_HELP)),
    ]
    theirs = partial(python, "from sagemaker.estimator import Estimator", peers.SAGEMAKER)
    yield Case((IMPORTS,), 1, (*ways, Way("import of SageMaker's Estimator", "peer", theirs, peer="sagemaker")))
    bare = partial(harness.command, [sys.executable, "-I", "-S", "-c", "pass"])
    yield Case((ENTRYPOINT,), 1, (Way("python -I -S -c pass", "floor", bare), Way("the toolkit", "ours", toolkit_up)))
    own = partial(megabytes, SDK, TOOLKIT)
    yield Case(
        (SIZE,),
        1,
        (
            Way("the SDK alone", "ours", own, at_most=1),
            Way("SageMaker's SDK", "peer", sagemaker_size, peer="sagemaker", at_most=1),
        ),
    )


METRIC = Metric(
    "S1",
    "Importing and starting",
    "Whole processes, from start to end; the floor is an interpreter that does nothing. The toolkit is timed from the "
    "start of its process to "
    "the first event that it writes down. The installed size is that of the packages' files, compiled modules "
    "included.",
    cases,
    peers=("sagemaker",),
)
