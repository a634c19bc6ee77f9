"""What the page shows beside something else: jobs beside a job, stacks beside a verdict, ranks beside each other."""

from __future__ import annotations

import json

import pytest
from estimator_container.contract.names import Layout
from estimator_container.telemetry.logged import ValueLog
from estimator_container.telemetry.metric_table import SeriesKey
from estimator_container.telemetry.recording import History
from selenium.webdriver.common.keys import Keys

from estimator_sdk.code import bundle
from tests.console.browsed import keep_picture, opened, violations
from tests.console.folders import STACKS, make_job, tell_of_training, writer
from tests.console.server import console
from tests.interop.notebooks.browser import browser

HOSTILE = "<img src=x onerror='window.hacked = 1'>\u202e"
SHOWN = HOSTILE.replace("\u202e", "\\u202e")
MANY = 15  # metrics of a job
HALVES = 7  # jobs with "half" in their names


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    for name, speed in (("whole", 1.0), *((f"half-{number}", 0.5) for number in range(HALVES))):
        made = make_job(folder, name, "Failed" if name == "whole" else "Completed", created=1.7e9)
        sources = folder / f"{name}-sources"
        sources.mkdir()
        (sources / "train.py").write_text(f"speed = {speed}\n{HOSTILE}\n" if name == "whole" else f"speed = {speed}\n")
        bundle.write({"train.py": sources / "train.py"}, folder / f"{name}.tar.gz")
        told = {"speed": str(speed), "sagemaker_submit_directory": json.dumps(str(folder / f"{name}.tar.gz"))}
        made.request.write_text(json.dumps({"TrainingJobName": name, "HyperParameters": told}))
        frames = writer(made)
        for step in range(1, 4):
            frames.write(0, 1, f"step: {step}, loss: {speed / step}\n".encode())
        if name == "whole":
            tell_of_training(frames, ranks=4)
        frames.close()
    many = ValueLog(Layout(str(make_job(folder, "many", created=1.7e9).host("algo-1"))).logged_metrics, "0")
    for step in range(3):
        many.add(step, {f"layer/{number}/{HOSTILE}": step * number for number in range(MANY)})
    pair = make_job(folder, "pair", hosts=2, created=1.7e9)
    for host, share in (("algo-1", 0.25), ("algo-2", 0.75)):
        kept = History(Layout(str(pair.host(host))).telemetry)
        for second in range(0, 60, 2):
            kept.add(1_700_000_000_000 + 1000 * second, {SeriesKey("system.cpu.utilization"): share})
    return folder


@pytest.fixture(scope="module")
def page(tmp_path_factory, home):
    with console(home) as server, browser(tmp_path_factory.mktemp("browser")) as driver:
        yield opened(driver, server)


@pytest.fixture(autouse=True)
def is_clean(page):
    """No test leaves a complaint, and nothing that a job wrote has become markup."""
    yield
    assert page.complaints() == []
    assert page.driver.execute_script("return window.hacked") is None
    assert violations(page) == []


def put_beside(page, words: str) -> None:
    page.wait(lambda: page.count(".part .beside"), "there is no field for a job")
    field = page.one(".part .beside")
    field.clear()
    field.send_keys(words, Keys.ENTER)


def test_curves_of_jobs_lie_over_each_other_and_are_in_the_address(page):
    page.go("jobs/whole/curves")
    page.wait_for(".chart figcaption", "loss: 0.3333")
    put_beside(page, "half-1")
    page.wait_for(".chart figcaption", "loss: 0.3333, 0.1667")
    assert page.text(".jobs-beside li").splitlines() == ["whole", "half-1×"]
    page.wait_for(".u-legend", "half-1")
    put_beside(page, "half")
    page.wait_for("#notice", "More than one job has half in its name")
    put_beside(page, "ALF-2")
    page.wait_for(".chart figcaption", "loss: 0.3333, 0.1667, 0.1667")
    assert page.driver.current_url.endswith("#/jobs/whole/curves/half-1,half-2")
    keep_picture(page, "jobs-beside-each-other")
    page.load()
    page.wait_for(".chart figcaption", "loss: 0.3333, 0.1667, 0.1667")
    page.click(".jobs-beside button")
    page.wait_for(".jobs-beside", "half-2")
    page.wait(lambda: "half-1" not in page.text(".jobs-beside, .u-legend"), "half-1 stays")
    page.go("jobs/whole/curves/no-such-job")
    page.wait_for("#notice", "no-such-job")
    page.wait_for(".chart figcaption", "loss: 0.3333")
    page.complaints()  # the browser names the answer 404


def choose(page, *names: str) -> None:
    for name in names:
        page.click(f"tr[data-name='{name}'] input")


