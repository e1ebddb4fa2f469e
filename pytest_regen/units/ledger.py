"""The ledger: what the repository remembers of each unit, one file per unit, so that it merges.

``.regen/units/<path of the file>/<slug>-<hash of the name>.json`` holds the answer and where it
came from; of its prompt the hash, where the working tree can compute the text again. A system
prompt is kept once, in ``.regen/systems/<hash>.txt``; answers that were replaced or rejected lie
in ``.regen/history/``, which git ignores.

A text that a person wrote is theirs: ``.regen/hand/<path of the file>`` has a line for it, with its
name and a hash of what it was written for, and no text. git joins such files by taking the lines of
both sides. A person's text that was a model's keeps a file of its own, which says whose it was.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, get_args

from pytest_regen.canonical import text_hash
from pytest_regen.errors import StoreCorruptError
from pytest_regen.modes import HAND
from pytest_regen.strict_json import Node, corrupt, parse_json
from pytest_regen.turns.values import TOKENS, Usage
from pytest_regen.units.naming import decode_name, encode_name
from pytest_regen.units.texts import sides
from pytest_regen.validation.issues import Issue, read_reason

if TYPE_CHECKING:
    from pytest_regen.commit import View

FORMAT: Final = 1
"""Raised when our own wording or reading changes; an entry of another format is not stale."""

_UNITS: Final = ".regen/units"
_BY_HAND: Final = ".regen/hand"
SYSTEMS: Final = ".regen/systems"
HISTORY: Final = ".regen/history"
_LONGEST: Final = 60
_UNSAFE = re.compile(r"[^a-z0-9._-]+")
_LINE = re.compile(r"([^\t]+)\t([0-9a-f]{16})")

PastReason = Literal["replaced", "rejected", "restored", "adopted", "dropped", "forgotten"]
"""Why a text is not, or no longer, the recorded one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is remembered of one unit."""

    name: str
    """The unit's name in its file."""
    output: str = ""
    """The text, as it stood when it was recorded."""
    model: str = HAND
    """Who answered, as the provider says; ``hand`` where somebody wrote the text."""
    provider: str | None = None
    """Who was asked, as ``module:name``; ``None`` where that was the Messages API."""
    attempt: int = 1
    """Running number of the unit's texts."""
    generated_at: str = ""
    """UTC, to the second."""
    usage: Usage = field(default_factory=Usage)
    """Of all calls that the text took: ``input_tokens``, ``output_tokens``, …, as far as they
    are known."""
    prompt_sha256: str = ""
    """The short hash of what was asked."""
    system_sha256: str = ""
    """Of the system prompt: how the name of its file in ``.regen/systems/`` begins."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """The short hash of each input, by its name; another one makes the unit stale."""
    inputs_sha256: str = ""
    """Of all inputs: in entries of older releases, which need not name each."""
    own_inputs: tuple[str, ...] = ()
    """Short hashes of what a person's text was written for; two where git joined two lines."""
    after: Mapping[str, str] | None = None
    """The ``model`` that wrote what a person edited, and its ``prompt_sha256``."""
    format: int = FORMAT
    """Raised when a release words prompts or reads replies differently."""

    @property
    def is_by_hand(self) -> bool:
        """Whether a person wrote the text: nothing is held against it but its checks."""
        return self.model == HAND

    @property
    def is_line(self) -> bool:
        """Whether a line of ``.regen/hand`` says all that is remembered."""
        return bool(self.own_inputs) and self.after is None

    def answers(self, prompt: str) -> bool:
        """Return whether it is this prompt that was answered."""
        return self.prompt_sha256 == short_hash(prompt)

    def to_json(self) -> dict[str, Any]:
        """Return the content of the entry's file, without what says nothing."""
        head = {"format": self.format, "name": self.name}
        if self.after is not None:
            own = list(self.own_inputs)
            return {**head, "by": HAND, "own_inputs": own, "after": dict(self.after)}
        data = {
            **head,
            "prompt_sha256": self.prompt_sha256,
            "system_sha256": self.system_sha256.removeprefix("sha256:")[:16],
            "inputs_sha256": "" if self.inputs else self.inputs_sha256,
            "output": self.output,
            "model": self.model,
            "provider": self.provider,
            "attempt": self.attempt if self.attempt > 1 else None,
            "generated_at": self.generated_at,
            "tokens": {key: count for key, count in self.usage.counts.items() if count},
            "inputs": dict(self.inputs),
        }
        # An empty text stays, because it was recorded as one.
        return {key: value for key, value in data.items() if value or key == "output"}

    @classmethod
    def from_node(cls, node: Node) -> Self:
        """Return the entry that ``to_json`` wrote; raises StoreCorruptError."""
        values = node.values(cls)
        if "by" in node:
            after = node.node("after")
            values["after"] = {key: after.text(key) for key in ("model", "prompt_sha256")}
            values["own_inputs"] = tuple(map(str, node.list("own_inputs", ())))
            return cls(**values)
        values |= {key: node.text(key) for key in ("output", "model")}
        # Older releases wrote the prompt itself, which the working tree says again.
        if "prompt" in node:
            values["prompt_sha256"] = short_hash(node.text("prompt"))
        if "tokens" in node:
            tokens = node.node("tokens")
            values["usage"] = Usage(*(tokens.count(key, 0) for key in TOKENS))
        if "inputs" in node:
            inputs = node.node("inputs")
            values["inputs"] = {key: inputs.text(key) for key in inputs}
        return cls(**values)


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
    page: ClassVar[int] = 1
    page_count: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """The unit."""
        return self.entry.name

    @property
    def model(self) -> str:
        """Who wrote it."""
        return self.entry.model

    @property
    def attempt(self) -> int:
        """Running number of the unit's texts."""
        return self.entry.attempt

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        issues = [issue.to_json() for issue in self.issues]
        return {"reason": self.reason, "issues": issues, **self.entry.to_json()}


