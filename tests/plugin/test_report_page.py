"""The page of ``--regen-report``: one file, no script, every text as text; read and looked at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import SCREENSHOTS, browser, contrast, missing_browser, prefer
from html_reading import Node, read_page
from plugin_project import Project, emulated
from recorded_talk import CHANGED, TALK, say
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from store_factory import GOOD, MISSPELT

HOSTILE = (
    "</script></style><img src=x onerror=\"document.title='planted'\"><script>alert(1)</script>"
)
"""What a browser would run if any of it were taken for markup."""

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "div"),
    *("section", "details", "summary", "h1", "h2", "h3", "p", "ul", "li", "dl", "dt", "dd"),
    *("b", "span", "pre", "code", "svg", "rect"),
}

OWN = f"""
    import pytest
    import pytest_regen
    from pytest_regen.validation.issues import Issue

    HOSTILE = {HOSTILE!r}

    @pytest.mark.regen
    @pytest.mark.parametrize("text", [HOSTILE], ids=[HOSTILE])
    def test_words(text):
        assert not text, text + "\\x1b[31m \\u202e turned around"

    @pytest.mark.regen(on=["OTHER"])
    def test_issue():
        pytest_regen.fail(issues=Issue("<CODE>", HOSTILE, "Owner", HOSTILE + "\\n" + HOSTILE))

    @pytest.mark.regen
    @pytest.mark.skip(reason=HOSTILE)
    def test_skipped(): pass
"""

HOOKS = f"""
    import dataclasses
    from pytest_regen.validation.issues import Issue

    def pytest_regen_validators(config, store, type_name):
        if type_name == "State":
            yield Issue("STYLE", {HOSTILE!r}, "State", severity="warning")
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


def names_in(node: Node) -> set[str]:
    """Return the names of all elements inside."""
    inside = [child for child in node.children if isinstance(child, Node)]
    return {child.name for child in inside}.union(*map(names_in, inside))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pages are kept that several tests look at; the first that needs one makes it."""
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def hostile(project: Project, kept: Path) -> str:
    """The page of a project in which whatever can be named or written is markup."""
    page = kept / "hostile.html"
    if not page.exists():
        project.broken("GET_<b>v1&amp;")
        project.answered_by("Good", HOOKS)
        project.pytester.makepyfile(test_own=OWN)
        page.write_text(page_of(project, "--regen", "--regen-record=once"), "utf-8")
    return page.read_text("utf-8")


def test_no_text_becomes_markup(hostile: str) -> None:
    """Names, failures, replies, diffs, reasons, folders: all are there, and all are text."""
    text = hostile

    page = read_page(text)
    assert names_in(page) <= ELEMENTS
    assert "<script" not in text.lower()
    assert "<img" not in text.lower()
    assert text.count("</style>") == 1
    diff = "".join(one.text for one in page.all("pre", class_="diff"))
    assert f"// comment {HOSTILE}" in diff
    assert page.text.count(HOSTILE) > 8
    assert "GET_<b>v1&amp;" in page.text
    assert "\\u001b[31m \\u202e turned around" in page.text


def test_nothing_comes_from_elsewhere(hostile: str) -> None:
    """No address in any attribute, no script, and a policy that forbids both."""
    page = read_page(hostile)

    def attributes(node: Node) -> Iterator[tuple[str, str | None]]:
        yield from node.attributes.items()
        for child in node.children:
            if isinstance(child, Node):
                yield from attributes(child)

    found = list(attributes(page))
    assert not {name for name, _ in found if name in {"src", "href", "style", "action"}}
    assert not {name for name, _ in found if name.startswith("on")}
    assert "@import" not in page.one("style").text
    assert "url(" not in page.one("style").text
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"] or ""
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_what_needs_a_person_comes_first(hostile: str) -> None:
    """Totals, then failing, regenerated, warnings; what passed is folded."""
    page = read_page(hostile)

    sections = [one.attributes["id"] for one in page.one("main").all("details", class_="section")]
    assert sections == ["failed", "regenerated", "warnings", "changed", "passed", "skipped"]
    assert page.one("h1").text == "2 of 6 fail"
    assert [one.text for one in page.one("ul", class_="totals").all("li")] == [
        "2 failed",
        "1 regenerated",
        "2 passed",
        "1 skipped",
        "1 warning",
        "0 drifted cassettes",
    ]
    folded = [one for one in page.all("details", class_="section") if "open" not in one.attributes]
    assert [one.attributes["id"] for one in folded] == ["passed", "skipped"]


@pytest.mark.parametrize(
    ("broken", "args", "headline"),
    [
        (False, (), "All 3 pass"),
        (True, ("--regen",), "All 3 pass, 1 only after regeneration"),
        (True, (), "1 of 3 fails"),
        (False, ("test_plain.py",), "Nothing was checked"),
        (False, ("test_bad.py",), "Not everything could be collected"),
        (False, ("generated/GET_v1_projects::Owner",), "It passes"),
    ],
)
def test_the_headline(
    project: Project, args: tuple[str, ...], headline: str, *, broken: bool
) -> None:
    """What happened, in words."""
    project.store(wrong=MISSPELT if broken else None)
    project.answered_by("Good")
    project.pytester.makepyfile(test_plain="def test_y(): pass")
    args = args or ("generated",)
    if "test_bad.py" in args:
        project.pytester.makepyfile(test_bad="import nothing_there")

    page = read_page(page_of(project, *args))

    assert page.one("h1").text == headline


@pytest.fixture
def shown(project: Project, kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page of a run with all there is: failing, regenerated, warned, drifted, hostile."""
    page = kept / "report.html"
    if page.exists():
        return page
    wrong = {("State", 1): GOOD["State", 1].replace('"open"', '"opened"')}
    project.store("GET_v1_tides", wrong)
    project.store("GET_v1_projects", MISSPELT)
    project.answered_by("Good", HOOKS)
    project.pytester.makepyfile(test_own=OWN, test_talk=TALK)
    with emulated(monkeypatch, say):
        project.run("--regen-record=once", "test_talk.py")
    project.pytester.makepyfile(test_talk=CHANGED)
    args = ("--regen", "--regen-only=*GET_v1_projects::*", "-W", "ignore")
    page.write_text(page_of(project, *args), "utf-8")
    return page


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    """One browser for all who look."""
    with browser() as driver:
        yield driver


