"""What a machine of a pool says of itself, and of the others."""

import socket

from estimator_sdk.backends.ssh.on_host import facts
from estimator_sdk.backends.ssh.on_host.operations import Operations


def test_a_machine_says_which_others_it_cannot_connect_to_and_why():
    with socket.create_server(("127.0.0.1", 0)) as here, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # where nobody listens
        places = [["127.0.0.1", each.getsockname()[1]] for each in (here, taken)]
        answer, _ = Operations().answer({"operation": "reach", "places": places}, b"")
    assert answer == {"refused": ["", "Connection refused"]}


def test_a_port_that_is_taken_is_not_free():
    before = facts._free_ports()
    assert 0 < before < 65536
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(200)]
    assert facts._free_ports() <= before - 100  # others may give some back meanwhile
    for each in servers:
        each.close()
