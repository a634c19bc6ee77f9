import signal
import socket
import subprocess
import sys
import time

import pytest
from estimator_container.mesh import mesh, pulse
from estimator_container.mesh.handshake import Seal, code, session_key
from estimator_container.mesh.mesh import STRANGER_LIMIT, Member, MeshLeader, MeshWorker
from estimator_container.mesh.pulse import Loss
from estimator_container.mesh.unproven_connections import UnprovenConnections
from estimator_container.runtime.links import Link, Listener
from estimator_container.runtime.wire import pack

SECRET = b"the secret of this job"
NONCE = "00" * 32


class Observer:
    """All that a member is told of its peers."""

    def __init__(self):
        self.messages, self.joined, self.lost = [], [], []
        self.how = None

    def on_joined(self, host):
        self.joined.append(host)

    def on_message(self, host, message):
        self.messages.append((host, message))

    def on_lost(self, host, how):
        self.lost.append(host)
        self.how = how


class LeaderSide(Observer):
    """A leader of three workers and all that it says of them."""

    def __init__(self, loop, secret=SECRET, workers=("algo-2", "algo-3", "algo-4")):
        super().__init__()
        sock = socket.create_server(("", 0))
        self.address = ("127.0.0.1", sock.getsockname()[1])
        self.mesh = MeshLeader(loop, Member("algo-1", workers, secret), self, sock)


class WorkerSide(Observer):
    """A worker and all that it says of the leader."""

    def __init__(self, loop, address, host="algo-2", secret=SECRET, seconds=600.0, first_words=(), **given):
        super().__init__()
        self._first_words = first_words
        member, deadline = Member(host, ("algo-1",), secret), time.monotonic() + seconds
        self.mesh = MeshWorker(loop, member, self, lambda: address, deadline, **given)

    def on_joined(self, host):
        super().on_joined(host)
        if self._first_words:
            self.mesh.send(*self._first_words)


class Stranger:
    """Anybody who can connect to the leader and says what the test wants."""

    def __init__(self, loop, address):
        self.received, self.turned_away = [], []
        self.link = Link(
            loop,
            socket.create_connection(address),
            lambda link, message: self.received.append(message),
            lambda link: self.turned_away.append(True),
        )

    def introduce(self, run_until, host="algo-2"):
        """Begin as a worker would; returns the leader's number."""
        self.link.send("hello", host, NONCE)
        run_until(lambda: self.received)
        challenge, nonce, proof = self.received.pop()
        assert challenge == "challenge"
        assert proof == code(SECRET, "leader", host, NONCE, nonce)
        return nonce

    def join(self, run_until, host="algo-2"):
        """Become a worker that holds the secret; returns the seal of its messages."""
        nonce = self.introduce(run_until, host)
        self.link.send("proof", code(SECRET, "worker", host, nonce, NONCE))
        return Seal(session_key(SECRET, NONCE, nonce), "worker", "leader")


@pytest.fixture
def leader(loop):
    side = LeaderSide(loop)
    yield side
    side.mesh.close()


@pytest.fixture
def stranger(loop, leader):
    one = Stranger(loop, leader.address)
    yield one
    one.link.close()


@pytest.fixture
def other(loop, leader):
    one = Stranger(loop, leader.address)
    yield one
    one.link.close()


# Those who belong to the job.


def test_workers_with_the_secret_join_and_messages_go_both_ways_in_order(loop, run_until, leader):
    workers = {host: WorkerSide(loop, leader.address, host) for host in ("algo-2", "algo-3", "algo-4")}
    assert leader.mesh.missing == ["algo-2", "algo-3", "algo-4"]
    run_until(lambda: all(worker.joined for worker in workers.values()))
    assert leader.mesh.missing == []
    for number in range(5):
        leader.mesh.broadcast("to all", str(number))
        leader.mesh.send("algo-3", "to one", str(number))
        workers["algo-4"].mesh.send("to the leader", str(number), "", "é\n")
    run_until(lambda: len(leader.messages) == 5 and len(workers["algo-3"].messages) == 10)
    run_until(lambda: len(workers["algo-2"].messages) == 5)
    assert leader.messages == [("algo-4", ["to the leader", str(number), "", "é\n"]) for number in range(5)]
    assert workers["algo-2"].messages == [("algo-1", ["to all", str(number)]) for number in range(5)]
    assert [message[0] for _, message in workers["algo-3"].messages] == ["to all", "to one"] * 5
    for worker in workers.values():
        worker.mesh.close()


