"""S13: what the doctor says of jobs whose cause of being slow is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ..harness import Case, Extent, Metric, Panel, Table, Target, Way
from ..jobs import own_home
from ..scenes.blind import BLIND
from ..scenes.more import MORE
from ..scenes.playing import Played, play
from ..scenes.scene import Cause, Scene

DOCTOR = "the doctor"
ADVICE = ("first advice", "predicted", "verified")
POINTS, WRONG = 5.0, 2
"""How far its share may be from the true one, and how many of the causes may be named wrongly."""
SHARES = Panel("by how many points the doctor's share is wrong", "scene", "%", (Target(DOCTOR, plus=POINTS),))
GAINS = Panel("by how much the predicted gain of the first advice is wrong", "scene", "%", (Target(DOCTOR, plus=20.0),))
_played: list[Played] = []


def causes_panel(scenes: int) -> Panel:
    target = Target(DOCTOR, plus=100 * (WRONG + 0.5) / scenes)
    return Panel("the share of the scenes whose cause it names wrongly", "scenes", "%", (target,))


def cases(extent: Extent) -> Iterator[Case]:
    scenes = (*BLIND, *MORE)
    chosen = scenes[::3] if extent.quick else scenes
    _played.clear()
    with own_home():
        for number, scene in enumerate(chosen, 1):
            yield Case((SHARES, GAINS), number, (Way(DOCTOR, "ours", partial(_play, scene), at_most=1),))
    slow = [each for each in _played if each.scene.cause is not Cause.NONE]
    well = [each for each in _played if each.scene.cause is Cause.NONE]
    for played, title in ((slow, causes_panel(len(slow))), (well, _panel_of_well())):
        yield Case((title,), len(played), (Way(DOCTOR, "ours", partial(_wrong, played), at_most=1),))


def tables() -> Sequence[Table]:
    rows = tuple(
        (
            each.scene.name + (" (blind)" if each.scene in BLIND else ""),
            each.scene.cause.value,
            f"{each.injected:.1%}",
            f"{each.told:.1%}",
            each.cause,
            "yes" if each.is_right else "NO",
            each.advice,
            *((f"{each.predicted:.2f}x", f"{each.verified:.2f}x") if each.advice else ("", "")),
        )
        for each in _played
    )
    right = sum(each.is_right for each in _played)
    near = sum(each.points <= POINTS for each in _played)
    words = f"{right} of {len(_played)} causes are right, and {near} shares are within {POINTS:g} points."
    return (Table("Scenes", ("scene", "cause", "share", "told", "named", "right", *ADVICE), rows, words),)


def _panel_of_well() -> Panel:
    return Panel("the share of the scenes without a cause in which it names one", "scenes", "%", (Target(DOCTOR),))


def _play(scene: Scene) -> tuple[float, float | None]:
    played = play(scene)
    _played.append(played)
    words = f"injected {played.injected:.1%}, told {played.told:.1%} ({played.cause})"
    print(f"    {'right' if played.is_right else 'WRONG'} {scene.name}: {words}", flush=True)
    if played.advice:
        print(f"      {played.advice}: predicted {played.predicted:.2f}x, verified {played.verified:.2f}x", flush=True)
    return played.points, played.off if played.advice else None


def _wrong(played: Sequence[Played]) -> float:
    return 100 * sum(not each.is_right for each in played) / max(1, len(played))


METRIC = Metric(
    "S13",
    "The doctor",
    "Small jobs of one or two ranks into which a cause was put whose share of a step the script measures by its own "
    "clock: slow decoding, a slow store, many small files, a slow rank, too few CPUs, slow checkpoints, a slow "
    "allreduce; and five that nothing makes slow. Ten of them, called blind, were written before the code of the "
    "doctor had been read, and have not been changed since. Each runs once, on processes or in a container of "
    "PyTorch, and the doctor is asked; then again with the first advice that it could try, of which the gain is "
    "verified by the clock of the script. "
    "There is no peer: TensorFlow's and PyTorch's profilers know one of these causes.",
    cases,
    tables=tables,
)
