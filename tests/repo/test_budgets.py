"""Files and functions stay short enough to be read."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "pytest_regen").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short(path: Path) -> None:
    """No file is over 400 lines and no function over 40, docstrings not counted."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    long = [
        f"{node.name}: {length(node)} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and length(node) > 40
    ]

    assert len(text.splitlines()) <= 400
    assert not long


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function from its ``def`` on, without its docstring."""
    lines = (node.end_lineno or 0) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_says_what_it_is_for(path: Path) -> None:
    """Every module that holds code starts with a docstring."""
    tree = ast.parse(path.read_text("utf-8"))

    assert not tree.body or ast.get_docstring(tree)
