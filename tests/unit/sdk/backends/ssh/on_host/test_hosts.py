"""What the supervisor of a job on other machines does between two attempts."""

import signal
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from estimator_container.mesh.pulse import Loss
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.ssh.on_host import words
from estimator_sdk.backends.ssh.on_host.hosts import SshHosts

HOSTS = ("algo-1", "algo-2", "algo-3")


@pytest.fixture
def loop():
    yield Loop()
    signal.set_wakeup_fd(-1)


@pytest.fixture
def hosts(monkeypatch):
    """Three that run, and what they are told, with an agent that has nothing to finish."""
    made = SshHosts.__new__(SshHosts)
    made.told = []
    made._arriving = SimpleNamespace(forget=lambda host: None)
    made._flushes, made._running, made._machine_of = [], {*HOSTS}, {host: f"on-{host}" for host in HOSTS}
    monkeypatch.setattr(made, "_tell", lambda host, *fields: made.told.append((host, *fields)), raising=False)
    monkeypatch.setattr(made, "_is_here", lambda host: False)
    monkeypatch.setattr(made, "_is_kept", lambda host: True)
    return made


class Outbox:
    """Takes files, and says that they have come when it is asked."""

    def __init__(self):
        self.come = []

    def put(self, items, then):
        self.come.append(then)


def restart(hosts, loop, monkeypatch, agent=lambda machine, begun: begun(None)):
    """What the hosts are brought before another attempt on them; returns the outboxes, and runs for a while."""
    boxes = {machine: SimpleNamespace(outbox=Outbox()) for machine in hosts._machine_of.values()}
    hosts._loop, hosts._names, hosts._plan = loop, HOSTS, SimpleNamespace(checkpoint_uri="s3://bucket")
    hosts._machines, hosts._agent = SimpleNamespace(kept=boxes), SimpleNamespace(begin=agent)
    hosts._folder = SimpleNamespace(host=Path)
    return boxes


def test_all_hosts_are_brought_what_was_restored_and_begin_when_it_is_there(hosts, loop, monkeypatch):
    boxes = restart(hosts, loop, monkeypatch)
    waits = []

    def come():
        waits.append(True)
        for each in boxes.values():
            each.outbox.come.pop()()

    loop.after(0.1, come)
    hosts._bring_checkpoints("algo-1")
    assert waits and sorted(hosts.told) == [(host, words.CLEAR, "checkpoints") for host in HOSTS]


def test_who_ends_meanwhile_is_waited_for_no_more(hosts, loop, monkeypatch):
    boxes = restart(hosts, loop, monkeypatch, lambda machine, begun: None)
    loop.after(0.1, hosts._running.clear)
    hosts._bring_checkpoints("algo-1")
    assert all(each.outbox.come for each in boxes.values())


@pytest.mark.parametrize("host", HOSTS[:2])
def test_a_host_that_has_ended_before_all_was_brought_to_its_machine_is_not_run(hosts, loop, monkeypatch, host):
    """Its disk may have been full, and have room by now: it would run on half of its inputs.

    Nor is half of a checkpoint published, which the next attempt would restore.
    """
    agents, ran = [], []

    def begin(machine, begun):
        agents.append(machine)
        begun(None)

    restart(hosts, loop, monkeypatch, begin)
    hosts._with_agent(host, lambda: ran.append("before"))
    hosts._running.discard(host)
    hosts._with_agent(host, lambda: ran.append("after"))
    assert ran == ["before"]
    assert agents == [f"on-{host}"] * (host == HOSTS[0])


def test_each_that_waits_for_what_was_written_goes_on_when_it_is_there(hosts):
    """All others say at once that the first host is lost: each of them counts."""
    called = []
    for host in HOSTS[1:]:
        hosts._flush_hosts(partial(called.append, host))
    assert sorted(hosts.told) == sorted([(host, words.FLUSH) for host in HOSTS] * 2)
    for host in HOSTS:
        assert called == []
        hosts._flushed(host)
    assert called == ["algo-2"]  # the other one has still to send what it has written since
    for host in HOSTS:
        hosts._flushed(host)
    assert called == ["algo-2", "algo-3"]


def test_nothing_is_waited_for_from_a_machine_that_is_lost(hosts):
    called = []
    for host in HOSTS[1:]:
        hosts._flush_hosts(partial(called.append, host))
    for host in HOSTS[:2] * 2:
        hosts._flushed(host)
    hosts._running.discard("algo-3")
    hosts.keeper_lost("on-algo-3", Loss.CLOSED)
    assert called == ["algo-2", "algo-3"]
