"""Packages that import what they offer when it is first asked for."""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package that imports its names on first use.

    The package imports its names for type checkers and editors only, and this reads from the same
    lines what the package offers and where each name comes from. So ``__all__`` need not be kept
    where each is imported as itself, which is how type checkers know what is offered::

        if TYPE_CHECKING:
            from package.module import Name as Name
        else:
            __getattr__, __dir__ = lazy(__name__)

    None of the names may be that of a module in the package: once imported, the module would take
    its place.

    Args:
        package: its ``__name__``.
    """
    module = sys.modules[package]

    def resolve(name: str) -> Any:
        if name == "__all__":
            # Only when it is asked for, because it reads the package's source.
            return sorted(_homes(package))
        # Python and its tools ask for names such as __path__ and __wrapped__.
        home = None if name.startswith("__") else _homes(package).get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home), name)
        setattr(module, name, value)
        return value

    return resolve, lambda: sorted({*vars(module), *_homes(package)})


@cache
def _homes(package: str) -> dict[str, str]:
    """Return the module of each name, as the imports for type checkers say."""
    import ast

    spec = sys.modules[package].__spec__
    # By its loader: the package may lie in an archive.
    loader: Any = spec and spec.loader
    source = loader.get_data(spec.origin if spec else "")
    return {
        alias.name: node.module or ""
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
