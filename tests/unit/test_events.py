"""No event is sent that nobody is shown, and none is awaited that nobody sends."""

import ast
from functools import cache
from pathlib import Path

import estimator_container
import pytest
from estimator_container.contract.event_decoding import KINDS

import estimator_sdk

ROOT = Path(__file__).parents[2]
PACKAGES = [Path(package.__file__).parent for package in (estimator_sdk, estimator_container)]
SOURCES = [path for package in PACKAGES for path in package.rglob("*.py")]
NAMES = {kind.__name__: kind for kind in KINDS.values()}
SHOWN_BY = ("telemetry", "display", "console.py")
"""The folders and the file that show events to people."""


def kinds_in(*expressions):
    """The names of the kinds of events in expressions and patterns."""
    words = (word for expression in expressions for word in ast.walk(expression))
    return {getattr(word, "id", getattr(word, "attr", "")) for word in words} & NAMES.keys()


@cache
def nodes_in(path):
    return list(ast.walk(ast.parse(path.read_text())))


def calls_in(path):
    return [node for node in nodes_in(path) if isinstance(node, ast.Call)]


@cache
def sent():
    """The kinds of which there is an event somewhere."""
    return {name for path in SOURCES for call in calls_in(path) for name in kinds_in(call.func)}


def shown_in(path):
    """The kinds for which a file does something; `return None` of a case is to do nothing."""
    cases = [node for node in nodes_in(path) if isinstance(node, ast.match_case)]
    idle = [case for case in cases if [ast.unparse(line) for line in case.body] == ["return None"]]
    asked = [call.args[1] for call in calls_in(path) if ast.unparse(call.func) == "isinstance"]
    done = kinds_in(*(case.pattern for case in cases if case not in idle))
    return done - kinds_in(*(case.pattern for case in idle)) | kinds_in(*asked)


@cache
def shown():
    return {name for path in SOURCES if set(SHOWN_BY) & set(path.relative_to(ROOT).parts) for name in shown_in(path)}


@pytest.mark.parametrize("name", NAMES)
def test_an_event_is_sent_by_somebody(name):
    assert name in sent()


@pytest.mark.parametrize("name", NAMES)
def test_an_event_is_shown_or_says_who_looks_it_up_in_the_log(name):
    assert (name in shown()) != bool(NAMES[name].recorded_for)


def test_what_is_awaited_is_sent():
    assert shown() <= sent()


def test_the_document_has_every_event_that_a_log_may_hold():
    document = (Path(__file__).parents[2] / "docs" / "logs.md").read_text().partition("\n## Events\n")[2]
    rows = [line.split(" | ") for line in document.splitlines() if line.startswith("| `")]
    facts = {row[0].strip("| `"): row[1] for row in rows}
    for name, kind in KINDS.items():
        if name != "service_status":
            assert [word.strip("`") for word in facts.pop(name).split(", ") if word != "–"] == list(kind.types), name
    assert not facts
