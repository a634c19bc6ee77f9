"""What is counted as a step, and what of it as a rank's own work."""

import pytest
from estimator_container.training import step_clock
from estimator_container.training.step_clock import StepClock


@pytest.fixture
def clock(host, monkeypatch):
    clock = StepClock(host.open())
    times = iter(range(0, 1000, 10))
    monkeypatch.setattr(step_clock, "monotonic_ns", lambda: next(times))
    return clock


def steps_of(host):
    (count,) = host.read()
    return count.steps


def test_a_step_is_counted_with_the_times_of_the_first_and_the_last(clock, host):
    optimizer = object()
    for _ in range(3):
        clock.count(optimizer)
    (count,) = host.read()
    assert (count.steps, count.number, count.first, count.last) == (3, 3, 0, 20)


def test_of_two_optimizers_that_alternate_one_counts(clock, host):
    one, other = object(), object()
    for _ in range(5):
        clock.count(one)
        clock.count(other)
    assert steps_of(host) == 5


def test_an_optimizer_that_goes_on_alone_counts_from_its_second_step_on(clock, host):
    one, other = object(), object()
    for counter in (one, one, other, other, other):
        clock.count(counter)
    assert steps_of(host) == 4


def test_once_the_script_counts_nobody_else_does(clock, host):
    optimizer = object()
    clock.count(optimizer)
    for number in (101, 102):
        clock.mark_explicitly(number)
        clock.count(optimizer)
        clock.count(optimizer)
    (count,) = host.read()
    assert (count.steps, count.number) == (3, 102)


def test_once_it_is_stopped_the_page_stays_as_it_is(clock, host):
    clock.count(host)
    clock.stop()
    clock.count(host)
    clock.mark_explicitly(7)
    assert steps_of(host) == 1


def test_without_communication_nothing_is_known_of_a_ranks_own_work(clock, host):
    optimizer = object()
    for _ in range(3):
        clock.count(optimizer)
    (count,) = host.read()
    assert (count.own, count.own_steps) == (0, 0)


def test_its_own_work_is_what_is_between_two_steps_without_the_waiting(clock, host):
    """The clock advances by 10 each time that it is read."""
    optimizer = object()
    clock.count(optimizer)
    for _ in range(2):
        clock.work_ends()  # 10 after the step
        clock.work_begins()
        clock.count(optimizer)  # and 10 more
    (count,) = host.read()
    assert (count.own, count.own_steps) == (40, 2)


def test_what_follows_the_communication_to_the_end_of_the_step_may_be_unknown(clock, host):
    optimizer = object()
    clock.count(optimizer)
    clock.work_ends()
    clock.work_begins()
    clock.work_ends()
    clock.count(optimizer)
    (count,) = host.read()
    assert (count.own, count.own_steps) == (20, 1)
