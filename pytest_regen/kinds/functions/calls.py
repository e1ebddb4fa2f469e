"""Which units of a module a unit uses: it fails with them, and is asked for after them."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache

from pytest_regen.kinds.functions.lint import nodes_of
from pytest_regen.kinds.functions.source import ModuleSource, Scope, parse


@lru_cache(maxsize=16)
def used_units(module: ModuleSource) -> Mapping[str, frozenset[str]]:
    """Return, by name, the other units that a unit's code and examples name, maybe by a helper."""
    units: dict[str, set[str]] = {}
    for name, place in module.places.items():
        last = place.qualname.rpartition(".")[2]
        # In code, a method is named by its last part, behind a dot.
        for word in {place.qualname, last if last == place.qualname else f".{last}"}:
            units.setdefault(word, set()).add(name)
    helpers = {
        node.name: node
        for node in module.tree.body
        if isinstance(node, Scope) and node.name not in units
    }
    used = {}
    for name, place in module.places.items():
        nodes, seen = [*ast.walk(place.node)], set[str]()
        test = module.doctest(name, "")
        for example in test.examples if test else ():
            with suppress(SyntaxError):
                nodes += ast.walk(parse(example.source))
        with suppress(SyntaxError):
            nodes += nodes_of(place)
        words = set(_words(nodes))
        # Helpers may call one another in a circle: a word is looked up once.
        while new := words - seen:
            seen |= new
            for word in new & helpers.keys():
                words |= set(_words(ast.walk(helpers[word])))
                words |= {f"{word}.{method}" for method in ("__init__", "__new__", "__call__")}
        mentioned = (units.get(word, set()) for word in seen)
        used[name] = frozenset().union(*mentioned) - {name}
    return used


def _words(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name):
                yield name
            case ast.Attribute(value=owner, attr=name):
                yield f".{name}"
                # An example may name a function of the module through what it imports.
                if isinstance(owner, ast.Name):
                    yield name
