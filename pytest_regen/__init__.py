"""pytest-regen gates, heals and replays what language models write.

Public names are resolved on first use: importing the package imports nothing else, because the
pytest plugin passes through here on every run of every suite that has it installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_regen.errors import RegenError
    from pytest_regen.testing import fail

_HOMES = {
    "RegenError": "pytest_regen.errors",
    "fail": "pytest_regen.testing",
}

__all__ = ["RegenError", "fail"]

__version__ = "0.1.0"

if not TYPE_CHECKING:
    # Hidden from the type checker, which would otherwise accept any name.
    def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
        """Import the module that holds ``name`` and return the object."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
