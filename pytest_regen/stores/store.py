"""The folder of one endpoint: read, created, written.

A store is read as it was at one moment, each file once, without writing or locking. One writer at a
time, all or nothing, and nothing that a model wrote is lost.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from pytest_regen.canonical import canonical_hash
from pytest_regen.commit import LOCK_TIMEOUT, Candidate, Contents, View, now
from pytest_regen.documents.ir import IR, SCHEMAS, TypeIR, ir_hash, type_hash
from pytest_regen.errors import StoreMissingError, UnknownPageError, UnknownTypeError
from pytest_regen.files import fsync_folder, make_folder, refuse_obstacle
from pytest_regen.modes import HAND
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE, is_store
from pytest_regen.stores import formats
from pytest_regen.stores.conflicts import read_artifact, with_worked_out
from pytest_regen.stores.history import HistoryEntry, history_files, source_name, store_files
from pytest_regen.strict_json import as_json, corrupt, parse_json
from pytest_regen.validation.issues import Issue


class Plan:
    """``ir.json`` and ``prompts.json`` of a store.

    A value that states of a store share, because most of what follows from it takes long.
    """

    def __init__(
        self, path: Path, prompts: Sequence[PromptEntry], ir_data: bytes, prompts_data: bytes
    ) -> None:
        self.path = path
        self.prompts = tuple(prompts)
        self.ir_data = ir_data
        """``ir.json`` as it is in the folder."""
        self.prompts_data = prompts_data
        """``prompts.json`` as it is in the folder."""

    @classmethod
    def of(cls, path: Path, ir: IR, prompts: Sequence[PromptEntry]) -> "Plan":
        """Return the plan that is not written yet; raises UnicodeEncodeError for half a pair."""
        prompts_data = as_json([entry.to_json() for entry in prompts])
        return cls(path, prompts, formats.ir_as_json(ir), prompts_data)

    @cached_property
    def ir(self) -> IR:
        """What the types were read as; raises StoreCorruptError."""
        return formats.read_ir(self.ir_data, self.path / IR_FILE)

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
        """The hash of each type."""
        return {name: type_hash(type_) for name, type_ in self.types.items()}

    @cached_property
    def _spelt(self) -> Mapping[str, Any]:
        spelt: dict[str, Any] = parse_json(self.ir_data, self.path / IR_FILE)
        return spelt

    @cached_property
    def _spelt_hashes(self) -> frozenset[tuple[str, str]]:
        return frozenset((type_["name"], canonical_hash(type_)) for type_ in self._spelt["types"])

    def has_type(self, name: str, hash_: str) -> bool:
        """Return whether a hash is that of a type, as this release spells it or the file does.

        A release that adds a key to types must not make all of them stale.
        """
        return self.hashes.get(name) == hash_ or (name, hash_) in self._spelt_hashes

    def is_of(self, recorded: str | None) -> bool:
        """Return whether a hash is that of the whole IR, spelt in either way."""
        return recorded is None or recorded in {self._hash, ir_hash(self._spelt)}

    @cached_property
    def _hash(self) -> str:
        return ir_hash(self.ir)

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
        refuse_no_store(path)  # First, because a lock would make a folder that is no store.
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
        pages: Iterable[formats.StoredPage] = (),
        source: str = "",
        namespace: str | None = None,
        profile: str = "default",
        before: "RegenStore | None" = None,
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
            before: the store that is there, whose moment, model and boundaries stay.
        """
        path, old = Path(path), before.envelope if before else None
        envelope = formats.PagesEnvelope(
            version=1,
            endpoint={"method": ir.endpoint.method, "path": ir.endpoint.path},
            language=ir.language,
            namespace=namespace,
            profile=profile,
            boundary_tag=old.boundary_tag if old else "REGEN",
            ir_hash=None if ir.endpoint.status == SCHEMAS else ir_hash(ir),
            generated_at=old.generated_at if old else now(),
            model=old.model if old else "",
            source_file=source_file,
        ).with_pages(pages, prompts)
        with store_files(path).explain_errors():
            return cls(path, envelope, Plan.of(path, ir, prompts), source, bool(source))

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
            # Before the lock, because a change that makes its root needs the folder above it.
            for folder in make_folder(path.resolve().parent):
                fsync_folder(folder)
        with files.locked():
            if is_store(path):
                yield StoreUpdate(cls.open(path))
            else:
                # Because what is written need not be read again but for its bytes.
                _open[path.absolute()] = planned
                yield StoreUpdate(planned, schema)

    def with_content(self, pages: Iterable[formats.StoredPage], source: str) -> "RegenStore":
        """Return the store as it would be with these pages and this source; nothing is written.

        Args:
            pages: all of them, each with a prompt in the store.
            source: the whole source file; empty before the first page.

        Raises:
            StoreCorruptError: ``ir.json`` is unreadable.
        """
        stored = {page.key: page for page in pages}
        ordered = (stored[entry.key] for entry in self.prompts if entry.key in stored)
        return replace(
            self,
            envelope=self.envelope.with_pages(ordered, self.prompts),
            pages_data=b"",
            memo={**self.memo},
            source=source,
            has_source=self.has_source or bool(source),
        )

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
        what, why = f"{self.path} has no type {name!r}", ""
        if meant:
            what = f"{name!r} is the schema of several types in {self.path}"
            why = "a type is meant by the name its source declares"
        hint = f"name one of: {', '.join(meant or by_type)}"
        raise UnknownTypeError(what, why=why, hint=hint)

    def is_stale(self, type_name: str) -> bool:
        """Return whether a type's pages were written for another IR than ``ir.json`` holds."""
        if type_name not in self.plan.types:
            return True
        for entry in self.prompts_of(type_name):
            page = self.pages.get(entry.key)
            made_from = self.prompt_type_hash(entry) if page is None else page.type_hash
            if made_from is None:
                # The page does not say, so that the store as a whole has to.
                if not self.plan.is_of(self.envelope.ir_hash):
                    return True
            elif not self.plan.has_type(type_name, made_from):
                return True
        return False

    def prompt_type_hash(self, entry: PromptEntry) -> str | None:
        """Return the hash of the type's IR that a stored prompt was made from.

        Where ``prompts.json`` does not say, and ``ir.json`` has moved on since, the hash of the
        whole IR stands for it: what answers the prompt must not look fresh.
        """
        if entry.type_hash is not None:
            return entry.type_hash
        if not self.plan.is_of(self.envelope.ir_hash):
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
    why = "it is a file" if path.exists() else "there is no such folder"
    if path.is_dir():
        why = f"the folder holds no {IR_FILE}, {PROMPTS_FILE} or {PAGES_FILE}"
    raise StoreMissingError(
        f"there is no store at {path}",
        why=why,
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
            plan = planned.plan
            probe.writelines((plan.ir_data, plan.prompts_data, schema.encode()))
            probe.flush()


@dataclass(frozen=True, kw_only=True)
class _Change:
    """What is written of a store, all or nothing; what is not given stays."""

    store: RegenStore
    pages: Iterable[formats.StoredPage] = ()
    source: str | None = None
    ir: IR | None = None
    prompts: Sequence[PromptEntry] | None = None
    schema: str | None = None
    envelope: formats.PagesEnvelope | None = None
    replaced: Iterable[HistoryEntry] = ()
    keeps_source: bool = False

    @cached_property
    def plan(self) -> Sequence[PromptEntry]:
        """All prompts from now on."""
        return self.store.prompts if self.prompts is None else self.prompts

    @cached_property
    def stored(self) -> dict[PageKey, formats.StoredPage]:
        """All pages from now on; raises UnknownPageError for one without a prompt."""
        planned = {entry.key for entry in self.plan}
        for page in self.pages:
            if page.key not in planned:
                raise UnknownPageError(
                    f"{formats.describe_page(page.key)} has no prompt in {self.store.path}",
                    hint="store pages for prompts of the store, or give the new prompts with them",
                )
        pages = {**self.store.pages, **{page.key: page for page in self.pages}}
        return {entry.key: pages[entry.key] for entry in self.plan if entry.key in pages}

    @cached_property
    def history(self) -> tuple[HistoryEntry, ...]:
        """What goes to the history: what is given, and each output that is stored no more."""
        planned = {entry.key for entry in self.plan}
        given = list(self.replaced)
        # Not twice, because an entry that is given also says what was wrong with the output.
        explained = {(entry.key, entry.output) for entry in given}
        # By type and not by page, because pages may be numbered anew around the same output.
        stays = {(page.type_name, page.output) for page in self.stored.values()}
        for page in self.store.pages.values():
            output = page.output
            if (page.type_name, output) not in stays and (page.key, output) not in explained:
                given.append(
                    HistoryEntry.of(page, "replaced" if page.key in planned else "vanished")
                )
        return tuple(given)

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
    def new_envelope(self) -> formats.PagesEnvelope:
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
            contents[IR_FILE] = formats.ir_as_json(ir)
        if self.prompts is not None:
            contents[PROMPTS_FILE] = as_json([entry.to_json() for entry in self.prompts])
        if self.schema is not None:
            contents[formats.SCHEMA_FILE] = self.schema.encode()
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
                new = {IR_FILE: store.plan.ir_data, PROMPTS_FILE: store.plan.prompts_data}
                parts = {"schema": self._schema, "envelope": store.envelope, **parts}
            change = _Change(store=store, **parts)
            contents = {**new, **change.contents()}
        # One change: a kill leaves pages, source and history as before it or as after it.
        files.commit(contents)
        self._schema = None
        self.store = RegenStore.open(store.path)
        return change.ids

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
        return Candidate(
            _Change(store=self.store, pages=pages, source=source).contents(),
            rejected=history_files(self.store.path, rejected),
            history=tuple(entry.id for entry in rejected),
        )
