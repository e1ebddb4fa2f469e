"""Links of all articles lead somewhere; what the README shows is run by ``test_articles``."""

import re
from pathlib import Path

from pages import ROOT
from tables import each

PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("examples/*/*.md"))]


@each("page", [*PAGES, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    """Every relative link and picture of every article is a file of the project."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))

    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]

    assert not broken
