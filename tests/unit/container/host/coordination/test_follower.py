"""Another host, as it reports what fails there and ends an attempt."""

from types import SimpleNamespace

import pytest
from estimator_container.contract.names import Layout
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.contract.settings import Settings
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict
from estimator_container.host.coordination import follower
from estimator_container.host.coordination.follower import Follower
from estimator_container.host.spec import HostSpec

from tests.waiting import SECONDS

FROZEN = Verdict(Kind.FROZEN, "rank 1 on algo-2 was stopped", "algo-2", 1)


@pytest.fixture
def host(loop, tmp_path):
    resources = {"current_host": "algo-2", "hosts": ["algo-1", "algo-2"]}
    settings = Settings.from_documents(Layout(str(tmp_path)), resources, {}, Hyperparameters.read({}), {})
    outcomes = []
    return SimpleNamespace(
        spec=HostSpec(settings, b"the secret of this job", None),
        toolkit=SimpleNamespace(loop=loop),
        outcomes=outcomes,
        end=outcomes.append,
    )


def test_a_report_without_an_answer_ends_the_host(host, loop, monkeypatch):
    monkeypatch.setattr(follower, "ANSWER_SECONDS", 0.05)
    Follower(host).report(FROZEN)
    loop.run_until(lambda: host.outcomes, SECONDS)
    assert [outcome.verdict for outcome in host.outcomes] == [FROZEN]


@pytest.mark.parametrize("ends", ["before", "between", "after"])
def test_no_report_of_an_attempt_outlives_it(host, loop, monkeypatch, ends):
    """Ranks that are found to stand one after the other are reported one by one, while the attempt ends."""
    monkeypatch.setattr(follower, "ANSWER_SECONDS", 0.05)
    made = Follower(host)
    for when in ("before", "between", "after"):
        if when == ends:
            made.let_go()
        if when != "after":
            made.report(FROZEN)
    made.cleared()
    loop.run_until(lambda: False, 0.2)
    assert host.outcomes == []
