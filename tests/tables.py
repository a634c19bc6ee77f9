"""The tables that a test run writes into the docs: what was seen to hold, and where.

python -m tests.tables RESULTS    # the file that `pytest --results` has written, in one run or in several
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

Results = Mapping[tuple[str, str], list[bool]]
"""The outcomes of the tests that state something, by what they state and of what."""

STATED = "stated"
"""A property of a test's report: [kind of statement, its name, where it was tried, whether it held, the test]."""
DOCS = Path(__file__).parents[1] / "docs"

LAWS = Path(__file__).parent / "conformance" / "laws.txt"
CONTRACT = Path(__file__).parent / "interop" / "contract" / "rows.txt"


class Recorder:
    """Adds what each test has stated to a file; with several workers, in the process that leads them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        stated = [json.dumps(value) for name, value in report.user_properties if name == STATED]
        if stated:  # most tests state nothing
            with self._path.open("a") as file:
                file.writelines(f"{line}\n" for line in stated)


def write(path: Path) -> None:
    """Write both tables from what a Recorder has kept."""
    laws: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    contract: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for kind, name, where, held, _ in map(json.loads, path.read_text().splitlines()):
        (laws if kind == "law" else contract)[name, where].append(held)
    (DOCS / "laws.md").write_text(of_laws(laws), encoding="utf-8")
    (DOCS / "contract.md").write_text(of_contract(contract), encoding="utf-8")


def of_laws(results: Results) -> str:
    """Every law, and on which backends it holds."""
    laws = dict(line.split(" ", 1) for line in LAWS.read_text(encoding="utf-8").splitlines() if line)
    backends = sorted({backend for _, backend in results})
    rows = [
        "# The laws, and where they hold",
        "",
        "One behaviour on every backend. Each law is a test in `tests/conformance/`, run with real processes and a",
        "real mpirun; this table is written by that run. A dash: no test states it yet. Some laws each backend keeps",
        "in a way of its own: their tests run on both `docker` and `process` or, where a test has parameters, each set",
        "of them on one of the two. Of the other laws, all tests run on `process`, and on `docker` as many as state",
        "each law once. `scripts/test --all` runs everything on both. On `slurm`, a real Slurm of twelve nodes, each",
        "law has one test in every run and, with `--all`, every test that does not need its hosts on one machine; D4",
        "has none, for no pipe reaches from one node to the others, and a job that asks for one is refused. `spark`",
        "has no column: its laws run with `--all` alone, and [spark.md](spark.md) says which cannot hold there. On",
        "`sagemaker` what is submitted runs on a stand-in of the service, which can tell only some of them; what else",
        "was tried there is in `tests/interop/sagemaker_service/`. On `ssh`, a pool of twelve machines with a real",
        "sshd each and no common folder, each law has one test in every run, if `tests/conformance/on_ssh.txt` lists",
        "one that was seen to hold there; a job that needs pipes, or a folder of this machine for checkpoints, is",
        "refused.",
        "",
        f"| law | what it says | {' | '.join(backends)} |",
        f"|---|---|{'---|' * len(backends)}",
    ]
    for law, text in laws.items():
        cells = [_cell(results.get((law, backend)), "holds") for backend in backends]
        rows.append(f"| {law} | {text} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def of_contract(results: Results) -> str:
    """Every row of the container contract, for our toolkit and for the one that it comes from."""
    return "\n".join(_contract_lines(results)) + "\n"


def _contract_lines(results: Results) -> Iterator[str]:
    yield from (
        "# The container contract",
        "",
        "What a training image and the platform that starts it promise each other: our toolkit and the package",
        "`sagemaker-training` 5.1.4 side by side. Each row is a test in `tests/interop/contract/`, run in",
        "containers of both; this table is written by that run. A dash: no test states it yet. Where the package",
        "does something else, ours is different on purpose, and the cell says what the package was seen to do.",
    )
    for line in filter(None, CONTRACT.read_text(encoding="utf-8").splitlines()):
        if line.startswith("# "):
            yield from (
                "",
                f"## {line[2:]}",
                "",
                "| row | what it says | ours | `sagemaker-training` |",
                "|---|---|---|---|",
            )
            continue
        row, _, text = line.partition(" ")
        text, _, other = text.partition(" :: ")
        ours = _cell(results.get((row, "ours")), "holds")
        yield f"| {row} | {text} | {ours} | {_cell(results.get((row, 'theirs')), other or 'holds')} |"


def _cell(outcomes: list[bool] | None, good: str) -> str:
    return "–" if not outcomes else good if all(outcomes) else "**broken**"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
