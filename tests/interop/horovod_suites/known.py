"""The tests that are known to fail, or never to end (`known.json`), and whether a run fits them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).parent / "known.json"
BAD = ("failed", "missing")


@dataclass(frozen=True)
class Known:
    """Tests of one suite that fail for one reason."""

    suite: str
    tests: tuple[str, ...]
    reason: str
    packages: Mapping[str, str]
    """Package -> how its version begins: they fail where all of these are installed."""
    passes_reworded: bool
    """Whether they pass once the words that Keras 3 renamed are written as they are today."""
    endless_beyond: int | None = None
    """They never end on more ranks than that, so they are left out there, and pass elsewhere; None: they fail."""

    def applies(self, suite: str, versions: Mapping[str, str], reworded: bool) -> bool:
        installed = all(_begins(versions.get(name), wanted) for name, wanted in self.packages.items())
        return (
            self.suite == suite
            and self.endless_beyond is None
            and installed
            and not (reworded and self.passes_reworded)
        )


def read(path: Path = LIST) -> list[Known]:
    """The list, as it is on disk."""
    return [
        Known(
            entry["suite"],
            tuple(entry["tests"]),
            entry["reason"],
            entry.get("packages", {}),
            entry.get("passes_reworded", False),
            entry.get("endless_beyond"),
        )
        for entry in json.loads(path.read_text())
    ]


def reasons(known: Sequence[Known], suite: str, versions: Mapping[str, str], reworded: bool) -> dict[str, str]:
    """Test -> why it fails, for the tests of a suite that fail with these packages."""
    return {test: each.reason for each in known if each.applies(suite, versions, reworded) for test in each.tests}


def endless(known: Sequence[Known], suite: str, ranks: int) -> dict[str, str]:
    """Test -> why it never ends, for the tests of a suite that do not on so many ranks."""
    left_out = [each for each in known if each.suite == suite and each.endless_beyond is not None]
    return {test: each.reason for each in left_out for test in each.tests if ranks > (each.endless_beyond or 0)}


def surprises(outcomes: Mapping[str, str], expected: Mapping[str, str], selected: bool = False) -> list[str]:
    """What does not fit the list: tests that fail and are not on it, and tests on it that do not fail.

    outcomes: test -> `passed`, `skipped`, `failed`, or `missing` where a rank did not come to it.
    selected: only some tests of the suite were run, so one on the list need not be among them.
    """
    if not outcomes:
        return ["no test has run"]
    bad = {test: how for test, how in outcomes.items() if how in BAD}
    found = [f"{test} {how}, and known.json does not list it" for test, how in bad.items() if test not in expected]
    for test in expected:
        if test in outcomes and test not in bad:
            found.append(f"{test} {outcomes[test]}, and known.json lists it as failing")
        elif test not in outcomes and not selected:
            found.append(f"known.json lists {test}, and there is no such test")
    return found


def _begins(version: str | None, wanted: str) -> bool:
    """
    >>> _begins("2.21.0", "2.2"), _begins("3.15.1", "3"), _begins(None, "3")
    (False, True, False)
    """
    parts = wanted.split(".")
    return version is not None and version.split(".")[: len(parts)] == parts
