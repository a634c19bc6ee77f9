"""How a job gets the leases on all its machines, or waits for all of them."""

from __future__ import annotations

import json

import pytest
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.ssh.on_host import words
from estimator_sdk.backends.ssh.on_host.room.claims import Claims, Terms
from estimator_sdk.backends.ssh.on_host.room.leases import Ticket


class Machines:
    """Keepers that answer in the loop; `held` are those on which somebody else has the slots."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.held: set[str] = set()
        self.said: list[tuple[str, str]] = []
        terms = Terms("job", Ticket(1.0, "job"), 2, {"m1": 2, "m2": None})
        self.claims = Claims(self.loop, self.take, lambda machine: f"user@{machine}", terms)

    def take(self, machine: str, kind: str, *fields: str) -> None:
        self.said.append((machine, kind))
        if kind == words.CLAIM:
            limit = {"m1": 2, "m2": None}.get(machine, 0)
            assert json.loads(fields[0]) == {"job": "job", "ticket": [1.0, "job"], "slots": 2, "limit": limit}
        self.loop.after(0.0, lambda: self.answer(machine, kind))

    def answer(self, machine: str, kind: str = "") -> None:
        if machine in self.held:
            self.claims.hear(machine, words.FULL, "x has 2")
        else:
            self.claims.hear(machine, words.HELD if kind == words.TAKE else words.FREE, "")

    def hold(self, waits: bool, told: list[str] | None = None) -> str:
        return self.claims.hold(["m1", "m2"], waits, lambda: False, [].append if told is None else told.append)

    def later(self, change) -> None:
        self.loop.after(0.01, change)


@pytest.fixture
def machines():
    return Machines()


def test_leases_are_held_on_all_machines_and_once(machines):
    assert machines.hold(waits=False) == ""
    assert machines.hold(waits=False) == ""
    assert machines.said == [("m1", "claim"), ("m2", "claim"), ("m1", "take"), ("m2", "take")]


def test_who_does_not_wait_is_told_who_is_before_it_and_holds_nothing(machines):
    machines.held.add("m2")
    assert machines.hold(waits=False) == "user@m2: x has 2"
    assert ("m1", words.TAKE) not in machines.said


def test_who_waits_holds_nothing_until_there_is_room_on_all(machines):
    machines.held.add("m2")
    told: list[str] = []

    def leave() -> None:
        assert ("m1", words.TAKE) not in machines.said
        machines.held.clear()
        machines.answer("m2")

    machines.later(leave)
    assert machines.hold(True, told) == ""
    assert told == ["user@m2: x has 2"]
    assert machines.said[-2:] == [("m1", "take"), ("m2", "take")]


def test_what_was_held_is_given_back_when_another_was_quicker_elsewhere(machines):
    answer = machines.answer

    def quicker(machine: str, kind: str = "") -> None:
        if machines.said.count(("m2", words.TAKE)) == 1 and (machine, kind) == ("m2", words.TAKE):
            machines.held.add("m2")
            machines.later(lambda: (machines.held.clear(), answer("m2")))
        answer(machine, kind)

    machines.answer = quicker
    assert machines.hold(waits=True) == ""
    assert ("m1", words.GIVE_BACK) in machines.said


def test_a_machine_that_is_lost_is_waited_for_no_more(machines):
    machines.held.add("m2")
    machines.later(lambda: machines.claims.lost("m2"))
    assert machines.hold(waits=True) == ""


def test_a_machine_in_the_place_of_another_is_held_without_a_limit(machines):
    machines.claims.take("m3")
    assert machines.said == [("m3", words.CLAIM), ("m3", words.TAKE)]
