"""The folder of one endpoint: opened, created, written.

One writer at a time, all or nothing, and nothing that a model wrote is lost.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_regen import commit
from pytest_regen.commit import LOCK_TIMEOUT, Contents, View
from pytest_regen.documents.ir import IR, SCHEMAS, ir_hash
from pytest_regen.errors import StoreWriteError, UnknownPageError
from pytest_regen.files import fsync_folder, make_folder, refuse_obstacle
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE, is_store
from pytest_regen.stores.formats import (
    HAND,
    SCHEMA_FILE,
    PagesEnvelope,
    StoredPage,
    describe_page,
    ir_as_json,
    now,
    source_file_fault,
)
from pytest_regen.stores.history import HistoryEntry, history_files, source_name, store_files
from pytest_regen.stores.snapshot import Snapshot, refuse_no_store, remember
from pytest_regen.stores.trials import Content, TrialRecord, contents_at_end, splice, take_out
from pytest_regen.strict_json import as_json
from pytest_regen.validation.issues import Issue


class RegenStore(Snapshot):
    """A store at one moment (``RegenStore.open``); it does not follow later changes.

    Raises:
        StoreMissingError: by ``open`` and ``update``, there is no store.
        StoreCorruptError: by ``open`` and ``update``, an artifact does not hold together.
    """

    @classmethod
    @contextmanager
    def update(cls, path: Path | str, *, timeout: float = LOCK_TIMEOUT) -> Iterator["StoreUpdate"]:
        """Lock the store, read it afresh and yield it as ``tx.store``, with ``tx.write(…)``.

        Keep it short and ask no model inside: everybody else waits.

        Args:
            path: folder of the store.
            timeout: seconds to wait for another writer.

        Raises:
            StoreMissingError, StoreCorruptError: as by ``open``.
            StoreWriteError: another writer does not finish, or the folder cannot be written.
        """
        path = Path(path)
        refuse_no_store(path)  # No lock is made for what is no store.
        with store_files(path).locked(timeout, recover=take_out):
            yield StoreUpdate(cls.open(path))

    @contextmanager
    def trial(self, *, pages: Iterable[StoredPage], source: str) -> Iterator["Trial"]:
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
        candidates = tuple(pages)

        def place(_: View) -> tuple[object, Contents]:
            store, text = RegenStore.open(self.path), source
            if store.source != self.source:
                # Others committed since the candidate was made: only its own blocks are put in.
                names = dict.fromkeys(page.type_name for page in candidates)
                text = splice(store.source, source, names)
            contents = _pages_and_source(_PageChange(store, candidates), text)
            before = (store.path / PAGES_FILE).read_bytes().decode()
            record = TrialRecord(
                Content(before, store.source if store.has_source else None),
                Content((contents[PAGES_FILE] or b"").decode(), text),
                tuple(page.key for page in candidates),
            )
            return record.to_json(), contents

        with store_files(self.path).trial(place, take_out) as placed:
            trial = Trial(self.path, placed)
            try:
                yield trial
            finally:
                trial.reject()

    @classmethod
    def from_plan(
        cls,
        path: Path | str,
        *,
        ir: IR,
        prompts: Sequence[PromptEntry],
        source_file: str,
        pages: Iterable[StoredPage] = (),
        source: str = "",
        namespace: str | None = None,
        profile: str = "default",
    ) -> "RegenStore":
        """Return a store as it would be, before anything of it is written.

        Args:
            path: its folder, which need not be there.
            ir: value of ``ir.json``.
            prompts: all of them, in the order of the source.
            source_file: plain name of the source file, such as ``ProjectDataObject.cs``.
            pages: those that are there already.
            source: the whole source file.
            namespace: of the source, where it has one.
            profile: of the language's assembly.
        """
        envelope = PagesEnvelope(
            version=1,
            endpoint={"method": ir.endpoint.method, "path": ir.endpoint.path},
            language=ir.language,
            namespace=namespace,
            profile=profile,
            boundary_tag="REGEN",
            ir_hash=None if ir.endpoint.status == SCHEMAS else ir_hash(ir),
            generated_at=now(),
            model="",
            source_file=source_file,
        ).with_pages(pages, prompts)
        path = Path(path)
        with store_files(path).explain_errors():
            ir_data = ir_as_json(ir)
            prompts_data = as_json([entry.to_json() for entry in prompts])
        planned = cls(path, envelope, tuple(prompts), source, bool(source), ir_data, prompts_data)
        if ir.validation is None:
            # As it would be read from its JSON, which takes longer.
            findings: dict[str, Any] = {"validation": {type_.name: [] for type_ in ir.types}}
            planned.__dict__["ir"] = ir.model_copy(update=findings)
        return planned

    @classmethod
    def create(cls, path: Path | str, *, schema: str = "", **plan: Any) -> "RegenStore":
        """Make a store whose pages are all missing yet.

        Args:
            path: its folder; made where it is not there.
            schema: text of ``schema.md``.
            plan: as for ``from_plan``.

        Raises:
            StoreWriteError: there is a store already, or the folder cannot be written.
        """
        path = Path(path)
        if why := source_file_fault(plan["source_file"]):
            raise StoreWriteError(
                f"no store can be made at {path}: {why}", hint="give the source another file name"
            )
        planned = cls.from_plan(path, **plan)
        with cls.create_or_update(planned, schema=schema) as tx:
            if tx.store is not planned:
                raise StoreWriteError(
                    f"there is a store at {path} already",
                    hint=f"update it, or move {path} away first",
                )
            tx.write()
        return cls.open(path)

    @classmethod
    @contextmanager
    def create_or_update(cls, planned: "RegenStore", *, schema: str) -> Iterator["StoreUpdate"]:
        """Lock a store that is not there yet, so that it is made together with its first pages.

        ``tx.store`` is the planned one; the first ``tx.write(…)`` makes the folder with all that is
        planned and all that it is given, in one step. Where another process has made a store there
        meanwhile, ``tx`` is an ``update`` of that one.

        Args:
            planned: from ``from_plan``.
            schema: text of ``schema.md``.

        Raises:
            StoreCorruptError: of the other process, as by ``open``.
            StoreWriteError: another writer does not finish, or the folder cannot be written.
        """
        path, files = planned.path, store_files(planned.path)
        with files.explain_errors():
            for folder in make_folder(path.resolve().parent):
                fsync_folder(folder)
        with files.locked(recover=take_out):
            if is_store(path):
                yield StoreUpdate(cls.open(path))
            else:
                remember(planned)  # What is written is not read again but for its bytes.
                yield StoreUpdate(planned, schema)


def refuse_unwritable(planned: Snapshot, schema: str) -> None:
    """Raise what writing a store would end in, before a page is paid for.

    Args:
        planned: the store as it is going to be; nothing is left in its folder, which need not
            exist.
        schema: text of ``schema.md``.

    Raises:
        StoreWriteError: the folder cannot be written, the disk has no room, or a text no bytes.
    """
    path, files = planned.path, store_files(planned.path)
    with files.explain_errors():
        for file in (path / PAGES_FILE, files.lock):
            refuse_obstacle(file)
        folder = next(place for place in (path, *path.resolve().parents) if place.is_dir())
        # Only writing tells whether one may write.
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.writelines((planned.ir_data, planned.prompts_data, schema.encode()))
            probe.flush()


class Trial:
    """A candidate that is in place; taken out again unless ``accept`` is called."""

    def __init__(self, path: Path, placed: commit.Trial) -> None:
        self._path = path
        self._trial = placed
        self._record = TrialRecord.from_json(placed.record, path)
        self.history: tuple[str, ...] = ()
        """Ids of the history entries that the end of the trial wrote: the old outputs where the
        candidate was accepted, else the candidate's."""

    @property
    def is_accepted(self) -> bool:
        """Whether the candidate stays."""
        return self._trial.is_accepted

    @property
    def store(self) -> RegenStore:
        """The store with the candidate in place, read afresh on each access."""
        return RegenStore.open(self._path)

    def accept(self, issues: Mapping[str, Sequence[Issue]] | None = None) -> None:
        """Keep the candidate; the outputs it stands in for go to the history as replaced.

        Args:
            issues: type name to what was found in the old outputs, kept with them.

        Raises:
            StoreWriteError: the folder cannot be written; the candidate is taken out instead.
        """
        self._trial.accept(partial(self._end, is_accepted=True, issues=issues))

    def reject(self, issues: Iterable[Issue] = ()) -> None:
        """Take the candidate out; what is wrong with it is kept with it in the history."""
        names = {key.type_name for key in self._record.candidates}
        by_type = dict.fromkeys(names, tuple(issues))
        self._trial.reject(partial(self._end, is_accepted=False, issues=by_type))

    def withdraw(self) -> None:
        """Take the candidate out and keep nothing of it here: it is kept elsewhere."""
        self._trial.reject(partial(self._end, is_accepted=False, keeps=False))

    def _end(self, view: View, **options: Any) -> Contents:
        contents, self.history = contents_at_end(self._record, view, **options)
        return contents


