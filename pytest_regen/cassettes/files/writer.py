"""Writing of cassettes: recordings are appended to a partial file, promoted whole, without keys."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_regen.cassettes.files import storage
from pytest_regen.cassettes.files.format import header_text, interaction_text
from pytest_regen.cassettes.files.reader import CassetteFile, StoredInteraction, read_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.json_bodies import limited_depth
from pytest_regen.cassettes.recording import made_by
from pytest_regen.credentials.search import find_secrets, scrub_text
from pytest_regen.errors import CassetteError, CassetteUnreadableError
from pytest_regen.files import refuse_obstacle, replace_file
from pytest_regen.modes import RecordMode

if TYPE_CHECKING:
    from filelock import BaseFileLock


_LOCK_SECONDS = 30.0
_HIDDEN = b"*.partial\n.*.lock\n.gitignore\n"
"""Lets git ignore what a run that fails or is killed leaves in a folder, and this file itself."""
_FIRST_LINES = re.compile("\ufeff?interactions:\r?\n- ")
_OUTERMOST = re.compile(r"^[^\s-]", re.MULTILINE)
_LAST_LINE = re.compile(r"(?<=\n)version: 1(\r?\n)\Z")
_KEYS_OF_VCRPY = 2
"""A file as vcrpy writes it begins and ends like this, and has the keys of these two lines."""

# In characters. Only what is shorter is searched once more as it stands in the file, because that
# takes seconds for a large text.
LARGE_TEXT = 1 << 20

_NAMED_PARTS = 3
"""How many parts of a path come from a test; those above are the project's."""


