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
from pytest_regen.commit import now
from pytest_regen.errors import HandEditError, KindError, SourceError, UsageError
from pytest_regen.files import from_here
from pytest_regen.modes import is_ci
from pytest_regen.regeneration.places import KEEPS_EDIT, Advice, Author, Score, View
from pytest_regen.regions.base import decode
from pytest_regen.text import join_names, shorten
from pytest_regen.units import texts as unit_texts
from pytest_regen.units.kind import Kind, Unit, call_kind, issues_from, named_inputs, unusable
from pytest_regen.units.ledger import Entry, Ledger, entry_name, find_moved_ledger, short_hash
from pytest_regen.units.naming import command, unit_id
from pytest_regen.validation.issues import WEAKENED, Excerpt, Issue

if TYPE_CHECKING:
    from pytest_regen.commit import View as FilesView
    from pytest_regen.regeneration.values import Answer

T = TypeVar("T")

# Codes of a text that never replaces one without them: because of one nothing else was tried.
_UNREADABLE: Final = frozenset(
    {"EMPTY_OUTPUT", "MISSING_UNIT", "NOT_ALLOWED", "SYNTAX", "TRUNCATED", "UNDEFINED_NAME"}
)

_CLEAN: Final = Score()
# Characters up to which a text may well stand in a file for another reason.
_TELLING: Final = 20
# Units that a command names.
_MOST_NAMED: Final = 20
_CUT: Final = ("max_tokens", "model_context_window_exceeded")
_CONFLICT: Final = re.compile(r"^(?:<{7}|>{7})(?: |$)", re.MULTILINE)

