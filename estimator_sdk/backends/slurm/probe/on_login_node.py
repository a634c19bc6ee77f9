"""The probe as the login node sees it: it submits the job, waits for it, and says what the nodes found."""

from __future__ import annotations

import json
import secrets
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ....errors import BackendError, EstimatorError
from ....values.home import home, secured, write_private
from ...port import Check, Finding, Missing, findings
from .. import queue, site
from ..batch import nodes_python

QUEUE_SECONDS = 120.0
"""That the job may wait for nodes."""
RUN_SECONDS = 90.0
LOOK_SECONDS = 0.5
APART_SECONDS = 5.0
"""By which clocks may differ before times in logs mislead."""
_PROGRAM = Path(__file__).with_name("on_node.py")
_SHARED_FIX = "export ESTIMATOR_HOME=/a/shared/folder"

Report = Mapping[str, Any]


class Probe:
    """One such job."""

    def __init__(self) -> None:
        """Submit it, with the site's defaults. Raises BackendError, InvalidArgument and OSError."""
        options, _ = site.chosen({})
        self.python = nodes_python.checked(options)
        self.folder = Path(tempfile.mkdtemp(prefix="probe-", dir=secured(home())))
        self._token = secrets.token_hex(16)
        write_private(self.folder / "token", self._token)
        shutil.copyfile(_PROGRAM, self.folder / _PROGRAM.name)
        program = [self.python, "-I", "-S", str(self.folder / _PROGRAM.name), str(self.folder), self._token]
        lines = (
            "#!/bin/sh",
            *(f"#SBATCH {line}" for line in options.lines()),
            *("#SBATCH --job-name=estimator-probe", "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=1"),
            *("#SBATCH --time=3", "#SBATCH --no-requeue", f'#SBATCH --output="{self.folder}/said"'),
            *nodes_python.modules(options),
            f"exec srun --kill-on-bad-exit=0 {shlex.join(program)}",
        )
        said = queue.ask("sbatch", "--parsable", text="\n".join([*lines, ""]))
        self.number = int(said.strip().rpartition("\n")[2].partition(";")[0])
        self.state = queue.Queued("PENDING", "None")

    def wait(self) -> None:
        """Until both nodes have reported, or the job is over or late."""
        began, runs = time.monotonic(), 0.0
        while len(self.reports()) < 2 and not self.state.is_over:
            time.sleep(LOOK_SECONDS)
            self.state = (queue.look() or {}).get(self.number, self.state)
            now = time.monotonic()
            if self.state.is_waiting and now - began > QUEUE_SECONDS:
                return
            runs = runs or (0.0 if self.state.is_waiting else now)
            if runs and now - runs > RUN_SECONDS:
                return

    def reports(self) -> list[Report]:
        """What the nodes have found so far."""
        found: list[Report] = []
        for number in range(2):
            with suppress(OSError, ValueError):
                found.append(json.loads((self.folder / f"report-{number}").read_text(encoding="utf-8")))
        return found

    def said(self) -> str | None:
        """What the job's programs said; None where the folder does not show it."""
        try:
            return (self.folder / "said").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def close(self) -> None:
        """End the job, and remove its folder."""
        with suppress(BackendError):
            queue.cancel(self.number)
        shutil.rmtree(self.folder, ignore_errors=True)


def probe(purpose: str) -> Iterator[Finding]:
    """Run the job, which takes a few seconds once it has its nodes, and say what it found."""
    try:
        made = Probe()
    except (EstimatorError, OSError) as error:
        yield Finding("probe job", False, str(error), "estimator doctor --backend slurm", purpose)
        return
    try:
        made.wait()
        yield from findings(purpose, _checks(made))
    finally:
        made.close()


def _checks(made: Probe) -> list[Check]:
    reports = made.reports()
    if len(reports) < 2:
        return [("probe job", lambda: _without_report(made))]
    nodes = " and ".join(str(report["node"]) for report in reports)
    return [
        ("probe job", lambda: f"job {made.number} ran on {nodes}"),
        ("shared folder", lambda: _shared(reports)),
        ("Python on nodes", lambda: f"{made.python} is Python {reports[0]['python']}"),
        ("Open MPI on nodes", lambda: _open_mpi(reports)),
        ("ports between nodes", lambda: _ports(reports)),
        ("clocks", lambda: _clocks(reports)),
    ]


def _without_report(made: Probe) -> str:
    job, said = f"job {made.number}", made.said()
    if made.state.is_waiting:
        why = made.state.why_pending or "Slurm does not say why"
        what = f"{job} still waits after {QUEUE_SECONDS:g} s: {why}"
        raise Missing(f"{what}; ask for a partition with free nodes in slurm.toml", "sinfo")
    if said is None:
        what = f"{job} is {made.state.state}, and nothing of it is in {made.folder}: nodes do not share that folder"
        raise Missing(what, _SHARED_FIX)
    if made.python in said and ("No such file" in said or "Permission denied" in said):
        what = f"nodes cannot run {made.python}: {_last_line(said)}"
        raise Missing(what, 'python = "/a/path/on/the/nodes" in ~/.config/estimator-sdk/slurm.toml')
    what = f"{job} is {made.state.state} before both nodes reported: {_last_line(said) or 'it said nothing'}"
    raise Missing(what, f"scontrol show job {made.number}")


def _shared(reports: Sequence[Report]) -> str:
    for report in reports:
        if not report["sees"]:
            what = f"{report['node']} does not see what this machine writes to {home()}"
            raise Missing(what, _SHARED_FIX)
    return f"{home()} is the same on both nodes"


def _open_mpi(reports: Sequence[Report]) -> str:
    for report in reports:
        if report["mpirun"] is None:
            what = f"{report['node']} has no mpirun beside its Python or on PATH, so MPI worlds cannot start"
            raise Missing(what, "pip install 'estimator-sdk[mpi]', or modules = [\"openmpi\"] in slurm.toml")
    return str(reports[0]["mpirun"])


def _ports(reports: Sequence[Report]) -> str:
    first, second = reports
    if second["port"]:
        what = f"{second['node']} cannot connect to a port of {first['node']}: {second['port']}"
        raise Missing(f"{what}; hosts talk over TCP, at any port", "ask the administrator which ports are open")
    return f"{second['node']} reaches a free port of {first['node']}"


def _clocks(reports: Sequence[Report]) -> str:
    first, second = reports
    apart = abs(float(second.get("apart", 0.0)))
    from_here = max(abs(time.time() - float(report["now"])) for report in reports)
    if apart > APART_SECONDS:
        raise Missing(f"those of {first['node']} and {second['node']} are {apart:.0f} s apart", "chronyc tracking")
    if from_here > APART_SECONDS + queue.ASK_AGAIN_SECONDS:
        raise Missing(f"this machine's is {from_here:.0f} s apart from those of the nodes", "chronyc tracking")
    return f"at most {APART_SECONDS:g} s apart"


def _last_line(said: str) -> str:
    return said.strip().rpartition("\n")[2]
