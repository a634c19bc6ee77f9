"""What is shown of a job: every word of it as text, within bounds, whatever its ranks write."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from estimator_container.contract import agent_events, events
from estimator_container.failures.verdict import Verdict
from estimator_container.logs.lines import Line

from estimator_sdk.display import page, text
from estimator_sdk.display.log import LAST_LINES, WIDTH
from estimator_sdk.display.snapshot import JobLink, Snapshot
from estimator_sdk.display.view import MOST_METRICS, View

EVIL = """</pre></details></div><script>alert(1)</script><img src=x onerror="alert('2')">&lt;b&gt;"""
LOSS = [("loss", re.compile(r"loss: ([0-9.]+)"))]


def line(data, rank=0, host="algo-1", stream="stdout"):
    return Line(0, host, rank, stream, data if isinstance(data, bytes) else data.encode())


def state(**changes):
    known = {
        "name": "train-1",
        "status": "InProgress",
        "backend": "process",
        "hosts": ("algo-1", "algo-2"),
        "attempts": (SimpleNamespace(began=100.0, ended=112.5),),
        "reason": "",
        "verdict": None,
        "is_final": False,
    }
    return SimpleNamespace(**{**known, **changes})


def page_of(view, links=(), **changes):
    return page.html(Snapshot(state(**changes), view, tuple(links)))


class Read(HTMLParser):
    """The elements and the text of a page; fails where tags do not match."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.texts, self._open = [], {}, []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts[self._open[-1]] = self.texts.get(self._open[-1], "") + data


def test_a_long_name_of_a_metric_is_wrapped_so_that_its_values_stay_in_sight():
    name = "a" * 500
    view = View([(name, re.compile(r"loss: ([0-9.]+)"))])
    view.on_line(line("loss: 1\n"))
    shown = page_of(view)
    assert f'<td class="name">{name}</td>' in shown
    assert ".estimator-job td.name {max-width: 24em; overflow-wrap: anywhere}" in shown


def test_whatever_a_job_says_is_text_and_makes_no_element():
    def told(evil):
        view = View([(evil, re.compile(r"loss: ([0-9.]+)"))])
        view.on_line(line(f"loss: 1 {evil}\n"))
        view.on_line(line(evil, rank=None, host=f"algo{evil}", stream="toolkit"))
        view.on_event(evil, events.PhaseStarted(evil))
        view.on_event("a", events.AttemptFailed(1, evil, 0))
        view.on_event(evil, events.ServiceStatus(evil, evil))
        verdict = Verdict("exception", evil, "algo-1", 0, 1, detail=evil)
        links = [JobLink(evil, evil, f"https://{evil}")]
        return page_of(view, links, name=evil, verdict=verdict, status="Failed", hosts=(evil,), backend=evil)

    harmless, evil = Read(told("x")), Read(told(EVIL))
    assert [(tag, sorted(its)) for tag, its in evil.elements] == [(tag, sorted(its)) for tag, its in harmless.elements]
    assert evil.texts["script"] == harmless.texts["script"] == page._SCRIPT
    assert EVIL in evil.texts["pre"]


def test_what_a_screen_would_act_on_is_shown_as_what_it_is():
    view = View()
    for data in (
        b"10 %\r50 %\r100 %\r\n",
        b"\x1b[31mred\x07",
        "left\u202eright".encode(),
        b"\xff\xfe no text\n",
        b"\n",
    ):
        view.on_line(line(data))
    (log,) = view.in_order()
    assert list(log.lines) == ["100 %", r"\x1b[31mred\x07", r"left\x202eright", r"\xff\xfe no text", ""]


def test_a_line_without_an_end_is_shown_as_it_is_now_until_its_end_or_another_of_its_stream():
    view = View()
    view.on_line(line("begin\n"))
    view.on_open_line(line(b"10 %\r", stream="stderr"))
    view.on_open_line(line(b"20 %\r", stream="stderr"))
    view.on_line(line("meanwhile\n"))
    (log,) = view.in_order()
    assert (log.count, log.newest()) == (2, ["begin", "meanwhile", "20 %"])
    assert "meanwhile\n20 %" in page_of(view)
    view.on_line(line(b"10 %\r20 %\rdone\n", stream="stderr"))
    assert (log.count, log.newest()) == (3, ["begin", "meanwhile", "done"])


