"""Who is named as slow, and who is not."""

import random

import pytest
from estimator_container.contract.events import RankSlow
from estimator_container.failures.stragglers import StragglerWatch, sentence
from estimator_container.training.page import StepCount

SECOND = 1_000_000_000


class World:
    """Ranks that make steps together, each as long as the slowest rank and the communication take."""

    def __init__(self, size, hosts=2):
        self.watch = StragglerWatch({rank: f"algo-{rank * hosts // size + 1}" for rank in range(size)})
        self.counts = {rank: StepCount(rank, 100 + rank, 1, 1, 0, 0, 0, 0) for rank in range(size)}
        self.found = []

    def run(self, seconds, own, communication=0.02, is_known=lambda rank: True):
        """`own` gives the seconds that a rank works in a step; each second the host tells how far its ranks are."""
        until, told = self.now + seconds, self.now
        while self.now < until:
            work = {rank: own(rank) for rank in self.counts}
            period = max(work.values()) + communication
            for rank, count in self.counts.items():
                known = is_known(rank)
                self.counts[rank] = count._replace(
                    steps=count.steps + 1,
                    last=count.last + round(period * SECOND),
                    own=count.own + round(work[rank] * SECOND * known),
                    own_steps=count.own_steps + known,
                )
            if self.now - told >= 1:
                told = self.now
                self.found += self.watch.hear(self.counts.values())
        return [event.rank for event in self.found]

    @property
    def now(self):
        return self.counts[0].last / SECOND


def slow(which, factor):
    return lambda rank: 0.3 * (factor if rank == which else 1)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_a_rank_that_is_persistently_slower_by_more_than_a_third_is_named_once(size):
    assert World(size).run(60, slow(1, 1.4)) == [1]


def test_it_is_named_with_its_host_and_what_it_costs_the_others():
    world = World(4)
    world.run(30, slow(3, 2.0))
    (event,) = world.found
    assert (event.host, event.rank, event.own, event.median) == ("algo-2", 3, 0.6, 0.3)
    assert event.factor == pytest.approx(0.62 / 0.32, abs=0.01)
    assert sentence(event) == (
        "rank 3 on algo-2 is slow: its own part of a step takes 0.6 s, that of the median rank 0.3 s; "
        "every step takes 1.9 times as long for it"
    )


def test_it_is_not_named_before_three_windows():
    assert World(4).run(14, slow(1, 2.0)) == []


def test_one_that_is_a_little_slower_is_not_named():
    assert World(4).run(60, slow(1, 1.25)) == []


def test_none_is_named_in_an_even_run_with_noise():
    random.seed(1)
    assert World(8).run(300, lambda rank: random.uniform(0.1, 0.5)) == []


def test_ranks_that_are_slow_by_turns_are_not_named():
    world = World(4)
    for turn in range(12):
        world.run(7, slow(turn % 4, 2.0))
    assert world.found == []


def test_where_the_own_work_of_one_rank_is_unknown_none_is_named():
    assert World(4).run(60, slow(1, 2.0), is_known=lambda rank: rank != 2) == []


def test_what_is_a_small_part_of_a_step_is_not_blamed():
    """One rank takes ten times as long for what takes a hundredth of a step."""
    assert World(4).run(60, lambda rank: 0.03 if rank == 1 else 0.003, communication=0.3) == []


def test_two_slow_ones_of_many_are_both_named():
    assert sorted(World(8).run(60, lambda rank: 0.6 if rank in (2, 5) else 0.3)) == [2, 5]


def test_a_new_process_of_a_rank_begins_anew():
    world = World(4)
    world.run(14, slow(1, 2.0))
    world.counts = {rank: count._replace(pid=200 + rank) for rank, count in world.counts.items()}
    assert world.run(12, slow(1, 2.0)) == []


def test_a_host_alone_says_nothing_of_a_rank_that_is_not_in_the_world():
    watch = StragglerWatch({0: "algo-1"})
    assert watch.hear([StepCount(None, 1, 5, 5, 0, 9, 1, 4), StepCount(7, 1, 5, 5, 0, 9, 1, 4)]) == []


def test_the_event_is_the_sentence_of_the_log():
    assert "rank 0 on algo-1 is slow" in sentence(RankSlow("algo-1", 0, 1.5, 0.3, 0.2))
