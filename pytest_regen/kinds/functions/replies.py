"""A reply read as the code of one place, whatever form a model gave it.

The prompt asks for the code alone. Models also answer with the whole function, with imports and
helpers above it, with the class around it, with the marker lines, with indentation kept or lost:
all of that says the same, and becomes the code that stands between the markers.
"""

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_regen.kinds.functions.source import (
    Function,
    ModuleSource,
    Place,
    canonical,
    first_line,
    function_at,
    indent_of,
    is_marker,
    is_text,
    parse,
    stored,
)
from pytest_regen.regions import Marked
from pytest_regen.text import fenced_blocks, without_blank_ends, without_thinking

_PYTHON: Final = frozenset({"", "python", "py", "python3", "py3", "{python}", "{.python}"})
_MARKER: Final = re.compile(r"[ \t]*#+[ \t]*\[REGEN:(?:BEGIN|END)[ \t]+[^\]\n]+\][ \t]*")


def code_in(reply: str, module: ModuleSource, place: Place) -> str:
    """Return the code for a place that a reply holds, beginning at the first column."""
    return without_blank_ends(_body(_choose(reply, place), module, place))


def _choose(reply: str, place: Place) -> str:
    """Return the block of a reply that answers: the last with the function, or that is code."""
    text = without_thinking(reply.replace("\r\n", "\n"))
    blocks = [(info.partition(" ")[0].lower(), code) for info, code in fenced_blocks(text)]
    if not blocks:
        return text
    python = [code for info, code in blocks if info in _PYTHON] or [blocks[-1][1]]
    marked = [code for code in python if f"[REGEN:BEGIN {place.name}]" in code]
    trees = {code: _parse(_dedent(code)) for code in python}
    whole = [code for code, tree in trees.items() if _find_function(tree, place) is not None]
    legal = [code for code, tree in trees.items() if tree and not _is_example(tree, place)]
    return (marked or whole or legal or python)[-1]


def _is_example(tree: ast.Module, place: Place) -> bool:
    """Return whether code only shows how to call the function."""
    shown = ast.Expr | ast.Import | ast.ImportFrom | ast.Assert
    return all(isinstance(node, shown) for node in tree.body) and any(
        isinstance(node, ast.Name) and node.id == place.node.name for node in ast.walk(tree)
    )


def _body(code: str, module: ModuleSource, place: Place) -> str:
    marked = _between_markers(code, place)
    if marked is not None:
        return _without_docstring(_dedent(marked), place)
    text = _dedent(code)
    tree = _parse(text)
    found = _find_function(tree, place)
    if tree is None or found is None:
        return _without_docstring(text, place)
    return _from_function(text, tree, found, module, place)


def _between_markers(code: str, place: Place) -> str | None:
    """Return what stands between the markers of a place, where a reply repeats them."""
    lines = code.split("\n")
    begin = next((n for n, line in enumerate(lines) if _names(line, "BEGIN", place)), None)
    if begin is None:
        return None
    end = next(
        (n for n in range(begin + 1, len(lines)) if _names(lines[n], "END", place)), len(lines)
    )
    return "\n".join(lines[begin + 1 : end])


def _names(line: str, edge: str, place: Place) -> bool:
    return bool(_MARKER.fullmatch(line)) and f"[REGEN:{edge} {place.name}" in line


def _from_function(
    text: str, tree: ast.Module, function: Function, module: ModuleSource, place: Place
) -> str:
    """Return the body of a function, with what the reply has around it and the module has not."""
    lines = text.split("\n")
    body = _without_own(function.body[is_text(function.body[0]) :], place)
    if not body:
        return ""
    extras = _extras(tree, function, module, place)
    parts = [_cut(lines, first_line(node), node.end_lineno or 0) for node in extras]
    return "\n\n".join((*parts, _cut_body(lines, function, body)))


def _cut_body(lines: Sequence[str], function: Function, body: Sequence[ast.stmt]) -> str:
    """Return statements of a function, with the comments above them."""
    last, at = body[-1].end_lineno or 0, function.body.index(body[0])
    above = (function.body[at - 1].end_lineno or 0) if at else function.lineno
    first = first_line(body[0])
    head = lines[first - 1].encode()
    if head[: body[0].col_offset].strip():  # def f(): return 1
        rest = head[body[0].col_offset :].decode()
        return "\n".join((rest, *lines[first:last]))
    while first - 1 > above and lines[first - 2].strip()[:1] in {"", "#"}:
        first -= 1
    return _cut(lines, first, last)


def _cut(lines: Sequence[str], first: int, last: int) -> str:
    return _dedent("\n".join(lines[first - 1 : last]))


def _without_own(body: list[ast.stmt], place: Place) -> list[ast.stmt]:
    """Return the statements without those that the user wrote before and after the place."""
    if place.is_whole:
        return body
    own = place.node.body
    at = next((n for n, node in enumerate(own) if is_marker(node, place.marks.begin)), None)
    if at is None:
        return body
    before = [canonical(node) for node in own[:at] if not is_text(node)]
    after = [canonical(node) for node in own[at + 1 :]]
    said = [canonical(node) for node in body]
    first = len(before) if said[: len(before)] == before else 0
    last = len(body) - (len(after) if after and said[-len(after) :] == after else 0)
    return body[first:last]


def _extras(
    tree: ast.Module, function: Function, module: ModuleSource, place: Place
) -> Iterator[ast.stmt]:
    """Yield imports and helpers of a reply that the module lacks: the body can hold them."""
    imports = {canonical(node) for node in module.imports}
    known = {getattr(node, "name", "") for node in ast.walk(module.tree)}
    known |= stored(ast.walk(module.tree))
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if canonical(node) not in imports and not is_future:
                yield node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node is not function and node.name not in known and node.name != place.node.name:
                yield node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {one.id for one in targets if isinstance(one, ast.Name)}
            if names and not names & known:
                yield node


def _find_function(tree: ast.Module | None, place: Place) -> Function | None:
    """Return the function in a reply that is the one asked for, and no helper inside its body."""
    if tree is None or any(isinstance(node, ast.Return) for node in tree.body):
        return None
    names = place.qualname.split(".")
    found = (function_at(tree, ".".join(names[start:])) for start in range(len(names)))
    return next((one for one in found if one is not None), None)


def _without_docstring(text: str, place: Place) -> str:
    """Return code without a docstring that repeats the one above the place."""
    tree = _parse(text)
    if tree is None or len(tree.body) < 2 or not place.docstring:
        return text
    first = tree.body[0]
    if not is_text(first):
        return text
    if inspect.cleandoc(str(first.value.value)) != inspect.cleandoc(place.docstring):
        return text
    return "\n".join(text.split("\n")[first.end_lineno or 0 :])


def _dedent(text: str) -> str:
    """Return code moved to the first column; lines inside strings stay as they are."""
    lines = without_blank_ends(text).split("\n")
    indent = indent_of(lines[0])
    if not indent:
        return "\n".join(lines)
    # A region knows how to do that: it takes the indentation of its marker away.
    block = "\n".join((f"{indent}# [REGEN:BEGIN x #9]", *lines, f"{indent}# [REGEN:END x #9]"))
    return Marked().find(block)["x"].text


def _parse(text: str) -> ast.Module | None:
    try:
        return parse(text)
    except SyntaxError:
        return None
