"""Which units of a module a unit uses: it fails with them, and is asked for after them."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from pytest_regen.kinds.functions.lint import nodes_of
from pytest_regen.kinds.functions.source import ModuleSource, Place, parse


@lru_cache(maxsize=16)
def used_units(module: ModuleSource) -> Mapping[str, frozenset[str]]:
    """Return, by name, the other units that a unit's code and examples name, maybe by a helper."""
    return _Uses(module).by_unit


class _Uses:
    def __init__(self, module: ModuleSource) -> None:
        self._module = module
        self._imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in module.imports
            for alias in node.names
        }
        self._units: dict[str, set[str]] = {}
        """By a name in code: of a method the last part, behind a dot."""
        for name, place in module.places.items():
            _, _, last = place.qualname.rpartition(".")
            word = f".{last}" if last != place.qualname else last
            for spelling in {word, place.qualname}:
                self._units.setdefault(spelling, set()).add(name)
        self._helpers = {
            node.name: node
            for node in module.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node.name not in self._units
        }
        self.by_unit = {
            name: frozenset(self._used(place) - {name}) for name, place in module.places.items()
        }

    def _used(self, place: Place) -> set[str]:
        used: set[str] = set()
        seen: set[str] = set()
        words = set(self._words(self._nodes(place)))
        while words - seen:
            seen |= (new := words - seen)
            for word in new:
                used |= self._units.get(word, set())
                if (helper := self._helpers.get(word)) is not None:
                    words |= set(self._words(ast.walk(helper)))
                    words |= {
                        f"{word}.{special}" for special in ("__init__", "__new__", "__call__")
                    }
        return used

    def _nodes(self, place: Place) -> Iterator[ast.AST]:
        yield from ast.walk(place.node)
        test = self._module.doctest(place.name, "")
        codes = [example.source for example in test.examples] if test else []
        for code in codes:
            try:
                yield from ast.walk(parse(code))
            except SyntaxError:
                continue
        try:
            yield from nodes_of(self._module, place)
        except SyntaxError:
            return

    def _words(self, nodes: Iterable[ast.AST]) -> Iterator[str]:
        for node in nodes:
            match node:
                case ast.Name(id=name):
                    yield name
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in self._imported:
                    yield name
                case ast.Attribute(attr=name):
                    yield f".{name}"
                case _:
                    pass
