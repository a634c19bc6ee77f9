"""The loop that takes the metrics, the judge of their targets, and the page: a wrong figure must not look right."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest

from benchmarks import judge, report, results
from benchmarks.__main__ import arguments
from benchmarks.harness import ROOT, Case, Extent, Metric, Panel, Points, Taken, Target, Way, interleaved, take

PANEL = Panel("a thing", "hosts", "ms", (Target("ours", "floor", 1.5),))


def way(name, order, role="peer", value=1.0, **more):
    return Way(name, role, lambda: order.append(name) or value, **more)


def test_all_ways_are_warmed_up_and_the_order_turns_round_each_time():
    order = []
    ways = [way(name, order) for name in "ABC"]
    assert [each.name for each, _ in interleaved(ways, 3)] == list("ABCCBAABC")
    assert order == list("ABC" + "ABCCBAABC")


def test_a_way_that_takes_minutes_runs_as_often_as_it_says_and_is_not_warmed_up():
    order = []
    list(interleaved([way("quick", order), way("slow", order, at_most=1)], 3))
    assert order.count("slow") == 1 and order.count("quick") == 4


def test_a_case_may_ask_for_more_runs_than_the_others():
    order = []
    cases = [
        Case((PANEL,), n, (way(f"at {n}", order, "ours"),), runs) for n, runs in ((1, None), (2, Extent(2, True).many))
    ]
    take(Metric("S0", "", "", lambda extent: iter(cases)), Extent(2, True), lambda line: None)
    assert (order.count("at 1"), order.count("at 2")) == (1 + 2, 1 + 3)


def test_metrics_that_are_asked_for_one_by_one_add_up():
    chosen = arguments(["--metric", "S7", "--metric", "S2", "S3"]).metric
    assert chosen == ["S7", "S2", "S3"]


def test_a_peer_that_is_left_out_is_not_run():
    order = []
    case = Case((PANEL,), 2, (way("ours", order, "ours"), way("theirs", order, peer="s5cmd")))
    metric = Metric("S0", "", "", lambda extent: iter([case]))
    (taken,) = take(metric, Extent(2, True, frozenset({"s5cmd"})), lambda line: None)
    assert set(order) == set(taken.ways) == {"ours"}


def test_one_run_can_give_a_reading_to_each_of_several_panels():
    other = Panel("damage", "hosts", "lines")
    case = Case((PANEL, other), 4, (Way("ours", "ours", lambda: (0.5, 3.0)),))
    metric = Metric("S0", "", "", lambda extent: iter([case]))
    first, second = take(metric, Extent(2, True), lambda line: None)
    assert first.ways["ours"].values == {4: [0.5, 0.5]} and second.ways["ours"].values == {4: [3.0, 3.0]}


def test_a_way_that_has_nothing_to_show_in_a_panel_is_not_in_it():
    other = Panel("until nothing is left", "hosts", "s")
    ways = (Way("ours", "ours", lambda: (0.5, 3.0)), Way("theirs", "peer", lambda: (0.7, None)))
    metric = Metric("S0", "", "", lambda extent: iter([Case((PANEL, other), 4, ways)]))
    first, second = take(metric, Extent(2, True), lambda line: None)
    assert (list(first.ways), list(second.ways)) == (["ours", "theirs"], ["ours"])


def test_the_line_goes_through_the_medians_of_three_n_or_more():
    points = Points("ours", {2: [0.3, 0.2, 9.0], 4: [0.4], 8: [0.6]})
    assert points.fit() == (pytest.approx(0.25, abs=0.06), pytest.approx(0.05, abs=0.01))
    assert Points("ours", {2: [0.3], 4: [0.4]}).fit() is None


def taken(panel, **ways):
    """Medians by N of each way."""
    made = Taken(panel, loads=[0.5])
    for name, values in ways.items():
        role = name if name in ("ours", "floor") else "peer"
        made.ways[name] = Points(role, {n: [value] for n, value in values.items()})
    return made


def test_a_target_is_judged_at_every_n():
    found = judge.verdicts(taken(PANEL, ours={2: 0.14, 4: 0.31}, floor={2: 0.1, 4: 0.2}))
    assert [each.held for each in found] == [True, False]
    assert found[1].text == "ours, hosts 4: 310 ms, to be ≤ 1.5 × floor = 300 ms"


def test_of_several_references_the_best_counts_and_more_can_be_better():
    rivals = Panel("rates", "ranks", "lines/s", (Target("ours", ("a", "b"), 2.0),), higher_is_better=True)
    (found,) = judge.verdicts(taken(rivals, ours={2: 500.0}, a={2: 100.0}, b={2: 300.0}))
    assert not found.held and found.text.endswith("to be ≥ 2 × b = 600 lines/s")


def test_a_slope_is_judged_as_a_slope():
    panel = Panel("a thing", "hosts", "s", (Target("ours", "floor", 1.1, of="slope"),))
    (found,) = judge.verdicts(taken(panel, ours={1: 5.0, 2: 6.0, 3: 7.0}, floor={1: 0.0, 2: 1.0, 3: 2.0}))
    assert found.held


def test_a_target_whose_reference_was_left_out_is_neither_held_nor_missed():
    assert judge.verdicts(taken(PANEL, ours={2: 0.1})) == []


def test_the_page_tells_what_was_missed_left_out_and_could_not_be_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "said", lambda *argv: "0")
    extent = Extent(2, True, frozenset({"rclone"}))
    run = results.begin(extent, {"s5cmd": "2.3"})
    metric = Metric("S0", "A thing & more", "From here to there.", lambda extent: iter(()))
    results.add(run, metric, extent, [taken(PANEL, ours={2: 0.2}, floor={2: 0.1}, theirs={2: 0.4})], 1.0, None)
    results.add(run, Metric("S99", "Another", "", lambda extent: iter(())), extent, [], 1.0, "OSError: no disk")
    results.write(run, tmp_path)
    report.write(results.read(tmp_path), tmp_path)
    page = (tmp_path / "performance.md").read_text()
    assert "| S0 | [a thing](#s0-a-thing--more) | hosts 2 | 200 ms | 100 ms | 400 ms (theirs) | **0 of 1** |" in page
    assert "**missed**: ours, hosts 2: 200 ms" in page and "**Why a target is missed:** not known yet." in page
    assert "**without these peers**, on demand: rclone" in page and "**Could not be taken:** OSError: no disk" in page
    drawing = ElementTree.parse(tmp_path / "performance" / "s0-a-thing.svg")
    assert len(drawing.findall(".//{http://www.w3.org/2000/svg}circle")) == 3


def test_a_metric_that_is_taken_again_takes_its_place_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "said", lambda *argv: "0")
    first, second = (Metric(number, "A thing", "", lambda extent: iter(())) for number in ("S2", "S10"))
    extent = Extent(2, True)
    run = results.begin(extent, {})
    for metric in (first, second):
        results.add(run, metric, extent, [], 1.0, "OSError: no disk")
    results.write(run, tmp_path)
    run = results.again(tmp_path, ["S2"])
    results.add(run, first, Extent(5, True, frozenset({"s5cmd"})), [taken(PANEL, ours={2: 0.2})], 1.0, None)
    assert [(each["number"], each["failure"]) for each in run["metrics"]] == [("S2", None), ("S10", "OSError: no disk")]
    page = "\n".join(report.page(run))
    assert page.count("Taken by itself: ") == 1 and "commit 0, 5 runs, a quick run, without s5cmd." in page


def test_a_missing_peer_ends_the_run_before_anything_is_timed(tmp_path):
    code = """
import sys
from benchmarks import __main__ as main, peers
from benchmarks.peers import Peer
def missing(): raise FileNotFoundError
peers.PEERS["rclone"] = Peer("rclone", missing)
main.one = None
sys.argv = ["bench", "--metric", "S8", "--without-peer", "s5cmd", "--without-peer", "boto3-crt"]
sys.exit(main.main())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "missing: rclone. Run scripts/setup benchmarks, or do without: --without-peer rclone\n"
