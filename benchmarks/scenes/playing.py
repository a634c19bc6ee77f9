"""Playing a scene, and what the doctor says of it beside what it says of itself."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from estimator_container.contract.names import DOCTOR
from estimator_container.training.trials import words

from benchmarks.jobs import our_image
from benchmarks.scenes.scene import Cause, Scene
from estimator_sdk import Estimator, Job
from estimator_sdk.job.diagnosis import causes, input_look, trials
from estimator_sdk.job.diagnosis.input_look import InputCause

OF_TORCH = ("loads.py", "saves.py")
"""The scripts that need PyTorch. They run in its image, unless it is installed here."""
MODEL = "/opt/ml/model"
SCRIPTS = Path(__file__).with_name("scripts")
OF_INPUT: Mapping[InputCause | None, Cause] = {
    InputCause.DECODE: Cause.DECODE,
    InputCause.SMALL_FILES: Cause.FILES,
    InputCause.STORE: Cause.STORE,
    InputCause.CPUS: Cause.CPUS,
}
OF_STEPS = {
    "slow rank": Cause.SLOW_RANK,
    "communication": Cause.ALLREDUCE,
    "checkpoint": Cause.CHECKPOINT,
    "too few CPUs": Cause.CPUS,
}


@dataclass(frozen=True)
class Played:
    """What became of a scene. Shares are of a step, from 0 to 1."""

    scene: Scene
    injected: float
    told: float
    """That of this cause, by the doctor; 0 where it does not name it."""
    cause: str
    """The doctor's word for what takes most."""
    is_right: bool
    """Whether that is what was put into it."""

    advice: str = ""
    """The first that was worth trying; empty where none was."""
    predicted: float = 1.0
    verified: float = 1.0
    """How many times as fast it should make the scene, and did."""

    @property
    def points(self) -> float:
        """By how many points the shares differ."""
        return 100 * abs(self.told - self.injected)

    @property
    def off(self) -> float:
        """By how many per cent the predicted gain is off the verified one."""
        return 100 * abs(self.predicted / self.verified - 1)


@dataclass(frozen=True)
class _Truth:
    """What a scene has measured itself."""

    injected: float
    rate: float
    """Steps a second of the rank that makes fewest."""


def play(scene: Scene) -> Played:
    """Run it as a job, ask the doctor, and try the first advice that is worth it."""
    job, truth = _run(scene)
    found, look = job.diagnose(), input_look.read(job.logs(stream="stderr"))
    if found.thin:
        return Played(scene, truth.injected, 0.0, f"nothing: {found.thin}", False)
    if not found.causes:
        return Played(scene, truth.injected, 0.0, "none", scene.cause is Cause.NONE)
    named = look.named(found.hosts) if look is not None else None
    injected = {cause: _as_injected(cause, named) for cause in found.causes}
    expected = Cause.DECODE if scene.cause is Cause.DECODE_BY_CPU else scene.cause
    told = next((cause.share for cause, which in injected.items() if which is expected), 0.0)
    first = found.causes[0]
    word = f"input: {named.value if named else 'not known why'}" if first.kind == "input" else first.kind
    played = Played(scene, truth.injected, told, word, injected[first] is expected)
    advice = [trial for trial in trials.worth_trying(found, look) if not trial.is_bound]
    if not advice:
        return played
    _, with_advice = _run(scene, *advice[0].words)
    verified = with_advice.rate / truth.rate
    return replace(played, advice=advice[0].what, predicted=advice[0].predicted, verified=verified)


def _as_injected(cause: causes.Cause, named: InputCause | None) -> Cause | None:
    """The cause of a scene that the doctor's word stands for."""
    return OF_INPUT.get(named) if cause.kind == "input" else OF_STEPS.get(cause.kind)


def _run(scene: Scene, *changes: str) -> tuple[Job, _Truth]:
    """A job of it in which the ranks are looked at, with what a trial changes."""
    in_image = scene.script in OF_TORCH and find_spec("torch") is None
    with tempfile.TemporaryDirectory() as folder:
        job = Estimator(
            entry_point=scene.script,
            source_dir=SCRIPTS,
            backend="docker" if in_image else "process",
            image_uri=our_image("pytorch") if in_image else None,
            distribution={"mpi": {"enabled": True, "processes_per_host": scene.ranks}} if scene.ranks > 1 else None,
            hyperparameters=scene.arguments(Path(MODEL if in_image else folder)),
            environment={DOCTOR: ",".join((words.LOOK, *changes))},
            base_job_name="scene",
        ).fit(logs="none")
        told = job.download(Path(folder, "model")) if in_image else Path(folder)
        seen = [json.loads(path.read_text(encoding="utf-8")) for path in told.glob("*.json")]
    return job, _Truth(
        max(each["injected"] / each["seconds"] for each in seen),
        min(each["steps"] / each["seconds"] for each in seen),
    )
