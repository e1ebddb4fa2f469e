"""What running the types of a store shows, as issues on their pages and lines."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from pytest_regen.behaviour import Behaviour, Block, Known, Subject, check
from pytest_regen.documents.ir import IR
from pytest_regen.errors import MissingExtraError, SandboxError
from pytest_regen.files import lock_file, make_ignored_folder
from pytest_regen.languages import find_language, find_runner
from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.runner import Runner
from pytest_regen.sandbox.verdicts import VerdictCache
from pytest_regen.stores import RegenStore
from pytest_regen.validation.issues import IMPORT_FAILED, Issue, ValidationResult
from pytest_regen.validation.pieces import PageMap, PageText, Piece, Split
from pytest_regen.validation.subject import wire_of

COUNT: Final = 50
"""Valid instances of each type, where its schema allows that many."""
_SECTION: Final = "behaviour"
_LAST: Final = "behaviour"
_KNOWN: Final = "known behaviour"
"""Under these names a snapshot keeps what was found."""
_SHOWN: Final = 5
_PATIENCE: Final = 300.0
"""Seconds to wait for another process that does the same with a store."""

_STOPS: Final = frozenset(
    {
        "ARTIFACT",
        "CONFLICT",
        "DUPLICATE_TYPE",
        "EMPTY_OUTPUT",
        "INVALID_IDENTIFIER",
        "MISSING_CLASS",
        "MISSING_USING",
        "NOT_ALLOWED",
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
    unasked: frozenset[str] = frozenset()
    """The types that could not be run because of their own code, or of code that they name."""
    why_not: str = ""
    """Why none was run, or not all of them, for people; empty where nothing is to be said."""
    is_expected: bool = False
    """Whether few have what is missing: then it is no news in each run."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name of a type: what it is, where a run tells that."""


@dataclass(frozen=True, slots=True)
class _Last:
    """What was found in one state of a store."""

    key: object
    behaviour: StoreBehaviour


Pages = Mapping[str, Sequence[PageText]]


def teller_of(language: str, profile: str) -> Runner | None:
    """Return what tells the types of a source by running it; ``None`` where they are only read."""
    runner = find_runner(find_language(language), profile)
    return runner if runner is not None and runner.traits.complete is not None else None


def behaviour_of(
    store: RegenStore,
    source: str,
    found: Split,
    broken: frozenset[str],
    pages: Pages,
    *,
    count: int = COUNT,
) -> StoreBehaviour:
    """Return what running the types of a store shows.

    Nothing is run that ran before, in this process or another: what was found is kept below
    ``.regen/cache``.

    Args:
        store: whose document the instances are of.
        source: the code that is run.
        found: its blocks.
        broken: types that do not load, so that they are left out of the code that is run.
        pages: of each type.
        count: how many valid instances of each type are tried; 0: types are only loaded.
    """
    profile = store.envelope.profile
    language = find_language(store.ir.language)
    runner = find_runner(language, profile)
    if runner is None or not found.has_boundaries:
        return StoreBehaviour()
    key = (source, broken, store.plan.ir_data, count)
    last: _Last | None = store.memo.get(_LAST)
    if last is None or last.key != key:
        pieces = {piece.name: piece for piece in found.pieces}
        blocks = _blocks(found)
        subject = Subject(store.ir, language, profile, store.path, source, blocks, broken)
        behaviour = _run(store, subject, runner, count)
        placed = {
            name: tuple(_Places(store, pieces[name], pages.get(name, ())).put(issues))
            for name, issues in behaviour.issues.items()
        }
        last = _Last(key, replace(behaviour, issues=placed))
        if behaviour.asked or not behaviour.why_not:
            store.memo[_LAST] = last  # Else what was missing may be there the next time.
    return last.behaviour


def _blocks(found: Split) -> dict[str, Block]:
    return {piece.name: Block(piece.text, _first_line(piece, found)) for piece in found.pieces}


def _first_line(piece: Piece, found: Split) -> int:
    """Return the line of the source on which a piece begins, also where no boundary stands."""
    if found.has_boundaries:
        return piece.first_line
    own = [entry.line for entry in piece.facts.declarations if entry.name == piece.name]
    return piece.first_line - 1 + min(own)


