"""The page of ``--regen-report``: one file, no script, every text as text; read and looked at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import SCREENSHOTS, browser, contrast, needs_browser, prefer
from html_reading import Node, read_page
from plugin_project import Project, emulated
from recorded_talk import CHANGED, TALK, say
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from store_factory import GOOD

from pytest_regen import links

HOSTILE = (
    "</script></style><img src=x onerror=\"document.title='planted'\"><script>alert(1)</script>"
)
"""What a browser would run if any of it were taken for markup."""

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "div"),
    *("section", "details", "summary", "h1", "h2", "h3", "p", "ul", "li", "dl", "dt", "dd"),
    *("b", "span", "pre", "code", "svg", "rect", "a", "h4", "h5", "ol"),
    *("table", "thead", "tbody", "tfoot", "tr", "th", "td"),
}

OWN = f"""
    import pytest
    import pytest_regen
    from pytest_regen.validation.issues import Issue

    HOSTILE = {HOSTILE!r}

    @pytest.mark.regen
    @pytest.mark.parametrize("text", [HOSTILE], ids=[HOSTILE])
    def test_words(text):
        assert not text

    @pytest.mark.regen(on=["OTHER"])
    def test_issue():
        detail = HOSTILE + "\\x1b[2J \\u202e\\n" + HOSTILE
        pytest_regen.fail(issues=Issue("<CODE>", HOSTILE, "Owner", detail))

    @pytest.mark.regen(store="generated/GET_<b>v1&amp;", types="State")
    def test_lines():
        pytest_regen.fail(corrections=["\\n".join(f"line {{n}}" for n in range(60))])

    @pytest.mark.regen
    @pytest.mark.skip(reason=HOSTILE)
    def test_skipped(): pass
"""

HOOKS = f"""
    import dataclasses
    from pytest_regen.validation.issues import Issue

    def pytest_regen_validators(config, store, type_name):
        if type_name == "State":
            yield Issue("STYLE", "`State` " + {HOSTILE!r}, "State", severity="warning")
        if type_name == "Owner" and "comment" not in store.pages_of("Owner")[0].output:
            yield Issue("STYLE", {HOSTILE!r}, "Owner", page=1)

    _send = PROVIDER.send

    def send(request):
        reply = _send(request)
        text = reply.text.replace("{{", "{{ // comment " + {HOSTILE!r}, 1)
        return dataclasses.replace(reply, text=text)

    PROVIDER.send = send
"""


def page_of(project: Project, *args: str) -> str:
    """Run the project with a report as a page; return it."""
    project.run("--regen-report=report.html", *args)
    return (project.path / "report.html").read_text("utf-8")


def elements(node: Node) -> Iterator[Node]:
    """Yield all elements inside."""
    for child in node.children:
        if isinstance(child, Node):
            yield child
            yield from elements(child)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page stands that several tests look at; the first that needs it makes it."""
    return tmp_path_factory.mktemp("pages") / "report.html"


