"""W: the MPI world."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from estimator_container.contract.names import WORLD_TIMEOUT

from estimator_sdk import InvalidArgument, JobFailed
from estimator_sdk.cli.reports import junit
from estimator_sdk.estimator import launch
from tests.conformance.jobs import tell

REPORT = """
import json, os
from mpi4py import MPI
world = MPI.COMM_WORLD
node = world.Split_type(MPI.COMM_TYPE_SHARED)
print(json.dumps({
    "rank": world.rank,
    "size": world.size,
    "node_rank": node.rank,
    "node_size": node.size,
    "sum": world.allreduce(world.rank),
    **{name: os.environ[name] for name in (
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "LOCAL_RANK", "RANK", "WORLD_SIZE",
        "SM_CURRENT_HOST", "SM_HOSTS",
    )},
}))
"""


@pytest.mark.law("W3")
def test_what_the_user_sets_counts_more_than_what_mpi_starts_fastest_with(script, out):
    source = "import os; print(os.environ.get('UCX_MEM_EVENTS'))"
    mine = script.run(source, hosts=1, processes=1, environment={"UCX_MEM_EVENTS": "yes"})
    chosen = script.run(source, hosts=1, processes=1, mpi_options="-mca pml ob1")
    assert (out(mine), out(chosen)) == (b"yes\n", b"None\n")


@pytest.mark.law("W3")
def test_ranks_that_outnumber_the_cpus_follow_rules_unless_the_user_chooses(script, out):
    source = """
