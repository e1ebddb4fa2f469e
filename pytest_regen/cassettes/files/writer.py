"""Writing of cassettes: recordings are appended to a partial file, promoted whole, without keys."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_regen.cassettes.files.format import (
    FIRST_LINE,
    foreign_text,
    header_text,
    interaction_text,
)
from pytest_regen.cassettes.files.reader import CassetteFile, StoredInteraction, read_cassette
from pytest_regen.cassettes.files.storage import (
    append_or_nothing,
    append_whole,
    behind_links,
    insert_whole,
    is_packed,
    move_file,
    partial_path,
    recover,
    replace_cassette,
    stamp_of,
    unwritable,
)
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.json_bodies import too_deep
from pytest_regen.credentials.search import find_secrets, scrub_text
from pytest_regen.errors import CassetteError, CassetteUnreadableError
from pytest_regen.files import refuse_obstacle, replace_file
from pytest_regen.modes import RecordMode

if TYPE_CHECKING:
    from filelock import BaseFileLock


_LOCK_SECONDS = 30.0
_PARTIAL_NAMES = 1_000
_HIDDEN = "*.partial\n.*.lock\n.gitignore\n"
_LEFT = re.compile(r"\.partial$|^\..*\.lock$")
_FIRST_LINES = re.compile(rb"(?:\xef\xbb\xbf)?interactions:\r?\n- ")
_OUTERMOST = re.compile(rb"^[^\s-]", re.MULTILINE)
_LAST_LINE = re.compile(rb"(?<=\n)version: 1(\r?\n)\Z")
_KEYS_OF_VCRPY = 2
"""A file as vcrpy writes it begins and ends like this, and has the keys of these two lines."""

LARGE_BODY = 1 << 20
"""In bytes: bodies up to this size are searched once more as they stand in the file."""

_NAMED_PARTS = 3
"""How many parts of a path come from a test; those above are the project's."""


