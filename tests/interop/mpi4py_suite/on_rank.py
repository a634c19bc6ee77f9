"""Run tests of mpi4py on this rank, and print a line of JSON for each: `on_rank.py FOLDER MODULE EXCLUDED…`.

Where there is mpi4py's own program, `test/main.py`, it finds and runs the tests, but for those that match an excluded
pattern.
"""

from __future__ import annotations

import contextlib
import json
import sys
import unittest
from pathlib import Path
from typing import Any

MARK = "MPI4PY_SUITE "


class Result(unittest.TextTestResult):
    """Prints how each test ended."""

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self._tell(test, "passed")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._tell(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._tell(test, "skipped", reason)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._tell(test, "failed", str(err[1]))

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self._tell(test, "failed", str(err[1]))

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        super().addUnexpectedSuccess(test)
        self._tell(test, "failed", "passes, and was expected to fail")

    def _tell(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        lines = why.strip().splitlines() or [""]
        print(f"\n{MARK}{json.dumps({'test': test.id(), 'outcome': outcome, 'why': lines[-1]})}", flush=True)


class Runner(unittest.TextTestRunner):
    """A runner that prints so."""

    resultclass = Result


def main(folder: str, module: str, *excluded: str) -> None:
    here = Path(__file__).parent
    sys.path.insert(0, str(here / folder))
    # A test that fails must not end the world: the other ranks are to say how theirs ended.
    with contextlib.suppress(SystemExit):
        if (here / folder / "main.py").exists():
            program = __import__("main")
            words = ["main.py", "--no-builddir", "-i", f"^{module}\\.py$", *(f"-x={each}" for each in excluded)]
            program.main(module=None, argv=words, testRunner=Runner)
        else:
            unittest.main(module=module, argv=[module], testRunner=Runner)


if __name__ == "__main__":
    main(*sys.argv[1:])
