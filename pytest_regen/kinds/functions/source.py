"""A Python module read around its regions: which function each stands in, and what that says.

What a model wrote is never looked at here: the code between markers counts as ``pass``, so that a
broken answer spoils no other unit, and no answer is an input of itself or of its neighbours.
"""

import ast
import doctest
import inspect
import io
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import EllipsisType
from typing import Final, NamedTuple

from pytest_regen.errors import RegionError
from pytest_regen.regions import Marked, Span
from pytest_regen.regions.base import defect
from pytest_regen.text import join_names

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.ClassDef
Import = ast.Import | ast.ImportFrom

for _name in ("ALLOW_UNICODE", "ALLOW_BYTES", "NUMBER"):
    # pytest's own flags: examples may name them before pytest has made them known.
    doctest.register_optionflag(_name)

_WRITE: Final = "write the two lines inside the function, below its docstring"


class Marks(NamedTuple):
    """The lines between which a region stands, counted from 1; the markers are those lines."""

    begin: int
    end: int

    def line_inside(self, line: int | None) -> int | None:
        """Return a line of the file as one of the code; ``None`` where it lies outside."""
        return line - self.begin if line and self.begin < line < self.end else None


@dataclass(frozen=True)
class Place:
    """The function that a region stands in."""

    name: str
    """Of the unit, as its markers have it."""
    node: Function
    parents: tuple[Scope, ...]
    """The classes and functions around it, outermost first."""
    marks: Marks
    indent: str
    """Of the marker."""
    module: "ModuleSource"

    @cached_property
    def qualname(self) -> str:
        """``Class.method``; functions inside functions have no ``<locals>``."""
        return ".".join(scope.name for scope in (*self.parents, self.node))

    @cached_property
    def docstring(self) -> str:
        """Not cleaned, because examples are found by their lines; empty where there is none."""
        return ast.get_docstring(self.node, clean=False) or ""

    @cached_property
    def inputs(self) -> tuple[str, str, str]:
        """Signature, docstring, and the user's own lines in the function, whatever their layout."""
        node = self.node
        kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        signature = [canonical(node.args), canonical(node.returns), canonical(node.decorator_list)]
        around = [
            statement
            for statement in node.body[is_text(node.body[0]) :]
            if not (isinstance(statement, ast.Pass) and statement.lineno == self.marks.begin)
        ]
        return (
            f"{kind} {self.qualname} {' '.join(signature)}",
            inspect.cleandoc(self.docstring),
            canonical(around) if around else "",
        )


class FunctionRegion(Marked):
    """Marked blocks, each in a function of its own."""

    def find(self, text: str) -> dict[str, Span]:
        """Return the blocks by name.

        Raises:
            RegionError: see ``Marked.find``; or the module cannot be read around its blocks, or a
                block is not in a function of its own.
        """
        spans = super().find(text)
        if spans:
            read_module(text)
        return spans

    def replace(self, text: str, texts: Mapping[str, str]) -> str:
        """Return ``text`` with other blocks.

        Raises:
            RegionError: see ``Marked.replace``; or a text is another function, and no body.
        """
        for name, new in texts.items():
            with suppress(SyntaxError):
                body = parse(new).body
                names = [node.name for node in body if isinstance(node, Scope)]
                if names and all(isinstance(node, Scope | Import) for node in body):
                    raise RegionError(
                        f"the reply defines {join_names(names, 'and')}, and not {name}",
                        why="a body that only defines functions does nothing",
                        hint="answer with the code of the function that is asked for",
                    )
        return super().replace(text, texts)

    def same(self, old: str, new: str) -> bool:
        """Return whether two texts differ in their layout alone, as after a formatter."""
        try:
            return old == new or _without_layout(old) == _without_layout(new)
        except (SyntaxError, RecursionError, tokenize.TokenError):
            return False

    def defined(self, text: str) -> tuple[str, ...]:
        """Return the functions that stand in a text, with marker lines or without."""
        try:
            return tuple(name for name, _ in functions_in(parse(text).body))
        except SyntaxError:
            return ()

    def enclose_all(self, text: str, names: Sequence[str]) -> str:
        """Return a module with marker lines around the code of functions that have none yet.

        Args:
            text: of the module, which is read once however many there are.
            names: of the functions, ``Class.method`` for a method.

        Raises:
            RegionError: see ``find``; there is no such function, or no lines of its own.
        """
        module = read_module(text)
        lines = text.split("\n")
        end = "\r" if module.lines[0].endswith("\r") else ""
        # From the last to the first, so that the lines before keep their numbers.
        for first, last, indent, name in sorted(
            (*_lines_of_code(module, name), name) for name in names
        )[::-1]:
            lines.insert(last, f"{indent}# [REGEN:END {name}]{end}")
            lines.insert(first - 1, f"{indent}# [REGEN:BEGIN {name}]{end}")
        enclosed = "\n".join(lines)
        self.find(enclosed)
        return enclosed


