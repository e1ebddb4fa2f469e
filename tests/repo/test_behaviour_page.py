"""docs/behaviour.md: its commands find and heal what they say; its tables name what there is."""

import re
import shlex
from pathlib import Path

import pytest
from command_line import command
from pages import ROOT, blocks, sessions

from pytest_regen.languages import find_language, find_runner, language_names

PAGE = "docs/behaviour.md"
SOURCE = Path("api/GET_berths_next/Berth.py")


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store is made, gets what a model might have written, is found out and healed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (document,) = blocks(PAGE, "yaml")
    (written,) = blocks(PAGE, "py")
    make, find, heal = blocks(PAGE, "console")
    Path("harbour.yaml").write_text(document, "utf-8")
    Path("pyproject.toml").write_text("", "utf-8")

    _run(make)
    source = SOURCE.read_text("utf-8")
    changed = re.sub(
        r"class Berth\(.*?(?=# \[REGEN:END)", lambda _: written, source, flags=re.DOTALL
    )
    assert changed != source
    SOURCE.write_text(changed, "utf-8")
    _run(find)
    _run(heal)

    assert SOURCE.read_text("utf-8") == source


def test_every_profile_that_is_run_has_a_row() -> None:
    """And no other has one, in either table."""
    names = {"csharp": "C#", "python": "Python", "typescript": "TypeScript"}
    text = (ROOT / PAGE).read_text("utf-8")
    listed = re.findall(r"^\| ([\w#]+), `(\w+)` \|", text, re.MULTILINE)
    run = {
        (names[language], profile)
        for language in language_names()
        if language in names
        for profile in ("default", "dataclass", "typeddict", "zod", "xchange")
        if _has_runner(language, profile)
    }

    assert sorted(listed) == sorted([*run] * 2)


def _has_runner(language: str, profile: str) -> bool:
    target = find_language(language)
    try:
        target.wording(profile)
    except Exception:  # noqa: BLE001 - no such profile
        return False
    return find_runner(target, profile) is not None


def _run(block: str) -> None:
    """Run the commands of a block; each must print the lines shown below it."""
    for words, shown in sessions(block):
        ran = command(*shlex.split(words)[1:])
        lines = [line.strip() for line in (ran.out + ran.err).splitlines()]
        assert not [line for line in shown if line not in lines], lines
