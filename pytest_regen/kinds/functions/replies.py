"""A reply read as the code of one place, whatever form a model gave it.

The prompt asks for the code alone. Models also answer with the whole function, with imports and
helpers above it, with the class around it, with the marker lines, with indentation kept or lost:
all of that says the same, and becomes the code that stands between the markers.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Final

from pytest_regen.kinds.functions import source
from pytest_regen.kinds.functions.source import Function, Import, ModuleSource, Place
from pytest_regen.regions import Marked
from pytest_regen.text import fenced_blocks, without_blank_ends, without_thinking

_PYTHON: Final = frozenset({"", "python", "py", "python3", "py3", "{python}", "{.python}"})
_MARKER: Final = r"^[ \t]*#+[ \t]*\[REGEN:{edge}[ \t]+{name}(?:[ \t][^\]\n]*)?\]"


def code_in(reply: str, module: ModuleSource, place: Place) -> str:
    """Return the code for a place that a reply holds, beginning at the first column."""
    code = _choose(reply, place)
    name = re.escape(place.name)
    begin, end = (_MARKER.format(edge=edge, name=name) for edge in ("BEGIN", "END"))
    marked = re.search(rf"(?ms){begin}[^\n]*\n(.*?)(?:{end}|\Z)", code)
    text = _dedent(marked[1] if marked else code)
    tree = _parse(text)
    function = None if marked or tree is None else _find_function(tree, place)
    if tree is not None and function is not None:
        text = _from_function(text, tree, function, module, place)
    elif tree is not None and len(tree.body) > 1 and source.is_text(tree.body[0]):
        # A docstring that repeats the one above the place is left out.
        first = tree.body[0]
        if inspect.cleandoc(str(first.value.value)) == inspect.cleandoc(place.docstring or ""):
            text = "\n".join(text.split("\n")[first.end_lineno or 0 :])
    return without_blank_ends(text)


def _choose(reply: str, place: Place) -> str:
    """Return the block of a reply that answers: the last with the function, or that is code."""
    text = without_thinking(reply.replace("\r\n", "\n"))
    blocks = [(info.partition(" ")[0].lower(), code) for info, code in fenced_blocks(text)]
    if not blocks:
        return text
    python = [code for info, code in blocks if info in _PYTHON] or [blocks[-1][1]]
    # Markers name the unit, so a block with them is surely meant.
    marked = [code for code in python if f"[REGEN:BEGIN {place.name}]" in code]
    trees = {code: _parse(_dedent(code)) for code in python}
    whole = [code for code, tree in trees.items() if tree and _find_function(tree, place)]
    legal = [code for code, tree in trees.items() if tree and not _is_example(tree, place)]
    return (marked or whole or legal or python)[-1]


def _is_example(tree: ast.Module, place: Place) -> bool:
    """Return whether code only shows how to call the function."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    calls_only = all(isinstance(node, ast.Expr | Import | ast.Assert) for node in tree.body)
    return calls_only and place.node.name in names


def _from_function(
    text: str, tree: ast.Module, function: Function, module: ModuleSource, place: Place
) -> str:
    """Return the body of a function, with what the reply has around it and the module has not."""
    lines = text.split("\n")
    body = _asked_for(function.body[source.is_text(function.body[0]) :], place)
    if not body:
        return ""
    extras = _extras(tree, function, module, place)
    parts = [_dedent(_cut(lines, source.first_line(node), node.end_lineno)) for node in extras]
    last, at = body[-1].end_lineno, function.body.index(body[0])
    above = (function.body[at - 1].end_lineno or 0) if at else function.lineno
    first = source.first_line(body[0])
    # `ast` counts columns in bytes.
    head = lines[first - 1].encode()
    if head[: body[0].col_offset].strip():  # def f(): return 1
        lines[first - 1] = head[body[0].col_offset :].decode()
        return "\n\n".join((*parts, _cut(lines, first, last)))
    # The comments above the first statement belong to it.
    while first - 1 > above and lines[first - 2].strip()[:1] in {"", "#"}:
        first -= 1
    return "\n\n".join((*parts, _dedent(_cut(lines, first, last))))


def _cut(lines: list[str], first: int, last: int | None) -> str:
    return "\n".join(lines[first - 1 : last])


def _asked_for(body: list[ast.stmt], place: Place) -> list[ast.stmt]:
    """Return the statements without those that the user wrote before and after the place."""
    user = [node for node in place.node.body if not source.is_text(node)]
    trees = [source.canonical(node) for node in user]
    answer = [source.canonical(node) for node in body]
    for at, node in enumerate(user):
        if not place.is_whole and source.is_marker(node, place.marks.begin):
            before, after = trees[:at], trees[at + 1 :]
            if after and answer[-len(after) :] == after:
                body = body[: -len(after)]
            if answer[: len(before)] == before:
                body = body[len(before) :]
    return body


def _extras(
    tree: ast.Module, function: Function, module: ModuleSource, place: Place
) -> Iterator[ast.stmt]:
    """Yield imports and helpers of a reply that the module lacks: the body can hold them."""
    imports = {source.canonical(node) for node in module.imports}
    defined = {getattr(node, "name", "") for node in ast.walk(module.tree)} | {place.node.name}
    defined |= source.stored(ast.walk(module.tree))
    for node in tree.body:
        match node:
            case ast.ImportFrom(module="__future__"):
                continue
            case ast.Import() | ast.ImportFrom() if source.canonical(node) not in imports:
                yield node
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if node is not function and node.name not in defined:
                    yield node
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = source.stored(targets)
                if names and names.isdisjoint(defined):
                    yield node


def _find_function(tree: ast.Module, place: Place) -> Function | None:
    """Return the function in a reply that is the one asked for, and no helper inside its body."""
    names = place.qualname.split(".")
    if any(isinstance(node, ast.Return) for node in tree.body):
        return None
    functions = (source.function_at(tree, ".".join(names[at:])) for at in range(len(names)))
    return next((function for function in functions if function is not None), None)


def _dedent(text: str) -> str:
    """Return code moved to the first column; lines inside strings stay as they are."""
    text = without_blank_ends(text)
    indent = source.indent_of(text.partition("\n")[0])
    # A region knows how to do that: it takes the indentation of its marker away.
    block = f"{indent}# [REGEN:BEGIN x #9]\n{text}\n{indent}# [REGEN:END x #9]"
    return Marked().find(block)["x"].text if indent else text


def _parse(text: str) -> ast.Module | None:
    try:
        return source.parse(text)
    except SyntaxError:
        return None
