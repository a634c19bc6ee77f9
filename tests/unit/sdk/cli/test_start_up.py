"""What a start of the command loads. Its time is that of its imports, and these can be counted on any machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from estimator_sdk.cli.command_table import COMMANDS

HEAVY = set(
    "asyncio boto3 botocore docker email http importlib.metadata keras mpi4py multiprocessing numpy obstore rich "
    "sqlite3 ssl subprocess tarfile tempfile tensorflow torch urllib.request venv xml zipfile".split()
)
# 60 ms over bare Python are half a millisecond each for so many.
MOST_MODULES = 120


def loaded_by(*words: str, home: str = "/nowhere") -> set[str]:
    """The modules that a command loads into a bare interpreter."""
    code = (
        "import sys; before = set(sys.modules); from estimator_sdk.cli.main import main; "
        f"main({list(words)!r}); print('', *(set(sys.modules) - before), file=sys.stderr)"
    )
    env = {"ESTIMATOR_HOME": home, "PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_loads_nothing_heavy_and_no_other_command(words):
    loaded = loaded_by(*words)
    assert loaded & HEAVY == set()
    ours = {name.rpartition(".")[2] for name in loaded if name.startswith("estimator_sdk.cli.")}
    uses = {"plan": {"run"}}.get(words[0], set())
    assert ours & set(COMMANDS) <= {words[0], *uses}
    assert len(loaded) < MOST_MODULES


@pytest.mark.parametrize(
    "words", [["complete", "--", "2", "why", ""], ["complete", "--", "3", "run", "-t", "ml."]], ids=str
)
def test_a_completion_loads_nothing_heavy(words):
    loaded = loaded_by(*words)
    assert loaded & HEAVY == set()
    assert len(loaded) < MOST_MODULES


def test_a_command_that_asks_for_jobs_loads_no_client_of_a_service(tmp_path):
    """Whether another package brings a backend is asked of the standard library, which is not light, either."""
    of_entry_points = loaded_by("ps", home=str(tmp_path)) & HEAVY
    assert not of_entry_points & {"asyncio", "boto3", "botocore", "docker", "http", "ssl", "subprocess", "tarfile"}
