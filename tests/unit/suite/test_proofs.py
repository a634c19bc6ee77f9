"""A law that loses its last proof on a backend is missed; the list of proofs says what a run has stated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import proofs
from tests.tables import LAWS

ROOT = Path(__file__).parents[3]
ALL = [line.split(" ", 1)[0] for line in LAWS.read_text(encoding="utf-8").splitlines() if line]


@pytest.fixture
def results(tmp_path):
    """What a run in which every law has a test of its own has written; without the lines that are named."""

    def written(*without, also=()):
        stated = [(law, backend, f"t.py::test_{law}") for law in ALL for backend in proofs.EVERYWHERE]
        lines = [
            ["law", law, where, True, test] for law, where, test in [*stated, *also] if (law, where) not in without
        ]
        path = tmp_path / "results"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return str(path)

    return written


@pytest.fixture
def listed(tmp_path):
    return tmp_path / "proofs.txt"


def test_the_list_has_a_line_for_each_law_and_test_with_its_backends(results, listed):
    assert proofs.main(results(also=[("A1", "sagemaker", "t.py::test_A1")]), str(listed)) == 0
    lines = listed.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ALL
    assert lines[ALL.index("A1")] == "A1 t.py::test_A1 docker process sagemaker"
    assert lines[ALL.index("E2b")] == "E2b t.py::test_E2b docker process"


def test_a_law_that_loses_its_last_test_on_one_backend_is_named_with_the_test(results, listed, capsys):
    proofs.main(results(also=[("A1", "sagemaker", "t.py::test_A1")]), str(listed))
    before = listed.read_text()
    assert proofs.main(results(("L1", "docker")), str(listed)) == 1
    assert capsys.readouterr().err.splitlines() == [
        "no test proves the law A1 on sagemaker: it was proved by t.py::test_A1",
        "no test proves the law L1 on docker: it was proved by t.py::test_L1",
    ]
    assert listed.read_text() == before


def test_a_test_that_is_not_the_last_may_go(results, listed):
    proofs.main(results(also=[("L1", "docker", "t.py::test_more")]), str(listed))
    assert proofs.main(results(), str(listed)) == 0
    assert "test_more" not in listed.read_text()


def test_a_law_that_nobody_tests_and_one_that_nobody_has_written_down_are_named(results, listed, capsys):
    assert proofs.main(results(("K8", "process"), also=[("Z9", "process", "t.py::test_z")]), str(listed)) == 1
    assert capsys.readouterr().err.splitlines() == [
        "t.py::test_z states the law Z9, which laws.txt does not have",
        "no test proves the law K8 on process",
    ]


def test_a_run_writes_down_which_test_has_stated_what(tmp_path):
    path = tmp_path / "results"
    chosen = ["tests/conformance/test_before_start.py", "-k", "test_planning_starts_nothing", "--backend", "process"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'inner'}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    subprocess.run([*command, f"--results={path}", *chosen], cwd=ROOT, env=environment, check=True, capture_output=True)
    test = "tests/conformance/test_before_start.py::test_planning_starts_nothing"
    assert proofs.stated(path.read_text()) == {("P2", "process"): frozenset({test})}


def test_the_committed_list_names_tests_that_are_there():
    """So that a renamed test is noticed before the whole suite has run."""
    committed = proofs.parse(proofs.PROOFS.read_text(encoding="utf-8"))
    tests = {test for tests in committed.values() for test in tests}
    for test in sorted(tests):
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{test} is in proofs.txt, and is no more"
