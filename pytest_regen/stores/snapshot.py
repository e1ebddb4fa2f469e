"""A store as it was at one moment: each file read once, consistent, without writing or locking."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self
from weakref import WeakValueDictionary

from pydantic import ValidationError

from pytest_regen.canonical import canonical_hash
from pytest_regen.commit import View, refuse_link
from pytest_regen.documents.ir import IR, TypeIR, ir_hash, type_hash
from pytest_regen.errors import StoreCorruptError, StoreMissingError, UnknownTypeError
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE, is_store
from pytest_regen.stores.conflicts import read_artifact, with_worked_out
from pytest_regen.stores.formats import (
    PagesEnvelope,
    StoredPage,
    describe_page,
    ir_as_json,
    read_pages,
    read_prompts,
)
from pytest_regen.stores.history import store_files
from pytest_regen.stores.trials import take_out
from pytest_regen.strict_json import as_json, corrupt, parse_json

_SHARED = (
    "ir",
    "_ir_hash",
    "_types",
    "_type_hashes",
    "_prompts_by_type",
    "type_names",
    "_spelt_hashes",
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
        known = _open.get(key)
        read = partial(cls._read, known=known if isinstance(known, cls) else None)
        try:
            store = store_files(path).read(read, take_out)
        except OSError as error:
            raise _unreadable(path, error) from error
        _open[key] = store
        return store

    @classmethod
    def _read(cls, view: View, *, known: Self | None) -> Self:
        path = view.root
        read = {name: read_artifact(view, name) for name in (PAGES_FILE, PROMPTS_FILE, IR_FILE)}
        data, prompts_data = read[PAGES_FILE][0], read[PROMPTS_FILE][0]
        envelope = _same_pages(known, data) or read_pages(data, path / PAGES_FILE)
        source = view.read(envelope.source_file)
        is_same_plan = known is not None and known.prompts_data == prompts_data
        store = cls(
            path=path,
            envelope=envelope,
            prompts=known.prompts
            if known and is_same_plan
            else read_prompts(prompts_data, path / PROMPTS_FILE),
            source=_decode(source or b"", path / envelope.source_file),
            has_source=source is not None,
            ir_data=read[IR_FILE][0],
            prompts_data=prompts_data,
            pages_data=data,
            settled=tuple(name for name, (_, is_settled) in read.items() if is_settled),
        )
        if store.settled:
            worked_out = with_worked_out(envelope, store.ir, store.prompts)
            store = replace(store, envelope=worked_out)
        if known == store:
            return known
        if known and is_same_plan and known.ir_data == store.ir_data:
            _share(known, store)
        _refuse_extra_pages(store)
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
        file = self.path / IR_FILE
        try:
            return IR.of(parse_json(self.ir_data, file))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            steps = (f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"])
            found = repr(first["input"])[:80]
            raise corrupt(file, "$" + "".join(steps), f"{first['msg']}, found {found}") from None
        except AttributeError:
            raise corrupt(file, "$", "expected an object") from None
        except RecursionError:
            raise corrupt(file, "", "nested too deeply to be read") from None

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
        meant = [
            type_.name
            for type_ in self.ir.types
            if type_.name in self._prompts_by_type and name in _schema_names(type_.schema_id)
        ]
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
        return any(not self._is_present(type_name, made) for made in self._made_from(type_name))

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
        return self._hash_of(entry.type_name) if entry.type_name in self._types else None

    def _made_from(self, type_name: str) -> Iterator[str | None]:
        """Yield what IR each page of a type, or its prompt where it was not written, is made of."""
        for entry in self.prompts_of(type_name):
            page = self.pages.get(entry.key)
            yield self.prompt_type_hash(entry) if page is None else page.type_hash

    def _is_present(self, type_name: str, hash_: str | None) -> bool:
        """Return whether a hash is that of a type as ``ir.json`` has it."""
        if hash_ is None:  # The page does not say; then the store as a whole has to.
            return not self._has_moved_on
        # As this release spells the type, or as the file does: a release that adds a key to types
        # must not make all of them stale.
        return hash_ == self._hash_of(type_name) or hash_ in self._spelt_hashes[type_name]

    def _hash_of(self, type_name: str) -> str:
        """Return the hash of a type as this release spells it."""
        if type_name not in self._type_hashes:
            self._type_hashes[type_name] = type_hash(self._types[type_name])
        return self._type_hashes[type_name]

    @cached_property
    def _type_hashes(self) -> dict[str, str]:
        return {}

    @cached_property
    def _ir_hash(self) -> str:
        return ir_hash(self.ir)

    @cached_property
    def _has_moved_on(self) -> bool:
        """Whether ``ir.json`` is another than the one that the prompts were made from."""
        known = self.envelope.ir_hash
        return known != self._ir_hash and known != ir_hash(self._spelt_ir)

    @property
    def _spelt_ir(self) -> dict[str, Any]:
        spelt: dict[str, Any] = parse_json(self.ir_data, self.path / IR_FILE)
        return spelt

    @cached_property
    def _spelt_hashes(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {name: set() for name in self._types}
        for spelt in self._spelt_ir["types"]:
            found[spelt["name"]].add(canonical_hash(spelt))
        return found

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


def _refuse_extra_pages(store: Snapshot) -> None:
    planned = {entry.key for entry in store.prompts}
    for number, page in enumerate(store.envelope.pages):
        if page.key not in planned:
            raise corrupt(
                store.path / PAGES_FILE,
                f"$.pages[{number}]",
                f"{describe_page(page.key)} has no prompt in {PROMPTS_FILE}",
            )


def _same_pages(known: Snapshot | None, data: bytes) -> PagesEnvelope | None:
    """Return the pages of a known snapshot, if they were read from the same bytes."""
    return known.envelope if known is not None and known.pages_data == data else None


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
    if not path.is_dir():
        raise _missing_error(path, "it is a file" if path.exists() else "there is no such folder")
    if not is_store(path):
        raise _missing_error(path, f"the folder holds no {IR_FILE}, {PROMPTS_FILE} or {PAGES_FILE}")


def _missing_error(path: Path, why: str) -> StoreMissingError:
    return StoreMissingError(
        f"there is no store at {path}",
        why=why,
        hint="name the folder that pytest-regen generate printed, or generate one: "
        'pytest-regen generate SPEC "GET /path" --out DIR',
    )


def _unreadable(path: Path, error: OSError) -> StoreCorruptError:
    return corrupt(
        path / Path(error.filename or ""), "", "it cannot be read", why=error.strerror or str(error)
    )


def _decode(data: bytes, file: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise corrupt(file, "", f"not UTF-8 at byte {error.start}", why=error.reason) from None


def _schema_names(schema_id: str) -> set[str]:
    """Return the words a user may know a schema by: its place, and the last step of it."""
    last = schema_id.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
    return {schema_id, last}
