"""A host's line to a platform on another machine."""

import socket

import pytest
from estimator_container.contract.names import MAX_RESTARTS, PLATFORM_ADDRESS, Layout
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.contract.settings import Settings
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.host.coordination import platform_line as words
from estimator_container.host.coordination.platform_line import PlatformLine
from estimator_container.host.spec import HostSpec
from estimator_container.mesh import pulse
from estimator_container.mesh.mesh import Member, MeshLeader
from estimator_container.mesh.pulse import Loss
from estimator_container.runtime.errors import ConfigurationError

SECRET = b"the secret of this job"
HOSTS = ("algo-1", "algo-2")
BEAT = 0.002  # seconds


class Platform:
    """The other end, and what it hears."""

    def __init__(self, loop):
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.sock.getsockname()[1]}"
        self.joined, self.messages, self.lost = [], [], []
        self.mesh = MeshLeader(loop, Member(words.PLATFORM, HOSTS, SECRET), self, self.sock)

    def on_joined(self, host):
        self.joined.append(host)

    def on_message(self, host, message):
        self.messages.append((host, message))

    def on_lost(self, host, how):
        self.lost.append((host, how))


@pytest.fixture
def platform(loop):
    made = Platform(loop)
    yield made
    made.mesh.close()


@pytest.fixture
def line(loop, tmp_path, platform):
    """Makes the line of a host, and lists all that it hears."""
    made = []

    def make(host="algo-2", secret=SECRET, **variables):
        resources = {"current_host": host, "hosts": list(HOSTS)}
        variables = {PLATFORM_ADDRESS: platform.address, **variables}
        layout, hyperparameters = Layout(str(tmp_path)), Hyperparameters.read({})
        settings = Settings.from_documents(layout, resources, {}, hyperparameters, variables)
        heard = []
        spec = HostSpec(settings, secret, None)
        line = PlatformLine(spec, loop, lambda: heard.append("stop"), lambda: heard.append("gone"))
        line.expect(lambda *again: heard.append(("again", *again)), lambda: heard.append("end"))
        line.on_join = lambda address: heard.append(("join", address))
        made.append(line)
        return line, heard

    yield make
    for each in made:
        each.close()


def test_what_is_said_before_the_platform_is_there_reaches_it_in_order(line, platform, run_until):
    found = Verdict(Kind.EXIT_CODE, "rank 1 exited with code 3")
    to_platform, _ = line()
    to_platform.listens_at("10.0.0.2:4711")
    to_platform.ask(found, "10.0.0.2:4712", ["algo-1"])
    run_until(lambda: len(platform.messages) == 2)
    assert platform.messages == [
        ("algo-2", [words.LISTENS, "10.0.0.2:4711"]),
        ("algo-2", [words.FAILED, found.to_json(), "10.0.0.2:4712", "algo-1"]),
    ]


def test_each_host_is_told_by_its_name(line, platform, run_until):
    heard = {host: line(host)[1] for host in HOSTS}
    run_until(lambda: len(platform.joined) == 2)
    platform.mesh.send("algo-1", words.AGAIN, "", "", "2")
    platform.mesh.send("algo-2", words.JOIN, "10.0.0.1:4711")
    run_until(lambda: all(heard.values()))
    assert heard == {"algo-1": [("again", "", 2)], "algo-2": [("join", "10.0.0.1:4711")]}


def test_an_answer_to_what_was_asked_before_a_further_host_was_lost_is_none(line, platform, run_until):
    """The platform has told it to begin again without one of them, and hears of the other just then."""
    found = Verdict(Kind.HOST_LOST, "algo-1 is gone", "algo-1")
    to_platform, heard = line()
    to_platform.ask(found, "10.0.0.2:4711", ["algo-1"])
    to_platform.ask(found, "10.0.0.2:4712", ["algo-1", "algo-3"])
    run_until(lambda: len(platform.messages) == 2)
    platform.mesh.send("algo-2", words.AGAIN, "", "10.0.0.2:4711", "1")
    platform.mesh.send("algo-2", words.AGAIN, "", "10.0.0.2:4712", "2")
    platform.mesh.send("algo-2", words.AGAIN, "", "10.0.0.2:4712")
    platform.mesh.send("algo-2", words.AGAIN, "of an older platform")
    run_until(lambda: len(heard) == 3)
    assert heard == [("again", "", 2), ("again", "", None), ("again", "of an older platform", None)]


def test_a_host_hears_that_the_job_is_to_stop_and_that_no_attempt_follows(line, platform, run_until):
    _, heard = line()
    run_until(lambda: platform.joined)
    platform.mesh.send("algo-2", words.STOP)
    platform.mesh.send("algo-2", words.END)
    run_until(lambda: len(heard) == 2)
    assert heard == ["stop", "end"]


def test_a_word_that_it_does_not_know_is_nothing_to_a_host(line, platform, run_until):
    _, heard = line()
    run_until(lambda: platform.joined)
    platform.mesh.send("algo-2", "news", "of another toolkit")
    platform.mesh.send("algo-2", words.STOP)
    run_until(lambda: heard)
    assert heard == ["stop"]


def test_a_platform_that_is_gone_ends_what_waits_for_it_and_then_the_host(line, platform, run_until):
    _, heard = line()
    run_until(lambda: platform.joined)
    platform.mesh.close()
    run_until(lambda: heard)
    assert heard == ["end", "gone"]


def test_a_platform_that_nobody_finds_is_gone(line, platform, run_until):
    platform.mesh.close()
    _, heard = line(ESTIMATOR_WORLD_TIMEOUT="0.05")
    run_until(lambda: heard)
    assert heard == ["end", "gone"]


def test_a_host_that_beats_is_missed_once_it_is_frozen(line, platform, run_until, monkeypatch):
    monkeypatch.setattr(pulse, "BEAT_SECONDS", BEAT)
    to_platform, _ = line()
    to_platform.begin_to_beat()
    run_until(lambda: to_platform._wire._mesh._link is not None)
    to_platform._wire._mesh._link._pulse.stop()
    run_until(lambda: platform.lost)
    assert platform.lost == [("algo-2", Loss.SILENT)]


def test_a_host_that_closes_its_line_is_not_silent(line, platform, run_until):
    to_platform, heard = line()
    run_until(lambda: platform.joined)
    to_platform.close()
    run_until(lambda: platform.lost)
    assert (platform.lost, heard) == ([("algo-2", Loss.CLOSED)], [])


def test_a_host_without_a_secret_trusts_no_platform(line):
    with pytest.raises(ConfigurationError, match="share no secret"):
        line(secret=None)


@pytest.mark.parametrize(("restarts", "may"), [("0", False), ("3", True)])
def test_whether_another_attempt_may_follow_is_told_with_the_start(line, restarts, may):
    assert line(**{MAX_RESTARTS: restarts})[0].may_say_again is may
