"""The folder of one endpoint: read, created, written.

A store is read as it was at one moment, each file once, without writing or locking. One writer at a
time, all or nothing, and nothing that a model wrote is lost.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypedDict, Unpack
from weakref import WeakValueDictionary

from pytest_regen.canonical import canonical_hash
from pytest_regen.commit import Candidate, Contents, View
from pytest_regen.documents.ir import IR, TypeIR, ir_hash
from pytest_regen.errors import StoreMissingError, UnknownPageError, UnknownTypeError
from pytest_regen.files import fsync_folder, make_folder, refuse_obstacle
from pytest_regen.modes import HAND
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE, is_store
from pytest_regen.stores import formats
from pytest_regen.stores.conflicts import read_artifact, with_worked_out
from pytest_regen.stores.history import (
    HistoryEntry,
    HistoryReason,
    history_files,
    source_name,
    store_files,
)
from pytest_regen.strict_json import as_json, corrupt, parse_json
from pytest_regen.validation.issues import Issue


# Compared by identity, because states of a store share it.
@dataclass(frozen=True, eq=False)
class Plan:
    """``ir.json`` and ``prompts.json`` of a store.

    A value that states of a store share, because most of what follows from it takes long.
    """

    path: Path
    prompts: tuple[PromptEntry, ...]
    ir_data: bytes
    """``ir.json`` as it is in the folder."""
    prompts_data: bytes
    """``prompts.json`` as it is in the folder."""

    @classmethod
    def of(cls, path: Path, ir: IR, prompts: Sequence[PromptEntry]) -> "Plan":
        """Return the plan that is not written yet; raises UnicodeEncodeError for half a pair."""
        prompts_data = as_json([entry.to_json() for entry in prompts])
        return cls(path, tuple(prompts), formats.ir_as_json(ir), prompts_data)

    @cached_property
    def ir(self) -> IR:
        """What the types were read as; raises StoreCorruptError."""
        return formats.read_ir(self.spelt, self.path / IR_FILE)

    @cached_property
    def by_type(self) -> Mapping[str, tuple[PromptEntry, ...]]:
        """The prompts of each type, by page."""
        entries: dict[str, list[PromptEntry]] = {}
        for entry in self.prompts:
            entries.setdefault(entry.type_name, []).append(entry)
        return {
            name: tuple(sorted(listed, key=lambda entry: entry.page))
            for name, listed in entries.items()
        }

    @cached_property
    def types(self) -> Mapping[str, TypeIR]:
        """The types of the IR by name."""
        return {type_.name: type_ for type_ in self.ir.types}

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """The hash of each type, as the file spells it.

        A release that adds a key to types must not make all of them stale.
        """
        spelt = zip(self.ir.types, self.spelt["types"], strict=True)
        return {type_.name: canonical_hash(value) for type_, value in spelt}

    @cached_property
    def spelt(self) -> Mapping[str, Any]:
        """The IR as the file spells it."""
        spelt: dict[str, Any] = parse_json(self.ir_data, self.path / IR_FILE)
        return spelt

    @cached_property
    def edited_prompts(self) -> tuple[PageKey, ...]:
        """Prompts that are not as they were made: their text or their fields were edited."""
        return tuple(entry.key for entry in self.prompts if entry.is_edited)


# The last state of each folder, as long as somebody holds it: most of it is read only once.
_open: "WeakValueDictionary[Path, RegenStore]" = WeakValueDictionary()


@dataclass(frozen=True)
class RegenStore:
    """A store at one moment (``RegenStore.open``); it does not follow later changes.

    Raises:
        StoreMissingError: by ``open`` and ``update``, there is no store.
        StoreCorruptError: by ``open`` and ``update``, an artifact does not hold together.
    """

    path: Path
    envelope: formats.PagesEnvelope
    plan: Plan = field(repr=False)
    source: str
    """The source file with its own line ends; empty without a file."""
    has_source: bool
    pages_data: bytes = field(repr=False, default=b"")
    """``pages.json`` as it is in the folder; empty for a state that is not stored."""
    settled: tuple[str, ...] = ()
    """Artifacts that git left in conflict in lines that are worked out here."""
    memo: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)
    """What others worked out about this store, and check before they use it for another state."""

    @classmethod
    def open(cls, path: Path | str) -> "RegenStore":
        """Read the store in the folder ``path``.

        Returns the state that somebody holds already where no byte of the store has changed. A
        change that was committed but whose writer was killed is read as done. Nothing is written,
        so that a read-only folder serves.

        Raises:
            StoreMissingError: there is no store.
            StoreCorruptError: an artifact is missing or unreadable, or they contradict each other.
        """
        path = Path(path)
        refuse_no_store(path)
        before = _open.get(path.absolute())
        try:
            store = store_files(path).read(partial(cls._read, before=before))
        except OSError as error:
            file, why = path / Path(error.filename or ""), error.strerror or str(error)
            raise corrupt(file, "", "it cannot be read", why=why) from error
        _open[path.absolute()] = store
        return store

    @classmethod
    def _read(cls, view: View, *, before: "RegenStore | None") -> "RegenStore":
        path = view.root
        read = {name: read_artifact(view, name) for name in (PAGES_FILE, PROMPTS_FILE, IR_FILE)}
        pages_data, prompts_data, ir_data = (data for data, _ in read.values())
        settled = tuple(name for name, (_, is_settled) in read.items() if is_settled)
        if before and (before.plan.prompts_data, before.plan.ir_data) == (prompts_data, ir_data):
            plan, memo = before.plan, before.memo
        else:
            prompts = formats.read_prompts(prompts_data, path / PROMPTS_FILE)
            plan, memo = Plan(path, prompts, ir_data, prompts_data), {}
        if before and before.pages_data == pages_data and before.settled == settled:
            envelope = before.envelope
        else:
            envelope = formats.read_pages(pages_data, path / PAGES_FILE)
            if settled:
                envelope = with_worked_out(envelope, plan.ir, plan.prompts)
        data = view.read(envelope.source_file)
        try:
            source = (data or b"").decode()
        except UnicodeDecodeError as error:
            file, what = path / envelope.source_file, f"not UTF-8 at byte {error.start}"
            raise corrupt(file, "", what, why=error.reason) from None
        store = cls(path, envelope, plan, source, data is not None, pages_data, settled, {**memo})
        if before == store:
            return before  # The same object, because what was found about it is kept with it.
        # Read again by `AtomicFiles.read`, because a writer may have come in between.
        planned = {entry.key for entry in plan.prompts}
        for number, page in enumerate(envelope.pages):
            if page.key not in planned:
                what = f"{formats.describe_page(page.key)} has no prompt in {PROMPTS_FILE}"
                raise corrupt(path / PAGES_FILE, f"$.pages[{number}]", what)
        return store

    @classmethod
    @contextmanager
    def update(cls, path: Path | str) -> Iterator["StoreUpdate"]:
        """Lock the store, read it afresh and yield it as ``tx.store``, with ``tx.write(…)``.

        Keep it short and ask no model inside: everybody else waits.

        Args:
            path: folder of the store.

        Raises:
            StoreMissingError, StoreCorruptError: as by ``open``.
            StoreWriteError: another writer does not finish, or the folder cannot be written.
        """
        path = Path(path)
        refuse_no_store(path)  # First, because a lock would make a folder that is no store.
        with store_files(path).locked():
            yield StoreUpdate(cls.open(path))

    @classmethod
    @contextmanager
    def create_or_update(cls, planned: "RegenStore", *, schema: str) -> Iterator["StoreUpdate"]:
        """Lock a store that is not there yet, so that it is made together with its first pages.

        ``tx.store`` is the planned one; the first ``tx.write(…)`` makes the folder with all that is
        planned and all that it is given, in one step. Where another process has made a store there
        meanwhile, ``tx`` is an ``update`` of that one.

        Args:
            planned: the store with all that is known of it.
            schema: text of ``schema.md``.

        Raises:
            StoreCorruptError: of the other process, as by ``open``.
            StoreWriteError: another writer does not finish, or the folder cannot be written.
        """
        path, files = planned.path, store_files(planned.path)
        with files.explain_errors():
            # Before the lock, because a change that makes its root needs the folder above it.
            for folder in make_folder(path.resolve().parent):
                fsync_folder(folder)
        with files.locked():
            if is_store(path):
                yield StoreUpdate(cls.open(path))
            else:
                # Because what is written need not be read again but for its bytes.
                _open[path.absolute()] = planned
                # The first write makes all of it.
                yield StoreUpdate(planned, {"planned": planned, "schema": schema})

    @property
    def prompts(self) -> tuple[PromptEntry, ...]:
        """All prompts, in the order of the source."""
        return self.plan.prompts

    @property
    def ir(self) -> IR:
        """What the types were read as.

        Raises:
            StoreCorruptError: ``ir.json`` holds something else.
        """
        return self.plan.ir

    @cached_property
    def pages(self) -> Mapping[PageKey, formats.StoredPage]:
        """The stored pages by identity, in the order of their prompts."""
        stored = {page.key: page for page in self.envelope.pages}
        return {entry.key: stored[entry.key] for entry in self.prompts if entry.key in stored}

    @cached_property
    def missing_pages(self) -> tuple[PageKey, ...]:
        """Pages that were never written: the generation was interrupted."""
        return tuple(entry.key for entry in self.prompts if entry.key not in self.pages)

    @cached_property
    def tampered_pages(self) -> tuple[PageKey, ...]:
        """Pages whose output was edited in ``pages.json``; regenerating or adopting heals them."""
        return tuple(key for key, page in self.pages.items() if page.is_tampered)

    @property
    def source_path(self) -> Path:
        """The source file, whether it is there or not."""
        return self.path / self.envelope.source_file

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """The types that prompts ask for, in their order."""
        return tuple(self.plan.by_type)

    def prompts_of(self, type_name: str) -> tuple[PromptEntry, ...]:
        """Return the prompts of a type, by page; none for a type that is not asked for."""
        return self.plan.by_type.get(type_name, ())

    def pages_of(self, type_name: str) -> tuple[formats.StoredPage, ...]:
        """Return the stored pages of a type, by page; missing ones are left out."""
        pages = (self.pages.get(entry.key) for entry in self.prompts_of(type_name))
        return tuple(page for page in pages if page is not None)

    def next_attempt(self, key: PageKey) -> int:
        """Return the running number that the next output of a page gets."""
        return self.pages[key].attempt + 1 if key in self.pages else 1

    def resolve_type(self, name: str) -> str:
        """Return the declared name meant by ``name``: that name itself, or the schema's.

        Raises:
            UnknownTypeError: none is meant, or several; the hint lists them.
        """
        by_type = self.plan.by_type
        if name in by_type:
            return name
        meant = []
        for type_ in self.ir.types:
            last = type_.schema_id.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
            if type_.name in by_type and name in (type_.schema_id, last):
                meant.append(type_.name)
        if len(meant) == 1:
            return meant[0]
        what = f"{self.path} has {'several types' if meant else 'no type'} {name!r}"
        raise UnknownTypeError(what, hint=f"name one of: {', '.join(meant or by_type)}")

    def is_stale(self, type_name: str) -> bool:
        """Return whether a type's pages were written for another IR than ``ir.json`` holds."""
        hash_ = self.plan.hashes.get(type_name)
        for entry in self.prompts_of(type_name):
            page = self.pages.get(entry.key)
            made_from = page.type_hash if page else entry.type_hash
            # Where it does not say, the store as a whole has to.
            if made_from is None and self._is_fresh:
                continue
            if made_from != hash_:
                return True
        return hash_ is None

    @cached_property
    def _is_fresh(self) -> bool:
        """Whether the prompts as a whole were made from this IR, as far as the store says so."""
        recorded = self.envelope.ir_hash
        return recorded is None or recorded == ir_hash(self.plan.spelt)

    def prompt_type_hash(self, entry: PromptEntry) -> str | None:
        """Return the hash of the type's IR that a stored prompt was made from.

        Where ``prompts.json`` does not say, and ``ir.json`` has moved on since, the hash of the
        whole IR stands for it: what answers the prompt must not look fresh.
        """
        if entry.type_hash is not None:
            return entry.type_hash
        if not self._is_fresh:
            page = self.pages.get(entry.key)
            return (page.type_hash if page else None) or self.envelope.ir_hash
        return self.plan.hashes.get(entry.type_name)

    def assembly(self) -> str:
        """Return the source that the stored pages make, hand edits left out.

        Types of which a page is missing are left out.
        """
        from pytest_regen.sources import assemble

        stitched = [(name, self.stitch_type(name)) for name in self.type_names]
        return assemble(
            [(name, text) for name, text in stitched if text is not None],
            self.envelope.language,
            namespace=self.envelope.namespace,
            profile=self.envelope.profile,
        )

    def stitch_type(self, name: str) -> str | None:
        """Return a type as its stored pages make it; ``None`` while a page is missing."""
        from pytest_regen.sources import stitch

        outputs = [page.output for page in self.pages_of(name)]
        # No part of it, because half a type would break the whole file.
        if not outputs or len(outputs) < len(self.prompts_of(name)):
            return None
        type_ = self.plan.types.get(name)
        is_enum = type_ is not None and type_.kind == "enum"
        return stitch(outputs, name=name, is_enum=is_enum, language=self.envelope.language).text