def short_hash(text: str) -> str:
    """Return the 16 hex digits by which the ledger knows a text."""
    return text_hash(text).removeprefix("sha256:")[:16]


def slug(name: str) -> str:
    """Return the readable part of a file's name that stands for a unit."""
    return _UNSAFE.sub("_", name.lower())[:_LONGEST].strip("_.-") or "unit"


def entry_name(place: str, name: str) -> str:
    """Return the ledger file of a unit, from the root of the project.

    Args:
        place: the unit's file, from the root, with forward slashes.
        name: the unit's.
    """
    # The slug is for people; the hash is there because slugs of two names may be the same.
    return f"{_UNITS}/{place}/{slug(name)}-{short_hash(name)[:12]}.json"


def hand_name(place: str) -> str:
    """Return the file with a line for each text that a person wrote, from the project's root."""
    return f"{_BY_HAND}/{place}"


def hand_lines(lines: Mapping[str, tuple[str, ...]]) -> bytes:
    """Return the content of a file of ``.regen/hand``."""
    result = [
        f"{encode_name(name)}\t{hash_}\n" for name, hashes in lines.items() for hash_ in set(hashes)
    ]
    return "".join(sorted(result)).encode()


@dataclass(frozen=True)
class Ledger:
    """What is remembered of one file's units."""

    view: "View"
    place: str
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """The entries that can be read, by name."""
    broken: Mapping[str, StoreCorruptError] = field(default_factory=dict)
    """What is wrong with the others, by file."""
    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What ``.regen/hand`` has of each unit: the hashes of its lines, by name."""

    @classmethod
    def read(cls, view: "View", place: str) -> "Ledger":
        """Return the ledger of a file."""
        lines: dict[str, tuple[str, ...]] = {}
        broken: dict[str, StoreCorruptError] = {}
        file, prefix = hand_name(place), f"{_UNITS}/{place}/"
        # What stands there may be a folder, with the lines of files below this one's path.
        data = None if (view.root / file).is_dir() else view.read(file)
        text = (data or b"").decode("utf-8", "replace").replace("\r", "")
        for number, line in enumerate(text.split("\n"), 1):
            if match := _LINE.fullmatch(line):
                name = decode_name(match[1])
                lines[name] = (*lines.get(name, ()), match[2])
            elif line and not broken:
                what = f"no name with a hash: {line[:40]!r}"
                broken[file] = corrupt(view.root / file, f"line {number}", what)
        # Where a unit has an entry, too, a branch without it added the line: the entry counts.
        entries = {name: Entry(name, own_inputs=own) for name, own in lines.items()}
        for file in _files_in(view, prefix):
            try:
                entry = _read_entry(view.read(file) or b"", view.root / file)
                entries[entry.name] = entry
            except StoreCorruptError as error:
                broken[file] = error
        return cls(view, place, entries, broken, lines)

    def conflicts(self) -> Mapping[str, tuple[Entry, Entry]]:
        """Return our and their entry of each unit that git could not join, by name."""
        both = {}
        for file in self.broken:
            with suppress(StoreCorruptError, UnicodeDecodeError):
                text = (self.view.read(file) or b"").decode("utf-8")
                path = self.view.root / file
                ours, theirs = (_read_entry(side.encode(), path) for side in sides(text))
                both[ours.name] = ours, theirs
        return both

    def with_entries(self, entries: Mapping[str, Entry]) -> "Ledger":
        """Return the ledger with other entries for some units."""
        files = {entry_name(self.place, name) for name in entries}
        broken = {file: error for file, error in self.broken.items() if file not in files}
        # Else the next write, which goes by this ledger, would bring back the line of a text that
        # is a model's by now.
        lines = {name: hashes for name, hashes in self.lines.items() if name not in entries}
        return replace(self, entries={**self.entries, **entries}, broken=broken, lines=lines)

    def moved_to(self, place: str) -> dict[str, bytes | None]:
        """Return the files of the ledger and of the history where the file itself was moved to."""
        lines = hand_lines(self.lines) or None
        contents = {hand_name(self.place): None, hand_name(place): lines}
        for folder in (_UNITS, HISTORY):
            for name in _files_in(self.view, f"{folder}/{self.place}/"):
                contents[f"{folder}/{place}/{name.rpartition('/')[2]}"] = self.view.read(name)
                contents[name] = None
        return contents

    def fault(self, name: str) -> StoreCorruptError | None:
        """Return why the entry of a unit cannot be read, if there is one that cannot."""
        return self.broken.get(entry_name(self.place, name)) if self.broken else None


def _files_in(view: "View", folder: str) -> list[str]:
    """Return the files right in a folder: below it another file's may lie."""
    return sorted(name for name in view.names(folder) if "/" not in name[len(folder) :])


