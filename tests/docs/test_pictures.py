"""The pictures of the documentation show what runs print today."""

import re
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


def test_pictures_are_light_legible_and_whole() -> None:
    """60 kB each; letters of 11 pixels where one is 390 pixels wide; fonts of the reader's own."""
    sizes = [file.stat().st_size for file in pictures.IMAGES.iterdir()]
    assert (max(sizes) <= 60_000, sum(sizes) <= 600_000) == (True, True)
    for file in pictures.IMAGES.glob("*.svg"):
        text = file.read_text("utf-8")
        letters = re.findall(r"(?:font-size|font):([\d.]+)px", text)
        width = re.search(r'viewBox="0 0 (\d+) ', text)
        assert width
        assert all(float(size) * 390 / int(width[1]) >= 11 for size in letters), file.name
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), file.name
