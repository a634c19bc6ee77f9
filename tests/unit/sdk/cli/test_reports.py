"""The reports of a job's end, for every way in which it can end."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.lines import Line
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk.cli import execution
from estimator_sdk.cli.reports import junit, summary
from estimator_sdk.job.ledger import PHASES, AttemptCost, Ledger
from estimator_sdk.plan.plan import HostPlan, Plan, RankPlan, StepPlan

RANKS = tuple(RankPlan(rank, rank % 2, f"algo-{rank // 2 + 1}") for rank in range(4))
HOSTS = tuple(HostPlan(f"algo-{number}", "", "", (), {}) for number in (1, 2))
PLAN = Plan("job", "process", "local", HOSTS, RANKS, "mpi", "train.py", ("python", "a|b`c"), {})
WITHOUT_WORLD = Plan(
    "job", "process", "local", HOSTS, tuple(RankPlan(None, 0, host.name) for host in HOSTS), "none", "train.py", (), {}
)
EXIT = Verdict("exit_code", "rank 3 on algo-2 exited with code 7", "algo-2", 3, 7, victims=(0, 1))
KILLED = Verdict("signal", "rank 3 on algo-2 was killed by SIGSEGV", "algo-2", 3, None, "SIGSEGV", victims=(0, 1, 2))
LOST = Verdict("host_lost", "algo-2 is gone", "algo-2")
NO_ONE = Verdict("requirements", "pip could not install the code's requirements")
SCRIPT = Verdict("exit_code", "the script on algo-1 exited with code 3", "algo-1", None, 3)


def job(status: str, verdict: Verdict | None = None, reason: str = "") -> SimpleNamespace:
    lines = [
        Line(1, "algo-2", 3, "stderr", b"\x00\x1b \xff & <b> ]]>\n"),
        Line(2, "algo-2", 3, "toolkit", b"not the rank's\n"),
        *(Line(3 + n, "algo-1", 0, "stdout", f"line {n}\n".encode()) for n in range(100)),
    ]
    facts = {"name": "job", "created": 10.0, "ended": 12.5, "model_data": None, "logs": lambda: iter(lines)}
    return SimpleNamespace(status=status, verdict=verdict, reason=reason, **facts)


@pytest.mark.parametrize(
    ("ended", "plan", "outcomes"),
    [
        (job("Completed"), PLAN, ["passed"] * 4),
        (job("Failed", EXIT), PLAN, ["skipped", "skipped", "passed", "failure"]),
        (job("Failed", LOST), PLAN, ["skipped", "skipped", "failure", "failure"]),
        (job("Failed", NO_ONE), PLAN, ["failure"] * 4),
        (job("Failed", SCRIPT), WITHOUT_WORLD, ["failure", "skipped"]),
        (job("Failed"), PLAN, ["error"] * 4),
        (job("Stopped", reason="max_run"), PLAN, ["error"] * 4),
        (job("Stopping"), PLAN, ["error"] * 4),
    ],
)
def test_each_rank_has_a_test_case_with_its_outcome(ended, plan, outcomes):
    suite = ElementTree.fromstring(junit.document(ended, plan))[0]
    assert [case[0].tag if len(case) else "passed" for case in suite] == outcomes
    counts = [int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == [len(outcomes), *(outcomes.count(each) for each in ("failure", "error", "skipped"))]
    assert suite.get("time") == "2.500"
    shown = summary.markdown(ended, plan, 1)
    signs = {"passed": "| passed |", "failure": "| **failed** |", "error": "| **stopped** |"}
    assert {each: shown.count(sign) for each, sign in signs.items()} == {each: outcomes.count(each) for each in signs}


def test_a_failure_has_the_verdict_and_the_last_words_without_what_xml_cannot_say():
    suite = ElementTree.fromstring(junit.document(job("Failed", EXIT), PLAN))[0]
    assert suite[3].findtext("failure") == EXIT.text()
    assert suite[3].find("failure").get("type") == "exit_code"
    assert suite[3].findtext("system-out") == r"\x00\x1b \xff & <b> ]]>"
    assert suite[0].findtext("system-out").splitlines() == [f"line {n}" for n in range(80, 100)]


COSTS = (AttemptCost(1, 30.0, 12.5, "rank 3 on algo-2 | was killed\nby SIGSEGV"), AttemptCost(2, 70.0, 60.0, ""))
LEDGER = Ledger(100.0, 4, "steps", {**dict.fromkeys(PHASES, 0.0), "steps": 72.5, "launch": 27.5}, COSTS)


def test_where_the_time_went_is_in_properties_and_changes_no_test_case():
    suite = ElementTree.fromstring(junit.document(job("Completed"), PLAN, LEDGER))[0]
    properties, *cases = suite
    assert [case.tag for case in cases] == ["testcase"] * 4
    found = {each.get("name"): each.get("value") for each in properties}
    assert found["goodput"] == "0.7250" and found["goodput.from"] == "steps" and found["seconds.launch"] == "27.500"
    assert (found["attempts"], found["attempt.1.steps"], found["attempt.2.why"]) == ("2", "12.500", "")
    assert found["attempt.1.why"] == "rank 3 on algo-2 | was killed\\nby SIGSEGV"


def test_the_summary_has_the_goodput_and_what_each_of_several_attempts_cost():
    shown = summary.markdown(job("Completed"), PLAN, 0, LEDGER)
    assert "| goodput | 72 % (steps 72 s of 100 s; launch 28 s) |" in shown
    assert "| 1 | 30.0 s | 12.5 s | <code>rank 3 on algo&#45;2 &#124; was killed&#92;nby SIGSEGV</code> |" in shown
    assert "| 2 | 70.0 s | 60.0 s |  |" in shown
    once = summary.markdown(job("Completed"), PLAN, 0, replace(LEDGER, attempts=COSTS[1:]))
    assert "| goodput |" in once and "| attempt |" not in once


def test_the_summary_shows_a_command_whatever_is_in_it():
    shown = summary.markdown(job("Failed", EXIT), PLAN, 7)
    assert "| command | <code>python &#39;a&#124;b&#96;c&#39;</code> |" in shown
    assert "| exit code | 7 |" in shown
    assert "The last lines of rank 3 on algo-2:" in shown
    assert "rank 0 on algo-1:" not in shown


ODD = st.text(st.sampled_from("a |`\\\r\n\t\0\x1b\x85\u2028\u202e<&*_~\ud800\N{SNOWMAN}"), max_size=12) | st.text(
    max_size=12
)
CELL = r"(?:\\[!-/:-@\[-`{-~]|[^|\r\n])*"  # of GitHub's reader of tables


def outside_fences(shown: str) -> list[str]:
    """The lines of a text in Markdown that are not in a block of code; one that stays open is none."""
    found, fence = [], ""
    for line in shown.split("\n"):
        if fence:
            fence = "" if re.fullmatch(f"{fence}`*", line) else fence
        elif re.fullmatch("`{3,}", line):
            fence = line
        else:
            found.append(line)
    assert not fence, shown
    return found


@given(word=ODD, step=ODD, said=ODD, reason=ODD, uri=ODD)
def test_no_text_of_a_script_or_a_user_changes_the_layout_of_a_report(word, step, said, reason, uri):
    plan = replace(PLAN, steps=(StepPlan(step, ("python", word)), StepPlan("b", (word,))))
    ended = job("Failed", replace(EXIT, message=f"it said {said}", detail=reason))
    ended.logs = lambda: iter([Line(1, "algo-2", 3, "stdout", said.encode("utf-8", "surrogatepass"))])
    ended.model_data = uri
    for each in (ended, job("Stopped", reason=reason)):
        shown = summary.markdown(each, plan, 7)
        assert re.fullmatch(r"[\n\t\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ufffd\U00010000-\U0010ffff]*", shown), shown
        rows = [line for line in outside_fences(shown) if line.startswith("|")]
        assert [row.count("|") for row in rows] == [3] * 9 + [4] * 6, shown
        assert all(re.fullmatch(rf"\|({CELL}\|)+", row) for row in rows), shown
        rest = [line for line in outside_fences(shown) if line and not line.startswith("|")]
        assert all(line.startswith(("### job: ", "The last lines of rank ")) for line in rest), shown
        document = junit.document(each, plan)
        ElementTree.fromstring(document)
        assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", document)


def test_a_progress_bar_s_line_is_cut_to_its_end():
    ended = job("Failed", EXIT)
    ended.logs = lambda: iter([Line(1, "algo-2", 3, "stdout", b"\r10 %" * 100_000 + b"\r100 %\r\n")])
    for shown in (summary.markdown(ended, PLAN, 7), junit.document(ended, PLAN).decode()):
        assert len(shown) < 5000 and "\\r10 %\\r100 %\n" in shown.replace("<", "\n")


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (job("Completed"), 0),
        (job("Failed", EXIT), 7),
        (job("Failed", KILLED), 128 + signal.SIGSEGV),
        (job("Failed", LOST), 1),
        (job("Failed", Verdict("early_exit", "rank 1 left", "algo-1", 1, 0)), 1),
        (job("Failed"), 1),
        (job("Stopped"), 143),
    ],
)
def test_the_exit_code_is_the_first_failing_ranks(ended, code):
    assert execution.exit_code_of(ended) == code


def test_the_summary_is_added_to_the_one_of_github(estimator, tmp_path, monkeypatch):
    target = tmp_path / "step"
    target.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    code, _, err = estimator("run", "--", "python", "train.py")
    assert (code, err) == (0, "")
    assert target.read_text().startswith("before\n### train-")
    assert "| exit code | 0 |" in target.read_text()


def test_a_report_that_cannot_be_written_after_all_says_how_the_job_ended(estimator, project):
    (project / "train.py").write_text(f"import os; os.mkdir({os.fspath(project / 'result.xml')!r})")
    code, _, err = estimator("run", "--junit", "result.xml", "--", "python", "train.py")
    assert code == 1
    assert "is Completed, but its results cannot be written" in err
