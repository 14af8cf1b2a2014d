"""A real Chromium without a window, by chromedriver: Debian's packages ``chromium`` and ``chromium-driver``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.waiting import await_true

PATIENCE_S = 30.0
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-dev-shm-usage",
)


class Browser:
    """One tab."""

    def __init__(self, driver: Any):
        self._driver = driver

    def open(self, url: str, wide: int = 1200, scheme: str = "light", motion: str = "no-preference") -> None:
        """Opens a page anew, in a window of that width, for a reader who prefers so."""
        self._driver.get("about:blank")
        self._tell(
            "Emulation.setDeviceMetricsOverride", width=wide, height=900, deviceScaleFactor=1, mobile=False
        )
        media = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self._tell("Emulation.setEmulatedMedia", features=media)
        self.asked_for()
        self.complaints()
        self._driver.get(url)

    def _tell(self, command: str, **values: object) -> None:
        self._driver.execute_cdp_cmd(command, values)

    def js(self, script: str, *values: object) -> Any:
        """Runs a script as if the reader typed it into the console: no policy of the page holds for it."""
        return self._driver.execute_script(script, *values)

    def text(self, name: str) -> str:
        """The text of an element as it is seen, by its id; empty where it is hidden."""
        return str(self.js("return document.getElementById(arguments[0]).innerText", name)).strip()

    def seen(self, name: str) -> bool:
        """Tells whether an element is shown at all, by its id."""
        return bool(self.js("return document.getElementById(arguments[0]).checkVisibility()", name))

    def await_text(self, name: str, words: str) -> None:
        """Waits until an element says something."""
        await_true(lambda: words in self.text(name), f"#{name} says {words!r}", PATIENCE_S, every_s=0.1)

    def await_js(self, script: str, what: str) -> None:
        """Waits until a script returns something true."""
        await_true(lambda: bool(self.js(script)), what, PATIENCE_S, every_s=0.1)

    def press(self, *keys: str) -> None:
        """Presses keys, wherever the focus is."""
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self._driver).send_keys(key).perform()

    def click(self, css: str) -> None:
        """Clicks an element that a selector finds."""
        self._driver.find_element("css selector", css).click()

    def type(self, css: str, text: str) -> None:
        """Types into a field in place of what it has."""
        field = self._driver.find_element("css selector", css)
        field.clear()
        field.send_keys(text)

    def focus(self) -> dict[str, Any]:
        """The element that has the focus: ``id``, ``name``, ``text``, and whether one sees that it has it."""
        found: dict[str, Any] = self.js(
            "const node = document.activeElement; return {id: node.id, name: node.name || '', text: node.innerText,"
            " outlined: !['none', '0px'].some((no) => getComputedStyle(node).outline.includes(no))}"
        )
        return found

    def title(self) -> str:
        """The tab's title."""
        return str(self._driver.title)

    def asked_for(self) -> list[str]:
        """URLs that were asked for since this was called last."""
        messages = [json.loads(entry["message"])["message"] for entry in self._driver.get_log("performance")]
        sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        return [str(one["request"]["url"]) for one in sent]

    def complaints(self) -> list[str]:
        """Errors in the console since this was called last: of scripts, of the policy, of what couldn't be loaded."""
        return [entry["message"] for entry in self._driver.get_log("browser") if entry["level"] == "SEVERE"]

    def overflow_px(self) -> int:
        """Pixels that the page is wider than its window."""
        return int(self.js("return document.documentElement.scrollWidth - innerWidth"))

    def picture(self, file: Path) -> None:
        """Keeps what is seen."""
        self._driver.save_screenshot(str(file))


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser while its block lasts. Skips the test where this machine has none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install -e '.[dev]'")
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
    driver_program = shutil.which("chromedriver")
    if browser is None or driver_program is None:
        pytest.skip("no Chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for option in _OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver_program)
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
