import errno
import socket

import pytest
from estimator_container.contract.cluster import Cluster
from estimator_container.mesh import endpoint
from estimator_container.mesh.endpoint import Endpoint

BACKLOG = 4


def port_of(found: Endpoint) -> int:
    address, _, port = found.text.rpartition(":")
    assert address == "10.0.0.5"
    return int(port)


def server(address: str, port: int, *, reuses: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuses))
    try:
        made.bind((address, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "127.0.0.2", "::"])
def test_a_server_that_asks_for_the_port_as_frameworks_do_gets_it(address):
    found = Endpoint("10.0.0.5")
    with server(address, port_of(found), reuses=True) as listening:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        to = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
        with socket.socket(family) as client:
            client.connect((to, port_of(found)))
            listening.accept()[0].close()
    found.close()


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.3"])
def test_nobody_else_gets_it_until_it_is_given_back(address):
    found = Endpoint("10.0.0.5")
    with pytest.raises(OSError) as refused:
        server(address, port_of(found), reuses=False)
    assert refused.value.errno == errno.EADDRINUSE
    found.close()
    server(address, port_of(found), reuses=False).close()


def test_each_is_another_port_and_one_at_which_nobody_listens():
    """A few thousand of the kernel's own choices: with each one it passes over those that are kept."""
    kept = [Endpoint("10.0.0.5") for _ in range(200)]
    ports = [port_of(each) for each in kept]
    assert len(set(ports)) == 200
    chosen = set()
    for _ in range(5000):
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", 0))
            chosen.add(other.getsockname()[1])
    assert not chosen & set(ports)
    for each in kept:
        each.close()


def test_a_machine_without_ipv6_has_one_too(monkeypatch):
    def refuse(family, *arguments):
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "no such family")
        return real(family, *arguments)

    real = socket.socket
    monkeypatch.setattr(endpoint.socket, "socket", refuse)
    found = Endpoint("10.0.0.5")
    monkeypatch.undo()
    with server("127.0.0.1", port_of(found), reuses=True):
        pass
    found.close()


def cluster(chosen: str | None) -> Cluster:
    resources = {"current_host": "algo-1", "hosts": ["algo-1", "algo-2"]}
    return Cluster.read(resources, "resourceconfig.json", '{"algo-1": "127.0.0.1", "algo-2": "127.0.0.2"}', chosen)


def test_the_interface_of_a_job_is_the_one_that_has_its_address_or_that_it_names():
    assert endpoint.interface_of(cluster(None)) == "lo"
    for place in socket.if_nameindex():
        try:
            assert endpoint.interface_of(cluster(place[1])) == place[1]
        except OSError:  # a container's, which has just ended
            assert place not in socket.if_nameindex()
    with pytest.raises(OSError, match="no network interface 'ib9', which the job is to use; it has lo"):
        endpoint.interface_of(cluster("ib9"))
