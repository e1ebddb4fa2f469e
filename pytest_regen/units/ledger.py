"""The ledger: what the repository remembers of each unit, one file per unit, so that it merges.

``.regen/units/<path of the file>/<slug>-<hash of the name>.json`` holds the prompt, the answer and
where it came from; a system prompt is kept once, in ``.regen/systems/<hash>.txt``; answers that
were replaced or rejected lie in ``.regen/history/``, which git ignores.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

from pytest_regen.canonical import text_hash
from pytest_regen.errors import StoreCorruptError
from pytest_regen.stores.strict_json import Node
from pytest_regen.turns.values import Usage
from pytest_regen.units.texts import sides
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from pytest_regen.commit import View

__all__ = [
    "FORMAT",
    "HAND",
    "Entry",
    "Ledger",
    "PastReason",
    "PastText",
    "as_bytes",
    "entry_name",
    "find_moved_ledger",
    "history_folder",
    "ledger_places",
    "now",
    "read_history",
    "slug",
    "system_name",
]

FORMAT: Final = 1
"""Raised when our own wording or reading changes; an entry of another format is not stale."""

HAND: Final = "hand"
"""The model of a text that somebody wrote."""

_UNITS: Final = ".regen/units"
_SYSTEMS: Final = ".regen/systems"
_HISTORY: Final = ".regen/history"
_LONGEST: Final = 60
_UNSAFE = re.compile(r"[^a-z0-9._-]+")
_MARKER = re.compile(rb"^<{7}(?: |$)", re.MULTILINE)
_LARGEST: Final = 16 * 1024 * 1024
_USAGE: Final = tuple(field.name for field in fields(Usage))

PastReason = Literal["replaced", "rejected", "restored", "adopted", "dropped", "forgotten"]
"""Why a text is not, or no longer, the recorded one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is remembered of one unit."""

    name: str
    """The unit's name in its file."""
    prompt: str
    """What was asked."""
    system_sha256: str
    """Of the system prompt, which lies in ``.regen/systems/``."""
    inputs_sha256: str
    """Of all that the unit was made from; another one makes it stale."""
    output: str
    """The text, as it stood when it was recorded."""
    model: str
    """Who answered, as the provider says; ``hand`` where somebody wrote the text."""
    provider: str | None
    """Who was asked, as ``module:name``; ``None`` where that was the Messages API."""
    attempt: int
    """Running number of the unit's texts."""
    generated_at: str
    """UTC, to the second."""
    usage: Usage = field(default_factory=Usage)
    """Of all calls that the text took: ``input_tokens``, ``output_tokens``, …, as far as they
    are known."""
    format: int = FORMAT
    """Raised when a release words prompts or reads replies differently."""

    def to_json(self) -> dict[str, Any]:
        """Return the content of the entry's file."""
        tokens = {key: value for key in _USAGE if (value := getattr(self.usage, key)) is not None}
        return {
            "format": self.format,
            "name": self.name,
            "prompt": self.prompt,
            "system_sha256": self.system_sha256,
            "inputs_sha256": self.inputs_sha256,
            "output": self.output,
            "model": self.model,
            "provider": self.provider,
            "attempt": self.attempt,
            "generated_at": self.generated_at,
            "tokens": tokens,
        }

    @classmethod
    def from_node(cls, node: Node) -> Self:
        """Return the entry that ``to_json`` wrote; raises StoreCorruptError."""
        tokens = node.node("tokens") if "tokens" in node else None
        return cls(
            node.text("name"),
            node.text("prompt"),
            node.text("system_sha256"),
            node.text("inputs_sha256"),
            node.text("output"),
            node.text("model"),
            node.optional_text("provider"),
            node.count("attempt", least=1),
            node.text("generated_at"),
            Usage(*(tokens.optional_count(key) for key in _USAGE)) if tokens else Usage(),
            node.count("format", FORMAT, least=1),
        )


@dataclass(frozen=True, slots=True)
class PastText:
    """A text that was replaced or rejected."""

    id: str
    """Name of its file without the suffix; sorts by time."""
    reason: PastReason
    """Why it is not the recorded text: ``replaced``, ``rejected``, ``restored``, ``adopted``,
    ``dropped`` or ``forgotten``."""
    entry: Entry
    """What was remembered of it."""
    issues: tuple[Issue, ...] = ()
    """What was wrong with it."""

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        issues = [issue.to_json() for issue in self.issues]
        return {"reason": self.reason, "issues": issues, **self.entry.to_json()}


def as_bytes(value: Any) -> bytes:
    """Return ``value`` as a ledger file holds it; half a surrogate pair is written as an escape."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def now() -> str:
    """Return the present moment as the ledger holds it: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _hash_of(name: str) -> str:
    return text_hash(name).removeprefix("sha256:")[:12]


def slug(name: str) -> str:
    """Return the readable part of a file's name that stands for a unit."""
    return _UNSAFE.sub("_", name.lower())[:_LONGEST].strip("_.-") or "unit"


def entry_name(place: str, name: str) -> str:
    """Return the ledger file of a unit, from the root of the project.

    Args:
        place: the unit's file, from the root, with forward slashes.
        name: the unit's.
    """
    return f"{_UNITS}/{place}/{slug(name)}-{_hash_of(name)}.json"


def system_name(digest: str) -> str:
    """Return the file that holds a system prompt, from the root of the project."""
    return f"{_SYSTEMS}/{digest.removeprefix('sha256:')}.txt"


