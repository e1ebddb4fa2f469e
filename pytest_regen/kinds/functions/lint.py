"""What can be seen in a function without running it.

Whether it is legal in its place, whether its names are known, which other units it uses, and
whether it keeps to what the project allows. This is lint, and no boundary: the sandbox is one.
"""

import ast
import builtins
import re
import symtable
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Final

from pytest_regen.kinds.functions import source
from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import Function, Import, ModuleSource, Place
from pytest_regen.validation.issues import Issue

# Builtins that a body does not call; a module cannot import them, so only ``allow`` lets them.
_CALLS: Final[Mapping[str, str]] = {
    "eval": "runs text as code",
    "exec": "runs text as code",
    "compile": "makes code of text",
    "__import__": "imports what no reader can see",
    "breakpoint": "stops the program",
    "input": "waits for somebody to type",
}

# Modules that a body does not import by itself; where the user's module has them, it may.
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

_HARMLESS: Final = frozenset(
    {"os.path", "os.PathLike", "os.fspath", "os.sep", "importlib.resources"}
)
# Methods of paths that change files; no other common class has them.
_CHANGES: Final = frozenset({"write_text", "write_bytes", "unlink", "rmdir", "hardlink_to"})
# More of ``os``, for modules that import it; ``replace`` is a method of texts, too.
_OS_CHANGES: Final = frozenset(
    (
        *("chmod", "link", "makedirs", "mkdir", "mknod", "remove", "removedirs", "rename"),
        *("renames", "replace", "symlink", "truncate"),
    )
)
_MODULE_NAMES: Final = (
    *("__annotations__", "__builtins__", "__class__", "__dict__", "__doc__", "__file__"),
    *("__loader__", "__name__", "__package__", "__path__", "__spec__"),
)
# How a module binds names that cannot be listed: boltons/statsutils.py fills ``globals()``.
_UNLISTED: Final = re.compile(r"(?m)^from \S+ import \*|\bexec\(|\bglobals\(\)(\[|\.update\()")


def check_code(
    project: Project, path: Path, place: Place, *, allow: Collection[str]
) -> Iterator[Issue]:
    """Yield what is wrong with the code at a place; lines count from the first of the code.

    Args:
        project: what it depends on.
        path: of the module.
        place: where the code stands.
        allow: modules and calls that the user lets bodies use.
    """
    problems: list[tuple[int, str, str]] = []
    try:
        nodes = nodes_of(place)
    except SyntaxError as error:
        problems = [(error.lineno or 0, "SYNTAX", error.msg or "invalid syntax")]
    else:
        names = {n.id: n.lineno for n in reversed(nodes) if isinstance(n, ast.Name)}
        # The compiler's own table of names knows comprehensions, `global` and class scopes.
        tables = _tables(symtable.symtable(_scope(place), "<module>", "exec"))
        symbols = [symbol for table in tables for symbol in table.get_symbols()]
        used = {s.get_name() for s in symbols if s.is_global() and s.is_referenced()}
        used -= {s.get_name() for s in symbols if s.is_declared_global() and s.is_assigned()}
        lacking = names.keys() & used - defined_names(place.module)
        for name in () if lacking and _UNLISTED.search(place.module.skeleton) else lacking:
            message = "is not defined: neither the module nor the code defines or imports it"
            problems.append((names[name], "UNDEFINED_NAME", f"{name} {message}"))
        for name in names.keys() & _CALLS.keys() - set(allow):
            message = f"uses {name}, which {_CALLS[name]}; the settings do not allow it"
            problems.append((names[name], "NOT_ALLOWED", message))
        uses = _uses(project, path, place, frozenset(allow))
        problems += [(line, "NOT_ALLOWED", message) for line, message in uses]
        # Only of an older Python, because the code was compiled by this one already.
        try:
            source.parse(_scope(place), min(project.python, sys.version_info[:2]))
        except SyntaxError as error:
            version = ".".join(map(str, project.python))
            message = f"{error.msg}; the project supports Python {version}"
            problems.append((0, "SYNTAX", message))
    for line, code, message in sorted(set(problems)):
        inside = place.marks.line_inside(line)
        yield Issue.of(code, message, type_name=place.name, line=inside)


def _scope(place: Place) -> str:
    """Return the outermost function around a place, with its code, on the same lines."""
    scope = next(s for s in (*place.parents, place.node) if isinstance(s, Function))
    start, end = source.first_line(scope) - 1, max(scope.end_lineno or 0, place.marks.end)
    lines = place.module.skeleton.split("\n")
    # Put in here, because to write a module anew for each of its functions takes a square.
    code = slice(place.marks.begin - 1, place.marks.end)
    lines[code] = place.module.lines[code]
    # It may stand in a class, or in an `if` of its module.
    around = "if True:" if lines[start][:1].isspace() else ""
    return "\n".join([*[""] * (start - 1), *([around] if start else []), *lines[start:end]])


