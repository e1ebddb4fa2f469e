"""docs/kinds.md: a kind takes 20 lines, and the table lists what it says."""

import ast
import re
from pathlib import Path

from pages import ROOT, blocks_of

from pytest_regen.units import kind as kind_module

PAGE = "docs/kinds.md"
KINDS = [
    block.text
    for page in [ROOT / PAGE, *sorted(ROOT.glob("docs/how-to/*.md"))]
    for block in blocks_of(page)
    if "(Kind)" in block.text
]


def test_a_kind_takes_twenty_lines() -> None:
    """Each kind of the docs, with imports and what it checks."""
    sizes = [
        sum(bool(line.strip()) and not line.startswith("#") for line in block.splitlines())
        for block in KINDS
    ]

    assert len(sizes) >= 5
    assert max(sizes) <= 20, sizes


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