def test_the_first_message_of_a_worker_may_be_long_and_come_together_with_its_proof(loop, run_until, leader):
    words = ("failed", "x" * (10 * STRANGER_LIMIT))
    worker = WorkerSide(loop, leader.address, first_words=words)
    run_until(lambda: leader.messages or worker.lost)
    assert leader.messages == [("algo-2", list(words))]
    worker.mesh.close()


def test_a_worker_waits_for_a_leader_that_is_not_up_yet(loop, run_until):
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))  # so that nobody else has the port; who does not listen refuses
    worker = WorkerSide(loop, sock.getsockname())
    rounds = []
    loop.after(0.0, lambda: loop.after(0.0, lambda: rounds.append(True)))
    run_until(lambda: rounds)
    assert worker.joined == []
    observer = Observer()
    sock.listen()
    late = MeshLeader(loop, Member("algo-1", ("algo-2",), SECRET), observer, sock)
    run_until(lambda: observer.joined)
    worker.mesh.close()
    late.close()


WORKER_PROCESS = """
import sys, time
from estimator_container.runtime.loop import Loop
from estimator_container.mesh.mesh import Member, MeshWorker
loop, ended = Loop(), []
class Observer:
    def on_joined(self, leader):
        worker.send("ready")
    def on_message(self, leader, message):
        worker.send("heard", leader, *message)
        ended.append(True)
    def on_lost(self, leader, how):
        sys.exit(1)
member = Member("algo-3", ("algo-1",), bytes.fromhex(sys.argv[2]))
worker = MeshWorker(loop, member, Observer(), lambda: ("127.0.0.1", int(sys.argv[1])), time.monotonic() + 600)
loop.run_until(lambda: ended)
"""


def test_a_worker_in_a_process_of_its_own_joins_and_its_end_is_noticed(run_until, leader):
    argv = [sys.executable, "-c", WORKER_PROCESS, str(leader.address[1]), SECRET.hex()]
    with subprocess.Popen(argv) as process:
        run_until(lambda: leader.messages)
        leader.mesh.send("algo-3", "go", "now")
        run_until(lambda: leader.lost)
        assert process.wait() == 0
    assert leader.messages == [("algo-3", ["ready"]), ("algo-3", ["heard", "algo-1", "go", "now"])]
    assert leader.lost == ["algo-3"]


def test_a_worker_that_freezes_before_its_first_beat_is_lost(loop, run_until, leader, monkeypatch):
    monkeypatch.setattr(pulse, "BEAT_SECONDS", 0.002)
    worker = WorkerSide(loop, leader.address)  # which never begins to beat
    run_until(lambda: leader.joined)
    run_until(lambda: leader.lost)
    assert leader.lost == ["algo-2"]
    worker.mesh.close()


STANDS_STILL = """
import sys, time
from estimator_container.mesh import mesh, pulse
from estimator_container.runtime.loop import Loop
pulse.BEAT_SECONDS = 0.2
loop, ended = Loop(), []
class Observer:
    def on_joined(self, leader):
        worker.begin_to_beat()
        worker.send("ready")
    def on_message(self, leader, message):
        pass
    def on_lost(self, leader, how):
        print(how.name, flush=True)
        ended.append(True)
member = mesh.Member("algo-3", ("algo-1",), bytes.fromhex(sys.argv[2]))
worker = mesh.MeshWorker(loop, member, Observer(), lambda: ("127.0.0.1", int(sys.argv[1])), time.monotonic() + 600)
loop.run_until(lambda: ended)
"""


