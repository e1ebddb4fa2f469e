"""The folder of one endpoint: opened, created, updated."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic

from pytest_regen import files
from pytest_regen.documents.ir import IR, ir_hash
from pytest_regen.errors import StoreWriteError
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.stores import journal
from pytest_regen.stores.formats import (
    PagesEnvelope,
    StoredPage,
    ir_as_json,
    now,
    source_file_fault,
)
from pytest_regen.stores.history import ignored_history
from pytest_regen.stores.snapshot import PAGES_FILE, Snapshot, is_store
from pytest_regen.stores.strict_json import as_json
from pytest_regen.stores.transaction import (
    LOCK_TIMEOUT,
    PageChange,
    StoreT,
    StoreUpdate,
    acquire_lock,
    create_files,
    end_trial,
    explain_write_errors,
    pages_and_source,
    store_lock,
    update,
)
from pytest_regen.stores.trials import Content, TrialRecord, own_trials, splice, trial_lock
from pytest_regen.validation.issues import Issue

__all__ = ["RegenStore", "Trial", "trial"]


TRIAL_TIMEOUT = 600.0
"""Seconds to wait for another test that has a candidate of the same store on trial."""


class Trial(Generic[StoreT]):
    """A candidate that is in place; taken out again unless ``accept`` is called."""

    def __init__(self, kind: type[StoreT], path: Path, record: TrialRecord) -> None:
        self._kind = kind
        self._path = path
        self._record = record
        self._rejection: tuple[Issue, ...] = ()
        self._is_open = True
        self.is_accepted = False
        self.history: tuple[str, ...] = ()
        """Ids of the history entries that the end of the trial wrote: the old outputs where the
        candidate was accepted, else the candidate's."""

    @property
    def store(self) -> StoreT:
        """The store with the candidate in place, read afresh on each access."""
        return self._kind.open(self._path)

    def accept(self, issues: Mapping[str, Sequence[Issue]] | None = None) -> None:
        """Keep the candidate; the outputs it stands in for go to the history as replaced.

        Args:
            issues: type name to what was found in the old outputs, kept with them.

        Raises:
            StoreWriteError: the folder cannot be written; the candidate is taken out instead.
        """
        self._end(accepted=True, issues=issues or {})
        self.is_accepted = True

    def reject(self, issues: Iterable[Issue] = ()) -> None:
        """Say why the candidate is going to be taken out; kept with it in the history."""
        self._rejection = tuple(issues)

    def _end(self, *, accepted: bool, issues: Mapping[str, Sequence[Issue]]) -> None:
        if not self._is_open:
            return
        with update(self._kind, self._path), explain_write_errors(self._path):
            self.history = end_trial(self._path, self._record, accepted=accepted, issues=issues)
        self._is_open = False

    def close(self) -> None:
        """Take the candidate out, unless it was accepted."""
        names = {key.type_name for key in self._record.candidates}
        self._end(accepted=False, issues=dict.fromkeys(names, self._rejection))


