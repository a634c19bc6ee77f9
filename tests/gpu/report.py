"""The page that says what the checks saw, and when; without a run it says that there was none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.gpu.machine import Gpu

INTRODUCTION = """\
# On GPUs

What this product does on NVIDIA GPUs is in [script.md](script.md#gpus) and [telemetry.md](telemetry.md). What only a
machine with one can show is checked by one command, on a machine with a GPU and its driver:

```
scripts/test gpu
```

It makes environments with the CUDA builds of PyTorch and TensorFlow, runs the checks of `tests/gpu`, and writes this
page. Without a GPU it says so, and does nothing. All other tests pass without one, and none is skipped for want of one.
"""
NOT_RUN = """
**It has not been run yet**, because there was no machine with a GPU. So nothing that these documents say of GPUs has
been seen on one. It would check these:

"""


@dataclass(frozen=True)
class Outcome:
    """Of one check."""

    check: str
    outcome: str
    """`holds`, `does not hold` or `not shown`."""
    seen: str

    @property
    def row(self) -> str:
        """As a row of the page's table."""
        seen = " ".join(self.seen.split()).replace("|", "\\|")
        return f"| {self.check} | {self.outcome} | {seen} |"


def page(checks: Sequence[str]) -> str:
    """Before any run: what would be checked."""
    return INTRODUCTION + NOT_RUN + "".join(f"- {check}\n" for check in checks)


def page_of_run(when: str, gpus: Sequence[Gpu], versions: str, outcomes: Sequence[Outcome]) -> str:
    """After one."""
    machine = ", ".join(f"{gpu.name}" for gpu in gpus)
    lines = [
        f"\n## Run of {when}\n",
        f"{machine}; driver {gpus[0].driver}; {versions}. *Not shown* is what this machine cannot show, and why.\n",
        "| check | outcome | what was seen |",
        "|---|---|---|",
        *(outcome.row for outcome in outcomes),
    ]
    return INTRODUCTION + "\n".join(lines) + "\n"
