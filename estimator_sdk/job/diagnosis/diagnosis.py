"""The diagnosis of one job."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from . import causes, machine_load, picture, shares, step_records, words
from .causes import Cause, InputClass
from .machine_load import HostLoad
from .shares import KINDS, RankShares

if TYPE_CHECKING:
    from ...backends.port import StartedJob


@dataclass(frozen=True)
class Diagnosis:
    """Where the time of a job's training steps goes, and why. `print` shows it as `estimator doctor JOB` does."""

    job: str
    status: str
    input_class: InputClass | None
    """As TensorFlow's profiler calls it; None where waiting for input is not known, or too little has been seen."""
    causes: tuple[Cause, ...]
    """What takes time, the most first; empty where nothing does, and where there is too little evidence."""
    thin: str
    """Why nothing is said; empty if there is evidence enough."""
    ranks: tuple[RankShares, ...]
    hosts: tuple[HostLoad, ...]

    def to_json(self) -> dict[str, Any]:
        """As `estimator doctor JOB --json` shows it; seconds are those of a step, shares are from 0 to 1."""
        return {
            "job": self.job,
            "status": self.status,
            "input_class": self.input_class,
            "thin": self.thin,
            "causes": [{**asdict(cause), "most_gain": round(cause.most_gain, 3)} for cause in self.causes],
            "ranks": [
                {
                    "host": rank.host,
                    "rank": rank.rank,
                    "steps": rank.steps,
                    "seconds": round(rank.step, 6),
                    **{kind: _rounded(rank.share(kind)) for kind in KINDS},
                }
                for rank in self.ranks
            ],
            "hosts": [asdict(host) for host in self.hosts],
        }

    def to_svg(self) -> str:
        """As a picture: a bar for each rank."""
        return picture.of_ranks(f"{self.job}: where a step's time goes", self.ranks)

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return f"<pre>{escape(str(self))}</pre>{self.to_svg() if self.ranks else ''}"

    def __str__(self) -> str:
        title = f"{self.job} ({self.status})"
        if self.thin:
            return "\n".join(words.thin_lines(title, self.thin, self.ranks))
        share = causes.input_share(self.ranks, self.hosts)
        bound = None if self.input_class is None or share is None else (self.input_class, share)
        return "\n".join(words.lines(title, self.causes, self.ranks, bound))


def make(job: StartedJob) -> Diagnosis:
    """That of a job as it is now: its log is read. Raises EstimatorError for one that runs elsewhere."""
    records = step_records.read(job)
    samples = records.of_ranks()
    order = {host: number for number, host in enumerate(job.record().hosts)}
    whose = sorted(samples, key=lambda who: (order.get(who[0], 0), -1 if who[1] is None else who[1]))
    ranks = tuple(shares.shares_of(who, samples[who]) for who in whose)
    thin = causes.why_thin(ranks)
    loads = machine_load.read(job, records.first, records.last)
    return Diagnosis(
        job.name,
        job.record().status,
        None if thin else causes.input_class(causes.input_share(ranks, loads)),
        causes.find(ranks, samples, records.slow, loads),
        thin,
        ranks,
        loads,
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
