"""Which advice is worth a run, and what it should gain."""

import json

import pytest

from estimator_sdk.job.diagnosis import input_look, trials
from estimator_sdk.job.diagnosis.comparison import Comparison, RunRates, Tried, Way
from estimator_sdk.job.diagnosis.diagnosis import Diagnosis
from estimator_sdk.job.diagnosis.input_look import InputCause
from estimator_sdk.job.diagnosis.machine_load import HostLoad
from estimator_sdk.job.diagnosis.shares import RankShares
from estimator_sdk.job.diagnosis.trials import Trial


def diagnosis(input_share, checkpoint=None, *, step=0.1, ranks=1, causes=(), cpus=4.0, free=0.0):
    of_ranks = tuple(
        RankShares("algo-1", rank, 100, 100 * step, input_share, None, checkpoint, 0.0) for rank in range(ranks)
    )
    load = HostLoad("algo-1", cpus, 0.5, 0.0, free=free)
    return Diagnosis("job", "Stopped", None, tuple(causes), "", of_ranks, (load,))


def told(pid=1, child=False, **facts):
    line = {
        "rank": "0",
        "pid": pid,
        "child": child,
        "looks": 100,
        "doing": {"decode": 100},
        "places": {"decode train.py:7 decode(sample)": 100},
        "threads": 100,
        "seconds": 10.0,
        "cpu": 5.0,
        "input_seconds": 5.0,
        "input_cpu": 0.0,
        "input_process_cpu": 0.0,
        "input_waits": 0,
        "late": 0.0,
        "checkpoint_cpu": 0.0,
        "opened": 0,
        "read": 0,
        "loader": {"by": "DataLoader", "workers": 0, "can_share": True},
        "making": {},
        "modules": ["torch"],
        "cpus": 4,
    }
    return json.dumps({**line, **facts})


def look(**facts):
    return input_look.merged([told(**facts)])


def only(found):
    (trial,) = found
    return trial


def test_a_worker_that_sleeps_instead_of_the_script_hides_what_it_waits_for():
    trial = only(trials.worth_trying(diagnosis(0.4), look()))
    assert trial.words == ("workers=1",)
    assert trial.predicted == pytest.approx(1 / 0.6)


def test_there_are_as_many_workers_as_make_batches_fast_enough():
    assert only(trials.worth_trying(diagnosis(0.8), look())).words == ("workers=8",)


def test_workers_share_the_cpus_with_the_ranks():
    """80 ms of CPU for a batch and 20 ms for the rest, on two CPUs: 50 ms at least, instead of 100."""
    trial = only(trials.worth_trying(diagnosis(0.8, cpus=2.0), look(input_process_cpu=5.0)))
    assert trial.predicted == pytest.approx(2.0)


def test_ranks_of_a_host_share_its_cpus():
    one = only(trials.worth_trying(diagnosis(0.8, cpus=4.0), look(input_process_cpu=5.0)))
    two = only(trials.worth_trying(diagnosis(0.8, cpus=4.0, ranks=2), look(input_process_cpu=5.0)))
    assert (one.predicted, two.predicted) == (pytest.approx(4.0), pytest.approx(2.0))


def test_workers_that_are_there_are_counted_in():
    """Two workers that give a batch each 0.1 s need 0.2 s for one: four give 20 a second."""
    looked = input_look.merged([told(loader={"by": "DataLoader", "workers": 2, "can_share": True})])
    trial = only(trials.worth_trying(diagnosis(0.5), looked))
    assert trial.words == ("workers=8",)
    assert trial.predicted == pytest.approx(2.0)


def test_samples_that_only_iterate_get_no_workers():
    facts = {"by": "DataLoader", "workers": 0, "can_share": False}
    assert trials.worth_trying(diagnosis(0.4), look(loader=facts)) == ()


def test_a_thread_that_reads_ahead_gains_what_is_waited_without_a_cpu():
    facts = {"by": "timed_input"}
    trial = only(trials.worth_trying(diagnosis(0.4), look(loader=facts)))
    assert (trial.words, trial.predicted) == (("prefetch=4",), pytest.approx(1 / 0.6))
    assert trials.worth_trying(diagnosis(0.4), look(loader=facts, input_process_cpu=5.0)) == ()


