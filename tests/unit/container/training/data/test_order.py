from estimator_container.data.order import Division, EpochOrder, SamplePlace
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.container.training.data.folders import flat

worlds = st.integers(1, 9)
batch_sizes = st.integers(1, 9)


def numbers(intervals):
    return [number for start, end in intervals for number in range(start, end)]


def all_batches(division, steps=None):
    return [
        division.batch(rank, step)
        for rank in range(division.world_size)
        for step in range(division.steps if steps is None else steps)
    ]


@given(st.integers(1, 300), worlds, batch_sizes)
def test_each_sample_goes_to_one_rank_in_one_step(samples, world, batch):
    division = Division(((0, samples),), world, batch)
    assert sorted(flat(all_batches(division))) == list(range(samples))


@given(st.integers(1, 300), worlds, batch_sizes)
def test_no_batch_is_empty_or_too_large(samples, world, batch):
    division = Division(((0, max(samples, world)),), world, batch)
    sizes = [len(each) for each in all_batches(division)]
    assert min(sizes) >= 1
    assert max(sizes) <= (batch if batch > 1 else 2)


@given(st.integers(1, 300), worlds, batch_sizes, worlds, batch_sizes, st.data())
def test_what_is_left_goes_to_another_world_without_repeats_or_gaps(samples, world, batch, other, size, data):
    division = Division(((0, samples),), world, batch)
    steps = data.draw(st.integers(0, division.steps))
    again = Division(division.left_after(steps), other, size)
    had = flat(all_batches(division, steps))
    assert sorted(had + flat(all_batches(again))) == list(range(samples))
    once_more = again.left_after(data.draw(st.integers(0, again.steps)))
    assert numbers(once_more) == sorted(set(numbers(once_more)))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.none() | st.integers(), st.integers(1, 4))
def test_an_epoch_has_every_sample_of_every_shard_once(sizes, seed, together):
    order = EpochOrder(sizes, seed, 0, together)
    found = [order.place(number) for number in range(sum(sizes))]
    assert sorted(found) == [SamplePlace(shard, each) for shard, size in enumerate(sizes) for each in range(size)]
    if seed is None:
        assert found == sorted(found)


def test_epochs_differ_and_are_the_same_again():
    one, other, again = (EpochOrder([8, 8], 7, epoch, 1) for epoch in (0, 1, 0))
    places = [[each.place(number) for number in range(16)] for each in (one, other, again)]
    assert places[0] != places[1]
    assert places[0] == places[2]


def test_only_so_many_shards_are_needed_at_once():
    order = EpochOrder([10] * 9, 7, 0, 3)
    for number in range(90):
        assert order.place(number).shard in order.shards(order.group_of(number))
    assert len(order.shards(0)) == 3
    assert order.shards(3) == ()
