"""What a machine of a pool says of itself, and of the others."""

import contextlib
import socket

from estimator_sdk.backends.ssh.on_host import facts
from estimator_sdk.backends.ssh.on_host.operations import Operations
from tests.waiting import wait_for


def test_a_machine_says_which_others_it_cannot_connect_to_and_why():
    with socket.create_server(("127.0.0.1", 0)) as here, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # where nobody listens
        places = [["127.0.0.1", each.getsockname()[1]] for each in (here, taken)]
        answer, _ = Operations().answer({"operation": "reach", "places": places}, b"")
    assert answer == {"refused": ["", "Connection refused"]}


def test_a_port_that_is_taken_is_not_free():
    def fewer_are_free() -> bool:
        with contextlib.ExitStack() as servers:
            before = facts._free_ports()
            assert 0 < before < 65536
            for _ in range(200):
                servers.enter_context(socket.create_server(("127.0.0.1", 0)))
            return facts._free_ports() <= before - 100

    wait_for(fewer_are_free)  # others may give some back meanwhile
