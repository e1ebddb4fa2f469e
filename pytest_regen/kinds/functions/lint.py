"""What can be seen in a function without running it.

Whether it is legal in its place, whether its names are known, and whether it keeps to what the
project allows. This is lint, and no boundary: the sandbox is one.
"""

import ast
import builtins
import re
import symtable
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Final

from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import Function, Import, ModuleSource, Place, parse
from pytest_regen.validation.issues import Issue

_CALLS: Final[Mapping[str, str]] = {
    "eval": "runs text as code",
    "exec": "runs text as code",
    "compile": "makes code of text",
    "__import__": "imports what no reader can see",
    "breakpoint": "stops the program",
    "input": "waits for somebody to type",
}
"""Builtins that a body does not call; a module cannot import them, so only ``allow`` lets them."""

_MODULES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("asyncio.subprocess", "multiprocessing", "pty", "subprocess", "webbrowser"),
        "starts processes",
    ),
    **dict.fromkeys(
        ("ftplib", "http.client", "http.server", "smtplib", "socket", "socketserver"),
        "uses the network",
    ),
    "urllib.request": "uses the network",
    "ctypes": "reaches into memory",
    "importlib": "imports what no reader can see",
    "marshal": "loads code",
    "os": "reaches files and processes",
    "pickle": "runs what data says",
    "runpy": "runs files as code",
    "shutil": "changes files",
    "signal": "changes the whole process",
}
"""Modules that a body does not import by itself; where the user's module has them, it may."""

_HARMLESS: Final = frozenset(
    {"os.path", "os.PathLike", "os.fspath", "os.sep", "importlib.resources"}
)
_MODE: Final = re.compile("[rwaxbt+]{1,4}")
_CHANGES: Final = frozenset({"write_text", "write_bytes", "unlink", "rmdir", "hardlink_to"})
"""Methods of paths that change files; no other common class has them."""
_OS_CHANGES: Final = frozenset(
    (
        *("chmod", "link", "makedirs", "mkdir", "mknod", "remove", "removedirs", "rename"),
        *("renames", "replace", "rmdir", "symlink", "truncate", "unlink"),
    )
)
"""The same of ``os``, for modules that import it."""
_MODULE_NAMES: Final = (
    *("__annotations__", "__builtins__", "__dict__", "__doc__", "__file__", "__loader__"),
    *("__name__", "__package__", "__path__", "__spec__"),
)
_UNLISTED: Final = re.compile(r"from \S+ import \*|exec\(|globals\(\)(\[|\.update\()")
"""How a module binds names that cannot be listed: boltons/statsutils.py fills ``globals()``."""


def check_code(
    project: Project, path: Path, module: ModuleSource, place: Place, *, allow: Collection[str]
) -> Iterator[Issue]:
    """Yield what is wrong with the code at a place; lines count from the first of the code.

    Args:
        project: what it depends on.
        path: of the module.
        module: with the code in it.
        place: where the code stands.
        allow: modules and calls that the user lets bodies use.
    """
    try:
        code = _whole(module) or _Code(module, (place.name,))
    except SyntaxError as error:
        message = error.msg or "invalid syntax"
        line = place.marks.line_inside(error.lineno)
        if error.lineno and not line:
            message += f", found on line {error.lineno} of the file, after the code"
        yield _issue("SYNTAX", message, place, error.lineno)
        return
    if place.name in code.outside:
        message = "the code does not stay within its function: it is indented less than its marker"
        yield _issue("SYNTAX", message, place, code.outside[place.name])
        return
    if project.python < sys.version_info[:2]:
        text = module.with_bodies((place.name,))
        # What the user's own lines need, the code may need, too.
        with suppress(SyntaxError):
            parse(module.skeleton, project.python)
            try:
                parse(text, project.python)
            except SyntaxError as error:
                major, minor = project.python
                message = f"{error.msg}; the project supports Python {major}.{minor}"
                yield _issue("SYNTAX", message, place, error.lineno)
    yield from _check_names(code, module, place)
    nodes = code.nodes[place.name]
    yield from _Uses(project, path, module, place, frozenset(allow)).check(nodes)