def test_a_host_that_stands_still_is_lost_and_learns_of_it_when_it_goes_on(run_until, leader, monkeypatch):
    """Else it would find its connection closed, and take the other end for the one that is gone."""
    monkeypatch.setattr(pulse, "BEAT_SECONDS", 0.2)  # five of which no busy machine takes from it
    leader.mesh.begin_to_beat()
    argv = [sys.executable, "-c", STANDS_STILL, str(leader.address[1]), SECRET.hex()]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        run_until(lambda: leader.messages)  # or it could stop before it has a clock of its beats
        process.send_signal(signal.SIGSTOP)
        run_until(lambda: leader.lost)
        process.send_signal(signal.SIGCONT)
        assert process.stdout.read() == "STOOD_STILL\n"
    assert (leader.lost, leader.how) == (["algo-3"], Loss.SILENT)


def test_who_was_given_up_without_having_stood_still_is_told_apart(run_until, leader, stranger, monkeypatch):
    monkeypatch.setattr(pulse, "BEAT_SECONDS", 60.0)
    seal = stranger.join(run_until)
    stranger.link.send(*seal.wrap(("unheard",)))
    run_until(lambda: leader.lost)
    assert (leader.lost, leader.how, leader.messages) == (["algo-2"], Loss.UNHEARD, [])


def test_the_loss_of_the_leader_is_told_to_a_worker_once(loop, run_until, leader):
    worker = WorkerSide(loop, leader.address)
    run_until(lambda: leader.joined)
    leader.mesh.close()
    run_until(lambda: worker.lost)
    worker.mesh.send("to nobody")
    assert worker.lost == ["algo-1"]
    worker.mesh.close()


def test_a_closed_worker_is_told_to_the_leader_once_and_what_is_sent_to_it_is_dropped(loop, run_until, leader):
    worker = WorkerSide(loop, leader.address)
    run_until(lambda: leader.joined)
    worker.mesh.close()
    run_until(lambda: leader.lost)
    leader.mesh.send("algo-2", "to nobody")
    leader.mesh.broadcast("to nobody")
    assert leader.lost == ["algo-2"]
    assert worker.lost == []


# Those who do not.


def assert_turned_away(leader, *, joined=()):
    assert leader.joined == list(joined)
    assert leader.messages == []


def test_a_worker_with_another_secret_neither_joins_nor_believes_the_leader(loop, run_until, leader):
    worker = WorkerSide(loop, leader.address, secret=b"a guess", seconds=5)
    run_until(lambda: worker.lost)
    assert worker.joined == [] and worker.mesh.met_another
    assert_turned_away(leader)
    assert leader.lost == []


def test_a_stranger_without_the_secret_is_turned_away(run_until, leader, stranger):
    nonce = stranger.introduce(run_until)
    stranger.link.send("proof", code(b"a guess", "worker", "algo-2", nonce, NONCE))
    run_until(lambda: stranger.turned_away)
    assert_turned_away(leader)


def test_the_leaders_own_proof_sent_back_is_no_proof(run_until, leader, stranger):
    stranger.link.send("hello", "algo-2", NONCE)
    run_until(lambda: stranger.received)
    stranger.link.send("proof", stranger.received[0][2])
    run_until(lambda: stranger.turned_away)
    assert_turned_away(leader)


@pytest.mark.parametrize("host", ["algo-1", "algo-5", "", "ALGO-2", "algo-2 "])
def test_a_host_that_the_job_does_not_have_is_turned_away_before_it_learns_anything(run_until, leader, stranger, host):
    stranger.link.send("hello", host, NONCE)
    run_until(lambda: stranger.turned_away)
    assert stranger.received == []
    assert_turned_away(leader)