def refuse_no_store(path: Path) -> None:
    """Raise a StoreMissingError unless ``path`` is a folder with an artifact of a store in it."""
    if path.is_dir() and is_store(path):
        return
    raise StoreMissingError(
        f"there is no store at {path}",
        why=f"it is not a folder with an {IR_FILE}, {PROMPTS_FILE} or {PAGES_FILE} in it",
        hint="name the folder that pytest-regen generate printed, or generate one: "
        'pytest-regen generate SPEC "GET /path" --out DIR',
    )


def refuse_unwritable(planned: RegenStore, schema: str) -> None:
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
        # Written, because permissions tell neither whether one may nor of a full disk.
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.writelines((planned.plan.ir_data, planned.plan.prompts_data, schema.encode()))
            probe.flush()


class Parts(TypedDict, total=False):
    """What is written of a store; what is not given stays."""

    pages: Sequence[formats.StoredPage]
    """In place of those with the same identity."""
    source: str | None
    """The whole source file, line ends as they shall be."""
    ir: IR
    """The value of ``ir.json``; one without findings keeps those of its types."""
    planned: RegenStore
    """With another IR, other prompts, namespace, profile, source file, …, where the plan changes:
    its pages are not used. A source file of another name is moved, its old content kept in the
    history."""
    schema: str
    """The text of ``schema.md``."""
    aside: Sequence[HistoryEntry]
    """Entries for the history of outputs that are not stored."""
    reason: HistoryReason
    """Why stored pages are replaced; without one, ``replaced``."""
    keeps_source: bool
    """Whether the source as it was is kept in the history, as a file of its own."""


