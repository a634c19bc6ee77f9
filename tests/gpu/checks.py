"""What is asked of a machine with GPUs. A check returns what it saw, or raises AssertionError, or CannotBeShown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_container.host import gpus as toolkit
from estimator_container.telemetry import metric_table as table
from estimator_container.telemetry.gpu_load import GpuLoad
from estimator_container.telemetry.metric_table import SeriesKey

from estimator_sdk import Estimator, InvalidArgument, PyTorch, TensorFlow
from tests.gpu.machine import Gpu, asked

JOB = Path(__file__).with_name("job")
MIB = 1 << 20
IMAGE = "python:3.11-slim-bookworm"


class CannotBeShown(Exception):
    """This machine lacks what the check needs: it is said, and is no success."""


def devices_are_named_by_uuid(gpus: Sequence[Gpu]) -> str:
    """What the toolkit shares are the UUIDs that nvidia-smi lists."""
    names = toolkit.of_this_machine()
    parts = [name for name in names if name.startswith(toolkit.MIG)]
    whole = [name for name in names if name not in parts]
    assert set(whole) <= {gpu.uuid for gpu in gpus}, f"{whole} are not the GPUs of nvidia-smi, {gpus}"
    assert parts or len(whole) == len(gpus), f"{whole} are not all of {gpus}"
    return f"{len(whole)} GPUs and {len(parts)} MIG devices: {', '.join(names)}"


def hosts_share_the_gpus(gpus: Sequence[Gpu]) -> str:
    """Each host of a job on processes sees GPUs of its own, and all hosts together see all."""
    names = toolkit.visible(os.environ)
    seen = [each["visible"] for each in _told(len(names))]
    assert sorted(",".join(seen).split(",")) == sorted(names), f"the hosts see {seen}, and the machine has {names}"
    assert len(names) > 1, f"one host saw {seen[0]}"
    return f"{len(seen)} hosts: {'; '.join(seen)}"


def one_gpu_is_not_shared(gpus: Sequence[Gpu]) -> str:
    """Two hosts are refused where they cannot have as many GPUs each."""
    names = toolkit.visible(os.environ)
    try:
        _estimator(instance_count=len(names) + 1).plan()
    except InvalidArgument as error:
        return str(error)
    raise AssertionError(f"{len(names) + 1} hosts were to share {len(names)} GPUs")


def ranks_keep_to_the_cpus_near_their_gpu(gpus: Sequence[Gpu]) -> str:
    """By the NUMA node of each GPU, which is another file of the kernel than the one that the toolkit reads."""
    allowed = os.sched_getaffinity(0)
    near = {gpu.uuid: _cpus(gpu.near_cpus) & allowed for gpu in gpus}
    if len(gpus) < 2 or all(each in (allowed, set()) for each in near.values()):
        raise CannotBeShown(f"{len(gpus)} GPU(s), and all CPUs are as near to each of them")
    told = _told(len(gpus))
    for each in told:
        assert set(each["cpus"]) == near[each["visible"]], f"{each} does not keep to {near[each['visible']]}"
    return "; ".join(f"{each['visible']} on {len(each['cpus'])} of {len(allowed)} CPUs" for each in told)


def a_build_without_cuda_is_refused(gpus: Sequence[Gpu]) -> str:
    """By the TensorFlow of this environment, which is the one for CPUs."""
    try:
        TensorFlow(entry_point=JOB / "tell.py", instance_type="local_gpu", backend="process").plan()
    except InvalidArgument as error:
        assert "a build without CUDA" in str(error), str(error)
        return str(error)
    raise AssertionError("TensorFlow without CUDA was to run on GPUs")


def telemetry_is_what_nvidia_smi_says(gpus: Sequence[Gpu]) -> str:
    """Memory to 1 MiB, which nvidia-smi rounds to, temperature to 5 K and power to a third: these move."""
    found = GpuLoad().read([])
    rows = asked("index,memory.total,memory.used,memory.reserved,temperature.gpu,power.draw")
    for number, total, used, reserved, temperature, power in rows:
        for metric, value, tolerance in (
            (table.GPU_MEMORY_LIMIT, float(total) * MIB, MIB),
            # The driver's own share is in what NVML's first version of this function counts as used.
            (table.GPU_MEMORY, (float(used) + float(reserved)) * MIB, 16 * MIB),
            (table.GPU_TEMPERATURE, float(temperature), 5.0),
            (table.GPU_POWER, float(power), float(power) / 3 + 5),
        ):
            ours = found.get(SeriesKey(metric, None, number))
            assert ours is not None, f"{metric} of GPU {number} was not read"
            assert abs(ours - value) <= tolerance, f"{metric} of GPU {number}: {ours}, and nvidia-smi says {value}"
    return f"memory, temperature and power of {len(rows)} GPU(s)"


def containers_see_all_gpus(gpus: Sequence[Gpu]) -> str:
    """With an image of somebody else's; the engine needs the NVIDIA Container Toolkit."""
    if not _docker("image", "inspect", IMAGE):
        raise CannotBeShown(f"there is no Docker engine, or it does not have {IMAGE}")
    job = _estimator(backend="docker", image_uri=IMAGE).fit(logs="none")
    (line,) = job.logs(stream="stdout")
    assert json.loads(line.data)["devices"] == len(gpus), line.data
    return f"{len(gpus)} in a container of {IMAGE}"


