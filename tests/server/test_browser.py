"""The page in a real browser: with a keyboard alone, without JavaScript, and as it looks."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import SCREENSHOTS, browser, contrast, missing_browser
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from serving_http import served
from subject_flow import CHOICE, KEY, MESSAGE, PLACE, WORDS, Model, app_of, writing

from pytest_regen.context import Sealer
from pytest_regen.errors import TransportError
from pytest_regen.server import ServerSettings

pytestmark = pytest.mark.skipif(
    missing_browser() is not None, reason=f"no browser here: {missing_browser()}"
)

OFFERED = "[role=listbox]:not([hidden]) [role=option]"
"""A place that can be chosen now: a list that was closed keeps its places."""

ASKED = ({**PLACE, "suggested_locations": ["Austin, TX", "Portland, OR"]}, CHOICE)


class Person:
    """Reads the page, types and clicks.

    Args:
        driver: the browser.
    """

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self.complaints()  # those of a test before this one

    def sees(self, selector: str) -> Any:
        """Return an element once it is there."""
        return self.wait(lambda: self.driver.find_elements(By.CSS_SELECTOR, selector))[0]

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Return what a condition says once it is true; a page may be replaced meanwhile."""
        replaced = [StaleElementReferenceException]
        return WebDriverWait(self.driver, 30, 0.02, replaced).until(lambda _: condition())

    def reads(self, selector: str, text: str) -> None:
        """Wait until an element says this: the page before may have had such an element too."""
        self.wait(lambda: self.sees(selector).text == text)

    def presses(self, *keys: str) -> None:
        """Press keys, one after another, wherever the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    @property
    def focused(self) -> Any:
        """The element that has the focus."""
        return self.driver.switch_to.active_element

    def hears(self, text: str) -> None:
        """Wait until a screen reader would be told this."""
        self.wait(lambda: text in (self.sees("#status").get_attribute("textContent") or ""))

    def keeps_a_picture(self, name: str) -> Path:
        """Save the whole page as an artifact of the run."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        height = self.driver.execute_script("return document.body.scrollHeight")
        self.driver.set_window_size(900, max(700, int(height)) + 160)
        path = SCREENSHOTS / f"{name}.png"
        assert self.driver.save_screenshot(str(path))
        return path

    def complaints(self) -> list[str]:
        """Return what the browser logged: errors, refused scripts, missing files."""
        logged: Any = self.driver.get_log("browser")  # type: ignore[no-untyped-call]  # it has none
        return [entry["message"] for entry in logged]


@pytest.fixture(scope="module")
def with_script() -> Iterator[Chrome]:
    """Run one browser for all that use JavaScript."""
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def without_script() -> Iterator[Chrome]:
    """Run one browser that has JavaScript turned off."""
    with browser(javascript=False) as driver:
        yield driver


@pytest.fixture
def model() -> Model:
    """Return a model that asks for a place and a choice."""
    return Model(*ASKED)


@pytest.fixture
def address(model: Model) -> Iterator[str]:
    """Serve the page; return its address."""
    settings = ServerSettings(first_turns=(), second_turns=(), shows_prompt=True)
    with served(app_of(model, settings=settings)) as url:
        yield url


@pytest.fixture
def person(with_script: Chrome, address: str) -> Person:
    """Open the page and return who uses it."""
    with_script.get(address)
    return Person(with_script)


