"""What can be seen in a function without running it.

Whether it is legal in its place, whether its names are known, and whether it keeps to what the
project allows. This is lint, and no boundary: the sandbox is one.
"""

import ast
import builtins
import symtable
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import Marks, ModuleSource, Place, parse
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
_WRITES: Final = frozenset("wax+")
_MODES: Final = frozenset("rwaxbt+")
_CHANGES: Final = frozenset({"write_text", "write_bytes", "unlink", "rmdir", "hardlink_to"})
"""Methods of paths that change files; no other common class has them."""
_OS_CHANGES: Final = frozenset(
    """
    chmod link makedirs mkdir mknod remove removedirs rename renames replace rmdir symlink
    truncate unlink
    """.split()  # noqa: SIM905 - a list of one name a line is not readable
)
"""The same of ``os``, for modules that import it."""
_READS_ITSELF: Final = frozenset({"__doc__", "__file__"})
_MODULE_NAMES: Final = frozenset(
    {
        "__name__",
        "__doc__",
        "__file__",
        "__package__",
        "__spec__",
        "__loader__",
        "__builtins__",
        "__path__",
        "__annotations__",
        "__dict__",
    }
)


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
        yield _issue("SYNTAX", _words(error, place), place, error.lineno)
        return
    if (line := code.outside.get(place.name)) is not None:
        message = "the code does not stay within its function: it is indented less than its marker"
        yield _issue("SYNTAX", message, place, line)
        return
    yield from _check_version(project, module, place)
    yield from _check_names(code, place)
    yield from _Uses(project, path, module, place, allow).check(code.nodes[place.name])


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
        self.tree = parse(text)
        self._own = module.tree
        _compile(text)
        self.table = symtable.symtable(text, "<module>", "exec")
        self.nodes: dict[str, list[ast.AST]] = {name: [] for name in names}
        """What stands between the markers of each unit."""
        self.outside: dict[str, int] = {}
        """Lines of code between markers that is not in the function of the unit."""
        self._sort({module.marks[name]: module.places[name] for name in names})

    @cached_property
    def has_unlisted(self) -> bool:
        """Whether the user's own lines bind names in the module that nobody can list."""
        return any(map(_binds_unlisted, ast.walk(self._own)))

    def _sort(self, places: Mapping[Marks, Place]) -> None:
        owners = {line: place for marks, place in places.items() for line in range(*marks) if line}
        functions = {(one.node.lineno, one.node.name): one.name for one in places.values()}
        open_: list[tuple[ast.AST, frozenset[str]]] = [(self.tree, frozenset())]
        while open_:
            node, inside = open_.pop()
            line = getattr(node, "lineno", 0)
            owner = owners.get(line)
            if owner is not None and owner.marks.holds(line):
                self.nodes[owner.name].append(node)
                if owner.name not in inside:
                    self.outside.setdefault(owner.name, line)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = functions.get((node.lineno, node.name))
                inside = inside | {name} if name else inside
            open_ += [(child, inside) for child in ast.iter_child_nodes(node)]


@lru_cache(maxsize=4)
def _whole(module: ModuleSource) -> _Code | None:
    """Return a module with the code of all units; ``None`` where one of them is not legal."""
    try:
        code = _Code(module, tuple(module.places))
    except SyntaxError:
        return None
    return None if code.outside else code


