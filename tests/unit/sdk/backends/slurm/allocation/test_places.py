import pytest

from estimator_sdk.backends.slurm.allocation.nodes import Node
from estimator_sdk.backends.slurm.allocation.places import Places

N1, N2, N3, N4 = (Node(f"n{number}", f"10.0.0.{number}", f"m{number}") for number in range(1, 5))


@pytest.fixture
def places():
    """Two hosts and two spare nodes."""
    return Places(("algo-1", "algo-2"), (N1, N2, N3, N4), 1)


def test_a_lost_host_gets_a_node_that_nothing_runs_on_and_its_own_again_after_all_others(places):
    found = []
    for _ in range(4):
        assert places.move("algo-2")
        found.append(places.node_of("algo-2"))
    assert found == [N3, N4, N2, N3]


def test_a_node_that_is_gone_gets_no_host(places):
    places.drop(N3)
    assert places.move("algo-2") and places.node_of("algo-2") == N4
    places.drop(N2)
    assert not places.move("algo-2") and places.node_of("algo-2") == N4


def test_a_host_beside_the_supervisor_stays(places):
    assert not places.move("algo-1")
    assert places.addresses == {"algo-1": "10.0.0.1", "algo-2": "10.0.0.2"}


def test_hosts_share_nodes_in_their_order_and_move_one_by_one():
    places = Places(("algo-1", "algo-2", "algo-3", "algo-4"), (N1, N2, N3), 2)
    assert [places.node_of(f"algo-{number}") for number in range(1, 5)] == [N1, N1, N2, N2]
    assert [places.slot_of(f"algo-{number}") for number in range(1, 5)] == [0, 1, 0, 1]
    assert places.hosts_on_machine("algo-3") == 2
    assert [places.hosts_on(node) for node in (N1, N2, N3)] == [["algo-1", "algo-2"], ["algo-3", "algo-4"], []]
    assert places.move("algo-4") and (places.node_of("algo-4"), places.slot_of("algo-4")) == (N3, 0)
    places.drop(N2)
    assert places.move("algo-3") and (places.node_of("algo-3"), places.slot_of("algo-3")) == (N3, 1)
    assert not places.move("algo-3")
