from __future__ import annotations

from estimator_container.agents.channels.shares import ordered, shares
from estimator_container.storage import Object
from hypothesis import given
from hypothesis import strategies as st

LISTINGS = st.dictionaries(st.text(min_size=1), st.integers(0, 1 << 40)).map(
    lambda sizes: [Object(key, size, "") for key, size in sizes.items()]
)
SEEDS = st.none() | st.integers(0, 1 << 63)


@given(LISTINGS, st.integers(1, 9), SEEDS, st.integers(0, 3))
def test_every_object_is_in_exactly_one_share(objects, hosts, seed, epoch):
    found = shares(objects, hosts, seed, epoch)
    assert len(found) == hosts
    assert sorted((each for share in found for each in share), key=lambda each: each.key) == sorted(
        objects, key=lambda each: each.key
    )


@given(LISTINGS, st.integers(1, 9), SEEDS, st.integers(0, 3))
def test_no_two_shares_differ_by_more_than_the_largest_object(objects, hosts, seed, epoch):
    weights = [sum(each.size for each in share) for share in shares(objects, hosts, seed, epoch)]
    assert max(weights) - min(weights) <= max((each.size for each in objects), default=0)


@given(LISTINGS, st.integers(1, 9), SEEDS, st.randoms())
def test_the_order_of_the_listing_does_not_matter(objects, hosts, seed, random):
    shuffled = list(objects)
    random.shuffle(shuffled)
    assert shares(shuffled, hosts, seed) == shares(objects, hosts, seed)


@given(LISTINGS, st.integers(1, 9))
def test_without_a_seed_each_share_is_in_the_order_of_the_keys(objects, hosts):
    for share in shares(objects, hosts):
        keys = [each.key.encode() for each in share]
        assert keys == sorted(keys)


@given(LISTINGS, st.integers(0, 1 << 63), st.integers(0, 3))
def test_a_shuffle_keeps_every_object(objects, seed, epoch):
    assert sorted(ordered(objects, seed, epoch), key=lambda each: each.key) == sorted(
        objects, key=lambda each: each.key
    )


def test_equal_objects_are_shared_by_their_number():
    objects = [Object(f"{number:02d}", 0, "") for number in range(10)]
    assert [len(share) for share in shares(objects, 3)] == [4, 3, 3]


def test_a_seed_gives_this_very_order():
    objects = [Object(letter, 1, "") for letter in "abcdefgh"]
    assert ["".join(each.key for each in ordered(objects, 7, epoch)) for epoch in range(2)] == ["gdcbhaef", "hdgcfbea"]
