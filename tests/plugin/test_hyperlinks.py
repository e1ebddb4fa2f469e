"""Codes at a terminal are links to what is said about them; files get the plain text."""

from pathlib import Path

import pytest
from command_line import at_terminal
from store_factory import MISSPELT, make_store

DOCS = {"PYTEST_REGEN_DOCS_URL": "https://docs.example/"}
LINK = "\x1b]8;;https://docs.example/codes/MISSING_FIELD/\x1b\\MISSING_FIELD\x1b]8;;\x1b\\"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A project whose ``Owner`` lacks a field."""
    make_store(tmp_path / "generated/GET_v1_projects", MISSPELT)
    (tmp_path / "pytest.ini").write_text("[pytest]\nregen_stores = generated/*\n", "utf-8")
    return tmp_path


def test_pytest_links_codes(broken: Path) -> None:
    """In the failure; the JUnit file and the report have no control characters."""
    args = ("-p", "no:syrupy", "--junitxml=j.xml", "--regen-report=r.json")

    seen = at_terminal(*args, cwd=broken, env=DOCS, module="pytest").err

    assert seen.count(LINK) == 1
    assert "\x1b]8" not in seen.replace(LINK, "").replace(
        LINK.replace("MISSING_FIELD", "PHANTOM_FIELD"), ""
    )
    for name in ("j.xml", "r.json"):
        text = (broken / name).read_text("utf-8")
        assert "MISSING_FIELD" in text
        assert "]8;;" not in text


@pytest.mark.sweep
@pytest.mark.parametrize(
    "env", [{**DOCS, "TERM": "dumb"}, {**DOCS, "FORCE_HYPERLINK": "0"}, {}], ids=str
)
@pytest.mark.parametrize("module", ["pytest", "pytest_regen"])
def test_elsewhere_they_are_text(broken: Path, module: str, env: dict[str, str]) -> None:
    """On a dumb terminal, where somebody wants none, and without an address."""
    words = ("-p", "no:syrupy") if module == "pytest" else ("validate",)

    seen = at_terminal(*words, cwd=broken, env=env, module=module).err

    assert "MISSING_FIELD" in seen
    assert "\x1b]8" not in seen


def test_commands_link_codes(broken: Path) -> None:
    """The same code, the same article."""
    seen = at_terminal("validate", cwd=broken, env=DOCS).err

    assert "https://docs.example/codes/MISSING_FIELD/\x1b\\" in seen
    assert "https://docs.example/codes/PHANTOM_FIELD/\x1b\\" in seen
