"""Writing to a store: one writer at a time, all or nothing, and nothing a model wrote is lost."""

import errno
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from pytest_regen import files
from pytest_regen.canonical import source_hash
from pytest_regen.documents.ir import IR, ir_hash
from pytest_regen.errors import StoreWriteError, UnknownPageError
from pytest_regen.files import lock_file, make_lock_folder, refuse_obstacle
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.stores import journal
from pytest_regen.stores.formats import (
    HAND,
    PagesEnvelope,
    StoredPage,
    describe_page,
    ir_as_json,
    read_pages,
)
from pytest_regen.stores.history import HISTORY, HistoryEntry, history_files
from pytest_regen.stores.snapshot import (
    IR_FILE,
    PAGES_FILE,
    PROMPTS_FILE,
    SCHEMA_FILE,
    Snapshot,
    refuse_no_store,
)
from pytest_regen.stores.strict_json import as_json
from pytest_regen.stores.trials import Content, TrialRecord, dead_trials
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = [
    "PageChange",
    "StoreT",
    "StoreUpdate",
    "acquire_lock",
    "create_files",
    "end_trial",
    "explain_write_errors",
    "pages_and_source",
    "refuse_unwritable",
    "store_lock",
    "update",
]

LOCK_TIMEOUT = 60.0
"""Seconds that a writer waits for another; a write takes milliseconds."""

StoreT = TypeVar("StoreT", bound=Snapshot)

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than this process may write",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "the permission is missing",
    errno.EPERM: "the permission is missing",
}


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn what the system says about a failed write into what the user must know."""
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename or path
        raise StoreWriteError(
            f"the store {path} cannot be written: {place}",
            why=_REASONS.get(error.errno or 0, error.strerror or str(error)),
            hint="make the folder writable or free some space, then run the same command again; "
            "nothing was lost",
        ) from error
    except UnicodeEncodeError as error:
        raise StoreWriteError(
            f"the store {path} cannot be written: {error.object[error.start]!r} is half a "
            "surrogate pair",
            why="no file can hold it as text",
            hint="correct the text in the API description and generate again",
        ) from None


def refuse_unwritable(path: Path, ir: IR, prompts: Sequence[PromptEntry], schema: str) -> None:
    """Raise what writing these files of a store would end in, before a page is paid for.

    Args:
        path: folder of the store; it need not exist, and nothing is left in it.
        ir: value of ``ir.json``.
        prompts: all of them.
        schema: text of ``schema.md``.

    Raises:
        StoreWriteError: the folder cannot be written, the disk has no room, or a text no bytes.
    """
    import tempfile

    with explain_write_errors(path):
        for file in (path / PAGES_FILE, lock_file(path)):
            refuse_obstacle(file)
        folder = next(one for one in (path, *path.resolve().parents) if one.is_dir())
        # Only writing tells whether one may write.
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.writelines(_plan_files(ir, prompts, schema).values())
            probe.flush()


def _plan_files(ir: IR, prompts: Sequence[PromptEntry], schema: str) -> dict[str, bytes]:
    return {
        IR_FILE: ir_as_json(ir),
        PROMPTS_FILE: as_json([entry.to_json() for entry in prompts]),
        SCHEMA_FILE: schema.encode(),
    }


def acquire_lock(path: Path, file: Path, timeout: float) -> "BaseFileLock":
    """Take a lock of the store at ``path`` and return it; it goes with the process that has it.

    Raises:
        StoreWriteError: another one has it for more than ``timeout`` seconds, or it cannot be made.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(file, thread_local=False)
    with explain_write_errors(path):
        make_lock_folder(file)
        try:
            lock.acquire(timeout=timeout)
        except Timeout:
            raise StoreWriteError(
                f"the store {path} is being written by another process",
                why=f"{file} was held for more than {timeout:g} s; a pytest run with --regen, "
                "or pytest-regen generate or regenerate, holds it while it writes",
                hint="wait for that process or end it, then run the same command again; the lock "
                "goes with the process, the file may stay",
            ) from None
    return lock


