import time

import pytest

from estimator_sdk.backends.port import Missing
from estimator_sdk.backends.slurm.probe import on_login_node


def reports(**of_second):
    found = {"python": "3.11.2", "sees": True, "mpirun": "/env/bin/mpirun", "port": "", "now": time.time()}
    return [{**found, "node": "n1"}, {**found, "node": "n2", "apart": 0.1, **of_second}]


CHECKS = {
    "sees": on_login_node._shared,
    "mpirun": on_login_node._open_mpi,
    "port": on_login_node._ports,
    "apart": on_login_node._clocks,
    "now": on_login_node._clocks,
}


@pytest.mark.parametrize("check", CHECKS.values())
def test_nodes_that_have_all_that_jobs_need_are_well(check):
    assert check(reports())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("sees", False, "n2 does not see what this machine writes to"),
        ("mpirun", None, "n2 has no mpirun beside its Python or on PATH, so MPI worlds cannot start"),
        ("port", "timed out", "n2 cannot connect to a port of n1: timed out; hosts talk over TCP, at any port"),
        ("apart", -7.0, "those of n1 and n2 are 7 s apart"),
        ("now", 1000.0, "this machine's is .* s apart from those of the nodes"),
    ],
)
def test_what_a_node_lacks_is_a_sentence_with_its_name(name, value, words):
    with pytest.raises(Missing, match=words) as missing:
        CHECKS[name](reports(**{name: value}))
    assert missing.value.fix
