"""``.regen/pending``: candidates that wait for review, one JSON file each.

What is read there may have come with a repository or as an artifact of CI, so that nothing in it is
believed: a candidate names a place, a piece and pages, and whoever accepts it looks for them in the
project. Its id is a digest of what it says; a file that says something else is not accepted.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Self

from pytest_regen.canonical import canonical_hash
from pytest_regen.commit import AtomicFiles, View, new_id
from pytest_regen.errors import ReviewError, StoreCorruptError, StoreWriteError
from pytest_regen.files import is_linked, lock_file
from pytest_regen.strict_json import Node, as_json, parse_json
from pytest_regen.turns.values import TOKENS, Usage
from pytest_regen.validation.issues import Issue

FOLDER: Final = ".regen/pending"
"""From the root of a project."""

Piece = tuple[str, str]
"""A place, from the root of the project, and the unit or type in it."""

_FORMAT: Final = 1
_ID: Final = 8
"""Digits of an id: a project has a handful of candidates, and each is looked for in all."""
_LARGEST: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Output:
    """The new output of one page; a unit has one."""

    page: int
    """Counts from 1."""
    old: str | None
    """What stood there; ``None`` where there was nothing."""
    new: str
    model: str
    """Who answered, as the provider says."""
    provider: str | None = None
    """Who was asked, as ``module:name``; ``None`` where that was the Messages API."""
    stop_reason: str = ""
    request: str = ""
    """Digest of what was asked, corrections included; cassettes hold the words."""
    usage: Usage = field(default_factory=Usage)

    def to_json(self) -> dict[str, Any]:
        """Return the output as a candidate's file holds it."""
        return {
            "page": self.page,
            "old": self.old,
            "new": self.new,
            "model": self.model,
            "provider": self.provider,
            "stop_reason": self.stop_reason,
            "request": self.request,
            "tokens": self.usage.counts,
        }

    @classmethod
    def from_node(cls, node: Node) -> Self:
        """Return the output that ``to_json`` wrote; raises StoreCorruptError."""
        tokens = node.node("tokens")
        return cls(
            node.count("page", least=1),
            node.optional_text("old"),
            node.text("new"),
            node.text("model"),
            node.optional_text("provider"),
            node.text("stop_reason"),
            node.text("request"),
            Usage(*(tokens.optional_count(key) for key in TOKENS)),
        )


@dataclass(frozen=True)
class Candidate:
    """New outputs of one piece that would have been kept."""

    place: str
    """A file with units, or the folder of a store, from the root with forward slashes."""
    name: str
    """The unit or type."""
    basis: str
    """Digest of what stood there and of what was asked; see ``View.basis``."""
    outputs: tuple[Output, ...]
    """By page, at least one."""
    has_pages: bool = False
    """Whether it is a type, which has pages."""
    issues_before: tuple[Issue, ...] = ()
    issues_after: tuple[Issue, ...] = ()
    feedback: tuple[str, ...] = ()
    """What the asking test reported, beyond the issues."""
    tests: tuple[str, ...] = ()
    """The sources of the tests that the correction showed: a text made for them alone is weaker."""
    asked_by: str = ""
    """The test item, or the command."""
    made_at: str = ""
    """UTC, to the second."""

    @cached_property
    def id(self) -> str:
        """What people call it: a digest of what is put where."""
        texts = [[output.page, output.new] for output in self.outputs]
        digest = canonical_hash([self.place, self.name, self.basis, texts])
        return digest.removeprefix("sha256:")[:_ID]

    @property
    def piece(self) -> Piece:
        """What it is a candidate for; of one piece, the newest waits."""
        return self.place, self.name

    @property
    def usage(self) -> Usage:
        """Tokens of the replies that it is made of."""
        return sum((output.usage for output in self.outputs), Usage())

    def to_json(self) -> dict[str, Any]:
        """Return the content of the candidate's file."""
        return {
            "format": _FORMAT,
            "id": self.id,
            "place": self.place,
            "name": self.name,
            "has_pages": self.has_pages,
            "asked_by": self.asked_by,
            "made_at": self.made_at,
            "issues_before": [issue.to_json() for issue in self.issues_before],
            "issues_after": [issue.to_json() for issue in self.issues_after],
            "feedback": list(self.feedback),
            "tests": list(self.tests),
            "basis": self.basis,
            "outputs": [output.to_json() for output in self.outputs],
        }

    @classmethod
    def from_json(cls, data: object, file: Path) -> Self:
        """Return the candidate that ``to_json`` wrote.

        Raises:
            StoreCorruptError: it is none; the message names ``file``.
        """
        node = Node(data, file)
        if node.count("format", least=1) != _FORMAT:
            raise node.error("format", f"only format {_FORMAT} is known: update pytest-regen")
        outputs = tuple(
            Output.from_node(Node(entry, file, f"$.outputs[{number}]"))
            for number, entry in enumerate(node.list("outputs"))
        )
        candidate = cls(
            node.text("place"),
            node.text("name"),
            node.text("basis"),
            outputs,
            node.flag("has_pages"),
            _issues(node, "issues_before"),
            _issues(node, "issues_after"),
            tuple(map(str, node.list("feedback"))),
            tuple(map(str, node.list("tests"))),
            node.text("asked_by"),
            node.text("made_at"),
        )
        if not outputs or len({output.page for output in outputs}) < len(outputs):
            raise node.error("outputs", "a candidate has each of its pages once")
        if why := _place_fault(candidate.place):
            raise node.error("place", why)
        if candidate.id != node.text("id"):
            raise node.error(
                "id", f"what it says makes the id {candidate.id}: it was edited, or is torn"
            )
        return candidate


