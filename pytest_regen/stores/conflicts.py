"""A store that git could not merge: what follows from other lines is worked out, else ours stays.

Theirs is not joined with it: an answer that both branches gave is a choice, and a person's. Nothing
is lost, because what is not chosen goes to the history.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from pytest_regen.commit import View
from pytest_regen.documents.ir import IR, ir_hash, type_hash
from pytest_regen.errors import StoreCorruptError, StoreError
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE
from pytest_regen.stores.formats import (
    SCHEMA_FILE,
    PagesEnvelope,
    describe_page,
    read_pages,
    read_prompts,
)
from pytest_regen.stores.history import HistoryEntry, history_files, source_name, store_files
from pytest_regen.stores.trials import blocks_of
from pytest_regen.strict_json import (
    as_json,
    conflict_line,
    corrupt,
    parse_json,
    strict_loads,
    versions,
)

_ARTIFACTS: Final = (IR_FILE, PROMPTS_FILE, PAGES_FILE)

_WORKED_OUT: Final = ("document", "ir_hash", "model", "validation")
"""Members of an artifact that follow from others, or from the document."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """How the conflicts of a store were resolved."""

    files: tuple[str, ...]
    """Artifacts that held conflict markers."""
    types: frozenset[str]
    """Types of which the versions had different outputs, or different blocks in the source."""
    history: tuple[str, ...]
    """Where theirs is kept: ids of history entries, and the name of a source in ``history/``."""


def read_artifact(view: View, name: str) -> tuple[bytes, bool]:
    """Return an artifact, and whether git left it in conflict in lines that are worked out.

    Raises:
        StoreCorruptError: it is missing, or in conflict about more than that.
    """
    data = view.read(name)
    file = view.root / name
    if data is None:
        raise corrupt(file, "", "the file is missing")
    line = conflict_line(data)
    if line is None:
        return data, False
    sides = versions(data) or (b"", b"")
    try:
        ours, theirs = (_without_worked_out(strict_loads(side)) for side in sides)
    except (ValueError, TypeError):
        ours, theirs = 0, 1
    if ours == theirs:
        # Because both sides say the same, whichever is read gives the same store.
        return sides[0], True
    try:
        old, new = (_by_key(read_pages(side, file)) for side in sides)
    except StoreCorruptError:
        what = "the file is two versions of itself"
    else:
        changed = [key for key in old if key in new and old[key] != new[key]]
        what = f"both branches changed {'; '.join(map(describe_page, changed)) or 'the same lines'}"
    raise StoreCorruptError(
        f"{file}, at line {line}: a conflict marker of git",
        why=f"{what}; the next command takes ours, and puts theirs into history/",
        hint=f"pytest-regen rebuild {shlex.quote(str(view.root))}",
    )


def _without_worked_out(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    left = {key: item for key, item in value.items() if key not in _WORKED_OUT}
    if "pages" in left:
        # Branches number their new pages alike, and nothing is found by the number.
        left["pages"] = [{**page, "index": 0} for page in left["pages"]]
    return left


def with_worked_out(
    envelope: PagesEnvelope, ir: IR, prompts: Sequence[PromptEntry]
) -> PagesEnvelope:
    """Return what a store says of itself, by what is in it."""
    hashes = {type_.name: type_hash(type_) for type_ in ir.types}
    last = max(envelope.pages, key=lambda page: page.generated_at, default=None)
    is_planned = all(entry.type_hash == hashes.get(entry.type_name) for entry in prompts)
    new_hash = ir_hash(ir) if is_planned and envelope.ir_hash is not None else envelope.ir_hash
    return replace(envelope, ir_hash=new_hash, model=last.model if last else envelope.model)


def _by_key(envelope: PagesEnvelope) -> dict[PageKey, str]:
    return {page.key: page.output for page in envelope.pages}


def _conflicts(view: View) -> dict[str, tuple[bytes, bytes]]:
    """Return both versions of each artifact that holds conflict markers.

    Raises:
        StoreCorruptError: they cannot be told apart.
    """
    conflicts: dict[str, tuple[bytes, bytes]] = {}
    for name in (*_ARTIFACTS, SCHEMA_FILE):
        data = view.read(name)
        if data is None or conflict_line(data) is None:
            continue
        sides = versions(data)
        if sides is None and name in _ARTIFACTS:
            raise _inseparable(view.root / name, "a conflict marker has no counterpart")
        if sides is not None:
            conflicts[name] = sides
    ours = conflicts.get(PAGES_FILE, (view.read(PAGES_FILE) or b"",))[0]
    # The name of the source stands in pages.json, whatever else is in conflict there.
    source = read_pages(ours, view.root / PAGES_FILE).source_file
    data = view.read(source)
    if data is not None and conflict_line(data) is not None and (sides := versions(data)):
        conflicts[source] = sides
    return conflicts


def _inseparable(file: Path, why: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"{file}: the two versions cannot be told apart",
        why=why,
        hint=f"take one side (git checkout --ours -- '{file}', or --theirs), then run "
        f"pytest-regen rebuild '{file.parent}'; the other side is in the history of git",
    )


def _read_side(
    view: View, conflicts: Mapping[str, tuple[bytes, bytes]], side: int
) -> tuple[IR, tuple[PromptEntry, ...], PagesEnvelope]:
    """Return what one side of a merge holds; a file that git merged is part of both."""
    ir, prompts, pages = (
        (conflicts[name][side] if name in conflicts else view.read(name) or b"", view.root / name)
        for name in _ARTIFACTS
    )
    try:
        return IR.of(parse_json(*ir)), read_prompts(*prompts), read_pages(*pages)
    except StoreCorruptError as error:
        raise _inseparable(view.root / next(iter(conflicts)), error.what) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]["msg"]
        raise _inseparable(view.root / IR_FILE, first) from None


def read_ours(path: Path) -> tuple[IR, PagesEnvelope] | None:
    """Return what our version of a store is made from, and what it says of itself.

    ``None`` where no artifact holds a conflict marker, or our version cannot be read.
    """
    try:
        view = store_files(path).view()
        conflicts = _conflicts(view)
        if not conflicts:
            return None
        ir, _, envelope = _read_side(view, conflicts, 0)
    except (OSError, StoreError):
        return None
    return ir, envelope


def take_ours(path: Path) -> Resolution | None:
    """Make our version the store where git could not merge it; theirs goes to the history.

    What git did merge of theirs stays. Blocks of types to which both gave an output may then
    differ from their pages, until they are rebuilt.

    Returns:
        What was done; ``None`` where no artifact holds a conflict marker.

    Raises:
        StoreCorruptError: the two versions cannot be told apart, or one of them cannot be read.
        StoreWriteError: the folder cannot be written; it is as it was.
    """
    files = store_files(path)
    # Under the lock, because a command that runs beside this one would read half of each.
    with files.locked() as view:
        conflicts = _conflicts(view)
        if not conflicts:
            return None
        ir, prompts, ours = _read_side(view, conflicts, 0)
        _, _, theirs = _read_side(view, conflicts, 1)
        planned = {entry.key for entry in prompts}
        pages = [page for page in ours.pages if page.key in planned]
        stays = {(page.key, page.output) for page in pages}
        history = [
            HistoryEntry.of(page, "replaced" if page.key in planned else "vanished").with_id()
            for page in dict.fromkeys((*ours.pages, *theirs.pages))
            if (page.key, page.output) not in stays
        ]
        sources = {}
        blocks: list[dict[str, str]] = [{}, {}]
        if ours.source_file in conflicts:
            # As git left it: both sides of what is in conflict, and all that is not.
            data = view.read(ours.source_file) or b""
            name = source_name(data.decode("utf-8", "replace"), ours.source_file)
            sources = {name: data}
            texts = (side.decode("utf-8", "replace") for side in conflicts[ours.source_file])
            blocks = [{n: b[0] for n, b in blocks_of(text).items()} for text in texts]
        envelope = with_worked_out(replace(ours, pages=tuple(pages)), ir, prompts)
        files.commit(
            {
                **history_files(path, history, sources),
                **{name: sides[0] for name, sides in conflicts.items()},
                PAGES_FILE: as_json(envelope.to_json()),
            }
        )
    differing = {key.type_name for key, _ in _by_key(ours).items() ^ _by_key(theirs).items()}
    # Where git merged the pages and not the source: the block is ours, its pages are of both.
    differing |= {name for name, _ in blocks[0].items() ^ blocks[1].items()}
    ids = (*(entry.id for entry in history), *sources)
    return Resolution(tuple(conflicts), frozenset(differing), ids)
