"""docs/kinds.md lists what a kind says, docs/functions.md every setting of functions."""

import ast
import re
import tomllib
from pathlib import Path

from pages import ROOT, blocks

from pytest_regen.kinds.functions import function_kinds
from pytest_regen.units import kind as kind_module


def test_the_table_names_every_member_of_a_kind() -> None:
    """What can be overridden has a row, and nothing else has."""
    text = (
        (ROOT / "docs/kinds.md")
        .read_text("utf-8")
        .partition("## What a kind says")[2]
        .partition("\n## ")[0]
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


def test_the_settings_of_the_page_are_settings(tmp_path: Path) -> None:
    """Every key of the kind, and none besides."""
    table = tomllib.loads(blocks("docs/functions.md", "toml")[1])["tool"]["pytest-regen"][
        "functions"
    ]

    (kind,) = function_kinds(table, tmp_path)

    assert kind.files == ("src/acme/*.py",)
    assert "Raise ValueError for bad input." in kind.system
    assert "Allowed all the same: open, subprocess." in kind.system