def test_the_whole_flow_with_the_keyboard_alone(person: Person, model: Model) -> None:
    """Typing, Tab, arrows, Enter and the space bar lead from the description to the result."""
    assert person.focused.get_attribute("id") == "message"
    person.keeps_a_picture("1-description")
    person.presses(MESSAGE, Keys.TAB, Keys.ENTER)

    person.hears("2 questions")
    assert person.focused.get_attribute("id") == "title"
    person.keeps_a_picture("2-questions")
    person.presses(Keys.TAB, Keys.TAB)
    assert person.focused.get_attribute("role") == "combobox"
    person.presses("san")
    person.hears("places found")
    person.sees(OFFERED)
    person.presses(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    person.keeps_a_picture("3-places")
    person.presses(Keys.ENTER)
    person.hears("San Francisco, CA chosen")
    assert person.focused.get_attribute("value") == "San Francisco, CA"
    person.presses(Keys.TAB, Keys.SPACE)
    person.keeps_a_picture("4-answers")
    person.presses(Keys.ENTER)

    person.hears("Your subject line")
    person.wait(lambda: person.focused.text == writing()["subject_line"])
    person.keeps_a_picture("5-result")
    said = model.prompts[-1]
    assert '"San Francisco, CA" (city "San Francisco", state "California"' in said
    assert 'selected "my landlord keeps raising it"' in said
    assert person.complaints() == []


def test_the_flow_without_javascript(without_script: Chrome, address: str, model: Model) -> None:
    """Plain forms do the same: find a place, mark it, tick, continue."""
    person = Person(without_script)
    without_script.get(address)
    person.sees("#message").send_keys(MESSAGE)
    person.sees("form .actions button").click()
    person.sees("#q0-text").send_keys("portl")
    person.sees(".find").click()
    person.sees("input[value='Portland, ME']").click()
    person.sees("input[value='no_cap']").click()
    person.keeps_a_picture("6-without-javascript")
    person.sees(".actions button").click()

    person.reads("h1", writing()["subject_line"])
    assert '"Portland, ME" (city "Portland", state "Maine"' in model.prompts[-1]
    assert 'selected "the city never capped it"' in model.prompts[-1]


def test_enter_in_any_field_continues(without_script: Chrome, address: str, model: Model) -> None:
    """Without JavaScript, Enter means Continue, not Find and not Skip."""
    person = Person(without_script)
    without_script.get(address)
    person.sees("#message").send_keys(MESSAGE)
    person.sees("form .actions button").click()
    person.sees("#q0-text").send_keys("Austin, TX" + Keys.ENTER)

    person.reads("h1", writing()["subject_line"])
    assert '"Austin, TX"' in model.prompts[-1]


@pytest.mark.parametrize("script", ["with_script", "without_script"])
def test_skipping(script: str, request: pytest.FixtureRequest, address: str, model: Model) -> None:
    """The skip button leads to a result whether or not anything was filled in."""
    driver: Chrome = request.getfixturevalue(script)
    person = Person(driver)
    driver.get(address)
    person.sees("#message").send_keys(MESSAGE)
    person.sees("form .actions button").click()
    person.sees(".actions .quiet[value='skip']").click()

    person.reads("h1", writing()["subject_line"])
    assert "(User skipped clarification)" in model.prompts[-1]


def to_questions(person: Person) -> Any:
    """Send the description; return the box of the picker."""
    person.sees("#message").send_keys(MESSAGE)
    person.sees("form .actions button").click()
    return person.sees("[role=combobox]")


def requests_of(driver: Chrome) -> list[str]:
    """Return the searches that the page made."""
    found: list[str] = driver.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)"
        ".filter(name => name.includes('/api/location/'))"
    )
    return found


def typed_at_once(box: WebElement, *words: str) -> None:
    """Fill the box letter by letter, or word by word, faster than any machine is slow."""
    steps = words if len(words) > 1 else [words[0][:end] for end in range(1, len(words[0]) + 1)]
    box.parent.execute_script(
        "for (const value of arguments[1]) {"
        "  arguments[0].value = value;"
        "  arguments[0].dispatchEvent(new Event('input', {bubbles: true}));"
        "}",
        box,
        steps,
    )


def test_the_picker_waits_and_remembers(person: Person) -> None:
    """One search for a word typed at once, none for one typed before."""
    box = to_questions(person)
    typed_at_once(box, "austin")
    person.sees(OFFERED)
    first = requests_of(person.driver)
    typed_at_once(box, "austi", "austin")
    person.wait(lambda: box.get_attribute("aria-expanded") == "true")

    assert len(first) == 1
    assert first[0].endswith("/api/location/search")
    assert requests_of(person.driver) == first


