"""What records in detail: Horovod's timeline and PyTorch's profiler, each by its own start and stop."""

from __future__ import annotations

import os
import sys
from typing import Any

DYNAMIC = "DYNAMIC"  # without this value when Horovod begins, its timeline cannot be started later (`operations.cc`)
TIMELINE = "HOROVOD_TIMELINE"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Recorder(Protocol):
        """Writes a trace of its own to a file."""

        kind: str

        def start(self, path: str) -> None:
            """Begin. Raises Exception where it cannot, with a sentence."""

        def stop(self) -> None:
            """End; the file is complete then. Raises Exception where it is not."""


class HorovodRecorder:
    """The timeline of Horovod, which its first rank writes for all."""

    kind = "horovod"

    def __init__(self, basics: Any) -> None:  # noqa: ANN401 - each framework has a type of its own
        self._basics = basics

    def start(self, path: str) -> None:
        """Raises RuntimeError where the job was not started for it."""
        given = os.environ.get(TIMELINE)
        if given != DYNAMIC:
            is_written = f"it is written to {given} from the start" if given else "Horovod began without it"
            how = f'environment={{"{TIMELINE}": "{DYNAMIC}"}}, or `estimator run --env {TIMELINE}={DYNAMIC}`'
            raise RuntimeError(f"{is_written}, and cannot start it later; start the job with {how}")
        self._basics.start_timeline(path)

    def stop(self) -> None:
        """It returns when all is written; Horovod's own end writes it too, and nobody would answer after that."""
        if self._basics.is_initialized():
            self._basics.stop_timeline()


class TorchRecorder:
    """The profiler of PyTorch, of the process that it runs in."""

    kind = "torch"

    def __init__(self, torch: Any) -> None:  # noqa: ANN401 - the module, which is not imported here
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._profile = torch.profiler.profile(activities=activities)
        self._path = ""

    def start(self, path: str) -> None:
        """Raises RuntimeError where the script profiles by itself."""
        self._path = path
        self._profile.start()

    def stop(self) -> None:
        """It is written now."""
        self._profile.stop()
        self._profile.export_chrome_trace(self._path)


def recorders() -> list[Recorder]:
    """Those of the frameworks that this process has loaded."""
    found: list[Recorder] = []
    horovod = _horovod()
    if horovod is not None and horovod.rank() == 0:
        found.append(HorovodRecorder(horovod))
    torch = sys.modules.get("torch")
    if hasattr(torch, "profiler"):
        found.append(TorchRecorder(torch))
    return found


def uses_horovod() -> bool:
    """Whether Horovod records for this process, on whichever rank."""
    return _horovod() is not None


def _horovod() -> Any:  # noqa: ANN401
    for framework in ("tensorflow", "torch"):
        basics = getattr(sys.modules.get(f"horovod.{framework}.mpi_ops"), "_basics", None)
        if basics is not None and basics.is_initialized():
            return basics
    return None
