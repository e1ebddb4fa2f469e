"""A Python module read around its regions: which function each stands in, and what that says.

What a model wrote is never looked at here: the code between markers counts as ``pass``, so that a
broken answer spoils no other unit, and no answer is an input of itself or of its neighbours.
"""

import ast
import builtins
import doctest
import inspect
import io
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from pytest_regen.errors import RegionError
from pytest_regen.regions import Marked, Span
from pytest_regen.text import join_names

Function = ast.FunctionDef | ast.AsyncFunctionDef

for _name in ("ALLOW_UNICODE", "ALLOW_BYTES", "NUMBER"):
    # pytest's own flags: examples may name them before pytest has made them known.
    doctest.register_optionflag(_name)

_STUBS: Final = "NotImplementedError"
_WRITE: Final = "write the two lines inside the function, below its docstring"


class Marks(NamedTuple):
    """The lines between which a region stands, counted from 1; the markers are those lines."""

    begin: int
    end: int

    def holds(self, line: int) -> bool:
        """Return whether a line lies between the markers."""
        return self.begin < line < self.end


@dataclass(frozen=True, slots=True)
class Place:
    """The function that a region stands in."""

    name: str
    """Of the unit, as its markers have it."""
    qualname: str
    """``Class.method``; functions inside functions have no ``<locals>``."""
    node: Function
    parents: tuple[ast.AST, ...]
    """The classes and functions around it, outermost first."""
    marks: Marks
    indent: str
    """Of the marker."""
    docstring: str | None
    docstring_line: int
    """On which it begins; 0 where there is none."""
    inputs: tuple[str, ...]
    """Signature, docstring, and the user's own lines in the function, whatever their layout."""

    @property
    def is_nested(self) -> bool:
        """Whether each call of another function makes it anew: no example can reach it."""
        return any(isinstance(parent, Function) for parent in self.parents)

    @property
    def is_whole(self) -> bool:
        """Whether the region is all that the function holds but for its docstring."""
        return not self.inputs[2]


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
            if defined := _only_defines(new):
                raise RegionError(
                    f"the reply defines {join_names(defined, 'and')}, and not {name}",
                    why=f"a body that only defines functions does nothing; write that of {name}",
                    hint="answer with the code of the function that is asked for",
                )
        return super().replace(text, texts)

    def same(self, old: str, new: str) -> bool:
        """Return whether two texts are the same code with the same comments."""
        return same_code(old, new)

    def defined(self, text: str) -> tuple[str, ...]:
        """Return the functions that stand in a text, with marker lines or without."""
        try:
            return tuple(_function_names(parse(text)))
        except SyntaxError:
            return ()

    def describe(self, name: str) -> str:
        """Return which lines a file needs so that there is a block of that name."""
        return (
            f"write the two lines `# [REGEN:BEGIN {name}]` and `# [REGEN:END {name}]` inside the "
            "function, below its docstring"
        )

    def enclose(self, text: str, name: str) -> str:
        """Return a module with marker lines around the code of a function that has none yet.

        Args:
            text: of the module.
            name: of the function, ``Class.method`` for a method.

        Raises:
            RegionError: see ``find``; there is no such function, or no lines of its own.
        """
        return self.enclose_all(text, [name])

    def enclose_all(self, text: str, names: Sequence[str]) -> str:
        """Return a module with marker lines around the code of several functions, read once.

        Raises:
            RegionError: as ``enclose``, of the first that cannot be enclosed.
        """
        module = read_module(text)
        lines = text.split("\n")
        end = "\r" if module.lines[0].endswith("\r") else ""
        # From the last to the first, so that the lines before keep their numbers.
        for start, last, indent, name in sorted(
            (_lines_to_enclose(module, name) for name in names), reverse=True
        ):
            lines.insert(last, f"{indent}# [REGEN:END {name}]{end}")
            lines.insert(start - 1, f"{indent}# [REGEN:BEGIN {name}]{end}")
        made = "\n".join(lines)
        self.find(made)
        return made