@pytest.mark.parametrize(
    "message",
    [["ready"], ["hello"], ["hello", "algo-2"], ["hello", "algo-2", NONCE, "more"], ["proof", "algo-2", NONCE], [""]],
)
def test_who_does_not_introduce_itself_is_turned_away(run_until, leader, stranger, message):
    stranger.link.send(*message)
    run_until(lambda: stranger.turned_away)
    assert stranger.received == []
    assert_turned_away(leader)


def test_a_stranger_cannot_make_the_leader_keep_a_long_message(run_until, leader, stranger):
    stranger.link.send("hello", "algo-2", "0" * STRANGER_LIMIT)
    run_until(lambda: stranger.turned_away)
    assert_turned_away(leader)


def test_a_proof_of_one_host_is_none_for_another(run_until, leader, stranger):
    nonce = stranger.introduce(run_until, "algo-3")
    stranger.link.send("proof", code(SECRET, "worker", "algo-2", nonce, NONCE))
    run_until(lambda: stranger.turned_away)
    assert_turned_away(leader)


def test_a_recorded_joining_that_is_played_again_is_turned_away(loop, run_until, leader, stranger):
    nonce = stranger.introduce(run_until)
    proof = code(SECRET, "worker", "algo-2", nonce, NONCE)
    ready = Seal(session_key(SECRET, NONCE, nonce), "worker", "leader").wrap(("ready",))
    stranger.link.send("proof", proof)
    stranger.link.send(*ready)
    run_until(lambda: leader.messages)

    later = LeaderSide(loop)
    player = Stranger(loop, later.address)
    player.introduce(run_until)
    player.link.send("proof", proof)
    player.link.send(*ready)
    run_until(lambda: player.turned_away)
    assert_turned_away(later)
    later.mesh.close()


def test_a_message_without_seal_ends_the_connection_and_reaches_nobody(run_until, leader, stranger):
    stranger.join(run_until)
    stranger.link.send("failed", "{}")
    run_until(lambda: stranger.turned_away)
    assert_turned_away(leader, joined=["algo-2"])
    assert leader.lost == ["algo-2"]


@pytest.mark.parametrize(
    "alter",
    [
        lambda message: ("failed", *message[1:]),
        lambda message: (*message[:-1], "more", message[-1]),
        lambda message: message[1:],
        lambda message: (*message[:-1], "0" * 64),
        lambda message: ("",),
    ],
)
def test_an_altered_message_ends_the_connection_and_reaches_nobody(run_until, leader, stranger, alter):
    seal = stranger.join(run_until)
    stranger.link.send(*alter(seal.wrap(("ready", "now"))))
    run_until(lambda: stranger.turned_away)
    assert_turned_away(leader, joined=["algo-2"])
    assert leader.lost == ["algo-2"]


def test_a_message_counts_once(run_until, leader, stranger):
    message = stranger.join(run_until).wrap(("ready",))
    stranger.link.send(*message)
    stranger.link.send(*message)
    run_until(lambda: stranger.turned_away)
    assert leader.messages == [("algo-2", ["ready"])]
    assert leader.lost == ["algo-2"]


def test_a_message_cannot_be_left_out(run_until, leader, stranger):
    seal = stranger.join(run_until)
    seal.wrap(("left out",))
    stranger.link.send(*seal.wrap(("ready",)))
    run_until(lambda: stranger.turned_away)
    assert leader.messages == []


def test_a_message_of_the_leader_cannot_be_sent_back_to_it(run_until, leader, stranger):
    stranger.join(run_until)
    run_until(lambda: leader.joined)
    leader.mesh.send("algo-2", "go")
    run_until(lambda: stranger.received)
    stranger.link.send(*stranger.received[0])
    run_until(lambda: stranger.turned_away)
    assert leader.messages == []


