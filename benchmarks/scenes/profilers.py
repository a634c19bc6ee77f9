"""What the profilers of TensorFlow and PyTorch say of a few scenes, beside the doctor.

    python -m benchmarks.scenes.profilers [tensorflow] [pytorch]

Each scene runs twice: as it is, of which the doctor is asked, and under the profiler of its framework. That of
TensorFlow is asked by its own analysis of the input pipeline; PyTorch's says how long it was in a DataLoader, and what
is a high cost of that is taken from its page in TensorBoard.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.jobs import our_image, own_home
from benchmarks.scenes.playing import MODEL, SCRIPTS
from estimator_sdk import Estimator, Job

FRAMEWORKS = {"tensorflow": "tensorflow", "pytorch": "torch"}
"""And the module by which it is known whether one is installed."""
CASES = (("none", 30, 0), ("decode", 45, 5), ("decode", 30, 20), ("decode", 15, 45), ("checkpoint", 30, 20))
"""What is spent time on, for how many milliseconds of a step it is computed, and for how many that is done."""
CASES += (("allreduce", 30, 20),)
STEPS = 120


@dataclass(frozen=True)
class Profiled:
    """One scene, and what both say of it."""

    framework: str
    cause: str
    injected: float
    """Share of a step, by the scene's own clock."""
    doctor: str
    profiler: str

    def row(self) -> str:
        return f"| {self.framework} | {self.cause} | {self.injected:.0%} | {self.doctor} | {self.profiler} |"


def main() -> None:
    chosen = sys.argv[1:] or list(FRAMEWORKS)
    with own_home():
        for framework in chosen:
            for cause, computing, milliseconds in CASES:
                print(profiled(framework, cause, computing, milliseconds).row(), flush=True)


def profiled(framework: str, cause: str, computing: float, milliseconds: float) -> Profiled:
    """Run a scene twice."""
    job, told = run(framework, cause, computing, milliseconds, False)
    found = job.diagnose()
    first = f"; {found.causes[0].kind}, {found.causes[0].share:.0%}" if found.causes else "; no cause"
    _, under = run(framework, cause, computing, milliseconds, True)
    truth = told["0.json"]
    share = truth["injected"] / truth["seconds"]
    says = " ".join(under["profiler.json"]["says"].split())
    return Profiled(framework, cause, share, f"{found.input_class}{first}", says)


def run(
    framework: str, cause: str, computing: float, milliseconds: float, is_profiled: bool
) -> tuple[Job, dict[str, Any]]:
    """A job of a scene, and the files that it wrote of itself."""
    in_image = find_spec(FRAMEWORKS[framework]) is None
    with tempfile.TemporaryDirectory() as folder:
        given = {"truth": MODEL if in_image else folder, "cause": cause, "steps": STEPS}
        given |= {"computing-ms": computing, "cause-ms": milliseconds}
        words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        job = Estimator(
            entry_point=f"profiled_{framework.removeprefix('py')}.py",
            source_dir=SCRIPTS,
            backend="docker" if in_image else "process",
            image_uri=our_image("pytorch" if framework == "pytorch" else "tensorflow") if in_image else None,
            arguments=[*words, *(["--profile"] if is_profiled else [])],
            base_job_name="profiled",
        ).fit(logs="none")
        told = job.download(Path(folder, "model")) if in_image else Path(folder)
        return job, {path.name: json.loads(path.read_text(encoding="utf-8")) for path in told.glob("*.json")}


if __name__ == "__main__":
    main()
