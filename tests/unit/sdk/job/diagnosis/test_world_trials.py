"""Which advice on the ranks of a world is worth a run, and what it gains at the most."""

import pytest

from estimator_sdk.job.diagnosis import world_trials
from estimator_sdk.job.diagnosis.causes import Cause
from tests.unit.sdk.job.diagnosis.test_trials import diagnosis, look


def tried(kind, share=0.5, ranks=2, cpus=4, modules=("torch", "horovod")):
    found = diagnosis(0.0, causes=[Cause(kind, share, "", "")], ranks=ranks)
    return {trial.what: trial for trial in world_trials.worth_trying(found, look(cpus=cpus, modules=list(modules)))}


def test_where_there_are_too_few_cpus_each_rank_has_fewer_threads_or_cpus_of_its_own():
    fewer, own = tried("too few CPUs").values()
    assert dict(fewer.environment) == {"OMP_NUM_THREADS": "4", "TF_NUM_INTRAOP_THREADS": "4"}
    assert (own.what, own.words) == ("2 CPUs for each rank alone", ("own-cpus",))
    assert all((trial.is_bound, trial.predicted) == (True, pytest.approx(2.0)) for trial in (fewer, own))


@pytest.mark.parametrize(("ranks", "cpus"), [(1, 4), (4, 4), (2, 1)])
def test_ranks_that_are_alone_or_have_a_cpu_each_are_not_bound(ranks, cpus):
    assert not any("alone" in what for what in tried("too few CPUs", ranks=ranks, cpus=cpus))


def test_where_communicating_takes_long_less_is_sent_or_others_are_let_in():
    pieces, half, yielding = tried("communication").values()
    assert dict(pieces.environment) == {"HOROVOD_FUSION_THRESHOLD": str(256 << 20)}
    assert dict(yielding.environment) == {"OMPI_MCA_mpi_yield_when_idle": "1"}
    assert half.words == ("half",)
    # Half of the bytes save at most half of the time.
    assert [trial.predicted for trial in (pieces, half, yielding)] == pytest.approx([2.0, 1 / 0.75, 2.0])
    assert all(trial.is_bound for trial in (pieces, half, yielding))


def test_ranks_that_fill_the_cpus_yield_already():
    assert [what for what in tried("communication", ranks=4) if "leave" in what] == []


def test_what_promises_too_little_or_is_no_business_of_horovod_is_not_tried():
    assert "gradients sent in 16 bits" not in tried("communication", share=0.03)
    assert tried("communication", modules=["torch"]) == {}
    assert tried("input") == {}