import os
rules = os.environ["OMPI_MCA_coll_tuned_dynamic_rules_filename"]
print(os.environ.get("OMPI_MCA_coll_tuned_use_dynamic_rules"), os.path.getsize(rules) > 0)
"""
    many = len(os.sched_getaffinity(0)) + 1
    crowded = script.run(source, hosts=1, processes=many)
    chosen = script.run(source, hosts=1, processes=many, mpi_options="-mca coll_tuned_reduce_algorithm 1")
    roomy = script.run(source, hosts=1, processes=1)
    assert [out(job, rank=0) for job in (crowded, chosen, roomy)] == [b"1 True\n", b"None True\n", b"None True\n"]


@pytest.mark.law("W3")
@pytest.mark.parametrize("shared", [False, True])
def test_ranks_that_just_fill_a_machine_have_a_cpu_each_unless_the_user_places_them(script, out, shared):
    cpus = sorted(os.sched_getaffinity(0))
    hosts, each = (len(cpus), 1) if shared else (1, len(cpus))

    def bound(processes, **options):
        job = script.run(
            "import os; print(sorted(os.sched_getaffinity(0)))", hosts=hosts, processes=processes, **options
        )
        return [json.loads(out(job, rank=rank)) for rank in range(hosts * processes)]

    assert bound(each) == [[cpu] for cpu in cpus]
    assert bound(each, mpi_options="-bind-to none") == [cpus] * len(cpus)
    assert bound(each + 1) == [cpus] * hosts * (each + 1)


@pytest.mark.law("W5")
def test_one_process_per_host_without_gpus(script):
    estimator = script.estimator("print('hi')", hosts=2, distribution={"mpi": {"enabled": True}})
    assert estimator.plan().world_size == 2


@pytest.mark.law("W5")
def test_one_process_per_gpu_of_the_instance_type(script):
    estimator = script.estimator(
        "print('hi')", hosts=2, instance_type="ml.g5.12xlarge", distribution={"mpi": {"enabled": True}}
    )
    plan = estimator.plan()
    assert (plan.processes_per_host, plan.world_size) == (4, 8)


@pytest.mark.law("W5")
@pytest.mark.parametrize("wrong", [0, -1, "1", 1.5, True, None.__class__])
def test_a_wrong_number_of_processes_is_refused(script, home, wrong):
    before = list(home.glob("jobs/*"))
    with pytest.raises(InvalidArgument, match="processes_per_host"):
        script.run("print('hi')", processes=wrong)
    assert list(home.glob("jobs/*")) == before


@pytest.mark.alone
@pytest.mark.law("W6")
@pytest.mark.parametrize("processes", [None, 2])
@pytest.mark.parametrize("late", ["algo-1", "algo-3"])
def test_a_host_that_never_comes_is_named_at_the_deadline(script, processes, late, stretched):
    """Its toolkit is never started: the machine, or the image, hangs."""
    estimator = script.estimator("", hosts=3, processes=processes)
    started = time.monotonic()
    estimator.fit(logs="none")
    usual = time.monotonic() - started
    plan = estimator.plan()
    seconds = max(5, math.ceil(4 * usual))  # in which the others come, on a busy machine too
    hosts = [replace(host, environment={**host.environment, WORLD_TIMEOUT: str(seconds)}) for host in plan.hosts]
    hosts = [replace(host, argv=("sleep", "60")) if host.name == late else host for host in hosts]
    started = time.monotonic()
    with pytest.raises(JobFailed) as failed:
        launch.run(replace(plan, hosts=tuple(hosts)), wait=True, logs="none")
    # An image that does not listen to SIGTERM is given a second and a half to do so.
    assert seconds < time.monotonic() - started < stretched(seconds + 1.5 + 2 * usual)
    assert (failed.value.verdict.kind, failed.value.verdict.host) == ("host_missing", late)
    assert late in str(failed.value) and f"{seconds} s" in str(failed.value)


@pytest.mark.law("W6")
def test_a_daemon_that_never_starts_is_named_at_the_deadline(script):
    """What is to start it on the other host hangs."""
    hangs = "-mca plm_rsh_agent 'perl -e sleep(60)'"
    plan = script.estimator("", hosts=2, processes=1, mpi_options=hangs).plan()
    hosts = [replace(host, environment={**host.environment, WORLD_TIMEOUT: "20"}) for host in plan.hosts]
    with pytest.raises(JobFailed) as failed:
        launch.run(replace(plan, hosts=tuple(hosts)), wait=True, logs="none")
    assert (failed.value.verdict.kind, failed.value.verdict.host) == ("host_missing", "algo-2")
    assert "the MPI daemon on algo-2" in str(failed.value)


@pytest.mark.law("W7")
def test_custom_options_reach_mpirun(script, out):
    names = ("FROM_OPTIONS", "NCCL_DEBUG", "OMPI_MCA_mpi_show_handle_leaks")
    job = script.run(
        f"import os; print(*(os.environ[name] for name in {names}))",
        hosts=2,
        processes=1,
        mpi_options="-x FROM_OPTIONS='a b' --NCCL_DEBUG WARN -mca mpi_show_handle_leaks 1",
    )
    assert out(job, rank=0) == out(job, rank=1) == b"a b WARN 1\n"


@pytest.mark.law("W7")
def test_a_broken_option_fails_with_the_words_of_mpirun(script):
    failed = script.fail("print('hi')", processes=2, mpi_options="--no-such-option")
    assert failed.verdict.kind == "mpi"
    assert 'unknown option "--no-such-option"' in str(failed)


ELEVEN = tuple(f"algo-{number}" for number in range(1, 12))
"""So many that their names have one order as strings, and another as numbers."""


@pytest.mark.law("W8", "P2")
@pytest.mark.parametrize("processes", [None, 1])
def test_hosts_and_ranks_have_the_order_of_the_plan(script, out, processes):
    source = """
import json, os
names = ("SM_CURRENT_HOST", "SM_CURRENT_HOST_RANK", "RANK", "SM_HOSTS")
print(json.dumps([os.environ.get(name) for name in names]))
"""
    estimator = script.estimator(source, hosts=len(ELEVEN), processes=processes)
    name = f"law-order-{estimator.backend}-{processes}"
    plan = estimator.plan(job_name=name)
    assert tuple(host.name for host in plan.hosts) == tuple(each.host for each in plan.ranks) == ELEVEN
    job = estimator.fit(job_name=name, logs="none")
    hosts = json.dumps(ELEVEN, separators=(",", ":"))
    for at, (rank, host) in enumerate((each.rank, each.host) for each in plan.ranks):
        assert json.loads(out(job, host=host)) == [host, str(at), None if rank is None else str(rank), hosts]


@pytest.mark.law("W8")
def test_the_report_of_a_job_has_every_rank_where_the_plan_has_it(script):
    source = """
