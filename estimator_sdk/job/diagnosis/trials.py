"""Advice that can be tried without changing the script, and by how much the steps should be faster with it: on what a
rank does by itself. `world_trials` has what ranks do to each other.

A step takes as long as the longest of what goes on at the same time: the rank's own work, the making of batches by
those who make them, and all the work of CPUs divided by the CPUs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from estimator_container.training.trials import words

from .diagnosis import Diagnosis
from .input_look import InputLook
from .shares import Kind, RankShares

LEAST_GAIN = 1.02
"""What promises less is not tried, and what gives less does not help."""
LEAST_INPUT, LEAST_CHECKPOINT = 0.02, 0.02
WORKERS = (1, 2, 4, 8, 16)
SPARE = 0.8
"""Workers should need no more than so much of a step for a batch, as not all of these take equally long."""
AHEAD = 4
"""Batches that are read ahead."""
MOST_KEPT = 0.5
"""Of the memory that nobody uses on a host, so much may be taken to keep samples."""
MOST_STACKED, STACKS = 64, 3
"""Batches that Python hands over at once, and how many times these are in memory: used, waiting, and being made."""
STACKING = (
    "let what makes them in Python yield many in one, by `numpy.stack`, and TensorFlow take them apart, by `.unbatch()`"
)
REPEATED = ("PyDatasetAdapter", "ArrayDataAdapter")
"""What takes things that `fit` is given, and makes a dataset of them that is iterated anew for each epoch."""
EVERY = 4


@dataclass(frozen=True)
class Trial:
    """One piece of advice."""

    what: str
    how: str
    """What to write in the script, or around it."""
    predicted: float
    """How many times as fast the steps should be."""
    words: tuple[str, ...] = ()
    """What the ranks of such a run are told, as `training.trials.words` has it."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables that the script gets besides."""
    is_bound: bool = False
    """Whether it is only known that it is no more than that."""
    kind: Kind | None = None
    """What of a step it makes shorter, where that is known."""
    steps_before: int = 0
    """Steps that are not counted, because they are not faster yet."""

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class _Step:
    """A step of the mean rank, in seconds, and of these what a CPU worked."""

    whole: float
    input: float
    checkpoint: float
    making: float
    """CPU that the batch of a step takes."""
    python: float
    python_cpu: float
    """What Python takes to make what `tf.data` takes from it in a step, and of a CPU."""
    saving: float
    """CPU that the checkpoint of a step takes."""
    cpus: float
    """That there are for each rank."""
    free: float
    """Bytes of memory that nobody uses, for each rank."""

    @property
    def rest(self) -> float:
        return self.whole - self.input

    def gain(self, step: float) -> float:
        """How many times as fast steps of that length are."""
        return self.whole / max(step, 1e-9)


def worth_trying(found: Diagnosis, look: InputLook | None, replayed: float | None = None) -> tuple[Trial, ...]:
    """What is worth a run, by a diagnosis and by what was seen of loading in another run; empty where nothing is.

    `replayed` is how many times as fast the script was with the first batch replayed, where that is known.
    """
    if look is None or found.thin or not found.ranks:
        return ()
    step = _step(found, look)
    candidates = [*_loading(step, look, replayed), *_saving(step, look)]
    return tuple(trial for trial in candidates if trial.predicted >= LEAST_GAIN)


def together(helped: Sequence[Trial], found: Diagnosis, replayed: float | None = None) -> Trial | None:
    """All that has helped in one run; None for fewer than two things.

    What they save adds up where it is not the same; of that, no more can be saved than the best of them does, and of
    waiting for input no more than replaying the first batch saves. Whatever the sum says, computing takes as long as
    before, unless that was quicker with the first batch replayed.
    """
    if len(helped) < 2:
        return None
    saved: dict[object, float] = {}
    for trial in helped:
        of = trial.kind or trial
        saved[of] = max(saved.get(of, 0.0), 1 - 1 / trial.predicted)
    shortest = statistics.mean(rank.computing for rank in found.ranks)
    if replayed is not None:
        saved["input"] = min(saved.get("input", 0.0), max(0.0, 1 - 1 / replayed))
        shortest = min(shortest, 1 / replayed)
    return Trial(
        "all that helped together",
        "do all of these",
        1 / max(0.01, shortest, 1 - sum(saved.values())),
        tuple(word for trial in helped for word in trial.words),
        tuple(dict(pair for trial in helped for pair in trial.environment).items()),
        any(trial.is_bound for trial in helped),
        steps_before=max(trial.steps_before for trial in helped),
    )


