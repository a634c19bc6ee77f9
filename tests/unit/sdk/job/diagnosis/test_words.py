"""A diagnosis as people read it, and as programs do."""

import json

from estimator_sdk.job.diagnosis import causes, shares
from estimator_sdk.job.diagnosis.diagnosis import Diagnosis
from estimator_sdk.job.diagnosis.shares import SEEN, RankShares
from estimator_sdk.job.diagnosis.step_records import StepSample
from estimator_sdk.job.diagnosis.words import MOST_RANKS, WIDTH


def rank(number, input=0.3, **facts):
    facts = {"communication": 0.1, "checkpoint": None, "idle": 0.05, "steps": 200, "seconds": 40.0, **facts}
    return RankShares(host="algo-1", rank=number, input=input, **facts)


def diagnosis(*ranks, thin=""):
    spent = {
        each: [None if (share := each.share(kind)) is None else share * each.seconds for kind in SEEN] for each in ranks
    }
    samples = {(each.host, each.rank): [StepSample(each.steps, each.seconds, *spent[each])] for each in ranks}
    found = () if thin else causes.find(ranks, samples)
    name = None if thin else causes.input_class(shares.mean(ranks, "input"))
    return Diagnosis("train-1", "Completed", name, found, thin, ranks, ())


def test_words_come_first_and_then_a_line_for_each_rank():
    lines = str(diagnosis(rank(0), rank(1, checkpoint=0.02))).splitlines()
    assert lines[:2] == [
        "train-1 (Completed): 200 steps of 0.2 s on 2 ranks",
        "Highly input bound: 30 % of a step is waiting for input.",
    ]
    head = next(number for number, line in enumerate(lines) if line.split()[:2] == ["rank", "host"])
    assert lines[head].split() == "rank host steps a step input computing communicating checkpointing idle".split()
    assert lines[head + 1].split() == "0 algo-1 200 0.2 s 30.0 % 55.0 % 10.0 % - 5.0 %".split()
    assert lines[head + 2].split() == "1 algo-1 200 0.2 s 30.0 % 53.0 % 10.0 % 2.0 % 5.0 %".split()
    assert lines[-1].startswith("- is not known")


def test_each_cause_has_what_could_be_gained_and_what_to_try():
    text = str(diagnosis(rank(0)))
    assert "\n  Without it steps would be at most 1.4 times as fast.\n  What to try: load with more workers" in text


def test_a_job_without_a_bottleneck_is_told_so_with_what_could_be_gained_at_the_most():
    said = str(diagnosis(rank(0, 0.01, communication=0.02, idle=0.0)))
    assert "Not input bound: 1 % of a step is waiting for input.\n" in said
    assert "No bottleneck" in said and "no more than 2 % could be gained" in said.replace("\n", " ")


def test_thin_evidence_is_said_and_nothing_else():
    said = str(diagnosis(rank(0), thin="too little has been seen")).splitlines()
    assert said[1] == "too little has been seen"
    assert not [line for line in said if "bound" in line or "What to try" in line]


def test_where_waiting_for_input_is_not_known_it_says_how_it_becomes_so():
    said = str(diagnosis(rank(0, input=None)))
    assert "timed_input" in said and "No bottleneck" not in said


def test_it_fits_a_screen_however_many_ranks_there_are():
    many = [rank(number, 0.3 if number != 77 else 0.9, communication=0.0, idle=0.0) for number in range(200)]
    lines = str(diagnosis(*many)).splitlines()
    assert len(lines) < MOST_RANKS + 16
    assert any(line.split()[0] == "77" for line in lines if line)
    assert max(map(len, lines)) <= WIDTH
    assert lines[-2] == f"and {200 - MOST_RANKS} more, which differ less from the others (--json has all)"


def test_json_has_the_same_in_numbers():
    document = json.loads(json.dumps(diagnosis(rank(0)).to_json()))
    assert document["input_class"] == "highly input bound"
    assert document["ranks"] == [
        {
            "host": "algo-1",
            "rank": 0,
            "steps": 200,
            "seconds": 0.2,
            "input": 0.3,
            "communication": 0.1,
            "checkpoint": None,
            "idle": 0.05,
            "computing": 0.55,
        }
    ]
    assert [(cause["kind"], cause["share"], cause["most_gain"]) for cause in document["causes"]] == [
        ("input", 0.3, 1.429),
        ("communication", 0.1, 1.111),
    ]