def test_a_host_joins_once(loop, run_until, leader, stranger):
    worker = WorkerSide(loop, leader.address)
    run_until(lambda: leader.joined)
    stranger.link.send("hello", "algo-2", NONCE)
    run_until(lambda: stranger.turned_away)
    assert_turned_away(leader, joined=["algo-2"])
    worker.mesh.send("still here")
    run_until(lambda: leader.messages)
    worker.mesh.close()


def test_of_two_that_join_as_one_host_at_the_same_time_the_first_stays(run_until, leader, stranger, other):
    nonce = other.introduce(run_until)
    seal = stranger.join(run_until)
    run_until(lambda: leader.joined)
    other.link.send("proof", code(SECRET, "worker", "algo-2", nonce, NONCE))
    run_until(lambda: other.turned_away)
    stranger.link.send(*seal.wrap(("still here",)))
    run_until(lambda: leader.messages)
    assert leader.joined == ["algo-2"]
    assert leader.lost == []


def test_a_lost_host_does_not_come_back(run_until, leader, stranger, other):
    stranger.join(run_until)
    run_until(lambda: leader.joined)
    stranger.link.close()
    run_until(lambda: leader.lost)
    other.link.send("hello", "algo-2", NONCE)
    run_until(lambda: other.turned_away)
    assert leader.joined == ["algo-2"]


def test_strangers_do_not_keep_the_job_from_starting(loop, run_until, leader):
    strangers = [Stranger(loop, leader.address) for _ in range(20)]
    for stranger in strangers[:10]:
        stranger.link.send("hello", "algo-2", NONCE)
    worker = WorkerSide(loop, leader.address)
    run_until(lambda: leader.joined)
    worker.mesh.close()
    leader.mesh.close()
    run_until(lambda: all(stranger.turned_away for stranger in strangers))


def test_the_missing_have_the_order_of_the_job(loop):
    hosts = [f"algo-{number}" for number in range(2, 12)]
    side = LeaderSide(loop, workers=hosts)
    assert side.mesh.missing == hosts
    side.mesh.close()


def test_when_all_are_there_nobody_listens_any_more_and_strangers_are_sent_away(loop, run_until):
    side = LeaderSide(loop, workers=["algo-2"])
    stranger = Stranger(loop, side.address)
    worker = WorkerSide(loop, side.address)
    run_until(lambda: worker.joined and stranger.turned_away)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(side.address)
    for each in (worker, side):
        each.mesh.close()


def test_a_worker_whose_proof_came_too_late_comes_again_and_is_not_lost(loop, run_until, monkeypatch, leader):
    """It cannot tell that it was turned away, for what it sends is taken all the same."""
    dismissed = []

    def meet(strangers, link, meet=UnprovenConnections.meet):
        meet(strangers, link)
        if not dismissed:
            dismissed.append(link)
            send, link.send = link.send, lambda *fields: (send(*fields), strangers.dismiss(link))

    monkeypatch.setattr(UnprovenConnections, "meet", meet)
    worker = WorkerSide(loop, leader.address, first_words=("ready",))
    run_until(lambda: leader.messages or worker.lost)
    assert (leader.messages, leader.lost, worker.lost) == ([("algo-2", ["ready"])], [], [])
    worker.mesh.close()


def test_a_worker_comes_again_where_nobody_answers(loop, run_until, monkeypatch):
    monkeypatch.setattr(mesh, "SECONDS", 0.01)
    fake = FakeLeader(loop, lambda hello: [])
    worker = WorkerSide(loop, fake.address)
    run_until(lambda: len(fake.heard) == 2)
    assert worker.lost == []
    worker.mesh.close()
    fake.close()


def test_a_worker_never_says_the_same_number_twice(loop, run_until):
    fake = FakeLeader(loop, lambda hello: [("no", "challenge")])
    worker = WorkerSide(loop, fake.address)
    run_until(lambda: len(fake.heard) == 3)
    assert len({nonce for _, _, nonce in fake.heard}) == 3
    worker.mesh.close()
    fake.close()


# Leaders that are none.