import os, time
from mpi4py import MPI
print("last words", flush=True)
# None may have ended well before the end of the last one is known, nor be inside MPI, which tells of lost connections.
while MPI.COMM_WORLD.rank < 10 or not os.path.exists(os.environ["SM_OUTPUT_DATA_DIR"] + "/die"):
    time.sleep(0.05)
os._exit(3)
"""
    estimator = script.estimator(source, hosts=len(ELEVEN), processes=1)
    job = estimator.fit(wait=False, logs="none")
    lines = job.logs(stream="stdout", follow=True)
    assert [next(lines).data for _ in ELEVEN] == [b"last words\n"] * len(ELEVEN)
    tell(job, "die", "algo-11")
    with pytest.raises(JobFailed, match="rank 10 on algo-11"):
        job.wait()
    cases = list(ElementTree.fromstring(junit.document(job, estimator.plan())).iter("testcase"))
    assert [case.get("name") for case in cases] == [f"rank {rank} on {host}" for rank, host in enumerate(ELEVEN)]
    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["rank 10 on algo-11"]
    assert [case.findtext("system-out") for case in cases] == ["last words"] * len(ELEVEN)


INHERITED = {
    "OMPI_MCA_plm": "isolated",
    "OMPI_MCA_ess": "singleton",
    "OMPI_MCA_oob_tcp_if_exclude": "lo",
    "OMPI_MCA_btl": "openib",
    "OMPI_MCA_opal_cuda_support": "true",
    "OMPI_COMM_WORLD_RANK": "7",
    "PMIX_NAMESPACE": "other",
    "PMIX_RANK": "3",
    "PRTE_MCA_plm": "ssh",
    "SLURM_JOBID": "1",
    "SLURM_NODEID": "0",
    "PBS_JOBID": "5",
}
"""As a notebook in an allocation has them, or the shell of a conda environment, or an MPI job that starts another."""
STARTS = """
import json, os
from mpi4py import MPI
world = MPI.COMM_WORLD
print(json.dumps([world.rank, world.size, world.allreduce(1), os.environ["RANK"], os.environ.get("OMPI_MCA_btl"),
                  os.environ.get("SLURM_JOBID")]))
"""


@pytest.mark.law("W9")
@pytest.mark.parametrize(("hosts", "processes"), [(2, 1), (1, 2)])
def test_inherited_launcher_variables_change_nothing_about_the_start(script, out, inherit, hosts, processes):
    inherit(INHERITED)
    job = script.run(STARTS, hosts=hosts, processes=processes)
    transports = "self,vader,tcp" if hosts > 1 else "self,vader"
    seen = INHERITED["SLURM_JOBID"] if job.backend == "process" else None
    for rank in range(2):
        *found, of_slurm = json.loads(out(job, rank=rank))
        assert found == [rank, 2, 2, str(rank), transports]
        assert of_slurm == seen or (job.backend == "slurm" and of_slurm.isdecimal())
    said = [line.data.decode() for line in job.logs(stream="toolkit") if b"inherited" in line.data]
    if job.backend == "process":
        assert len(said) == 1 and "OMPI_MCA_plm" in said[0] and "SLURM_JOBID" in said[0], said


@pytest.mark.law("W9")
def test_launcher_variables_that_the_user_sets_count(script, out):
    source = "import os; print(os.environ['OMPI_MCA_btl'], os.environ['SLURM_JOB_NAME'])\n" + REPORT
    chosen = {"OMPI_MCA_btl": "self,tcp", "SLURM_JOB_NAME": "mine"}
    job = script.run(source, hosts=2, processes=1, environment=chosen)
    for rank in range(2):
        assert out(job, rank=rank).splitlines()[0] == b"self,tcp mine"
    failed = script.fail("print('hi')", processes=1, environment={"OMPI_MCA_ess": "singleton"})
    assert failed.verdict.kind == "mpi"


@pytest.fixture
def inherit(monkeypatch):
    """Sets variables as if whoever calls had them."""

    def inherit(variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return inherit