@contextmanager
def trial(
    kind: type[StoreT], base: StoreT, pages: Iterable[StoredPage], source: str
) -> Iterator[Trial[StoreT]]:
    """Put a candidate in place; see ``RegenStore.trial``."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    trial_id = f"{moment}-{secrets.token_hex(4)}"
    lock = acquire_lock(base.path, trial_lock(base.path), TRIAL_TIMEOUT)
    own_trials.add(trial_id)
    try:
        with update(kind, base.path) as transaction:
            record = _place(transaction, trial_id, base, tuple(pages), source)
        candidate = Trial(kind, base.path, record)
        try:
            yield candidate
        finally:
            candidate.close()
    finally:
        own_trials.discard(trial_id)
        lock.release()


def _place(
    transaction: StoreUpdate[StoreT],
    trial_id: str,
    base: StoreT,
    pages: tuple[StoredPage, ...],
    source: str,
) -> TrialRecord:
    """Commit the candidate together with the record of what it stands in for."""
    store = transaction.store
    if store.source != base.source:
        # Others committed since the candidate was made: only its own blocks are put in.
        source = splice(store.source, source, dict.fromkeys(page.type_name for page in pages))
    with explain_write_errors(store.path):
        contents = pages_and_source(store, PageChange(store, pages, None, ()), source)
    before, after = (store.path / PAGES_FILE).read_bytes(), contents[PAGES_FILE] or b""
    record = TrialRecord(
        trial_id,
        Content(before, store.source.encode() if store.has_source else None),
        Content(after, source.encode()),
        tuple(page.key for page in pages),
    )
    with explain_write_errors(store.path):
        journal.commit(
            store.path, {**contents, **ignored_history(store.path), record.file: record.to_json()}
        )
    return record


class RegenStore(Snapshot):
    """A store at one moment (``RegenStore.open``); it does not follow later changes.

    Raises:
        StoreMissingError: by ``open`` and ``update``, there is no store.
        StoreCorruptError: by ``open`` and ``update``, an artifact does not hold together.
    """

    @classmethod
    @contextmanager
    def update(
        cls, path: Path | str, *, timeout: float = LOCK_TIMEOUT
    ) -> Iterator["StoreUpdate[RegenStore]"]:
        """Lock the store, read it afresh and yield it as ``tx.store``, with ``tx.write(…)``.

        Keep it short and ask no model inside: everybody else waits.

        Args:
            path: folder of the store.
            timeout: seconds to wait for another writer.

        Raises:
            StoreMissingError, StoreCorruptError: as by ``open``.
            StoreWriteError: another writer does not finish, or the folder cannot be written.
        """
        with update(cls, Path(path), timeout) as transaction:
            yield transaction

    @contextmanager
    def trial(self, *, pages: Iterable[StoredPage], source: str) -> Iterator["Trial[RegenStore]"]:
        """Put a candidate in place for a test that reads the folder.

        ``accept()`` on what is yielded keeps it. Otherwise all is put back when the block ends,
        byte for byte, and the candidate goes to the history as rejected; what others wrote
        meanwhile stays. Should this process be killed, the store reads as without the candidate.

        Args:
            pages: the candidate's, in place of those with the same identity.
            source: the whole source with the candidate's types in it, made from ``self.source``.

        Raises:
            StoreWriteError: the folder cannot be written; it is as it was.
            UnknownPageError: a page has no prompt.
        """
        with trial(RegenStore, self, pages, source) as candidate:
            yield candidate

    @classmethod
    def planned(
        cls,
        path: Path | str,
        *,
        ir: IR,
        prompts: Sequence[PromptEntry],
        pages: Iterable[StoredPage],
        source: str,
        source_file: str,
        namespace: str | None,
        profile: str,
    ) -> "RegenStore":
        """Return a store as it would be, before anything of it is written; see ``create``."""
        envelope = _first_envelope(ir, source_file, namespace=namespace, profile=profile)
        return cls(
            Path(path),
            envelope.with_pages(pages),
            tuple(prompts),
            source,
            bool(source),
            ir_as_json(ir),
            as_json([entry.to_json() for entry in prompts]),
        )

    @classmethod
    def create(
        cls,
        path: Path | str,
        *,
        ir: IR,
        prompts: Sequence[PromptEntry],
        source_file: str,
        schema: str = "",
        namespace: str | None = None,
        profile: str = "default",
        boundary_tag: str = "REGEN",
        model: str = "",
    ) -> "RegenStore":
        """Make a store whose pages are all missing yet.

        Args:
            path: its folder; made where it is not there.
            ir: value of ``ir.json``.
            prompts: all of them, in the order of the source.
            source_file: plain name of the source file, such as ``ProjectDataObject.cs``.
            schema: text of ``schema.md``.
            namespace: of the source, where it has one.
            profile: of the language's assembly.
            boundary_tag: word of the boundary lines.
            model: who is going to be asked.

        Raises:
            StoreWriteError: there is a store already, or the folder cannot be written.
        """
        path = Path(path)
        if why := source_file_fault(source_file):
            raise StoreWriteError(
                f"no store can be made at {path}: {why}", hint="give the source another file name"
            )
        envelope = _first_envelope(
            ir, source_file, namespace=namespace, profile=profile, tag=boundary_tag, model=model
        )
        with explain_write_errors(path):
            files.make_folder(path.resolve().parent)
        with store_lock(path):
            if is_store(path):
                raise StoreWriteError(
                    f"there is a store at {path} already",
                    hint=f"update it, or move {path} away first",
                )
            create_files(path, envelope, ir, prompts, schema)
        return cls.open(path)


def _first_envelope(
    ir: IR,
    source_file: str,
    *,
    namespace: str | None,
    profile: str,
    tag: str = "REGEN",
    model: str = "",
) -> PagesEnvelope:
    """Return what a store says of itself before it has pages."""
    return PagesEnvelope(
        version=1,
        endpoint={"method": ir.endpoint.method, "path": ir.endpoint.path},
        language=ir.language,
        namespace=namespace,
        profile=profile,
        boundary_tag=tag,
        ir_hash=ir_hash(ir),
        generated_at=now(),
        model=model,
        source_file=source_file,
    )
