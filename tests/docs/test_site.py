"""The documentation as a site: complete, strict, of one host, and legible to language models."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import site_hooks
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
INTERNALS = "internals.md"
"""Not in the table of contents: whoever works on a store from Python is led there by a link."""


def leaves(nav: Any) -> Iterator[str]:
    """Yield the paths in the table of contents."""
    if isinstance(nav, str):
        yield nav
    else:
        for child in nav.values() if isinstance(nav, dict) else nav:
            yield from leaves(child)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as CI builds it."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_article_has_its_place() -> None:
    """An article that the table of contents does not hold is found by nobody."""
    articles = {str(file.relative_to(DOCS).as_posix()) for file in DOCS.rglob("*.md")}

    named = list(leaves(CONFIG["nav"]))

    assert articles - set(named) == {INTERNALS}, "give it a line in the nav of mkdocs.yml"
    assert f"/{INTERNALS}" in CONFIG["not_in_nav"].split()
    assert not set(named) - articles - set(site_hooks.OUTSIDE), "no such article"
    assert len(named) == len(set(named))


def test_links_in_code_stay_as_they_are() -> None:
    """Only links of the prose are followed and changed."""
    text = "[a](x.md) `[b](y.md)`\n```\n[c](z.md)\n```\n[d](https://e.example) [f](#g) [h](i.md#j)"

    changed = site_hooks.replace_links(text, str.upper)

    assert changed == text.replace("(x.md)", "(X.MD)").replace("(i.md#j)", "(I.MD#j)")
    assert [link for link, _ in site_hooks.links(text, "docs/a.md")] == ["x.md", "i.md"]


@pytest.mark.parametrize(
    "markup",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        "<style>@import 'https://fonts.example/css';</style>",
    ],
)
def test_a_request_to_another_host_is_found(tmp_path: Path, markup: str) -> None:
    """What a browser would fetch counts; a link that somebody may follow does not."""
    (tmp_path / "index.html").write_text(markup, "utf-8")
    (tmp_path / "linked.html").write_text('<a href="https://other.example">x</a>', "utf-8")

    assert len(list(site_hooks.foreign_requests(tmp_path, "https://docs.example"))) == 1


@pytest.mark.parametrize(
    ("html", "linked"),
    [
        ("<p>a <code>STALE</code> b</p>", '<p>a <a href="s/"><code>STALE</code></a> b</p>'),
        ("<p>is STALE, too</p>", '<p>is <a href="s/">STALE</a>, too</p>'),
        ("<pre><span>STALE</span></pre>", "<pre><span>STALE</span></pre>"),
        ('<a href="x">STALE</a>', '<a href="x">STALE</a>'),
        ("<code>x::STALE</code> STALENESS", "<code>x::STALE</code> STALENESS"),
    ],
)
def test_codes_link_to_their_articles(html: str, linked: str) -> None:
    """A code in the prose of any article leads to what it means; one in an example does not."""
    assert site_hooks.link_codes(html, {"STALE": "s/"}) == linked


def test_what_models_read_lists_every_article(site: Path) -> None:
    """llms.txt: a title, a summary, lists of links that lead to Markdown, the inner life last."""
    text = (site / "llms.txt").read_text("utf-8")
    linked = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)(?:: \S.*)?$", text, re.MULTILINE)
    lines = [line for line in text.splitlines() if line]
    whole = (site / "llms-full.txt").read_text("utf-8")

    assert lines[0] == "# pytest-regen"
    assert lines[1].startswith("> ")
    assert re.findall(r"^## (.*)", text, re.MULTILINE)[-1] == "Optional"
    assert all(line.startswith(("## ", "- [")) for line in lines[2:])
    assert len(linked) >= len(list(DOCS.rglob("*.md"))) - 1
    assert not [link for link in linked if not (site / link).read_text("utf-8").strip()]
    article = (site / "kinds" / "index.html.md").read_text("utf-8")
    assert "](../codes/index.html.md#drift)" in article
    assert "](codes/index.html.md#drift)" in whole
    for link in re.findall(r"\]\(([^)#:]+\.html\.md)", whole):
        assert (site / link).is_file(), link