class CassetteWriter:
    """Writes the recordings of one run.

    Nothing touches the cassette itself before ``promote``; the partial file is a cassette of its
    own, so a killed run loses at most the answer that was on its way.

    Args:
        path: the cassette.
        mode: whether existing recordings stay.
        file: the cassette as it was read, if it exists.
    """

    def __init__(self, path: Path, mode: RecordMode, file: CassetteFile | None = None) -> None:
        self._path = behind_links(path)
        self._mode = mode
        self._file = file
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
            return unwritable(self._path, error)
        return None

    def take_left(self) -> tuple[StoredInteraction, ...]:
        """Return the answers that a run which was killed or failed has left; they are this run's.

        Refusals, failures and truncated answers are dropped: they are asked for again.

        Raises:
            CassetteError: the folder cannot be written.
        """
        partial = partial_path(self._path)
        if not partial.exists():
            return ()
        lock = _acquire(partial)
        if lock is None:
            return ()  # Its run is alive.
        file = _read_partial(partial)
        recordings = file.interactions if file else ()
        answered = [stored for stored in recordings if _is_answered(stored.interaction)]
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
            raise unwritable(self._path, error) from None
        return tuple(answered)

    def append(self, interaction: Interaction, source: str, model: str = "") -> None:
        """Append a recording to the partial file.

        Args:
            interaction: the recording, scrubbed.
            source: ``api``, ``emulator`` or ``other``: who gave the answer.
            model: the model asked, where the request names one.

        Raises:
            CassetteError: the folder cannot be written, or a credential would be.
        """
        # Scrubbing has searched every value; the second look is for bodies of ordinary size.
        bodies = (interaction.request_body, interaction.response_body)
        sent, answered = (body if len(body) <= LARGE_BODY else b"" for body in bodies)
        text = searched = _text_of(interaction)
        if (sent, answered) != bodies:
            searched = _text_of(replace(interaction, request_body=sent, response_body=answered))
        check_text(self._path, searched)
        try:
            if self._partial is None:
                self.metadata = _metadata(source, model)
                self._partial = self._claim_partial()
                self._partial.write_bytes(b"")
            # Head and first recording together: a cassette without any does not load.
            head = "" if self._recorded else header_text(self.metadata)
            append_or_nothing(self._partial, (head + text).encode())
        except (OSError, ValueError) as error:
            raise unwritable(self._path, error) from None
        self._recorded.append(StoredInteraction(self._path, 0, interaction.key, text.encode()))
        self.metadata = _merge_metadata(self.metadata, _metadata(source, model))

    def promote(self, drop: Iterable[str] = ()) -> CassetteFile | None:
        """Make the cassette hold what was recorded, in one step, and return it as it then reads.

        Args:
            drop: keys of recordings to remove, the last one of equal ones. If nothing would be
                left, nothing is removed.

        Raises:
            CassetteError: the folder cannot be written; the partial file stays.
        """
        leaving = Counter(drop)
        if self._partial is None and not leaving:
            return None
        try:
            with _file_lock(self._path):
                refuse_obstacle(self._path)
                recover(self._path)
                if self._partial is not None and self._recorded:
                    self._promote(self._partial, leaving)
                else:
                    self._drop(leaving)
                if self._partial is not None:
                    self._partial.unlink(missing_ok=True)
                return read_cassette(self._path) if self._recorded else None
        except OSError as error:
            raise unwritable(self._path, error) from None
        finally:
            self.leave()

    def leave(self) -> None:
        """Release the partial file, which stays if it was not promoted."""
        if self._lock is not None:
            _release(self._lock)
            self._lock = None

    @property
    def partial(self) -> Path | None:
        """The partial file of this run, after something was recorded."""
        return self._partial if self._recorded else None

    def _promote(self, partial: Path, drop: Counter[str]) -> None:
        old = self._current()
        staying = old.interactions if old else ()
        if self._mode == "all":
            again = {stored.key for stored in self._recorded}
            staying = tuple(stored for stored in staying if stored.key not in again)
        staying = _without_last(staying, drop)
        metadata = _merge_metadata(old.metadata if staying and old else {}, self.metadata)
        # With the line ends of a checkout on Windows the whole file has to be rewritten.
        appends = (
            old is not None
            and staying == old.interactions
            and all(metadata[name] == old.metadata.get(name) for name in ("source", "models"))
            and old.is_laid_out
            and _starts_with(self._path, FIRST_LINE.encode())
        )
        day = str(metadata["recorded_at"])
        if old is not None and (appends or staying):
            # The head names the day of the first recordings; newer ones name their own.
            metadata["recorded_at"] = str(old.metadata.get("recorded_at") or day)
        texts = [stored.text for stored in self._recorded]
        if day != metadata["recorded_at"]:
            texts = [text.replace("\n", f"\n  recorded_at: {day}\n", 1) for text in texts]
        room = None if appends or old is None or staying != old.interactions else self._room()
        if appends:
            append_whole(self._path, "".join(texts).encode())
        elif room is not None:
            text = "".join(foreign_text(stored.interaction) for stored in self._recorded)
            at, line_end = room
            text = check_text(self._path, text).replace("\n", line_end)
            insert_whole(self._path, at, text.encode())
        elif (
            not staying
            and not is_packed(self._path)
            and _starts_with(partial, header_text(metadata).encode())
        ):
            # The new recordings are everything, and already complete in a file.
            move_file(partial, self._path)
        else:
            before = [stored.text for stored in staying]
            replace_cassette(self._path, header_text(metadata) + "".join([*before, *texts]))

    def _drop(self, leaving: Counter[str]) -> None:
        old = self._current()
        staying = _without_last(old.interactions, leaving) if old else ()
        if old and staying and staying != old.interactions:
            texts = "".join(stored.text for stored in staying)
            replace_cassette(self._path, header_text(old.metadata) + texts)

    def _current(self) -> CassetteFile | None:
        """Return the cassette as it is now."""
        if self._mode == "rewrite":
            return None
        if self._file is not None and self._file.stamp == stamp_of(self._path):
            return self._file
        # Another process has promoted its own recordings meanwhile.
        return read_cassette(self._path)

    def _room(self) -> tuple[int, str] | None:
        """Return behind how many bytes a file as vcrpy writes it has room, and its line end."""
        data = b"" if is_packed(self._path) else self._path.read_bytes()
        last = _LAST_LINE.search(data)
        # Two lines that are not indented: no other key stands between the list and the version.
        is_plain = _FIRST_LINES.match(data) and len(_OUTERMOST.findall(data)) == _KEYS_OF_VCRPY
        return (last.start(), last[1].decode()) if last and is_plain else None

    def _claim_partial(self) -> Path:
        """Return a partial file that no living run writes; one left by a dead run is taken over."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        for number in range(1, _PARTIAL_NAMES):
            candidate = partial_path(self._path, number)
            lock = _acquire(candidate)
            if lock is not None:
                self._lock = lock
                return candidate
        raise FileExistsError(f"{_PARTIAL_NAMES} runs record {self._path.name} at once")


def keep_answers(path: Path) -> None:
    """Reduce a cassette to the requests that were answered, including those of a killed run.

    Refusals, failures and truncated answers are removed: replayed, they would end each run where
    they ended the first one.

    Raises:
        CassetteError: the cassette cannot be written.
        CassetteUnreadableError: the file is not a cassette.
    """
    path = behind_links(path)
    left = partial_path(path)
    if not (path.exists() or left.exists()):
        return
    try:
        lock = _acquire(left)
        try:
            with _file_lock(path):
                recover(path)
                _keep_answers(path, left if lock is not None else None)
        finally:
            if lock is not None:
                _release(lock)
    except OSError as error:
        raise unwritable(path, error) from None


def _keep_answers(path: Path, left: Path | None) -> None:
    files = [file for file in (read_cassette(path), _read_partial(left)) if file is not None]
    recordings = [stored for file in files for stored in file.interactions]
    answered = [stored for stored in recordings if _is_answered(stored.interaction)]
    if answered and (len(answered) < len(recordings) or len(files) > 1 or not path.exists()):
        metadata = dict(files[0].metadata)
        for file in files[1:]:
            metadata = _merge_metadata(file.metadata, {"models": [], "source": "", **metadata})
        replace_cassette(path, header_text(metadata) + "".join(stored.text for stored in answered))
    elif not answered:
        path.unlink(missing_ok=True)
    if left is not None:
        left.unlink(missing_ok=True)


def _read_partial(partial: Path | None) -> CassetteFile | None:
    try:
        return None if partial is None else read_cassette(partial)
    except CassetteUnreadableError:
        return None  # Killed before its first recording was complete.


def _is_answered(interaction: Interaction) -> bool:
    return interaction.status < HTTPStatus.BAD_REQUEST and interaction.end == "complete"


def _text_of(interaction: Interaction) -> str:
    try:
        return interaction_text(interaction)
    except RecursionError:
        raise too_deep() from None


def _starts_with(path: Path, start: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(start)) == start
    except OSError:
        return False


def _without_last(
    recordings: tuple[StoredInteraction, ...], drop: Counter[str]
) -> tuple[StoredInteraction, ...]:
    left = []
    for stored in reversed(recordings):
        if drop[stored.key]:
            drop[stored.key] -= 1
        else:
            left.append(stored)
    return tuple(reversed(left))


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


def _metadata(source: str, model: str) -> dict[str, Any]:
    from datetime import UTC, datetime

    return {
        # Only the day: recording the same again should not change the file.
        "recorded_at": datetime.now(UTC).date().isoformat(),
        "recorded_by": {
            name: installed
            for name in ("pytest-regen", "anthropic", "vcrpy")
            if (installed := _installed_version(name))
        },
        "source": source,
        "models": [model] if model else [],
    }


@cache
def _installed_version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _merge_metadata(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a file that holds both, naming both sources."""
    sources = {*str(old.get("source") or "").split(", "), str(new["source"])} - {""}
    old_models = old.get("models")
    models = {*new["models"], *map(str, old_models if isinstance(old_models, list) else ())}
    return {**old, **new, "source": ", ".join(sorted(sources)), "models": sorted(models)}


