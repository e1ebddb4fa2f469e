"""Pages that list what there is have all of it, and docs/review.md shows what is printed."""

import re
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from articles import matches
from command_line import command
from pages import ROOT, blocks, sessions
from plugin_project import emulated
from unit_project import UnitProject, translate
from unit_work import GERMAN

from pytest_regen.cli.review import review
from pytest_regen.errors import UsageError
from pytest_regen.languages import find_language, find_runner
from pytest_regen.settings import Settings, read_settings


def _text(page: str) -> str:
    return (ROOT / "docs" / page).read_text("utf-8")


def test_every_profile_that_is_run_has_a_row_in_behaviour() -> None:
    """And no other has one."""
    listed = re.findall(r"^\| ([\w#]+), `(\w+)` \|", _text("behaviour.md"), re.MULTILINE)
    run = {
        (title, profile)
        for language, title in (
            ("csharp", "C#"),
            ("python", "Python"),
            ("typescript", "TypeScript"),
        )
        for profile in ("default", "dataclass", "typeddict", "zod", "xchange")
        if _has_runner(language, profile)
    }

    assert sorted(listed) == sorted(run)


def _has_runner(language: str, profile: str) -> bool:
    target = find_language(language)
    try:
        target.wording(profile)
    except UsageError:  # because the language has no such profile
        return False
    return find_runner(target, profile) is not None


def test_every_kind_of_change_is_listed_in_diff() -> None:
    """None is made that the table lacks."""
    code = "".join(
        (ROOT / "pytest_regen" / name).read_text("utf-8")
        for name in ("documents/changes.py", "cli/diff.py")
    )
    made = set(re.findall(r'[Cc]hange\(\s*"(\w+)"', code)) | {"value_added", "value_removed"}
    table = _text("diff.md").partition("| `kind` |")[2]

    assert len(made) > 10
    assert made <= set(re.findall(r"`(\w+)`", table))


def test_every_setting_is_shown_in_pytest(tmp_path: Path) -> None:
    """The table is read, and leaves nothing at its default."""
    (tmp_path / "pyproject.toml").write_text(blocks("docs/pytest.md", "toml")[1], "utf-8")

    settings, defaults = asdict(read_settings(tmp_path)), asdict(Settings())

    assert all(settings[key] != value for key, value in defaults.items())
    assert all(settings["cassettes"][key] != value for key, value in defaults["cassettes"].items())
    (price,) = settings["price"].values()
    assert None not in price.values()


def test_the_sessions_of_review_are_what_is_shown(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One candidate is left by pytest, listed, shown and accepted; then the item passes."""
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    project = UnitProject(pytester)
    project.write(german={**GERMAN, "berth": "Liegeplatz"})
    command("adopt", project.german_file)
    parts = [part for block in blocks("docs/review.md", "console") for part in sessions(block)]

    assert len(parts) == 5
    for words, shown in parts:
        program, *args = shlex.split(words)
        if program == "pytest":
            with emulated(monkeypatch, translate):
                lines = project.run(*args).stdout.lines
        else:
            lines = command(*args).err.splitlines()
        assert matches(["…", *shown, "…"], lines), "\n".join(lines)
    named = {command.name for command in review.registered_commands} - {"candidates", None}
    assert all(f"| `review {name}" in _text("review.md") for name in named)
