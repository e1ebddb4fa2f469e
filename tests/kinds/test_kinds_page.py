"""docs/kinds.md: a kind takes 20 lines, and the first one gates, heals and replays as shown."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from articles import blocks_of
from pages import ROOT, blocks, printed, sessions
from plugin_project import emulated

from pytest_regen.units import kind as kind_module

PAGE = "docs/kinds.md"
KINDS = [
    block.text
    for page in [ROOT / PAGE, *sorted(ROOT.glob("docs/how-to/*.md"))]
    for block in blocks_of(page)
    if "(Kind)" in block.text
]
ANSWERS = {"IMO number": r"IMO ?\d{7}", "a draught": r"\d+[.,]\d+ m"}
BETTER = {**ANSWERS, "a draught": r"\d+([.,]\d+)? m"}


def answer(body: Mapping[str, Any], answers: Mapping[str, str]) -> str:
    """Return the pattern that a request asks for."""
    text = str(body["messages"])
    return next(pattern for what, pattern in answers.items() if what in text)


def shows(lines: list[str], shown: list[str]) -> None:
    """Hold what the page shows of a session against what was printed, but for blanks."""
    text = [" ".join(line.split()) for line in lines]
    missing = [
        line
        for line in shown
        if line != "…" and not any(" ".join(line.split()) in output for output in text)
    ]
    assert not missing, "\n".join(lines)


def test_a_kind_takes_twenty_lines() -> None:
    """Each kind of the docs, with imports and what it checks."""
    sizes = [
        sum(bool(line.strip()) and not line.startswith("#") for line in block.splitlines())
        for block in KINDS
    ]

    assert len(sizes) >= 6
    assert max(sizes) <= 20, sizes


def test_the_first_kind_works_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated, gated and healed by a model; then healed again from the recording, offline."""
    wanted, settings = blocks(PAGE, "toml")[:2]
    files = {"regen_kinds.py": KINDS[0], "patterns.toml": wanted, "pyproject.toml": settings}
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    told = [session for block in blocks(PAGE, "console") for session in sessions(block)]
    (generate, generated), (gate, gated), (heal, healed) = told

    with emulated(monkeypatch, lambda body: answer(body, ANSWERS)):
        shows(printed(generate, tmp_path), generated)
    (tmp_path / "patterns.toml").write_text(wanted.replace('["2,5 m"', '["3 m", "2,5 m"'), "utf-8")
    broken = (tmp_path / "patterns.json").read_bytes()
    shows(printed(gate, tmp_path), gated)
    with emulated(monkeypatch, lambda body: answer(body, BETTER)):
        shows(printed(heal, tmp_path), healed)
    (tmp_path / "patterns.json").write_bytes(broken)
    printed("pytest-regen adopt patterns.json", tmp_path)
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    replayed = printed("pytest --regen", tmp_path)

    assert any("1 regenerated" in line for line in replayed), "\n".join(replayed)


def test_the_regions_of_the_page_are_regions() -> None:
    """The block that lists them runs."""
    (block,) = (block for block in blocks(PAGE, "python") if "regions.Marked()" in block)

    exec(block, {})


def test_the_table_names_every_member_of_a_kind() -> None:
    """What can be overridden has a row, and nothing else has."""
    text = (
        (ROOT / PAGE).read_text("utf-8").partition("## What a kind says")[2].partition("\n## ")[0]
    )
    rows = set(re.findall(r"^\| `(\w+)", text, re.MULTILINE))
    tree = ast.parse(Path(kind_module.__file__).read_text("utf-8"))
    (kind,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Kind")
    members = {
        getattr(node, "name", "") or ast.unparse(getattr(node, "target", node))
        for node in kind.body
        if isinstance(node, ast.FunctionDef | ast.AnnAssign)
    }

    assert rows == members - {"title", "system_inputs"}
