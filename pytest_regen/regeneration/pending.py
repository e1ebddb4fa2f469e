"""``.regen/pending``: candidates that wait for review, one JSON file each.

What is read there may have come with a repository or as an artifact of CI, so that nothing in it is
believed: a candidate names a place, a piece and pages, and whoever accepts it looks for them in the
project. Its id is a digest of what it says; a file that says something else is not accepted.
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pytest_regen.canonical import canonical_hash
from pytest_regen.commit import AtomicFiles, View, new_id, now
from pytest_regen.errors import StoreCorruptError, StoreWriteError
from pytest_regen.files import is_linked, lock_file
from pytest_regen.strict_json import as_json
from pytest_regen.turns.values import TOKENS, Usage
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FOLDER: Final = ".regen/pending"
"""From the root of a project."""

Piece = tuple[str, str]
"""A place, from the root of the project, and the unit or type in it."""

# Digits of an id: a project has a handful of candidates, and each is looked for in all.
_ID: Final = 8


@dataclass(frozen=True)
class Output:
    """The new output of one page; a unit has one."""

    page: int
    """Counts from 1."""
    old: str | None
    """What stood there; ``None`` where there was nothing."""
    new: str
    model: str
    """Who answered, as the provider says."""
    provider: str | None
    """Who was asked, as ``module:name``; ``None`` where that was the Messages API."""
    stop_reason: str
    tokens: dict[str, int]

    @property
    def usage(self) -> Usage:
        """Tokens of the reply."""
        return Usage(*map(self.tokens.get, TOKENS))


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
    has_pages: bool
    """Whether it is a type, which has pages."""
    issues_before: tuple[Issue, ...]
    issues_after: tuple[Issue, ...]
    feedback: tuple[str, ...]
    """What the asking test reported, beyond the issues."""
    tests: tuple[str, ...]
    """The sources of the tests that the correction showed: a text made for them alone is weaker."""
    asked_by: str
    """The test item, or the command."""
    made_at: str = field(default_factory=now, kw_only=True)
    """UTC, to the second."""
    format: Literal[1] = field(default=1, kw_only=True)
    """Another one is of a newer version."""

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
        names = ("issues_before", "issues_after")
        issues = {name: [issue.to_json() for issue in getattr(self, name)] for name in names}
        return {"id": self.id, **asdict(self), **issues}


@cache
def _reader() -> "TypeAdapter[Candidate]":
    """Return what reads candidates, which takes longer to make than to use."""
    from pydantic import TypeAdapter

    return TypeAdapter(Candidate)


def _no_candidate(path: Path, what: str) -> StoreCorruptError:
    return StoreCorruptError(f"{path}: {what}", hint=f"remove {path}")


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
            # Nobody else's, because what a test has seen may be quoted there.
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
        return self._files.read(partial(self._read, marks=marks))

    def waits(self, candidate: Candidate) -> bool:
        """Return whether a candidate is still there."""
        return candidate.id in map(_id_in, self._files.read(self._names))

    def _read(self, view: View, *, marks: Collection[str] | None) -> Waiting:
        newest: dict[Piece, Candidate] = {}
        older: list[Candidate] = []
        faults: dict[Path, StoreCorruptError] = {}
        for name in self._names(view):
            if marks is not None and _mark_in(name) not in marks:
                continue
            try:
                candidate = _read_candidate(view, name)
            except StoreCorruptError as error:
                faults[view.root / name] = error
                continue
            before = newest.pop(candidate.piece, None)
            if before is not None and before.id != candidate.id:
                older.append(before)
            newest[candidate.piece] = candidate
        by_piece = sorted(newest.values(), key=lambda candidate: candidate.piece)
        return Waiting(tuple(by_piece), tuple(older), faults)

    def _names(self, view: View) -> list[str]:
        """Return the names of candidates' files, oldest first."""
        names = view.names(self._prefix, ".json")
        return sorted(name for name in names if "/" not in name.removeprefix(self._prefix))

    def change(self, *, add: Sequence[Candidate] = (), drop: Sequence[Candidate] = ()) -> None:
        """Add and remove candidates, all in one change.

        Args:
            add: those to write. One that waits already is the newest of its piece from now on.
            drop: those to remove; one that is gone already is fine.

        Raises:
            StoreWriteError: the folder cannot be written.
        """
        ids = {candidate.id for candidate in (*add, *drop)}
        # Read under the lock, because another process may add or drop candidates until then.
        with self._files.locked() as view:
            names = [name for name in self._names(view) if _id_in(name) in ids]
            contents: dict[str, bytes | None] = dict.fromkeys(names)
            for candidate in add:
                # Names sort by time; what is dropped with the old one is written with the new one.
                moment = new_id().partition("-")[0]
                name = f"{moment}-{_mark_of(candidate.piece)}-{candidate.id}.json"
                contents[self._prefix + name] = as_json(candidate.to_json())
            if contents:
                ignored = self._files.ignore_file(self._prefix.rstrip("/"))
                self._files.commit({**contents, **ignored})


def _mark_of(piece: Piece) -> str:
    """Return what names of files hold of a piece, so that not all have to be read for one."""
    return canonical_hash(piece).removeprefix("sha256:")[:_ID]


def _mark_in(name: str) -> str:
    return name.rpartition("-")[0].rpartition("-")[2]


def _id_in(name: str) -> str:
    return name.rpartition("-")[2].removesuffix(".json")


def _read_candidate(view: View, name: str) -> Candidate:
    from pydantic import ValidationError

    path = view.root / name
    # A candidate may come from elsewhere, because CI hands it over as an artifact: what is no
    # plain file could block the reader for ever, or lead out of the project. A file may also be
    # missing here, where a committed change is not in its place yet.
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise _no_candidate(path, "it is a link, or not a file")
    try:
        candidate = _reader().validate_json(view.read(name) or b"", strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _no_candidate(path, f"{where}: {first['msg']}".lstrip(": ")) from None
    # No path that leads elsewhere, because whoever made the file chose it.
    place = candidate.place
    is_odd = "\0" in place or (os.name == "nt" and not {*place}.isdisjoint("\\:"))
    if is_odd or not {"", ".", ".."}.isdisjoint(place.split("/")):
        raise _no_candidate(path, f"{place!r:.80} is not a path below the root of the project")
    # The id is a digest of what it says, so that an edit gives it another one.
    if (candidate.id, _mark_of(candidate.piece)) != (_id_in(name), _mark_in(name)):
        raise _no_candidate(path, f"it holds the candidate {candidate.id}")
    return candidate
