"""The pictures of the documentation show what runs print today."""

import re
import shutil
import sys
from pathlib import Path

import pictures
import pytest

SWEEP = ("review", "report")
"""These take several runs more; they are looked at with all that is slow."""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.sweep] if n in SWEEP else []) for n in pictures.SCENES],
)
def test_a_picture_shows_what_the_run_prints(name: str, tmp_path: Path) -> None:
    """The same commands print the same text, but for numbers and times."""
    seen = pictures.SCENES[name](tmp_path)

    shown, printed = pictures.shown_text(name), pictures.printed_text(name, seen)

    out_of_date = f"out of date: {pictures.COMMAND} {name}"
    assert pictures.comparable(shown) == pictures.comparable(printed), out_of_date


@pytest.mark.skipif(not shutil.which("chromedriver"), reason="there is no browser")
@pytest.mark.sweep
def test_a_page_is_pictured_with_its_text() -> None:
    """The picture of a page is one, and holds the words that the page holds."""
    picture = pictures.picture_of_page("<title>x</title><p>Two &amp; <b>three</b></p>", 200, 100)

    assert picture.startswith(b"\x89PNG")
    assert pictures.text_of_png(picture) == "Two &\nthree"


def test_colours_of_a_terminal_are_kept() -> None:
    """Text keeps its place and its colour; what misleads in markup is escaped."""
    svg = pictures.picture_of_screen("\x1b[31m<F>\x1b[0m  [100%]\n\n\nin 12.34s ===", "A & B")

    assert 'aria-label="A &amp; B"' in svg
    assert re.search(r'fill="#ff7b72"[^>]*>&lt;F&gt;<', svg)
    assert pictures.text_of_screen(svg) == "<F> [100%]\nin 0.42s ===="


def test_pictures_are_light() -> None:
    """Nobody waits for a picture: 60 kB each, 600 kB in all."""
    sizes = {file.name: file.stat().st_size for file in pictures.IMAGES.iterdir()}

    assert max(sizes.values()) <= 60_000
    assert sum(sizes.values()) <= 600_000


def test_a_picture_asks_no_other_host() -> None:
    """Fonts are those of the reader's system."""
    drawn = [file.read_text("utf-8") for file in pictures.IMAGES.glob("*.svg")]

    assert drawn
    assert not [text for text in drawn if re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)]


def test_letters_can_be_read_on_a_telephone() -> None:
    """They are 11 pixels high or more where a picture is 390 pixels wide."""
    for file in pictures.IMAGES.glob("*.svg"):
        text = file.read_text("utf-8")
        sizes = [float(size) for size in re.findall(r"(?:font-size|font):([\d.]+)px", text)]
        width = re.search(r'viewBox="0 0 (\d+) ', text)
        assert width
        assert all(size * 390 / int(width[1]) >= 11 for size in sizes), file.name