def _compile(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<module>", "exec", dont_inherit=True)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error) or "nested too deeply") from None


def _words(error: SyntaxError, place: Place) -> str:
    said = error.msg or "invalid syntax"
    line = error.lineno or 0
    if place.marks.begin < line < place.marks.end or not line:
        return said
    return f"{said}, found on line {line} of the file, after the code"


def _issue(code: str, message: str, place: Place, line: int | None) -> Issue:
    return Issue.of(
        code, message, type_name=place.name, line=_own_line(place.marks, line) if line else None
    )


def _own_line(marks: Marks, line: int) -> int | None:
    return line - marks.begin if marks.holds(line) else None


def _check_version(project: Project, module: ModuleSource, place: Place) -> Iterator[Issue]:
    """Yield syntax that the oldest Python of the project does not know, and the module has not."""
    if project.python >= sys.version_info[:2]:
        return
    error = _version_error(module.with_bodies((place.name,)), project.python)
    if error is not None and _version_error(module.skeleton, project.python) is None:
        major, minor = project.python
        said = f"{error.msg}; the project supports Python {major}.{minor}"
        yield _issue("SYNTAX", said, place, error.lineno)


def _version_error(text: str, version: tuple[int, int]) -> SyntaxError | None:
    try:
        parse(text, version)
    except SyntaxError as error:
        return error
    return None


# Names


def _check_names(code: _Code, place: Place) -> Iterator[Issue]:
    """Yield each name that nothing defines, once, on the line of its first use."""
    if code.has_unlisted:
        return
    function = next(_tables_at(code.table, place), None)
    if function is None:
        return
    known = {symbol.get_name() for symbol in code.table.get_symbols() if _is_bound(symbol)}
    known |= _MODULE_NAMES | set(dir(builtins)) | _globals_bound(code.table)
    missing = _globals_used(function) - known
    lines: dict[str, int] = {}
    for node in code.nodes[place.name]:
        if isinstance(node, ast.Name) and node.id in missing:
            lines[node.id] = min(lines.get(node.id, node.lineno), node.lineno)
    for name, line in sorted(lines.items(), key=lambda item: item[1]):
        message = f"{name} is not defined: neither the module nor the code defines or imports it"
        yield _issue("UNDEFINED_NAME", message, place, line)


def _binds_unlisted(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return True
        case ast.Subscript(value=ast.Call(func=ast.Name(id="globals")), ctx=ast.Store()):
            return True  # boltons/statsutils.py
        case ast.Attribute(value=ast.Call(func=ast.Name(id="globals")), attr="update"):
            return True
        case ast.Call(func=ast.Name(id="exec")):
            return True
        case _:
            return False


def _is_bound(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _globals_bound(table: symtable.SymbolTable) -> set[str]:
    """Return the names that functions bind in the module by ``global``."""
    found = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if table.get_type() == "function" and symbol.is_declared_global() and symbol.is_assigned()
    }
    return found.union(*map(_globals_bound, table.get_children()))


def _globals_used(table: symtable.SymbolTable) -> set[str]:
    found = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_global() and symbol.is_referenced()
    }
    return found.union(*map(_globals_used, table.get_children()))


def _tables_at(table: symtable.SymbolTable, place: Place) -> Iterator[symtable.SymbolTable]:
    decorators = [one.lineno for one in place.node.decorator_list]
    lines = {place.node.lineno, *decorators}
    for child in table.get_children():
        if child.get_name() == place.node.name and child.get_lineno() in lines:
            yield child
        yield from _tables_at(child, place)


# Imports and calls


class _Uses:
    """Looks for imports and calls that the project does not allow."""

    def __init__(
        self,
        project: Project,
        path: Path,
        module: ModuleSource,
        place: Place,
        allow: Collection[str],
    ) -> None:
        self._project = project
        self._path = path
        self._place = place
        self._allow = frozenset(allow)
        self._module = module
        self._given: Collection[str] = ()
        """Parameters of the function and of those inside it."""

    @cached_property
    def _imported(self) -> frozenset[str]:
        """What the module itself imports, and the modules around it."""
        tree = ast.Module(list(self._module.imports), [])
        taken = {(name, part) for name, part, _ in self._project.imported(self._path, tree)}
        whole = {f"{name}.{part}" if part else name for name, part in taken}
        return frozenset(whole | {name for name, _ in taken})

    def check(self, nodes: Collection[ast.AST]) -> Iterator[Issue]:
        """Yield what the code may not do, in the order of its lines."""
        given = [*ast.walk(self._place.node.args), *nodes]
        self._given = {node.arg for node in given if isinstance(node, ast.arg)}
        found = [item for node in nodes for item in self._imports(node)]
        found += [item for node in nodes for item in self._calls(node)]
        for line, message in sorted(dict.fromkeys(found)):
            yield _issue("NOT_ALLOWED", message, self._place, line)

    def _imports(self, node: ast.AST) -> Iterator[tuple[int, str]]:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            return
        for module, name, file in self._project.imported(self._path, ast.Module([node], [])):
            whole = f"{module}.{name}" if name else module
            if file is not None or self._is_let(module) or self._is_let(whole):
                continue
            if not self._project.may_import(module, self._path):
                where = "of the standard library nor of the project nor among its dependencies"
                yield node.lineno, f"imports {module.partition('.')[0]}, which is neither {where}"
            elif not {module, whole} & _HARMLESS and (known := self._listed(module, whole)):
                way = f"neither does the module import {known} nor do the settings allow it"
                yield node.lineno, f"imports {known}, which {_MODULES[known]}; {way}"

    def _listed(self, module: str, whole: str) -> str:
        """Return the listed module that an import names or lies in."""
        return next(
            (
                one
                for name in (whole, module)
                for one in _MODULES
                if f"{name}.".startswith(f"{one}.")
            ),
            "",
        )

    def _is_let(self, name: str) -> bool:
        """Return whether the user's module imports something, or the settings allow it."""
        parts = name.split(".")
        prefixes = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        return bool(prefixes & (self._imported | self._allow))

    def _calls(self, node: ast.AST) -> Iterator[tuple[int, str]]:
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open")) if (
                _opens_for_writing(node)
            ):
                if "open" not in self._allow:
                    yield line, "opens a file for writing, which the settings do not allow"
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _CHANGES or (
                name in _OS_CHANGES and _is_os(owner)
            ):
                if "open" not in self._allow:
                    yield line, f"changes files by {name}, which the settings do not allow"
            case ast.Name(id=name, ctx=ast.Load()) if name in _CALLS and name not in self._allow:
                yield line, f"uses {name}, which {_CALLS[name]}; the settings do not allow it"
            case ast.Attribute(ctx=ast.Store()):
                return
            case ast.Attribute(attr="__doc__", value=ast.Name(id=name)) if name in self._given:
                return  # As decorators do: the docstring of a function that is passed.
            case ast.Name(id=name) | ast.Attribute(attr=name) if (
                name in _READS_ITSELF and name not in self._allow
            ):
                yield line, f"reads {name}, where the expected output of its examples stands"
            case _:
                return


def _opens_for_writing(call: ast.Call) -> bool:
    given = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "mode")]
    if isinstance(call.func, ast.Attribute):  # of a path, or of a module such as io
        given = [one for one in (*call.args[:2], *given) if _is_mode(one)]
    return any(
        not isinstance(mode, ast.Constant) or bool(_WRITES & set(str(mode.value))) for mode in given
    )


def _is_mode(node: ast.expr) -> bool:
    text = getattr(node, "value", None)
    return isinstance(text, str) and 0 < len(text) <= 4 and {*text} <= _MODES


def _is_os(owner: ast.expr) -> bool:
    return isinstance(owner, ast.Name) and owner.id == "os"