@pytest.mark.parametrize("width", [1280, 768, 320])
def test_jobs_are_compared_from_the_table(page, width):
    page.width(width)
    page.go()
    page.wait(lambda: page.count("tbody tr") == HALVES + 3, "the table is not there")
    assert page.count(".chosen:not([hidden])") == 0
    choose(page, "whole")
    page.wait_for(".chosen [role=status]", "1 chosen; choose another to compare")
    choose(page, "half-3")
    page.wait(lambda: page.count(".chosen button:disabled") == 0, "two cannot be compared")
    assert violations(page) == []
    keep_picture(page, f"table-chosen-{width}")
    page.click(".chosen button:nth-of-type(2)")
    page.wait_for(".compared h2", "From whole (-) to half-3 (+)")
    page.go()
    page.wait(lambda: page.count("tr input:checked") == 2, "what was chosen is forgotten")
    choose(page, "half-4")
    page.wait(lambda: page.count(".chosen button:disabled") == 1, "three jobs have no difference")
    page.click(".chosen button:nth-of-type(1)")
    page.wait_for(".chart figcaption", "loss: 0.3333, 0.1667, 0.1667")
    assert page.driver.current_url.endswith("#/jobs/whole/curves/half-3,half-4")
    page.go()
    page.wait(lambda: page.count("tr input:checked") == 3, "what was chosen is forgotten")
    page.one("body").send_keys("j", "x")
    page.wait(lambda: page.count("tr input:checked") != 3, "the key does not choose")
    page.click(".chosen button.quiet")
    assert page.count("tr input:checked") == 0
    fits = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.driver.execute_script(fits)
    page.width(1280)


def test_hosts_are_chosen_by_their_names(page):
    page.go("jobs/pair/machines")
    page.wait(lambda: page.count(".chart canvas") == 2, "each host has no chart")
    keep_picture(page, "machines-of-two-hosts")
    put_beside(page, "algo-2")
    page.wait(lambda: page.count(".chart canvas") == 1, "a host that was not chosen is shown")
    page.wait_for(".chart figcaption", "algo-2")
    put_beside(page, "algo-3")
    page.wait_for(".part .nothing", "host 'algo-3' is not in this job; did you mean 'algo-")
    page.complaints()  # the browser names the answer 400


def test_of_many_metrics_some_are_chosen_by_their_names(page):
    page.go("jobs/many/curves")
    page.wait(lambda: page.count(".chart canvas") == MANY, "not every metric has a chart")
    page.one(".part input[type=search]").send_keys("LAYER/7", Keys.ENTER)
    page.wait(lambda: page.count(".chart canvas") == 1, "a metric that was not chosen is shown")
    page.wait_for(".chart figcaption", f"layer/7/{SHOWN}")


def test_the_difference_of_two_jobs_is_shown_as_text(page):
    page.go("jobs/half-1/inputs")
    page.wait(lambda: page.count("pre.document"), "there are no inputs")
    put_beside(page, "whole")
    page.wait_for(".compared h2", "From half-1 (-) to whole (+)")
    page.wait_for(".compared .removed", "-speed = 0.5")
    assert "+speed = 1.0" in page.text(".compared .added")
    assert f"+{SHOWN}" in page.text(".compared .added")
    assert page.count(".compared img") == 0
    assert '"TrainingJobName": "whole"' in page.text(".compared .added")
    keep_picture(page, "difference")


def test_equal_stacks_are_folded_beside_the_verdict(page):
    page.go("jobs/whole/notes")
    page.wait_for(".where .who", "ranks 0, 1 and 2")
    assert page.text(".where .who").splitlines() == ["rank 3", "ranks 0, 1 and 2"]
    lines = [line for line in page.text(".where pre").splitlines() if line]
    assert lines == [stack.rstrip("\n") for stack in reversed(STACKS)]
    assert page.count(".where b") == 0
    keep_picture(page, "stacks")


def test_the_timeline_names_the_slowest_rank_and_is_zoomed(page):
    page.go("jobs/whole/timeline")
    page.wait_for(".part .aside", "A step takes 500 ms to 1.0 s; rank 3 on algo-1 is the slowest.")
    page.wait_for(".bars", "Goodput")  # which moves what is below it
    picture = "return document.querySelector('canvas.map').toDataURL()"
    before = page.driver.execute_script(picture)
    for button in page.all(".part .filters button")[:1]:
        button.click()
    page.wait(lambda: page.driver.execute_script(picture) != before, "nothing is zoomed")
    page.click(".part .filters button:last-of-type")
    page.wait(lambda: page.driver.execute_script(picture) == before, "the whole is not shown again")
    keep_picture(page, "timeline")
