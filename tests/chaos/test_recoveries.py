"""R1 and R2 under random faults; `python -m tests.chaos.recoveries --count 200` does more of them."""

from __future__ import annotations

import pytest

from . import recoveries, rounds, trainer
from .playing import image_for, own_folders
from .recoveries import recover

SEED = 20261124
ROUNDS = 4
MANY = 200


@pytest.fixture(scope="module")
def image():
    return image_for("docker")


@pytest.mark.parametrize("backend", ["process", "docker"])
@pytest.mark.parametrize("count", [ROUNDS, pytest.param(MANY, marks=pytest.mark.long)])
def test_a_job_that_is_hurt_ends_as_if_nothing_had_been(request, backend, count):
    image = request.getfixturevalue("image") if backend == "docker" else None
    print(f"seed {SEED}")
    with own_folders():
        tally = recover(backend, range(count), SEED, image)
    print(tally)
    assert tally.problems == []


def test_other_weights_are_noticed(monkeypatch):
    """So that the test above can fail."""
    monkeypatch.setattr(trainer, "undisturbed", lambda steps, ranks: [0.0])
    with own_folders():
        (problem,) = recover("process", [0], SEED, None, frozenset({"hiccup-rank"})).problems
    assert "other weights than those of an undisturbed job" in problem


def test_a_step_depends_on_all_that_came_before():
    assert trainer.undisturbed(3, 2) != trainer.undisturbed(2, 2) != trainer.undisturbed(2, 1)


def test_a_round_is_the_same_again_by_its_seed_and_number():
    chosen = recoveries.possible("process")
    one, other = (
        [rounds.drawn(number, SEED, "process", chosen, recoveries.fits) for number in range(50)] for _ in range(2)
    )
    assert one == other
    assert {each.fault for each in one} == chosen
