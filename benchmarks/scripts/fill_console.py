"""Give MLflow's store, or TensorBoard's folder, runs with metrics: `fill_console.py WHAT FOLDER JOBS RANKS POINTS`.

The runs are named as our jobs are; one has POINTS values of each of its RANKS.
"""

import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

BEGAN = 1_600_000_000
RUNS = ("job-00000", "job-long")
Row = dict[str, Any]
"""Column -> value."""


def fill_mlflow(folder: Path, jobs: int, ranks: int, points: int) -> None:
    """Its store makes one run of each kind, and the rows of these are copied: to log each takes most of an hour."""
    database = folder / "mlflow.db"
    make_runs(database, folder, ranks)
    with closing(sqlite3.connect(database)) as opened, opened:
        first, long = (
            opened.execute("SELECT run_uuid FROM runs WHERE name = ?", [name]).fetchone()[0] for name in RUNS
        )
        for table in ("runs", "tags", "metrics", "latest_metrics"):
            found, rows = rows_of(opened, table, first)
            put(opened, table, found, (copied(row, number) for number in range(1, jobs - 1) for row in rows))
        found, rows = rows_of(opened, "metrics", long)
        put(opened, "metrics", found, (at_step(row, step) for row in rows for step in range(1, points)))
        last = (1 / points, points - 1, 1000 * (BEGAN + points - 1), long)
        opened.execute("UPDATE latest_metrics SET value = ?, step = ?, timestamp = ? WHERE run_uuid = ?", last)


def make_runs(database: Path, folder: Path, ranks: int) -> None:
    from mlflow.entities import Metric
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(f"sqlite:///{database}", f"file://{folder}/artifacts")
    experiment = store.create_experiment("jobs")
    for name, metrics in zip(RUNS, (["loss"], [f"rank_{rank}/loss" for rank in range(ranks)]), strict=True):
        run = store.create_run(experiment, "bench", 1000 * BEGAN, [], name)
        store.log_batch(run.info.run_id, [Metric(each, 1.0, 1000 * BEGAN, 0) for each in metrics], [], [])
    store.engine.dispose()


def rows_of(opened: sqlite3.Connection, table: str, run: str) -> tuple[list[str], list[Row]]:
    """The columns of a table, and the rows of a run in it."""
    found = opened.execute(f"SELECT * FROM {table} WHERE run_uuid = ?", (run,))
    columns = [each[0] for each in found.description]
    return columns, [dict(zip(columns, row, strict=True)) for row in found]


def put(opened: sqlite3.Connection, table: str, columns: list[str], rows: Iterable[Row]) -> None:
    places = ", ".join(f":{name}" for name in columns)
    opened.executemany(f"INSERT INTO {table} VALUES ({places})", rows)


def copied(row: Row, number: int) -> Row:
    """That of another run."""
    own = {"run_uuid": f"{number:032x}", "name": f"job-{number:05}", "start_time": 1000 * (BEGAN + number)}
    made = {**row, **{name: value for name, value in own.items() if name in row}}
    if row.get("key") == "mlflow.runName":
        made["value"] = own["name"]
    return made


def at_step(row: Row, step: int) -> Row:
    return {**row, "value": 1 / (step + 1), "step": step, "timestamp": 1000 * (BEGAN + step)}


def fill_tensorboard(folder: Path, jobs: int, ranks: int, points: int) -> None:
    """One file of events of each kind is written, and copied to the other runs."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    def write(runs: list[str], tag: str, values: int) -> None:
        first = folder / "events" / runs[0]
        writer = EventFileWriter(str(first))
        for step in range(values):
            value = Summary.Value(tag=tag, simple_value=1 / (step + 1))
            writer.add_event(Event(wall_time=BEGAN + step, step=step, summary=Summary(value=[value])))
        writer.close()
        (made,) = first.iterdir()
        for run in runs[1:]:
            other = folder / "events" / run
            other.mkdir(parents=True)
            (other / made.name).write_bytes(made.read_bytes())

    write([f"job-{number:05}" for number in range(jobs - 1)], "loss", 1)
    write([f"job-long/rank_{rank}" for rank in range(ranks)], "rank/loss", points)


what, place, *numbers = sys.argv[1:]
{"mlflow": fill_mlflow, "tensorboard": fill_tensorboard}[what](Path(place), *map(int, numbers))
