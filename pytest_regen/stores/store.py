"""The folder of one endpoint: opened, created, written.

One writer at a time, all or nothing, and nothing that a model wrote is lost.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_regen.commit import LOCK_TIMEOUT, Candidate, Contents
from pytest_regen.documents.ir import IR, SCHEMAS, ir_hash
from pytest_regen.errors import StoreWriteError, UnknownPageError
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
    now,
    source_file_fault,
)
from pytest_regen.stores.history import (
    HistoryEntry,
    history_files,
    source_name,
    store_files,
)
from pytest_regen.stores.snapshot import Snapshot, refuse_no_store, remember
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
        with store_files(path).locked(timeout):
            yield StoreUpdate(cls.open(path))

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
        with files.locked():
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


@dataclass(frozen=True, kw_only=True)
class _Change:
    """What is written of a store, all or nothing; what is not given stays."""

    store: RegenStore
    pages: Iterable[StoredPage] = ()
    source: str | None = None
    ir: IR | None = None
    prompts: Sequence[PromptEntry] | None = None
    schema: str | None = None
    envelope: PagesEnvelope | None = None
    replaced: Iterable[HistoryEntry] = ()
    keeps_source: bool = False

    @cached_property
    def plan(self) -> Sequence[PromptEntry]:
        """All prompts from now on."""
        return self.store.prompts if self.prompts is None else self.prompts

    @cached_property
    def stored(self) -> dict[PageKey, StoredPage]:
        """All pages from now on; raises UnknownPageError for one without a prompt."""
        planned = {entry.key for entry in self.plan}
        for page in self.pages:
            if page.key not in planned:
                raise UnknownPageError(
                    f"{describe_page(page.key)} has no prompt in {self.store.path}",
                    hint="store pages for prompts of the store, or give the new prompts with them",
                )
        pages = {**self.store.pages, **{page.key: page for page in self.pages}}
        return {entry.key: pages[entry.key] for entry in self.plan if entry.key in pages}

    @cached_property
    def history(self) -> tuple[HistoryEntry, ...]:
        """What goes to the history: what is given, and each output that is stored no more."""
        planned = {entry.key for entry in self.plan}
        given = list(self.replaced)
        explained = {(entry.key, entry.output) for entry in given}
        stays = {(page.type_name, page.output) for page in self.stored.values()}
        for page in self.store.pages.values():
            output = page.output
            if (page.type_name, output) not in stays and (page.key, output) not in explained:
                given.append(
                    HistoryEntry.of(page, "replaced" if page.key in planned else "vanished")
                )
        return tuple(entry.with_id() for entry in given)

    @cached_property
    def kept_source(self) -> dict[str, bytes]:
        """The source as it was, where it goes to the history as a file of its own."""
        name = self.store.envelope.source_file
        is_moved = self.store.has_source and self.new_envelope.source_file != name
        if not (self.keeps_source or is_moved):
            return {}
        return {source_name(self.store.source, name): self.store.source.encode()}

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of what goes to the history."""
        return (*(entry.id for entry in self.history), *self.kept_source)

    @cached_property
    def new_envelope(self) -> PagesEnvelope:
        """What the store says of itself from now on.

        Pages change nothing of it but the model, and that only where another one wrote them,
        because branches that regenerate different types must merge.
        """
        old, ir = self.store.envelope, self.ir or self.store.ir
        answered = [page for page in self.pages if page.model != HAND]
        last = max(answered, key=lambda page: page.generated_at, default=old)
        # The prompts were made from this IR; an IR without prompts leaves the store stale.
        new_hash = old.ir_hash if self.prompts is None else ir_hash(ir)
        return replace(
            self.envelope or old,
            # Older releases wrote it in stores of schemas, too.
            ir_hash=None if ir.endpoint.status == SCHEMAS else new_hash,
            generated_at=old.generated_at,
            model=last.model,
        ).with_pages(self.stored.values(), self.plan)

    def contents(self) -> Contents:
        """Return what the files are to hold."""
        store, envelope = self.store, self.new_envelope
        contents: dict[str, bytes | None] = {}
        contents |= history_files(store.path, self.history, self.kept_source)
        if envelope.source_file != store.envelope.source_file and store.has_source:
            contents |= {store.envelope.source_file: None}
            contents |= {envelope.source_file: store.source.encode()}
        if self.ir is not None:
            ir = self.ir
            if ir.validation is None:
                findings = store.ir.validation or {}
                names = [type_.name for type_ in ir.types if type_.name in findings]
                stays = {name: findings[name] for name in names}
                ir = ir.model_copy(update={"validation": stays})
            contents[IR_FILE] = ir_as_json(ir)
        if self.prompts is not None:
            contents[PROMPTS_FILE] = as_json([entry.to_json() for entry in self.prompts])
        if self.schema is not None:
            contents[SCHEMA_FILE] = self.schema.encode()
        if self.source is not None:
            contents[envelope.source_file] = self.source.encode()
        if any((self.pages, self.source is not None, self.ir, self.prompts, self.envelope)):
            contents[PAGES_FILE] = as_json(envelope.to_json())
        return contents


class StoreUpdate:
    """A store under its lock: no other process writes to it."""

    def __init__(self, store: RegenStore, schema: str | None = None) -> None:
        self.store = store
        """What the folder holds, read under the lock and again after each ``write``."""
        self._schema = schema
        """The text of ``schema.md`` where there is no store yet; the first write makes it."""

    def write(self, **parts: Any) -> tuple[str, ...]:
        """Write what is given, all or nothing, and keep everything else.

        Stored pages that are replaced, or whose prompt is gone, go to the history by themselves.

        Args:
            parts: ``pages``, to be stored in place of those with the same identity; ``source``, the
                whole source file, line ends as they shall be; ``ir``, the value of ``ir.json``,
                where one without findings keeps those of its types; ``prompts``, all of the store,
                where the plan changes; ``schema``, the text of ``schema.md``; ``envelope``, with a
                new namespace, profile, source file, …, of which pages and hashes are not used (a
                source file of another name is moved, its old content kept in the history);
                ``replaced``, entries for the history with their reasons and issues, which stand in
                for automatic ones about the same pages; ``keeps_source``, whether the source as it
                was is kept in the history, as a file of its own.

        Returns:
            The ids of the history entries written: those of ``replaced`` first, in their order;
            then the name of the source that is kept.

        Raises:
            UnknownPageError: a page has no prompt.
            StoreWriteError: the folder cannot be written; it is as it was.
        """
        store, files = self.store, store_files(self.store.path)
        with files.explain_errors():
            new: dict[str, bytes] = {}
            if self._schema is not None:
                new = {IR_FILE: store.ir_data, PROMPTS_FILE: store.prompts_data}
                parts = {"schema": self._schema, "envelope": store.envelope, **parts}
            change = _Change(store=store, **parts)
            contents = {**new, **change.contents()}
        files.commit(contents)
        self._schema = None
        self.store = RegenStore.open(store.path)
        return change.ids

    def candidate(
        self, pages: Sequence[StoredPage], source: str, issues: Mapping[str, Sequence[Issue]]
    ) -> Candidate:
        """Return pages as a trial puts them in place.

        Args:
            pages: in place of those with the same identity.
            source: the whole source file with them.
            issues: what is wrong with them, by type; kept with those that do not stay.
        """
        rejected = [
            HistoryEntry.of(page, "rejected", issues.get(page.type_name, ())).with_id()
            for page in pages
        ]
        return Candidate(
            _Change(store=self.store, pages=pages, source=source).contents(),
            rejected=history_files(self.store.path, rejected),
            history=tuple(entry.id for entry in rejected),
        )
