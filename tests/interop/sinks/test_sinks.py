"""What a real job measured, read back with the libraries of the products that it was given to."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from prometheus_client.parser import text_string_to_metric_families
from tensorboardX.proto.event_pb2 import Event

from estimator_sdk import Estimator, Job
from estimator_sdk.cli.main import main
from estimator_sdk.telemetry.sinks import opentelemetry, prometheus
from tests.waiting import SECONDS, wait_for

TRAINS = """
import os, time
from estimator_container import metrics
from estimator_container.contract.names import Layout
from estimator_container.telemetry import history
from estimator_container.telemetry.metric_table import SeriesKey
rank = int(os.environ["RANK"])
for step in range(1, 4):
    metrics.log(loss=rank + 1 / step, step=step)
print(f"accuracy: {rank / 4}", flush=True)
folder = Layout(os.path.dirname(os.environ["SM_OUTPUT_DIR"])).telemetry
deadline = time.monotonic() + 300
while len(history.read(folder, history.LEVELS[0], 0, 1 << 60).get(SeriesKey("process.cpu.utilization", rank), ())) < 2:
    assert time.monotonic() < deadline, "this rank is not measured"
    time.sleep(0.1)
"""
RANKS = range(2)


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Job:
    folder = tmp_path_factory.mktemp("sinks")
    (folder / "train.py").write_text(TRAINS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(folder / "home"))
        mpi = {"mpi": {"enabled": True, "processes_per_host": len(RANKS)}}
        estimator = Estimator(
            entry_point="train.py",
            source_dir=str(folder),
            backend="process",
            distribution=mpi,
            hyperparameters={"lr": 0.1, "api_token": "hide-me"},
        )
        with pytest.warns(UserWarning, match="looks like a secret"):
            made = estimator.fit(logs="none")
        yield made


@pytest.fixture(autouse=True)
def home(job, monkeypatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(job.folder.parents[1]))


def newest(job: Job, metric: str) -> dict[str, float]:
    """The newest value of each part of a metric of the only host."""
    return {one.part: one.mean[-1] for one in job.machines([metric], resolution=2).series}


def samples_of(exposition: str) -> dict[tuple[str, str, str], float]:
    """The samples by name, by rank, and by part or name of the metric."""
    found = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            labels = sample.labels
            found[sample.name, labels["rank"], labels.get("part", labels.get("metric"))] = sample.value
    return found


def test_prometheus_reads_the_newest_values_in_base_units(job, capsys):
    assert main(["export", job.name, "--to", "prometheus"]) == 0
    found = samples_of(capsys.readouterr().out)
    assert found["system_memory_usage_bytes", "", ""] == newest(job, "system.memory.usage")[""]
    assert found["system_disk_io_bytes_per_second", "", "write"] == newest(job, "system.disk.io")["write"]
    assert {("process_cpu_utilization_ratio", str(rank), "") for rank in RANKS} <= found.keys()
    assert [found["training_metric", str(rank), "loss"] for rank in RANKS] == [rank + 1 / 3 for rank in RANKS]
    assert [found["training_metric_step", str(rank), "loss"] for rank in RANKS] == [3, 3]
    assert found["training_metric", "1", "accuracy"] == 0.25


def test_prometheus_scrapes_a_server_on_the_loopback(job):
    port, end = prometheus.serve(job.started, 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SECONDS) as answer:
            assert ("training_metric", "1", "loss") in samples_of(answer.read().decode())
    finally:
        end()


def events_in(folder: Path) -> list[Event]:
    """The events of a run, by the format of its records: length, its checksum, data, their checksum."""
    (path,) = folder.glob("events.*")
    data, found = path.read_bytes(), []
    while data:
        length = int.from_bytes(data[:8], "little")
        event: Message = Event()
        event.ParseFromString(data[12 : 12 + length])
        found.append(event)
        data = data[16 + length :]
    return found


def test_tensorboard_has_a_run_for_each_rank_and_one_for_the_machines(job, tmp_path, capsys):
    assert main(["export", job.name, "--to", "tensorboard", "--output", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    scalars = {
        run.name: [
            (value.tag, event.step, value.simple_value, event.wall_time)
            for event in events_in(run)
            for value in event.summary.value
        ]
        for run in (tmp_path / job.name).iterdir()
    }
    assert sorted(scalars) == ["machines", "rank-0", "rank-1"]
    assert sum(map(len, scalars.values())) == told["points"]
    for rank in RANKS:
        losses = [(step, value) for tag, step, value, _ in scalars[f"rank-{rank}"] if tag == "loss"]
        assert losses == [(step, pytest.approx(rank + 1 / step)) for step in (1, 2, 3)]
        assert all(job.created < time < job.ended for *_, time in scalars[f"rank-{rank}"])
    memory = [value for tag, _, value, _ in scalars["machines"] if tag == f"system.memory.usage/{job.hosts[0]}"]
    (series,) = job.machines(["system.memory.usage"], resolution=2).series
    assert memory == pytest.approx(series.mean)


def test_mlflow_has_the_job_as_a_run(job, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    uri = (tmp_path / "runs").as_uri()
    assert main(["export", job.name, "--to", "mlflow", "--uri", uri, "--experiment", "tries"]) == 0
    client = mlflow.MlflowClient(tracking_uri=uri)
    run = client.get_run(capsys.readouterr().out.strip())
    assert client.get_experiment(run.info.experiment_id).name == "tries"
    assert (run.info.run_name, run.info.status) == (job.name, "FINISHED")
    assert (run.info.start_time, run.info.end_time) == (round(1000 * job.created), round(1000 * job.ended))
    assert run.data.params["lr"] == "0.1" and "hide-me" not in str(run.data.params)
    assert run.data.tags["estimator.job"] == job.name
    for rank, name in ((0, "loss"), (1, "rank_1/loss")):
        found = [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, name)]
        assert sorted(found) == [(step, rank + 1 / step) for step in (1, 2, 3)]
    (memory,) = job.machines(["system.memory.usage"], resolution=2).series
    told = client.get_metric_history(run.info.run_id, "system/system_memory_usage_megabytes")
    assert [each.value for each in told] == pytest.approx([value / 1e6 for value in memory.mean])


def test_what_mlflow_refuses_is_said_in_its_words(job, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    (tmp_path / "file").write_text("")
    assert main(["export", job.name, "--to", "mlflow", "--uri", "nowhere://x"]) == 1
    assert f"MLflow does not take the job {job.name}" in capsys.readouterr().err


def otlp_points(requests: list[Message]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Times and values of OTLP's messages, by the metric and what tells its series apart."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for resource in (each for request in requests for each in request.resource_metrics):
        about = {each.key: each.value.string_value for each in resource.resource.attributes}
        for metric in (each for scope in resource.scope_metrics for each in scope.metrics):
            for point in metric.gauge.data_points:
                words = [f"{each.key}={each.value.string_value or each.value.int_value}" for each in point.attributes]
                value = point.as_double if point.HasField("as_double") else float(point.as_int)
                key = metric.name, " ".join([about["host.name"], *sorted(words)])
                found.setdefault(key, []).append((point.time_unix_nano / 1e9, value))
    return found


def check_otlp(job: Job, requests: list[Message], told: int) -> None:
    found = otlp_points(requests)
    assert sum(map(len, found.values())) == told
    (host,) = job.hosts
    for rank in RANKS:
        losses = found["training.metric", f"{host} metric=loss rank={rank}"]
        assert [value for _, value in losses] == [rank + 1 / step for step in (1, 2, 3)]
        assert all(job.created < time < job.ended for time, _ in losses)
        steps = found["training.metric.step", f"{host} metric=loss rank={rank}"]
        assert [value for _, value in steps] == [1, 2, 3]
    (memory,) = job.machines(["system.memory.usage"], resolution=2).series
    assert found["system.memory.usage", host] == [
        (pytest.approx(time), value) for time, value in zip(memory.times, memory.mean, strict=True)
    ]
    assert ("system.disk.io", f"{host} disk.io.direction=write") in found


def test_opentelemetrys_file_has_every_value(job, tmp_path, capsys):
    path = tmp_path / "metrics.jsonl"
    assert main(["export", job.name, "--to", "opentelemetry", "--output", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    requests = [json_format.Parse(line, MetricsData()) for line in path.read_text().splitlines()]
    check_otlp(job, requests, told["points"])


def test_a_collector_of_opentelemetry_gets_every_value(job, capsys, monkeypatch):
    monkeypatch.setattr(opentelemetry, "MOST_IN_A_REQUEST", 10)
    received: list[Message] = []
    refused: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path != "/v1/metrics":
                refused.append(self.path)
                self.send_response(400)
            else:
                body = gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
                received.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_port}"
        assert main(["export", job.name, "--to", "opentelemetry", "--uri", uri, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert main(["export", job.name, "--to", "opentelemetry", "--uri", f"{uri}/elsewhere"]) == 1
        server.shutdown()
    check_otlp(job, received, told["points"])
    assert len(received) == -(-told["points"] // 10)
    assert refused == ["/elsewhere"]
    assert f"{uri}/elsewhere does not take the metrics of {job.name}" in capsys.readouterr().err


def test_an_address_that_is_no_collectors_is_refused(job, capsys):
    assert main(["export", job.name, "--to", "opentelemetry", "--uri", "localhost:4318"]) == 2
    assert "as http://localhost:4318, not localhost:4318" in capsys.readouterr().err


def test_wandbs_files_have_every_value_and_no_secret(job, tmp_path):
    arguments = ["export", job.name, "--to", "wandb", "--output", str(tmp_path), "--experiment", "tries", "--json"]
    command = [sys.executable, "-m", "estimator_sdk", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    told = json.loads(done.stdout)
    (path,) = Path(told["folder"]).glob("run-*.wandb")
    rows, run = wandb_rows(path)
    assert (run.project, run.display_name, run.run_id) == ("tries", job.name, job.name)
    config = {each.key: json.loads(each.value_json) for each in run.config.update}
    assert config["lr"] == "0.1" and "hide-me" not in str(config)
    assert all(b"hide-me" not in each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    for rank, name in ((0, "loss"), (1, "rank_1/loss")):
        found = [row for row in rows if name in row]
        assert [(row["global_step"], row[name]) for row in found] == [(step, rank + 1 / step) for step in (1, 2, 3)]
        assert all(job.created < row["_timestamp"] < job.ended for row in found)
    (memory,) = job.machines(["system.memory.usage"], resolution=2).series
    tag = f"machines/system.memory.usage/{job.hosts[0]}"
    assert [(row["_timestamp"], row[tag]) for row in rows if tag in row] == list(
        zip(memory.times, memory.mean, strict=True)
    )


def wandb_rows(path: Path) -> tuple[list[dict[str, float]], Message]:
    """The rows of a run, and the run, by the messages of wandb."""
    from wandb.proto.wandb_internal_pb2 import Record

    records = [Record.FromString(data) for data in records_of_log(path.read_bytes())]
    rows = [
        {each.key or "/".join(each.nested_key): json.loads(each.value_json) for each in record.history.item}
        for record in records
        if record.WhichOneof("record_type") == "history"
    ]
    (run,) = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    return rows, run


def records_of_log(data: bytes) -> list[bytes]:
    """The records of a log in LevelDB's format: blocks of 32 KiB, in which each piece has a checksum, a length, a kind.

    The kinds are 1 for a whole record, and 2, 3 and 4 for the first piece, one between, and the last one.
    """
    found, at = [b""], len(b":W&B") + 3
    while at + 7 <= len(data):
        left = -at % 32768
        if 0 < left < 7:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        found[-1] += data[at + 7 : at + 7 + length]
        if kind in (1, 4):
            found.append(b"")
        at += 7 + length
    return found[:-1]


def test_an_option_of_another_product_is_refused(job, capsys):
    assert main(["export", job.name, "--to", "mlflow", "--port", "80"]) == 2
    assert "--port has no effect without --to prometheus" in capsys.readouterr().err


def test_the_board_has_a_row_for_each_host_and_rank(job, capsys):
    assert main(["top", job.name, "--once"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{job.name}  Completed")
    assert lines[1].split()[:2] == ["HOST", "CPU"] and lines[2].startswith(job.hosts[0])
    names, *ranks = [line.split() for line in lines[3:]]
    assert names == ["RANK", "HOST", "CPUS", "MEMORY", "THREADS", "DISK", "STEP", "loss", "accuracy"]
    assert [(row[0], row[1], row[-3], row[-2]) for row in ranks] == [
        ("0", job.hosts[0], "3", "0.33333"),
        ("1", job.hosts[0], "3", "1.3333"),
    ]
    assert main(["top", job.name, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ranks"][1]["metrics"] == {"loss": 1 + 1 / 3, "accuracy": 0.25}
    (limit,) = newest(job, "system.memory.limit").values()
    assert document["hosts"][0]["memory_limit"] == limit


def test_a_scrape_goes_on_until_the_job_has_ended(job):
    command = [sys.executable, "-m", "estimator_sdk", "export", job.name, "--to", "prometheus", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None and process.stdout.readline().startswith("http://127.0.0.1:")
    wait_for(lambda: process.poll() is not None)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("to", "module"),
    [("prometheus", "prometheus_client"), ("tensorboard", "tensorboardX"), ("wandb", "wandb")],
)
def test_without_its_library_the_command_that_installs_it_is_said(job, to, module):
    script = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from estimator_sdk.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "export", job.name, "--to", to]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=2 * SECONDS)
    assert done.returncode == 1 and f"pip install 'estimator-sdk[{to}]'" in done.stderr
