"""A real session with two executors of two slots each, all on the loopback network."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.spark import CORES, EXECUTORS, SLOTS, START_SECONDS, session
from tests.waiting import wait_for


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    eager = {"spark.speculation": "true", "spark.speculation.interval": "50ms", "spark.speculation.multiplier": "1.01"}
    folder = tmp_path_factory.mktemp("spark")
    with session(folder, f"local-cluster[{EXECUTORS},{CORES},1024]", **eager) as context:
        yield context


@pytest.fixture
def context(spark, tmp_path, monkeypatch):
    """The session, once all its slots are there: a test may have ended an executor."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    java = spark._jsc.sc()
    profile = java.resourceProfileManager().defaultResourceProfile()
    wait_for(lambda: java.maxNumConcurrentTasks(profile) == SLOTS, START_SECONDS)
    return spark


@pytest.fixture
def pandas(monkeypatch):
    """Spark looks for it on the driver, and Keras would load it for each rank of other tests."""
    (site,) = (Path(__file__).parents[3] / ".venv-sagemaker").glob("lib/python3.*/site-packages")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