def our_image_has_cuda(gpus: Sequence[Gpu]) -> str:
    """The image that is chosen for PyTorch on GPUs; the first time it is built, with Horovod and NCCL."""
    if not _docker("info"):
        raise CannotBeShown("there is no Docker engine")
    estimator = PyTorch(entry_point=JOB / "see_cuda.py", instance_type="local_gpu", backend="docker")
    job = estimator.fit(logs="none")
    (line,) = job.logs(stream="stdout")
    told = json.loads(line.data)
    assert (told["devices"], told["total"]) == (len(gpus), 1 << 20), told
    return f"{estimator.plan().image}: {told['devices']} GPU(s), CUDA {told['cuda']}"


def trains(framework: str) -> Callable[[str], str]:
    """A job of that framework: it uses the GPU that it was given, is measured, and the doctor looks at it."""

    def check(python: str) -> str:
        told = _asked_of(python, framework)
        assert told["device"], f"{framework} sees no GPU: {told}"
        uuid = told["uuid"] and f"GPU-{told['uuid'].removeprefix('GPU-')}"
        assert uuid in (None, told["visible"].split(",")[0]), f"it works on {uuid}, and was given {told['visible']}"
        assert told["utilization"] > 0 and told["memory"] > 0, f"its GPU was not seen at work: {told}"
        assert told["thin"] == "" and told["gpu_load"] is not None, f"the doctor saw too little: {told}"
        assert told["input"] is not None and told["input"] <= 1 - told["gpu_load"] + 0.001, f"it blames input: {told}"
        used = f"{told['device']}, {told['utilization']:.0%} of the time, {told['memory'] / MIB:.0f} MiB of its memory"
        return f"{used}. The doctor: {told['doctor']}"

    return check


def horovod_averages_by_nccl(python: str) -> str:
    """A rank for each GPU; with one GPU there is nothing to send."""
    told = _asked_of(python, "horovod")
    assert told["nccl"] and told["mean"] == (told["size"] - 1) / 2, told
    return f"{told['size']} rank(s), NCCL {told['nccl']}"


def _asked_of(python: str, what: str) -> Mapping[str, Any]:
    """What `tests.gpu.training` tells, run by that Python."""
    if not Path(python).exists():
        raise CannotBeShown(f"{python} is missing: scripts/setup gpu makes it, or name another Python")
    words = [python, "-m", "tests.gpu.training", what]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    found: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _docker(*words: str) -> bool:
    return (
        shutil.which("docker") is not None
        and not subprocess.run(["docker", *words], capture_output=True, check=False).returncode
    )


def _estimator(**arguments: Any) -> Estimator:
    given = {"instance_type": "local_gpu", "backend": "process", **arguments}
    return Estimator(entry_point=JOB / "tell.py", **given)


def _told(hosts: int) -> list[dict[str, Any]]:
    """What the hosts of a job say of themselves, in their order."""
    job = _estimator(instance_count=hosts).fit(logs="none")
    lines = {line.host: json.loads(line.data) for line in job.logs(stream="stdout")}
    return [lines[host] for host in job.hosts]


def _cpus(text: str) -> set[int]:
    pairs = (each.partition("-") for each in text.split(",") if each)
    return {cpu for first, _, last in pairs for cpu in range(int(first), int(last or first) + 1)}