@contextmanager
def store_lock(path: Path, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Keep every other writer of the store at ``path`` out.

    Raises:
        StoreWriteError: see ``hold``.
    """
    lock = acquire_lock(path, lock_file(path), timeout)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def update(
    kind: type[StoreT], path: Path, timeout: float = LOCK_TIMEOUT
) -> Iterator["StoreUpdate[StoreT]"]:
    """Lock the store at ``path`` and read it afresh; see ``RegenStore.update``."""
    refuse_no_store(path)  # No lock is made for what is no store.
    with store_lock(path, timeout):
        with explain_write_errors(path):
            journal.finish(path)
            for record in dead_trials(journal.read_journal(path)):
                end_trial(path, record, accepted=False)
        yield StoreUpdate(kind.open(path))


class StoreUpdate(Generic[StoreT]):
    """A store that nobody else writes for now."""

    def __init__(self, store: StoreT) -> None:
        self.store: StoreT = store
        """What the folder holds, read under the lock and again after each ``write``."""

    def write(
        self,
        *,
        pages: Iterable[StoredPage] = (),
        source: str | None = None,
        ir: IR | None = None,
        prompts: Sequence[PromptEntry] | None = None,
        schema: str | None = None,
        envelope: PagesEnvelope | None = None,
        replaced: Iterable[HistoryEntry] = (),
        keeps_source: bool = False,
    ) -> tuple[str, ...]:
        """Write what is given, all or nothing, and keep everything else.

        Stored pages that are replaced, or whose prompt is gone, go to the history by themselves.

        Args:
            pages: to be stored in place of those with the same identity.
            source: the whole source file, line ends as they shall be.
            ir: the value of ``ir.json``; one without findings keeps those of its types.
            prompts: all prompts of the store, where the plan changes.
            schema: the text of ``schema.md``.
            envelope: new namespace, profile, source file, …; its pages and hashes are not used. A
                source file of another name is moved, its old content kept in the history.
            replaced: entries for the history, with their reasons and issues. Where one is about a
                stored page that is replaced, it stands in for the automatic one.
            keeps_source: the source as it was is kept in the history, as a file of its own.

        Returns:
            The ids of the history entries written: those of ``replaced`` first, in their order;
            then the name of the source that is kept.

        Raises:
            UnknownPageError: a page has no prompt.
            StoreWriteError: the folder cannot be written; it is as it was.
        """
        change = PageChange(self.store, tuple(pages), prompts, tuple(replaced))
        contents: dict[str, bytes | None] = {}
        sources = {_kept_name(self.store): self.store.source.encode()} if keeps_source else {}
        with explain_write_errors(self.store.path):
            contents.update(history_files(self.store.path, change.history, sources))
            if ir is not None:
                contents[IR_FILE] = ir_as_json(_with_findings(ir, self.store.ir))
            if prompts is not None:
                contents[PROMPTS_FILE] = as_json([entry.to_json() for entry in prompts])
            if schema is not None:
                contents[SCHEMA_FILE] = schema.encode()
            contents |= pages_and_source(self.store, change, source, envelope=envelope, ir=ir)
            changed = _actual_changes(self.store.path, contents)
            if changed:
                journal.commit(self.store.path, changed)
        self.store = type(self.store).open(self.store.path)
        return (*(entry.id for entry in change.history), *sources)


def _with_findings(ir: IR, old: IR) -> IR:
    """Return an IR with what was found in its types, where it says nothing itself."""
    if ir.validation is not None:
        return ir
    names = {type_.name for type_ in ir.types}
    found = {name: one for name, one in (old.validation or {}).items() if name in names}
    return ir.model_copy(update={"validation": found})


def _kept_name(store: Snapshot) -> str:
    """Return a name in the history that no other state of the source has."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    return f"{moment}-{source_hash(store.source)[-8:]}-{store.envelope.source_file}"


class PageChange:
    """What becomes of the pages: those stored from now on, and those that go to the history."""

    def __init__(
        self,
        store: Snapshot,
        written: tuple[StoredPage, ...],
        plan: Sequence[PromptEntry] | None,
        given: tuple[HistoryEntry, ...],
    ) -> None:
        self.written = written
        self.plan = plan
        order = [entry.key for entry in (store.prompts if plan is None else plan)]
        new = dict(store.pages) | {page.key: page for page in written}
        _refuse_pages_without_prompt(written, set(order), store.path)
        self.pages = [new[key] for key in order if key in new]
        told = {(entry.key, entry.output) for entry in given}
        kept = {(page.type_name, page.output) for page in self.pages}
        lost = [
            page
            for page in store.pages.values()
            if (page.type_name, page.output) not in kept and (page.key, page.output) not in told
        ]
        planned = set(order)
        self.history = [entry.named() for entry in given] + [
            HistoryEntry.of(page, "replaced" if page.key in planned else "vanished").named()
            for page in lost
        ]


def pages_and_source(
    store: Snapshot,
    change: PageChange,
    source: str | None,
    *,
    envelope: PagesEnvelope | None = None,
    ir: IR | None = None,
) -> dict[str, bytes | None]:
    """Return the new content of ``pages.json`` and, where one is given, of the source file.

    Of the envelope, a page changes nothing but the model, and that only where another one wrote it:
    branches that regenerate different types shall merge.
    """
    old = store.envelope
    new = replace(
        envelope or old,
        ir_hash=old.ir_hash,
        generated_at=old.generated_at,
        model=old.model,
    )
    if change.plan is not None:
        # The prompts were made from this IR; an IR without prompts leaves the store stale.
        new = replace(new, ir_hash=ir_hash(ir or store.ir))
    answered = [page for page in change.written if page.model != HAND]
    if answered:
        new = replace(new, model=max(answered, key=lambda page: page.generated_at).model)
    contents: dict[str, bytes | None] = {}
    if source is not None:
        contents[new.source_file] = source.encode()
    if new.source_file != old.source_file and store.has_source:
        kept = store.source.encode()
        contents.setdefault(new.source_file, kept)
        contents[old.source_file] = None
        contents[f"{HISTORY}/{_kept_name(store)}"] = kept
    contents[PAGES_FILE] = as_json(new.with_pages(change.pages).to_json())
    return contents


def _refuse_pages_without_prompt(
    pages: Iterable[StoredPage], planned: set[PageKey], path: Path
) -> None:
    for page in pages:
        if page.key not in planned:
            raise UnknownPageError(
                f"{describe_page(page.key)} has no prompt in {path}",
                hint="store pages for prompts of the store, or give the new prompts with them",
            )


def end_trial(
    path: Path,
    record: TrialRecord,
    *,
    accepted: bool,
    issues: Mapping[str, Sequence[Issue]] | None = None,
) -> tuple[str, ...]:
    """Accept the candidate of a trial or take it out; the caller holds the lock.

    Args:
        path: folder of the store.
        record: the trial's.
        accepted: whether the candidate stays.
        issues: type name to what was found in the outputs that go to the history.

    Returns:
        The ids of the history entries written.
    """
    pages_file = path / PAGES_FILE
    envelope = read_pages(pages_file.read_bytes(), pages_file)
    source_file = path / envelope.source_file
    now = Content(
        pages_file.read_bytes(), source_file.read_bytes() if source_file.exists() else None
    )
    entries = [
        replace(entry, issues=tuple((issues or {}).get(entry.type_name, ()))).named()
        for entry in record.kept(now, pages_file, accepted=accepted)
    ]
    contents: dict[str, bytes | None] = {**history_files(path, entries), record.file: None}
    if not accepted:
        undone = record.undone(now, pages_file)
        contents |= {PAGES_FILE: undone.pages, envelope.source_file: undone.source}
    journal.commit(path, _actual_changes(path, contents))
    return tuple(entry.id for entry in entries)


def _actual_changes(folder: Path, contents: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """Return the files whose content is not there already."""
    changed = {}
    for name, data in contents.items():
        file = folder / name
        if data != (file.read_bytes() if file.exists() else None):
            changed[name] = data
    return changed


def create_files(
    path: Path,
    envelope: PagesEnvelope,
    ir: IR,
    prompts: Sequence[PromptEntry],
    schema: str,
) -> None:
    """Write the files of a new store, without pages; the caller holds the lock."""
    with explain_write_errors(path):
        files.make_folder(path)
        journal.finish(path)
        journal.commit(
            path,
            {**_plan_files(ir, prompts, schema), PAGES_FILE: as_json(envelope.to_json())},
        )
