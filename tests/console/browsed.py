"""What the tests do with the console's page in a browser, and what they hold every view of it to."""

from __future__ import annotations

from pathlib import Path

from selenium.webdriver.common.by import By

from tests.console.server import PATIENCE, wait_until
from tests.waiting import call_until_it_works, wait_for

ROOT = Path(__file__).parents[2]
AXE = ROOT / ".venv-page" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = ROOT / "build" / "console"
"""What the page looked like, for people."""
NETWORK_CHANGED = "ERR_NETWORK_CHANGED"
"""What the browser says when another test makes or removes a network of containers."""


class Page:
    """A browser that shows the console."""

    def __init__(self, driver, server) -> None:
        self.driver = driver
        self.server = server
        self._said: list[str] = []

    def load(self, address: str | None = None) -> None:
        """Load an address, or anew what is there; again where a network of another test's containers cut that short."""
        call = self.driver.refresh if address is None else lambda: self.driver.get(address)

        self._said += self._messages()

        def is_whole() -> bool:
            call_until_it_works(call, NETWORK_CHANGED)
            messages = self._messages()
            if any(NETWORK_CHANGED in each for each in messages):
                return False
            self._said += messages
            return True

        wait_for(is_whole)

    def go(self, where: str = "") -> None:
        self.driver.get(f"{self.server.page}#/{where}")

    def one(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """What all elements say, read in one step, for the page may change at any moment."""
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent).join('\\n')"
        return self.driver.execute_script(script, selector)

    def count(self, selector: str) -> int:
        return self.driver.execute_script("return document.querySelectorAll(arguments[0]).length", selector)

    def click(self, selector: str) -> None:
        self.wait(lambda: self.count(selector), f"there is no {selector}")
        self.driver.execute_script("document.querySelector(arguments[0]).click()", selector)

    def click_at_once(self, *selectors: str) -> None:
        """Click one after the other before the page hears of anything else."""
        self.driver.execute_script("arguments[0].forEach((one) => document.querySelector(one).click())", selectors)

    def wait(self, condition, what: str) -> None:
        try:
            wait_until(condition, what)
        except AssertionError:
            state = {"text": self.text("body")[-3000:], "complaints": self.complaints()}
            raise AssertionError(f"{what}: {state}") from None

    def wait_for(self, selector: str, words: str) -> None:
        self.wait(lambda: words in self.text(selector), f"{selector} never shows {words!r}")

    def width(self, pixels: int) -> None:
        size = {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def complaints(self) -> list[str]:
        """What the browser has to say against the page since it was asked last."""
        messages, self._said = [*self._said, *self._messages()], []
        # The page asks again.
        is_passing = any(NETWORK_CHANGED in each for each in messages)
        return [] if is_passing else messages

    def _messages(self) -> list[str]:
        return [each["message"] for each in self.driver.get_log("browser")]


def opened(driver, server) -> Page:
    """A page that shows all jobs, on a screen, and that nothing was said against yet."""
    page = Page(driver, server)
    page.load(server.address)
    page.width(1280)
    page.wait_for("#connection", "live")
    page.complaints()
    return page


def keep_picture(page: Page, name: str) -> None:
    """Keep what the page looks like."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.driver.save_screenshot(str(PICTURES / f"{name}.png"))


def violations(page) -> list[str]:
    """What axe finds wrong, each with the first place."""
    page.driver.set_script_timeout(PATIENCE)
    page.driver.execute_script(f"if (!window.axe) {{ {AXE.read_text()} }}")
    script = "const done = arguments[arguments.length - 1]; axe.run().then((found) => done(found.violations), done)"
    found = page.driver.execute_async_script(script)
    assert isinstance(found, list), f"axe could not look: {found}"
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}: {each['nodes'][0]['failureSummary']}" for each in found]