def _lines_of_code(module: "ModuleSource", name: str) -> tuple[int, int, str]:
    """Return the first and last line of a function's code, with comments above, and its indent.

    Raises:
        RegionError: there is no such function, or its code has no lines of its own.
    """
    functions = dict(functions_in(module.tree.body))
    node = functions.get(name)
    if node is None:
        raise RegionError(
            f"the module has no function {name!r}",
            why=f"it has {', '.join(functions) or 'none'}",
            hint="name one of them; a method is Class.method",
        )
    around = node.body[0]
    indent = module.lines[around.lineno - 1][: around.col_offset]
    above, body = node.lineno, node.body
    if is_text(around):
        above, body = around.end_lineno or 0, node.body[1:]
    if not body:
        return above + 1, above, indent
    start = first_line(body[0])
    if start <= above:
        problem = f"the code of {name} shares a line with its signature or docstring"
        raise defect(node.lineno, problem, "begin it on a new line")
    while start - 1 > above and module.lines[start - 2].strip()[:1] in {"", "#"}:
        start -= 1
    while not module.lines[start - 1].strip():
        start += 1
    return start, body[-1].end_lineno or start, indent


class ModuleSource:
    """A module, read around its regions.

    Args:
        text: of the file.

    Raises:
        RegionError: it cannot be read, or a region is not in a function of its own.
    """

    def __init__(self, text: str) -> None:
        self.spans = Marked().find(text)
        self.lines: list[str] = text.removeprefix("\ufeff").split("\n")
        self.marks = {
            name: Marks(span.line - 1, text.count("\n", 0, span.end) + 1)
            for name, span in self.spans.items()
        }
        self.skeleton = self.with_bodies(())
        try:
            self.tree = parse(self.skeleton)
        except SyntaxError as error:
            problem = f"{error.msg}, outside of what a model wrote"
            raise defect(error.lineno or 0, problem, "correct the file") from None
        self.places: dict[str, Place] = {}
        nodes = list(ast.walk(self.tree))
        scopes = [node for node in nodes if isinstance(node, Scope)]
        lines = {node.lineno for node in nodes if isinstance(node, ast.Pass)}
        for name, marks in self.marks.items():
            around = [s for s in scopes if s.lineno <= marks.begin <= (s.end_lineno or 0)]
            # What stands inside of a string is no `pass`.
            *parents, node = around if around and marks.begin in lines else [None]
            if not isinstance(node, Function):
                raise defect(marks.begin, f"the block {name!r} stands in no function", _WRITE)
            indent = indent_of(self.lines[marks.begin - 1])
            place = Place(name, node, tuple(filter(None, parents)), marks, indent, self)
            for other in self.places.values():
                if other.node is node:
                    problem = f"the blocks {other.name!r} and {name!r} stand in one function"
                    advice = "let a function have one block; take the lines of the other away"
                    raise defect(marks.begin, f"{problem}, {place.qualname}", advice)
            self.places[name] = place
            try:
                self.doctest(name, "")
            except ValueError as error:
                problem = f"the examples of {place.qualname} cannot be read: {error}"
                raise defect(node.body[0].lineno, problem, "correct the docstring") from None

    def with_bodies(self, names: Iterable[str]) -> str:
        """Return the module with the blocks of these units as they stand, all others as ``pass``.

        Lines keep their numbers.
        """
        # Blank lines take the place of code, so that errors name the lines of the file.
        lines, kept_names = list(self.lines), set(names)
        for name, marks in self.marks.items():
            if name not in kept_names:
                indent, blank = indent_of(lines[marks.begin - 1]), [""] * (marks.end - marks.begin)
                lines[marks.begin - 1 : marks.end] = [f"{indent}pass", *blank]
        return "\n".join(lines)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """The imports outside of functions, those under conditions too."""
        return tuple(_imports(self.tree))

    @property
    def import_lines(self) -> str:
        """The imports, each name once and sorted: the order is no input."""
        lines = set()
        for node in self.imports:
            origin = ""
            if isinstance(node, ast.ImportFrom):
                origin = f"from {'.' * node.level}{node.module or ''} "
            for alias in node.names:
                name = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
                lines.add(f"{origin}import {name}")
        return "\n".join(sorted(lines))

    def doctest(self, name: str, path: str) -> doctest.DocTest | None:
        """Return the examples in the docstring of a unit's function; ``None`` if it has none."""
        place = self.places[name]
        # Each call of the function around it makes a nested one anew: no example can reach it.
        is_nested = any(isinstance(parent, Function) for parent in place.parents)
        if is_nested or ">>>" not in place.docstring:
            return None
        line = place.node.body[0].lineno - 1
        parser = doctest.DocTestParser()
        test = parser.get_doctest(place.docstring, {}, place.qualname, path, line)
        return test if test.examples else None