def _issues(node: Node, key: str) -> tuple[Issue, ...]:
    try:
        issues = tuple(Issue.from_json(issue) for issue in node.list(key))
    except (AttributeError, KeyError, TypeError):
        raise node.error(key, "no list of issues") from None
    for issue in issues:
        texts = (issue.type_name, issue.detail, issue.field, issue.file, issue.severity)
        numbers = (issue.page, issue.line)
        if not all(isinstance(text, str | None) for text in texts) or not all(
            type(number) in {int, type(None)} for number in numbers
        ):
            raise node.error(key, "no list of issues")
    return issues


def _place_fault(place: str) -> str:
    """Return why a place is not one below the root of a project; empty where it is."""
    parts = place.split("/")
    is_plain = not any(part in {"", ".", ".."} for part in parts) and "\0" not in place
    if is_plain and not (os.name == "nt" and set(place) & set("\\:")):
        return ""
    return f"{place!r:.80} is no path below the root of the project"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits in a folder."""

    candidates: tuple[Candidate, ...] = ()
    """Of each piece the newest, by place and name."""
    older: tuple[Candidate, ...] = ()
    """Others of the same pieces, which a process was killed before it could put aside."""
    faults: Mapping[Path, StoreCorruptError] = field(default_factory=dict)
    """Files that hold no candidate, and why."""


class PendingFolder:
    """A folder with candidates.

    Args:
        path: the folder, which need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        real = path.resolve()
        self._prefix = f"{real.name}/"
        self._files = AtomicFiles(
            real.parent,
            what=f"the candidates in {path}",
            lock=lock_file(real),
            journal=f"{self._prefix}.journal",
            aside=f"{self._prefix}.aside",
            mode=0o600,
        )

    @classmethod
    def of_project(cls, root: Path) -> Self:
        """Return the folder of a project.

        Raises:
            StoreWriteError: it is a link, which a repository may have set.
        """
        path = root / FOLDER
        if is_linked(path):
            raise StoreWriteError(
                f"{path} is a symbolic link, or lies in one",
                why="candidates would be written outside of the project",
                hint="remove the link",
            )
        return cls(path)

    def read(self, pieces: Iterable[Piece] | None = None) -> Waiting:
        """Return what waits; files that hold no candidate are faults of it.

        Args:
            pieces: read the candidates of these alone; by default all.
        """
        marks = None if pieces is None else {_mark_of(piece) for piece in pieces}
        try:
            return self._files.read(partial(self._read, marks=marks))
        except OSError as error:
            raise ReviewError(
                f"{self.path} cannot be read: {error.strerror or error}",
                hint="make it readable, then run the same command again",
            ) from error

    def waits(self, candidate: Candidate) -> bool:
        """Return whether a candidate is still there."""
        names = self._files.read(self._names)
        return any(_id_in(name) == candidate.id for name in names)

    def _read(self, view: View, *, marks: Collection[str] | None) -> Waiting:
        newest: dict[Piece, Candidate] = {}
        older: list[Candidate] = []
        faults: dict[Path, StoreCorruptError] = {}
        for name in self._names(view):
            if marks is not None and _mark_in(name) not in marks:
                continue
            path = view.root / name
            try:
                candidate = _read_candidate(view, name)
            except StoreCorruptError as error:
                faults[path] = error
                continue
            before = newest.pop(candidate.piece, None)
            if before is not None and before.id != candidate.id:
                older.append(before)
            newest[candidate.piece] = candidate
        by_piece = sorted(newest.values(), key=lambda candidate: candidate.piece)
        return Waiting(tuple(by_piece), tuple(older), faults)

    def _names(self, view: View) -> list[str]:
        """Return the names of candidates' files, oldest first."""
        if not self.path.is_dir():
            return []
        names = (
            name
            for name in view.names(self._prefix, ".json")
            if "/" not in name.removeprefix(self._prefix)
        )
        return sorted(names)

    @contextmanager
    def changing(self) -> Iterator["PendingChange"]:
        """Lock the folder; candidates are added and dropped meanwhile.

        Raises:
            StoreWriteError: it cannot be written.
        """
        with self._files.locked() as view:
            yield PendingChange(self._files, self._prefix, view, self._names(view))