_RECORDS: Final = "the next command records texts as they stand"
# What is wrong with a file, the first counts; the command about it, and what is said before.
_ADVICE: Final = (
    ("CONFLICT", ("rebuild",), "or correct the file in an editor"),
    ("DRIFT", ("adopt",), f"{KEEPS_EDIT}; to drop it: {{rebuild}}"),
    ("LEDGER", ("adopt",), _RECORDS),
    ("STALE", ("generate",), ""),
    # Before MISSING_UNIT, because it asks for what is missing, too.
    ("FIXABLE", ("regenerate", "--from-errors"), ""),
    ("MISSING_UNIT", ("generate",), ""),
    ("BY_HAND", ("adopt", "--stale"), _RECORDS),
    ("UNRECORDED", ("adopt",), _RECORDS),
    ("ORPHAN", ("forget",), ""),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request for a unit was made from."""

    prompt: str
    inputs: Mapping[str, str]
    tests: tuple[str, ...] = ()
    """The sources of the tests that its correction shows."""
    failures: tuple[str, ...] = ()
    """What its correction says was wrong, in words."""


class FileUnits(View):
    """The units of one file, as the main flow looks at them. A value: nothing changes it.

    Args:
        file: the file as a place.
        files: what the project's files hold.
    """

    # Not by its class, ``UnitFile``, because that one's module imports this one.
    def __init__(self, file: Any, files: "FilesView") -> None:
        self.file = file
        self.files = files
        self.kind: Kind = file.kind
        self.place: str = file.place
        self.path: Path = file.path
        self.here = from_here(file.path)
        """The file as commands name it."""
        self.new_entries: Mapping[str, Entry] = {}
        """What the ledger is going to say of the candidates that stand in the file, and of those
        of the base."""
        self._base: FileUnits | None = None
        """What a candidate was made from; it knows the units that are the same in both."""
        self._answers: dict[str, Answer] = {}
        """The candidates, by name."""
        self._unplaced: dict[str, Issue] = {}
        """Candidates that could not be put into the file, and why; those of the base as well."""
        self.checked: dict[str, tuple[Issue, ...]] = {}
        """What is wrong with each unit that was looked at."""
        self.hashes: dict[Path, str | None] = {}

    # What stands in the file

    @cached_property
    def data(self) -> bytes | None:
        """What the file holds; ``None`` where there is none."""
        return self.files.read(self.place)

    @cached_property
    def _parts(self) -> tuple[str, Mapping[str, unit_texts.UnitText], Issue | None]:
        text = ""
        try:
            text = decode(self.data or b"", self.place)
            return text, unit_texts.find_texts(self.kind, text, self.place), None
        except SourceError as error:
            line = getattr(error, "line", 0) or None
            return text, {}, Issue.of("SYNTAX", error.what, line=line, detail=error.why or None)
        except KindError as error:
            return text, {}, _kind_error(error)

    @property
    def text(self) -> str:
        """The text of the file; empty where it is absent or no text."""
        return self._parts[0]

    @property
    def texts(self) -> Mapping[str, unit_texts.UnitText]:
        """The units that stand in the file; none where they cannot be told apart."""
        return self._parts[1]

    @property
    def fault(self) -> Issue | None:
        """Why the file cannot be split into its units."""
        return self._parts[2]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names that must exist.

        Raises:
            KindError: the kind cannot say.
        """
        if self.file.is_lost:
            return ()
        try:
            names: list[object] = self._call("units", self.place, list, self.path)
        except KindError as error:
            # Of a kind that read the file in vain, the file's own fault says more.
            is_broken = self.fault is not None and self.fault.code == "SYNTAX"
            if is_broken or isinstance(error.__cause__, SourceError):
                return ()
            raise
        for name in names:
            if not (isinstance(name, str) and name):
                what = "a name is a text, and not empty"
                raise unusable(self.kind, "units", self.place, name, what)
        return tuple(map(str, dict.fromkeys(names)))

    def _call(self, method: str, where: str, read: Callable[[Any], T], *arguments: object) -> T:
        """Return what a method of the kind gives, read while it may still raise; a KindError."""
        call = getattr(self.kind, method)
        return call_kind(self.kind, method, lambda: read(call(*arguments)), where=where)

    def output(self, name: str, page: int) -> str | None:  # a unit has one page
        """Return the text of a unit; ``None`` where it is not in the file."""
        text = self.texts.get(name)
        return text.text if text else None

    def line(self, name: str) -> int | None:
        """Return the line of the file on which a unit begins, from 1."""
        text = self.texts.get(name)
        return text.line or None if text else None

    def missing(self, name: str) -> Sequence[int]:
        """Return the one page of a unit that is not there."""
        is_missing = any(issue.code == "MISSING_UNIT" for issue in self.all_issues(name))
        return (1,) if is_missing else ()

    # What is remembered

    @cached_property
    def ledger(self) -> Ledger:
        """The entries of the file, also where it was moved since they were written."""
        ledger = Ledger.read(self.files, self.place)
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
            return not old.entries.keys() & unit_texts.units_in(self.kind, text)

        return find_moved_ledger(self.files, self.texts, is_same, is_left) or ledger

    def entry(self, name: str) -> Entry | None:
        """Return what is remembered of a unit."""
        return self.ledger.entries.get(name)

    @cached_property
    def usual_tokens(self) -> int:
        """About how large a text is that was never written: as the recorded ones are on average."""
        from pytest_regen.turns.values import estimate_tokens

        texts = [entry.output for entry in self.ledger.entries.values() if entry.output]
        return sum(map(estimate_tokens, texts)) // len(texts) if texts else 0

    @cached_property
    def last_of_each_model(self) -> Collection[Entry]:
        """The last entry of each who wrote some: thousands are never looked through for each."""
        entries = sorted(self.ledger.entries.values(), key=lambda entry: entry.generated_at)
        return {(entry.model, entry.provider): entry for entry in entries}.values()

    def author(self, name: str) -> Author:
        """Return who wrote a unit, as the ledger says."""
        entry = self.entry(name)
        return Author(entry.model, entry.generated_at, entry.attempt) if entry else Author()

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

    @cached_property
    def system_sha256(self) -> str:
        """The hash of the kind's system prompt."""
        return text_hash(self.kind.system)

    def prompt(self, name: str) -> str:
        """Return what is asked for; raises KindError."""
        text: object = self._call("prompt", name, lambda value: value, self.bare_unit(name))
        if not isinstance(text, str) or not text.strip():
            raise unusable(self.kind, "prompt", name, text, "a prompt is a text, and not empty")
        return text

    def inputs(self, name: str) -> Mapping[str, str]:
        """Return what a unit would be made from now: short hashes by name; raises KindError."""
        return {key: _short(value) for key, value in self._inputs(name).items()}

    def _inputs(self, name: str) -> dict[str, object]:
        part = self.kind.system_inputs
        return {
            **self._read_inputs("inputs", name),
            "the system prompt": self.system_sha256 if part is None else text_hash(part),
            "the settings": canonical_hash(dict(self.kind.settings)),
        }

    def _read_inputs(self, method: str, name: str) -> dict[str, object]:
        """Return what a method of the kind says a unit is made from, as it is hashed."""

        def read(inputs: Iterable[str | Path]) -> dict[str, object]:
            return dict(named_inputs(inputs))

        values = self._call(method, name, read, self.bare_unit(name))
        for key, value in values.items():
            if isinstance(value, Path):
                # In a list of its own, because a text may be the same as the hash of a file.
                values[key] = [self._hash(value)]
            elif not isinstance(value, str):
                raise unusable(self.kind, method, name, value, "each is a text, or a Path to hash")
        return values

    def _hash(self, path: Path) -> str | None:
        """Return the hash of an input's file, over LF line ends; ``None`` where there is none."""
        path = self.files.root / path
        if path not in self.hashes:
            self.hashes[path] = None
            with suppress(OSError):
                data = path.read_bytes()
                self.hashes[path] = file_hash(data)
                with suppress(UnicodeDecodeError):
                    self.hashes[path] = source_hash(data.decode("utf-8"))
        return self.hashes[path]

    def own_hash(self, name: str) -> str:
        """Return the short hash of what a text by hand would be written for; raises KindError."""
        return _short(list(self._read_inputs("own_inputs", name).values()))

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
                return ""
            own = list(self._read_inputs("own_inputs", name).values())
            # By value, because a person's text knows its inputs by their hash alone.
            inputs_by_hand = [key for key, value in self._inputs(name).items() if value in own]
            words = join_names(inputs_by_hand or ["what it is for"], "or")
            return f"{words} has changed since a person wrote it"
        if not entry.inputs:  # Of an older release, which wrote one hash of all.
            *parts, system, settings = self._inputs(name).values()
            if entry.inputs_sha256 == canonical_hash([parts, system, settings]):
                return ""
            return "what it was made from has changed since; its entry is too old to say what"
        inputs = self.inputs(name)
        # By their values: a release that names an input otherwise makes nothing stale.
        if sorted(entry.inputs.values()) == sorted(inputs.values()):
            return ""
        changed = [key for key, value in inputs.items() if entry.inputs.get(key) != value]
        changed += [key for key in entry.inputs if key not in inputs]
        is_one = len(changed) == 1 and changed[0] not in {"the imports", "the settings"}
        verb = "has" if is_one else "have"
        return f"{join_names(changed, 'and')} {verb} changed since it was written"

    @property
    def notes(self) -> tuple[str, ...]:
        """Which units would be asked for in other words, though made from the same."""
        names = []
        for name in self.names:
            entry = self.entry(name)
            with suppress(KindError):
                # Not what is stale or a person's, because another rule says when that is asked for.
                if entry is None or entry.is_by_hand or self.what_changed(name):
                    continue
                if not entry.answers(self.prompt(name)):
                    names.append(name)
        words = "regenerate would ask in other words than before"
        return (f"note: {shorten(names)}: {words}",) if names else ()

    # What is wrong

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what is wrong with a unit, warnings too, as far as the project wants to know."""
        issues = self.all_issues(name)
        codes = self.file.ignore(unit_id(self.place, name)) if issues else ()
        return tuple(issue for issue in issues if issue.code not in codes)

    def all_issues(self, name: str) -> tuple[Issue, ...]:
        """Return everything that is wrong with a unit; checked once."""
        base = self._base
        if base is not None and name not in self._touched and base.fault is self.fault:
            return base.all_issues(name)
        if name not in self.checked:
            self.checked[name] = tuple(self._find_issues(name))
        return self.checked[name]

    def score(self, name: str) -> Score:
        """Return what counts when texts are compared."""
        errors = [issue for issue in self.issues(name) if issue.severity == "error"]
        if not errors:
            return _CLEAN  # Thousands of others are looked at whenever one is replaced.
        # Apart from their number, because one such error stands for all that was not looked at.
        is_unreadable = any(issue.code in _UNREADABLE for issue in errors)
        return Score(len(errors), frozenset((1,) if is_unreadable else ()))

    def _find_issues(self, name: str) -> Iterable[Issue]:
        # First, because markers make of a file two halves, and any other fault follows from them.
        if self.has_conflict:
            yield self._conflict(name)
        elif self.fault is not None:
            yield replace(self.fault, type_name=name)
        elif name in self._unplaced:
            yield self._unplaced[name]
        else:
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
            # Of names that the kind knows from elsewhere a text needs no record: it is tested.
            if type(self.kind).units is Kind.units:
                yield issue("UNRECORDED", "no entry of the ledger says where this text came from")
        elif not (entry.is_by_hand or unit_texts.same_text(self.kind, entry.output, unit.text)):
            number, detail = unit_texts.difference(
                ("recorded", entry.output), ("stands", unit.text)
            )
            what = "the text differs from the recorded one: it was edited by hand"
            line = unit_texts.line_in_file(self.text, stands, number)
            yield issue("DRIFT", what, line=line, detail=detail)
        answer, checked = self._answers.get(name), partial(issues_from, unit=unit)
        if answer is not None and answer.stop_reason in _CUT:
            yield issue("TRUNCATED", "the model ran out of room")
        findings = [*self._call("check", name, checked, unit)]
        findings = [*self._weigh(name, findings), *self._weakened(unit)]
        lines = unit.text.splitlines() or [""]
        for finding in findings:
            # The line of the text becomes that of the file, with what stands there.
            at = finding.line if finding.line and 1 <= finding.line <= len(lines) else None
            excerpt = finding.excerpt
            if excerpt is None and (at is not None or len(lines) == 1):
                excerpt = Excerpt(at or 1, lines[(at or 1) - 1])
            line = stands.line + (at or 1) - 1 if stands.line else None
            yield replace(finding, line=line, excerpt=excerpt)
        if changed := self.what_changed(name):
            yield replace(issue("STALE", changed), is_by_hand=unit.is_by_hand)

    def _missing(self, name: str, stands: unit_texts.UnitText | None, entry: Entry | None) -> Issue:
        message, todo = "its place is empty", unit_texts.place_to_write(self.kind, name)
        if stands is None:
            what = "it is not in the file"
            message = what if self.data is not None else f"{self.place} is not there"
        elif stands.text.strip():
            message = "nothing but a stub stands there"
        elif describe := getattr(self.kind.region, "why_empty", None):
            message = str(describe(self.text, name) or message)
        details = [todo] if todo and stands is None else []
        if entry is not None and not entry.is_by_hand:
            words = "then its recorded text" if details else "its recorded text"
            details.append(f"{words} is put back by: {command('rebuild', self.here, name)}")
        detail, line = "\n".join(details) or None, self.line(name)
        return Issue.of("MISSING_UNIT", message, type_name=name, detail=detail, line=line)

    def is_only_read(self, name: str) -> bool:
        """Return whether a unit is code of which its kind runs nothing."""
        return self._call("is_only_read", name, bool, self.unit(name))

    def _is_blank(self, unit: Unit) -> bool:
        return self._call("is_empty", unit.name, bool, unit)

    def has_place(self, name: str) -> bool:
        """Return whether a text of the unit can be put into the file."""
        return name in self.texts or not unit_texts.place_to_write(self.kind, name)

    def _weigh(self, name: str, issues: Iterable[Issue]) -> Iterable[Issue]:
        """Yield what ``check`` found, WEAKENED as severe as it is to be.

        No gate fails for it where a person wrote or adopted the text. In a candidate it is as
        severe as in the text that is replaced, if that has it too.
        """
        entry, old = self.entry(name), {}
        if name in self._answers and self._base is not None:
            before = self._base.all_issues(name)
            old = {issue.message: issue.severity for issue in before if issue.code == WEAKENED}
        is_written = entry is not None and not entry.is_by_hand
        for issue in issues:
            if issue.code != WEAKENED or (is_written and issue.message not in old):
                yield issue
            else:
                yield replace(issue, severity=old.get(issue.message, "warning"))

    def _weakened(self, new: Unit) -> Iterable[Issue]:
        """Return by what a candidate is tested less than the text that it replaces."""
        name, base = new.name, self._base
        if base is None or name not in self._answers or name not in base.texts:
            return ()
        old = base.unit(name)
        if self._is_blank(old) or base.what_changed(name):
            return ()  # Another text was asked for: what it need not do, it may leave out.
        if isinstance(asked := self._answers[name].ask.entry, Asked):
            new = replace(new, tests=asked.tests, failures=asked.failures)
        read = partial(issues_from, unit=new, code=WEAKENED)
        return self._call("weakens", name, read, old, new)

    def users(self, name: str) -> Collection[str]:
        """Return the other units that use this one, directly or not."""
        users, waiting = set[str](), [name]
        while waiting:
            used = waiting.pop()
            # Without those that are known, because units may use one another in a circle.
            new = {user for user, names in self._uses.items() if used in names} - {*users, name}
            users |= new
            waiting += new
        return users

    @cached_property
    def _uses(self) -> Mapping[str, frozenset[str]]:
        if not self.file.has_users or self.fault is not None:
            return {}
        names = [name for name in self.names if name in self.texts]
        return {name: self._call("uses", name, frozenset, self.unit(name)) for name in names}

    # What is wrong with the file itself

    @cached_property
    def file_issues(self) -> tuple[Issue, ...]:
        """What is wrong with the file itself, or its ledger, and not with one of its units.

        Raises:
            KindError: the kind cannot say which units there are.
        """
        issues = []
        if self.file.is_lost:
            pass  # Nobody asks for what it holds.
        elif self.fault is not None and not self.names:
            issues.append(self.fault)
        for file in self.unasked_files:
            what = self._without_root(self.ledger.broken[file].what)
            drop = f"put it right, or drop it: {command('forget', self.here)}"
            issues.append(Issue.of("LEDGER", what, detail=drop))
        if not (issues or self.names or self.lost):
            what = f"{self.kind.title} names no unit of {self.place}"
            why = "a gate that checks nothing must not pass"
            issues.append(Issue.of("MISSING_UNIT", what, detail=why))
        return tuple(issues)

    def _without_root(self, message: str) -> str:
        return message.replace(f"{self.files.root}{os.sep}", "")

    @property
    def unasked_files(self) -> tuple[str, ...]:
        """Files of the ledger that cannot be read and belong to no unit that is asked for."""
        files = {entry_name(self.ledger.place, name) for name in self.names if self.ledger.broken}
        return tuple(file for file in self.ledger.broken if file not in files)

    @cached_property
    def has_conflict(self) -> bool:
        """Whether the file holds conflict markers of git."""
        return _CONFLICT.search(self.text) is not None

    def _conflict(self, name: str) -> Issue:
        """Return the issue of a unit in a file that git could not join."""
        marker = _CONFLICT.search(self.text)
        line = self.text.count("\n", 0, marker.start()) + 1 if marker else None
        message = f"{self.place} holds conflict markers of git"
        return Issue.of("CONFLICT", message, type_name=name, line=line)

    # What nobody asks for

    @property
    def lost(self) -> tuple[Issue, ...]:
        """What became of each unit that the ledger has and nobody asks for."""
        return tuple(issue for issue, _ in self._lost.values())

    def lost_command(self, name: str) -> str:
        """Return what ends the failure of a lost unit, and of those like it; empty if none does."""
        return self._lost[name][1]

    @cached_property
    def _lost(self) -> Mapping[str, tuple[Issue, str]]:
        """What became of each such unit, and the command that ends it."""
        if self.fault is not None and not (self.names or self.file.is_lost):
            return {}  # What the ledger has may well be named in what cannot be read.
        lost = [name for name in self.ledger.entries if name not in self.names]
        in_code = unit_texts.units_in(self.kind, self.text) if lost else set()
        groups: dict[tuple[str, str, str, str], list[str]] = {}
        for name in lost:
            groups.setdefault(self._where_it_went(name, in_code), []).append(name)
        found: dict[str, tuple[Issue, str]] = {}
        for (code, what, todo, place), names in groups.items():
            # One command for all that went alike, because one by one would take as many.
            units = [word for name in names for word in ("--unit", name)]
            those = units if len(names) == 1 or names != lost else ()
            forget, init = command("forget", self.here, None, *those), ""
            drop = f"forget {'it' if len(names) == 1 else shorten(names)}: {forget}"
            # Of code alone, because `init` puts marks around functions and nothing else.
            if place and self.path.suffix == ".py":
                some = units if len(names) <= _MOST_NAMED else ()
                init = command("init", place, None, *some, "--yes")
            issue = Issue.of(code, what)
            if todo:
                issue = replace(issue, detail=f"{': '.join(filter(None, (todo, init)))}; or {drop}")
            elif is_ci():
                # Somebody deleted it, and says so by ``forget`` before others stop testing it.
                issue = replace(issue, severity="error", detail=drop)
            end = init if todo else forget
            found |= {name: (replace(issue, type_name=name), end) for name in names}
        return {name: found[name] for name in lost}

    def _where_it_went(self, name: str, in_code: Collection[str]) -> tuple[str, str, str, str]:
        """Return a code, what became of a unit, what to do, and for which file ``init`` does it."""
        code, stands = "MISSING_UNIT", name in self.texts
        if self.file.is_lost and name in in_code:
            what = f"it stands in {self.place}, which no kind claims"
            return code, what, "let a kind claim the file", self.here
        if self.has_conflict and not stands:
            what = f"{self.place} holds conflict markers of git, and it is not found there"
            return "CONFLICT", what, "correct the file in an editor", ""
        if name in in_code and not stands:
            what = "its function still stands in the file, without its marker lines"
            return code, what, "put them back", self.here
        if not stands and self._stands_unmarked(self.ledger.entries[name].output):
            what = "its text still stands in the file, where its kind does not find it"
            return code, what, "put its marks back", ""
        if not stands and (other := self.file.elsewhere(name)):
            what = f"it is not tested any more; was it moved to {other}?"
            place = from_here(self.files.root / other)
            return code, what, "let its kind claim that file", place
        where = "in the file and in the ledger" if stands else "in the ledger"
        return "ORPHAN", f"it is {where}, and nothing asks for it", "", ""

    def _stands_unmarked(self, text: str) -> bool:
        """Return whether a text stands in the file, as no unit's of another name."""
        if len(text.strip()) <= _TELLING or any(unit.text == text for unit in self.texts.values()):
            return False
        # Whole lines: a sentence may well be part of a longer one.
        return f"\n{text.strip()}\n" in f"\n{self.text}\n"

    @cached_property
    def orphans(self) -> tuple[Issue, ...]:
        """What the file or the ledger has, and nothing asks for."""
        message = "it is in the file, and nothing asks for it"
        known = self.texts if self.file.is_lost else {*self.names, *self.ledger.entries}
        return self.lost + tuple(
            Issue.of("ORPHAN", message, type_name=name, line=self.line(name))
            for name in self.texts
            if name not in known
        )

    # What may come of it

    def _choice(self, name: str) -> str:
        keep, drop = (command(verb, self.here, name) for verb in ("adopt", "rebuild"))
        return f"keep it: {keep}; or drop it: {drop}"

    def obstacle(self, name: str) -> str:
        """Return why a unit must not be asked for; empty where it may."""
        messages = {issue.code: issue.message for issue in self.all_issues(name)}
        if "DRIFT" in messages:
            return f"it was edited by hand; {self._choice(name)}"
        if "LEDGER" in messages:
            return f"{messages['LEDGER']}; keep it: {command('adopt', self.here, name)}"
        if "KIND_ERROR" in messages:
            return messages["KIND_ERROR"]
        if "CONFLICT" in messages or self.fault is not None:
            message = messages.get("CONFLICT") or next(iter(messages.values()))
            return f"{message}: correct the file first"
        if not self.has_place(name):
            return f"it has no place in {self.here}: {unit_texts.place_to_write(self.kind, name)}"
        return ""

    def hand_edit(
        self, name: str, why: str = "regenerating it would discard the edit"
    ) -> HandEditError | None:
        """Return what is raised where a unit is named that somebody edited."""
        if all(issue.code != "DRIFT" for issue in self.all_issues(name)):
            return None
        what = f"{name} in {self.place} was edited by hand"
        return HandEditError(what, why=why, hint=self._choice(name))

    def is_placed(self, name: str) -> bool:
        """Return whether a candidate could be put into the file."""
        return name not in self._unplaced

    def basis(self, name: str) -> str:
        """Return a digest of a unit's text, its prompt and its inputs; raises KindError."""
        return canonical_hash([self.output(name, 1), self.prompt(name), self.inputs(name)])

    def with_answers(self, answers: "Sequence[Answer]") -> "FileUnits":
        """Return the file with new texts in place; nothing is written."""
        text, placed, unplaced = self.text, dict[str, Entry](), dict(self._unplaced)
        by_name = {answer.ask.name: answer for answer in answers}
        for name, answer in by_name.items():
            result = self._put(text, name, answer.output)
            if isinstance(result, Issue):
                unplaced[name] = result
            else:
                unplaced.pop(name, None)
                text, placed[name] = result, self.entry_of(answer)
        data = text.encode("utf-8") if placed else self.data
        candidate = FileUnits(self.file, self.files)
        candidate.__dict__ |= self._read_before(data, self.ledger.with_entries(placed))
        candidate._base, candidate._answers, candidate._unplaced = self, by_name, unplaced
        candidate.new_entries = {**self.new_entries, **placed}
        return candidate

    def _read_before(self, data: bytes | None, ledger: Ledger) -> dict[str, object]:
        """Return what a file with other contents would have to be read for, as it is cached."""
        return {"names": self.names, "hashes": self.hashes, "data": data, "ledger": ledger}

    def _put(self, file_text: str, name: str, text: str) -> str | Issue:
        """Return the file with a candidate in it, or why it cannot be there."""
        if self._is_blank(replace(self.unit(name), text=text)):
            return Issue.of("EMPTY_OUTPUT", "the reply holds no text", type_name=name)
        result = unit_texts.put_text(self.kind, file_text, name, text, self.names, place=self.place)
        lines = text.splitlines()
        if isinstance(result, Issue) and len(lines) == 1:
            return replace(result, excerpt=Excerpt(1, lines[0]))
        return result

    @cached_property
    def _touched(self) -> frozenset[str]:
        """The candidates, and the units that use them."""
        return frozenset(self._answers).union(*map(self.users, self._answers))

    def entry_of(self, answer: "Answer") -> Entry:
        """Return what the ledger is going to say of an answer."""
        source, old = answer.ask.entry, self.entry(answer.ask.name)
        assert isinstance(source, Asked)  # `asks` made the request
        return Entry(
            answer.ask.name,
            answer.output,
            answer.model,
            answer.provider,
            old.attempt + 1 if old else 1,
            now(),
            answer.usage,
            short_hash(source.prompt),
            self.system_sha256,
            source.inputs,
        )

    def as_stored(self) -> "FileUnits":
        """Return the candidate as what the file holds, without what it was made from."""
        stored = FileUnits(self.file, self.files)
        stored.__dict__ |= self._read_before(self.data, replace(self.ledger, place=self.place))
        if self._base is not None:
            gone = {*self._touched, *self._unplaced}
            # Not checked again, because a file may have thousands of units and few that changed.
            stored.checked = {n: i for n, i in self._base.checked.items() if n not in gone}
        for name, issues in self.checked.items():
            # What a text is compared with is gone as soon as it is stored.
            if name not in self._unplaced and all(issue.code != WEAKENED for issue in issues):
                stored.checked[name] = issues
        return stored

    # What the verbs and the doors want to know

    def resolve(self, name: str) -> str:
        """Return the name of a unit that must be there; raises UsageError for any other."""
        refuse_unknown(self, name, self.names)
        return name

    def needs_answer(self, name: str) -> bool:
        """Return whether ``generate`` asks for a unit: it is missing, a stub, or stale."""
        return any(
            issue.code in {"MISSING_UNIT", "STALE"} and not issue.is_by_hand
            for issue in self.all_issues(name)
        )

    def advice(self, issues: Sequence[Issue]) -> Advice | None:
        """Return the command that does the most about what is wrong; ``None`` if an editor does."""
        from pytest_regen.regeneration.policies import fixable_issues

        codes = {"BY_HAND" if issue.is_by_hand else issue.code for issue in issues}
        if "CONFLICT" not in codes:
            if self.fault or self.file_issues or "KIND_ERROR" in codes:
                return None  # The issues say what to do.
            ends = {end for issue, end in self._lost.values() if issue.severity == "error"}
            if ends:
                return Advice(*ends) if len(ends) == 1 and all(ends) else None
        unplaced = {issue.type_name or "" for issue in issues if issue.code == "MISSING_UNIT"}
        if not any(map(self.has_place, unplaced)):
            codes.discard("MISSING_UNIT")  # Asking helps only after an editor did.
        if any(issue.code != "MISSING_UNIT" for issue in fixable_issues(issues)):
            codes.add("FIXABLE")
        for code, (verb, *options), note in _ADVICE:
            if code in codes:
                words = note.format(rebuild=command("rebuild", self.here))
                return Advice(command(verb, self.here, None, *options), words)
        return None

    def repairs(
        self, name: str, issues: Sequence[Issue], asking: Sequence[str] = ()
    ) -> tuple[Advice, ...]:
        """Return the commands about a unit that call for no healing, each with a word for it."""
        codes, here = {issue.code for issue in issues}, self.here
        adopt = command("adopt", here, name if name in self.names else None)
        if "DRIFT" in codes:
            return Advice(adopt, "keep"), Advice(command("rebuild", here, name), "drop")
        if "CONFLICT" in codes:
            by_hand = Advice(f"correct the file, then {adopt}", "by hand")
            return Advice(command("rebuild", here), "our side"), by_hand
        if name not in self.names:
            return ()  # The issue says what to do.
        if "LEDGER" in codes:
            return (Advice(adopt, "record"),)
        if codes and codes <= {"MISSING_UNIT", "STALE"} and self.has_place(name):
            ask = Advice(command("generate", here, name, *asking), "generate")
            return (ask, Advice(adopt, "keep")) if "STALE" in codes else (ask,)
        return ()


def _kind_error(error: KindError) -> Issue:
    return Issue.of("KIND_ERROR", error.what, detail=error.trace or error.why or None)


def _short(value: object) -> str:
    return canonical_hash(value).removeprefix("sha256:")[:16]


def refuse_unknown(units: FileUnits, name: str, names: Collection[str]) -> None:
    """Raise a UsageError where a file has no unit of that name; it names near ones."""
    if name in names:
        return
    near = get_close_matches(name, names, n=3) or list(names)[:8]
    raise UsageError(
        f"{units.place} has no unit {name!r:.80}",
        why=f"close to it: {', '.join(near)}" if near else "no name in it is close",
        hint=f"name one of these; pytest --collect-only {units.here} lists all",
    )