@lru_cache(maxsize=256)
def nodes_of(place: Place) -> list[ast.AST]:
    """Return all nodes of the code at a place; their lines are those of the module.

    Raises:
        SyntaxError: the code is not legal.
    """
    text = _scope(place)
    tree = source.parse(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Only the compiler sees a `break` outside of a loop.
        compile(text, "<module>", "exec", dont_inherit=True)
    lines = range(place.marks.begin + 1, place.marks.end)
    nodes = [node for node in ast.walk(tree) if getattr(node, "lineno", 0) in lines]
    for node in nodes:
        if isinstance(node, ast.stmt) and node.col_offset < len(place.indent):
            message = "the code does not stay within its function: it is indented less"
            raise SyntaxError(message, ("", node.lineno, None, None))
    return nodes


@lru_cache(maxsize=4)
def defined_names(module: ModuleSource) -> frozenset[str]:
    """Return the global names of a module that can be listed."""
    whole = symtable.symtable(module.skeleton, "<module>", "exec")
    return frozenset((*_MODULE_NAMES, *dir(builtins))).union(
        symbol.get_name()
        for table in _tables(whole)
        for symbol in table.get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
        if table is whole or symbol.is_declared_global()
    )


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """Yield the scopes of code, the outer before the inner."""
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _uses(
    project: Project, path: Path, place: Place, allow: frozenset[str]
) -> Iterator[tuple[int, str]]:
    """Yield the lines with imports and effects that the project does not allow, and what it is."""
    # What the user's own module imports, its author has allowed.
    imports = list(project.imported(path, place.module.imports))
    allowed = allow.union(
        *({module_name, f"{module_name}.{name}"} for module_name, name, _ in imports)
    )
    for node in nodes_of(place):
        line = getattr(node, "lineno", 0)
        if isinstance(node, Import):
            # Of ``a.b.c``, the names ``a`` and ``a.b`` may be allowed, too.
            for whole, name, file in project.imported(path, [node]):
                parts = (f"{whole}.{name}" if name else whole).split(".")
                names = list(accumulate(parts, "{}.{}".format))
                if file is not None or not allowed.isdisjoint(names):
                    continue
                listed = [name for name in names if name in _MODULES]
                if not project.may_import(names[0], path):
                    where = "of the standard library nor of the project nor among its dependencies"
                    yield line, f"imports {names[0]}, which is neither {where}"
                elif listed and _HARMLESS.isdisjoint(names):
                    way = f"neither does the module import {listed[0]} nor do the settings allow it"
                    yield line, f"imports {listed[0]}, which {_MODULES[listed[0]]}; {way}"
        elif "open" not in allow and isinstance(node, ast.Call) and (change := _change(node)):
            yield line, f"{change}, which the settings do not allow"


def _change(call: ast.Call) -> str:
    """Return how a call changes files; empty where it does not."""
    match call.func:
        # Of a path the mode comes first, of a module such as gzip second.
        case ast.Name(id="open") | ast.Attribute(attr="open"):
            first = 0 if isinstance(call.func, ast.Attribute) else 1
            modes = [*call.args[first:2], *(k.value for k in call.keywords if k.arg == "mode")]
            texts = [str(mode.value) for mode in modes if isinstance(mode, ast.Constant)]
            if any(re.fullmatch("[rbt]*[wax+][wax+bt]*", text) for text in texts):
                return "opens a file for writing"
        case ast.Attribute(value=owner, attr=name):
            is_of_os = isinstance(owner, ast.Name) and owner.id == "os"
            if name in _CHANGES or (is_of_os and name in _OS_CHANGES):
                return f"changes files by {name}"
    return ""


@lru_cache(maxsize=16)
def used_units(module: ModuleSource) -> Mapping[str, frozenset[str]]:
    """Return, by name, the other units that a unit's code and examples name."""
    units: dict[str, set[str]] = {}
    for name, place in module.places.items():
        owner, _, last = place.qualname.rpartition(".")
        # In code, a method is named by its last part, behind a dot, or by the call of its class.
        word = owner.rpartition(".")[2] if last == "__init__" else f".{last}" if owner else last
        units.setdefault(word, set()).add(name)
    used = {}
    for name, place in module.places.items():
        nodes, words = [*ast.walk(place.node)], set[str]()
        test = module.doctest(name, "")
        for example in test.examples if test else ():
            with suppress(SyntaxError):
                nodes += ast.walk(source.parse(example.source))
        with suppress(SyntaxError):
            nodes += nodes_of(place)
        for node in nodes:
            if isinstance(node, ast.Name):
                words.add(node.id)
            elif isinstance(node, ast.Attribute):
                # An example may name a function of the module through what it imports.
                is_of_name = isinstance(node.value, ast.Name)
                words |= {f".{node.attr}", *([node.attr] if is_of_name else ())}
        used[name] = frozenset().union(*(units.get(word, ()) for word in words)) - {name}
    return used