def broken_by_reading(found: Split) -> frozenset[str]:
    """Return the types whose code must not be run, or cannot, by what was read of it alone."""
    return frozenset(
        piece.name
        for piece in found.pieces
        if any(fault.code in _STOPS for fault in piece.facts.faults)
    )


def broken_by_rules(results: Mapping[str, ValidationResult]) -> frozenset[str]:
    """Return the types that do not load, by what rules say of them."""
    return frozenset(
        name
        for name, result in results.items()
        if any(issue.code in _STOPS for issue in result.errors)
    )


_alone: Final = Known()


def run_source(source: str, found: Split, ir: IR, profile: str) -> Split:
    """Return a source of no store with its types as running it shows them."""
    runner = teller_of(ir.language, profile)
    if runner is None or runner.missing(Path()):
        return found
    down = 0
    if "import" not in source:
        # Types alone: they are loaded below the imports and base classes that are theirs.
        header = find_language(ir.language).header(namespace="", profile=profile) + "\n"
        source, down = header + source, header.count("\n")
    moved = replace(
        found,
        pieces=tuple(replace(one, first_line=one.first_line + down) for one in found.pieces),
    )
    language, blocks = find_language(ir.language), _blocks(moved)
    broken = broken_by_reading(found)
    subject = Subject(ir, language, profile, Path(), source, blocks, broken)
    try:
        ran = check(subject, runner, dict, instances_key="", known=_alone)
    except SandboxError:
        return found
    pieces = completed(moved, runner, ran.facts).pieces
    back = tuple(replace(one, first_line=one.first_line - down) for one in pieces)
    return replace(found, pieces=back)


def completed(found: Split, runner: Runner, facts: Mapping[str, Mapping[str, Any]]) -> Split:
    """Return the pieces of a source with their types as a run tells them."""
    failed = {name for name, told in facts.items() if "fault" in told}
    pieces = tuple(
        _completed(piece, runner, facts[piece.name], failed) if piece.name in facts else piece
        for piece in found.pieces
    )
    return replace(found, pieces=pieces)


def _line_of(message: str, line: int, text: str) -> int:
    """Return the line of a block that a fault is about.

    What makes a class of its members fails at its first line, whichever of them is at fault: then
    it is the member that the message names, or quotes.

    Args:
        message: of the exception.
        line: where it was raised.
        text: of the block.
    """
    lines = text.split("\n")
    if not re.match(r"\s*(?:@|class\b|\w+\b.*=.*\($)", lines[min(line, len(lines)) - 1]):
        return line
    quoted = re.findall(r"'([^'\n]+)'|\"([^\"\n]+)\"", message)
    words = [re.escape(one or other) for one, other in quoted]
    names = [rf"[ \t]*_?{word}[ \t]*[:=]" for word in re.findall(r"\w+", message)]
    for pattern in [*names, *(rf".*(?<!\w){word}(?!\w)" for word in words)]:
        for number, other in enumerate(lines, 1):
            if number > 1 and re.match(pattern, other):
                return number
    return line


