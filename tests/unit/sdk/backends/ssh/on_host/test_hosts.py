"""What the supervisor of a job on other machines does between two attempts."""

from functools import partial

import pytest

from estimator_sdk.backends.ssh.on_host import words
from estimator_sdk.backends.ssh.on_host.hosts import SshHosts

HOSTS = ("algo-1", "algo-2", "algo-3")


@pytest.fixture
def hosts(monkeypatch):
    """Three that run, and what they are told, with an agent that has nothing to finish."""
    made = SshHosts.__new__(SshHosts)
    made.told = []
    made._flushes, made._running, made._machine_of = [], {*HOSTS}, {host: f"on-{host}" for host in HOSTS}
    monkeypatch.setattr(made, "_tell", lambda host, *fields: made.told.append((host, *fields)), raising=False)
    monkeypatch.setattr(made, "_is_here", lambda host: False)
    monkeypatch.setattr(made, "_is_kept", lambda host: True)
    return made


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
    hosts.keeper_lost("on-algo-3")
    assert called == ["algo-2", "algo-3"]