class CassetteWriter:
    """Writes the recordings of one run.

    Nothing touches the cassette itself before ``promote``; the partial file is a cassette of its
    own, so a killed run loses at most the answer that was on its way.

    Args:
        path: the cassette.
        mode: whether existing recordings stay.
    """

    def __init__(self, path: Path, mode: RecordMode) -> None:
        self._path = storage.behind_links(path)
        self._mode = mode
        self.metadata: dict[str, Any] = {}
        """What the head of the partial file says."""
        self._recorded: list[StoredInteraction] = []
        self._partial: Path | None = None
        self._lock: BaseFileLock | None = None

    def refusal(self) -> CassetteError | None:
        """Return why nothing can be stored, so that it is known before an answer is paid for.

        The cassette is a folder, its folder cannot be written, or its name holds a credential.
        """
        try:
            place = "/".join(self._path.parts[-_NAMED_PARTS:])
            kinds = find_secrets(place)
            if kinds:
                return CassetteError(
                    f"{scrub_text(place)}: the name of the cassette holds a credential "
                    f"({', '.join(kinds)})",
                    why="names of files are seen by everyone who sees the folder",
                    hint="give the cassette another name",
                )
            refuse_obstacle(self._path)
        except CassetteError as error:
            return error
        except (OSError, ValueError) as error:
            return storage.unwritable(self._path, error)
        return None

    def take_left(self) -> tuple[StoredInteraction, ...]:
        """Return the answers that a run which was killed or failed has left; they are this run's.

        Refusals, failures and truncated answers are dropped: they are asked for again.

        Raises:
            CassetteError: the folder cannot be written.
        """
        partial = storage.partial_path(self._path)
        if not partial.exists():
            return ()
        try:
            lock = _acquire(partial)
        except TimeoutError:
            return ()  # Its run is alive.
        file = None
        with suppress(CassetteUnreadableError):  # Killed before its first recording was complete.
            file = read_cassette(partial)
        recordings = file.interactions if file else ()
        answered = [stored for stored in recordings if is_answered(stored.interaction)]
        if file is None or not answered:
            _release(lock)
            return ()
        self._lock, self._partial, self._recorded = lock, partial, answered
        self.metadata = dict(file.metadata)
        # Also without what a kill left unfinished: more is appended.
        texts = "".join(stored.text for stored in answered)
        try:
            replace_file(partial, header_text(self.metadata) + texts)
        except OSError as error:
            raise storage.unwritable(self._path, error) from None
        return tuple(answered)

    def append(self, interaction: Interaction) -> None:
        """Append a recording to the partial file.

        Args:
            interaction: the recording, scrubbed.

        Raises:
            CassetteError: the folder cannot be written, or a credential would be.
        """
        with limited_depth():
            text = interaction_text(interaction)
        # Scrubbing has searched every value; a second look at a large one would take too long.
        if len(text) <= LARGE_TEXT:
            check_text(self._path, text)
        try:
            metadata = _metadata(self.metadata, made_by([interaction]))
            if self._partial is None:
                self.metadata = metadata
                self._partial = self._claim_partial()
                self._partial.write_bytes(b"")
            # Head and first recording together: a cassette without any does not load.
            head = "" if self._recorded else header_text(self.metadata)
            storage.append_or_nothing(self._partial, (head + text).encode())
        except (OSError, ValueError) as error:
            raise storage.unwritable(self._path, error) from None
        self._recorded.append(StoredInteraction(self._path, 0, interaction.key, text.encode()))
        self.metadata = metadata

    def promote(self, drop: Iterable[str] = ()) -> None:
        """Make the cassette hold what was recorded, in one step.

        Args:
            drop: keys of recordings to remove, the last one of equal ones. If nothing would be
                left, nothing is removed.

        Raises:
            CassetteError: the folder cannot be written; the partial file stays.
        """
        leaving = Counter(drop)
        if self._partial is None and not leaving:
            return
        lock = None
        try:
            lock = _acquire(self._path, _LOCK_SECONDS)
            refuse_obstacle(self._path)
            text = self._merged(leaving)
            if text:
                storage.replace_cassette(self._path, text)
            if self._partial is not None:
                self._partial.unlink(missing_ok=True)
        except OSError as error:
            raise storage.unwritable(self._path, error) from None
        finally:
            if lock is not None:
                _release(lock)
            self.leave()

    def leave(self) -> None:
        """Release the partial file, which stays if it was not promoted."""
        if self._lock is not None:
            _release(self._lock)
            self._lock = None

    def _merged(self, drop: Counter[str]) -> str:
        """Return the cassette as it is now with what was recorded; empty if it stays as it is."""
        # Read anew, because another process may have promoted its own recordings meanwhile.
        old = None if self._mode == "rewrite" else read_cassette(self._path)
        before = old.interactions if old else ()
        # By key, because what was not sent again may belong to another test.
        again = {stored.key for stored in self._recorded if self._mode == "all"}
        staying = []
        # From the end, because of equal recordings the last one is dropped.
        for stored in reversed(before):
            drop.subtract([stored.key])
            if stored.key not in again and drop[stored.key] < 0:
                staying.append(stored)
        staying.reverse()
        is_whole = len(staying) == len(before)
        if not self._recorded and (not staying or is_whole):
            return ""
        if is_whole and (text := self._added_to_foreign(old)):
            return text
        head, metadata = (old.head, dict(old.metadata)) if old and staying else ("", {})
        if self._recorded:
            new = _metadata({**self.metadata, **metadata}, self.metadata)
            if any(new[name] != metadata.get(name) for name in ("source", "models")):
                head = ""
            metadata = new
        texts = [stored.text for stored in (*staying, *self._recorded)]
        return "".join([head or header_text(metadata), *texts])

    def _added_to_foreign(self, old: CassetteFile | None) -> str:
        """Return a file as vcrpy writes it with what was recorded; empty for any other file."""
        if old is None or old.head or storage.is_packed(self._path):
            return ""
        text = self._path.read_bytes().decode()
        last = _LAST_LINE.search(text)
        # Two lines that are not indented: no other key stands between the list and the version.
        is_plain = _FIRST_LINES.match(text) and len(_OUTERMOST.findall(text)) == _KEYS_OF_VCRPY
        if not (last and is_plain):
            return ""
        # Without the key, and all text as it came, because vcrpy writes and reads it so.
        parts = (interaction_text(one.interaction, lays_out=False) for one in self._recorded)
        added = "".join("- " + part.split("\n  ", 1)[1] for part in parts)
        added = check_text(self._path, added).replace("\n", last[1])
        return f"{text[: last.start()]}{added}{last[0]}"

    def _claim_partial(self) -> Path:
        """Return a partial file that no living run writes; one left by a dead run is taken over."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        number = 0
        while True:
            number += 1
            candidate = storage.partial_path(self._path, number)
            with suppress(TimeoutError):
                self._lock = _acquire(candidate)
                return candidate


def is_answered(interaction: Interaction) -> bool:
    """Whether a request got what it asked for: no refusal, no failure, nothing cut off."""
    return interaction.status < HTTPStatus.BAD_REQUEST and interaction.end == "complete"


def check_text(path: Path, text: str) -> str:
    """Return the text to write, if it holds no credential.

    Raises:
        CassetteError: it holds one.
    """
    kinds = find_secrets(text)
    if kinds:
        raise CassetteError(
            f"{scrub_text(path.name)}: a recording was not written, it holds a credential "
            f"({', '.join(kinds)})",
            why="it is spread so that it cannot be replaced without changing the recording",
            hint="keep the credential out of the request, then record again",
        )
    return text


def _metadata(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the head of a file that holds what has the head ``old`` and what has ``new``."""
    from datetime import UTC, datetime
    from importlib.metadata import PackageNotFoundError, version

    heads = (old, new)
    sources = {source for head in heads for source in str(head.get("source") or "").split(", ")}
    listed = (head.get("models") for head in heads)
    models = {str(name) for names in listed if isinstance(names, list) for name in names}
    versions: dict[str, str] = {}
    # Once for each file, because looking them up takes longer than writing a recording.
    for name in () if "recorded_by" in old else ("pytest-regen", "anthropic", "vcrpy"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        # Only the day: recording the same again should not change the file.
        "recorded_at": datetime.now(UTC).date().isoformat(),
        "recorded_by": versions,
        **old,
        "source": ", ".join(sorted(sources - {""})),
        "models": sorted(models - {""}),
    }


def _acquire(path: Path, seconds: float = 0.0) -> "BaseFileLock":
    """Return a lock on a file; raises TimeoutError where another run holds it that long."""
    import filelock

    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), timeout=seconds)
    lock.acquire()
    with suppress(OSError), (path.parent / ".gitignore").open("xb") as file:
        file.write(_HIDDEN)
    return lock


def _release(lock: "BaseFileLock") -> None:
    # Removed while held: filelock never grants a lock on a removed file.
    path = Path(lock.lock_file)
    path.unlink(missing_ok=True)
    ignore = path.with_name(".gitignore")
    with suppress(OSError):
        if ignore.read_bytes() == _HIDDEN and not any(path.parent.glob("*.partial")):
            ignore.unlink()
    lock.release()
