"""Cassettes that no test can use any more: their module, or the test in it, is gone."""

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path

from pytest_regen.cassettes.files.places import name_parts

__all__ = ["why_unused"]

_MODULES = ("test_*", "*_test")
"""What pytest takes for a module of tests, unless it is configured otherwise."""
_WITHOUT_TESTS = frozenset({"ABC", "IsolatedAsyncioTestCase", "TestCase", "object"})
_UNSAFE = re.compile(r"[^A-Za-z0-9._~-]+")
_HASHED = re.compile(r"(.+)_[0-9a-f]{8}")
"""How names end that a file system would not take as they are."""


def why_unused(path: Path) -> str:
    """Return why no test can use a cassette; nothing where one may.

    Only what lies where the fixture and the mark look for a module's cassettes is judged:
    ``cassettes/<module>/<test>.yaml``. A name that stands anywhere in the module is used, so that
    only names put together while it runs are reported wrongly.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - a link is where it stands
    folder = next((p for p in absolute.parents if p.parent.name == "cassettes"), None)
    if folder is None or not any(fnmatch(folder.name, pattern) for pattern in _MODULES):
        return ""
    module = folder.parent.parent / f"{folder.name}.py"
    shown = os.path.relpath(module) if not path.is_absolute() else str(module)
    if not module.is_file():
        return f"its test module {shown} is gone"
    try:
        read = _read(module.read_text("utf-8"))
    except (SyntaxError, ValueError, RecursionError):
        return ""
    below = absolute.relative_to(folder)
    name = below.with_name(name_parts(below)[0]).as_posix()
    plain = name.partition("[")[0]
    is_named = bool({name, plain, path.name} & (read.tests | read.texts))
    if is_named or _is_shortened(name, read) or _is_inherited(plain, read.tree):
        return ""
    return f"{shown} has no test {plain}"


@dataclass(frozen=True, slots=True)
class _Module:
    """What a module of tests may be asked about its cassettes."""

    tree: ast.Module
    tests: frozenset[str]
    """What its tests may be called."""
    texts: frozenset[str]
    """The strings that stand in it."""


@lru_cache(maxsize=1)
def _read(source: str) -> _Module:
    """Return what a module says; the cassettes of one module are asked about in a row."""
    tree = ast.parse(source)
    return _Module(tree, frozenset(_test_names(tree)), frozenset(_texts(tree)))


def _is_shortened(name: str, module: _Module) -> bool:
    """Whether a name ends in a hash and begins like a test, or like a given name, of the module."""
    found = _HASHED.fullmatch(name)
    if found is None:
        return False
    start = found[1]
    # A name of which nothing is left is called a type.
    given = (_UNSAFE.sub("_", one).strip("_.~-") or "type" for one in module.texts)
    return any(map(start.startswith, module.tests)) or any(one.startswith(start) for one in given)


def _is_inherited(name: str, tree: ast.Module) -> bool:
    """Whether a class has a base of another module, from where it may have any test."""
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    found = classes.get(name.partition(".")[0])
    if found is None:
        return False
    bases = (ast.unparse(base).rpartition(".")[2] for base in found.bases)
    return any(base not in {*classes, *_WITHOUT_TESTS} for base in bases)


def _test_names(tree: ast.Module) -> Iterator[str]:
    """Yield what tests of a module may be called; a name too many hides a cassette, no more."""
    nodes = list(ast.walk(tree))
    names = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    # `test_x = made_of(…)` and `from shared import test_x` make tests as well.
    names |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
    yield from names
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            # A class may inherit its tests, so every function counts for every class.
            yield from (f"{node.name}.{name}" for name in names)


def _texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