def _loading(step: _Step, look: InputLook, replayed: float | None) -> Iterator[Trial]:
    if step.input < LEAST_INPUT * step.whole:
        return
    match look.loads_by:
        case "DataLoader" if look.can_share:
            count, predicted = _workers(step, look.workers)
            what = f"{count} worker{'s' * (count > 1)} for each DataLoader"
            yield Trial(what, f"`num_workers={count}`", predicted, (f"{words.WORKERS}={count}",), kind="input")
        case "tf.data":
            yield from _of_tf_data(step, look, max(step.gain(step.rest), replayed or 0.0))
        case "timed_input":
            # A thread beside the steps computes only while these do not, and gets its turn late while they do.
            late = look.late * step.input * look.input_waits / look.input_seconds if look.input_seconds else 0.0
            predicted = step.gain(max(step.rest + step.making, _with_turns(step.input, step.rest, late)))
            how = "read ahead in a thread, with `sys.setswitchinterval(0.0005)`"
            what = f"a thread that reads {AHEAD} batches ahead"
            yield Trial(what, how, predicted, (f"{words.PREFETCH}={AHEAD}",), kind="input")


def _of_tf_data(step: _Step, look: InputLook, most: float) -> Iterator[Trial]:
    """`most` is how many times as fast it would be if nothing was made."""
    if look.waits_in_turn:
        calls = max(1.0, step.cpus)
        predicted = step.gain(max(step.rest, step.input / calls, (step.making + step.rest) / calls))
        how = "`map(…, num_parallel_calls=tf.data.AUTOTUNE)`, and `.prefetch(tf.data.AUTOTUNE)` at the end"
        told = (words.PARALLEL, f"{words.PREFETCH}={AHEAD}")
        yield Trial("parallel calls of map, and prefetch", how, predicted, told, kind="input")
    if 0 < look.batches_bytes <= MOST_KEPT * step.free:
        yield _keeping(look, most)
    size = min(MOST_STACKED, int(MOST_KEPT * step.free * look.made / STACKS / max(1, look.made_bytes)))
    predicted = step.gain(max(step.whole / most + step.python_cpu, step.python))
    if look.given in REPEATED:
        yield _going_on(size, predicted)
    elif size > 1:
        is_bound = look.given != "GeneratorDataAdapter"  # of one's own `tf.data` there is more that takes time
        what, stack = f"{size} elements at once from Python", f"{words.STACK}={size}"
        yield Trial(what, STACKING, predicted, (stack,), is_bound=is_bound, kind="input")


def _with_turns(seconds: float, beside: float, late: float) -> float:
    """How long something takes that is `late` by so much if all of its turns come while what is beside it computes.

    That computes for `beside` seconds of the time that is asked for: s = seconds + late * beside / s.
    """
    return (seconds + math.sqrt(seconds**2 + 4 * late * beside)) / 2


def _keeping(look: InputLook, predicted: float) -> Trial:
    """After the first pass nothing is made again, as if the first batch were replayed."""
    size = f"{look.batches_bytes / (1 << 20):.0f} MiB"
    how = (
        f"`.cache()` after the last `map` that draws no random number, and shuffle behind it; it takes {size} a rank, "
        "and the first pass over the data is as slow as before"
    )
    if look.given:  # by `fit`
        how += "; then `.repeat()`, and `steps_per_epoch` of `fit`, so that Keras makes no new iterator for each epoch"
    return Trial(
        "decoded samples kept in memory",
        how,
        predicted,
        (words.KEEP, words.GO_ON) if look.given else (words.KEEP,),
        kind="input",
        steps_before=look.batches,
    )