def test_a_page_stays_small_whatever_is_written():
    view = View(LOSS)
    for rank in range(200):
        for _ in range(LAST_LINES + 1):
            view.on_line(line(b"'" * 5_000, rank=rank))
    for number in range(1000):
        view.on_event("a", events.AttemptFailed(number, "&" * 10_000, 0))
    log = view.in_order()[7]
    assert log.name == "rank 7" and len(log.lines) == LAST_LINES and len(log.lines[0]) == WIDTH + 1
    verdict = Verdict("exception", "'" * 100_000, detail="<" * 1_000_000)
    shown = page_of(view, verdict=verdict, status="Failed", is_final=True)
    assert len(shown) < 400_000
    assert "<b>ranks 0–199</b> <small>101 lines each</small>" in shown
    assert "rank 7 – 101 lines, the last 100" in shown and "rank 8 –" not in shown
    assert "and 192 more logs: Job.logs(rank=…)" in shown


@pytest.mark.parametrize("same", [True, False])
def test_a_page_of_512_ranks_with_many_metrics_stays_small(same):
    names = [f"metric_{number}" for number in range(60)]
    view = View([(name, re.compile(rf"{name}=([0-9.]+)")) for name in names])
    for step in range(3):
        for rank in range(512):
            word = "step" if same else "".join(chr(97 + int(digit)) for digit in str(rank))
            found = " ".join(f"{name}={(rank + step) % 7}.5" for name in names)
            view.on_line(line(f"{word} {step} {found}\n", rank=rank, host=f"algo-{rank // 8 + 1}"))
    links = [JobLink("log", f"/home/job/algo-{host}/frames", None) for host in range(1, 513)]
    shown = page_of(view, links)
    elements = [tag for tag, _ in Read(shown).elements]
    assert len(shown) < 500_000 and elements.count("details") < 60 and elements.count("svg") == page.METRICS
    assert len(text.text(Snapshot(state(), view, tuple(links)))) < 3000


def test_a_rank_that_says_something_of_its_own_has_a_row_of_its_own():
    view = View(LOSS)
    for step in range(20):
        for rank in range(512):
            if rank != 300 or step < 5:
                view.on_line(line(f"step {step} loss: {rank / 100}\n", rank=rank))
    view.on_line(line("ValueError: no such digit\n", rank=17, stream="stderr"))
    view.on_line(line("epoch 1\n", rank=0))
    shown = page_of(view)
    for row in (
        "<b>rank 0</b> <small>21 lines</small>",
        "<b>ranks 1–16, 18–511</b> <small>5 to 20 lines, the fewest on rank 300</small>",
        '<b>rank 17</b> <small>21 lines</small><span class="newest">ValueError: no such digit</span>',
    ):
        assert row in shown
    assert "rank 300 – 5 lines" in shown and "rank 301 –" not in shown


def test_the_newest_lines_are_those_that_are_kept():
    view = View()
    for number in range(LAST_LINES + 5):
        view.on_line(line(f"line {number}\n"))
    shown = Read(page_of(view)).texts["pre"].splitlines()
    assert (len(shown), shown[0], shown[-1]) == (LAST_LINES, "line 5", "line 104")


def test_ranks_come_by_number_then_scripts_then_toolkits():
    view = View()
    for rank, stream in ((None, "toolkit"), (None, "stdout"), (10, "stderr"), (2, "stdout"), (2, "stderr")):
        view.on_line(line("a\n", rank, "algo-2", stream))
    assert [(log.name, log.count) for log in view.in_order()] == [
        ("rank 2", 2),
        ("rank 10", 1),
        ("algo-2", 1),
        ("algo-2 toolkit", 1),
    ]


