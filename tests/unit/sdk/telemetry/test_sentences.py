from __future__ import annotations

import pytest
from estimator_container.contract import agent_events, events
from estimator_container.contract.event_decoding import KINDS

from estimator_sdk.telemetry.sentences import sentence_about

RESTORED = agent_events.CheckpointRestored(2, (), "000001-00000012", 3, 1_234_567)


def said(event):
    return sentence_about("algo-2", event)


def test_what_was_restored_is_one_line():
    assert said(RESTORED) == "checkpoints: 3 files (1.2 MB) from snapshot 000001-00000012"
    plain = agent_events.CheckpointRestored(2, (), "plain", 1, 999)
    assert said(plain) == "checkpoints: 1 file (999 B) from the plain tree"
    damaged = agent_events.CheckpointRestored(2, ("000001-00000013: its checksum is wrong",), "000001-00000012", 3, 9)
    assert said(damaged).endswith("; incomplete: 000001-00000013: its checksum is wrong")


def test_what_goes_wrong_is_a_line():
    assert said(agent_events.CheckpointLag(5_000, 12.3, ())) == "checkpoints: 5.0 kB not uploaded for 12 s"
    waits = said(agent_events.CheckpointLag(5_000, 12.3, ("log.csv",)))
    assert waits.endswith("12 s, waiting for log.csv, which is open for writing")
    assert said(agent_events.CheckpointFailed("the store is away", 1)) == "checkpoints: the store is away"


def test_outputs_that_do_not_go_up_are_lines_while_the_job_runs():
    assert said(agent_events.OutputsFailed("the store is away")) == "outputs: the store is away; trying again"
    left_out = agent_events.OutputsLeftOut(("intermediate/a\nb",), "the key 'a' is bad")
    assert said(left_out) == "outputs: not uploaded: the key 'a' is bad"


def test_a_name_that_is_no_text_is_shown_as_a_literal():
    event = agent_events.CheckpointLeftOut(("log é", "a\nb", "\x1b[2J", "\udcff"))
    assert said(event) == r"checkpoints: not saved until closed: log é, 'a\nb', '\x1b[2J', '\udcff'"
    assert r"waiting for '\udcff', which" in said(agent_events.CheckpointLag(1, 5.0, ("\udcff",)))


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (
            events.RankFrozen(3),
            "rank 3 on algo-2 was stopped from outside and will fail unless `kill -CONT` continues it",
        ),
        (events.RankThawed(None), "the script on algo-2 was continued"),
        (events.RanksStand(1800.0), "no rank on algo-2 has written anything or moved from its line for 1800 s"),
        (events.RanksStand(), "no rank on algo-2 has written anything or moved from its line"),
        (events.RanksMove(), "the ranks make progress again"),
        (events.StepStarted("train", 1, 2, "python train.py"), "step 'train', 1 of 2: python train.py"),
        (
            events.RanksLate("train", 10.0, (3,), ("algo-2",)),
            "step 'train': rank 3 on algo-2 is still running, and the others have waited 10 s",
        ),
        (
            events.RanksDiffer("dense/b", 5, 2, ((0, 1), (2,)), "free", False),
            "since step 2 the weights 'dense/b' differ, rank 2 from ranks 0 and 1: nothing in the script asks for "
            "equal weights; the job goes on",
        ),
        (
            events.HorovodStalled(0, 60, {1: ("a",)}),
            "Horovod has waited more than 60 s for rank 1 to submit 'a'",
        ),
        (events.ServiceStatus("Training", ""), "Training"),
    ],
)
def test_what_becomes_of_ranks_is_said(event, sentence):
    assert said(event) == sentence


def test_facts_that_this_version_cannot_put_into_words_are_none():
    assert said(events.RanksDiffer("w", 5, 2, ((0,), (1,)), "of tomorrow", False)) is None
    assert said(events.RanksDiffer("w", 5, 2, ((), (0,)), "free", False)) is None


def test_nothing_is_said_of_what_is_only_recorded():
    for kind in KINDS.values():
        if kind.recorded_for:
            facts = dict.fromkeys(kind.types, 1)
            assert said(kind(**facts)) is None
