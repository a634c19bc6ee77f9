"""The console's page in a real browser: what a user sees of jobs that run, fail and are stopped, and does to them."""

from __future__ import annotations

import json

import pytest
from selenium.webdriver.common.keys import Keys

from estimator_sdk import Job
from tests.console.browsed import Page, keep_picture, opened, violations
from tests.console.folders import make_job, tell_of_training, writer
from tests.console.server import console
from tests.console.told import started
from tests.interop.notebooks.browser import browser
from tests.ports import free_port

WIDTHS = (1280, 768, 320)
"""A screen, a tablet, and a phone, which is also a screen at 400 %."""
VIEWS = {
    "": "tbody tr",
    "logs": ".line",
    "curves": ".chart canvas",
    "machines": ".part .nothing",
    "timeline": "canvas.map",
    "doctor": ".part img",
    "checkpoints": ".part td",
    "notes": ".notes li",
    "inputs": "pre.document",
}
"""Each part of a job, and the table, with what it shows when it is there."""
SEES_ITS_TAB = """
const box = (selector) => document.querySelector(selector)?.getBoundingClientRect();
const tab = box(".tabs [aria-current]"), tabs = box(".tabs");
return !tab || (tab.left >= tabs.left - 1 && tab.right <= tabs.right + 1);
"""
OLD = 120  # jobs that have ended
HOSTILE = (
    b"<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script><b>bold</b>\n"
    b"\x1b]8;;javascript:window.hacked=1\x07link\x1b]8;;\x07 \x1b[31mred\x1b[0m \x1b[2J\x1b[Hhome\n"
    b"right\xe2\x80\xaeot tfel\xe2\x80\xac nul\x00bell\x07 bad\xff\xfe\n"
    b"first\rsecond\rthird\n" + b"<i>" + b"y" * (10 << 20) + b"\nafter the long line\n"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    for number in range(OLD):
        make_job(folder, f"old-{number:03}", "Failed" if number % 10 == 0 else "Completed", created=1.7e9 + number)
    return folder


@pytest.fixture(scope="module")
def server(home):
    with console(home) as running:
        yield running


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture
def page(driver, server):
    return opened(driver, server)


@pytest.fixture
def told(home, tmp_path):
    with started(home, tmp_path) as running:
        yield running


def open_log(page, told) -> None:
    page.go(f"jobs/{told.job.name}/logs")
    page.wait_for(".log .text", "up")


def test_the_address_keeps_no_token(page):
    assert page.driver.current_url == page.server.page
    assert page.driver.execute_script("return document.cookie") == ""


def test_the_table_is_filtered_sorted_turned_and_opened_by_keys(page):
    page.wait(lambda: page.count("tbody tr") == 50, "the first page has 50 rows")
    page.click(".turning button:last-child")
    page.wait_for("tbody tr:first-child", "old-069")
    page.click("th.name button")
    page.wait_for("tbody tr:first-child", f"old-{OLD - 1}")
    page.click("th.name button")
    page.wait_for("tbody tr:first-child", "old-000")
    body = page.one("body")
    body.send_keys("/")
    page.driver.switch_to.active_element.send_keys("OLD-11")
    page.wait(lambda: page.count("tbody tr") == 10, "ten names have old-11")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.one("body").send_keys("j")
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.wait_for("h1", "old-110")
    page.wait_for(".title .badge", "failed")
    page.one("body").send_keys(Keys.ESCAPE)
    page.wait_for(".counted", "10 jobs")
    assert page.complaints() == []


def test_who_goes_through_the_rows_by_keys_stays_at_a_job_that_changes(page, told):
    page.wait_for("tbody tr:first-child", told.job.name)
    page.one("body").send_keys("j")
    told.job.stop()
    page.wait_for("tbody tr:first-child .badge", "stopped")
    assert page.driver.switch_to.active_element.text == told.job.name


def test_a_job_appears_and_its_lines_and_curves_move(page, told):
    page.wait_for("tbody", told.job.name)
    open_log(page, told)
    for number in range(3):
        told.write(f"line {number}, just now\n".encode())
        page.wait_for(".log .text", f"line {number}, just now")
    page.click("[data-part=curves]")
    for values in ([0.75, 0.5], [0.25]):
        told.write("".join(f"loss: {value}\n" for value in values).encode())
        page.wait_for(".chart figcaption", f"loss: {values[-1]}")
    page.click("[data-part=machines]")
    page.wait(lambda: page.count(".chart canvas") == 1, "the host has no chart")
    assert page.complaints() == []


def test_a_window_of_the_timeline_is_recorded_and_taken(page, told):
    open_log(page, told)
    told.write(b"a first step\n")
    page.wait_for(".now", "step 1")  # or no rank counts its steps yet
    page.click("[data-part=timeline]")
    page.wait_for("button.record", "Record in detail")
    page.driver.execute_script("document.querySelector('.together select').selectedIndex = 0")
    page.driver.execute_script("document.querySelector('.together select').dispatchEvent(new Event('change'))")
    page.click("button.record")
    page.wait_for(".recorded", "Recording 2 s")
    assert page.count("button.record:disabled") == 1

    def is_recorded() -> bool:
        told.write(b"another step\n")
        return "Download the trace" in page.text(".recorded")

    page.wait(is_recorded, "the window is not recorded")
    page.wait_for(".window-notes", "neither Horovod nor PyTorch runs in it, so there are its steps alone")
    keep_picture(page, "timeline-recorded")
    link = page.one(".recorded a").get_attribute("href").removeprefix(page.server.page)
    status, headers, body = page.server.ask(f"/{link}")
    assert (status, headers["content-disposition"].endswith('-horovod_timeline.json"')) == (200, True)
    kept = told.job.folder / "hosts" / "algo-1" / "output" / "data" / "horovod_timeline.json"
    assert body == kept.read_bytes()
    assert any(each.get("cat") == "steps" for each in json.loads(body)["traceEvents"])
    assert violations(page) == []
    assert page.complaints() == []


def test_a_failure_is_explained_and_leads_to_its_lines(page, told):
    open_log(page, told)
    told.write(b"raise")
    page.wait_for(".why h2", "ValueError: <b>no such digit</b>")
    assert page.text(".title .badge") == "failed"
    page.click(".why button")
    page.wait_for(".log .text.stderr", "Traceback (most recent call last):")
    page.wait_for(".bars", "Goodput")


def test_a_job_is_stopped_after_a_question_and_runs_again(page, told):
    open_log(page, told)
    page.click("button.stop")
    page.wait(lambda: page.count("dialog[open]"), "nobody asks")
    page.click("dialog button[value=no]")
    page.wait(lambda: not page.count("dialog[open]"), "the question stays")
    assert told.job.status == "InProgress"
    page.click_at_once("button.stop", "dialog button[value=no]", "button.stop")
    page.click("dialog[open] button[value=yes]")
    page.wait_for(".title .badge", "stopped")
    page.click("button.retry")
    page.click("dialog[open] button[value=yes]")
    page.wait(lambda: told.job.name not in page.text("h1") and page.text(".title .badge") == "running", "it never runs")
    again = Job.attach(page.text("h1"))
    try:
        page.wait_for(".log .text", "up")
    finally:
        again.stop()
    page.wait_for(".title .badge", "stopped")


def test_what_a_script_prints_is_only_ever_shown(page, told):
    open_log(page, told)
    told.write(HOSTILE)
    page.wait_for(".log .text", "after the long line")
    shown = page.text(".log .text")
    assert "<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script><b>bold</b>" in shown
    assert "right\\u202eot tfel\\u202c nul\\x00bell\\x07 bad\\xff\\xfe" in shown
    lines = shown.splitlines()
    assert "third" in lines
    assert not any("second" in line for line in lines)
    assert "a download has them all" in shown
    assert page.count(".log img, .log script, .log b, .log i, .log a") == 0
    assert page.count(".log .ansi-red-fg") == 1
    assert page.driver.execute_script("return window.hacked") is None
    assert len(shown) < 100_000
    page.one(".part input[type=search]").send_keys("ONERROR", Keys.ENTER)
    page.wait_for(".found .text", "<img src=x")
    assert page.count(".found img") == 0
    page.click(".found button")
    page.wait(lambda: page.count(".line.marked") == 1, "what was found is not shown")
    assert page.complaints() == []


def test_a_burst_leaves_the_page_at_the_end_and_small(page, told):
    open_log(page, told)
    told.write(b"".join(b"burst %d %s\n" % (number, b"." * 60) for number in range(10_000)))
    page.wait_for(".log .page:nth-last-child(2)", "burst 9999 ")
    assert page.count(".line") < 3000
    page.click(".filters button:nth-of-type(2)")  # the first line
    page.wait_for(".log .page:first-child", "burst 0 ")


def test_the_server_goes_and_comes_back(driver, home, tmp_path):
    token = str(tmp_path / "token")
    port = free_port()
    with console(home, "--token-file", token, "--port", str(port)) as first:
        page = Page(driver, first)
        page.load(first.address)
        page.wait_for("#connection", "live")
    page.wait_for("#connection", "server away")
    make_job(home, "made-meanwhile")
    with console(home, "--token-file", token, "--port", str(port)):
        page.wait_for("#connection", "live")
        page.wait_for("tbody", "made-meanwhile")
    with console(home, "--port", str(port)):
        page.wait_for("#notice", "Open the address that it has printed.")


@pytest.mark.parametrize("width", WIDTHS)
def test_every_view_fits_its_width_and_pleases_axe(page, home, width):
    name = f"shown-{width}"
    frames = writer(make_job(home, name, "Failed", hosts=2))
    for number in range(300):
        frames.write(number % 2, 1 + number % 2, f"\x1b[32mstep\x1b[0m {number}\nloss: {1 / (number + 1)}\n".encode())
    tell_of_training(frames)
    page.width(width)
    for part in VIEWS:
        look_at(page, name, part, "light", width)
    for part in ("", "logs", "doctor"):
        look_at(page, name, part, "dark", width)
    assert page.complaints() == []


def look_at(page, name: str, part: str, theme: str, width: int) -> None:
    """Show a part of a job, or the table, and hold it to what every view keeps."""
    view = part or "table"
    page.driver.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    page.go(f"jobs/{name}/{part}" if part else "")
    page.wait_for("h1" if part else "tbody", name if part else "old-")
    page.wait(lambda: page.count(VIEWS[part]), f"{view} shows nothing")
    fits = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.driver.execute_script(fits), f"{view} is wider than {width}"
    page.wait(lambda: page.driver.execute_script(SEES_ITS_TAB), f"the tab of {view} is out of sight at {width}")
    assert violations(page) == []
    keep_picture(page, f"{view}-{theme}-{width}")
