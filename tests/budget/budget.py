"""What things may cost, in counts that do not depend on how busy a machine is: `budget.json`.

An entry is a table of counts, such as the modules that an import loads or the programs that a job starts. A test
compares what it counts with the entry. More than the budget fails, with what grew; far less fails too, so that what
was won is not lost again unseen. Someone who changes a cost on purpose writes the new one down:

    pytest tests/budget --write-budget
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("budget.json")
FALL = 0.2
"""Of a budget, beyond its slack; who needs so much less has won something that should be kept."""
AGAIN = "pytest tests/budget --write-budget"

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Budget:
    """One entry."""

    counts: Counts
    slack: float = 0.0
    """Of each count, for what the kernel decides, such as how often a wait wakes up."""

    def allowed(self, name: str) -> int:
        return math.ceil(self.counts.get(name, 0) * (1 + self.slack))

    def exceeded_by(self, found: Counts) -> list[str]:
        """What grew, in words."""
        return [
            f"{name}: {count} instead of {self.counts.get(name, 0)}"
            for name, count in sorted(found.items())
            if count > self.allowed(name)
        ]

    def is_far_above(self, found: Counts) -> bool:
        whole = sum(self.counts.values())
        return whole - sum(found.values()) > max(2, (FALL + self.slack) * whole)


def read() -> dict[str, Budget]:
    return {name: Budget(**entry) for name, entry in json.loads(FILE.read_text()).items()}


def write(name: str, counts: Counts, slack: float) -> None:
    """Make counts the budget."""
    entries = json.loads(FILE.read_text()) if FILE.exists() else {}
    entries[name] = {"counts": dict(sorted(counts.items())), "slack": slack}
    FILE.write_text(json.dumps(dict(sorted(entries.items())), indent=1) + "\n")


def judge(name: str, counts: Counts, entry: Budget | None) -> str | None:
    """A sentence that says what is wrong; None when the counts keep to the budget."""
    if entry is None:
        return f"{name} has no budget yet: {AGAIN}"
    grown = entry.exceeded_by(counts)
    if grown:
        return (
            f"{name} costs more than its budget. What grew: {'; '.join(grown)}. Make it cost what it did, or, if the "
            "new "
            f"cost is worth it, write it down and say why in the commit: {AGAIN}"
        )
    if entry.is_far_above(counts):
        before, now = sum(entry.counts.values()), sum(counts.values())
        return f"{name} costs {now} where its budget is {before}: lower the budget, so that it stays so: {AGAIN}"
    return None
