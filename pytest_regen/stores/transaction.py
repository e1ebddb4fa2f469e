"""Writing to a store: one writer at a time, all or nothing, and nothing a model wrote is lost."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

from pytest_regen.commit import LOCK_TIMEOUT
from pytest_regen.documents.ir import IR, SCHEMAS, ir_hash
from pytest_regen.errors import UnknownPageError
from pytest_regen.files import fsync_folder, make_folder, refuse_obstacle
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE, is_store
from pytest_regen.stores.formats import (
    HAND,
    SCHEMA_FILE,
    PagesEnvelope,
    StoredPage,
    describe_page,
    ir_as_json,
)
from pytest_regen.stores.history import HistoryEntry, history_files, source_name, store_files
from pytest_regen.stores.snapshot import Snapshot, refuse_no_store, remember
from pytest_regen.stores.trials import take_out
from pytest_regen.strict_json import as_json

StoreT = TypeVar("StoreT", bound=Snapshot)


def refuse_unwritable(planned: Snapshot, schema: str) -> None:
    """Raise what writing a store would end in, before a page is paid for.

    Args:
        planned: the store as it is going to be; nothing is left in its folder, which need not
            exist.
        schema: text of ``schema.md``.

    Raises:
        StoreWriteError: the folder cannot be written, the disk has no room, or a text no bytes.
    """
    import tempfile

    path, files = planned.path, store_files(planned.path)
    with files.explain_errors():
        for file in (path / PAGES_FILE, files.lock):
            refuse_obstacle(file)
        folder = next(place for place in (path, *path.resolve().parents) if place.is_dir())
        # Only writing tells whether one may write.
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.writelines((planned.ir_data, planned.prompts_data, schema.encode()))
            probe.flush()


@contextmanager
def update(
    kind: type[StoreT], path: Path, timeout: float = LOCK_TIMEOUT
) -> Iterator["StoreUpdate[StoreT]"]:
    """Lock the store at ``path`` and read it afresh; see ``RegenStore.update``."""
    refuse_no_store(path)  # No lock is made for what is no store.
    with store_files(path).locked(timeout, recover=take_out):
        yield StoreUpdate(kind.open(path))


@contextmanager
def create_or_update(
    planned: StoreT, schema: str, timeout: float = LOCK_TIMEOUT
) -> Iterator["StoreUpdate[StoreT]"]:
    """Lock a store that is planned, or was made meanwhile; see ``RegenStore.create_or_update``."""
    path, files = planned.path, store_files(planned.path)
    with files.explain_errors():
        for folder in make_folder(path.resolve().parent):
            fsync_folder(folder)
    with files.locked(timeout, recover=take_out):
        if is_store(path):
            yield StoreUpdate(type(planned).open(path))
        else:
            remember(planned)  # What is written is not read again but for its bytes.
            yield StoreUpdate(planned, schema)


class StoreUpdate(Generic[StoreT]):
    """A store under its lock: no other process writes to it."""

    def __init__(self, store: StoreT, schema: str | None = None) -> None:
        self.store: StoreT = store
        """What the folder holds, read under the lock and again after each ``write``."""
        self._schema = schema
        """The text of ``schema.md`` where there is no store yet; the first write makes it."""

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
        sources = _kept_source(self.store) if keeps_source else {}
        files = store_files(self.store.path)
        with files.explain_errors():
            if self._schema is not None:
                contents[IR_FILE] = self.store.ir_data
                contents[PROMPTS_FILE] = self.store.prompts_data
                contents[SCHEMA_FILE] = self._schema.encode()
            contents.update(history_files(self.store.path, change.history, sources))
            if ir is not None:
                contents[IR_FILE] = ir_as_json(_with_findings(ir, self.store.ir))
            if prompts is not None:
                contents[PROMPTS_FILE] = as_json([entry.to_json() for entry in prompts])
            if schema is not None:
                contents[SCHEMA_FILE] = schema.encode()
            given = (self._schema, prompts, source, envelope, ir)
            if change.written or any(value is not None for value in given):
                contents |= pages_and_source(self.store, change, source, envelope=envelope, ir=ir)
        files.commit(contents)
        self._schema = None
        self.store = type(self.store).open(self.store.path)
        return (*(entry.id for entry in change.history), *sources)


def _with_findings(ir: IR, old: IR) -> IR:
    """Return an IR with what was found in its types, where it says nothing itself."""
    if ir.validation is not None:
        return ir
    names = {type_.name for type_ in ir.types}
    found = {name: one for name, one in (old.validation or {}).items() if name in names}
    return ir.model_copy(update={"validation": found})


def _kept_source(store: Snapshot) -> dict[str, bytes]:
    return {source_name(store.source, store.envelope.source_file): store.source.encode()}


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
        self.is_planned = plan is not None
        self.plan = store.prompts if plan is None else plan
        order = [entry.key for entry in self.plan]
        new = dict(store.pages) | {page.key: page for page in written}
        _refuse_pages_without_prompt(written, set(order), store.path)
        self.pages = [new[key] for key in order if key in new]
        explained = {(entry.key, entry.output) for entry in given}
        kept = {(page.type_name, page.output) for page in self.pages}
        lost = [
            page
            for page in store.pages.values()
            if (page.type_name, page.output) not in kept
            and (page.key, page.output) not in explained
        ]
        planned = set(order)
        self.history = [entry.with_id() for entry in given] + [
            HistoryEntry.of(page, "replaced" if page.key in planned else "vanished").with_id()
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
    if change.is_planned:
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
        contents |= history_files(store.path, (), _kept_source(store))
    if store.ir.endpoint.status == SCHEMAS:
        new = replace(new, ir_hash=None)  # Older releases wrote it.
    contents[PAGES_FILE] = as_json(new.with_pages(change.pages, change.plan).to_json())
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