def _change(store: RegenStore, parts: Parts) -> tuple[Contents, tuple[str, ...]]:
    """Return what files are to hold, and the names of what goes to the history."""
    pages, source, planned = parts.get("pages", ()), parts.get("source"), parts.get("planned")
    old, prompts = store.envelope, (planned or store).prompts
    keys = {entry.key for entry in prompts}
    for page in pages:
        if page.key not in keys:
            raise UnknownPageError(
                f"{formats.describe_page(page.key)} has no prompt in {store.path}",
                hint="store pages for prompts of the store, or give the new prompts with them",
            )
    by_key = {**store.pages, **{page.key: page for page in pages}}
    stored = [by_key[entry.key] for entry in prompts if entry.key in by_key]
    # Pages change nothing else, and that only where another one wrote them, because branches that
    # regenerate different types must merge.
    answered = [page for page in pages if page.model != HAND]
    envelope = replace(
        (planned or store).envelope,
        boundary_tag=old.boundary_tag,
        generated_at=old.generated_at,
        model=max(answered, key=lambda page: page.generated_at, default=old).model,
    ).with_pages(stored, prompts)
    is_moved = envelope.source_file != old.source_file and store.has_source
    # By type and not by page, because pages may be numbered anew around the same output.
    stays = {(page.type_name, page.output) for page in stored}
    lost = [page for page in store.pages.values() if (page.type_name, page.output) not in stays]
    reason = parts.get("reason", "replaced")
    entries = [
        *parts.get("aside", ()),
        *(HistoryEntry.of(page, reason if page.key in keys else "vanished") for page in lost),
    ]
    sources = {}
    if parts.get("keeps_source") or is_moved:
        sources = {source_name(store.source, old.source_file): store.source.encode()}
    contents: dict[str, bytes | None] = {**history_files(store.path, entries, sources)}
    if is_moved:
        contents[old.source_file] = None
        source = store.source if source is None else source
    ir = planned.ir if planned else parts.get("ir")
    if ir is not None:
        contents[IR_FILE] = formats.ir_as_json(_with_findings(ir, store.ir.validation or {}))
    if planned is not None:
        contents[PROMPTS_FILE] = planned.plan.prompts_data
    if "schema" in parts:
        contents[formats.SCHEMA_FILE] = parts["schema"].encode()
    if source is not None:
        contents[envelope.source_file] = source.encode()
    if pages or source is not None or ir or planned:
        contents[PAGES_FILE] = as_json(envelope.to_json())
    return contents, (*(entry.id for entry in entries), *sources)


