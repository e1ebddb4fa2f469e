"""What running the types of a source shows: what they are, and issues on their pages and lines."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from pytest_regen.behaviour import Block, Known, Subject, check
from pytest_regen.documents.ir import IR
from pytest_regen.errors import MissingExtraError, SandboxError
from pytest_regen.files import lock_file, make_ignored_folder
from pytest_regen.languages import find_language, find_runner
from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.runner import Runner
from pytest_regen.sandbox.verdicts import VerdictCache
from pytest_regen.stores import RegenStore
from pytest_regen.text import shorten
from pytest_regen.validation.issues import IMPORT_FAILED, Issue
from pytest_regen.validation.pieces import PageMap, Piece, Split
from pytest_regen.validation.subject import wire_of

COUNT: Final = 50
"""Valid instances of each type, where its schema allows that many."""
_SECTION: Final = "behaviour"
_KNOWN: Final = "known behaviour"
"""Under this name a snapshot keeps what was found."""
_PATIENCE: Final = 300.0
"""Seconds to wait for another process that does the same with a store."""

_ALONE: Final = Known()
"""What is known of sources of no store, as long as the process runs."""

Facts = Mapping[str, Mapping[str, Any]]
"""By name of a type: what it is, where a run tells that."""


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
    facts: Facts = field(default_factory=dict)


def teller_of(language: str, profile: str) -> Runner | None:
    """Return what tells the types of a source by running it; ``None`` where they are only read."""
    runner = find_runner(find_language(language), profile)
    return runner if runner is not None and runner.traits.complete is not None else None


def subject_of(
    source: str, whole: Split, ir: IR, profile: str, folder: Path, *, header: str = ""
) -> Subject:
    """Return a source as it is run: below a header, without types that are known not to load."""
    blocks = {}
    for piece in whole.pieces:
        starts = [entry.line for entry in piece.facts.declarations if entry.name == piece.name]
        # Because where no boundary stands, all lines of a piece count in the source.
        down = header.count("\n") + (0 if whole.has_boundaries else min(starts) - 1)
        blocks[piece.name] = Block(piece.text, piece.first_line + down)
    broken = frozenset(piece.name for piece in whole.pieces if piece.facts.faults)
    return Subject(ir, find_language(ir.language), profile, folder, header + source, blocks, broken)


def run_source(source: str, whole: Split, ir: IR, profile: str) -> Split:
    """Return a source of no store with its types as running it shows them."""
    runner = teller_of(ir.language, profile)
    if runner is None or runner.missing(Path()):
        return whole
    header = ""
    if "import" not in source:
        # Types alone: they are loaded below the imports and base classes that are theirs.
        header = find_language(ir.language).header(namespace="", profile=profile) + "\n"
    subject = subject_of(source, whole, ir, profile, Path(), header=header)
    try:
        facts = check(subject, runner, _no_instances, instances_key="", known=_ALONE).facts
    except SandboxError:
        return whole
    return completed(whole, runner, facts, header.count("\n"))


def _no_instances(_names: Sequence[str]) -> Mapping[str, Any]:
    return {}


def completed(whole: Split, runner: Runner, facts: Facts, down: int = 0) -> Split:
    """Return the pieces of a source with their types as a run tells them.

    Args:
        whole: the source.
        runner: what ran it.
        facts: what came of that.
        down: how many lines stood above the source when it was run.
    """
    failed = {name for name, of_type in facts.items() if "fault" in of_type}
    complete, pieces = runner.traits.complete, []
    for piece in whole.pieces:
        fact, read = facts.get(piece.name, {}), piece.facts
        # Where it is blocked or misses a type, it is made of one that is at fault itself.
        is_told = fact and "blocked" not in fact and fact.get("missing") not in failed
        # Else it is not what the child sends, because the source wrote to its pipe.
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            if is_told and "fault" in fact:
                line = int(fact["line"] or 1) - piece.first_line - down + 1
                message = str(fact["fault"])
                place = _line_of(message, max(line, 1), piece.text)
                fault = SyntaxFault(place, message, IMPORT_FAILED)
                read = replace(read, faults=(*read.faults, fault))
            elif is_told and complete is not None:
                declarations = tuple(
                    complete(entry, fact)
                    if entry.name == piece.name and entry.outer is None
                    else entry
                    for entry in read.declarations
                )
                read = replace(read, declarations=declarations)
        pieces.append(replace(piece, facts=read))
    return replace(whole, pieces=tuple(pieces))


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
    # ``@dataclass``, ``class Ship(BaseModel):``, ``Ship = TypedDict(``, because it is there that
    # pydantic raises for a default, an alias or a pattern of any of the members.
    if not re.match(r"\s*(?:@|class\b|\w+\b.*=.*\($)", lines[min(line, len(lines)) - 1]):
        return line
    quotes = re.findall(r"'([^'\n]+)'|\"([^\"\n]+)\"", message)
    # A member of that name first, because quotes hold values and types as well.
    patterns = [rf"[ \t]*_?{word}[ \t]*[:=]" for word in re.findall(r"\w+", message)]
    patterns += [rf".*(?<!\w){re.escape(single or double)}(?!\w)" for single, double in quotes]
    places = (
        number
        for pattern in patterns
        for number, member in enumerate(lines[1:], 2)
        if re.match(pattern, member)
    )
    return next(places, line)


def without_echoes(issues: Sequence[Issue], by_reading: Sequence[Issue]) -> Iterator[Issue]:
    """Yield what running a type shows beside what reading it shows.

    A field that is read as wrong behaves wrongly as well: that is said once.
    """
    errors = [issue for issue in by_reading if issue.severity == "error" and issue.code != "DRIFT"]
    fields = {issue.field for issue in errors}
    for issue in issues:
        is_echo = bool(errors) if issue.field is None else issue.field in fields
        if issue.code == IMPORT_FAILED or not is_echo:
            yield issue


def behaviour_of(store: RegenStore, subject: Subject, runner: Runner, count: int) -> StoreBehaviour:
    """Return what running the types of a store shows; issues are on no page yet.

    Nothing is run that ran before, in this process or another: what was found is kept below
    ``.regen/cache``.

    Args:
        store: whose document the instances are of.
        subject: the code that is run.
        runner: runs it.
        count: how many valid instances of each type are tried; 0: types are only loaded.
    """
    why_not = runner.missing(store.path)
    if why_not:
        return StoreBehaviour(why_not=why_not, is_expected=runner.is_rare)
    tells = runner.traits.complete is not None
    if not subject.runnable and not tells:
        return StoreBehaviour(unasked=frozenset(subject.types))
    cache = VerdictCache(lock_file(store.path).parents[1] / "cache")
    known = store.memo.setdefault(
        _KNOWN,
        Known(
            partial(cache.get, _SECTION),
            partial(cache.put, _SECTION),
            partial(hold_lock, store.path, ".behaviour.lock"),
        ),
    )
    try:
        if not count:
            ran = check(subject, runner, _no_instances, instances_key="", known=known)
            return StoreBehaviour(facts=ran.facts)
        from pytest_regen.strategies.instances import Instances, instances_key, instances_of_store

        def draw(names: Sequence[str]) -> Mapping[str, Instances]:
            return instances_of_store(store, count, cache=cache, types=names)

        key = instances_key(store, count)
        ran = check(subject, runner, draw, instances_key=key, known=known)
    except MissingExtraError as error:
        loaded = behaviour_of(store, subject, runner, 0) if tells else StoreBehaviour()
        return replace(loaded, why_not=f"{error.why or error.what}: {error.hint}")
    except SandboxError as error:
        return StoreBehaviour(why_not=error.what)
    unasked = frozenset(subject.types) - ran.asked - ran.why_not.keys()
    words = [f"{name} ({why})" for name, why in sorted(ran.why_not.items())]
    why_not = f"not tried: {shorten(words)}" if words else ""
    reasons = set(ran.why_not.values())
    if len(reasons) == 1 and len(words) == len(subject.runnable):
        why_not = reasons.pop()  # Once, because all types have the same.
    return StoreBehaviour(ran.issues, ran.asked, unasked, why_not, facts=ran.facts)


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


def put_on_pages(issues: Iterable[Issue], piece: Piece, mapped: PageMap) -> Iterator[Issue]:
    """Yield what running a type shows with page, line and excerpt, as far as they are known."""
    # Backwards, because the first declaration of the type counts, and the first of its members.
    lines = {
        str(wire_of(member)): member.line
        for entry in reversed(piece.facts.declarations)
        if entry.name == piece.name
        for member in reversed(entry.members)
    }
    page_of = {str(unit): page for unit, page in mapped.page_of_unit.items()}
    first = piece.first_line - 1
    for issue in issues:
        if issue.code == IMPORT_FAILED:  # It is about the lines around the types.
            yield issue
            continue
        line = lines.get(issue.field or "", 0) if issue.line is None else issue.line - first
        page = page_of.get(issue.field or "") or mapped.page_of_line(line)
        if page in mapped.illegal | mapped.silent:
            continue  # It was run without that page, of which more is known.
        at = line + first if line else None
        yield replace(issue, page=page, line=at, excerpt=mapped.excerpt(line))