@lru_cache(maxsize=256)
def read_module(text: str) -> ModuleSource:
    """Return a module read around its regions; see ``ModuleSource``."""
    return ModuleSource(text)


def parse(text: str, version: tuple[int, int] | None = None) -> ast.Module:
    """Return the tree of code, maybe of an older Python, without the warnings of the compiler.

    Raises:
        SyntaxError: it is no Python, or too much of it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text, feature_version=version)
        except (ValueError, RecursionError, MemoryError) as error:
            # Bytes of value 0, numbers of too many digits, code that is nested too deeply.
            raise SyntaxError(str(error) or "nested too deeply") from None


def canonical(node: object) -> str:
    """Return what tells a tree from others, the same on every version of Python.

    Positions are left out, and fields that are empty, as later versions add some.
    """
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields)
        inner = ",".join(
            f"{name}={canonical(value)}"
            for name, value in fields
            if value not in (None, []) and name not in {"ctx", "kind", "type_comment"}
        )
        return f"{type(node).__name__}({inner})"
    if isinstance(node, list):
        return f"[{','.join(map(canonical, node))}]"
    return repr(node)


def _without_layout(text: str) -> tuple[str, list[str]]:
    """Return what formatters leave as it is: the tree of code, and its comments."""
    tree = parse(text)
    for node in ast.walk(tree):
        if isinstance(node, Scope) and (docstring := ast.get_docstring(node)) is not None:
            lines = [line.rstrip() for line in docstring.split("\n")]
            node.body[0] = ast.Expr(ast.Constant("\n".join(lines)))
    # Comments by token, because the tree has none.
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return canonical(tree), [comment[1:].strip() for comment in comments]


def is_stub(text: str) -> bool:
    """Return whether code does nothing yet: ``...``, ``pass``, ``raise NotImplementedError``."""
    try:
        body = parse(text).body
    except SyntaxError:
        return not text.strip()
    match body[1:] if len(body) > 1 and is_text(body[0]) else body:
        case [] | [ast.Pass()] | [ast.Expr(ast.Constant(value=EllipsisType() | str()))]:
            return True
        # What stands below a ``raise`` only makes the function a generator.
        case [ast.Raise(ast.Name(id=name) | ast.Call(ast.Name(id=name))), *_]:
            return name == "NotImplementedError"
    return False


def is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a text and nothing else, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def functions_in(body: Iterable[ast.stmt], around: str = "") -> Iterator[tuple[str, Function]]:
    """Yield the functions of a module, and methods as ``Class.method``, with their names."""
    for node in body:
        if isinstance(node, Function):
            yield around + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions_in(node.body, f"{around}{node.name}.")


def first_line(node: ast.stmt) -> int:
    """Return the line on which a statement begins, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def indent_of(line: str) -> str:
    """Return the blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the variables that code sets."""
    names = [node for node in nodes if isinstance(node, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def names_in(*trees: ast.AST) -> set[str]:
    """Return the variables that code names."""
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _imports(tree: ast.AST) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Import):
            yield node
        elif not isinstance(node, Function | ast.expr):
            yield from _imports(node)
