"""Give MLflow's store, or TensorBoard's folder, runs with metrics: `fill_console.py WHAT FOLDER HAS JOBS RANKS POINTS`.

It HAS so many runs, which become JOBS. They are named as our jobs are; one has POINTS values of each of its RANKS.
"""

import sys
from pathlib import Path

BEGAN = 1_600_000_000
BATCH = 1000


def fill_mlflow(folder: Path, has: int, jobs: int, ranks: int, points: int) -> None:
    from mlflow.entities import Metric
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(f"sqlite:///{folder}/mlflow.db", f"file://{folder}/artifacts")
    known = store.get_experiment_by_name("jobs")
    experiment = known.experiment_id if known is not None else store.create_experiment("jobs")
    for number in range(max(0, has - 1), jobs - 1):
        run = store.create_run(experiment, "bench", 1000 * (BEGAN + number), [], f"job-{number:05}")
        store.log_metric(run.info.run_id, Metric("loss", 1 / (number + 1), 1000 * (BEGAN + number), 1))
    if has:
        return
    run = store.create_run(experiment, "bench", 1000 * BEGAN, [], "job-long")
    for rank in range(ranks):
        for first in range(0, points, BATCH):
            steps = range(first, min(first + BATCH, points))
            made = [Metric(f"rank_{rank}/loss", 1 / (step + 1), 1000 * (BEGAN + step), step) for step in steps]
            store.log_batch(run.info.run_id, made, [], [])


def fill_tensorboard(folder: Path, has: int, jobs: int, ranks: int, points: int) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    def write(run: str, tag: str, values: int) -> None:
        writer = EventFileWriter(str(folder / "events" / run))
        for step in range(values):
            value = Summary.Value(tag=tag, simple_value=1 / (step + 1))
            writer.add_event(Event(wall_time=BEGAN + step, step=step, summary=Summary(value=[value])))
        writer.close()

    for number in range(max(0, has - 1), jobs - 1):
        write(f"job-{number:05}", "loss", 1)
    for rank in range(ranks if not has else 0):
        write(f"job-long/rank_{rank}", "rank/loss", points)


what, place, *numbers = sys.argv[1:]
{"mlflow": fill_mlflow, "tensorboard": fill_tensorboard}[what](Path(place), *map(int, numbers))
