"""What pages of Python are made of, by the interpreter's own parser; nothing is ever run."""

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar, Final

from pytest_regen.languages.base import SourceFacts, StitchedType
from pytest_regen.languages.pages import Frame, Line, Pages, Shell, Slot, Source
from pytest_regen.languages.python import wording
from pytest_regen.languages.python.source import parse, read

_IMPORT: Final = re.compile(
    r"^(?:from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n(]*)|import[ \t][^\n]*)$", re.MULTILINE
)
_FIELDS: Final = (ast.AnnAssign, ast.Assign)
_MEMBERS: Final = (*_FIELDS, ast.AsyncFunctionDef, ast.FunctionDef, ast.Pass)
_QUIET: Final = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER})
_OPENS: Final = re.compile(r"[:(\[{,][ \t]*(?:#.*)?$")

_REST: Final = re.compile(rb"[^\n]*(?:\s*\n[ \t]+#[^\n]*)*")
"""What follows the last member of a class: the end of its line, and comments."""


class PythonPages(Pages):
    """Classes, calls of ``TypedDict`` and aliases of ``Literal``."""

    frames: ClassVar = {
        "body": Frame(
            "class PageWrapper:", "", "fields of a class alone, name: type", indent="    "
        ),
        "entries": Frame(
            'PageWrapper = TypedDict("PageWrapper", {',
            "})",
            'entries of a call alone, "name": "type",',
            mark=b",",
        ),
        "values": Frame(
            "PageWrapper: TypeAlias = Literal[",
            "]",
            'values of a Literal alone, "value",',
            mark=b",",
            is_enum=True,
        ),
    }
    indent: ClassVar = "    "
    comment: ClassVar = "#"
    comments: ClassVar = re.compile(rb"#[^\n]*")
    around: ClassVar = re.compile(r"import|_FIELDS")

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
        """Return the pages of one type, below the imports that they need and no header has."""
        imports: dict[str, Line] = {}
        pages = []
        for page, output in enumerate(outputs, 1):
            text = output.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
            if "import" in text:
                provided = wording.provided_to(text)
                for match in _IMPORT.finditer(text):
                    number = text.count("\n", 0, match.start()) + 1
                    for line in _lacking(match[0], provided):
                        imports.setdefault(line, Line(line, page, number))
                text = _IMPORT.sub(lambda match: "\n" * match[0].count("\n"), text)
            pages.append(text)
        joined = super().stitch(pages, name=name, is_enum=is_enum)
        if not imports:
            return joined
        lines = [*imports.values()]
        return StitchedType(
            "\n".join([*imports, joined.text]),
            (*(line.page for line in lines), *joined.line_pages),
            joined.faults,
            (*(line.number for line in lines), *joined.page_lines),
        )

    def source(self, code: bytes) -> Source | None:
        """Return what a source declares; ``None`` where the interpreter refuses it."""
        text = code.decode("utf-8", "replace")
        try:
            module = parse(text)
        except (SyntaxError, ValueError):
            return None
        places = _Places(code)
        shells, outside, has_others = [], [], False
        for node in module.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                outside.append(places.span(node))
            elif shell := places.shell(node):
                shells.append(shell)
            else:
                has_others = True
        has_strays = has_others and any(fault.code == "SYNTAX" for fault in self.read(text).faults)
        return Source(tuple(shells), tuple(outside), has_strays=has_strays)

    def read(self, code: str) -> SourceFacts:
        """Return the facts of a source."""
        return read(code)

    def moved(self, lines: Sequence[Line], indent: str) -> list[Line]:
        """Return the lines with the indentation that they share replaced by ``indent``.

        The first one may have lost its own, where a reply was trimmed.
        """
        first, rest = [*lines[:1]], lines[1:]
        if first and first[0].text[:1].strip() and not _OPENS.search(first[0].text):
            return [*super().moved(first, indent), *super().moved(rest, indent)]
        return super().moved(lines, indent)

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of code, and marks where its blocks begin and end.

        White space inside comments and docstrings is levelled, inside other strings it is kept.
        """
        lines = [Line(line, 1, 1) for line in code.removeprefix("\ufeff").splitlines()]
        text = "\n".join(line.text for line in self.moved(lines, ""))
        found, is_start = [], True
        try:
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type in {tokenize.INDENT, tokenize.DEDENT}:
                    found.append(tokenize.tok_name[token.type])
                elif token.type == tokenize.COMMENT or (is_start and token.type == tokenize.STRING):
                    found.append(" ".join(token.string.split()))
                elif token.type not in _QUIET:
                    found.append(token.string)
                is_quiet = token.type in {tokenize.COMMENT, tokenize.NL}
                is_start = is_start if is_quiet else token.type in _STARTS
        except (tokenize.TokenError, SyntaxError):
            return tuple(text.split())
        return tuple(found)


def _lacking(statement: str, provided: Collection[str]) -> Iterator[str]:
    """Yield the lines that import what no header provides of what a statement imports."""
    try:
        nodes = parse(statement).body
    except (SyntaxError, ValueError):
        return
    for node in nodes:
        if (
            isinstance(node, ast.Import | ast.ImportFrom)
            and getattr(node, "module", "") != "__future__"
        ):
            node.names = [one for one in node.names if (one.asname or one.name) not in provided]
            if node.names:
                yield ast.unparse(node)


_STARTS: Final = frozenset({tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})


class _Places:
    """Positions of nodes in a source, as bytes.

    Args:
        code: the source.
    """

    def __init__(self, code: bytes) -> None:
        self._code = code
        self._lines = code.split(b"\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """Return where a node begins, its decorators included, and where it ends."""
        first = min([node, *getattr(node, "decorator_list", ())], key=lambda each: each.lineno)
        start = self._starts[first.lineno - 1] + first.col_offset - (first is not node)
        end = self._starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        return start, end

    def shell(self, node: ast.stmt) -> Shell | None:
        """Return the type that a statement declares, if it declares one."""
        start = self.span(node)[0]
        if isinstance(node, ast.ClassDef):
            return Shell(node.name, start, tuple(self._body(node)))
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if not isinstance(target, ast.Name) or value is None:
            return None
        for inner in ast.walk(value):
            if isinstance(inner, ast.Call) and _name(inner.func) == "TypedDict":
                fields = next((arg for arg in inner.args if isinstance(arg, ast.Dict)), None)
                return Shell(target.id, start, (self._entries(fields),) if fields else ())
            if isinstance(inner, ast.Subscript) and _name(inner.value) == "Literal":
                return Shell(target.id, start, (self._values(inner),))
        return None

    def _body(self, node: ast.ClassDef) -> Iterator[Slot]:
        """Yield what the members of a class stand in, if they have lines of their own."""
        if node.body[0].lineno == node.lineno:
            return
        members = tuple(self._with_comments(*self.span(each)) for each in node.body)
        start = self._code.rfind(b"\n", 0, members[0][0]) + 1
        end = _REST.match(self._code, members[-1][1])
        is_plain = any(isinstance(each, _FIELDS) for each in node.body) and all(
            isinstance(each, _MEMBERS)
            or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            for each in node.body
        )
        yield Slot("body", start, end.end() if end else members[-1][1], members, is_plain)

    def _entries(self, fields: ast.Dict) -> Slot:
        start, end = self.span(fields)
        members = [
            self._with_comments(self.span(key or value)[0], self.span(value)[1])
            for key, value in zip(fields.keys, fields.values, strict=True)
        ]
        return Slot("entries", start + 1, end - 1, tuple(members), all(fields.keys))

    def _values(self, alias: ast.Subscript) -> Slot:
        values = alias.slice.elts if isinstance(alias.slice, ast.Tuple) else [alias.slice]
        start = self._code.find(b"[", self.span(alias.value)[1]) + 1
        members = tuple(self._with_comments(*self.span(each)) for each in values)
        is_plain = all(isinstance(each, ast.Constant | ast.UnaryOp) for each in values)
        return Slot("values", start, self.span(alias)[1] - 1, members, is_plain)

    def _with_comments(self, start: int, end: int) -> tuple[int, int]:
        """Return a span from the comments above it on."""
        while True:
            line = self._code.rfind(b"\n", 0, start) + 1
            above = self._code.rfind(b"\n", 0, max(line - 1, 0)) + 1
            if not line or not self._code[above:line].lstrip().startswith(b"#"):
                return start, end
            start = above + self._code[above:].index(b"#")


def _name(node: ast.expr) -> str:
    """Return the last part of a dotted name."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


PAGES: Final = PythonPages()
illegality, leaves = PAGES.illegality, PAGES.leaves
split, stitch, unwrap_page = PAGES.split, PAGES.stitch, PAGES.unwrap_page
