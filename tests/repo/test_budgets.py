"""Files and functions stay short enough to be read."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "pytest_regen").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short(path: Path) -> None:
    """No file is over 400 lines and no function's body over 40."""
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
    """Return the lines of a function's body; signature and docstring are for the reader."""
    first = node.body[0]
    start = first.lineno if ast.get_docstring(node) is None else (first.end_lineno or 0) + 1
    return (node.end_lineno or 0) - start + 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_says_what_it_is_for(path: Path) -> None:
    """Every module that holds code starts with a docstring."""
    tree = ast.parse(path.read_text("utf-8"))

    assert not tree.body or ast.get_docstring(tree)