def history_folder(place: str) -> str:
    """Return the folder with the past texts of a file's units, from the root of the project."""
    return f"{_HISTORY}/{place}"


class Ledger:
    """The entries of one file's units, read on first use."""

    def __init__(self, view: "View", place: str) -> None:
        self._view = view
        self.place = place

    @cached_property
    def _read(self) -> tuple[dict[str, Entry], dict[str, StoreCorruptError]]:
        entries: dict[str, Entry] = {}
        broken: dict[str, StoreCorruptError] = {}
        prefix = f"{_UNITS}/{self.place}/"
        for file in sorted(self._view.names(prefix, ".json")):
            # Another file's units may lie below, where this one's path is its folder.
            if "/" in file[len(prefix) :]:
                continue
            try:
                entry = _read_entry(self._view.read(file) or b"", self._view.root / file)
            except StoreCorruptError as error:
                broken[file] = error
            else:
                entries[entry.name] = entry
        return entries, broken

    def conflicts(self) -> Mapping[str, tuple[Entry, Entry]]:
        """Return our and their entry of each unit that git could not join, by name."""
        found = {}
        for file in self.broken:
            path = self._view.root / file
            try:
                text = (self._view.read(file) or b"").decode("utf-8")
                ours, theirs = (_read_entry(side.encode(), path) for side in sides(text))
            except (StoreCorruptError, UnicodeDecodeError):
                continue
            found[ours.name] = ours, theirs
        return found

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The entries that can be read, by name."""
        return self._read[0]

    @property
    def broken(self) -> Mapping[str, StoreCorruptError]:
        """What is wrong with the others, by file."""
        return self._read[1]

    def with_entries(self, entries: Mapping[str, Entry]) -> "Ledger":
        """Return the ledger with other entries for some units."""
        made = self.at(self.place)
        replaced = {entry_name(self.place, name) for name in entries}
        broken = {file: error for file, error in self.broken.items() if file not in replaced}
        made.__dict__["_read"] = {**self.entries, **entries}, broken
        return made

    def at(self, place: str) -> "Ledger":
        """Return the same entries as those of a file at ``place``."""
        made = Ledger(self._view, place)
        # As if the cached property had read them: the files hold none at this place yet.
        made.__dict__["_read"] = self._read
        return made

    def fault(self, name: str) -> StoreCorruptError | None:
        """Return why the entry of a unit cannot be read, if there is one that cannot."""
        return self.broken.get(entry_name(self.place, name)) if self.broken else None


def ledger_places(view: "View") -> list[str]:
    """Return the files of which the ledger has entries, from the root of the project."""
    prefix = f"{_UNITS}/"
    found = view.names(prefix, ".json")
    return sorted({file[len(prefix) :].rpartition("/")[0] for file in found})


def find_moved_ledger(view: "View", texts: Mapping[str, str]) -> Ledger | None:
    """Return the ledger of a file that was moved and has these texts now.

    That is the one whose own file is gone and most of whose texts are these; ``None`` unless there
    is exactly one.
    """
    found = []
    for other in ledger_places(view):
        # What stands there now may be a folder.
        if (view.root / other).exists() or view.read(other) is not None:
            continue
        ledger = Ledger(view, other)
        same = sum(texts.get(name) == entry.output for name, entry in ledger.entries.items())
        if same * 2 > len(ledger.entries):
            found.append(ledger)
    return found[0] if len(found) == 1 else None


def _read_entry(data: bytes, file: Path) -> Entry:
    entry = Entry.from_node(_node(data, file))
    if file.name != entry_name("", entry.name).rpartition("/")[2]:
        # Two files about one unit would hide each other.
        raise _corrupt(file, f"it is about {entry.name!r:.80}, which its file name is not made of")
    return entry


def _node(data: bytes, file: Path) -> Node:
    if len(data) > _LARGEST:
        raise _corrupt(file, f"{len(data):,} bytes are more than any unit has")
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _corrupt(file, f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        if marker := _MARKER.search(data):
            line = data.count(b"\n", 0, marker.start()) + 1
            raise _corrupt(file, f"a conflict marker of git, on line {line}") from None
        raise _corrupt(file, f"no JSON on line {error.lineno}: {error.msg}") from None
    except RecursionError:
        raise _corrupt(file, "nested too deeply to be read") from None
    except ValueError as error:
        raise _corrupt(file, str(error)) from None
    return Node(value, file)


def _corrupt(file: Path, what: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"{file}: {what}",
        hint="take one side (git checkout --ours, or --theirs), or record the text as it stands "
        "with pytest-regen adopt",
    )


def read_history(view: "View", place: str) -> Iterator[PastText]:
    """Yield the past texts of a file's units, oldest first.

    Raises:
        StoreCorruptError: one cannot be read.
    """
    for name in sorted(view.names(f"{history_folder(place)}/", ".json")):
        file = view.root / name
        node = _node(view.read(name) or b"", file)
        reason = node.text("reason")
        if reason not in get_args(PastReason):
            raise node.error("reason", f"unknown reason {reason!r}")
        try:
            issues = tuple(Issue.from_json(issue) for issue in node.list("issues", ()))
        except (AttributeError, KeyError, TypeError):
            raise node.error("issues", "no list of issues") from None
        yield PastText(file.name.removesuffix(".json"), reason, Entry.from_node(node), issues)  # type: ignore[arg-type]  # checked against the literal above