def test_nothing_is_searched_while_somebody_types(person: Person) -> None:
    """The search starts 300 ms after the last letter, not before."""
    box = to_questions(person)
    person.driver.execute_script(
        "let typed = 0;"
        "const box = document.querySelector('[role=combobox]');"
        "box.addEventListener('input', () => { typed = performance.now(); });"
        "const plain = window.fetch;"
        "window.fetch = (...all) => {"
        "  window.waited ||= performance.now() - typed;"
        "  return plain(...all);"
        "};"
    )
    box.send_keys("bost")

    person.wait(lambda: person.driver.execute_script("return window.waited > 0"))
    assert person.driver.execute_script("return window.waited") >= 290


def test_the_picker_returns_city_state_and_country(person: Person) -> None:
    """A click on a place tells the page all its parts, and shows them."""
    box = to_questions(person)
    person.driver.execute_script(
        "document.addEventListener('place', (event) => { window.place = event.detail; });"
    )
    box.send_keys("austin")
    person.sees(OFFERED).click()

    assert person.driver.execute_script("return window.place") == {
        "city": {"name": "Austin"},
        "state": {"code": "TX", "name": "Texas"},
        "country": {"code": "US", "name": "United States"},
    }
    assert person.sees("#q0-hint").text == "Austin, Texas, United States"
    assert person.sees("#q0-typed").is_selected()


def test_escape_closes_the_list_and_nothing_else(person: Person) -> None:
    """The questions stay, the text stays, the focus stays."""
    box = to_questions(person)
    box.send_keys("austin")
    person.sees(OFFERED)
    person.presses(Keys.ESCAPE)

    assert box.get_attribute("aria-expanded") == "false"
    assert not person.sees("[role=listbox]").is_displayed()
    assert box.get_attribute("value") == "austin"
    assert person.focused == box


def test_enter_closes_an_open_list_before_it_sends(person: Person, model: Model) -> None:
    """Whoever presses Enter while places are shown has not sent a half-typed name."""
    box = to_questions(person)
    asked = len(model.prompts)
    box.send_keys("san")
    person.sees(OFFERED)
    person.presses(Keys.ENTER)

    assert box.get_attribute("aria-expanded") == "false"
    assert len(model.prompts) == asked
    person.presses(Keys.ENTER)
    person.reads("h1", writing()["subject_line"])


def test_the_list_can_be_followed_by_ear(person: Person) -> None:
    """The box names its list and the option in it; one option is selected at a time."""
    box = to_questions(person)
    box.send_keys("san")
    person.sees(OFFERED)
    person.presses(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)

    options = person.driver.find_elements(By.CSS_SELECTOR, "[role=option]")
    selected = [o for o in options if o.get_attribute("aria-selected") == "true"]
    assert box.get_attribute("aria-controls") == person.sees("[role=listbox]").get_attribute("id")
    assert [o.get_attribute("id") for o in selected] == [box.get_attribute("aria-activedescendant")]
    assert selected == options[:1]


def test_a_required_question_is_shown_to_who_missed_it(person: Person) -> None:
    """Continuing without an answer moves the focus to the field, with its reason."""
    to_questions(person)
    person.sees("div.actions button[value='answer']").click()

    person.wait(lambda: person.focused.get_attribute("aria-invalid") == "true")
    assert person.focused.get_attribute("id") == "q0-text"
    assert "needed" in person.sees("#q0-problem").text


def test_an_unanswered_choice_is_announced_and_gets_the_focus(person: Person, model: Model) -> None:
    """A choice has no box to type into: its first option gets the focus, an alert says why."""
    model.questions = ({**CHOICE, "required": True}, WORDS)
    person.sees("#message").send_keys(MESSAGE)
    person.sees("form .actions button").click()
    person.sees("#q1-text").send_keys("in May")
    person.sees("div.actions button[value='answer']").click()

    person.wait(lambda: person.focused.get_attribute("aria-invalid") == "true")
    assert person.focused.get_attribute("id") == "q0-0"
    assert person.focused.get_attribute("aria-describedby") == "q0-problem"
    assert CHOICE["question"] in person.sees("[role=alert]").text
    person.hears(CHOICE["question"])
    assert person.sees("#q1-text").get_attribute("value") == "in May"


