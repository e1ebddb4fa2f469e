"""docs/template.md: its commands work as they stand there, without a key."""

import shlex

import pytest
from command_line import command
from pages import blocks, sessions

from pytest_regen.stores import RegenStore

PAGE = "docs/template.md"
STORE = "generated/GET_kites_latest"


def test_the_page_works_from_top_to_bottom(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One folder, an API description, and what each command shows."""
    monkeypatch.setenv("COLUMNS", "200")
    (document,) = blocks(PAGE, "yaml")
    (settings,) = blocks(PAGE, "toml")
    make, heal = (list(sessions(block)) for block in blocks(PAGE, "console"))
    (pytester.path / "api.yaml").write_text(document, "utf-8")
    project = pytester.path / "pyproject.toml"
    project.write_text("", "utf-8")

    for words, shown in make:
        lines = _printed(words, pytester)
        assert not [line for line in shown if not _is_among(line, lines)], lines

    project.write_text(
        f'[tool.pytest.ini_options]\nregen_stores = ["generated/*"]\n{settings}', "utf-8"
    )
    source = pytester.path / STORE / "KiteDataObject.cs"
    for words, _ in heal:
        source.write_text(source.read_text("utf-8").replace("sky-blue", "sky blue"), "utf-8")
        assert command("adopt", STORE).code == 1
        told = _printed(words, pytester)
        assert any("KiteSail page 1" in line for line in told), told
        assert command("validate", STORE).code == 0
    store = RegenStore.open(source.parent)
    assert {page.provider for page in store.pages.values()} == {"template"}


def _printed(words: str, pytester: pytest.Pytester) -> list[str]:
    """Run a command as the page words it; return what it printed, line by line."""
    program, *options = shlex.split(words)
    if program == "pytest":
        ran = pytester.runpytest_inprocess(*options)
        return [*map(str.strip, ran.outlines)]
    return [*map(str.strip, command(*options).err.splitlines())]


def _is_among(shown: str, lines: list[str]) -> bool:
    """Return whether a line was printed, whatever a run took and other plugins warned of."""
    return any(line.startswith(shown.partition(" in ")[0]) for line in lines)
