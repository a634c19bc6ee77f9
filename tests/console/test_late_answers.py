"""What the page makes of answers that come late, in another order than it asked, or not at all."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from estimator_container.contract.names import Layout

from tests.console.browsed import opened
from tests.console.folders import make_job, writer
from tests.console.server import console, wait_until
from tests.console.told import started
from tests.interop.notebooks.browser import browser

HOLDS = """
const [ask, Source] = [window.fetch, window.EventSource];
let hold = null, isAway = false, isDeaf = false;
const held = [], unheard = [];
window.asked = [];
window.holdNext = (end) => (hold = end);
window.isHeld = () => held.length > 0;
window.letGo = () => held.splice(0).forEach((go) => go());
window.setAway = (value) => (isAway = value);
window.deafen = () => (isDeaf = true);
window.hear = () => {
  isDeaf = false;
  unheard.splice(0).forEach((tell) => tell());
};
window.fetch = async (...given) => {
  if (isAway) throw new TypeError("nobody answers");
  const end = hold;
  const isHeld = hold !== null && given[0].split("?")[0].endsWith(hold) && given[1]?.method !== "POST";
  if (isHeld) hold = null;
  window.asked.push(given[0]);
  const answer = await ask(...given).catch((error) => {
    window.asked.splice(window.asked.indexOf(given[0]), 1); // it is asked again
    if (isHeld) hold = end;
    throw error;
  });
  if (!isHeld) return answer;
  const [body, status] = [await answer.text(), answer.status];
  await new Promise((go) => held.push(go));
  return new Response(body, { status });
};
window.EventSource = class extends Source {
  addEventListener(name, listener) {
    super.addEventListener(name, (event) => {
      if (!isDeaf) listener(event);
      else if (name === "hello") unheard.push(() => listener(event));
    });
  }
};
"""
"""The page asks through this: `holdNext` keeps the answer to the next address that ends so, until `letGo`. `asked` has
those that did not fail. While it is deaf what changes is lost, and that it is connected is told afterwards."""
NO_ANSWER = "The console does not answer."


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    return folder


@pytest.fixture(scope="module")
def browsed(tmp_path_factory, home):
    with console(home) as server, browser(tmp_path_factory.mktemp("browser")) as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": HOLDS})
        yield driver, server


@pytest.fixture
def page(browsed):
    shown = opened(*browsed)
    yield shown
    assert shown.complaints() == []


@pytest.fixture
def told(home, tmp_path):
    with started(home, tmp_path) as running:
        yield running


def hold_next(page, end: str) -> None:
    """Keep the answer to the next request whose address ends so."""
    page.driver.execute_script("window.holdNext(arguments[0])", end)


def wait_until_held(page) -> None:
    page.wait(lambda: page.driver.execute_script("return window.isHeld()"), "no answer is held")


def let_go(page) -> None:
    """Give the page the answers that are held, and the time to take them."""
    page.driver.execute_async_script("window.letGo(); setTimeout(arguments[0], 200)")


def count_asked(page, end: str) -> int:
    """How often the page has asked for an address that ends so."""
    script = "return window.asked.filter((each) => each.split('?')[0].endsWith(arguments[0])).length"
    return page.driver.execute_script(script, end)


def open_log(page, told) -> None:
    page.go(f"jobs/{told.job.name}/logs")
    page.wait_for(".log .text", "up")


def open_held(page, told) -> None:
    """Go to a job whose state is held, with a page that is deaf."""
    hold_next(page, told.job.name)
    page.driver.execute_script("window.deafen()")
    page.go(f"jobs/{told.job.name}/logs")
    wait_until_held(page)


def stop(page, told, badge: str = ".badge") -> None:
    told.job.stop()
    page.wait_for(badge, "stopped")


def test_an_older_state_of_a_job_does_not_follow_a_newer_one(page, told):
    open_log(page, told)
    hold_next(page, told.job.name)
    page.click("button.stop")
    page.click("dialog[open] button[value=yes]")
    wait_until_held(page)
    page.wait_for(".badge", "stopped")
    let_go(page)
    assert page.text(".badge") == "stopped"


def test_a_page_of_the_table_that_is_older_than_a_row_does_not_replace_it(page, told):
    page.wait_for("tbody", told.job.name)
    hold_next(page, "api/jobs")
    page.click("th.name button")
    wait_until_held(page)
    badge = f"tr[data-name='{told.job.name}'] .badge"
    stop(page, told, badge)
    let_go(page)
    assert page.text(badge) == "stopped"


def test_what_changed_before_the_page_heard_of_changes_is_shown(page, told):
    open_log(page, told)
    page.go()
    page.wait_for("tbody", told.job.name)
    page.driver.execute_script("window.deafen()")
    open_log(page, told)
    told.write(b"a last line\n")
    log = Path(Layout(str(told.job.folder / "hosts" / "algo-1")).frames)
    wait_until(lambda: b"a last line" in log.read_bytes(), "the line is never written")
    told.job.stop()
    wait_until(lambda: told.job.status == "Stopped", "the job does not end")
    time.sleep(2.0)  # in which the page is told, and does not hear it
    page.driver.execute_script("window.hear()")
    page.wait_for(".badge", "stopped")
    page.wait_for(".log .text", "a last line")


def test_a_job_that_could_not_be_asked_for_is_shown_once_it_can(page, told):
    page.driver.execute_script("window.deafen(); window.setAway(true)")
    page.go(f"jobs/{told.job.name}/curves")
    page.wait_for("#notice", NO_ANSWER)
    page.driver.execute_script("window.setAway(false); window.hear()")
    page.wait_for(".tabs [aria-current]", "Curves")
    page.wait_for(".badge", "running")


def test_a_part_that_is_chosen_before_the_job_is_there_is_shown_then(page, told):
    open_held(page, told)
    page.click("[data-part=timeline]")
    let_go(page)
    page.wait_for(".tabs [aria-current]", "Timeline")
    page.wait(lambda: page.count("canvas.map"), "there is no timeline")


def test_one_story_is_asked_for_at_a_time_and_the_newest_is_told(page, told):
    open_log(page, told)
    hold_next(page, "story")
    told.write(b"a line\n")
    wait_until_held(page)
    before = count_asked(page, "story")
    for number in range(3):
        told.write(f"line {number}\n".encode())
        page.wait_for(".log .text", f"line {number}")
    assert count_asked(page, "story") == before
    let_go(page)
    page.wait(lambda: count_asked(page, "story") > before, "the newest story is not asked for")


def test_where_the_time_went_is_asked_for_again_at_the_end(page, told):
    page.go(f"jobs/{told.job.name}/logs")
    page.wait(lambda: count_asked(page, "ledger"), "it is never asked for")
    before = count_asked(page, "ledger")
    stop(page, told)
    page.wait(lambda: count_asked(page, "ledger") > before, "it stays as it was")


def test_a_job_that_is_not_there_is_asked_for_once_beside_one_that_runs(page, told):
    open_log(page, told)
    told.write(b"loss: 0.5\n")
    page.go(f"jobs/{told.job.name}/curves/no-such-job")
    page.wait_for("#notice", "no-such-job")
    page.wait(lambda: count_asked(page, f"{told.job.name}/curves") >= 3, "the curves do not move")
    assert count_asked(page, "no-such-job") + count_asked(page, "no-such-job/curves") == 1
    page.complaints()  # the browser names the answer 404


def test_the_lines_of_an_error_are_shown_from_any_part(page, told):
    open_log(page, told)
    told.write(b"raise")
    page.wait_for(".why h2", "no such digit")
    page.click("[data-part=inputs]")
    page.wait(lambda: page.count("pre.document"), "there are no inputs")
    page.click(".why button")
    page.wait_for(".log .text.stderr", "Traceback (most recent call last):")
    assert page.driver.execute_script("return window.asked.some((each) => each.includes('logs?host=algo-1'))")
    assert page.driver.current_url.endswith("/logs")


def test_nothing_is_added_to_the_lines_that_are_about_to_go(page, home):
    frames = writer(make_job(home, "long"))
    for number in range(1000):
        frames.write(0, 1, f"line {number}, {'.' * 60}\n".encode())
    page.go("jobs/long/logs")
    page.wait_for(".log .text", "line 999,")
    hold_next(page, "logs")
    page.click(".filters button:nth-of-type(2)")  # the first line
    wait_until_held(page)
    before = count_asked(page, "logs")
    script = "document.querySelector('.log').scrollTop = arguments[0]; setTimeout(arguments[1], 200)"
    for top in (0, 1_000_000):
        page.driver.execute_async_script(script, top)
    assert count_asked(page, "logs") == before
    let_go(page)
    page.wait_for(".log .page:first-child", "line 0,")


def test_a_log_is_followed_after_a_request_that_failed(page, told):
    open_log(page, told)
    page.driver.execute_script("window.setAway(true)")
    page.click(".filters button:nth-of-type(3)")  # the last line
    page.wait_for("#notice", NO_ANSWER)
    page.driver.execute_script("window.setAway(false)")

    def is_followed() -> bool:
        told.write(b"later\n")
        return "later" in page.text(".log .text")

    page.wait(is_followed, "the log is not followed any more")
    assert page.text("#notice") == ""


def test_a_log_that_is_not_followed_any_more_is_not_because_it_is_asked_for_again(page, told):
    open_log(page, told)
    page.driver.execute_script("window.setAway(true)")
    page.click(".filters button:nth-of-type(3)")  # the last line
    page.wait_for("#notice", NO_ANSWER)
    page.click(".follow")
    page.driver.execute_script("window.setAway(false)")
    page.wait(lambda: page.text("#notice") == "", "the log is not asked for again")
    assert page.one(".follow").get_attribute("aria-pressed") == "false"


def test_lines_that_come_while_the_page_asks_for_others_are_shown(page, told):
    open_log(page, told)
    hold_next(page, "logs")
    page.click(".filters button:nth-of-type(3)")  # the last line
    wait_until_held(page)
    before = count_asked(page, "story")
    told.write(b"meanwhile\n")
    page.wait(lambda: count_asked(page, "story") > before, "the page hears of no line")
    let_go(page)
    page.wait_for(".log .text", "meanwhile")


def test_an_older_answer_is_taken_where_there_is_no_newer_one(page, told):
    open_held(page, told)
    page.driver.execute_script("window.setAway(true); window.hear()")
    page.wait_for("#notice", NO_ANSWER)
    page.driver.execute_script("window.setAway(false)")
    let_go(page)
    page.wait_for(".badge", "running")
