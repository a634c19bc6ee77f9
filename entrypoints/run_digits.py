"""Run one of the digits examples for MPI or Horovod as a training job, on hosts that are processes of this machine.

python entrypoints/run_digits.py                                      # Keras + Horovod, 2 hosts x 2 processes
python entrypoints/run_digits.py --script digits_numpy_mpi.py         # NumPy + mpi4py
python entrypoints/run_digits.py --hosts 1 --processes 4 --epochs 20
"""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator_sdk import Estimator


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", default="digits_keras_horovod.py")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--processes", type=int, default=2, help="on each host")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--output-path", help="a file:// URI; default: the job's own folder")
    settings = parser.parse_args()

    estimator = Estimator(
        entry_point=settings.script,
        source_dir=Path(__file__).parent,
        instance_type="local",
        instance_count=settings.hosts,
        distribution={"mpi": {"enabled": True, "processes_per_host": settings.processes}},
        hyperparameters={"epochs": settings.epochs},
        metric_definitions=[{"Name": "test_accuracy", "Regex": r"test_accuracy: ([0-9.]+)"}],
        output_path=settings.output_path,
    )
    job = estimator.fit()
    for metric in job.metrics():
        print(f"{metric.name} = {metric.value}")


if __name__ == "__main__":
    main()