def _lines_to_enclose(module: "ModuleSource", name: str) -> tuple[int, int, str, str]:
    """Return the first and last line of a function's code, its indent, and the name again.

    Raises:
        RegionError: there is no such function, or its code has no lines of its own.
    """
    node = function_at(module.tree, name)
    if node is None:
        raise RegionError(
            f"the module has no function {name!r}",
            why=f"it has {', '.join(_function_names(module.tree)) or 'none'}",
            hint="name one of them; a method is Class.method",
        )
    has_text = ast.get_docstring(node, clean=False) is not None
    above = (node.body[0].end_lineno or 0) if has_text else node.lineno
    body = node.body[has_text:]
    first = first_line(body[0]) if body else above + 1
    last = body[-1].end_lineno or first if body else above
    if first <= above:
        raise RegionError(
            f"line {node.lineno}: the code of {name} has no lines of its own",
            line=node.lineno,
            hint="put it on lines of its own",
        )
    start = first
    while start - 1 > above and module.lines[start - 2].strip()[:1] in {"", "#"}:
        start -= 1
    while start < first and not module.lines[start - 1].strip():
        start += 1
    around = node.body[0]
    indent = module.lines[around.lineno - 1][: around.col_offset]
    return start, last, indent, name


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
        self.marks = {name: _marks(text, span) for name, span in self.spans.items()}
        self.skeleton = self.with_bodies(())
        try:
            self.tree = parse(self.skeleton)
        except SyntaxError as error:
            raise RegionError(
                f"line {error.lineno}: {error.msg}, outside of what a model wrote",
                line=error.lineno or 0,
                hint="correct the file",
            ) from None
        self.places: Mapping[str, Place] = self._places()

    def with_bodies(self, names: Iterable[str]) -> str:
        """Return the module with the blocks of these units as they stand, all others as ``pass``.

        Lines keep their numbers.
        """
        lines, shown = list(self.lines), set(names)
        for name, marks in self.marks.items():
            if name not in shown:
                indent, blank = indent_of(lines[marks.begin - 1]), [""] * (marks.end - marks.begin)
                lines[marks.begin - 1 : marks.end] = [f"{indent}pass", *blank]
        return "\n".join(lines)

    @property
    def imports(self) -> tuple[ast.Import | ast.ImportFrom, ...]:
        """The imports outside of functions, those under conditions too."""
        return tuple(_imports(self.tree))

    @property
    def import_lines(self) -> str:
        """The imports, each name once and sorted: the order is no input."""
        return "\n".join(sorted({line for node in self.imports for line in _import_lines(node)}))

    def doctest(self, name: str, path: str) -> doctest.DocTest | None:
        """Return the examples in the docstring of a unit's function; ``None`` if it has none."""
        place = self.places[name]
        if not place.docstring or place.is_nested or ">>>" not in place.docstring:
            return None
        found = doctest.DocTestParser().get_doctest(
            place.docstring, {}, place.qualname, path, place.docstring_line - 1
        )
        return found if found.examples else None

    def _places(self) -> dict[str, Place]:
        by_line = {marks.begin: name for name, marks in self.marks.items()}
        found: dict[str, Place] = {}
        for node, parents in _passes(self.tree):
            name = by_line.get(node.lineno)
            if name is None:
                continue
            line = node.lineno
            scopes = [one for one in parents if isinstance(one, (*_FUNCTIONS, ast.ClassDef))]
            function = scopes[-1] if scopes else None
            if not isinstance(function, _FUNCTIONS):
                where = "directly in a class" if scopes else "outside of any function"
                raise RegionError(
                    f"line {line}: the block {name!r} stands {where}", line=line, hint=_WRITE
                )
            other = next((one for one in found.values() if one.node is function), None)
            if other is not None:
                raise RegionError(
                    f"line {line}: the blocks {other.name!r} and {name!r} stand in one function, "
                    f"{other.qualname}",
                    line=line,
                    hint="let a function have one block; take the lines of the other away",
                )
            found[name] = self._place(name, function, scopes[:-1])
        for name, marks in self.marks.items():
            if name not in found:
                raise RegionError(
                    f"line {marks.begin}: the block {name!r} stands inside of a string or an "
                    "expression",
                    line=marks.begin,
                    hint=_WRITE,
                )
        return {name: found[name] for name in self.marks}

    def _place(self, name: str, node: Function, parents: Sequence[ast.AST]) -> Place:
        marks = self.marks[name]
        qualname = ".".join(getattr(one, "name", "") for one in (*parents, node))
        docstring = ast.get_docstring(node, clean=False)
        docstring_line = node.body[0].lineno if docstring is not None else 0
        if docstring is not None:
            try:
                doctest.DocTestParser().get_examples(docstring)
            except ValueError as error:
                raise RegionError(
                    f"line {docstring_line}: the examples of {qualname} cannot be read: {error}",
                    line=docstring_line,
                    hint="correct the docstring",
                ) from None
        own = [one for one in node.body[docstring is not None :] if not is_marker(one, marks.begin)]
        signature = [canonical(node.args), canonical(node.returns), canonical(node.decorator_list)]
        kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        return Place(
            name,
            qualname,
            node,
            tuple(parents),
            marks,
            indent_of(self.lines[marks.begin - 1]),
            docstring,
            docstring_line,
            (
                f"{kind} {qualname} {' '.join(signature)}",
                inspect.cleandoc(docstring or ""),
                canonical(own) if own else "",
            ),
        )


