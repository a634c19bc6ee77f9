"""What is said of a rank that may not have ended by itself."""

from types import SimpleNamespace

import pytest
from estimator_container.failures import killed
from estimator_container.failures.killed import KilledOrLost
from estimator_container.failures.verdict import of_lost_host, of_rank, of_silent_host


@pytest.fixture
def watch(loop, monkeypatch):
    """As the first host has it, the hosts that were asked, and what was reported."""
    monkeypatch.setattr(killed, "SCHEDULER_SECONDS", 0.05)
    asked, reported = [], []
    hosts = SimpleNamespace(ask_whether_there=asked.append)

    def made(has_scheduler):
        return KilledOrLost("algo-1", hosts, reported.append, loop, has_scheduler), hosts, asked, reported

    return made


def ended(code, rank=3, host="algo-2"):
    return of_rank(host, rank, code, "", ())


@pytest.mark.parametrize("code", [-15, 143])
def test_an_end_by_sigterm_is_kept_until_a_scheduler_has_had_time_for_its_word(watch, loop, code):
    kept, _, _, reported = watch(has_scheduler=True)
    found = ended(code)
    assert kept.keeps(found)
    assert kept.keeps(ended(1, rank=0, host="algo-1"))  # a consequence
    assert reported == []
    loop.run_until(lambda: reported, 60)
    assert reported == [found]


def test_no_answer_of_a_host_ends_that_time(watch, loop):
    kept, hosts, _, reported = watch(has_scheduler=True)
    kept.keeps(ended(-15))
    hosts.on_answer("algo-2")
    assert reported == []


def test_a_host_that_is_lost_meanwhile_counts_in_its_place(watch, loop):
    kept, _, _, reported = watch(has_scheduler=True)
    kept.keeps(ended(-15))
    assert not kept.keeps(of_lost_host("algo-3", "algo-1"))
    kept.forget()
    loop.run_until(lambda: False, 0.1)
    assert reported == []


@pytest.mark.parametrize("code", [-15, 143])
def test_without_a_scheduler_it_is_reported_at_once(watch, code):
    kept, *_ = watch(has_scheduler=False)
    assert not kept.keeps(ended(code))


def test_a_rank_that_was_killed_is_kept_until_its_host_answers(watch):
    kept, hosts, asked, reported = watch(has_scheduler=False)
    found = ended(-9)
    assert kept.keeps(found)
    assert asked == ["algo-2"]
    hosts.on_answer("algo-3")
    assert reported == []
    hosts.on_answer("algo-2")
    assert reported == [found]
    assert not kept.keeps(of_silent_host("algo-2", "algo-1", 2.5))
