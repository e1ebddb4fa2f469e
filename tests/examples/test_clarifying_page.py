"""The page of the example in a real browser."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import browser, missing_browser, prefer
from clarifying_service import CHOICE, MESSAGE, PLACE, WRITTEN, Model, clarifying_service
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from tables import each

pytestmark = pytest.mark.skipif(
    missing_browser() is not None, reason=f"no browser here: {missing_browser()}"
)

AXE = Path(os.environ.get("REGEN_NODE_MODULES", "")) / "axe-core" / "axe.min.js"


class Page:
    """The page, as a person reads it and types into it."""

    def __init__(self, driver: Chrome, address: str, model: Model) -> None:
        self.driver = driver
        self.address = address
        self.model = model

    def open(self) -> None:
        """Open the page anew."""
        self.driver.get("about:blank")  # or it would be a reload, which keeps the step
        self.driver.get(self.address)
        self.sees("#message")

    def sees(self, selector: str) -> WebElement:
        """Return an element once it is shown."""
        shown: WebElement = self._wait(
            lambda: next(
                element
                for element in [*self.driver.find_elements(By.CSS_SELECTOR, selector), None]
                if element is None or element.is_displayed()
            )
        )
        return shown

    def reads(self, selector: str, text: str) -> None:
        """Wait until an element says this."""
        self._wait(lambda: text in self.driver.find_element(By.CSS_SELECTOR, selector).text)

    def describe(self, message: str = MESSAGE) -> None:
        """Take the first step."""
        self.sees("#message").send_keys(message, Keys.CONTROL, Keys.ENTER)

    def go_on(self) -> None:
        """Press the button that continues."""
        self.sees("form:not([hidden]) .actions button:not([type])").click()

    def value(self, selector: str) -> str:
        """Return what stands in a field."""
        return str(self.sees(selector).get_property("value"))

    def _wait(self, condition: Any) -> Any:
        # A list may be drawn anew between the moments when it is found and looked at.
        replaced = [StaleElementReferenceException]
        return WebDriverWait(self.driver, 30, 0.02, replaced).until(lambda _: condition())


@pytest.fixture(scope="module")
def opened() -> Iterator[Page]:
    """One browser and one service for all tests of this module."""
    model = Model()
    with clarifying_service(model) as address, browser() as driver:
        yield Page(driver, address, model)


@pytest.fixture
def page(opened: Page) -> Page:
    """The page, whose model asks two questions."""
    opened.model.questions = (PLACE, CHOICE)
    opened.model.prompts.clear()
    opened.open()
    return opened


def test_from_a_description_to_an_edited_line(page: Page) -> None:
    """Requirement 3, end to end: initial, clarification, answers, output; by keyboard alone."""
    page.describe()
    page.reads("#title", "2 questions first")
    page.sees("[role=combobox]").send_keys("austin")
    page.reads("[role=option]", "Austin")
    page.sees("[role=combobox]").send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    page.reads(".picker .hint", "Austin, Texas, United States")
    page.sees("[role=combobox]").send_keys(Keys.ENTER)

    page.reads("#title", "Your subject line")
    assert page.value("#subject") == WRITTEN["subject_line"]
    assert 'city "Austin", state "Texas", country "United States"' in page.model.prompts[-1]

    page.sees("#subject").send_keys(" Again")
    page.sees("#back").click()
    assert page.value("[role=combobox]") == "Austin, TX"
    page.sees("#back").click()
    assert page.value("#message") == MESSAGE
    page.driver.forward()
    page.driver.forward()
    page.reads("#title", "Your subject line")
    assert page.value("#subject") == f"{WRITTEN['subject_line']} Again"


def test_places_are_searched_once_the_typing_stops(page: Page) -> None:
    """Requirement 3, location-aware clarification: 300 ms of silence, and a cache."""
    page.describe()
    box = page.sees("[role=combobox]")
    page.driver.execute_script(
        "window.searches = [];"
        "const ask = window.fetch;"
        "window.fetch = (...call) => { searches.push(call[1].body); return ask(...call); };"
        "for (const text of ['au', 'aus', 'aust']) {"
        " arguments[0].value = text; arguments[0].dispatchEvent(new Event('input')); }",
        box,
    )
    page.reads("[role=option]", "Austin")
    box.send_keys(Keys.ESCAPE, "i", Keys.BACKSPACE)
    page.reads("[role=option]", "Austin")

    assert page.driver.execute_script("return searches") == ['{"q":"aust","level":"city"}']


def test_what_is_required_may_be_skipped(page: Page) -> None:
    """Requirement 3, end to end: skip."""
    page.describe()
    page.reads("#title", "2 questions first")
    page.go_on()
    page.reads("#alert", "Which city is this about?")
    page.sees("#skip").click()

    page.reads("#title", "Your subject line")
    assert "(User skipped clarification)" in page.model.prompts[-1]


def test_texts_of_the_model_are_no_html(page: Page) -> None:
    """A question may hold whatever a model writes."""
    hostile = "<img src=x onerror=document.title='caught'> Which city?"
    page.model.questions = ({**PLACE, "question": hostile},)
    page.describe()

    page.reads("legend", hostile)
    assert page.driver.title == "One question first · Subject line"


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed")
@each("dark", [False, True])
def test_no_step_has_a_barrier(page: Page, *, dark: bool) -> None:
    """By axe-core, in light and dark colours; nothing is wider than a small telephone."""
    page.open()
    prefer(page.driver, dark=dark)
    page.driver.set_window_size(500, 900)

    def barriers() -> list[str]:
        page.driver.execute_script(AXE.read_text("utf-8"))
        checked = page.driver.execute_async_script("axe.run().then(arguments[0])")
        wide = "return document.documentElement.scrollWidth > innerWidth"
        assert not page.driver.execute_script(wide)
        return [f"{issue['id']}: {issue['help']}" for issue in checked["violations"]]

    try:
        assert barriers() == []
        page.describe()
        page.sees("[role=combobox]").send_keys("aus")
        page.sees("[role=option]")
        assert barriers() == []
        page.sees("#skip").click()
        page.reads("#title", "Your subject line")
        assert barriers() == []
    finally:
        prefer(page.driver, dark=False)
