"""A reply read as the code of one place, whatever form a model gave it.

The prompt asks for the code alone. Models also answer with the whole function, with imports and
helpers above it, with the class around it, with the marker lines, with indentation kept or lost:
all of that says the same, and becomes the code that stands between the markers.
"""

import ast
import re
from collections.abc import Sequence
from contextlib import suppress

from pytest_regen.errors import RegionError
from pytest_regen.kinds.functions import source
from pytest_regen.kinds.functions.lint import defined_names
from pytest_regen.kinds.functions.source import Function, Import, Place, Scope
from pytest_regen.regions import Marked
from pytest_regen.text import fenced_blocks, without_blank_ends, without_thinking


def code_in(reply: str, place: Place) -> str:
    """Return the code for a place that a reply holds, beginning at the first column."""
    text = without_thinking(reply.replace("\r\n", "\n"))
    blocks = [code for info, code in fenced_blocks(text) if not info or "py" in info.lower()]
    # A block with the function, or its markers, is surely meant; others may show how to call it.
    name = re.escape(place.node.name)
    whole = [code for code in blocks if re.search(rf"def {name}\b|\[REGEN:BEGIN", code)]
    code = _dedent((whole[-1:] or blocks or [text])[0])
    with suppress(RegionError):
        if span := Marked().find(code).get(place.name):
            code = span.text
    try:
        tree = source.parse(code)
    except SyntaxError:
        return code
    lines = code.split("\n")
    functions = dict(source.functions_in(tree.body))
    scopes = place.qualname.split(".")
    matches = (functions.get(".".join(scopes[at:])) for at in range(len(scopes)))
    function = next((match for match in matches if match), None)
    # A helper inside of a body may have the same name.
    if function and not any(isinstance(node, ast.Return) for node in tree.body):
        # Imports and helpers that the module lacks, because the body can hold them.
        present = defined_names(place.module) | {place.node.name}
        parts: list[Sequence[ast.stmt]] = []
        for node in tree.body:
            names = set[str]()
            if isinstance(node, Import):
                names = {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            elif isinstance(node, Scope):
                names = {node.name}
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                names = source.stored(ast.walk(node))
            is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if not names <= present and not is_future:
                parts.append([node])
        body = function.body[source.is_text(function.body[0]) :]
        parts += [body] if body else []
        return "\n\n".join(_dedent(_cut(lines, part, function)) for part in parts)
    # A docstring that repeats the one above the place is left out.
    if len(tree.body) > 1 and source.is_text(tree.body[0]):
        lines = lines[tree.body[0].end_lineno or 0 :]
    return without_blank_ends("\n".join(lines))


def _cut(lines: Sequence[str], nodes: Sequence[ast.stmt], function: Function) -> str:
    """Return the lines of statements, with the comments above them in the function."""
    first, at = source.first_line(nodes[0]), function.lineno
    if nodes[0] in function.body[1:]:
        at = function.body[function.body.index(nodes[0]) - 1].end_lineno or at
    while first - 1 > at and lines[first - 2].strip()[:1] in {"", "#"}:
        first -= 1
    return "\n".join(lines[first - 1 : nodes[-1].end_lineno])


def _dedent(text: str) -> str:
    """Return code moved to the first column; lines inside strings stay as they are."""
    text = without_blank_ends(text)
    indent = source.indent_of(text.partition("\n")[0])
    # A region knows how to do that: it takes the indentation of its marker away.
    block = f"{indent}# [REGEN:BEGIN x #9]\n{text}\n{indent}# [REGEN:END x #9]"
    return Marked().find(block)["x"].text if indent else text