class PendingChange:
    """A folder of candidates that is locked for writing."""

    def __init__(self, files: AtomicFiles, prefix: str, view: View, names: Sequence[str]) -> None:
        self._files = files
        self._prefix = prefix
        self._ids: dict[str, list[str]] = {}
        for name in names:
            self._ids.setdefault(_id_in(name), []).append(name)
        self._view = view

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Write candidates. One that waits already is the newest of its piece from now on.

        Raises:
            ReviewError: one is larger than what is read.
        """
        contents: dict[str, bytes | None] = {}
        for candidate in candidates:
            contents |= dict.fromkeys(self._ids.get(candidate.id, ()), None)
            # Names sort by time; what is dropped with the old one is written with the new one.
            moment_ = new_id().partition("-")[0]
            name = f"{self._prefix}{moment_}-{_mark_of(candidate.piece)}-{candidate.id}.json"
            contents[name] = as_json(candidate.to_json())
            if len(contents[name] or b"") > _LARGEST:
                raise ReviewError(
                    f"the candidate for {candidate.place}::{candidate.name} cannot wait",
                    why=f"its file would be larger than {_LARGEST:,} bytes, which review refuses",
                    hint="ask again, for less",
                )
        if contents:
            self._files.commit({**contents, **self._files.ignore_file(self._prefix.rstrip("/"))})

    def put_aside(self, candidates: Iterable[Candidate]) -> None:
        """Keep candidates that no history can take: nothing asks for their pieces any more."""
        contents: dict[str, bytes | None] = {}
        for candidate in candidates:
            for name in self._ids.pop(candidate.id, ()):
                target = f"{self._files.aside}/{name.removeprefix(self._prefix)}"
                contents |= {name: None, target: as_json(candidate.to_json())}
        self._files.commit(contents)

    def drop(self, candidates: Iterable[Candidate]) -> None:
        """Remove candidates; one that is gone already is fine."""
        names = [name for candidate in candidates for name in self._ids.get(candidate.id, ())]
        self._files.commit(dict.fromkeys(names, None))


def _mark_of(piece: Piece) -> str:
    """Return what names of files hold of a piece, so that not all have to be read for one."""
    return canonical_hash(piece).removeprefix("sha256:")[:_ID]


def _mark_in(name: str) -> str:
    return name.rpartition("-")[0].rpartition("-")[2]


def _id_in(name: str) -> str:
    return name.rpartition("-")[2].removesuffix(".json")


def _read_candidate(view: View, name: str) -> Candidate:
    path = view.root / name
    # A candidate may come from elsewhere, because CI hands it over as an artifact: what is no
    # plain file could block the reader for ever, or lead out of the project.
    try:
        facts = path.lstat()
    except FileNotFoundError:
        pass  # A committed change that is not in its place yet.
    else:
        if not stat.S_ISREG(facts.st_mode):
            raise _no_candidate(path, "it is no file, or a link")
        if facts.st_size > _LARGEST:
            raise _no_candidate(path, f"{facts.st_size:,} bytes are more than any candidate has")
    candidate = Candidate.from_json(parse_json(view.read(name) or b"", path), path)
    if (candidate.id, _mark_of(candidate.piece)) != (_id_in(name), _mark_in(name)):
        raise _no_candidate(path, f"it holds the candidate {candidate.id}")
    return candidate


def _no_candidate(path: Path, what: str) -> StoreCorruptError:
    return StoreCorruptError(f"{path}: {what}", hint=f"remove {path}")


def moment() -> str:
    """Return the present moment as candidates hold it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
