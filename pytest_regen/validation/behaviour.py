"""What running the types of a store shows, as issues on their pages and lines."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from pytest_regen.behaviour import Behaviour, Block, Known, Subject, check
from pytest_regen.cache import Cache
from pytest_regen.errors import MissingExtraError
from pytest_regen.files import lock_file, make_lock_folder
from pytest_regen.languages import find_language, find_runner
from pytest_regen.languages.runner import Runner
from pytest_regen.stores import RegenStore
from pytest_regen.validation.issues import Issue, ValidationResult
from pytest_regen.validation.pieces import PageMap, PageText, Piece, Split
from pytest_regen.validation.subject import wire_of

__all__ = ["CODES", "StoreBehaviour", "behaviour_of"]

CODES: Final = frozenset({"ROUND_TRIP", "ACCEPTS_INVALID"})
"""What behaviour finds."""

_COUNT: Final = 50
"""Valid instances of each type."""
_SECTION: Final = "behaviour"
_MEMO: Final = "behaviour"
_PATIENCE: Final = 300.0
"""Seconds to wait for another process that runs the same store."""

_STOPS: Final = frozenset(
    {
        "ARTIFACT",
        "CONFLICT",
        "DUPLICATE_TYPE",
        "EMPTY_OUTPUT",
        "INVALID_IDENTIFIER",
        "MISSING_CLASS",
        "MISSING_USING",
        "SYNTAX",
        "TRUNCATED",
        "UNDECLARED_TYPE",
    }
)
"""Codes of types that do not load, so that they are left out of the code that is run."""


@dataclass(frozen=True, slots=True)
class StoreBehaviour:
    """What became of the types of a store when they were run."""

    issues: Mapping[str, tuple[Issue, ...]] = field(default_factory=dict)
    """By name of a type."""
    asked: frozenset[str] = frozenset()
    """The types that were run, now or before."""
    why_not: str = ""
    """Why none was run, or not all of them, for people; empty where nothing is to be said."""
    is_expected: bool = False
    """Whether few have what is missing: then it is no news in each run."""
    level: str = ""
    """The level of the sandbox; empty where nothing was run just now."""


@dataclass(frozen=True, slots=True)
class _Last:
    """What was found in one state of a store."""

    key: object
    behaviour: StoreBehaviour


Pages = Mapping[str, Sequence[PageText]]


def behaviour_of(
    store: RegenStore,
    source: str,
    found: Split,
    results: Mapping[str, ValidationResult],
    pages: Pages,
) -> StoreBehaviour:
    """Return what running the types of a store shows.

    Nothing is run that ran before, in this process or another: what was found is kept below
    ``.regen/cache``.

    Args:
        store: whose document the instances are of.
        source: the code that is run.
        found: its blocks.
        results: what reading the code shows; types that do not load are left out.
        pages: of each type.
    """
    profile = store.envelope.profile
    language = find_language(store.ir.language)
    runner = find_runner(language, profile)
    if runner is None or not found.has_boundaries:
        return StoreBehaviour()
    broken = frozenset(
        name
        for name, result in results.items()
        if any(issue.code in _STOPS for issue in result.errors)
    )
    key = (source, broken, store.ir_data)
    last: _Last | None = store.memo.get(_LAST)
    if last is None or last.key != key:
        pieces = {piece.name: piece for piece in found.pieces}
        blocks = {name: Block(piece.text, piece.first_line) for name, piece in pieces.items()}
        subject = Subject(store.ir, language, profile, store.path, source, blocks, broken)
        behaviour = _run(store, subject, runner)
        placed = {
            name: tuple(_Places(store, pieces[name], pages.get(name, ())).put(issues))
            for name, issues in behaviour.issues.items()
        }
        last = _Last(key, replace(behaviour, issues=placed))
        store.memo[_LAST] = last
    return last.behaviour


def _run(store: RegenStore, subject: Subject, runner: Runner) -> StoreBehaviour:
    why_not = runner.missing(store.path)
    if why_not:
        return StoreBehaviour(why_not=why_not, is_expected=runner.is_rare)
    if not subject.runnable:
        return StoreBehaviour()
    from pytest_regen.strategies import allows, instances_key, instances_of_store

    cache = Cache.of(store.path)
    known: Known = store.memo.setdefault(
        _KNOWN,
        Known(
            lambda key: cache.get(_SECTION, key), lambda key, value: cache.put(_SECTION, key, value)
        ),
    )
    drawn: dict[str, Any] = {}

    def draw() -> Mapping[str, Any]:
        drawn.update(instances_of_store(store, _COUNT, cache=cache))
        return drawn

    try:
        with _Lock(store.path, ...):
            behaviour = check(...)
    except MissingExtraError as error:
        return StoreBehaviour(why_not=...)
