"""What a claimed file holds at one moment, and what is wrong with each of its units."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_regen.canonical import canonical_hash, file_hash, source_hash, text_hash
from pytest_regen.errors import KindError, SourceError
from pytest_regen.units.kind import Kind, Unit, call_kind, issues_from, quoted
from pytest_regen.units.ledger import Entry, Ledger, entry_name, moved_ledger
from pytest_regen.units.naming import adopt_command, rebuild_command
from pytest_regen.units.texts import UnitText, find_texts, put_text, same_text, sides, texts_or_none
from pytest_regen.validation.issues import Excerpt, Issue, ValidationResult

if TYPE_CHECKING:
    from pytest_regen.units.commit import View as FilesView

__all__ = ["FileUnits", "Inputs"]

_SHOWN: Final = 120
_CONFLICT: Final = re.compile(r"^(?:<{7}|>{7})(?: |$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a unit was, or would be, made from."""

    system_sha256: str
    inputs_sha256: str


class FileUnits:
    """The units of one file. A value: nothing changes it.

    Args:
        kind: claims the file.
        place: the file, from the root of the project, with forward slashes.
        files: what the project's files hold.
    """

    def __init__(self, kind: Kind, place: str, files: "FilesView") -> None:
        self.kind = kind
        self.place = place
        self.files = files
        self.path: Path = files.root / place
        self._found: dict[str, tuple[Issue, ...]] = {}
        """What is wrong with each unit that was looked at."""
        self._unplaced: dict[str, Issue] = {}
        """Candidates that could not be put into the file, and why."""
        self._hashes: dict[Path, str | None] = {}

    # What stands in the file

    @cached_property
    def data(self) -> bytes | None:
        """What the file holds; ``None`` where there is none."""
        return self.files.read(self.place)

    @cached_property
    def text(self) -> str:
        """The text of the file; empty where it is absent or no text."""
        try:
            return (self.data or b"").decode("utf-8")
        except UnicodeDecodeError:
            return ""

    @cached_property
    def fault(self) -> Issue | None:
        """Why no unit of the file can be told from another."""
        if self._not_text:
            return Issue.of("SYNTAX", self._not_text)
        try:
            _ = self._read
        except SourceError as error:
            line = getattr(error, "line", 0) or None
            return Issue.of("SYNTAX", f"{error.what}", line=line, detail=error.why or None)
        return None

    @property
    def _not_text(self) -> str:
        try:
            (self.data or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            return f"{self.place} is no UTF-8 text: {error.reason} at byte {error.start}"
        return ""

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
        try:
            found = call_kind(
                self.kind, "units", lambda: list(self.kind.units(self.path)), where=self.place
            )
        except KindError as error:
            if isinstance(error.__cause__, SourceError):
                return ()  # The default reads the file, whose fault has its own words.
            raise
        names: list[object] = list(found)
        for name in names:
            if not isinstance(name, str) or not name:
                raise self._unusable("units", self.place, name, "a name is a text, and not empty")
        return tuple(dict.fromkeys(found))

    # What is remembered

    @cached_property
    def ledger(self) -> Ledger:
        """The entries of the file, also where it was moved since they were written."""
        own = Ledger(self.files, self.place)
        if own.entries or own.broken or self.data is None:
            return own
        texts = {name: one.text for name, one in self.texts.items()}
        return moved_ledger(self.files, texts) or own

    def entry(self, name: str) -> Entry | None:
        """Return what is remembered of a unit."""
        return self.ledger.entries.get(name)

    # What is asked

    def bare_unit(self, name: str) -> Unit:
        """Return a unit as ``prompt`` and ``inputs`` see it: without any text."""
        return Unit(name, self.path, "", "", self.kind)

    def unit(self, name: str) -> Unit:
        """Return a unit as ``check`` sees it."""
        found = self.texts.get(name)
        return Unit(name, self.path, found.text if found else "", self.text, self.kind)

    def prompt(self, name: str) -> str:
        """Return what is asked for; raises KindError."""
        text = call_kind(
            self.kind, "prompt", lambda: self.kind.prompt(self.bare_unit(name)), where=name
        )
        given: object = text
        if not isinstance(given, str) or not given.strip():
            raise self._unusable("prompt", name, given, "a prompt is a text, and not empty")
        return given

    def inputs(self, name: str) -> Inputs:
        """Return the hashes of what a unit would be made from now; raises KindError."""
        given = call_kind(
            self.kind, "inputs", lambda: list(self.kind.inputs(self.bare_unit(name))), where=name
        )
        parts: list[object] = []
        for one in given:
            if isinstance(one, Path):
                parts.append([self._hash(one)])
            elif isinstance(one, str):
                parts.append(one)
            else:
                raise self._unusable("inputs", name, one, "each is a text, or a Path to hash")
        system = self.system_sha256
        return Inputs(system, canonical_hash([parts, system, self._settings_sha256]))

    @cached_property
    def system_sha256(self) -> str:
        """The hash of the system prompt."""
        return text_hash(self.kind.system)

    @cached_property
    def _settings_sha256(self) -> str:
        return canonical_hash(dict(self.kind.settings))

    def _hash(self, path: Path) -> str | None:
        """Return the hash of an input's file, over LF line ends; ``None`` where there is none."""
        path = self.files.root / path
        if path not in self._hashes:
            try:
                data = path.read_bytes()
            except OSError:
                self._hashes[path] = None
            else:
                try:
                    self._hashes[path] = source_hash(data.decode("utf-8"))
                except UnicodeDecodeError:
                    self._hashes[path] = file_hash(data)
        return self._hashes[path]

    def _unusable(self, method: str, name: str, given: object, wanted: str) -> KindError:
        return KindError(
            f"{self.kind.title}.{method} gives {given!r:.80} for {name}",
            trace="",
            why=wanted,
            hint=f"correct {type(self.kind).__module__}.{type(self.kind).__qualname__}.{method}",
        )

    # What is wrong

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return everything that is wrong with a unit, warnings too; judged once."""
        if name not in self._found:
            self._found[name] = tuple(self._judge(name))
        return self._found[name]

    def result(self, name: str) -> ValidationResult:
        """Return what is wrong with a unit."""
        return ValidationResult(self.issues(name))

    def _judge(self, name: str) -> Iterable[Issue]:
        if self.fault is not None:
            yield self._conflict(name) or replace(self.fault, type_name=name)
            return
        if name in self._unplaced:
            yield self._unplaced[name]
            return
        try:
            yield from self._judged(name)
        except KindError as error:
            yield Issue.of(
                "KIND_ERROR", error.what, type_name=name, detail=error.trace or error.why or None
            )

    def _judged(self, name: str) -> Iterable[Issue]:
        found, entry = self.texts.get(name), self.entry(name)
        line = found.line or None if found else None
        unit = self.unit(name)
        if found is None or _is_blank(self.kind, unit):
            yield self._missing(name, found, entry)
            return
        fault = self.ledger.fault(name)
        if fault is not None:
            yield Issue.of("LEDGER", fault.what, type_name=name, line=line)
        elif entry is None:
            yield Issue.of(
                "UNRECORDED",
                "no entry of the ledger says where this text came from",
                type_name=name,
                line=line,
            )
        elif not same_text(self.kind, entry.output, unit.text):
            yield Issue.of(
                "DRIFT",
                "the text is not the recorded one: somebody edited it",
                type_name=name,
                line=line,
                detail=f"recorded: {_clipped(entry.output)}\nstands:   {_clipped(unit.text)}",
            )
        yield from self._check(unit, found.line)
        if entry is not None and self.inputs(name).inputs_sha256 != entry.inputs_sha256:
            yield Issue.of(
                "STALE",
                "what it was made from has changed since",
                type_name=name,
                line=line,
            )

    def _missing(self, name: str, found: UnitText | None, entry: Entry | None) -> Issue:
        if found is not None:
            message = "only a stub stands there"
        elif self.data is None:
            message = f"{self.place} is not there"
        else:
            message = "it is not in the file"
        detail = None
        if entry is not None:
            place = self.place
            detail = f"its recorded text is put back by: {rebuild_command(place, name)}"
        elif found is None and getattr(self.kind.region, "insert", None) is None:
            describe = getattr(self.kind.region, "describe", None)
            detail = str(describe(name)) if describe else "write its place into the file by hand"
        return Issue.of(
            "MISSING_UNIT",
            message,
            type_name=name,
            detail=detail,
            line=found.line or None if found else None,
        )

    def _check(self, unit: Unit, first_line: int) -> Iterable[Issue]:
        found = call_kind(
            self.kind, "check", lambda: issues_from(self.kind.check(unit), unit), where=unit.name
        )
        lines = unit.text.splitlines() or [""]
        for issue in found:
            at = issue.line if issue.line and 1 <= issue.line <= len(lines) else None
            excerpt = None
            if at is not None or len(lines) == 1:
                excerpt = Excerpt(at or 1, lines[(at or 1) - 1])
            line = first_line + (at or 1) - 1 if first_line else None
            yield replace(issue, line=line, excerpt=issue.excerpt or excerpt)

    @property
    def has_conflict(self) -> bool:
        """Whether the file holds conflict markers of git."""
        return bool(_CONFLICT.search(self.text))

    def _conflict(self, name: str) -> Issue | None:
        """Return the issue of a unit in a file that git could not join."""
        marker = _CONFLICT.search(self.text)
        if marker is None:
            return None
        line = self.text.count("\n", 0, marker.start()) + 1
        if name not in self.conflicting:
            message = f"{self.place} holds conflict markers of git; both sides have this unit alike"
            return Issue.of("CONFLICT", message, type_name=name, line=line)
        ours, theirs = self._sides
        return Issue.of(
            "CONFLICT",
            f"git could not join two versions of {self.place}",
            type_name=name,
            line=line,
            detail=f"ours:   {_clipped(_text_in(ours, name))}\n"
            f"theirs: {_clipped(_text_in(theirs, name))}",
        )

    @cached_property
    def conflicting(self) -> frozenset[str]:
        """The units that differ between the two sides of a file with conflict markers."""
        ours, theirs = self._sides
        return frozenset(
            name for name in {*ours, *theirs} if _text_in(ours, name) != _text_in(theirs, name)
        )

    @cached_property
    def _sides(self) -> tuple[Mapping[str, UnitText], Mapping[str, UnitText]]:
        ours, theirs = sides(self.text)
        return texts_or_none(self.kind, ours), texts_or_none(self.kind, theirs)

    # What nobody asked for

    @cached_property
    def orphans(self) -> tuple[Issue, ...]:
        """Texts and entries of the ledger whose names the kind does not give."""
        named = set(self.names)
        in_file = [name for name in self.texts if name not in named]
        recorded = [name for name in self.ledger.entries if name not in named]
        found = [
            Issue.of(
                "ORPHAN",
                _orphan_words(
                    name, is_in_file=name in self.texts, is_recorded=name in self.ledger.entries
                ),
                type_name=name,
                line=(self.texts[name].line or None) if name in self.texts else None,
            )
            for name in dict.fromkeys((*in_file, *recorded))
        ]
        found += [Issue.of("ORPHAN", self.ledger.broken[file].what) for file in self.unasked_files]
        return tuple(found)

    @property
    def unasked_files(self) -> tuple[str, ...]:
        """Files of the ledger that cannot be read and belong to no unit that is asked for."""
        if not self.ledger.broken:
            return ()
        asked = {entry_name(self.ledger.place, name) for name in self.names}
        return tuple(file for file in self.ledger.broken if file not in asked)

    # What may come of it

    def obstacle(self, name: str) -> str:
        """Return why a unit must not be asked for; empty where it may."""
        if self.path.is_symlink():
            return f"{self.place} is a symbolic link; replace it by the file itself"
        found = {issue.code: issue for issue in self.issues(name)}
        keep = f"keep it: {adopt_command(self.place, name)}"
        if "DRIFT" in found:
            return f"it was edited by hand; {keep}; drop it: {rebuild_command(self.place, name)}"
        if "KIND_ERROR" in found:
            return found["KIND_ERROR"].message
        if "LEDGER" in found:
            return f"{found['LEDGER'].message}; {keep}"
        if self.fault is not None:
            return f"{found.get('CONFLICT', self.fault).message}: correct the file first"
        return ""

    def with_texts(
        self, texts: Mapping[str, str], entries: Mapping[str, Entry] | None = None
    ) -> "FileUnits":
        """Return the file with other texts for some units; only those are judged anew.

        Args:
            texts: by the names of the units; those that are not there are inserted.
            entries: what the ledger would say of them.
        """
        made = FileUnits(self.kind, self.place, self.files)
        made._hashes = self._hashes
        made.__dict__["names"] = self.names
        now, placed = self.text, {}
        for name, text in texts.items():
            if _is_blank(self.kind, replace(self.unit(name), text=text)):
                made._unplaced[name] = Issue.of(
                    "EMPTY_OUTPUT", "the reply holds no text", type_name=name
                )
                continue
            put = put_text(self.kind, now, name, text, self.names, place=self.place)
            if isinstance(put, Issue):
                lines = text.splitlines() or [""]
                excerpt = Excerpt(1, lines[0]) if len(lines) == 1 else None
                made._unplaced[name] = replace(put, excerpt=excerpt)
                continue
            now, placed[name] = put, text
        made.__dict__["text"] = now
        made.__dict__["data"] = now.encode("utf-8", "surrogatepass") if placed else self.data
        ledger = Ledger(self.files, self.ledger.place)
        ledger.__dict__["_read"] = (
            {**self.ledger.entries, **{n: e for n, e in (entries or {}).items() if n in placed}},
            {
                file: error
                for file, error in self.ledger.broken.items()
                if file not in {entry_name(ledger.place, name) for name in placed}
            },
        )
        made.__dict__["ledger"] = ledger
        made._found = {name: found for name, found in self._found.items() if name not in texts}
        return made

    @property
    def unplaced(self) -> Mapping[str, Issue]:
        """The candidates that could not be put into the file, and why."""
        return self._unplaced


def _is_blank(kind: Kind, unit: Unit) -> bool:
    return bool(call_kind(kind, "is_empty", lambda: kind.is_empty(unit), where=unit.name))


def _text_in(found: Mapping[str, UnitText], name: str) -> str:
    return found[name].text if name in found else ""


def _clipped(text: str) -> str:
    shown = quoted(text)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def _orphan_words(name: str, *, is_in_file: bool, is_recorded: bool) -> str:
    where = " and ".join(
        word
        for word, there in (("in the file", is_in_file), ("in the ledger", is_recorded))
        if there
    )
    return f"{name!r:.80} is {where}, and nothing asks for it"