def _lock_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _hide(folder: Path) -> None:
    """Let git ignore what a run that fails or is killed leaves here, and the file that says so."""
    with suppress(OSError), (folder / ".gitignore").open("x", encoding="ascii") as file:
        file.write(_HIDDEN)


def _show(folder: Path) -> None:
    """Drop that file again where nothing is left."""
    ignore = folder / ".gitignore"
    with suppress(OSError):
        is_ours = ignore.read_bytes() == _HIDDEN.encode()
        if is_ours and not any(_LEFT.search(path.name) for path in folder.iterdir()):
            ignore.unlink()


def _acquire(path: Path) -> "BaseFileLock | None":
    import filelock

    lock = filelock.FileLock(_lock_path(path), timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        return None
    _hide(path.parent)
    return lock


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Hold the cassette's own lock while it is replaced."""
    import filelock

    lock = filelock.FileLock(_lock_path(path), timeout=_LOCK_SECONDS)
    try:
        lock.acquire()
    except TimeoutError as error:
        raise OSError(f"another process holds {lock.lock_file}") from error
    try:
        yield
    finally:
        _release(lock)


def _release(lock: "BaseFileLock") -> None:
    # Removed while held: filelock never grants a lock on a removed file.
    Path(lock.lock_file).unlink(missing_ok=True)
    _show(Path(lock.lock_file).parent)
    lock.release()