def ledger_places(view: "View") -> list[str]:
    """Return the files of which the ledger has entries, from the root of the project."""
    prefix = f"{_UNITS}/"
    entries = (file[len(prefix) :].rpartition("/")[0] for file in view.names(prefix, ".json"))
    by_hand = (file[len(_BY_HAND) + 1 :] for file in view.names(f"{_BY_HAND}/"))
    return sorted({*entries, *by_hand} - {""})


def find_moved_ledger(
    view: "View",
    names: Collection[str],
    is_same: Callable[[Entry], bool],
    is_left: Callable[[str, Ledger], bool],
) -> Ledger | None:
    """Return the ledger of a file that was moved, by most of its units; ``None`` unless one is it.

    Args:
        view: what the project's files hold.
        names: the units of the file that looks for its ledger.
        is_same: whether it has the unit of an entry.
        is_left: whether another file, if it is there at all, has none of its units any more.
    """
    ledgers = []
    files = {entry_name("", name).rpartition("/")[2] for name in names}
    named = {file.rpartition("/") for file in view.names(f"{_UNITS}/", ".json")}
    by_hand = view.names(f"{_BY_HAND}/")
    near = {folder[len(_UNITS) + 1 :] for folder, _, file in named if file in files}
    for other in ledger_places(view):
        # Reading all entries of all files would take seconds.
        if other not in near and hand_name(other) not in by_hand:
            continue
        ledger = Ledger.read(view, other)
        same = sum(map(is_same, ledger.entries.values()))
        # By most of them, because some may have been edited or taken out on the way.
        if same * 2 > len(ledger.entries) and is_left(other, ledger):
            ledgers.append(ledger)
    return ledgers[0] if len(ledgers) == 1 else None


def _read_entry(data: bytes, file: Path) -> Entry:
    entry = Entry.from_node(Node(parse_json(data, file), file))
    if file.name != entry_name("", entry.name).rpartition("/")[2]:
        # Two files about one unit would hide each other.
        what = f"it is about {entry.name!r:.80}, which its file name is not made of"
        raise corrupt(file, "", what)
    return entry


def read_history(view: "View", place: str) -> Iterator[PastText]:
    """Yield the past texts of a file's units, oldest first.

    Raises:
        StoreCorruptError: one cannot be read.
    """
    for name in sorted(view.names(f"{HISTORY}/{place}/", ".json")):
        file = view.root / name
        node = Node(parse_json(view.read(name) or b"", file), file)
        reason, issues = read_reason(node, get_args(PastReason))
        yield PastText(file.name.removesuffix(".json"), reason, Entry.from_node(node), issues)