def test_metrics_are_those_that_the_curves_of_the_job_have():
    view = View(LOSS)
    bar = "\x1b[1m10/10\x1b[0m 0s 3ms/step - accuracy: 0.5 - loss: 1.5\n"
    for said in ("step: 7, loss: 0.25, lr: 1e-3\n", "Epoch 1/2\n", bar, "loss: 2, a word\n"):
        view.on_line(line(said))
    view.on_line(line("lost: 1\n", stream="toolkit"))
    assert {name: (each.count, each.last) for name, each in view.metrics.items()} == {
        "loss": (3, 2.0),
        "lr": (1, 0.001),
        "accuracy": (1, 0.5),
    }


def test_ever_new_names_of_metrics_are_not_kept():
    view = View()
    for number in range(2 * MOST_METRICS):
        view.on_line(line(f"client_{number}: 1\n"))
    assert len(view.metrics) == MOST_METRICS


@pytest.mark.parametrize(("logs", "shown"), [("all", ["rank 0", "rank 1"]), ("rank0", ["rank 0"]), ("none", [])])
def test_metrics_are_read_from_all_ranks_whoever_is_shown(logs, shown):
    view = View(LOSS, logs)
    for rank in (0, 1):
        view.on_line(line(f"loss: {rank}.5\n", rank=rank))
    assert [log.name for log in view.in_order()] == shown
    assert (view.metrics["loss"].count, view.metrics["loss"].last) == (2, 0.5)
    row = page_of(view).partition('<td class="name">loss</td>')[2].partition("</tr>")[0]
    assert re.sub("<svg.*</svg>|<[^>]*>", " ", row).split() == "0.5 – 1.5 0.5 1.5 2 from 2 ranks".split()


def test_a_phase_is_over_when_all_hosts_have_left_it():
    view = View()
    for host in ("algo-1", "algo-2"):
        view.on_event(host, events.PhaseStarted("world"))
    view.on_event("algo-1", events.PhaseEnded("world", 0.25))
    assert '<li class="phase" data-state="now">world <small>on 1 of 2 hosts</small>' in page_of(view)
    view.on_event("algo-2", events.PhaseEnded("world", 0.125))
    assert '<li class="phase" data-state="done">world <small>0.2 s</small>' in page_of(view)
    view.on_event("algo-1", events.PhaseStarted("run"))
    assert 'data-state="now">run <small>…</small>' in page_of(view)
    view.on_event("algo-1", events.Ended("completed"))
    assert 'data-state="done">run <small>done</small>' in page_of(view)
    view.on_event("algo-1", events.AttemptFailed(1, "algo-2 is gone", 0))
    shown = page_of(view)
    assert "<li" not in shown and "attempt 1 failed: algo-2 is gone; trying again" in shown


def test_the_states_of_the_service_are_phases():
    view = View()
    for status in ("Starting", "Downloading"):
        view.on_event("", events.ServiceStatus(status, "as it says"))
    assert 'data-state="done">Starting <small>done' in page_of(view)
    assert 'data-state="now">Downloading <small>…' in page_of(view)


def test_only_what_a_browser_opens_is_a_link():
    links = [JobLink("model", "s3://b/model.tar.gz", None), JobLink("log", "/a b", "file:///a%20b")]
    shown = page_of(View(), links)
    assert "<code>s3://b/model.tar.gz</code>" in shown and '<code><a href="file:///a%20b">/a b</a></code>' in shown


def test_as_text_it_is_a_few_lines():
    view = View(LOSS)
    view.on_line(line("loss: 0.25\n", rank=1))
    for event in (
        events.PhaseStarted("world"),
        events.PhaseEnded("world", 1.25),
        agent_events.CheckpointPublished("000001-00000001", 1, 1_000, 1_000, 0.1),
    ):
        view.on_event("algo-1", event)
    verdict = Verdict("exit_code", "rank 1 on algo-1 exited with code 3")
    shown = text.text(
        Snapshot(state(status="Failed", is_final=True, verdict=verdict), view, (JobLink("log", "/frames", None),))
    )
    assert shown.splitlines()[:7] == [
        "train-1: Failed, 12.5 s, 2 hosts, backend process",
        "  phases   world 1.2 s",
        "  lines    rank 1: 1 line",
        "  metrics  loss 0.25 (1)",
        "  kept     1 snapshot, the last 000001-00000001 (1 file, 1.0 kB)",
        "  log      /frames",
        "  rank 1 on algo-1 exited with code 3",
    ]