def test_reloading_keeps_what_was_written(person: Person, model: Model) -> None:
    """On each of the three views, and without asking the model again."""
    person.sees("#message").send_keys("half a sent")
    person.driver.refresh()
    assert person.sees("#message").get_attribute("value") == "half a sent"

    box = to_questions(person)
    box.send_keys("Lower Wallop")
    person.sees("input[value=vacant]").click()
    person.driver.refresh()
    person.reads("legend", PLACE["question"])
    assert person.sees("#q0-text").get_attribute("value") == "Lower Wallop"
    assert person.sees("input[value=vacant]").is_selected()
    assert not person.sees("input[value=landlord]").is_selected()

    person.sees("div.actions button[value='answer']").click()
    person.reads("h1", writing()["subject_line"])
    person.driver.refresh()
    person.reads("h1", writing()["subject_line"])
    assert len(model.prompts) == 2
    # The view that is restored has the focus before the start page asks for it.
    assert [one for one in person.complaints() if "Autofocus" not in one] == []


def test_back_and_forward_keep_what_was_written(person: Person, model: Model) -> None:
    """Back from the questions is the description, back from the result the answers."""
    to_questions(person).send_keys("Lower Wallop")
    person.driver.back()
    person.wait(lambda: person.sees("#message").get_attribute("value") == MESSAGE)
    person.driver.forward()
    person.wait(lambda: person.sees("#q0-text").get_attribute("value") == "Lower Wallop")
    person.sees("div.actions button[value='answer']").click()
    person.reads("h1", writing()["subject_line"])
    person.driver.back()
    person.wait(lambda: person.sees("#q0-text").get_attribute("value") == "Lower Wallop")

    assert len(model.prompts) == 2
    person.sees("div.actions button[value='answer']").click()
    person.reads("h1", writing()["subject_line"])
    assert len(model.prompts) == 3


@pytest.mark.parametrize("script", ["with_script", "without_script"])
def test_starting_over_keeps_the_description(
    script: str, request: pytest.FixtureRequest, address: str
) -> None:
    """It stands in the box, to be changed; "Write another" begins with an empty one."""
    driver: Chrome = request.getfixturevalue(script)
    person = Person(driver)
    driver.get(address)
    person.sees("#message").send_keys(MESSAGE)
    person.sees("form .actions button").click()
    person.sees(".written button").click()
    person.wait(lambda: person.sees("#message").get_attribute("value") == MESSAGE)
    person.sees("form .actions button").click()
    person.sees(".actions .quiet[value='skip']").click()
    person.reads("h1", writing()["subject_line"])
    person.sees("a.button").click()
    person.wait(lambda: person.sees("#message").get_attribute("value") == "")


def test_back_without_javascript(without_script: Chrome, address: str) -> None:
    """The browser shows the page before as it was, answers included, and no error of its own."""
    person = Person(without_script)
    without_script.get(address)
    person.sees("#message").send_keys(MESSAGE)
    person.sees("form .actions button").click()
    person.sees("#q0-text").send_keys("Lower Wallop")
    person.sees("div.actions button[value='answer']").click()
    person.reads("h1", writing()["subject_line"])
    without_script.back()
    person.wait(lambda: person.sees("#q0-text").get_attribute("value") == "Lower Wallop")
    without_script.back()
    person.wait(lambda: person.sees("#message").get_attribute("value") == MESSAGE)


def test_what_is_typed_goes_to_the_model_as_it_was_typed(person: Person, model: Model) -> None:
    """A name that the list knows is no choice from the list; the result shows what was told."""
    model.questions = (PLACE,)
    box = to_questions(person)
    box.send_keys("Naples")
    person.sees(OFFERED)
    person.presses(Keys.ESCAPE)
    person.sees("div.actions button[value='answer']").click()
    person.reads("h1", writing()["subject_line"])

    assert '(id "location"): "Naples"\n' in model.prompts[-1]
    assert person.sees(".told dd").text == "Naples"
    assert "Italy" not in person.sees("main").text

    person.driver.back()
    box = person.sees("[role=combobox]")
    box.clear()
    box.send_keys("Naples")
    person.sees(OFFERED).click()
    person.sees("div.actions button[value='answer']").click()
    person.reads("h1", writing()["subject_line"])
    assert '"Naples, IT" (city "Naples", country "Italy"' in model.prompts[-1]
    assert person.sees(".told dd").text == "Naples, IT\nNaples, Italy"


