"""Which tests prove which law on which backend, as a whole run saw it; no law may lose its last proof unnoticed.

python -m tests.proofs RESULTS [PROOFS]    # what `pytest --results` has written, in one run or in several

Writes the list of proofs, `tests/conformance/proofs.txt`, unless a law has lost the last test that proves it on a
backend: then it says which, leaves the list as it is and exits with 1. Where a law is given up on a backend on purpose,
take its lines out of the list by hand.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.tables import LAWS

PROOFS = Path(__file__).parent / "conformance" / "proofs.txt"
EVERYWHERE = ("docker", "process")
"""The backends on which every law holds; on others only those that they can tell."""

Proofs = Mapping[tuple[str, str], frozenset[str]]
"""Law and backend -> the tests that state the law there, each by its file and name."""


def stated(results: str) -> Proofs:
    """What the tests of a run have stated, whether or not it held."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for kind, name, where, _, test in map(json.loads, results.splitlines()):
        if kind == "law":
            found[name, where].add(test)
    return {key: frozenset(tests) for key, tests in found.items()}


def parse(text: str) -> Proofs:
    """The list as it is committed: a law, a test and the backends in each line."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for law, test, *backends in (line.split() for line in text.splitlines()):
        for backend in backends:
            found[law, backend].add(test)
    return {key: frozenset(tests) for key, tests in found.items()}


def text_of(proofs: Proofs, laws: list[str]) -> str:
    """The list, in the order of the laws."""
    lines: defaultdict[tuple[int, str, str], list[str]] = defaultdict(list)
    for (law, backend), tests in proofs.items():
        for test in tests:
            lines[laws.index(law), law, test].append(backend)
    return "".join(f"{law} {test} {' '.join(sorted(backends))}\n" for (_, law, test), backends in sorted(lines.items()))


def complaints(found: Proofs, committed: Proofs, laws: list[str]) -> Iterator[str]:
    """A sentence about each law that is proved no more, or not at all, and about each that nobody has written down."""
    for (law, _), tests in sorted(found.items()):
        if law not in laws:
            yield f"{', '.join(sorted(tests))} states the law {law}, which {LAWS.name} does not have"
    needed = {(law, backend) for law in laws for backend in EVERYWHERE} | set(committed)
    for law, backend in sorted(needed - set(found)):
        lost = ", ".join(sorted(committed.get((law, backend), ())))
        yield f"no test proves the law {law} on {backend}" + (f": it was proved by {lost}" if lost else "")


def main(results: str, path: str = str(PROOFS)) -> int:
    laws = [line.split(" ", 1)[0] for line in LAWS.read_text(encoding="utf-8").splitlines() if line]
    found, list_of_proofs = stated(Path(results).read_text(encoding="utf-8")), Path(path)
    committed = parse(list_of_proofs.read_text(encoding="utf-8")) if list_of_proofs.exists() else {}
    wrong = list(complaints(found, committed, laws))
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    list_of_proofs.write_text(text_of(found, laws), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
