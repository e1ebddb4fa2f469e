"""What a claimed file holds at one moment, and what is wrong with each of its units."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytest_regen.canonical import canonical_hash, file_hash, source_hash, text_hash
from pytest_regen.errors import HandEditError, KindError, SourceError, UsageError
from pytest_regen.modes import is_ci
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.regeneration.values import KEEPS_EDIT, Advice, Answer, Author, Mark, Score
from pytest_regen.regions.base import decode
from pytest_regen.text import join_names, shorten
from pytest_regen.units.kind import Kind, Unit, call_kind, issues_from, named_inputs, unusable
from pytest_regen.units.ledger import Entry, Ledger, entry_name, find_moved_ledger, now, short_hash
from pytest_regen.units.naming import (
    command,
    from_here,
    node_id,
    unit_id,
)
from pytest_regen.units.texts import (
    UnitText,
    difference,
    find_texts,
    line_in_file,
    put_text,
    same_text,
    sides,
    texts_or_none,
    units_in,
)
from pytest_regen.validation.issues import WEAKENED, Excerpt, Issue

if TYPE_CHECKING:
    from pytest_regen.commit import View as FilesView

T = TypeVar("T")

Ignored = Callable[[str], Collection[str]]
"""Returns the codes that are not reported for a unit, by its id."""

_UNREADABLE: Final = frozenset(
    {"EMPTY_OUTPUT", "MISSING_UNIT", "NOT_ALLOWED", "SYNTAX", "TRUNCATED", "UNDEFINED_NAME"}
)
"""Codes of a text that never replaces one without them: because of one nothing else was tried."""

_CLEAN: Final = Score()
_TELLING: Final = 20
"""Characters up to which a text may well stand in a file for another reason."""
_CUT: Final = ("max_tokens", "model_context_window_exceeded")
_CONFLICT: Final = re.compile(r"^(?:<{7}|>{7})(?: |$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a unit was, or would be, made from."""

    system_sha256: str
    inputs_sha256: str
    hashes: Mapping[str, str]
    """The short hash of each, by its name."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request for a unit was made from."""

    prompt: str
    inputs: Inputs
    tests: tuple[str, ...] = ()
    """The sources of the tests that its correction shows."""
    failures: tuple[str, ...] = ()
    """What its correction says was wrong, in words."""


