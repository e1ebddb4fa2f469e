"""Target languages, by name: those of installed distributions that declare the entry point group.

A distribution adds a language by an entry point that leads to a class or an instance of it:

    [project.entry-points."pytest_regen.languages"]
    gleam = "acme_gleam:Gleam"
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from pytest_regen.documents.ir import TypeIR
from pytest_regen.errors import UsageError
from pytest_regen.languages.base import Language
from pytest_regen.languages.runner import Runner
from pytest_regen.text import flatten
from pytest_regen.validation.issues import Weakness

__all__ = [
    "DEFAULT_LANGUAGE",
    "GROUP",
    "Language",
    "find_language",
    "find_runner",
    "find_weaknesses",
    "forget_languages",
    "language_names",
]

DEFAULT_LANGUAGE: Final = "csharp"
"""The language of whoever names none; it is found even where nothing is installed as a package."""

GROUP: Final = "pytest_regen.languages"
_DEFAULT: Final = EntryPoint(
    DEFAULT_LANGUAGE, f"pytest_regen.languages.{DEFAULT_LANGUAGE}:CSharp", GROUP
)

_OPTIONAL: Final = {"runner", "weakens"}
"""Members that a language may lack."""

_MEMBERS: Final = sorted(
    {*Language.__annotations__, *(name for name in vars(Language) if not name.startswith("_"))}
    - _OPTIONAL
)


def find_language(name: str | Language) -> Language:
    """Return the language called ``name``, or known by it as a tag of code fences (``cs``, ``C#``).

    Args:
        name: as ``ir.json`` and ``--language`` spell it; a language itself is returned as it is.

    Raises:
        UsageError: there is no such language, it cannot be loaded, or two distributions have it.
    """
    return _find(name.lower()) if isinstance(name, str) else name


def find_runner(language: Language, profile: str) -> Runner | None:
    """Return what runs the code of a language and profile; ``None`` where nothing does."""
    make = getattr(language, "runner", None)  # Optional: languages of others may not know of it.
    runner: Runner | None = make(profile) if make else None
    return runner


def find_weaknesses(language: Language, type_: TypeIR, old: str, new: str) -> Sequence[Weakness]:
    """Return by what new code of a type is tested less than the old; see ``Language.weakens``."""
    compare = getattr(language, "weakens", None)  # Optional, as ``runner`` is.
    return tuple(compare(type_, old, new)) if compare else ()


def language_names() -> tuple[str, ...]:
    """Return the names of all languages there are, without loading them."""
    return tuple(sorted(_entries()))


def forget_languages() -> None:
    """Look for installed languages anew, where the import path has changed."""
    _find.cache_clear()


@cache
def _find(name: str) -> Language:
    if name == DEFAULT_LANGUAGE:
        # Ours: reading the entry points of all distributions takes longer than loading it.
        return _load(name, [_DEFAULT])
    entries = _entries()
    if name in entries:
        return _load(name, entries[name])
    for other, candidates in sorted(entries.items()):
        try:
            language = _load(other, candidates)
        except UsageError:
            continue  # Whoever asks for another language need not know.
        if name in language.fence_tags:
            return language
    raise UsageError(
        f"no target language is called {name!r}",
        hint=f"use one of: {', '.join(sorted(entries))}; a distribution adds others by the entry "
        f"point group {GROUP}",
    )


def _entries() -> dict[str, list[EntryPoint]]:
    """Return the different entry points of each name."""
    entries: dict[str, dict[str, EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        entries.setdefault(entry.name.lower(), {})[entry.value] = entry
    # No other distribution may take its name; and a checkout or a bundle may have no metadata, or
    # metadata older than the code.
    entries[DEFAULT_LANGUAGE] = {_DEFAULT.value: _DEFAULT}
    return {name: [*by_value.values()] for name, by_value in entries.items()}


def _load(name: str, entries: list[EntryPoint]) -> Language:
    if len(entries) > 1:
        raise UsageError(
            f"several distributions have a target language called {name!r}",
            why=", ".join(sorted(_describe(entry) for entry in entries)),
            hint="uninstall all of them but one",
        )
    (entry,) = entries
    try:
        loaded = entry.load()
        language: Language = loaded() if isinstance(loaded, type) else loaded
        missing = [member for member in _MEMBERS if not hasattr(language, member)]
        if missing:
            raise AttributeError(f"it lacks {', '.join(missing)}")  # noqa: TRY301 - one message
    except Exception as error:
        raise UsageError(
            f"the target language {name!r} cannot be used: it comes from {_describe(entry)}",
            why=flatten(f"{type(error).__name__}: {error}"),
            hint="update that distribution, or uninstall it",
        ) from error
    return language


def _describe(entry: EntryPoint) -> str:
    distribution = entry.dist
    if distribution is None:
        return entry.value
    return f"{distribution.name} {distribution.version} ({entry.value})"
