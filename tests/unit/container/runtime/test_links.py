import errno
import os
import socket
import struct

import pytest
from estimator_container.runtime import links
from estimator_container.runtime.links import Link, Listener, listen_unix
from estimator_container.runtime.wire import pack


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


def over_tcp():
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        return near, server.accept()[0]


@pytest.mark.parametrize("connected", [socket.socketpair, over_tcp], ids=["unix", "tcp"])
@pytest.mark.parametrize("reads", [True, False], ids=["has read all", "has not read all"])
def test_last_words_come_also_to_who_writes_to_an_end_that_is_closed(loop, run_until, connected, reads):
    sock, other = connected()
    with other:
        end = End(loop, sock)
        if not reads:
            sock.send(b"x")
        other.sendall(pack(["last"]) + pack(["words"]))
    for _ in range(3):
        end.link.send("to nobody" * 1000)
    run_until(lambda: end.closed)
    assert (end.received, end.closed) == ([["last"], ["words"]], 1)


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


@pytest.fixture
def exhausted(tmp_path):
    """A listening socket at which somebody waits, whose first two tries to accept find no free descriptor."""
    tried = []

    class Exhausted(socket.socket):
        def accept(self):
            tried.append(True)
            if len(tried) < 3:
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    path = str(tmp_path / "socket")
    with Exhausted(fileno=listen_unix(path).detach()) as sock, socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        yield sock, tried


@pytest.fixture
def run_rounds(loop, run_until):
    """Runs the loop a few times, whatever happens in it."""

    def run():
        for _ in range(5):
            over = []
            loop.after(0.0, lambda over=over: over.append(True))
            run_until(lambda over=over: over)

    return run


def test_a_listener_without_a_free_descriptor_rests(loop, run_until, run_rounds, monkeypatch, exhausted):
    sock, tried = exhausted
    monkeypatch.setattr(links, "ACCEPT_AGAIN_SECONDS", 3600.0)
    listener = Listener(loop, sock, print)
    run_until(lambda: tried)
    run_rounds()
    listener.close()
    assert len(tried) == 1


def test_a_listener_that_was_closed_while_it_rested_stays_so(loop, run_until, run_rounds, monkeypatch, exhausted):
    sock, tried = exhausted
    monkeypatch.setattr(links, "ACCEPT_AGAIN_SECONDS", 0.0)
    listener = Listener(loop, sock, print)
    run_until(lambda: tried)
    listener.close()
    run_rounds()
    assert len(tried) == 1


def test_a_listener_without_a_free_descriptor_goes_on_when_there_is_one(loop, run_until, monkeypatch, exhausted):
    sock, tried = exhausted
    accepted = []
    monkeypatch.setattr(links, "ACCEPT_AGAIN_SECONDS", 0.0)
    Listener(loop, sock, accepted.append)
    run_until(lambda: accepted)
    assert len(tried) == 3
    accepted[0].close()


def test_sockets_do_not_leak_into_programs_that_are_started(tmp_path):
    for sock in (listen_unix(str(tmp_path / "socket")), socket.create_server(("", 0))):
        assert not os.get_inheritable(sock.fileno())
        sock.close()
