"""The tutorials and how-tos work as they stand there, step by step; see ``support/articles``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from article_projects import GIVEN
from articles import KeptModules, Reader
from pages import ROOT

from pytest_regen import sandbox

ARTICLES = sorted([*ROOT.glob("docs/tutorials/*.md"), *ROOT.glob("docs/how-to/*.md")])


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


@pytest.mark.parametrize("page", ARTICLES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_an_article_works_as_shown(page: Path, reader: Reader) -> None:
    """Its files, commands and edits, in order; every command prints what is shown below it."""
    if sandbox.missing() is not None and "DOCTEST" in page.read_text("utf-8"):
        pytest.skip("no sandbox here")

    reader.follow(page)
