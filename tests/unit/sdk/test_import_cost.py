"""What an import of the SDK loads: time is measured by `scripts/bench --metric S1`, its cause is stated here."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = set(
    "IPython asyncio boto3 botocore cloudpickle docker email http importlib.metadata jsonschema keras mpi4py "
    "multiprocessing numpy rich ruamel.yaml sqlite3 ssl subprocess tarfile tensorflow torch urllib.request venv "
    "zipfile".split()
)


def loaded_by(statement: str) -> set[str]:
    """The modules that a statement loads into a bare interpreter."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_alone_loads_nothing_but_itself_and_typing():
    ours = {name for name in loaded_by("import estimator_sdk") if name.startswith("estimator")}
    assert ours == {"estimator_sdk"}


@pytest.mark.parametrize("name", ["Estimator", "Job", "Plan", "TrainingInput", "JobFailed", "HorovodRunner", "remote"])
def test_a_public_name_loads_nothing_heavy(name):
    assert loaded_by(f"from estimator_sdk import {name}") & HEAVY == set()


def test_the_estimator_loads_few_modules():
    # Each module costs about half a millisecond; 60 ms over bare Python is the bound that users are promised.
    assert len(loaded_by("from estimator_sdk import Estimator")) < 110
