"""What pages of Python are made of, by the interpreter's own parser; nothing is ever run."""

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import ClassVar, Final

from pytest_regen.languages import pages
from pytest_regen.languages.python.header import provided_to
from pytest_regen.languages.python.source import last_name, parse, read

_IMPORT: Final = re.compile(
    r"^(?:from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n(]*)|import[ \t][^\n]*)$", re.MULTILINE
)
_FIELDS: Final = (ast.AnnAssign, ast.Assign)
_MEMBERS: Final = (*_FIELDS, ast.AsyncFunctionDef, ast.FunctionDef, ast.Pass)
_BLOCKS: Final = frozenset({tokenize.INDENT, tokenize.DEDENT})
_NEWLINES: Final = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER})


class PythonPages(pages.Pages):
    """Classes, calls of ``TypedDict`` and aliases of ``Literal``."""

    frames: ClassVar = {
        "body": pages.Frame("class PageWrapper:", "", "fields of a class alone", indent="    "),
        "entries": pages.Frame(
            'PageWrapper = TypedDict("PageWrapper", {', "})", "entries of a call alone", mark=","
        ),
        "values": pages.Frame(
            "PageWrapper = Literal[", "]", "values of a Literal alone", mark=",", is_enum=True
        ),
    }
    comment: ClassVar = "#"
    comments: ClassVar = re.compile(r"#[^\n]*")

    def imported(self, lines: list[pages.Line]) -> tuple[list[pages.Line], list[pages.Line]]:
        """Return the imports of a page that no header has, and the page without any import."""
        text = pages.text_of(lines)
        if "import" not in text:
            return [], lines
        above, provided = [], provided_to(text)
        for match in _IMPORT.finditer(text):
            line = lines[text.count("\n", 0, match.start())]
            above += [replace(line, text=needed) for needed in _lacking(match[0], provided)]
        plain = _IMPORT.sub(lambda match: "\n" * match[0].count("\n"), text).split("\n")
        return above, [replace(line, text=left) for line, left in zip(lines, plain, strict=True)]

    read = staticmethod(read)

    def source(self, code: str) -> pages.Source | None:
        """Return what a source declares; ``None`` where the interpreter refuses it."""
        try:
            statements = parse(code).body
        except (SyntaxError, ValueError):
            return None
        lines = code.split("\n")
        slots, beside = [], []
        for node in statements:
            if slot := _slot(node):
                slots.append(slot)
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                beside.append(lines[node.lineno - 1])
        # Aliases and helpers may stand beside types, but no field and no word of prose.
        has_strays = any(re.match(r"[a-z]\w*\s*[:=]|\w+[.!]?\s*(?:#|$)", line) for line in beside)
        return pages.Source(tuple(slots), has_strays=has_strays)

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of code, and marks where its blocks begin and end.

        White space inside comments and docstrings is levelled, inside other strings it is kept.
        """
        text = pages.text_of(self.moved(pages.lines_of(code, 1), ""))
        leaves, is_start = [], True
        try:
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                word = token.string
                if token.type in _BLOCKS:
                    word = tokenize.tok_name[token.type]
                # Because a formatter wraps them, though not other strings.
                elif token.type == tokenize.COMMENT or (is_start and token.type == tokenize.STRING):
                    word = " ".join(word.split())
                if token.type not in _NEWLINES:
                    leaves.append(word)
                if token.type not in {tokenize.COMMENT, tokenize.NL}:
                    is_start = token.type in _BLOCKS | {tokenize.NEWLINE}
        except (tokenize.TokenError, SyntaxError):
            return tuple(text.split())
        return tuple(leaves)


def _lacking(statement: str, provided: Collection[str]) -> Iterator[str]:
    """Yield the lines that import what no header provides of what a statement imports."""
    try:
        nodes = parse(statement).body
    except (SyntaxError, ValueError):
        return
    for node in nodes:
        is_future = getattr(node, "module", "") == "__future__"
        if isinstance(node, ast.Import | ast.ImportFrom) and not is_future:
            node.names = [name for name in node.names if (name.asname or name.name) not in provided]
            if node.names:
                yield ast.unparse(node)


def _slot(node: ast.stmt) -> pages.Slot | None:
    """Return what a type declares its members in, if they stand on lines of their own."""
    row = node.lineno - 1
    if isinstance(node, ast.ClassDef):
        members = tuple((_start(part), _end(part)) for part in node.body)
        first, last = members[0][0][0], members[-1][1][0]
        is_plain = any(isinstance(part, _FIELDS) for part in node.body) and all(
            isinstance(part, _MEMBERS)
            or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            for part in node.body
        )
        start, end = (first - 1, pages.END_OF_LINE), (last, pages.END_OF_LINE)
        slot = pages.Slot(node.name, row, "body", start, end, members, is_plain)
        return slot if node.body[0].lineno > node.lineno else None
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    value = getattr(node, "value", None)
    if not isinstance(target, ast.Name) or value is None:
        return None
    for inner in ast.walk(value):
        if isinstance(inner, ast.Dict) and "TypedDict" in ast.dump(value):
            kind, opening, is_plain = "entries", _start(inner), all(inner.keys)
            pairs = zip(inner.keys, inner.values, strict=True)
            members = tuple((_start(key or value), _end(value)) for key, value in pairs)
        elif isinstance(inner, ast.Subscript) and last_name(inner) == "Literal":
            values = inner.slice.elts if isinstance(inner.slice, ast.Tuple) else [inner.slice]
            kind, opening = "values", _end(inner.value)
            is_plain = all(isinstance(item, ast.Constant | ast.UnaryOp) for item in values)
            members = tuple((_start(item), _end(item)) for item in values)
        else:
            continue
        start, (last, at) = (opening[0], opening[1] + 1), _end(inner)
        return pages.Slot(target.id, row, kind, start, (last, at - 1), members, is_plain)
    return None


def _start(node: ast.stmt | ast.expr) -> pages.Point:
    """Return where a member begins, with its decorators."""
    first: ast.expr | ast.stmt = next(iter(getattr(node, "decorator_list", ())), node)
    return first.lineno - 1, first.col_offset - (first is not node)


def _end(node: ast.stmt | ast.expr) -> pages.Point:
    return (node.end_lineno or 1) - 1, node.end_col_offset or 0


PAGES: Final = PythonPages()
illegality, leaves = PAGES.illegality, PAGES.leaves
split, stitch, unwrap_page = PAGES.split, PAGES.stitch, PAGES.unwrap_page
