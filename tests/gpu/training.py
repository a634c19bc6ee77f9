"""`python -m tests.gpu.training pytorch|tensorflow|horovod`: a job on this machine's GPUs, and what it was, as JSON."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from estimator_sdk import PyTorch, TensorFlow
from estimator_sdk.job.diagnosis import causes

JOB = Path(__file__).with_name("job")
KINDS = {"pytorch": PyTorch, "tensorflow": TensorFlow}


def main(framework: str, instance_type: str = "local_gpu") -> int:
    kind = KINDS[framework]
    estimator = kind(entry_point=JOB / f"train_{framework}.py", instance_type=instance_type, backend="process")
    job = estimator.fit(logs="none")
    lines = [line.data for line in job.logs(stream="stdout")]
    told = json.loads(next(line for line in lines if line.startswith(b"{")))
    measured = job.machines(["hw.gpu.utilization", "process.gpu.memory.usage"]).series
    diagnosis = job.diagnose()
    gpu_loads = [host.gpu for host in diagnosis.hosts if host.gpu is not None]
    told |= {
        "utilization": max((value for one in measured if not one.is_of_rank for value in one.mean), default=0.0),
        "memory": max((value for one in measured if one.is_of_rank for value in one.high), default=0.0),
        "thin": diagnosis.thin,
        "gpu_load": statistics.mean(gpu_loads) if gpu_loads else None,
        "input": causes.input_share(diagnosis.ranks, diagnosis.hosts),
        "doctor": str(diagnosis).splitlines()[1],
    }
    print(json.dumps(told))
    return 0


def average() -> int:
    """Ranks of Horovod on all GPUs of this machine."""
    world = {"mpi": {"enabled": True}}
    script = JOB / "average_horovod.py"
    job = PyTorch(entry_point=script, instance_type="local_gpu", backend="process", distribution=world).fit(logs="none")
    print(next(line.data.decode() for line in job.logs(stream="stdout") if line.data.startswith(b"{")))
    return 0


if __name__ == "__main__":
    sys.exit(average() if sys.argv[1:] == ["horovod"] else main(*sys.argv[1:]))
