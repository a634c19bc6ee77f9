"""Where the time of a job went, by phases, which `docs/recovery.md` defines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Phase = Literal[
    "launch",
    "requirements",
    "channels",
    "restore",
    "first_step",
    "steps",
    "lost_steps",
    "after_steps",
    "ranks_missing",
    "notice",
    "end",
    "checkpoint_stall",
    "restart",
    "outputs",
    "unattributed",
]
PHASES: dict[Phase, str] = {
    "launch": "launch",
    "requirements": "requirements",
    "channels": "channels",
    "restore": "restore",
    "first_step": "imports and first step",
    "steps": "steps",
    "lost_steps": "lost steps",
    "after_steps": "after the last step",
    "ranks_missing": "ranks missing",
    "notice": "notice",
    "end": "end",
    "checkpoint_stall": "last checkpoint",
    "restart": "restart",
    "outputs": "outputs",
    "unattributed": "unattributed",
}
"""In the order in which they are shown, each with its name."""
Source = Literal["steps", "metrics", "output"]
_BY: dict[Source, str] = {
    "steps": "",
    "metrics": ", by the lines with metrics",
    "output": ", by the first and the last line of output",
}
_NAMED = 4  # phases in a sentence, besides the steps
_SHOWN_SECONDS, _SHOWN_SHARE = 0.05, 0.01  # what is shorter than so many seconds, or that share of all, is not named


@dataclass(frozen=True)
class AttemptCost:
    """What one attempt took."""

    number: int
    seconds: float
    """From its beginning to that of the next one, or to the end of the job."""
    steps: float
    """Of these, the mean over the ranks of the training steps that survive."""
    why: str
    """Why it failed; empty if it did not."""


@dataclass(frozen=True)
class Ledger:
    """Where the time of a job went. All times are in seconds."""

    wall: float
    """From the job's creation to its end; until now, if it has not ended."""
    ranks: int
    source: Source
    """What tells the training steps: `steps` that the ranks counted; else lines with `metrics`; else the time between
    the first and the last line of `output`."""
    seconds: Mapping[Phase, float]
    """All phases, each with its mean over the ranks; together they are `wall`."""
    attempts: tuple[AttemptCost, ...]

    @property
    def goodput(self) -> float:
        """The share of the wall time in training steps that survive, from 0 to 1."""
        return self.seconds["steps"] / self.wall if self.wall > 0 else 0.0

    def to_json(self) -> dict[str, object]:
        """As `estimator describe --json` shows it."""
        return {
            "goodput": round(self.goodput, 4),
            "from": self.source,
            "wall": round(self.wall, 3),
            "ranks": self.ranks,
            "seconds": {phase: round(seconds, 3) for phase, seconds in self.seconds.items()},
            "attempts": [
                {**vars(cost), "seconds": round(cost.seconds, 3), "steps": round(cost.steps, 3)}
                for cost in self.attempts
            ],
        }

    def sentence(self) -> str:
        """In one line: the goodput, and what took the rest, the longest first."""
        others = [phase for phase in PHASES if phase not in ("steps", "unattributed")]
        named = sorted(filter(self._is_long, others), key=self.seconds.__getitem__, reverse=True)[:_NAMED]
        parts = [(PHASES[phase], self.seconds[phase]) for phase in named]
        parts.append(("other", sum(self.seconds[phase] for phase in others if phase not in named)))
        parts.append((PHASES["unattributed"], self.seconds["unattributed"]))
        rest = ", ".join(f"{name} {_shown(seconds)}" for name, seconds in parts if seconds >= _SHOWN_SECONDS)
        steps = f"steps {_shown(self.seconds['steps'])} of {_shown(self.wall)}{_BY[self.source]}"
        return f"goodput {self.goodput * 100:.0f} % ({steps}{f'; {rest}' if rest else ''})"

    def _is_long(self, phase: Phase) -> bool:
        return self.seconds[phase] >= max(_SHOWN_SECONDS, _SHOWN_SHARE * self.wall)


def _shown(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
