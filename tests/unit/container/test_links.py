import os
import socket
import struct

import pytest
from estimator_container.links import Link, Listener, listen_tcp, listen_unix
from estimator_container.wire import pack


class End:
    """One end of a connection and what came to it."""

    def __init__(self, loop, sock, **options):
        self.received, self.closed = [], 0
        self.link = Link(loop, sock, self._on_message, self._on_close, **options)

    def _on_message(self, link, message):
        self.received.append(message)

    def _on_close(self, link):
        self.closed += 1


@pytest.fixture
def ends(loop):
    made = [End(loop, sock) for sock in socket.socketpair()]
    yield made
    for end in made:
        end.link.close()


def test_messages_arrive_in_their_order(ends, run_until):
    near, far = ends
    sent = [[str(number), "x" * number] for number in range(100)]
    for message in sent:
        near.link.send(*message)
    run_until(lambda: len(far.received) == 100)
    assert far.received == sent


def test_two_ends_that_both_send_more_than_the_kernel_holds_do_not_wait_for_each_other(ends, run_until):
    much = "x" * (8 << 20)
    for end in ends:
        end.link.send(much)
        end.link.send("done")
    run_until(lambda: all(len(end.received) == 2 for end in ends))
    assert all(end.received == [[much], ["done"]] for end in ends)


def test_an_end_is_told_once_that_the_other_one_closed_and_its_last_words_come_first(ends, run_until):
    near, far = ends
    near.link.send("last words")
    near.link.close()
    run_until(lambda: far.closed)
    assert far.received == [["last words"]]
    assert far.link.closed
    assert (near.closed, far.closed) == (0, 1)


def test_sending_to_a_closed_end_is_no_error(ends, run_until):
    near, far = ends
    far.link.close()
    near.link.send("to nobody")
    run_until(lambda: near.closed)
    near.link.send("to nobody")
    near.link.close()
    assert near.closed == 1


def test_a_message_over_the_limit_closes_the_link(loop, run_until):
    raw, sock = socket.socketpair()
    end = End(loop, sock, limit=10)
    raw.send(pack(["fine"]) + struct.pack("<I", 1 << 30))
    run_until(lambda: end.closed)
    assert end.received == [["fine"]]
    assert raw.recv(1) == b""
    raw.close()


def test_nothing_more_is_delivered_after_a_receiver_closed_the_link(loop, run_until):
    raw, sock = socket.socketpair()
    received = []
    link = Link(loop, sock, lambda link, message: (received.append(message), link.close()), lambda link: None)
    raw.send(pack(["first"]) + pack(["second"]))
    run_until(lambda: link.closed)
    assert received == [["first"]]
    raw.close()


def test_a_listener_accepts_any_number_until_it_is_closed(loop, run_until, tmp_path):
    path = str(tmp_path / "socket")
    accepted = []
    listener = Listener(loop, listen_unix(path), accepted.append)
    clients = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for client in clients:
        client.connect(path)
    run_until(lambda: len(accepted) == 3)
    listener.close()
    listener.close()
    with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
        late.connect(path)
    for sock in (*clients, *accepted):
        sock.close()


def test_sockets_do_not_leak_into_programs_that_are_started(tmp_path):
    for sock in (listen_unix(str(tmp_path / "socket")), listen_tcp(0)):
        assert not os.get_inheritable(sock.fileno())
        sock.close()