class FakeLeader:
    """Listens where the leader should, and answers what the test wants."""

    def __init__(self, loop, answer):
        self.heard, self.links = [], []
        sock = socket.create_server(("", 0))
        self.address = ("127.0.0.1", sock.getsockname()[1])

        def on_message(link, message):
            self.heard.append(message)
            for fields in answer(message):
                link.send(*fields)

        self.listener = Listener(
            loop, sock, lambda sock: self.links.append(Link(loop, sock, on_message, lambda link: None))
        )

    def close(self):
        self.listener.close()
        for link in self.links:
            link.close()


@pytest.mark.parametrize(
    "answer",
    [
        lambda hello: [("challenge", NONCE, code(b"a guess", "leader", hello[1], hello[2], NONCE)), ("go",)],
        lambda hello: [("challenge", NONCE, ""), ("go",)],
        lambda hello: [("go",)],
        lambda hello: [("challenge", "x" * STRANGER_LIMIT, "")],
    ],
)
def test_a_worker_does_not_follow_a_leader_without_the_secret(loop, run_until, answer):
    fake = FakeLeader(loop, answer)
    worker = WorkerSide(loop, fake.address)
    run_until(lambda: len(fake.heard) >= 2)
    worker.mesh.close()
    fake.close()
    assert {message[0] for message in fake.heard} == {"hello"}
    assert (worker.joined, worker.messages) == ([], [])


def test_a_worker_gives_up_at_its_deadline_on_a_leader_that_takes_the_connection_and_says_nothing(loop, run_until):
    fake = FakeLeader(loop, lambda hello: [])
    worker = WorkerSide(loop, fake.address, seconds=2)
    run_until(lambda: worker.lost)
    assert len(fake.heard) == 1 and not worker.mesh.met_another
    assert (worker.joined, worker.lost) == ([], ["algo-1"])
    fake.close()


def test_a_worker_that_knows_its_leader_to_listen_gives_up_soon_where_nobody_does(loop, run_until):
    with socket.create_server(("127.0.0.1", 0)) as door:
        address = door.getsockname()
    worker = WorkerSide(loop, address, refused_seconds=0.05)
    run_until(lambda: worker.lost)
    assert (worker.joined, worker.lost) == ([], ["algo-1"])


def test_a_recorded_message_of_the_leader_does_not_reach_a_worker_in_another_session(loop, run_until, leader, stranger):
    stranger.join(run_until)
    run_until(lambda: leader.joined)
    leader.mesh.send("algo-2", "stop")
    run_until(lambda: stranger.received)
    recorded = stranger.received[0]

    def answer(message):
        if message[0] == "hello":
            return [("challenge", NONCE, code(SECRET, "leader", message[1], message[2], NONCE))]
        return [recorded]

    fake = FakeLeader(loop, answer)
    worker = WorkerSide(loop, fake.address)
    run_until(lambda: [message[0] for message in fake.heard].count("hello") == 2)
    assert (worker.joined, worker.messages, worker.lost) == ([], [], [])
    worker.mesh.close()
    fake.close()


def test_the_secret_is_never_sent(loop, run_until):
    heard = bytearray()
    proxied = LeaderSide(loop)
    listener_sock = socket.create_server(("", 0))
    address = ("127.0.0.1", listener_sock.getsockname()[1])

    def on_link(sock):
        onward = Link(
            loop, socket.create_connection(proxied.address), lambda link, m: pass_on(back, m), lambda link: None
        )
        back = Link(loop, sock, lambda link, m: pass_on(onward, m), lambda link: None)

    def pass_on(link, message):
        heard.extend(pack(message))
        link.send(*message)

    listener = Listener(loop, listener_sock, on_link)
    worker = WorkerSide(loop, address, first_words=("ready",))
    run_until(lambda: proxied.messages)
    assert SECRET not in heard
    assert SECRET.hex().encode() not in heard
    worker.mesh.close()
    proxied.mesh.close()
    listener.close()