_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


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


def same_code(old: str, new: str) -> bool:
    """Return whether two pieces of code differ in their layout alone, as after a formatter."""
    if old == new:
        return True
    try:
        trees = [_normalize(parse(text)) for text in (old, new)]
        return canonical(trees[0]) == canonical(trees[1]) and comments_of(old) == comments_of(new)
    except (SyntaxError, RecursionError, tokenize.TokenError):
        return False


def comments_of(text: str) -> list[str]:
    """Return the comments of code, without the blanks that a formatter may set."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [f"#{token.string[1:].strip()}" for token in tokens if token.type == tokenize.COMMENT]


def is_stub(text: str) -> bool:
    """Return whether code does nothing yet: ``...``, ``pass``, ``raise NotImplementedError``."""
    if len(text) > 2_000:
        return False
    try:
        body = parse(text).body
    except SyntaxError:
        return not text.strip()
    if len(body) == 2 and is_text(body[0]):
        body = body[1:]
    first = body[0] if body else None
    if len(body) > 1 and not isinstance(first, ast.Raise):
        return False  # What stands below a ``raise`` only makes the function a generator.
    match first:
        case None | ast.Pass() | ast.Expr(ast.Constant(value=builtins.Ellipsis)):
            return True
        case ast.Expr(ast.Constant(value=str())):
            return True
        case ast.Raise(ast.Name(id=name)) | ast.Raise(ast.Call(ast.Name(id=name))):
            return name == _STUBS
        case _:
            return False


def _only_defines(text: str) -> list[str]:
    """Return the functions and classes that code defines, if it does nothing else."""
    try:
        body = parse(text).body
    except SyntaxError:
        return []
    body = body[1:] if body and is_text(body[0]) else body
    defined = [
        node
        for node in body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    imports = sum(isinstance(node, ast.Import | ast.ImportFrom) for node in body)
    # A decorator may do something with what it is given: register it, for one.
    is_all = len(defined) + imports == len(body) and not any(n.decorator_list for n in defined)
    return [node.name for node in defined] if is_all else []


def _normalize(tree: ast.Module) -> ast.Module:
    """Undo what formatters do to a tree: the layout of docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) and is_text(node.body[0]):
            text = node.body[0].value  # type: ignore[attr-defined]  # as is_text found
            lines = inspect.cleandoc(text.value).split("\n")
            text.value = "\n".join(line.rstrip() for line in lines)
    return tree


def is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a text and nothing else, as a docstring is."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def function_at(tree: ast.Module, name: str) -> Function | None:
    """Return a function by its dotted name."""
    scope: Sequence[ast.stmt] = tree.body
    *holders, last = name.split(".")
    for holder in holders:
        found = [one for one in scope if isinstance(one, ast.ClassDef) and one.name == holder]
        scope = found[-1].body if found else []
    functions = [one for one in scope if isinstance(one, _FUNCTIONS) and one.name == last]
    return functions[-1] if functions else None


def _function_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, _FUNCTIONS):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from (
                f"{node.name}.{one.name}" for one in node.body if isinstance(one, _FUNCTIONS)
            )


def first_line(node: ast.stmt) -> int:
    """Return the line on which a statement begins, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def indent_of(line: str) -> str:
    """Return the blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the variables that code sets."""
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _marks(text: str, span: Span) -> Marks:
    return Marks(span.line - 1, text.count("\n", 0, span.end) + 1)


def is_marker(node: ast.AST, line: int) -> bool:
    """Return whether a statement stands for the region that begins on a line."""
    return isinstance(node, ast.Pass) and node.lineno == line


def _passes(tree: ast.AST) -> Iterator[tuple[ast.Pass, tuple[ast.AST, ...]]]:
    """Yield each ``pass`` with what it stands in, in the order of the file."""
    open_: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
    while open_:
        node, parents = open_.pop()
        if isinstance(node, ast.Pass):
            yield node, parents
        elif not isinstance(node, ast.expr):
            inner = (*parents, node)
            open_ += [(child, inner) for child in reversed(list(ast.iter_child_nodes(node)))]


def _imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, (*_FUNCTIONS, ast.expr)):
            yield from _imports(node)


def _import_lines(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    for alias in node.names:
        name = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
        if isinstance(node, ast.Import):
            yield f"import {name}"
        else:
            yield f"from {'.' * node.level}{node.module or ''} import {name}"
