"""The timeline that the console shows: what the trace has, in rows of a bounded size."""

from __future__ import annotations

import pytest
from estimator_container.contract import agent_events, events

from estimator_sdk.server.jobs.timeline_rows import MOST_OTHERS, MOST_STEP_SLICES, TimelineRows

BEGIN = 1.7e9


def told(*happened) -> dict[str, dict]:
    """The rows by the host and their name."""
    rows = TimelineRows()
    for host, seconds, event in happened:
        rows.take(host, BEGIN + seconds, event)
    return {f"{row['host']} {row['name']}": row for row in rows.to_json()}


def steps(rank: int, count: int, last: float) -> events.TrainingSteps:
    return events.TrainingSteps([rank], [count], [count], [BEGIN], [BEGIN + last])


def test_hosts_come_first_and_what_has_not_ended_has_no_end():
    rows = told(
        ("algo-2", 0.0, events.PhaseStarted("world")),
        ("algo-1", 0.0, events.PhaseStarted("world")),
        ("algo-1", 1.0, events.RankStarted(0)),
        ("algo-1", 2.0, events.PhaseEnded("world", 2.0)),
        ("algo-2", 3.0, events.RankStarted(1)),
        ("algo-2", 4.0, events.RankEnded(1, 7)),
    )
    assert list(rows) == ["algo-1 phases", "algo-2 phases", "algo-1 rank 0", "algo-2 rank 1"]
    (world,) = rows["algo-1 phases"]["slices"]
    assert (world["kind"], world["began"], world["ended"]) == ("phase", BEGIN, BEGIN + 2)
    assert rows["algo-2 phases"]["slices"][0]["ended"] is None
    assert rows["algo-1 rank 0"]["slices"][0]["ended"] is None
    assert rows["algo-2 rank 1"]["slices"][0]["code"] == 7


@pytest.mark.parametrize("tellings", [1, MOST_STEP_SLICES, 10 * MOST_STEP_SLICES + 7])
def test_slices_of_steps_stay_few_and_lose_no_step(tellings):
    rows = told(*(("algo-1", 2.0 * number, steps(0, 1 + 4 * number, 2.0 * number)) for number in range(tellings + 1)))
    found = rows["algo-1 rank 0"]["steps"]
    assert len(found) <= MOST_STEP_SLICES
    assert sum(each["steps"] for each in found) == 4 * tellings
    assert [each["mean"] for each in found] == [pytest.approx(0.5)] * len(found)
    assert (found[0]["began"], found[-1]["ended"], found[-1]["last"]) == (
        BEGIN,
        BEGIN + 2.0 * tellings,
        1 + 4 * tellings,
    )
    assert len({each["steps"] for each in found[:-1]}) <= 1


def test_of_checkpoints_the_newest_are_kept():
    published = (agent_events.CheckpointPublished(f"{number:04}", 1, 10, 10, 0.5) for number in range(3 * MOST_OTHERS))
    (row,) = told(*(("algo-1", float(number), each) for number, each in enumerate(published))).values()
    assert len(row["slices"]) == MOST_OTHERS
    assert row["slices"][-1]["name"] == f"checkpoint {3 * MOST_OTHERS - 1:04}"
