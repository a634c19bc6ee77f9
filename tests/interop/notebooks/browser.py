"""A real browser without a screen: Debian's Chromium, which reaches nothing outside this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from tests.ports import free_port

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # as root there is none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--window-size=1200,1600",
)


@contextmanager
def browser(folder: Path) -> Iterator[Chrome]:
    """A browser with a profile of its own. Raises RuntimeError where there is none."""
    for program in (CHROMIUM, DRIVER):
        if not program.exists():
            raise RuntimeError(f"{program} is missing: run scripts/setup tests")
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for option in (*_OPTIONS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, ChromeService(str(DRIVER), free_port(), log_output=str(folder / "chromedriver.log")))
    try:
        yield driver
    finally:
        driver.quit()