def _with_findings(ir: IR, findings: Mapping[str, Any]) -> IR:
    """Return an IR with the findings of its types from before, unless it has its own."""
    if ir.validation is not None:
        return ir
    names = [type_.name for type_ in ir.types if type_.name in findings]
    return ir.model_copy(update={"validation": {name: findings[name] for name in names}})


class StoreUpdate:
    """A store under its lock: no other process writes to it."""

    def __init__(self, store: RegenStore, first: Parts | None = None) -> None:
        self.store = store
        """What the folder holds, read under the lock and again after each ``write``."""
        self._first: Parts = first or {}
        """What the first write writes beside what it is given."""

    def write(self, **parts: Unpack[Parts]) -> tuple[str, ...]:
        """Write what is given, all or nothing, and keep everything else.

        Stored pages that are replaced, or whose prompt is gone, go to the history by themselves.

        Returns:
            The ids of the history entries written: those of ``aside`` first, in their order;
            then the name of the source that is kept.

        Raises:
            UnknownPageError: a page has no prompt.
            StoreWriteError: the folder cannot be written; it is as it was.
        """
        store, files = self.store, store_files(self.store.path)
        with files.explain_errors():
            contents, ids = _change(store, {**self._first, **parts})
        # One change: a kill leaves pages, source and history as before it or as after it.
        files.commit(contents)
        self._first = {}
        self.store = RegenStore.open(store.path)
        return ids

    def candidate(
        self,
        pages: Sequence[formats.StoredPage],
        source: str,
        issues: Mapping[str, Sequence[Issue]],
    ) -> Candidate:
        """Return pages as a trial puts them in place.

        Args:
            pages: in place of those with the same identity.
            source: the whole source file with them.
            issues: what is wrong with them, by type; kept with those that do not stay.
        """
        rejected = [
            HistoryEntry.of(page, "rejected", issues.get(page.type_name, ())) for page in pages
        ]
        contents, _ = _change(self.store, {"pages": pages, "source": source})
        return Candidate(
            contents,
            rejected=history_files(self.store.path, rejected),
            history=tuple(entry.id for entry in rejected),
        )