class FileUnits:
    """The units of one file, as the main flow looks at them. A value: nothing changes it.

    Args:
        kind: claims the file.
        place: the file, from the root of the project, with forward slashes.
        files: what the project's files hold.
        ignore: the codes that the project does not want to hear of, by id of a unit.
        is_lost: whether the kind does not claim the file, or the file is gone.
        elsewhere: returns the file that a unit may have been moved to, or "".
    """

    def __init__(
        self,
        kind: Kind,
        place: str,
        files: "FilesView",
        ignore: Ignored = lambda _: (),
        *,
        is_lost: bool = False,
        elsewhere: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.kind = kind
        self.place = place
        self.files = files
        self.path: Path = files.root / place
        self._ignore = ignore
        self._is_lost = is_lost
        self._elsewhere = elsewhere
        self._issues: dict[str, tuple[Issue, ...]] = {}
        """What is wrong with each unit that was looked at."""
        self._base: FileUnits | None = None
        """What a candidate was made from; it knows the units that are the same in both."""
        self._texts: dict[str, str] = {}
        """The candidates, by name."""
        self._asked: dict[str, Asked] = {}
        """What they were asked for with."""
        self._cut: frozenset[str] = frozenset()
        """Candidates that ended at a limit of the model."""
        self._unplaced: dict[str, Issue] = {}
        """Candidates that could not be put into the file, and why; those of the base as well."""
        self.new_entries: Mapping[str, Entry] = {}
        """What the ledger is going to say of the candidates that stand in the file, and of those
        of the base."""
        self._hashes: dict[Path, str | None] = {}

    def load(self) -> "FileUnits":
        """Read the file and its ledger now; return the same object."""
        _ = self.data, self.ledger.entries
        return self

    @property
    def here(self) -> str:
        """The file as commands name it."""
        return from_here(self.path)

    # What stands in the file

    @cached_property
    def data(self) -> bytes | None:
        """What the file holds; ``None`` where there is none."""
        return self.files.read(self.place)

    @cached_property
    def text(self) -> str:
        """The text of the file; empty where it is absent or no text."""
        try:
            return self._decoded
        except SourceError:
            return ""

    @cached_property
    def fault(self) -> Issue | None:
        """Why the file cannot be split into its units."""
        try:
            _ = self._decoded, self._read
        except SourceError as error:
            line = getattr(error, "line", 0) or None
            return Issue.of("SYNTAX", f"{error.what}", line=line, detail=error.why or None)
        except KindError as error:
            return _kind_error(error)
        return None

    @property
    def _decoded(self) -> str:
        return decode(self.data or b"", self.place)

    @cached_property
    def _read(self) -> Mapping[str, UnitText]:
        return find_texts(self.kind, self.text, self.place)

    @property
    def texts(self) -> Mapping[str, UnitText]:
        """The units that stand in the file; none where they cannot be told apart."""
        return {} if self.fault else self._read

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names that must exist.

        Raises:
            KindError: the kind cannot say.
        """
        if self._is_lost:
            return ()
        names: list[object]
        try:
            names = self._call("units", self.place, list, self.path)
        except KindError as error:
            # Of a kind that read the file in vain, the file's own fault says more.
            is_broken = self.fault is not None and self.fault.code == "SYNTAX"
            if is_broken or isinstance(error.__cause__, SourceError):
                return ()
            raise
        texts = [name for name in names if isinstance(name, str) and name]
        for name in names:
            if name not in texts:
                what = "a name is a text, and not empty"
                raise unusable(self.kind, "units", self.place, name, what)
        return tuple(dict.fromkeys(texts))

    def _call(self, method: str, where: str, read: Callable[[Any], T], *arguments: object) -> T:
        """Return what a method of the kind gives, read while it may still raise; a KindError."""
        call = getattr(self.kind, method)
        return call_kind(self.kind, method, lambda: read(call(*arguments)), where=where)

    # What is remembered

    @cached_property
    def ledger(self) -> Ledger:
        """The entries of the file, also where it was moved since they were written."""
        ledger = Ledger(self.files, self.place)
        if ledger.entries or ledger.broken or self.data is None:
            return ledger

        def is_same(entry: Entry) -> bool:
            if entry.name not in self.texts or not entry.own_inputs:
                return self.output(entry.name, 1) == entry.output
            with suppress(KindError):
                return self.own_hash(entry.name) in entry.own_inputs
            return False

        def is_left(place: str, old: Ledger) -> bool:
            if (self.files.root / place).is_dir():
                return True
            text = (self.files.read(place) or b"").decode("utf-8", "replace")
            return not old.entries.keys() & units_in(self.kind, text)

        return find_moved_ledger(self.files, self.texts, is_same, is_left) or ledger

    @property
    def has_named_units(self) -> bool:
        """Whether the kind knows from elsewhere which units there are, whatever the file holds."""
        return type(self.kind).units is not Kind.units

    def entry(self, name: str) -> Entry | None:
        """Return what is remembered of a unit."""
        return self.ledger.entries.get(name)

    # What is asked

    def bare_unit(self, name: str) -> Unit:
        """Return a unit as ``prompt`` and ``inputs`` see it: without any text."""
        return Unit(name, self.path, "", "", self.kind)

    def unit(self, name: str) -> Unit:
        """Return a unit as ``check`` sees it."""
        entry = self.entry(name)
        is_by_hand = entry is not None and entry.is_by_hand
        text = self.output(name, 1) or ""
        return Unit(name, self.path, text, self.text, self.kind, is_by_hand)

    @cached_property
    def system(self) -> str:
        """The system prompt of a request, with what all units of the file share; raises KindError.

        The ledger holds that of the kind alone: the rest is no more of one unit than the file is.
        """
        kind = self.kind
        parts = call_kind(kind, "shared", lambda: (kind.system, kind.shared(self.path)))
        return "\n\n".join(filter(None, parts))

    def prompt(self, name: str) -> str:
        """Return what is asked for; raises KindError."""
        text = self._call("prompt", name, _as_is, self.bare_unit(name))
        if not isinstance(text, str) or not text.strip():
            raise unusable(self.kind, "prompt", name, text, "a prompt is a text, and not empty")
        return text

    def inputs(self, name: str) -> Inputs:
        """Return the hashes of what a unit would be made from now; raises KindError."""
        values = self._named_inputs(name)
        parts = dict(zip(values, self._parts("inputs", name, values.values()), strict=True))
        part = self.kind.system_inputs
        system = self.system_sha256 if part is None else text_hash(part)
        settings = canonical_hash(dict(self.kind.settings))
        inputs_sha256 = canonical_hash([list(parts.values()), system, settings])
        parts |= {"the system prompt": system, "the settings": settings}
        hashes = {key: _short(value) for key, value in parts.items()}
        return Inputs(self.system_sha256, inputs_sha256, hashes)

    def _named_inputs(self, name: str) -> dict[str, str | Path]:
        return self._call(
            "inputs", name, lambda inputs: dict(named_inputs(inputs)), self.bare_unit(name)
        )

    def _own_inputs(self, name: str) -> list[str | Path]:
        return self._call("own_inputs", name, list, self.bare_unit(name))

    def own_hash(self, name: str) -> str:
        """Return the short hash of what a text by hand would be written for; raises KindError."""
        return _short(self._parts("own_inputs", name, self._own_inputs(name)))

    def _parts(self, method: str, name: str, values: Iterable[object]) -> list[object]:
        """Return inputs as they are hashed."""
        parts: list[object] = []
        for value in values:
            if not isinstance(value, Path | str):
                raise unusable(self.kind, method, name, value, "each is a text, or a Path to hash")
            # A file in a list of its own, because a text may be the same as its hash.
            parts.append([self._hash(value)] if isinstance(value, Path) else value)
        return parts

    def what_changed(self, name: str) -> str:
        """Return what is not as it was when a unit was recorded, in words; empty if nothing is.

        Raises:
            KindError: the kind cannot say what the unit is made from.
        """
        entry = self.entry(name)
        if entry is None:
            return ""
        if entry.is_by_hand:
            if not entry.own_inputs or self.own_hash(name) in entry.own_inputs:
                return ""  # An entry of an older release cannot tell.
            names = {value: key for key, value in self._named_inputs(name).items()}
            inputs_by_hand = [
                names.get(value, "what it is for") for value in self._own_inputs(name)
            ]
            return f"{join_names(inputs_by_hand, 'or')} has changed since a person wrote it"
        inputs = self.inputs(name)
        # By their values: a release that names an input otherwise makes nothing stale.
        if inputs.inputs_sha256 == entry.inputs_sha256 or (
            sorted(entry.inputs.values()) == sorted(inputs.hashes.values())
        ):
            return ""
        changed = [key for key, value in inputs.hashes.items() if entry.inputs.get(key) != value]
        changed += [key for key in entry.inputs if key not in inputs.hashes]
        if not entry.inputs or not changed:
            return "what it was made from has changed since; its entry is too old to say what"
        is_one = len(changed) == 1 and changed[0] not in {"the imports", "the settings"}
        verb = "has" if is_one else "have"
        return f"{join_names(changed, 'and')} {verb} changed since it was written"

    @cached_property
    def system_sha256(self) -> str:
        """The hash of the system prompt."""
        return text_hash(self.kind.system)

    def _hash(self, path: Path) -> str | None:
        """Return the hash of an input's file, over LF line ends; ``None`` where there is none."""
        path = self.files.root / path
        if path not in self._hashes:
            self._hashes[path] = None
            with suppress(OSError):
                data = path.read_bytes()
                self._hashes[path] = file_hash(data)
                with suppress(UnicodeDecodeError):
                    self._hashes[path] = source_hash(data.decode("utf-8"))
        return self._hashes[path]

    # What is wrong

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what is wrong with a unit, warnings too, as far as the project wants to know."""
        issues = self.all_issues(name)
        codes = self._ignore(unit_id(self.place, name)) if issues else ()
        return tuple(issue for issue in issues if issue.code not in codes)

    @cached_property
    def file_issues(self) -> tuple[Issue, ...]:
        """What is wrong with the file itself, or its ledger, and not with one of its units.

        Raises:
            KindError: the kind cannot say which units there are.
        """
        issues = []
        if self._is_lost:
            pass  # Nobody asks for what it holds.
        elif not self.names and self.fault is not None:
            issues.append(self._conflict("") if self.has_conflict else self.fault)
        elif self._has_conflict_beside_units:
            issues.append(self._conflict(""))
        for file in self.unasked_files:
            what = self._without_root(self.ledger.broken[file].what)
            drop = f"put it right, or drop it: {command('forget', self.here)}"
            issues.append(Issue.of("LEDGER", what, detail=drop))
        if not (issues or self.names or self.lost):
            what = f"{self.kind.title} names no unit of {self.place}"
            why = "a gate that checks nothing must not pass"
            issues.append(Issue.of("MISSING_UNIT", what, detail=why))
        return tuple(issues)

    def all_issues(self, name: str) -> tuple[Issue, ...]:
        """Return everything that is wrong with a unit; checked once."""
        if self._base is not None and name not in self._touched and self._base.fault is self.fault:
            return self._base.all_issues(name)
        if name not in self._issues:
            self._issues[name] = tuple(self._find_issues(name))
        return self._issues[name]

    @cached_property
    def _touched(self) -> frozenset[str]:
        """The candidates, and the units that use them."""
        return frozenset(self._texts).union(*map(self.users, self._texts))

    def users(self, name: str) -> Collection[str]:
        """Return the other units that use this one, directly or not."""
        users, waiting = set[str](), [name]
        while waiting:
            used = waiting.pop()
            new = {user for user, names in self._uses.items() if used in names} - {*users, name}
            users |= new
            waiting += new
        return users

    @cached_property
    def _uses(self) -> Mapping[str, frozenset[str]]:
        if type(self.kind).uses is Kind.uses or self.fault is not None:
            return {}
        names = [name for name in self.names if name in self.texts]
        return {name: self._call("uses", name, frozenset, self.unit(name)) for name in names}

    def known_issues(self, but_for: Collection[str]) -> dict[str, tuple[Issue, ...]]:
        """Return what is wrong with the units that were looked at, but for some."""
        return {name: issues for name, issues in self._issues.items() if name not in but_for}

    def score(self, name: str) -> Score:
        """Return what counts when texts are compared."""
        errors = [issue for issue in self.issues(name) if issue.severity == "error"]
        if not errors:
            return _CLEAN  # Thousands of others are looked at whenever one is replaced.
        is_unreadable = any(issue.code in _UNREADABLE for issue in errors)
        return Score(len(errors), frozenset((1,) if is_unreadable else ()))

    def missing(self, name: str) -> Sequence[int]:
        """Return the one page of a unit that is not there."""
        is_missing = any(issue.code == "MISSING_UNIT" for issue in self.all_issues(name))
        return (1,) if is_missing else ()

    def page_count(self, name: str) -> int:  # a unit has one, whatever its name
        """Return 1: a unit is asked for in one request."""
        return 1

    def _find_issues(self, name: str) -> Iterable[Issue]:
        if self.fault is not None:
            is_git = self.has_conflict
            yield self._conflict(name) if is_git else replace(self.fault, type_name=name)
            return
        if name in self._unplaced:
            yield self._unplaced[name]
            return
        if self.has_conflict and self._is_torn(name):
            yield self._conflict(name)
            return
        try:
            yield from self._state_issues(name)
        except KindError as error:
            yield replace(_kind_error(error), type_name=name)

    def _state_issues(self, name: str) -> Iterable[Issue]:
        stands, entry, unit = self.texts.get(name), self.entry(name), self.unit(name)
        if stands is None or self._is_blank(unit):
            yield self._missing(name, stands, entry)
            return
        issue = partial(Issue.of, type_name=name, line=stands.line or None)
        fault = self.ledger.fault(name)
        if fault is not None:
            yield issue("LEDGER", self._without_root(fault.what))
        elif entry is None:
            if not self.has_named_units:
                yield issue("UNRECORDED", "no entry of the ledger says where this text came from")
        elif not (entry.is_by_hand or same_text(self.kind, entry.output, unit.text)):
            number, detail = difference(("recorded", entry.output), ("stands", unit.text))
            what = "the text differs from the recorded one: it was edited by hand"
            line = line_in_file(self.text, stands, number)
            yield issue("DRIFT", what, line=line, detail=detail)
        if name in self._cut:
            yield issue("TRUNCATED", "the model ran out of room")
        checked = self._call("check", name, partial(issues_from, unit=unit), unit)
        yield from self._placed_issues(self._weigh(name, checked), unit, stands.line)
        yield from self._weakened(unit, stands.line)
        if changed := self.what_changed(name):
            yield replace(issue("STALE", changed), is_by_hand=unit.is_by_hand)

    def _missing(self, name: str, stands: UnitText | None, entry: Entry | None) -> Issue:
        details = []
        if stands is not None:
            message = "its place is empty"
            if stands.text.strip():
                message = "nothing but a stub stands there"
        else:
            message = "it is not in the file"
            if self.data is None:
                message = f"{self.place} is not there"
            if not self._can_insert:
                describe = getattr(self.kind.region, "describe", None)
                todo = "write its place into the file by hand"
                details.append(str(describe(name)) if describe else todo)
        if entry is not None and not entry.is_by_hand:
            words = "then its recorded text" if details else "its recorded text"
            details.append(f"{words} is put back by: {command('rebuild', self.here, name)}")
        detail, line = "\n".join(details) or None, stands.line or None if stands else None
        return Issue.of("MISSING_UNIT", message, type_name=name, detail=detail, line=line)

    @property
    def _can_insert(self) -> bool:
        """Whether the region puts a unit where there is no place for it yet."""
        return getattr(self.kind.region, "insert", None) is not None

    def is_only_read(self, name: str) -> bool:
        """Return whether a unit is code of which its kind runs nothing."""
        return self._call("is_only_read", name, bool, self.unit(name))

    def _is_blank(self, unit: Unit) -> bool:
        return self._call("is_empty", unit.name, bool, unit)

    def has_place(self, name: str) -> bool:
        """Return whether a text of the unit can be put into the file."""
        return self._can_insert or name in self.texts

    def _weigh(self, name: str, issues: Iterable[Issue]) -> Iterable[Issue]:
        """Yield what ``check`` found, WEAKENED as severe as it is to be.

        No gate fails for it where a person wrote or adopted the text. In a candidate it is as
        severe as in the text that is replaced, if that has it too.
        """
        entry, old = self.entry(name), {}
        if name in self._texts and self._base is not None:
            before = self._base.all_issues(name)
            old = {issue.message: issue.severity for issue in before if issue.code == WEAKENED}
        is_written = entry is not None and not entry.is_by_hand
        for issue in issues:
            if issue.code != WEAKENED or (is_written and issue.message not in old):
                yield issue
            else:
                yield replace(issue, severity=old.get(issue.message, "warning"))

    def _weakened(self, new: Unit, first_line: int) -> Iterable[Issue]:
        """Yield by what a candidate is tested less than the text that it replaces."""
        name, base = new.name, self._base
        if base is None or name not in self._texts or name not in base.texts:
            return ()
        old = base.unit(name)
        if self._is_blank(old) or base.what_changed(name):
            return ()  # Another text was asked for: what it need not do, it may leave out.
        if asked := self._asked.get(name):
            new = replace(new, tests=asked.tests, failures=asked.failures)
        read = partial(issues_from, unit=new, code=WEAKENED)
        return self._placed_issues(self._call("weakens", name, read, old, new), new, first_line)

    def _placed_issues(
        self, issues: Iterable[Issue], unit: Unit, first_line: int
    ) -> Iterable[Issue]:
        """Yield issues with the line of the file that each is about, and its text."""
        lines = unit.text.splitlines() or [""]
        for issue in issues:
            at = issue.line if issue.line and 1 <= issue.line <= len(lines) else None
            excerpt = None
            if at is not None or len(lines) == 1:
                excerpt = Excerpt(at or 1, lines[(at or 1) - 1])
            line = first_line + (at or 1) - 1 if first_line else None
            yield replace(issue, line=line, excerpt=issue.excerpt or excerpt)

    @cached_property
    def has_conflict(self) -> bool:
        """Whether the file holds conflict markers of git."""
        return bool(_CONFLICT.search(self.text))

    @property
    def is_torn(self) -> bool:
        """Whether git could not join two versions of the file: no recorded text has its markers."""
        return self.has_conflict and (
            self.fault is not None
            or self._has_conflict_beside_units
            or any(map(self._is_torn, self.conflicting))
        )

    @property
    def _has_conflict_beside_units(self) -> bool:
        """Whether conflict markers stand where no unit that is asked for fails for them."""
        if not self.has_conflict or not self.conflicting.isdisjoint(self.names):
            return False
        within = (len(_CONFLICT.findall(unit.text)) for unit in self.texts.values())
        return len(_CONFLICT.findall(self.text)) > sum(within)

    def _without_root(self, message: str) -> str:
        return message.replace(f"{self.files.root}{os.sep}", "")

    def _is_torn(self, name: str) -> bool:
        """Return whether git could not join two versions of a unit in a file that can be read.

        A text with such markers may be what a model was asked for: then it is the recorded one.
        """
        if name not in self.conflicting:
            return False
        stands, entry = self.texts.get(name), self.entry(name)
        if stands is None or entry is None or not _CONFLICT.search(stands.text):
            return True
        return not same_text(self.kind, entry.output, stands.text)

    def _conflict(self, name: str) -> Issue:
        """Return the issue of a unit in a file that git could not join."""
        marker = _CONFLICT.search(self.text)
        assert marker is not None  # `has_conflict` says so
        line = self.text.count("\n", 0, marker.start()) + 1
        if not name and not self.conflicting:
            return Issue.of("CONFLICT", f"{self.place} holds conflict markers of git", line=line)
        if name and name not in self.conflicting:
            message = f"{self.place} holds conflict markers of git; both sides have this unit alike"
            return Issue.of("CONFLICT", message, type_name=name, line=line)
        name = name or min(self.conflicting)
        ours, theirs = (side.get(name, "") for side in self._sides)
        message = f"git could not join two versions of {self.place}"
        _, detail = difference(("ours", ours), ("theirs", theirs))
        return Issue.of("CONFLICT", message, type_name=name, line=line, detail=detail)

    @cached_property
    def conflicting(self) -> frozenset[str]:
        """The units that differ between the two sides of a file with conflict markers."""
        ours, theirs = self._sides
        return frozenset(
            name for name in {*ours, *theirs} if ours.get(name, "") != theirs.get(name, "")
        )

    @cached_property
    def _sides(self) -> list[dict[str, str]]:
        """The texts of each of two versions that git could not join, by name."""
        found_in = (texts_or_none(self.kind, side) for side in sides(self.text))
        return [{name: unit.text for name, unit in texts.items()} for texts in found_in]

    # What the kind does not name

    @cached_property
    def lost(self) -> tuple[Issue, ...]:
        """What became of each unit that the ledger has and nobody asks for."""
        if self.fault is not None and not (self.names or self._is_lost):
            return ()  # What the ledger has may well be named in what cannot be read.
        names = set(self.names)
        return tuple(self._lost(name) for name in self.ledger.entries if name not in names)

    def lost_command(self, name: str) -> str:
        """Return what ends the failure of a lost unit, and of those like it; empty if none does."""
        lost = {issue.type_name or "": issue.code for issue in self.lost}
        if lost[name] == "ORPHAN":
            is_all = len(lost) > 1 and set(lost.values()) == {"ORPHAN"}
            return command("forget", self.here, None if is_all else name)
        if lost[name] == "CONFLICT" or self.path.suffix != ".py":
            return ""
        place = self.here
        if name not in self._in_text:
            other = self._elsewhere(name)
            place = from_here(self.files.root / other) if other else ""
        elif not self._is_lost:
            bare = (lost.keys() & self._in_text) - self.texts.keys()
            place = node_id(place, name) if len(bare) == 1 else place
        return command("init", place, None, "--yes") if place else ""

    def _stands_unmarked(self, text: str) -> bool:
        """Return whether the lines of a text stand in the file, as no unit's of another name."""
        if len(text.strip()) <= _TELLING or any(unit.text == text for unit in self.texts.values()):
            return False
        # Whole lines: a sentence may well be part of a longer one.
        lines, file_lines = (
            "\n".join(filter(None, map(str.strip, full.splitlines()))) for full in (text, self.text)
        )
        return f"\n{lines}\n" in f"\n{file_lines}\n"

    @cached_property
    def _in_text(self) -> set[str]:
        return units_in(self.kind, self.text)

    def _lost(self, name: str) -> Issue:
        entry, forget = self.ledger.entries[name], command("forget", self.here, name)
        stands, in_code = name in self.texts, name in self._in_text
        code, message, todo = "MISSING_UNIT", "", "let its kind claim that file, or let it go"
        if self._is_lost and in_code:
            message = f"it stands in {self.place}, which no kind claims"
            todo = "let a kind claim the file, or let it go"
        elif self.has_conflict and not stands:
            code = "CONFLICT"
            message = f"{self.place} holds conflict markers of git, and it is not found there"
            todo = "correct the file in an editor; or let it go"
        elif in_code and not stands:
            message = "its function still stands in the file, without its marker lines"
            mark = command("init", node_id(self.here, name), None, "--yes")
            todo = f"put them back: {mark}; or let it go"
        elif not stands and self._stands_unmarked(entry.output):
            message = "its text still stands in the file, where its kind does not find it"
            todo = "put its marks back, or let it go"
        elif not stands and (other := self._elsewhere(name)):
            message = f"it is not tested any more; was it moved to {other}?"
        if message:
            return Issue.of(code, message, type_name=name, detail=f"{todo}: {forget}")
        where = "in the file and in the ledger" if stands else "in the ledger"
        gone = Issue.of("ORPHAN", f"it is {where}, and nothing asks for it", type_name=name)
        # Somebody deleted it, and says so by ``forget`` before others stop testing it.
        return replace(gone, severity="error", detail=f"let it go: {forget}") if is_ci() else gone

    @cached_property
    def orphans(self) -> tuple[Issue, ...]:
        """What the file or the ledger has, and nothing asks for."""
        if self.fault is not None and not self.names:
            return self.lost
        if self._is_lost:
            return self.lost
        names = {*self.names, *self.ledger.entries}
        message = "it is in the file, and nothing asks for it"
        return self.lost + tuple(
            Issue.of("ORPHAN", message, type_name=name, line=self.line(name))
            for name in self.texts
            if name not in names
        )

    @property
    def unasked_files(self) -> tuple[str, ...]:
        """Files of the ledger that cannot be read and belong to no unit that is asked for."""
        if not self.ledger.broken:
            return ()
        files = {entry_name(self.ledger.place, name) for name in self.names}
        return tuple(file for file in self.ledger.broken if file not in files)

    # What may come of it

    def ordered(self, name: str) -> frozenset[Mark]:
        """Return nothing: only a model knows what a prompt in plain words asks for."""
        del name
        return frozenset()

    def obstacle(self, name: str, *, discard_edits: bool = False) -> str:
        """Return why a unit must not be asked for; empty where it may."""
        if self.path.is_symlink():
            return f"{self.place} is a symbolic link; replace it by the file itself"
        issues = {issue.code: issue for issue in self.all_issues(name)}
        keep = f"keep it: {command('adopt', self.here, name)}"
        if "DRIFT" in issues and not discard_edits:
            return f"it was edited by hand; {keep}; drop it: {command('rebuild', self.here, name)}"
        if "KIND_ERROR" in issues:
            return issues["KIND_ERROR"].message
        if "LEDGER" in issues:
            return f"{issues['LEDGER'].message}; {keep}"
        if "CONFLICT" in issues:
            return f"{issues['CONFLICT'].message}: correct the file first"
        if self.fault is not None:
            return f"{self.fault.message}: correct the file first"
        if not self.has_place(name):
            return f"it has no place in {self.here}: {issues['MISSING_UNIT'].detail}"
        return ""

    def output(self, name: str, page: int) -> str | None:  # a unit has one page
        """Return the text of a unit; ``None`` where it is not in the file."""
        text = self.texts.get(name)
        return text.text if text else None

    def is_placed(self, name: str) -> bool:
        """Return whether a candidate could be put into the file."""
        return name not in self._unplaced

    def basis(self, name: str) -> str:
        """Return a digest of a unit's text, its prompt and its inputs; raises KindError."""
        return canonical_hash(
            [self.output(name, 1), self.prompt(name), self.inputs(name).inputs_sha256]
        )

    def with_answers(self, answers: Sequence[Answer]) -> "FileUnits":
        """Return the file with new texts in place; nothing is written."""
        candidate = FileUnits(self.kind, self.place, self.files, self._ignore)
        candidate._base, candidate._hashes = self, self._hashes
        candidate._texts = {answer.ask.name: answer.output for answer in answers}
        candidate._cut = frozenset(a.ask.name for a in answers if a.stop_reason in _CUT)
        candidate._asked = {
            answer.ask.name: answer.ask.entry
            for answer in answers
            if isinstance(answer.ask.entry, Asked)
        }
        candidate._unplaced = {
            name: issue for name, issue in self._unplaced.items() if name not in candidate._texts
        }
        text, placed = self.text, {}
        for answer in answers:
            name = answer.ask.name
            result = self._put(text, name, answer.output)
            if isinstance(result, Issue):
                candidate._unplaced[name] = result
            else:
                text, placed[name] = result, self.entry_of(answer)
        candidate.new_entries = {**self.new_entries, **placed}
        data = text.encode("utf-8") if placed else self.data
        candidate._set(self.names, text, data, self.ledger.with_entries(placed))
        return candidate

    def _set(self, names: tuple[str, ...], text: str, data: bytes | None, ledger: Ledger) -> None:
        """Give a candidate what a file would have to be read for: its properties are cached."""
        self.__dict__ |= {"names": names, "text": text, "data": data, "ledger": ledger}

    def entry_of(self, answer: Answer) -> Entry:
        """Return what the ledger is going to say of an answer."""
        source, old = answer.ask.entry, self.entry(answer.ask.name)
        assert isinstance(source, Asked)  # `asked` made the request
        return Entry(
            answer.ask.name,
            answer.output,
            answer.model,
            answer.provider,
            old.attempt + 1 if old else 1,
            now(),
            answer.usage,
            source.prompt,
            short_hash(source.prompt),
            source.inputs.system_sha256,
            source.inputs.hashes,
        )

    def to_store(self, entry: Entry) -> Entry:
        """Return an entry without a prompt that the working tree says again at this moment."""
        if not entry.prompt:
            return entry
        with suppress(KindError):
            if self.prompt(entry.name) == entry.prompt:
                return replace(entry, prompt="", prompt_sha256=entry.asked_sha256)
        return entry

    @property
    def notes(self) -> tuple[str, ...]:
        """Which units would be asked for in other words."""
        if not self.reworded:
            return ()
        words = "regenerate would ask in other words than before"
        return (f"note: {shorten(self.reworded)}: {words}",)

    @cached_property
    def reworded(self) -> tuple[str, ...]:
        """The units that would be asked for in other words, though made from the same."""
        names = []
        for name in self.names:
            entry = self.entry(name)
            with suppress(KindError):
                if entry is None or entry.is_by_hand or self.what_changed(name):
                    continue
                if not entry.answers(self.prompt(name)):
                    names.append(name)
        return tuple(names)

    def as_stored(self) -> "FileUnits":
        """Return the candidate as what the file holds, without what it was made from."""
        stored = FileUnits(self.kind, self.place, self.files, self._ignore)
        stored._set(self.names, self.text, self.data, self.ledger.at(self.place))
        stored._hashes = self._hashes
        if self._base is not None:
            stored._issues = self._base.known_issues({*self._touched, *self._unplaced})
        # What a text is compared with is gone as soon as it is stored.
        stored._issues |= {
            name: issues
            for name, issues in self.known_issues(self._unplaced).items()
            if all(issue.code != WEAKENED for issue in issues)
        }
        return stored

    def _put(self, file_text: str, name: str, text: str) -> str | Issue:
        """Return the file with a candidate in it, or why it cannot be there."""
        if self._is_blank(replace(self.unit(name), text=text)):
            return Issue.of("EMPTY_OUTPUT", "the reply holds no text", type_name=name)
        result = put_text(self.kind, file_text, name, text, self.names, place=self.place)
        lines = text.splitlines()
        if isinstance(result, Issue) and len(lines) == 1:
            return replace(result, excerpt=Excerpt(1, lines[0]))
        return result

    # What the verbs and the doors want to know

    format_note = not_run = ""
    origin = None

    def author(self, name: str) -> Author:
        """Return who wrote a unit, as the ledger says."""
        entry = self.entry(name)
        return Author(entry.model, entry.generated_at, entry.attempt) if entry else Author()

    def unit_json(self, name: str) -> Mapping[str, Any]:  # whatever its name
        """Return nothing."""
        return {}

    def has_old_prompt(self, name: str) -> bool:
        """Return False: prompts are made when units are asked for."""
        del name
        return False

    @property
    def failing(self) -> Collection[str]:
        """The units with errors."""
        return [name for name in self.names if self.score(name).errors]

    def resolve(self, name: str) -> str:
        """Return the name of a unit that must be there; raises UsageError for any other."""
        refuse_unknown(self, name, self.names)
        return name

    def line(self, name: str) -> int | None:
        """Return the line of the file on which a unit begins, from 1."""
        text = self.texts.get(name)
        return text.line or None if text else None

    def needs_answer(self, name: str) -> bool:
        """Return whether ``generate`` asks for a unit: it is missing, a stub, or stale."""
        return any(
            issue.code in {"MISSING_UNIT", "STALE"} and not issue.is_by_hand
            for issue in self.all_issues(name)
        )

    def is_by_template(self, name: str) -> bool:  # only a model can write a unit, whatever its name
        """Return False: the template writes types alone."""
        return False

    def hand_edit(
        self,
        name: str,
        *,
        discard_edits: bool = False,
        why: str = "regenerating it would discard the edit",
    ) -> HandEditError | None:
        """Return what is raised where a unit is named that somebody edited."""
        if discard_edits or all(issue.code != "DRIFT" for issue in self.all_issues(name)):
            return None
        return HandEditError(
            f"{name} in {self.place} was edited by hand",
            why=why,
            hint=f"keep it: {command('adopt', self.here, name)}; "
            f"or drop it: {command('rebuild', self.here, name)}",
        )

    def advice(self, issues: Sequence[Issue]) -> Advice | None:
        """Return the command that does the most about what is wrong; ``None`` if an editor does."""
        codes, here = {"BY_HAND" if i.is_by_hand else i.code for i in issues}, self.here
        if "CONFLICT" in codes:
            return Advice(command("rebuild", here), "or correct the file in an editor")
        errors = [*self.file_issues, *(i for i in self.orphans if i.severity == "error")]
        if self.fault is not None or "KIND_ERROR" in codes or errors:
            return None  # The issues say what to do.
        unplaced = {issue.type_name or "" for issue in issues if issue.code == "MISSING_UNIT"}
        if unplaced and not any(map(self.has_place, unplaced)):
            codes.discard("MISSING_UNIT")  # Asking helps only after an editor did.
        if fixable_issues(issues):
            codes.add("")
        records = "the next command records texts as they stand"
        commands = {
            "DRIFT": (
                command("adopt", here),
                f"{KEEPS_EDIT}; to drop it: {command('rebuild', here)}",
            ),
            "LEDGER": (command("adopt", here), records),
            "MISSING_UNIT": (command("generate", here), ""),
            "STALE": (command("generate", here), ""),
            "BY_HAND": (command("adopt", here, None, "--stale"), records),
            "": (command("regenerate", here, None, "--from-errors"), ""),
            "UNRECORDED": (command("adopt", here), records),
            "ORPHAN": (command("forget", here), ""),
        }
        return next((Advice(*words) for code, words in commands.items() if code in codes), None)

    def repairs(
        self, name: str, issues: Sequence[Issue], asking: Sequence[str] = ()
    ) -> tuple[Advice, ...]:
        """Return the commands about a unit that call for no healing, each with a word for it."""
        codes, here = {issue.code for issue in issues}, self.here
        keep = Advice(command("adopt", here, name), "keep")
        if "DRIFT" in codes:
            return keep, Advice(command("rebuild", here, name), "drop")
        if "CONFLICT" in codes:
            adopt = command("adopt", here, name if name in self.names else None)
            by_hand = Advice(f"correct the file, then {adopt}", "by hand")
            return Advice(command("rebuild", here), "our side"), by_hand
        if name not in self.names:
            return ()  # The issue says what to do.
        if "LEDGER" in codes:
            return (Advice(command("adopt", here, name), "record"),)
        if codes and codes <= {"MISSING_UNIT", "STALE"} and self.has_place(name):
            ask = Advice(command("generate", here, name, *asking), "generate")
            return (ask, keep) if "STALE" in codes else (ask,)
        return ()


def _kind_error(error: KindError) -> Issue:
    return Issue.of("KIND_ERROR", error.what, detail=error.trace or error.why or None)


def _as_is(value: object) -> object:
    return value


def _short(value: object) -> str:
    return canonical_hash(value).removeprefix("sha256:")[:16]


def refuse_unknown(units: FileUnits, name: str, names: Collection[str]) -> None:
    """Raise a UsageError where a file has no unit of that name; it names near ones."""
    if name in names:
        return
    near = get_close_matches(name, names, n=3) or list(names)[:8]
    raise UsageError(
        f"{units.place} has no unit {name!r:.80}",
        why=f"near are {', '.join(near)}" if near else "it has none that could be meant",
        hint=f"name one of these; pytest --collect-only {units.here} lists all",
    )
