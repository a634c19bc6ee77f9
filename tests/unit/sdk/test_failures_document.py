import re
from pathlib import Path

from estimator_container.failures.kind import Kind, Origin

DOCUMENT = (Path(__file__).parents[3] / "docs/failures.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \|.*\| (yes|\[always\]\(.*\))? ?\|$", DOCUMENT, re.MULTILINE)


def test_the_document_has_every_kind_of_failure_and_says_which_are_tried_again():
    assert [kind for kind, _ in ROWS] == list(Kind)
    assert [kind for kind, again in ROWS if again] == [kind for kind in Kind if kind.origin is Origin.PLATFORM]
