"""docs/kinds.md: a kind takes 20 lines, and the table lists what it says."""

import ast
import re
from pathlib import Path

from pages import ROOT

from pytest_regen.units import kind as kind_module

PAGE = "docs/kinds.md"


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
