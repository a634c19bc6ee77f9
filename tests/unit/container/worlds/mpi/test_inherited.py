import pytest
from estimator_container.worlds.mpi.inherited import for_programs, for_ranks, of_launchers, sentence
from hypothesis import given, strategies

STARTS = [
    "OMPI_MCA_plm",
    "OMPI_MCA_plm_rsh_agent",
    "OMPI_MCA_orte_hnp_uri",
    "OMPI_MCA_oob_tcp_if_exclude",
    "OMPI_MCA_btl_tcp_if_exclude",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_NAMESPACE",
    "PMI_RANK",
    "PRTE_MCA_plm",
    "ORTE_JOBID",
    "SLURM_JOBID",
    "SLURMD_NODENAME",
    "PBS_JOBID",
    "PE_HOSTFILE",
]
TUNES = ["OMPI_MCA_btl", "OMPI_MCA_coll_hcoll_enable", "OMPI_MCA_pml", "OMPI_CC", "OPAL_PREFIX"]
OTHERS = ["PATH", "UCX_TLS", "NCCL_DEBUG", "PLM", "MY_SLURM_JOBID", "OMPI", "PBSOFT"]


@pytest.mark.parametrize("name", STARTS)
def test_what_says_how_a_world_starts_is_left_out_unless_the_user_has_set_it(name):
    assert for_programs({name: "1", "PATH": "/bin"}, []) == {"PATH": "/bin"}
    assert name in sentence({name: "1"}, [])
    assert for_programs({name: "1"}, [name]) == for_ranks({name: "1"}, [name]) == {name: "1"}
    assert sentence({name: "1"}, [name]) is None


@pytest.mark.parametrize("name", TUNES)
def test_what_tunes_mpi_reaches_its_programs_and_through_them_the_ranks(name):
    assert for_programs({name: "1"}, []) == {name: "1"}
    assert for_ranks({name: "1"}, []) == {}
    assert of_launchers([name]) == [name]


@pytest.mark.parametrize("name", OTHERS)
def test_other_variables_are_left_alone(name):
    assert for_programs({name: "1"}, []) == for_ranks({name: "1"}, []) == {name: "1"}
    assert (sentence({name: "1"}, []), of_launchers([name])) == (None, [])


def test_ranks_see_the_allocation_that_the_user_is_in():
    assert for_ranks({"SLURM_JOBID": "1", "PBS_JOBID": "2"}, []) == {"SLURM_JOBID": "1", "PBS_JOBID": "2"}


@given(
    names=strategies.sets(strategies.sampled_from(STARTS + TUNES + OTHERS)),
    set_by_user=strategies.sets(strategies.sampled_from(STARTS + TUNES + OTHERS)),
)
def test_nothing_that_the_user_has_set_is_left_out_and_what_is_left_out_is_said(names, set_by_user):
    environment = dict.fromkeys(names, "1")
    chosen = of_launchers(set_by_user)
    seen = for_programs(environment, chosen)
    assert set(chosen) & names <= set(seen) & set(for_ranks(environment, chosen))
    left_out = names - set(seen)
    assert left_out == names & (set(STARTS) - set(chosen))
    assert (sentence(environment, chosen) is None) == (not left_out)


def test_one_line_says_much():
    words = sentence(dict.fromkeys([*STARTS, *(f"SLURM_{number}" for number in range(50))], ""), [])
    assert "OMPI_MCA_plm," in words and "SLURM_* (51)" in words and "\n" not in words
    assert len(words) < 600