def nodes_of(module: ModuleSource, place: Place) -> list[ast.AST]:
    """Return all nodes of the code at a place; their lines are those of the module.

    Raises:
        SyntaxError: the code is not legal.
    """
    return (_whole(module) or _Code(module, (place.name,))).nodes[place.name]


class _Code:
    """A module with the code of some units in it.

    Args:
        module: the module.
        names: the units.

    Raises:
        SyntaxError: it is not legal.
    """

    def __init__(self, module: ModuleSource, names: Collection[str]) -> None:
        text = module.with_bodies(names)
        tree = parse(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Only the compiler sees a `break` outside of a loop.
            compile(text, "<module>", "exec", dont_inherit=True)
        # The compiler's own table of names knows comprehensions, `global` and class scopes.
        self.table = symtable.symtable(text, "<module>", "exec")
        self.nodes: dict[str, list[ast.AST]] = {name: [] for name in names}
        """What stands between the markers of each unit."""
        self.outside: dict[str, int] = {}
        """Lines of code between markers that is not in the function of the unit."""
        places = [module.places[name] for name in names]
        owners = {
            line: place
            for place in places
            for line in range(place.marks.begin + 1, place.marks.end)
        }
        functions = {(place.node.lineno, place.node.name): place.name for place in places}
        waiting: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
        while waiting:
            node, inside = waiting.pop()
            line = getattr(node, "lineno", 0)
            if line in owners:
                owner = owners[line].name
                self.nodes[owner].append(node)
                if owner not in inside:
                    self.outside.setdefault(owner, line)
            if isinstance(node, Function) and (node.lineno, node.name) in functions:
                inside |= {functions[node.lineno, node.name]}
            waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


@lru_cache(maxsize=4)
def _whole(module: ModuleSource) -> _Code | None:
    """Return a module with the code of all units; ``None`` where one of them is not legal."""
    try:
        code = _Code(module, tuple(module.places))
    except SyntaxError:
        return None
    return None if code.outside else code


def _issue(code: str, message: str, place: Place, line: int | None) -> Issue:
    return Issue.of(code, message, type_name=place.name, line=place.marks.line_inside(line))


# Names


def _check_names(code: _Code, module: ModuleSource, place: Place) -> Iterator[Issue]:
    """Yield each name that nothing defines, once, on the line of its first use."""
    tables = list(_tables(code.table))
    # The table may have the line of a decorator for that of its function.
    starts = {node.lineno for node in (place.node, *place.node.decorator_list)}
    function = next(
        (t for t in tables if t.get_name() == place.node.name and t.get_lineno() in starts), None
    )
    if function is None:
        return
    defined = {*_MODULE_NAMES, *dir(builtins)}
    for table in tables:
        for symbol in table.get_symbols():
            is_bound = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            if is_bound and (table is code.table or symbol.is_declared_global()):
                defined.add(symbol.get_name())
    used = {
        symbol.get_name()
        for table in _tables(function)
        for symbol in table.get_symbols()
        if symbol.is_global() and symbol.is_referenced()
    }
    lines: dict[str, int] = {}
    for node in code.nodes[place.name]:
        if isinstance(node, ast.Name) and node.id in used - defined:
            lines[node.id] = min(lines.get(node.id, node.lineno), node.lineno)
    if lines and any(map(_binds_unlisted, ast.walk(module.tree))):
        return
    for name, line in sorted(lines.items(), key=lambda item: item[1]):
        message = f"{name} is not defined: neither the module nor the code defines or imports it"
        yield _issue("UNDEFINED_NAME", message, place, line)


def _binds_unlisted(node: ast.AST) -> bool:
    """Return whether a statement binds names that cannot be listed."""
    is_set = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    is_candidate = is_set or isinstance(node, ast.ImportFrom | ast.Call)
    return is_candidate and _UNLISTED.match(ast.unparse(node)) is not None


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """Yield the scopes of code, the outer before the inner."""
    yield table
    for child in table.get_children():
        yield from _tables(child)


# Imports and calls


@dataclass
class _Uses:
    """Looks for imports and calls that the project does not allow."""

    project: Project
    path: Path
    module: ModuleSource
    place: Place
    allow: frozenset[str]

    def check(self, nodes: Collection[ast.AST]) -> Iterator[Issue]:
        """Yield what the code may not do, in the order of its lines."""
        around = [*ast.walk(self.place.node.args), *nodes]
        parameters = {node.arg for node in around if isinstance(node, ast.arg)}
        uses = set()
        for node in nodes:
            line = getattr(node, "lineno", 0)
            if isinstance(node, Import):
                uses |= {(line, message) for message in self._imports(node)}
            elif message := self._change(node) or self._look(node, parameters):
                uses.add((line, message))
        for line, message in sorted(uses):
            yield _issue("NOT_ALLOWED", message, self.place, line)

    @cached_property
    def _allowed(self) -> frozenset[str]:
        """What the settings allow, and what the module itself imports."""
        tree = ast.Module(list(self.module.imports), [])
        # What the user's own module imports, its author has allowed.
        imports = list(self.project.imported(self.path, tree))
        names = {f"{module}.{name}" if name else module for module, name, _ in imports}
        return self.allow | names | {module for module, _, _ in imports}

    def _imports(self, node: Import) -> Iterator[str]:
        for module, name, file in self.project.imported(self.path, ast.Module([node], [])):
            whole = f"{module}.{name}" if name else module
            if file is not None or not self._allowed.isdisjoint(_prefixes(whole)):
                continue
            listed = [part for part in _prefixes(whole) if part in _MODULES]
            if not self.project.may_import(module, self.path):
                where = "of the standard library nor of the project nor among its dependencies"
                yield f"imports {module.partition('.')[0]}, which is neither {where}"
            elif listed and not {module, whole} & _HARMLESS:
                way = f"neither does the module import {listed[0]} nor do the settings allow it"
                yield f"imports {listed[0]}, which {_MODULES[listed[0]]}; {way}"

    def _change(self, node: ast.AST) -> str:
        """Return how a call changes files; empty where it does not, or may."""
        if "open" in self.allow:
            return ""
        match node:
            case ast.Call(func=ast.Name("open") | ast.Attribute(attr="open")):
                if _opens_for_writing(node):
                    return "opens a file for writing, which the settings do not allow"
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                # `replace` and `remove` are methods of texts and lists, too.
                names = _CHANGES
                if isinstance(owner, ast.Name) and owner.id == "os":
                    names |= _OS_CHANGES
                if name in names:
                    return f"changes files by {name}, which the settings do not allow"
        return ""

    def _look(self, node: ast.AST, parameters: Collection[str]) -> str:
        """Return which name a node uses that is not allowed; empty where it is."""
        match node:
            case ast.Attribute(ctx=ast.Store()):
                return ""
            case ast.Attribute(attr="__doc__", value=ast.Name(id=name)) if name in parameters:
                return ""  # As decorators do: the docstring of a function that is passed.
            case ast.Name(id=name, ctx=ast.Load()) if name in _CALLS and name not in self.allow:
                return f"uses {name}, which {_CALLS[name]}; the settings do not allow it"
            case ast.Name(id=name) | ast.Attribute(attr=name) if name not in self.allow:
                if name in {"__doc__", "__file__"}:
                    return f"reads {name}, where the expected output of its examples stands"
        return ""


def _prefixes(name: str) -> list[str]:
    """Return ``a``, ``a.b`` and ``a.b.c`` of ``a.b.c``."""
    return list(accumulate(name.split("."), "{}.{}".format))


def _opens_for_writing(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "mode")]
    if isinstance(call.func, ast.Attribute):  # Of a path, or of a module such as gzip.
        modes = [mode for mode in (*call.args[:2], *modes) if _MODE.fullmatch(_text(mode))]
    return any(
        not isinstance(mode, ast.Constant) or set("wax+") & set(_text(mode)) for mode in modes
    )


def _text(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""
