"""Files as they were at a revision of git: ``HEAD~1:api.yaml``, ``main:generated/GET_kites``."""

import posixpath
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pytest_regen.errors import UsageError

_DESCRIPTIONS: Final = (".json", ".yaml", ".yml")


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
    revision, _, inner = text.partition(":")
    # A path wins, because Windows has colons in its paths, and git may have any name.
    if Path(text).exists():
        yield Path(text)
        return
    if not (revision and inner):
        raise UsageError(
            f"there is no {text}",
            hint="name a store, a folder of stores or an API description; at a revision of "
            "git: REVISION:PATH",
        )
    # Peeled, because a tag with a message is an object of its own.
    name = f"{revision}^{{commit}}"
    answer = _git("rev-parse", "--verify", "--quiet", "--end-of-options", name)
    if answer is None:
        raise UsageError(
            f"{text}: git knows no revision {revision!r} here",
            why="it is not a path either",
            hint="name a branch, a tag or a commit of the repository you are in, HEAD~1 for one",
        )
    commit = answer.decode().strip()
    prefix = (_git("rev-parse", "--show-prefix") or b"").decode().strip()
    # From here first, because that is how the same path without a revision is read.
    for start in dict.fromkeys((prefix, "")):
        place = posixpath.normpath(posixpath.join(start, inner))
        files = _files(commit, "" if place == "." else place)
        if files:
            break
    else:
        raise UsageError(
            f"{text}: there is no {inner} in {revision}",
            hint=f"git ls-tree -r --name-only {revision} lists what is there",
        )
    if place in files:
        # With its neighbours, because a description refers to files beside and below it.
        beside = _files(commit, posixpath.dirname(place))
        named = {path: blob for path, blob in beside.items() if path.endswith(_DESCRIPTIONS)}
        files = {**named, **files}
    with TemporaryDirectory(prefix="pytest-regen-") as copy:
        ids = "".join(f"{blob}\n" for blob in files.values())
        blobs = _git("cat-file", "--batch", stdin=ids.encode()) or b""
        # One process for all files, because a repository may hold thousands.
        for path in files:
            head, _, blobs = blobs.partition(b"\n")
            size = int(head.split()[-1])
            file = Path(copy, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(blobs[:size])
            blobs = blobs[size + 1 :]
        yield Path(copy, place)


def _files(commit: str, place: str) -> dict[str, str]:
    """Return the blobs of the plain files at or below a path, by their paths from the top."""
    below = ("--", place) if place else ()
    listed = _git("--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", commit, *below)
    files = {}
    for line in (listed or b"").decode("utf-8", "surrogateescape").split("\0"):
        head, _, path = line.partition("\t")
        # Links are not followed. Git itself refuses dots; a repository made by hand may hold them.
        if head.startswith("100") and ".." not in path.split("/"):
            files[path] = head.split()[2]
    return files


def _git(*words: str, stdin: bytes = b"") -> bytes | None:
    """Return what git prints; ``None`` where it refuses.

    Raises:
        UsageError: git is not installed.
    """
    command: Sequence[str] = ("git", *words)
    try:
        process = subprocess.run(command, input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        raise UsageError(
            "a revision is read by git, which is not installed",
            hint="install git, or name files that are there",
        ) from None
    return None if process.returncode else process.stdout
