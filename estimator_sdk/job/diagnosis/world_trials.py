"""Advice on what the ranks of a host, or of a world, cost each other: on CPUs and in communicating.

What it gains nobody can tell beforehand; no more can be gained than what is lost, so each has an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from estimator_container.training.trials import words

from .causes import Cause
from .diagnosis import Diagnosis
from .input_look import InputLook
from .trials import LEAST_GAIN, Trial

FUSION_MIB = 256
SENT_BY_HALF = 0.5
"""What numbers of 16 bits are of those of 32 that gradients usually are."""


def worth_trying(found: Diagnosis, look: InputLook | None) -> tuple[Trial, ...]:
    """What is worth a run, by a diagnosis and by what was seen in another run; empty where nothing is."""
    if look is None or found.thin or not found.ranks:
        return ()
    candidates = [trial for cause in found.causes for trial in _against(cause, found, look)]
    return tuple(trial for trial in candidates if trial.predicted >= LEAST_GAIN)


def _against(cause: Cause, found: Diagnosis, look: InputLook) -> Iterator[Trial]:
    if cause.kind == "too few CPUs":
        if look.modules:
            yield _fewer_threads(cause, look)
        if len({rank.host for rank in found.ranks}) == 1 < len(found.ranks) < look.cpus:
            yield _own_cpus(cause, look.cpus // len(found.ranks))
    if cause.kind == "communication" and "horovod" in look.modules:
        yield _larger_pieces(cause)
        yield _half(cause)
        if len(found.ranks) < look.cpus:  # else the toolkit has them yield anyway
            yield _yielding(cause)


def _fewer_threads(cause: Cause, look: InputLook) -> Trial:
    threads = str(max(1, look.cpus // max(1, look.ranks)))
    environment = tuple((name, threads) for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"))
    how = " ".join(f"{name}={value}" for name, value in environment)
    return Trial(f"{threads} threads a rank", how, cause.most_gain, environment=environment, is_bound=True)


def _own_cpus(cause: Cause, cpus: int) -> Trial:
    how = f"`-map-by slot:PE={cpus} -bind-to core` among `custom_mpi_options`, or `os.sched_setaffinity` in the script"
    what = f"{cpus} CPU{'s' * (cpus > 1)} for each rank alone"
    return Trial(what, how, cause.most_gain, (words.OWN_CPUS,), is_bound=True)


def _larger_pieces(cause: Cause) -> Trial:
    environment = (("HOROVOD_FUSION_THRESHOLD", str(FUSION_MIB << 20)),)
    how = f"HOROVOD_FUSION_THRESHOLD={FUSION_MIB << 20}"
    what = f"gradients sent in pieces of {FUSION_MIB} MiB"
    return Trial(what, how, cause.most_gain, environment=environment, is_bound=True, kind="communication")


def _half(cause: Cause) -> Trial:
    how = "`compression=hvd.Compression.fp16` for the optimizer; gradients lose precision, so compare the loss"
    gain = 1 / (1 - cause.share * (1 - SENT_BY_HALF))
    return Trial("gradients sent in 16 bits", how, gain, (words.HALF,), is_bound=True, kind="communication")


def _yielding(cause: Cause) -> Trial:
    environment = (("OMPI_MCA_mpi_yield_when_idle", "1"),)
    how = "OMPI_MCA_mpi_yield_when_idle=1"
    what = "ranks that leave their CPU to others while they wait"
    return Trial(what, how, cause.most_gain, environment=environment, is_bound=True, kind="communication")