def test_a_thread_that_reads_ahead_gets_its_turn_late_where_the_steps_keep_the_interpreter():
    """60 ms of input with 60 waits: each is half a millisecond late while the rank computes, in 40 of 71 ms."""
    looked = look(loader={"by": "timed_input"}, input_waits=5000, late=0.0005)
    trial = only(trials.worth_trying(diagnosis(0.6), looked))
    assert trial.predicted == pytest.approx(100 / (60 + 30 * 40 / 76), rel=0.02)


def test_calls_of_map_are_as_many_as_cpus():
    trial = only(trials.worth_trying(diagnosis(0.8, cpus=2.0), look(loader={"by": "tf.data"}, input_process_cpu=5.0)))
    assert trial.predicted == pytest.approx(2.0)


def test_where_a_graph_waits_what_the_rank_works_beyond_computing_is_making_batches():
    facts = {"loader": {"by": "tf.data"}, "looks": 0, "doing": {}, "input_seconds": 0.0}
    computes = only(trials.worth_trying(diagnosis(0.8, cpus=2.0), look(**facts, cpu=10.0)))
    sleeps = only(trials.worth_trying(diagnosis(0.8, cpus=4.0), look(**facts, cpu=2.0)))
    assert computes.predicted == pytest.approx(2.0)
    assert sleeps.predicted == pytest.approx(5.0)


def test_samples_that_fit_into_memory_are_kept_and_the_pass_that_makes_them_is_not_counted():
    looked = look(loader={"by": "tf.data", "batches": 16, "bytes": 400}, input_process_cpu=5.0)
    kept = only(trials.worth_trying(diagnosis(0.6, cpus=1.0, ranks=2, free=2000.0), looked, 3.0))
    assert (kept.words, kept.steps_before, kept.predicted) == (("keep",), 16, 3.0)
    kept = trials.worth_trying(diagnosis(0.6, free=2000.0), looked)[-1]
    assert kept.predicted == pytest.approx(2.5)
    assert all(trial.words != ("keep",) for trial in trials.worth_trying(diagnosis(0.6, ranks=3, free=2000.0), looked))


def test_what_fit_is_given_is_kept_and_it_goes_on_with_one_iterator():
    looked = look(loader={"by": "tf.data", "given": "TFDatasetAdapter", "batches": 16, "bytes": 400})
    kept = trials.worth_trying(diagnosis(0.6, free=2000.0), looked)[-1]
    assert kept.words == ("keep", "go-on")
    assert "`steps_per_epoch`" in kept.how


def of_fit(given, made=200, size=1000, **facts):
    """A look of 10 s, in which Python made so much of so many bytes in 1 s."""
    making = {"count": made, "bytes": made * size, "seconds": 1.0, "cpu": 0.5}
    loader = {"by": "tf.data", "given": given, "waits_in_turn": False}
    return look(loader=loader, making=making, **facts)


def test_fit_goes_on_with_one_iterator_and_takes_from_python_many_batches_at_once():
    """A step of 100 ms takes 40 with the first batch replayed; Python makes its batch in 10, 5 of them computing."""
    trial = only(trials.worth_trying(diagnosis(0.3, free=1e9), of_fit("PyDatasetAdapter"), 2.5))
    assert trial.words == ("go-on", "stack=64")
    assert (trial.predicted, trial.is_bound) == (pytest.approx(100 / 45), False)


def test_no_more_batches_at_once_than_fit_into_memory_three_times():
    """Half of 6,000 bytes, for each of two ranks, is one batch of 1,000 three times over, or of 100 five times."""
    large, small = of_fit("PyDatasetAdapter"), of_fit("PyDatasetAdapter", size=100)
    found = diagnosis(0.3, ranks=2, free=6000.0)
    assert only(trials.worth_trying(found, large, 2.5)).words == ("go-on",)
    assert only(trials.worth_trying(found, small, 2.5)).words == ("go-on", "stack=5")


