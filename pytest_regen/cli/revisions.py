"""Files as they were at a revision of git: ``HEAD~1:api.yaml``, ``main:generated/GET_kites``."""

import posixpath
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from pytest_regen.errors import UsageError

_DESCRIPTIONS: Final = (".json", ".yaml", ".yml")
_FILE_MODES: Final = frozenset({"100644", "100755"})
"""Plain files; links and other repositories are not followed."""


class _Entry(NamedTuple):
    """One line of ``git ls-tree``."""

    mode: str
    kind: str
    id: str
    path: str
    """From the top of the repository."""


@contextmanager
def at_revision(text: str) -> Iterator[Path]:
    """Yield where a file or folder can be read: itself, or a copy of a revision of it.

    Args:
        text: a path, or ``REVISION:PATH``, the path seen from here or from the top of the
            repository. What exists under the whole text is a path. With a file come the JSON and
            YAML files in its folder and below, which it may refer to.

    Raises:
        UsageError: there is no such file; git is missing, or knows no such revision.
    """
    path = Path(text)
    revision, _, inner = text.partition(":")
    if path.exists() or not (revision and inner):
        if not path.exists():
            raise UsageError(
                f"there is no {text}",
                hint="name a store, a folder of stores or an API description; at a revision of "
                "git: REVISION:PATH",
            )
        yield path
        return
    name = f"{revision}^{{commit}}"
    answer = _git("rev-parse", "--verify", "--quiet", "--end-of-options", name)
    if answer is None:
        raise UsageError(
            f"{text}: git knows no revision {revision!r} here",
            why="it is no path either",
            hint="name a branch, a tag or a commit of the repository you are in, HEAD~1 for one",
        )
    commit = answer.decode().strip()
    top = _find(commit, inner)
    if top is None:
        raise UsageError(
            f"{text}: there is no {inner} in {revision}",
            hint=f"git ls-tree -r --name-only {revision} lists what is there",
        )
    folder = top.path if top.kind == "tree" else posixpath.dirname(top.path)
    entries = [
        entry
        for entry in _entries(commit, folder, recursive=True)
        if top.kind == "tree"
        or entry.path == top.path
        or entry.path.lower().endswith(_DESCRIPTIONS)
    ]
    with TemporaryDirectory(prefix="pytest-regen-") as copy:
        _write(entries, Path(copy))
        yield Path(copy, top.path)


def _find(commit: str, inner: str) -> _Entry | None:
    """Return the file or folder that is meant: seen from here, else from the top."""
    prefix = (_git("rev-parse", "--show-prefix") or b"").decode().strip()
    for start in dict.fromkeys((prefix, "")):
        place = posixpath.normpath(posixpath.join(start, inner))
        if place == ".":
            return _Entry("040000", "tree", commit, "")
        for entry in _entries(commit, place, recursive=False):
            if entry.path == place and (entry.kind == "tree" or entry.mode in _FILE_MODES):
                return entry
    return None


def _entries(commit: str, place: str, *, recursive: bool) -> list[_Entry]:
    options = ("-r",) if recursive else ()
    below = ("--", place) if place else ()
    listed = _git("--literal-pathspecs", "ls-tree", "-z", "--full-tree", *options, commit, *below)
    entries = []
    for line in (listed or b"").decode("utf-8", "surrogateescape").split("\0"):
        head, tab, path = line.partition("\t")
        if tab:
            mode, kind, blob = head.split()
            entries.append(_Entry(mode, kind, blob, path))
    return entries


def _write(entries: Iterable[_Entry], folder: Path) -> None:
    """Write the files of a revision below ``folder``."""
    files = [
        entry
        for entry in entries
        # Git itself refuses such names; a repository made by hand may hold them all the same.
        if entry.mode in _FILE_MODES and ".." not in entry.path.split("/")
    ]
    blobs = _git("cat-file", "--batch", stdin="".join(f"{e.id}\n" for e in files).encode()) or b""
    for entry in files:
        head, _, blobs = blobs.partition(b"\n")
        size = int(head.split()[-1])
        file = folder / entry.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(blobs[:size])
        blobs = blobs[size + 1 :]


def _git(*words: str, stdin: bytes = b"") -> bytes | None:
    """Return what git prints; ``None`` where it refuses.

    Raises:
        UsageError: git is not installed.
    """
    command: Sequence[str] = ("git", *words)
    try:
        process = subprocess.run(command, input=stdin, capture_output=True, check=False)  # noqa: S603 - git
    except FileNotFoundError:
        raise UsageError(
            "a revision is read by git, which is not installed",
            hint="install git, or name files that are there",
        ) from None
    return None if process.returncode else process.stdout