@pytest.fixture
def hostile(project: Project, shown: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page of a run with all there is, in which whatever can be named or written is markup."""
    if shown.exists():
        return shown
    wrong = {("State", 1): GOOD["State", 1].replace('"open"', '"opened"')}
    project.store("GET_v1_tides", wrong)
    project.broken("GET_<b>v1&amp;")
    project.answered_by("Good", HOOKS)
    project.pytester.makepyfile(test_own=OWN, test_talk=TALK)
    with emulated(monkeypatch, say):
        project.run("--regen-record=once", "test_talk.py")
    project.pytester.makepyfile(test_talk=CHANGED)
    args = ("--regen", "--regen-only=*GET_?b?v1*::*", "-W", "ignore")
    shown.write_text(page_of(project, *args), "utf-8")
    return shown


def test_no_text_becomes_markup(hostile: Path) -> None:
    """Names, failures, replies, diffs, reasons, folders: all are there, and all are text.

    No address stands in any attribute, no script, and a policy forbids both.
    """
    text = hostile.read_text("utf-8")

    page = read_page(text)
    assert {element.name for element in elements(page)} <= ELEMENTS
    assert "<script" not in text.lower()
    assert "<img" not in text.lower()
    assert text.count("</style>") == 1
    diff = "".join(one.text for one in page.all("pre", class_="diff"))
    assert f"// comment {HOSTILE}" in diff
    assert page.text.count(HOSTILE) > 8
    assert "GET_<b>v1&amp;" in page.text
    assert f"{HOSTILE}\\x1b[2J \\u202e\n{HOSTILE}" in page.text
    assert not {"\x1b", "\u202e"} & {*text}
    names = {name for element in elements(page) for name in element.attributes}
    assert not names & {"src", "style", "action"}
    assert not {name for name in names if name.startswith("on")}
    # Places in the page itself; codes lead nowhere where the documentation has no address.
    links = [element.attributes.get("href") for element in elements(page)]
    assert all(link.startswith("#") for link in links if link is not None)
    assert "@import" not in page.one("style").text
    assert "url(" not in page.one("style").text
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"] or ""
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_what_needs_a_person_comes_first(hostile: Path) -> None:
    """Totals, then failing, regenerated, warnings; what passed is folded.

    A wall of words stands in a box of its own; back-ticks of ours mean code.
    """
    page = read_page(hostile.read_text("utf-8"))

    sections = page.one("main").all("details", class_="section")
    assert [one.attributes["id"] for one in sections] == [
        *("failed", "regenerated", "warnings", "drifted", "changed", "passed", "skipped")
    ]
    assert page.one("h1").text.startswith("6 failed, 1 regenerated")
    assert [one.text for one in page.one("ul", class_="totals").all("li")] == [
        "6 failed",
        "1 regenerated",
        "3 passed",
        "1 skipped",
        "2 warnings",
        "1 drifted cassette",
    ]
    folded = [one for one in sections if "open" not in one.attributes]
    assert [one.attributes["id"] for one in folded] == ["passed", "skipped"]
    words = page.all("pre", class_="words")[0].text
    assert (words.count("\n"), words.startswith("line 0\n")) == (59, True)
    codes = {
        code.text for message in page.all("span", class_="message") for code in message.all("code")
    }
    assert codes == {"State"}


SLOPPY = """
    import dataclasses

    _send = PROVIDER.send

    def send(request):
        reply = _send(request)
        if len(PROVIDER.requests) == 1:
            return dataclasses.replace(reply, text="#pragma warning disable CS8618\\n" + reply.text)
        return dataclasses.replace(reply, usage=Usage(60, 40, 700, 200))

    PROVIDER.send = send
    from pytest_regen.turns.values import Usage
"""
"""Weakens the type with its first reply; from the second on the prompt cache is in use."""


def test_a_conversation_and_what_it_took(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said in order: correction, prompt, reply, test, the next correction; tokens by the cache."""
    monkeypatch.setattr(links, "_published", lambda: "https://docs.example/")
    project.broken()
    project.answered_by("Good", SLOPPY)

    healed = read_page(page_of(project, "--regen", "--regen-attempts=3"))

    talk = healed.one("ol", class_="talk")
    said = [one.text for one in talk.all("h5")]
    assert said == [
        *("System prompt", "Correction", "Prompt", "Model", "Put to the test"),
        *("Correction", "Prompt", "Model", "Put to the test"),
    ]
    first, second = (item.one("p").text for item in talk.all("li") if item.named("trial"))
    assert (first, second) == ("Not kept: 1 error", "Kept: nothing is wrong with it any more")
    # Why a reply was not kept is read without unfolding anything; what was said unfolds.
    folded = "".join(message.text for message in talk.all("details"))
    assert "adds '#pragma" not in folded.replace("[WEAKENED] adds '#pragma", "")
    assert "adds '#pragma warning disable CS8618'" in talk.text
    addresses = {one.attributes["href"] for one in talk.all("a")}
    assert "https://docs.example/codes/#weakened" in addresses
    whole = healed.one("svg", class_="tokens whole")
    assert whole.attributes["aria-label"] == (
        "700 read from the cache, 200 written to the cache, 160 other input, 80 output"
    )
    assert "".join(healed.one("tfoot").text.split()) == "All700200160801,140"
    assert [row.text for row in healed.one("table", class_="kinds").one("tbody").all("tr")] == [
        "Types31 regenerated · 2 passed "
    ]


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    """One browser for all who look."""
    with browser() as driver:
        yield driver


def looks(driver: Chrome, page: Path, *, width: int) -> None:
    """Open the page at a width, whole."""
    phone = width < 500

    def resized(height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1 + phone}
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {**metrics, "mobile": bool(phone)}
        )

    resized(900)
    driver.get(page.as_uri())
    resized(int(driver.execute_script("return document.documentElement.scrollHeight")))


def logged(driver: Chrome) -> object:
    """Return what the browser logged since it was asked last."""
    return driver.get_log("browser")  # type: ignore[no-untyped-call]  # it has none


@needs_browser
@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (1280, False),
        (390, True),
        pytest.param(390, False, marks=pytest.mark.sweep),
        pytest.param(1280, True, marks=pytest.mark.sweep),
    ],
)
def test_in_a_browser(driver: Chrome, hostile: Path, width: int, *, dark: bool) -> None:
    """Totals are seen, no script runs, nothing is wider than the screen, all of it can be read."""
    prefer(driver, dark=dark)
    logged(driver)  # what pages before had to say
    looks(driver, hostile, width=width)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    name = f"report-{width}-{'dark' if dark else 'light'}.png"
    driver.save_screenshot(str(SCREENSHOTS / name))

    totals = driver.find_elements(By.CSS_SELECTOR, ".totals li")
    assert [one.text.split() for one in totals][:2] == [["6", "failed"], ["1", "regenerated"]]
    assert all(one.is_displayed() for one in totals)
    assert driver.title.startswith("pytest-regen: 6 failed, 1 regenerated")
    assert driver.execute_script("return document.scripts.length") == 0
    assert driver.execute_script("return performance.getEntriesByType('resource')") == []
    assert logged(driver) == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    driver.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    seen_ = ("h1", ".more", ".totals li", ".code", ".place", ".add", ".del", ".hunk", "dt")
    for seen in (*seen_, ".legend li", ".amount", ".correction pre", ".assistant h5", ".trial b"):
        assert contrast(driver, seen) >= 4.5, seen
