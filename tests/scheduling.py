"""Which tests one of several workers runs, and in which order they begin.

`--dist loadgroup` of pytest-xdist 3.8 sees no group under pytest 9.2, so this has a scheduler of its own, which knows
tests by their ids alone.
"""

from __future__ import annotations

from collections import OrderedDict

import pytest

SPINNING = "ranks that spin"
"""Tests whose ranks keep every CPU busy while they wait for each other, as those of TensorFlow and Horovod do.

One such job runs at a time: two slow each other, and everything else, down far beyond twice their time.
"""
OF_SPINNING_RANKS = (
    "tests/interop/test_digits_keras_horovod.py",
    "tests/interop/test_digits_pytorch_horovod.py",
    "tests/interop/test_elastic_pytorch.py",
    "tests/interop/test_functions_document.py",
    "tests/interop/test_horovod_stalls.py",
    "tests/interop/drift/test_tensorflow.py",
    "tests/interop/drift/test_torch.py::test_with_horovod_",
    "tests/interop/horovod_keras3/",
    "tests/interop/training/test_digits.py",
    "tests/interop/training/test_tensorflow.py",
    "tests/interop/notebooks/test_notebooks.py::test_a_notebook_runs_from_top_to_bottom[2_",
    "tests/conformance/test_distributions.py::test_tensorflow_",
    "tests/conformance/test_job_files.py::test_the_example_of_a_riseml_yml_",
)
SETTING_UP_ONCE = (
    "tests/interop/",
    "tests/console/",
    "tests/conformance/test_before_start.py",
    "tests/conformance/test_reports.py",
    "tests/attacks/test_streams.py",
    "tests/slurm/test_cluster.py",
    "tests/ssh/test_images.py",
    "tests/unit/entrypoints/test_digits.py",
    "tests/unit/test_docstrings.py",
    "tests/unit/test_events.py",
    "tests/unit/suite/test_by_turns.py",
)
OF_ONE_SERVER = ("tests/interop/contract/", "tests/interop/sagemaker_service/")
"""Folders all of whose files share what takes long to set up: containers of two toolkits, a stand-in of a service."""
ON_THE_LAST_MACHINES = (
    "tests/conformance/test_world.py::test_hosts_and_ranks_have_the_order_of_the_plan[",
    "tests/conformance/test_world.py::test_the_report_of_a_job_has_every_rank_where_the_plan_has_it[",
    "tests/ssh/test_pool.py::test_jobs_share_slots_",
    "tests/ssh/test_pool.py::test_what_a_supervisor_that_was_killed_has_held_is_free",
    "tests/ssh/test_pool.py::test_a_job_that_waits_is_stopped",
)
"""Tests that say which jobs have the slots of a pool, and those with so many hosts that they need all its machines."""
LONGEST = (
    "tests/chaos/test_store_away.py",
    "tests/chaos/test_checkpoint_kills.py",
    "tests/chaos/test_injections.py::test_a_random_fault_",
    "tests/chaos/test_recoveries.py::test_a_job_that_is_hurt_",
    "tests/conformance/test_checkpoints.py::test_every_attempt_begins_with_one_whole_snapshot_and_the_newest",
)
"""Single tests that take longest. They begin before others, which would wait for them at the end."""


def group(test: str) -> str:
    """The tests that one worker runs because they share what takes long to set up, or must not run at the same time.

    In `tests/interop` and `tests/console` each file has a set-up of its own, but for two folders, which have one for
    all their files; so has the folder of tests on a cluster of containers. Laws that look at the same jobs are in one
    file, and so are tests that import what takes seconds or parse both packages.
    """
    if test.startswith(OF_SPINNING_RANKS):
        return SPINNING
    if test.startswith(ON_THE_LAST_MACHINES):
        return "the last machines of the pool"
    path, _, _ = test.partition("::")
    for folder in OF_ONE_SERVER:
        if path.startswith(folder):
            return folder
    if path.startswith("tests/slurm/containers/"):
        return "a cluster of containers"
    return path if path.startswith(SETTING_UP_ONCE) else test


def begins(name: str, size: int) -> tuple[bool, bool, int]:
    """Sorts groups, each with the number of its tests: ranks that spin, what takes long, and then the largest."""
    return name != SPINNING, not name.startswith(LONGEST), -size


def scheduler(config: pytest.Config, log: object) -> object:
    """A scheduler of pytest-xdist that hands out these groups in this order."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

        def _assign_work_unit(self, node: object) -> None:
            if not self.assigned_work.get(node):  # before any of them has begun
                waiting = sorted(self.workqueue.items(), key=lambda item: begins(item[0], len(item[1])))
                self.workqueue = OrderedDict(waiting)
            super()._assign_work_unit(node)

    return ByGroup(config, log)
