"""docs/template.md: its commands work as they stand there, without a key."""

from pathlib import Path

from pages import blocks, printed, sessions

from pytest_regen.stores import RegenStore

PAGE = "docs/template.md"


def test_the_page_works_from_top_to_bottom(tmp_path: Path) -> None:
    """One folder, an API description, and what each command shows."""
    (document,) = blocks(PAGE, "yaml")
    (settings,) = blocks(PAGE, "toml")
    make, heal = (list(sessions(block)) for block in blocks(PAGE, "console"))
    (tmp_path / "api.yaml").write_text(document, "utf-8")
    (tmp_path / "pyproject.toml").write_text("", "utf-8")

    for command, shown in make:
        lines = printed(command, tmp_path)
        assert not [line for line in shown if not _is_among(line, lines)], lines

    (tmp_path / "pyproject.toml").write_text(
        f'[tool.pytest.ini_options]\nregen_stores = ["generated/*"]\n{settings}', "utf-8"
    )
    source = tmp_path / "generated" / "GET_kites_latest" / "pages.json"
    for command, _ in heal:
        source.write_text(source.read_text("utf-8").replace("sky-blue", "sky blue"), "utf-8")
        printed("pytest-regen rebuild generated/GET_kites_latest", tmp_path)
        assert any("sky-blue" in line for line in printed("pytest", tmp_path))
        told = printed(command, tmp_path)
        assert any("KiteSail page 1" in line for line in told), told
        assert printed("pytest -q", tmp_path)[-1].startswith("2 passed")
    written = {page.provider for page in RegenStore.open(source.parent).pages.values()}
    assert written == {"template"}


def _is_among(shown: str, lines: list[str]) -> bool:
    """Return whether a line was printed, whatever a run took."""
    return any(line.partition(" in ")[0] == shown.partition(" in ")[0] for line in lines)