class StoreUpdate:
    """A store under its lock: no other process writes to it."""

    def __init__(self, store: RegenStore, schema: str | None = None) -> None:
        self.store = store
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
        change = _PageChange(self.store, tuple(pages), prompts, tuple(replaced))
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
                if ir.validation is None:
                    names = {type_.name for type_ in ir.types}
                    old = self.store.ir.validation or {}
                    stays = {name: found for name, found in old.items() if name in names}
                    ir = ir.model_copy(update={"validation": stays})
                contents[IR_FILE] = ir_as_json(ir)
            if prompts is not None:
                contents[PROMPTS_FILE] = as_json([entry.to_json() for entry in prompts])
            if schema is not None:
                contents[SCHEMA_FILE] = schema.encode()
            given = (self._schema, prompts, source, envelope, ir)
            if change.written or any(value is not None for value in given):
                contents |= _pages_and_source(change, source, envelope=envelope, ir=ir)
        files.commit(contents)
        self._schema = None
        self.store = RegenStore.open(self.store.path)
        return (*(entry.id for entry in change.history), *sources)


def _kept_source(store: Snapshot) -> dict[str, bytes]:
    return {source_name(store.source, store.envelope.source_file): store.source.encode()}


class _PageChange:
    """What becomes of the pages: those stored from now on, and those that go to the history."""

    def __init__(
        self,
        store: Snapshot,
        written: tuple[StoredPage, ...],
        plan: Sequence[PromptEntry] | None = None,
        explained: tuple[HistoryEntry, ...] = (),
    ) -> None:
        self.store = store
        self.written = written
        self.is_planned = plan is not None
        self.plan = store.prompts if plan is None else plan
        planned = {entry.key for entry in self.plan}
        for page in written:
            if page.key not in planned:
                raise UnknownPageError(
                    f"{describe_page(page.key)} has no prompt in {store.path}",
                    hint="store pages for prompts of the store, or give the new prompts with them",
                )
        stored = dict(store.pages) | {page.key: page for page in written}
        self.pages = [stored[entry.key] for entry in self.plan if entry.key in stored]
        stays = {(page.type_name, page.output) for page in self.pages}
        has_entry = {(entry.key, entry.output) for entry in explained}
        self.history = [entry.with_id() for entry in explained] + [
            HistoryEntry.of(page, "replaced" if page.key in planned else "vanished").with_id()
            for page in store.pages.values()
            if (page.type_name, page.output) not in stays
            and (page.key, page.output) not in has_entry
        ]


def _pages_and_source(
    change: _PageChange,
    source: str | None,
    *,
    envelope: PagesEnvelope | None = None,
    ir: IR | None = None,
) -> dict[str, bytes | None]:
    """Return the new content of ``pages.json`` and, where one is given, of the source file.

    Of the envelope, a page changes nothing but the model, and that only where another one wrote it:
    branches that regenerate different types shall merge.
    """
    store, old = change.store, change.store.envelope
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