def test_a_place_that_was_changed_after_it_was_chosen_is_typed(
    person: Person, model: Model
) -> None:
    """Whoever edits the name of a chosen place has chosen none, also after a reload."""
    model.questions = (PLACE,)
    box = to_questions(person)
    box.send_keys("Naples")
    person.sees(OFFERED).click()
    box.send_keys("x" + Keys.BACKSPACE)
    person.driver.refresh()
    person.sees("div.actions button[value='answer']").click()
    person.reads("h1", writing()["subject_line"])

    assert '(id "location"): "Naples, IT"\n' in model.prompts[-1]


def test_a_text_that_is_too_long_is_counted_as_people_count(person: Person, model: Model) -> None:
    """An emoji is one character; what is too many is said in words, and nothing is cut or sent."""
    type_ = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    box = person.sees("#message")
    person.driver.execute_script(type_, box, "\U0001f600" * 4_000)
    assert person.sees("#count").text == "4,000 / 4,000"

    person.driver.execute_script(type_, box, "\U0001f600" * 4_003)
    assert person.sees("#count").text == "3 too many"
    person.sees("form .actions button").click()
    assert "4,003 characters" in person.sees("#alert").text
    assert "Shorten it by 3." in person.sees("#alert").text
    assert person.focused == box
    assert len(box.get_attribute("value") or "") == 4_003
    assert model.prompts == []


def test_waiting_can_be_cancelled(with_script: Chrome) -> None:
    """The wait ends at once, what was written stays, and the next try is a new one."""
    held, model = threading.Event(), Model()

    def slow(messages: list[dict[str, str]]) -> str:
        held.wait(20)
        return model(messages)

    with served(app_of(slow)) as url:
        with_script.get(url)
        person = Person(with_script)
        person.sees("#message").send_keys(MESSAGE)
        person.sees("form .actions button").click()
        person.keeps_a_picture("9-waiting")
        person.sees(".waiting button").click()
        said = person.sees("#alert").text
        busy = person.sees("main").get_attribute("aria-busy")
        kept = person.sees("#message").get_attribute("value")
        held.set()
        person.sees("form .actions button").click()
        person.reads("h1", writing()["subject_line"])

    assert "Cancelled" in said
    assert (busy, kept) == (None, MESSAGE)


def test_an_expired_seal_keeps_the_answers(with_script: Chrome) -> None:
    """The description and the answers come back, and fill in the questions that are asked anew."""
    now = [1_700_000_000.0]
    model = Model(*ASKED)
    app = app_of(model, seal=Sealer({"test": KEY}, max_age=60, clock=lambda: now[0]))
    with served(app) as url:
        with_script.get(url)
        person = Person(with_script)
        to_questions(person).send_keys("Lower Wallop")
        person.sees("input[value=vacant]").click()
        now[0] += 100
        person.sees("div.actions button[value='answer']").click()
        person.wait(lambda: person.sees("#message").get_attribute("value") == MESSAGE)
        told = person.sees(".told").text
        person.keeps_a_picture("10-expired")
        person.sees("form .actions button").click()
        person.wait(lambda: person.sees("#q0-text").get_attribute("value") == "Lower Wallop")
        assert person.sees("input[value=vacant]").is_selected()

    assert "Lower Wallop" in told
    assert "flats stand empty" in told


def test_an_address_that_leads_nowhere_is_a_page(person: Person, address: str) -> None:
    """With a heading and a way to the start; the same look as the others."""
    person.driver.get(f"{address}/no-such-page")
    person.keeps_a_picture("11-not-found")

    assert person.sees("h1").text == "There is no such page"
    person.sees("a.button").click()
    assert person.sees("#message")


