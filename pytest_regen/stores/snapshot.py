"""A store as it was at one moment: each file read once, consistent, without writing or locking."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self
from weakref import WeakValueDictionary

from pytest_regen.canonical import canonical_hash
from pytest_regen.commit import View, refuse_link
from pytest_regen.documents.ir import IR, TypeIR, ir_hash, type_hash
from pytest_regen.errors import StoreMissingError, UnknownTypeError
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE, is_store
from pytest_regen.stores.conflicts import read_artifact, with_worked_out
from pytest_regen.stores.formats import (
    PagesEnvelope,
    StoredPage,
    describe_page,
    ir_as_json,
    read_ir,
    read_pages,
    read_prompts,
)
from pytest_regen.stores.history import store_files
from pytest_regen.strict_json import as_json, corrupt, parse_json

_SHARED = (
    "ir",
    "_ir_hash",
    "_types",
    "_spelt_ir",
    "_type_hashes",
    "_spelt_hashes",
    "_prompts_by_type",
    "type_names",
    "_prompts_edited",
)
"""What is made of the IR and the prompts alone, and is the same for another state of the pages."""

_open: WeakValueDictionary[tuple[type, Path], "Snapshot"] = WeakValueDictionary()
"""The last snapshot of each folder, as long as somebody holds it: most of it is read only once."""


@dataclass(frozen=True)
class Snapshot:
    """The artifacts of one store at one moment."""

    path: Path
    envelope: PagesEnvelope
    prompts: tuple[PromptEntry, ...]
    source: str
    """The source file with its own line ends; empty without a file."""
    has_source: bool
    ir_data: bytes = field(repr=False)
    """``ir.json`` as it is in the folder."""
    prompts_data: bytes = field(repr=False)
    """``prompts.json`` as it is in the folder."""
    pages_data: bytes = field(repr=False, default=b"")
    """``pages.json`` as it is in the folder; empty for a state that is not stored."""
    settled: tuple[str, ...] = ()
    """Artifacts that git left in conflict in lines that are worked out here."""
    memo: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)
    """What others worked out about this store, and check before they use it for another state."""

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Read the store in the folder ``path``.

        Returns the snapshot that somebody holds already where no byte of the store has changed. A
        change that was committed but whose writer was killed is read as done. Nothing is written,
        so that a read-only folder serves.

        Raises:
            StoreMissingError: there is no store.
            StoreCorruptError: an artifact is missing or unreadable, or they contradict each other.
        """
        path = Path(path)
        refuse_no_store(path)
        key = (cls, path.absolute())
        before = _open.get(key)
        read = partial(cls._read, before=before if isinstance(before, cls) else None)
        try:
            store = store_files(path).read(read)
        except OSError as error:
            file, why = path / Path(error.filename or ""), error.strerror or str(error)
            raise corrupt(file, "", "it cannot be read", why=why) from error
        _open[key] = store
        return store

    @classmethod
    def _read(cls, view: View, *, before: Self | None) -> Self:
        path = view.root
        read = {name: read_artifact(view, name) for name in (PAGES_FILE, PROMPTS_FILE, IR_FILE)}
        pages_data, prompts_data, ir_data = (data for data, _ in read.values())
        if before and before.pages_data == pages_data:
            envelope = before.envelope
        else:
            envelope = read_pages(pages_data, path / PAGES_FILE)
        is_same_plan = before is not None and before.prompts_data == prompts_data
        if before and is_same_plan:
            prompts = before.prompts
        else:
            prompts = read_prompts(prompts_data, path / PROMPTS_FILE)
        data = view.read(envelope.source_file)
        try:
            source = (data or b"").decode()
        except UnicodeDecodeError as error:
            file, what = path / envelope.source_file, f"not UTF-8 at byte {error.start}"
            raise corrupt(file, "", what, why=error.reason) from None
        settled = tuple(name for name, (_, is_settled) in read.items() if is_settled)
        store = cls(
            path,
            envelope,
            prompts,
            source,
            data is not None,
            ir_data,
            prompts_data,
            pages_data,
            settled,
        )
        if settled:
            store = replace(store, envelope=with_worked_out(envelope, store.ir, prompts))
        if before == store:
            return before
        if before and is_same_plan and before.ir_data == ir_data:
            _share(before, store)
        planned = {entry.key for entry in prompts}
        for number, page in enumerate(envelope.pages):
            if page.key not in planned:
                what = f"{describe_page(page.key)} has no prompt in {PROMPTS_FILE}"
                raise corrupt(path / PAGES_FILE, f"$.pages[{number}]", what)
        return store

    def with_content(self, pages: Iterable[StoredPage], source: str) -> Self:
        """Return the store as it would be with these pages and this source; nothing is written.

        Args:
            pages: all of them, each with a prompt in the store.
            source: the whole source file; empty before the first page.

        Raises:
            StoreCorruptError: ``ir.json`` is unreadable.
        """
        _ = self.ir  # Read once here, not by each of several candidates.
        stored = {page.key: page for page in pages}
        ordered = (stored[entry.key] for entry in self.prompts if entry.key in stored)
        changed = replace(
            self,
            envelope=self.envelope.with_pages(ordered, self.prompts),
            pages_data=b"",
            memo=dict(self.memo),
            source=source,
            has_source=self.has_source or bool(source),
        )
        _share(self, changed)
        return changed

    def with_plan(
        self,
        *,
        ir: IR,
        prompts: Sequence[PromptEntry],
        pages: Iterable[StoredPage],
        source: str,
        envelope: PagesEnvelope,
    ) -> Self:
        """Return the store as it would be with another plan; nothing is written.

        Args:
            ir: value of ``ir.json``.
            prompts: all of them.
            pages: those that are kept, in the order of their prompts.
            source: the whole source file; empty before the first page.
            envelope: what the store says of itself; its pages are not used.
        """
        return replace(
            self,
            envelope=envelope.with_pages(pages, prompts),
            prompts=tuple(prompts),
            source=source,
            has_source=self.has_source or bool(source),
            ir_data=ir_as_json(ir),
            prompts_data=as_json([entry.to_json() for entry in prompts]),
            pages_data=b"",
            memo={},
        )

    @cached_property
    def ir(self) -> IR:
        """What the types were read as.

        Raises:
            StoreCorruptError: ``ir.json`` holds something else.
        """
        return read_ir(self.ir_data, self.path / IR_FILE)

    @cached_property
    def pages(self) -> Mapping[PageKey, StoredPage]:
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

    def refuse_links(self) -> None:
        """Raise a StoreWriteError where an output could not be written: an artifact is a link."""
        for path in (self.path / PAGES_FILE, self.source_path):
            refuse_link(path)

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """The types that prompts ask for, in their order."""
        return tuple(self._prompts_by_type)

    @cached_property
    def _prompts_by_type(self) -> Mapping[str, tuple[PromptEntry, ...]]:
        found: dict[str, list[PromptEntry]] = {}
        for entry in self.prompts:
            found.setdefault(entry.type_name, []).append(entry)
        return {
            name: tuple(sorted(entries, key=lambda entry: entry.page))
            for name, entries in found.items()
        }

    def prompts_of(self, type_name: str) -> tuple[PromptEntry, ...]:
        """Return the prompts of a type, by page; none for a type that is not asked for."""
        return self._prompts_by_type.get(type_name, ())

    def pages_of(self, type_name: str) -> tuple[StoredPage, ...]:
        """Return the stored pages of a type, by page; missing ones are left out."""
        pages = (self.pages.get(entry.key) for entry in self.prompts_of(type_name))
        return tuple(page for page in pages if page is not None)

    def resolve_type(self, name: str) -> str:
        """Return the declared name meant by ``name``: that name itself, or the schema's.

        Raises:
            UnknownTypeError: none is meant, or several; the hint lists them.
        """
        if name in self._prompts_by_type:
            return name
        meant = []
        for type_ in self.ir.types:
            last = type_.schema_id.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
            if type_.name in self._prompts_by_type and name in (type_.schema_id, last):
                meant.append(type_.name)
        if len(meant) == 1:
            return meant[0]
        if meant:
            raise UnknownTypeError(
                f"{name!r} is the schema of several types in {self.path}",
                why="a type is meant by the name its source declares",
                hint=f"name one of: {', '.join(meant)}",
            )
        raise UnknownTypeError(
            f"{self.path} has no type {name!r}",
            hint=f"name one of: {', '.join(self.type_names)}",
        )

    def is_stale(self, type_name: str) -> bool:
        """Return whether a type's pages were written for another IR than ``ir.json`` holds."""
        if type_name not in self._types:
            return True
        for entry in self.prompts_of(type_name):
            page = self.pages.get(entry.key)
            made_from = self.prompt_type_hash(entry) if page is None else page.type_hash
            if made_from is None:  # The page does not say; then the store as a whole has to.
                is_present = not self._has_moved_on
            else:
                # As this release spells the type, or as the file does: a release that adds a key
                # to types must not make all of them stale.
                is_present = made_from == self._type_hashes[type_name] or (
                    made_from in self._spelt_hashes[type_name]
                )
            if not is_present:
                return True
        return False

    def prompt_type_hash(self, entry: PromptEntry) -> str | None:
        """Return the hash of the type's IR that a stored prompt was made from.

        Where ``prompts.json`` does not say, and ``ir.json`` has moved on since, the hash of the
        whole IR stands for it: what answers the prompt must not look fresh.
        """
        if entry.type_hash is not None:
            return entry.type_hash
        if self._has_moved_on:
            page = self.pages.get(entry.key)
            return (page.type_hash if page else None) or self.envelope.ir_hash
        return self._type_hashes.get(entry.type_name)

    @cached_property
    def _spelt_ir(self) -> dict[str, Any]:
        """``ir.json`` as an older release may have spelt it, without keys that came since."""
        spelt: dict[str, Any] = parse_json(self.ir_data, self.path / IR_FILE)
        return spelt

    @cached_property
    def _has_moved_on(self) -> bool:
        """Whether ``ir.json`` is another than the one that the prompts were made from."""
        recorded = self.envelope.ir_hash
        if recorded is None or recorded == self._ir_hash:
            return False
        return recorded != ir_hash(self._spelt_ir)

    @cached_property
    def _ir_hash(self) -> str:
        return ir_hash(self.ir)

    @cached_property
    def _type_hashes(self) -> dict[str, str]:
        return {name: type_hash(type_) for name, type_ in self._types.items()}

    @cached_property
    def _spelt_hashes(self) -> dict[str, set[str]]:
        hashes: dict[str, set[str]] = {name: set() for name in self._types}
        for spelt in self._spelt_ir["types"]:
            hashes[spelt["name"]].add(canonical_hash(spelt))
        return hashes

    @cached_property
    def edited_prompts(self) -> tuple[PageKey, ...]:
        """Prompts that are not as they were made: their text or their fields were edited."""
        edited = set(self._prompts_edited)
        if any(entry.fields for entry in self.prompts) and not self._has_moved_on:
            # Entries without a hash of their own: together they ask for each field once.
            for name, entries in self._prompts_by_type.items():
                if name in self._types and any(entry.entry_hash is None for entry in entries):
                    asked = [unit for entry in entries for unit in entry.fields]
                    wanted = list(dict.fromkeys(self._types[name].units))
                    if sorted(map(repr, asked)) != sorted(map(repr, wanted)):
                        edited |= {entry.key for entry in entries}
        return tuple(entry.key for entry in self.prompts if entry.key in edited)

    @cached_property
    def _prompts_edited(self) -> frozenset[PageKey]:
        """Prompts whose text is not the one that they were stored with."""
        return frozenset(entry.key for entry in self.prompts if entry.is_edited)

    @cached_property
    def _types(self) -> dict[str, TypeIR]:
        return {type_.name: type_ for type_ in self.ir.types}

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
        from pytest_regen.languages import find_language
        from pytest_regen.sources import stitch

        outputs = [page.output for page in self.pages_of(name)]
        if not outputs or len(outputs) < len(self.prompts_of(name)):
            return None
        type_ = self._types.get(name)
        is_enum = type_ is not None and type_.kind == "enum"
        language = find_language(self.envelope.language)
        return stitch(outputs, name=name, is_enum=is_enum, language=language).text


def _share(known: Snapshot, other: Snapshot) -> None:
    """Give another state of a store what was made of the same IR and prompts before."""
    other.memo.update(known.memo)
    # Where `cached_property` keeps its values: what is not computed yet stays so.
    for name in _SHARED:
        if name in known.__dict__:
            other.__dict__[name] = known.__dict__[name]


def remember(store: Snapshot) -> None:
    """Let the next ``open`` share with ``store`` what the folder holds of it by then."""
    _open[type(store), store.path.absolute()] = store


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
