"""`python -m tests.gpu`: run all checks on this machine, and write docs/gpu.md. Ends with 1 if one of them fails."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from tests.gpu import checks, machine, report
from tests.gpu.report import Outcome

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gpu.md"
OF_MACHINE = {
    "GPUs and MIG devices are named by UUID, as nvidia-smi lists them": checks.devices_are_named_by_uuid,
    "hosts that are processes each see their own, and together all": checks.hosts_share_the_gpus,
    "more hosts than GPUs are refused": checks.one_gpu_is_not_shared,
    "ranks keep to the CPUs near their GPU": checks.ranks_keep_to_the_cpus_near_their_gpu,
    "a framework without CUDA is refused": checks.a_build_without_cuda_is_refused,
    "telemetry agrees with nvidia-smi": checks.telemetry_is_what_nvidia_smi_says,
    "a container sees all GPUs": checks.containers_see_all_gpus,
    "an image with CUDA is chosen and built, and sees all GPUs": checks.our_image_has_cuda,
}
OF_HOROVOD = "Horovod averages on all GPUs by NCCL"
OF_FRAMEWORKS = {
    "PyTorch trains on `local_gpu`, is measured, and the doctor looks at it": "pytorch",
    "TensorFlow trains on `local_gpu`, is measured, and the doctor looks at it": "tensorflow",
}
REFUSAL = "this machine has no NVIDIA GPU, or no driver for it: run `scripts/test gpu` on one that has both"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/test gpu", description=(__doc__ or "").partition(":")[0])
    for framework in OF_FRAMEWORKS.values():
        default = ROOT / f".venv-gpu-{framework}" / "bin" / "python"
        parser.add_argument(f"--{framework}", default=str(default), help="a Python with its CUDA build (%(default)s)")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write (%(default)s)")
    options = parser.parse_args(argv)
    gpus = machine.gpus()
    if not gpus:
        print(REFUSAL, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as home:
        os.environ["ESTIMATOR_HOME"] = home
        outcomes = [_outcome(name, lambda check=check: check(gpus)) for name, check in OF_MACHINE.items()]
        for name, framework in OF_FRAMEWORKS.items():
            python = getattr(options, framework)
            outcomes.append(_outcome(name, lambda f=framework, p=python: checks.trains(f)(p)))
        outcomes.append(_outcome(OF_HOROVOD, lambda: checks.horovod_averages_by_nccl(options.pytorch)))
    when = datetime.now(timezone.utc).strftime("%d %B %Y, %H:%M UTC")
    versions = f"Python {platform.python_version()}, {platform.system()} {platform.release()}"
    options.page.write_text(report.page_of_run(when, gpus, versions, outcomes))
    print(f"written to {options.page}")
    return int(any(outcome.outcome == "does not hold" for outcome in outcomes))


def _outcome(name: str, check: Callable[[], str]) -> Outcome:
    try:
        outcome = Outcome(name, "holds", check())
    except checks.CannotBeShown as error:
        outcome = Outcome(name, "not shown", str(error))
    except Exception as error:  # whatever goes wrong is this check's outcome, and the others go on
        outcome = Outcome(name, "does not hold", f"{type(error).__name__}: {error}")
    print(f"{outcome.outcome}: {name}: {outcome.seen}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
