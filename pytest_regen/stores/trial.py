"""A candidate on trial: in place while a test looks at the folder, then accepted or taken out."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic

from pytest_regen.stores import journal
from pytest_regen.stores.formats import StoredPage
from pytest_regen.stores.history import ignored_history
from pytest_regen.stores.snapshot import PAGES_FILE
from pytest_regen.stores.transaction import (
    PageChange,
    StoreT,
    StoreUpdate,
    end_trial,
    hold,
    pages_and_source,
    telling,
    update,
)
from pytest_regen.stores.trials import Content, TrialRecord, owned, splice, trial_lock
from pytest_regen.validation.issues import Issue

__all__ = ["Trial", "trial"]

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
        with update(self._kind, self._path), telling(self._path):
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
    lock = hold(base.path, trial_lock(base.path), TRIAL_TIMEOUT)
    owned.add(trial_id)
    try:
        with update(kind, base.path) as transaction:
            record = _place(transaction, trial_id, base, tuple(pages), source)
        candidate = Trial(kind, base.path, record)
        try:
            yield candidate
        finally:
            candidate.close()
    finally:
        owned.discard(trial_id)
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
    with telling(store.path):
        contents = pages_and_source(store, PageChange(store, pages, None, ()), source)
    before, after = (store.path / PAGES_FILE).read_bytes(), contents[PAGES_FILE] or b""
    record = TrialRecord(
        trial_id,
        Content(before, store.source.encode() if store.has_source else None),
        Content(after, source.encode()),
        tuple(page.key for page in pages),
    )
    with telling(store.path):
        journal.commit(
            store.path, {**contents, **ignored_history(store.path), record.file: record.to_json()}
        )
    return record