LOOKED_AT = pytest.mark.skipif(
    missing_browser() is not None, reason=f"no browser here: {missing_browser()}"
)


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


@LOOKED_AT
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_in_a_browser(driver: Chrome, shown: Path, width: int, *, dark: bool) -> None:
    """Totals are seen, no script runs, nothing is wider than the screen, all of it can be read."""
    prefer(driver, dark=dark)
    logged(driver)  # what pages before had to say
    looks(driver, shown, width=width)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    name = f"report-{width}-{'dark' if dark else 'light'}.png"
    driver.save_screenshot(str(SCREENSHOTS / name))

    totals = driver.find_elements(By.CSS_SELECTOR, ".totals li")
    assert [one.text.split() for one in totals][:2] == [["5", "failed"], ["1", "regenerated"]]
    assert all(one.is_displayed() for one in totals)
    assert driver.title.startswith("pytest-regen: 5 failed, 1 regenerated")
    assert driver.execute_script("return document.scripts.length") == 0
    assert driver.execute_script("return performance.getEntriesByType('resource')") == []
    assert logged(driver) == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    for seen in ("h1", ".more", ".totals li", ".code", ".place", ".add", ".del", ".hunk", "dt"):
        assert contrast(driver, seen) >= 4.5, seen


@LOOKED_AT
def test_a_script_would_be_stopped_all_the_same(
    driver: Chrome, shown: Path, tmp_path: Path
) -> None:
    """Were a text taken for markup, the page's own policy keeps the browser from running it."""
    spoilt = tmp_path / "spoilt.html"
    text = shown.read_text("utf-8").replace("<footer>", f"{HOSTILE}<footer>")
    spoilt.write_text(text, "utf-8")

    driver.get(spoilt.as_uri())

    assert driver.execute_script("return document.scripts.length") == 1
    assert driver.title.startswith("pytest-regen: ")
