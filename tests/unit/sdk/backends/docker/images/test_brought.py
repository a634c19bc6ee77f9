"""What a plan becomes whose hosts run the toolkit that is brought to them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from estimator_sdk import Estimator
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images.brought import UNUSED_SECONDS, Brought, remove_unused
from estimator_sdk.backends.docker.images.look import Inside
from estimator_sdk.plan.plan import Plan

INSIDE = "/opt/estimator-toolkit"


@pytest.fixture
def plan_of(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(engine, "connect", lambda: None)
    (tmp_path / "train.py").touch()
    return lambda **arguments: Estimator(entry_point=tmp_path / "train.py", backend="docker", **arguments).plan()


def test_the_hosts_run_it_by_the_images_python_and_ranks_can_import_it(plan_of):
    plan = Brought(Inside(search_path="/of/the/image"), Path("/cache/toolkit")).to(plan_of(instance_count=2))
    for host in plan.hosts:
        assert host.argv == ("python3", "-I", "-S", f"{INSIDE}/estimator_container", "train")
        assert host.environment["PYTHONPATH"] == f"/of/the/image:{INSIDE}"
    assert "toolkit       /cache/toolkit\n" in str(plan)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("where", ["environment", "inherit_environment"])
def test_a_search_path_of_the_users_takes_the_place_of_the_images_and_keeps_the_toolkit(plan_of, where, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/of/the/user")
    given = {"environment": {"PYTHONPATH": "/of/the/user"}, "inherit_environment": ["PYTHONPATH"]}
    plan = Brought(Inside(), Path("/cache/toolkit")).to(plan_of(**{where: given[where]}))
    assert plan.environment["PYTHONPATH"] == f"/of/the/user:{INSIDE}"
    assert plan.hosts[0].environment["PYTHONPATH"] == INSIDE


def test_an_entrypoint_that_is_passed_over_is_told(plan_of):
    plan = Brought(Inside(keeps_entrypoint=False), Path("/cache/toolkit")).to(plan_of())
    assert "toolkit       /cache/toolkit, in the place of the image's ENTRYPOINT\n" in str(plan)


def test_copies_that_no_job_has_used_for_long_are_removed(tmp_path):
    for name, age in (("used", UNUSED_SECONDS - 3600), ("unused", UNUSED_SECONDS + 3600)):
        facts = tmp_path / name / "image.json"
        facts.parent.mkdir()
        facts.touch()
        os.utime(facts, (time.time() - age,) * 2)
    remove_unused(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["used"]