def test_arrays_need_no_python_and_a_generator_no_other_iterator():
    found = diagnosis(0.3, free=1e9)
    assert only(trials.worth_trying(found, of_fit("ArrayDataAdapter", made=0), 2.5)).words == ("go-on",)
    assert only(trials.worth_trying(found, of_fit("GeneratorDataAdapter"), 2.5)).words == ("stack=64",)


def test_of_what_else_a_pipeline_does_nothing_is_foretold():
    trial = only(trials.worth_trying(diagnosis(0.3, free=1e9), of_fit("TFDatasetAdapter"), 2.5))
    assert (trial.words, trial.is_bound) == (("stack=64",), True)


def test_nothing_is_made_in_parallel_where_nothing_is_mapped_in_turn():
    assert trials.worth_trying(diagnosis(0.3, free=1e9), of_fit("TFDatasetAdapter", made=0), 2.5) == ()


def test_checkpoints_in_the_background_gain_what_is_no_work_of_a_cpu():
    """A third of each step is checkpoints; of these, a quarter is computing."""
    looked = look(loader={}, checkpoint_cpu=10 / 12)
    background, seldom = trials.worth_trying(diagnosis(None, 1 / 3), looked)
    assert background.predicted == pytest.approx(1 / (1 - 0.25))
    assert seldom.predicted == pytest.approx(1 / (1 - 0.25))


def test_checkpoints_in_the_background_take_as_long_as_they_take():
    background, _ = trials.worth_trying(diagnosis(None, 0.8), look(loader={}))
    assert background.predicted == pytest.approx(1 / 0.8)


def test_nothing_is_tried_where_nothing_is_to_be_gained_or_known():
    assert trials.worth_trying(diagnosis(0.01, 0.01), look()) == ()
    assert trials.worth_trying(diagnosis(0.5), None) == ()


def test_what_two_things_save_adds_up():
    first, second = Trial("a", "", 1 / 0.7, ("a",)), Trial("b", "", 1 / 0.8, ("b",))
    both = trials.together([first, second], diagnosis(0.8))
    assert (both.words, both.predicted) == (("a", "b"), pytest.approx(1 / 0.5))
    assert trials.together([first], diagnosis(0.8)) is None


def test_what_two_things_save_of_the_same_does_not_add_up():
    first, second = Trial("a", "", 2.0, kind="input"), Trial("b", "", 4.0, kind="input", steps_before=7)
    third = Trial("c", "", 1 / 0.9, kind="checkpoint")
    both = trials.together([first, second, third], diagnosis(0.8, 0.1))
    assert (both.predicted, both.steps_before) == (pytest.approx(1 / 0.15), 7)


def test_all_together_saves_no_more_of_input_than_replaying_the_first_batch():
    loading, saving = Trial("a", "", 4.0, kind="input"), Trial("b", "", 1 / 0.9, kind="checkpoint")
    both = trials.together([loading, saving], diagnosis(0.8, 0.1), 1 / 0.5)
    assert both.predicted == pytest.approx(1 / 0.4)


@pytest.mark.parametrize(("replayed", "predicted"), [(None, 1 / 0.3), (5.0, 5.0)])
def test_all_together_leaves_the_computing(replayed, predicted):
    """Each bound may be as high as that, but not the sum of both: 30 % of a step is computing."""
    loading, threads = Trial("a", "", 5.0, kind="input"), Trial("b", "", 4.0, is_bound=True)
    both = trials.together([loading, threads], diagnosis(0.7), replayed)
    assert both.predicted == pytest.approx(predicted)


def tried(real, rates, predicted=2.0):
    return Tried(Trial("2 workers", "`num_workers=2`", predicted), RunRates(real), RunRates(rates))


def words(*tries, real=(5.0, 5.1), replayed=(10.0, 10.1)):
    rates = {Way.REAL: real, Way.REPLAYED: replayed}
    return Comparison(rates, 1, diagnosis(0.5), look(), tries).lines()


def test_what_was_predicted_stands_beside_what_came_of_it():
    said = words(tried((5.0, 5.1), (9.9, 10.0)))
    assert "2 workers  2.00x      1.97x (1.94 to 2.00)  helps: `num_workers=2`" in said
    assert "With 2 workers, nothing above 2 % of the rate with the first batch replayed is lost." in said