def _completed(
    piece: Piece, runner: Runner, told: Mapping[str, Any], failed: Collection[str]
) -> Piece:
    complete = runner.traits.complete
    if complete is None:
        return piece
    if "blocked" in told or told.get("missing") in failed:
        return piece  # It is made of a type that is at fault itself.
    facts = piece.facts
    try:
        if "fault" in told:
            line = int(told["line"] or piece.first_line) - piece.first_line + 1
            message = str(told["fault"])
            place = _line_of(message, max(line, 1), piece.text)
            fault = SyntaxFault(place, message, IMPORT_FAILED)
            return replace(piece, facts=replace(facts, faults=(*facts.faults, fault)))
        declarations = tuple(
            complete(entry, told) if entry.name == piece.name and entry.outer is None else entry
            for entry in facts.declarations
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return piece  # Not what the child sends: the source wrote to its pipe.
    return replace(piece, facts=replace(facts, declarations=declarations))


def without_echoes(issues: Sequence[Issue], known: Sequence[Issue]) -> Iterator[Issue]:
    """Yield what running a type shows beside what reading it shows.

    A field that is read as wrong behaves wrongly as well: that is said once.
    """
    errors = [issue for issue in known if issue.severity == "error" and issue.code != "DRIFT"]
    fields = {issue.field for issue in errors}
    for issue in issues:
        if issue.code == IMPORT_FAILED:
            yield issue
            continue
        is_echo = bool(errors) if issue.field is None else issue.field in fields
        if not is_echo:
            yield issue


def _run(store: RegenStore, subject: Subject, runner: Runner, count: int) -> StoreBehaviour:
    why_not = runner.missing(store.path)
    if why_not:
        return StoreBehaviour(why_not=why_not, is_expected=runner.is_rare)
    if not subject.runnable and runner.traits.complete is None:
        return StoreBehaviour(unasked=frozenset(subject.types))
    cache = VerdictCache(lock_file(store.path).parents[1] / "cache")
    if _KNOWN not in store.memo:
        store.memo[_KNOWN] = Known(
            partial(cache.get, _SECTION),
            partial(cache.put, _SECTION),
            partial(hold_lock, store.path, ".behaviour.lock"),
        )
    known: Known = store.memo[_KNOWN]
    try:
        if not count:
            ran = check(subject, runner, dict, instances_key="", known=known)
            return StoreBehaviour(facts=ran.facts)
        from pytest_regen.strategies.instances import instances_key, instances_of_store

        ran = check(
            subject,
            runner,
            partial(instances_of_store, store, count, cache=cache),
            instances_key=instances_key(store, count),
            known=known,
        )
    except MissingExtraError as error:
        why_not = f"{error.why or error.what}: {error.hint}"
        types = (
            _run(store, subject, runner, 0)
            if runner.traits.complete is not None
            else StoreBehaviour()
        )
        return replace(types, why_not=why_not)
    except SandboxError as error:
        return StoreBehaviour(why_not=error.what)
    unasked = frozenset(subject.types) - ran.asked - ran.why_not.keys()
    why_not = _say_why_not(ran, subject)
    return StoreBehaviour(ran.issues, ran.asked, unasked, why_not, facts=ran.facts)


def _say_why_not(ran: Behaviour, subject: Subject) -> str:
    """Return why types were not tried, each with its reason unless all have the same."""
    reasons = set(ran.why_not.values())
    if len(reasons) == 1 and len(ran.why_not) == len(subject.runnable):
        return reasons.pop()
    shown = [f"{name} ({why})" for name, why in sorted(ran.why_not.items())]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"not tried: {', '.join(shown[:_SHOWN])}{more}" if shown else ""


@contextmanager
def hold_lock(path: Path, suffix: str) -> Iterator[None]:
    """Wait while another process does the same with a store: it leaves the result in the cache.

    Args:
        path: folder of the store.
        suffix: tells what is done with it.
    """
    file = lock_file(path, suffix)
    lock = FileLock(file, timeout=_PATIENCE)
    try:
        make_ignored_folder(file.parent)
        lock.acquire()
    except (OSError, Timeout):
        pass  # Where no file can be made, or the other one hangs, work is done twice.
    try:
        yield
    finally:
        lock.release()


# --- pages and lines ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the fields of one type stand."""

    store: RegenStore
    piece: Piece
    pages: Sequence[PageText]

    def put(self, issues: Iterable[Issue]) -> Iterator[Issue]:
        """Yield the issues with page, line and excerpt, as far as they are known."""
        is_enum = any(entry.kind == "enum" for entry in self.piece.facts.declarations)
        mapped = PageMap(
            self.pages,
            language=self.store.ir.language,
            name=self.piece.name,
            is_enum=is_enum,
            text=self.piece.text,
        )
        asked = {str(unit): page.page for page in self.pages for unit in page.fields}
        only = self.pages[0].page if len(self.pages) == 1 else None
        for issue in issues:
            if issue.code == IMPORT_FAILED:  # It is about the lines around the types.
                yield issue
                continue
            first = self.piece.first_line - 1
            line = self._line_of(issue.field) if issue.line is None else issue.line - first
            page = asked.get(issue.field or "") or only
            if page is None and line is not None and self.pages:
                page = mapped.page_of_line(line)
            excerpt = mapped.excerpt(line) if line is not None and self.pages else None
            yield replace(
                issue, page=page, line=None if line is None else line + first, excerpt=excerpt
            )

    def _line_of(self, field: str | None) -> int | None:
        """Return the line of the block on which the member of a field stands."""
        for entry in self.piece.facts.declarations:
            if entry.name == self.piece.name:
                for member in entry.members:
                    if str(wire_of(member)) == field:
                        return member.line
        return None
