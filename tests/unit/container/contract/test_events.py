import json
from typing import get_args

import pytest
from estimator_container.contract.event import Event
from estimator_container.contract.event_decoding import KINDS, AnyEvent, decode
from estimator_container.contract.events import (
    HorovodStalled,
    RankEnded,
    RankFrozen,
    RanksDiffer,
    RanksStand,
    RankThawed,
    SaidEvent,
    WorldStarting,
)
from hypothesis import given
from hypothesis import strategies as st

OF_TYPES = {
    "str": st.text(),
    "bool": st.booleans(),
    "int": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": st.floats(allow_nan=False),
    "Sequence[str]": st.lists(st.text(), max_size=3).map(tuple),
    "Sequence[int]": st.lists(st.integers(0, 9), max_size=3).map(tuple),
    "Sequence[float]": st.lists(st.floats(allow_nan=False), max_size=3).map(tuple),
    "Sequence[int | None]": st.lists(st.none() | st.integers(0, 9), max_size=3).map(tuple),
    "Sequence[float | None]": st.lists(st.none() | st.floats(allow_nan=False), max_size=3).map(tuple),
    "Sequence[Sequence[int]]": st.lists(st.lists(st.integers(0, 9), max_size=3).map(tuple), max_size=3).map(tuple),
    "Mapping[str, object]": st.dictionaries(st.text(), st.integers() | st.text()),
    "Mapping[int, Sequence[str]]": st.dictionaries(st.integers(0, 9), st.lists(st.text(), max_size=2).map(tuple)),
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


def of_type(annotation):
    kind = annotation.removesuffix(" | None")
    return OF_TYPES[kind] if kind == annotation else st.none() | OF_TYPES[kind]


EVENTS = st.one_of(
    [st.builds(kind, **{fact: of_type(each) for fact, each in kind.types.items()}) for kind in KINDS.values()]
)


# Written.


@pytest.mark.parametrize(
    ("event", "written"),
    [
        (RankEnded(None, -9), '{"event": "rank_ended", "rank": null, "code": -9}'),
        (RankEnded(rank=3, code=0), '{"event": "rank_ended", "rank": 3, "code": 0}'),
        (RanksStand(1800.0), '{"event": "ranks_stand", "seconds": 1800.0}'),
        (RanksStand(), '{"event": "ranks_stand"}'),
        (
            WorldStarting(("algo-1",), 1, endpoints=["10.0.0.1:7"]),
            '{"event": "world_starting", "hosts": ["algo-1"], "size": 1, "endpoints": ["10.0.0.1:7"]}',
        ),
        (
            HorovodStalled(0, 60, {1: ("a", "b")}),
            '{"event": "horovod_stalled", "rank": 0, "seconds": 60, "missing": {"1": ["a", "b"]}}',
        ),
    ],
)
def test_an_event_is_written_as_its_name_and_its_facts_in_their_order(event, written):
    assert event.to_json() == written


@given(EVENTS)
def test_what_is_written_is_read(event):
    assert decode(event.to_json().encode()) == event


# As values.


def test_an_event_of_another_kind_is_another_though_its_facts_are_the_same():
    assert RankFrozen(1) == RankFrozen(1) != RankThawed(1)
    assert len({RankFrozen(1), RankFrozen(1), RankThawed(1)}) == 2
    assert repr(RankFrozen(1)) == "RankFrozen(rank=1)"


def test_an_event_cannot_be_changed():
    with pytest.raises(AttributeError, match="RankFrozen is frozen"):
        RankFrozen(1).rank = 2


@pytest.mark.parametrize("facts", [{}, {"rank": 1}, {"rank": 1, "code": 0, "cod": 0}])
def test_a_fact_that_is_missing_or_of_no_name_is_refused(facts):
    with pytest.raises(TypeError, match="RankEnded has the facts rank, code, not "):
        RankEnded(**facts)


def test_every_kind_is_one_that_type_checkers_know():
    assert set(Event.__subclasses__()) == set(get_args(AnyEvent)) == set(KINDS.values())
    assert {kind for kind in KINDS.values() if kind.is_said} == set(get_args(SaidEvent))


# Read.


@pytest.mark.parametrize(
    "facts",
    [
        {"event": "an_event_of_tomorrow"},
        {"event": "rank_ended", "rank": 1},
        {"event": "rank_ended", "rank": "1", "code": 0},
        {"event": "rank_ended", "rank": 1, "code": True},
        {"event": "rank_ended", "rank": 1, "code": 1 << 80},
        {"event": "channel_fetched", "channel": "train", "bytes": 1, "objects": 1, "seconds": 10**400},
        {"event": "horovod_stalled", "rank": 0, "seconds": 60, "missing": {"one": ["a"]}},
        {"event": ["rank_ended"]},
        {},
        [],
        "rank_ended",
        None,
    ],
)
def test_what_is_not_an_event_of_this_version_is_left_alone(facts):
    assert decode(json.dumps(facts).encode()) is None


def test_facts_of_another_version_are_left_alone():
    assert decode(b'{"event": "rank_frozen", "rank": 1, "signal": "SIGSTOP"}') == RankFrozen(1)


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"\xff", b'{"event": "rank_frozen", "rank": 1'])
def test_an_event_that_was_cut_short_is_none(data):
    assert decode(data) is None


@given(st.sampled_from(sorted(KINDS)), st.dictionaries(st.sampled_from(["rank", "groups", "missing"]), ANY_JSON))
def test_whatever_the_facts_are_there_is_an_event_or_none(name, facts):
    known = {fact: facts.get(fact, 1) for fact in KINDS[name].types}
    event = decode(json.dumps({"event": name, **known}).encode())
    assert event is None or type(event) is KINDS[name]


def test_groups_are_tuples_and_ranks_are_numbers():
    facts = {"variable": "w", "step": 5, "since": 2, "groups": [[0, 1], [2]], "standing": "free", "ends_the_job": False}
    assert decode(json.dumps({"event": "ranks_differ", **facts}).encode()) == RanksDiffer(
        "w", 5, 2, ((0, 1), (2,)), "free", False
    )
