from __future__ import annotations

from estimator_container.contract import agent_events

from estimator_sdk.telemetry.kept import Kept


def published(number):
    return agent_events.CheckpointPublished(f"000001-{number:08}", 3, 1_200_000, 10, 0.1)


def test_of_many_snapshots_the_last_is_named_and_none_is_said():
    kept = Kept()
    assert kept.checkpoints == ""
    assert [kept.take(published(number)) for number in range(1000)] == [None] * 1000
    assert kept.checkpoints == "1000 snapshots, the last 000001-00000999 (3 files, 1.2 MB)"


def test_after_a_failure_or_a_wait_the_next_snapshot_is_said_once():
    kept = Kept()
    for trouble in (agent_events.CheckpointFailed("the store is away", 1), agent_events.CheckpointLag(1, 5.0, ())):
        assert kept.take(trouble) is None
        assert kept.take(published(1)) == "checkpoints: snapshot 000001-00000001 is in the store"
        assert kept.take(published(2)) is None


def test_after_a_failure_the_next_upload_is_said_once():
    kept = Kept()
    uploaded = agent_events.OutputsUploaded(("intermediate/a", "intermediate/b"))
    told = [uploaded, agent_events.OutputsFailed("the store is away"), uploaded, uploaded]
    assert [kept.take(event) for event in told] == [None, None, "outputs: 2 files uploaded", None]