def _going_on(size: int, predicted: float) -> Trial:
    """Where Python makes batches it still does; the rest is as if nothing was made."""
    how = (
        "give `fit` a `tf.data.Dataset` that goes on, by `.repeat()` and `steps_per_epoch`: Keras makes new iterators "
        "for each epoch of anything else; and for each validation, so validate by `test_on_batch` where that is short"
    )
    stacks = size > 1
    return Trial(
        "one iterator for all epochs" + f", {size} batches at once from Python" * stacks,
        f"{how}; {STACKING}" if stacks else how,
        predicted,
        (words.GO_ON, *([f"{words.STACK}={size}"] if stacks else [])),
        kind="input",
    )


def _workers(step: _Step, now: int) -> tuple[int, float]:
    """How many workers, and what they should gain: the fewest with which hardly more is to be had."""
    making = step.input if not now else step.whole * now

    def length(count: int) -> float:
        return max(step.rest, making / count / SPARE, (step.making + step.rest) / step.cpus)

    counts = [count for count in WORKERS if count > now] or [now]
    best = min(map(length, counts))
    count = next(count for count in counts if length(count) <= best * 1.01)
    return count, step.gain(max(step.rest, making / count, (step.making + step.rest) / step.cpus))


def _saving(step: _Step, look: InputLook) -> Iterator[Trial]:
    if step.checkpoint < LEAST_CHECKPOINT * step.whole:
        return
    if "torch" in look.modules and "keras" not in look.modules:
        beside = step.whole - step.checkpoint + min(step.saving, step.checkpoint)
        yield Trial(
            "checkpoints written in the background",
            "make the bytes by `torch.save` to an `io.BytesIO`, and write them in a thread",
            step.gain(max(beside, step.checkpoint)),  # the one before is waited for
            (words.IN_BACKGROUND,),
            kind="checkpoint",
        )
    yield Trial(
        f"every {EVERY}th checkpoint",
        f"save {EVERY} times less often; what is lost by a failure grows as much",
        step.gain(step.whole - step.checkpoint * (1 - 1 / EVERY)),
        (f"{words.CHECKPOINT_EVERY}={EVERY}",),
        kind="checkpoint",
    )


def _step(found: Diagnosis, look: InputLook) -> _Step:
    whole = statistics.mean(rank.step for rank in found.ranks)
    input_time = statistics.mean(rank.seconds_of("input") for rank in found.ranks)
    steps = sum(_steps_looked_at(rank, look, len(found.ranks)) for rank in found.ranks) or 1.0
    cpus = max(1.0, min([load.cpus for load in found.hosts], default=float(look.cpus)))
    on_a_host = max(1, round(len(found.ranks) / max(1, len({rank.host for rank in found.ranks}))))
    return _Step(
        whole,
        input_time,
        statistics.mean(rank.seconds_of("checkpoint") for rank in found.ranks),
        _making(look, steps, whole, input_time),
        look.making / steps,
        look.making_cpu / steps,
        look.checkpoint_cpu / steps,
        cpus / on_a_host,
        min((load.free for load in found.hosts), default=0.0) / on_a_host,
    )


def _making(look: InputLook, steps: float, whole: float, input_time: float) -> float:
    """Seconds of a CPU that the batch of a step takes."""
    if look.children:
        return look.children_cpu / steps
    if look.input_seconds:
        return input_time * look.input_process_cpu / look.input_seconds
    # Where nobody in Python waits: all that the rank works beyond what it computes while it does not wait.
    work = whole * look.cpu / look.seconds if look.seconds else 0.0
    return max(0.0, min(work, whole) - (whole - input_time))


def _steps_looked_at(rank: RankShares, look: InputLook, ranks: int) -> float:
    """How many steps a rank made in the run that was looked at, by how long it lasted."""
    return look.seconds / ranks / rank.step if rank.step else 0.0
