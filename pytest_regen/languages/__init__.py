"""Target languages, by name."""

from functools import cache

from pytest_regen.errors import UsageError
from pytest_regen.languages.base import Language
from pytest_regen.languages.csharp import CSharp

__all__ = ["LANGUAGES", "CSharp", "Language", "find_language"]

LANGUAGES: tuple[str, ...] = ("csharp",)
"""The names that ``find_language`` knows, as ``ir.json`` and ``--language`` spell them."""

_ALIASES = {"c#": "csharp", "cs": "csharp"}


@cache
def find_language(name: str) -> Language:
    """Return the language called ``name``; ``cs`` and ``C#`` are ``csharp``.

    Raises:
        UsageError: there is no such language; the hint lists those there are.
    """
    if _ALIASES.get(name.lower(), name.lower()) == "csharp":
        return CSharp()
    raise UsageError(
        f"no target language is called {name!r}",
        hint=f"use one of: {', '.join(LANGUAGES)}",
    )