def test_a_failure_is_told_and_everything_stays(with_script: Chrome) -> None:
    """The alert has the focus; what was typed can be sent again."""

    def model(_: list[dict[str, str]]) -> str:
        raise TransportError("secret", hint="secret")

    with served(app_of(model)) as url:
        with_script.get(url)
        person = Person(with_script)
        person.sees("#message").send_keys(MESSAGE)
        person.sees("form .actions button").click()
        person.sees("#alert")
        person.wait(lambda: person.focused.get_attribute("id") == "alert")
        person.keeps_a_picture("7-failure")
        kept = person.sees("#message").get_attribute("value")
        logged = person.complaints()

    assert kept == MESSAGE
    assert all("503" in message for message in logged)


def test_a_connection_that_breaks_loses_nothing(with_script: Chrome, model: Model) -> None:
    """Where no answer arrives, the page says so and keeps what was typed."""
    with served(app_of(model)) as url:
        with_script.get(url)
        person = Person(with_script)
        person.sees("#message").send_keys(MESSAGE)
    person.sees("form .actions button").click()

    assert "still here" in person.sees("#alert").text
    assert person.sees("#message").get_attribute("value") == MESSAGE


def test_two_submits_are_one(with_script: Chrome) -> None:
    """Whoever clicks twice asks once; meanwhile the page says that it works."""
    calls: list[object] = []
    clicked_twice = threading.Event()

    def model(turns: list[dict[str, str]]) -> str:
        calls.append(turns)
        assert clicked_twice.wait(timeout=60)
        return json.dumps(writing())

    with served(app_of(model)) as url:
        with_script.get(url)
        person = Person(with_script)
        person.sees("#message").send_keys(MESSAGE)
        button = person.sees("form .actions button")
        button.click()
        busy = person.sees("main").get_attribute("aria-busy")
        with_script.execute_script("arguments[0].form.requestSubmit(arguments[0])", button)
        clicked_twice.set()
        person.reads("h1", writing()["subject_line"])

    assert busy == "true"
    assert len(calls) == 1


@pytest.mark.sweep
def test_long_words_fit_the_smallest_phone(address: str, model: Model) -> None:
    """At 320 points, with words of 150 letters in every place, nothing is wider than the screen."""
    long = "w" * 150
    model.questions = (
        {**PLACE, "question": long, "suggested_locations": [long]},
        {
            **CHOICE,
            "question": long + "?",
            "options": [{"id": "a", "label": long}, {"id": "b", "label": "b" + long}],
        },
    )
    wide = []
    with browser(width=500) as driver:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 320, "height": 640, "deviceScaleFactor": 2, "mobile": True},
        )
        driver.get(address)
        person = Person(driver)

        def measure(name: str) -> None:
            wide.append(driver.execute_script("return document.documentElement.scrollWidth"))
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            driver.save_screenshot(str(SCREENSHOTS / f"12-{name}-320.png"))

        measure("start")
        person.sees("#message").send_keys(long * 3)
        person.sees("form .actions button").click()
        person.sees("[role=combobox]").send_keys(long)
        measure("questions")
        person.sees("input[value=a]").click()
        person.sees("div.actions button[value='answer']").click()
        person.reads("h1", writing()["subject_line"])
        measure("result")
        driver.get(f"{address}/{long}")
        measure("not-found")

    assert max(wide) <= 320


def test_it_fits_a_phone_and_the_dark(address: str) -> None:
    """At 390 points in dark colours nothing is wider than the screen."""
    with browser(dark=True, width=500) as driver:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True},
        )
        driver.get(address)
        person = Person(driver)
        to_questions(person)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        driver.save_screenshot(str(SCREENSHOTS / "8-phone-dark.png"))
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        paper = driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    assert wide <= 390
    assert paper == "rgb(20, 24, 22)"


def test_text_can_be_read(person: Person) -> None:
    """Text stands out from its ground by at least 4.5 to 1, in what a person reads and presses."""
    to_questions(person)
    for selector in ("h1", "legend", ".hint", ".optional", "button:not(.quiet)", "summary", "h2"):
        assert contrast(person.driver, selector) >= 4.5, selector
