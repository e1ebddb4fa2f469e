"""README, tutorials and how-tos work as they stand there, step by step: ``support/articles``."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from article_projects import GIVEN
from articles import KeptModules, Reader
from pages import FOLLOWED, ROOT
from tables import each

from pytest_regen import sandbox

ARTICLES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/tutorials/*.md")),
    *sorted(ROOT.glob("docs/how-to/*.md")),
    *(ROOT / "docs" / f"{name}.md" for name in FOLLOWED),
]

DEAR = frozenset({"agent", "ci", "hand-edits", "re-record"})
"""Articles that take long, of things that other articles and tests show as well."""


@pytest.fixture
def modules() -> Iterator[KeptModules]:
    """Set up before pytester, so that it can put back what pytester drops at its end."""
    kept = KeptModules()
    yield kept
    kept.put_back()


@pytest.fixture
def reader(
    modules: KeptModules, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Reader]:
    """Somebody with an empty folder."""
    yield Reader(pytester, monkeypatch, GIVEN)
    modules.pytest_unconfigure()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=f"{page.parent.name}/{page.stem}",
            marks=[pytest.mark.sweep] if page.stem in DEAR else [],
        )
        for page in ARTICLES
    ],
)
def test_an_article_works_as_shown(page: Path, reader: Reader) -> None:
    """Its files, commands and edits, in order; every command prints what is shown below it."""
    if sandbox.missing() is not None and "DOCTEST" in page.read_text("utf-8"):
        pytest.skip("no sandbox here")

    reader.follow(page)


@each(
    "page",
    [
        *sorted(ROOT.glob("*.md")),
        *sorted(ROOT.glob("examples/*/*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
    ],
    ids=lambda page: page.name,
)
def test_links_lead_to_files(page: Path) -> None:
    """Every relative link and picture of every article is a file of the project."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))

    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]

    assert not broken


def test_the_index_lists_every_how_to_by_its_question() -> None:
    """Each under the words of its own heading; the first block is on the first screen of a page."""
    listed = re.findall(
        r"^- \[(.+?)\]\(how-to/(.+?\.md)\)$",
        (ROOT / "docs/how-to.md").read_text("utf-8"),
        re.MULTILINE,
    )
    texts = {page.name: page.read_text("utf-8") for page in ROOT.glob("docs/how-to/*.md")}

    assert sorted((name, heading) for heading, name in listed) == sorted(
        (name, text.partition("\n")[0].removeprefix("# ")) for name, text in texts.items()
    )
    assert not [name for name, text in texts.items() if text[: text.index("```")].count("\n") > 20]


def test_every_message_of_troubleshooting_exists() -> None:
    """The words of each heading stand in one source file, in their order."""
    text = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
    messages = re.findall(r"^### `(.+)`$", text, re.MULTILINE)
    sources = [file.read_text("utf-8") for file in (ROOT / "pytest_regen").rglob("*.py")]

    gone = [
        message
        for message in messages
        if not any(_is_worded_in(source, message) for source in sources)
    ]

    assert len(messages) > 25
    assert len(messages) == text.count("\n### ")
    assert not gone


def _is_worded_in(source: str, message: str) -> bool:
    """Return whether a string of a program may be ``message``, whose ``…`` are values."""
    words = [part.strip(" '") for part in message.split("…")]
    pattern = "[^\n]{0,80}".join(re.escape(part) for part in words if part)
    return re.search(pattern, source) is not None