def test_how_long_a_step_still_waits_for_input_is_said():
    best = Tried(Trial("2 workers", "", 2.0), RunRates((5.0, 5.1)), RunRates((9.9, 10.0)), (0.01, 0.02, 0.013))
    last = "With 2 workers, nothing above 2 % of the rate with the first batch replayed is lost, and 1.3 % of a step"
    assert any(line.startswith(last) for line in words(best))


@pytest.mark.parametrize("rates", [(5.0, 6.0), (5.11, 5.12), (4.0, 4.1)], ids=["spread", "little", "slower"])
def test_what_does_not_help_is_said(rates):
    assert any(
        line.startswith("2 workers") and line.endswith("does not help") for line in words(tried((5.0, 5.1), rates))
    )


def test_there_may_be_nothing_to_try():
    assert "Nothing to try: no advice that the doctor can apply promises more than 2 %." in words()


def test_the_place_of_what_loads_is_named():
    said = " ".join(words())
    assert "Why: 100 % of what loads is making samples, which waits without using a CPU" in said
    assert "at train.py:7 decode(sample)" in said


def test_where_a_rank_waits_for_its_workers_they_tell_what_takes_the_time():
    rank = told(doing={"waiting": 90, "decode": 10}, places={})
    workers = [
        told(pid, True, doing={"waiting": 50, "store": 40, "decode": 10}, places={"store d.py:3 get()": 40})
        for pid in (2, 3)
    ]
    found = input_look.merged([rank, *workers])
    assert found.doing == {"decode": pytest.approx(0.28), "store": pytest.approx(0.72)}
    assert (found.named(), found.place, found.children) == (InputCause.STORE, "d.py:3 get()", 2)


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({}, InputCause.DECODE),
        ({"doing": {"augmentation": 60, "decode": 40}}, InputCause.AUGMENTATION),
        ({"doing": {"files": 90}, "opened": 5000, "read": 5000 * 600}, InputCause.SMALL_FILES),
        ({"doing": {"files": 90}, "opened": 10, "read": 10 << 30}, InputCause.FILES),
        ({"doing": {"store": 90}}, InputCause.STORE),
        ({"threads": 200, "input_process_cpu": 5.0}, InputCause.LOCK),
        ({"looks": 5}, None),
        ({"doing": {"waiting": 100}}, None),
    ],
)
def test_the_cause_is_named_by_what_is_done_most(facts, cause):
    assert look(**facts).named() is cause


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"loader": {"by": "tf.data"}, "input_process_cpu": 4.0}, InputCause.CPUS),
        ({"loader": {"by": "tf.data"}, "input_process_cpu": 0.1}, InputCause.DECODE),
        ({"loader": {"by": "timed_input"}, "input_process_cpu": 4.0}, InputCause.DECODE),
    ],
)
def test_who_computes_beside_the_steps_on_a_busy_host_waits_for_its_cpus(facts, cause):
    busy, idle = HostLoad("algo-1", 2.0, 0.99, 0.0), HostLoad("algo-1", 2.0, 0.3, 0.0)
    assert look(**facts).named([busy]) is cause
    assert look(**facts).named([idle]) is InputCause.DECODE


@pytest.mark.parametrize(("cpu", "cause"), [(9.0, InputCause.CPUS), (0.1, InputCause.DECODE)])
def test_so_do_workers_that_compute(cpu, cause):
    workers = told(2, True, cpu=cpu)
    found = input_look.merged([told(doing={"waiting": 90}, places={}), workers])
    assert found.named([HostLoad("algo-1", 2.0, 0.99, 0.0)]) is cause


def test_the_last_line_of_a_process_counts_and_one_that_is_cut_off_does_not():
    found = input_look.merged([told(looks=10), told(looks=50), told(looks=90)[:40]])
    assert found.looks == 50
    assert input_look.merged([]) is None


def test_json_has_what_was_tried():
    document = Comparison({Way.REAL: [5.0]}, 1, diagnosis(0.5), look(), [tried((5.0,), (10.0,))]).to_json()
    assert document["tried"][0]["verified"] == {"gain": 2.0, "least": 2.0, "most": 2.0}
    assert document["input"]["cause"] == "decoding"
    json.dumps(document)
