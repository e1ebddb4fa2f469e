"""A store that git could not merge: both versions are read and joined, and no answer is lost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from pytest_regen.commit import View
from pytest_regen.documents.ir import IR, ir_hash, type_hash
from pytest_regen.errors import SourceError, StoreCorruptError, StoreError
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE
from pytest_regen.stores.formats import (
    SCHEMA_FILE,
    PagesEnvelope,
    StoredPage,
    ir_as_json,
    read_pages,
    read_prompts,
)
from pytest_regen.stores.history import HistoryEntry, history_files, source_name, store_files
from pytest_regen.stores.snapshot import Snapshot, refuse_no_store
from pytest_regen.stores.strict_json import (
    as_json,
    conflict_line,
    corrupt,
    parse_json,
    versions,
)


@dataclass(frozen=True, slots=True)
class Resolution:
    """How the conflicts of a store were resolved."""

    files: tuple[str, ...]
    """Artifacts that held conflict markers."""
    pages: tuple[PageKey, ...]
    """Pages to which the versions had different outputs."""
    history: tuple[str, ...]
    """Where the rest is kept: ids of history entries, and the name of a source in ``history/``."""


@dataclass(frozen=True, slots=True)
class _Version:
    """The artifacts of one side of a merge."""

    ir: IR
    prompts: tuple[PromptEntry, ...]
    envelope: PagesEnvelope
    source: bytes | None
    schema: bytes | None

    @property
    def pages(self) -> dict[PageKey, StoredPage]:
        """The stored pages by identity."""
        return {page.key: page for page in self.envelope.pages}


def resolve_conflicts(path: Path | str) -> Resolution | None:
    """Join the two versions of a store whose artifacts hold conflict markers of git.

    The plan is ours, with what git merged of theirs. Of two outputs for a page the one stays that
    answers the present description, else the later one; the other goes to the history. Blocks of
    types that differ are written from their pages; other text of the source stays, unless it is in
    conflict itself: then the source is written anew, and the file as it was is kept.

    Args:
        path: folder of the store.

    Returns:
        What was done; ``None`` where no artifact holds a conflict marker.

    Raises:
        StoreMissingError: there is no store.
        StoreCorruptError: the two versions cannot be told apart, or one of them cannot be read.
        StoreWriteError: the folder cannot be written; it is as it was.
    """
    path = Path(path)
    refuse_no_store(path)
    files = store_files(path)
    if not _find_conflicts(files.view()):
        return None
    with files.locked() as view:
        conflicts = _find_conflicts(view)
        if not conflicts:
            return None  # Another process was faster.
        ours, theirs = (_read_version(view, conflicts, side) for side in (0, 1))
        contents, resolution = _join(view, ours, theirs, tuple(conflicts))
        files.commit(contents)
    return resolution


def read_ours(path: Path) -> tuple[IR, PagesEnvelope] | None:
    """Return what our version of a store is made from, and what it says of itself.

    ``None`` where no artifact holds a conflict marker, or our version cannot be read.
    """
    try:
        view = store_files(path).view()
        conflicts = _find_conflicts(view)
        version = _read_version(view, conflicts, 0) if conflicts else None
    except (OSError, StoreError):
        return None
    return (version.ir, version.envelope) if version else None


def _find_conflicts(view: View) -> dict[str, tuple[bytes, bytes]]:
    """Return both versions of each artifact that holds conflict markers."""
    found: dict[str, tuple[bytes, bytes]] = {}
    for name in (PAGES_FILE, IR_FILE, PROMPTS_FILE, SCHEMA_FILE):
        found |= _find_conflict(view, name)
    # The name of the source stands in pages.json, whatever else is in conflict there.
    ours = found.get(PAGES_FILE, (view.read(PAGES_FILE) or b"",))[0]
    return found | _find_conflict(view, read_pages(ours, view.root / PAGES_FILE).source_file)


def _find_conflict(view: View, name: str) -> dict[str, tuple[bytes, bytes]]:
    data = view.read(name)
    if data is None or conflict_line(data) is None:
        return {}
    both = versions(data)
    if both is None and name.endswith(".json"):
        raise _inseparable(view.root / name, "a conflict marker has no counterpart")
    return {name: both or (data, data)}


def _inseparable(file: Path, why: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"{file}: the two versions cannot be told apart",
        why=why,
        hint=f"take one side (git checkout --ours -- '{file}', or --theirs), then run "
        f"pytest-regen rebuild '{file.parent}'; the other side is in the history of git",
    )


def _read_version(view: View, conflicts: Mapping[str, tuple[bytes, bytes]], side: int) -> _Version:
    def read(name: str) -> bytes | None:
        return conflicts[name][side] if name in conflicts else view.read(name)

    def read_artifact(name: str) -> tuple[bytes, Path]:
        return read(name) or b"", view.root / name

    try:
        envelope = read_pages(*read_artifact(PAGES_FILE))
        return _Version(
            IR.of(parse_json(*read_artifact(IR_FILE))),
            read_prompts(*read_artifact(PROMPTS_FILE)),
            envelope,
            read(envelope.source_file),
            read(SCHEMA_FILE),
        )
    except StoreCorruptError as error:
        raise _inseparable(view.root / next(iter(conflicts)), error.what) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]["msg"]
        raise _inseparable(view.root / IR_FILE, first) from None


def _join(
    view: View, ours: _Version, theirs: _Version, conflicts: tuple[str, ...]
) -> tuple[dict[str, bytes | None], Resolution]:
    """Return the files of the joined store, and what became of both versions."""
    envelope = _join_envelopes(ours, theirs)
    differing = tuple(
        key
        for key in dict.fromkeys((*ours.pages, *theirs.pages))
        if _output(ours, key) != _output(theirs, key)
    )
    source_file = view.root / envelope.source_file
    history = _history_of(ours, theirs, envelope.pages)
    ir_data = ir_as_json(ours.ir)
    prompts_data = as_json([entry.to_json() for entry in ours.prompts])
    store = Snapshot(
        view.root,
        envelope,
        ours.prompts,
        _decode(ours.source, source_file),
        ours.source is not None,
        ir_data,
        prompts_data,
    )
    theirs_source = _decode(theirs.source, source_file)
    source = _join_source(store, theirs_source, {key.type_name for key in differing})
    kept = {}
    before = view.read(envelope.source_file)
    if before is not None and envelope.source_file in conflicts:
        kept = {source_name(_decode(before, source_file), envelope.source_file): before}
    contents: dict[str, bytes | None] = {
        **history_files(view.root, history, kept),
        IR_FILE: ir_data,
        PROMPTS_FILE: prompts_data,
        PAGES_FILE: as_json(envelope.to_json()),
    }
    if ours.source is not None or theirs.source is not None:
        contents[envelope.source_file] = source.encode()
    if ours.schema is not None:
        contents[SCHEMA_FILE] = ours.schema
    ids = (*(entry.id for entry in history), *kept)
    return contents, Resolution(conflicts, differing, ids)


def _output(version: _Version, key: PageKey) -> str | None:
    page = version.pages.get(key)
    return page.output if page else None


def _decode(data: bytes | None, file: Path) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise corrupt(file, "", f"not UTF-8 at byte {error.start}", why=error.reason) from None


def _join_envelopes(ours: _Version, theirs: _Version) -> PagesEnvelope:
    """Return our envelope around the better page of each two."""
    types = {type_.name: type_hash(type_) for type_ in ours.ir.types}

    def rank(page: StoredPage) -> tuple[bool, bool, str]:
        is_fresh = page.type_hash == types.get(page.type_name)
        return not page.is_tampered, is_fresh, page.generated_at

    pages = []
    both = (ours.pages, theirs.pages)
    for entry in ours.prompts:
        found = [stored[entry.key] for stored in both if entry.key in stored]
        if found:
            pages.append(max(found, key=rank))
    # What git merged of two plans is a plan that neither side had.
    is_planned = all(entry.type_hash == types.get(entry.type_name) for entry in ours.prompts)
    last = max((ours.envelope, theirs.envelope), key=_last_answer)
    return replace(
        ours.envelope,
        ir_hash=ir_hash(ours.ir) if is_planned else ours.envelope.ir_hash,
        generated_at=min(ours.envelope.generated_at, theirs.envelope.generated_at),
        model=last.model,
    ).with_pages(pages)


def _last_answer(envelope: PagesEnvelope) -> str:
    return max((page.generated_at for page in envelope.pages), default="")


def _history_of(
    ours: _Version, theirs: _Version, pages: Sequence[StoredPage]
) -> tuple[HistoryEntry, ...]:
    """Return the outputs of both versions that the joined store does not hold."""
    stored = {(page.type_name, page.output) for page in pages}
    planned = {entry.key for entry in ours.prompts}
    lost = {
        (page.key, page.output): page
        for page in (*ours.pages.values(), *theirs.pages.values())
        if (page.type_name, page.output) not in stored
    }
    return tuple(
        HistoryEntry.of(page, "replaced" if page.key in planned else "vanished").with_id()
        for page in lost.values()
    )


def _join_source(store: Snapshot, theirs: str, differing: Collection[str]) -> str:
    """Return the source of a joined store; ours where both versions have the same text.

    Args:
        store: the joined store around our version of the source.
        theirs: the other version.
        differing: types whose pages differ between the versions.
    """
    from pytest_regen.languages import find_language
    from pytest_regen.sources import insert_type_block, remove_type_block, replace_type_block

    try:
        (own, around), (other, around_theirs) = _parts(store.source), _parts(theirs)
    except SourceError:
        return store.assembly()
    if around != around_theirs or conflict_line(store.source.encode()) is not None:
        return store.assembly()
    source = store.source
    comment = find_language(store.envelope.language).comment
    for name in dict.fromkeys((*store.type_names, *own, *other)):
        if name not in differing and own.get(name) == other.get(name):
            continue
        code = store.stitch_type(name)
        if name not in store.type_names and name in own:
            source = remove_type_block(source, name)
        elif code is not None and name in own:
            source = replace_type_block(source, name, code)
        elif code is not None:
            order = store.type_names
            source = insert_type_block(source, name, code, order=order, comment=comment)
    return source


def _parts(source: str) -> tuple[dict[str, str], list[str]]:
    """Return the text of each block, and the lines around the blocks that hold any."""
    from pytest_regen.sources import blocks

    found = blocks(source)
    around, end = "", 0
    for block in found:
        around += source[end : block.start]
        end = block.end
    lines = (around + source[end:]).splitlines()
    texts = {block.name: source[block.start : block.end] for block in found}
    return texts, [line.rstrip() for line in lines if line.strip()]
