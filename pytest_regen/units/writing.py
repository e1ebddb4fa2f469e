"""Writing units: the file, the ledger and the history change together, or none of them does."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_regen.commit import AtomicFiles, new_id
from pytest_regen.errors import StoreWriteError
from pytest_regen.units.ledger import (
    Entry,
    PastReason,
    PastText,
    as_bytes,
    entry_name,
    hand_lines,
    hand_name,
    history_folder,
    now,
    slug,
    system_name,
)
from pytest_regen.units.texts import call_region, put_texts
from pytest_regen.units.view import FileUnits
from pytest_regen.validation.issues import Issue

_HISTORY = ".regen/history"
_IGNORED = b"*"


def hand_entry(units: FileUnits, name: str) -> Entry:
    """Return the entry of a text that a person wrote, for what it is for at this moment.

    Where the person edited a model's text, it says whose that was.

    Raises:
        KindError: the kind cannot say what the unit is made from.
    """
    old = units.entry(name)
    after = old.after if old else None
    if old is not None and not old.is_by_hand:
        after = {"model": old.model, "prompt_sha256": old.asked_sha256}
    return Entry(name, own_inputs=(units.own_hash(name),), after=after)


def renewed_entry(units: FileUnits, old: Entry) -> Entry:
    """Return the entry of a model's text that is right as it is, for the inputs of now.

    Raises:
        KindError: the kind cannot say what the unit is made from.
    """
    inputs = units.inputs(old.name)
    return replace(old, system_sha256=inputs.system_sha256, inputs=inputs.hashes)


@dataclass
class UnitWrite:
    """What is about to be written of one file's units; the caller holds the lock.

    Args:
        units: read under the lock.
        files: the project's files.
    """

    units: FileUnits
    files: AtomicFiles
    text: str | None = None
    """The whole file from now on; ``None`` where it stays."""
    _entries: dict[str, Entry | None] = field(default_factory=dict)
    _past: list[PastText] = field(default_factory=list)
    _kept_file: tuple[str, bytes] | None = None
    _dropped_files: list[str] = field(default_factory=list)
    _settles_lines: bool = False

    def record(self, entry: Entry) -> None:
        """Make an entry the unit's."""
        self._entries[entry.name] = entry

    def drop(self, name: str) -> None:
        """Remove the entry of a unit."""
        self._entries[name] = None

    def settle_file(self, name: str) -> None:
        """Remove a file of the ledger that cannot be read, or lines that say nothing."""
        if name == hand_name(self.units.ledger.place):
            self._settles_lines = True
        else:
            self._dropped_files.append(name)

    def keep_text(
        self, name: str, text: str, reason: PastReason, issues: Iterable[Issue] = ()
    ) -> str:
        """Put a text of a unit into the history; return its id there."""
        old = self.units.entry(name)
        if old is None or old.output != text:
            # Not what the ledger recorded: count it as written by hand.
            attempt = old.attempt if old else 1
            old = Entry(name, text, attempt=attempt, generated_at=now())
        return self.keep_entry(old, reason, issues)

    def keep_entry(self, entry: Entry, reason: PastReason, issues: Iterable[Issue] = ()) -> str:
        """Put an entry into the history; return its id there."""
        past = PastText(f"{new_id()}-{slug(entry.name)}", reason, entry, tuple(issues))
        self._past.append(past)
        return past.id

    def keep_file(self) -> str:
        """Put the whole file, as it stands, into the history; return its name there."""
        # Never ``.json``: what ends like that is read as the text of one unit.
        name = f"{new_id()}-{self.units.path.name}.kept"
        self._kept_file = name, self.units.data or b""
        return name

    def put(self, texts: Mapping[str, str]) -> None:
        """Put other texts into the file, all in one pass.

        Raises:
            SourceError: one of them cannot stand there.
        """
        units = self.units
        self.text = put_texts(units.kind, self.text_now, texts, units.names, units.place)

    def remove(self, names: Sequence[str]) -> bool:
        """Take units out of the file; return whether the region can."""
        remove = getattr(self.units.kind.region, "remove", None)
        if remove is not None and names:
            units = self.units
            self.text = call_region(
                units.kind, "remove", lambda: str(remove(self.text_now, names)), units.place
            )
        return remove is not None

    @property
    def text_now(self) -> str:
        """The file as it is going to be, as far as that is known."""
        return self.units.text if self.text is None else self.text

    def commit(self) -> None:
        """Write everything.

        Raises:
            StoreWriteError: the files cannot be written; they are as they were.
        """
        if contents := self.contents():
            self.files.commit({**contents, **self.beside()})

    def contents(self) -> dict[str, bytes | None]:
        """Return what the files are going to hold.

        Raises:
            StoreWriteError: the file's text has no bytes.
        """
        contents: dict[str, bytes | None] = {}
        units, place = self.units, self.units.place
        contents |= self._history()
        contents |= self._moves()
        contents |= dict.fromkeys(self._dropped_files, None)
        for name, entry in self._entries.items():
            is_file = entry is not None and not entry.is_line
            stored = as_bytes(units.to_store(entry).to_json()) if entry and is_file else None
            contents[entry_name(place, name)] = stored
        contents |= self._by_hand()
        if self.text is not None and self.text != units.text:
            contents[place] = self._encode(self.text)
        return contents

    def beside(self) -> dict[str, bytes | None]:
        """Return what is written for all units, and stays whatever becomes of these."""
        units, contents = self.units, dict[str, bytes | None]()
        recorded = [entry for entry in self._entries.values() if entry is not None]
        if any(entry.system_sha256 == units.system_sha256 for entry in recorded):
            system = units.kind.system.encode("utf-8", "surrogatepass")
            contents[system_name(units.system_sha256)] = system
        ignore = ".regen/.gitignore"
        # Locks once hid all of `.regen` from git; written in text mode, so with CRLF on Windows.
        if (units.files.read(ignore) or b"").strip() == _IGNORED:
            contents[ignore] = None
        is_code = units.kind.is_imported
        # Nothing is run of what is not code, and nothing is imported for that.
        if is_code or "pytest_regen.sandbox.processes" in sys.modules:
            from pytest_regen.sandbox.verdicts import level_to_remember

            contents |= level_to_remember(self.files.root, is_code=is_code)
        return contents

    def _by_hand(self) -> dict[str, bytes | None]:
        """Return the lines about texts by hand, where they change or move."""
        ledger, place = self.units.ledger, self.units.place
        lines = dict(ledger.lines)
        for name, entry in self._entries.items():
            lines.pop(name, None)
            if entry is not None and entry.is_line:
                lines[name] = entry.own_inputs
        made = hand_lines(lines)
        contents: dict[str, bytes | None] = {}
        if ledger.place != place:
            contents[hand_name(ledger.place)] = None
        elif lines == ledger.lines and not self._settles_lines:
            return {}
        return {**contents, hand_name(place): made or None}

    def _encode(self, text: str) -> bytes:
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise StoreWriteError(
                f"{self.units.place} cannot be written: {error.object[error.start]!r} is half a "
                "surrogate pair",
                why="no file can hold it as text",
                hint="correct the text",
            ) from None

    def _history(self) -> dict[str, bytes | None]:
        folder = history_folder(self.units.place)
        contents: dict[str, bytes | None] = {
            f"{folder}/{past.id}.json": as_bytes(past.to_json()) for past in self._past
        }
        if self._kept_file is not None:
            name, data = self._kept_file
            contents[f"{folder}/{name}"] = data
        if contents:
            contents |= self.files.ignore_file(_HISTORY)
        return contents

    def _moves(self) -> dict[str, bytes | None]:
        """Return the ledger and the history of a file that was moved, at their new places."""
        ledger, place = self.units.ledger, self.units.place
        if ledger.place == place:
            return {}
        contents: dict[str, bytes | None] = {}
        for entry in ledger.entries.values():
            if not entry.is_line:
                contents[entry_name(ledger.place, entry.name)] = None
                contents[entry_name(place, entry.name)] = as_bytes(entry.to_json())
        for file in ledger.broken:
            if file != hand_name(ledger.place):
                contents[file.replace(ledger.place, place, 1)] = self.units.files.read(file)
                contents[file] = None
        old = f"{history_folder(ledger.place)}/"
        for name in sorted(self.units.files.names(old)):
            contents[f"{history_folder(place)}/{name[len(old) :]}"] = self.units.files.read(name)
            contents[name] = None
        return contents
