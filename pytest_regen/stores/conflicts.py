"""A store that git could not merge: what follows from other lines is worked out, else ours stays.

Theirs is not joined with it, because an answer that both branches gave is a choice, and a person's.
Nothing is lost: what is not chosen goes to the history.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pytest_regen.commit import View
from pytest_regen.documents.ir import IR, ir_hash, type_hash
from pytest_regen.errors import StoreError
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE
from pytest_regen.stores import formats
from pytest_regen.stores.history import HistoryEntry, history_files, source_name, store_files
from pytest_regen.strict_json import as_json, conflict_line, corrupt, json_or_none, versions

# Members of an artifact that follow from others, or from the document.
_WORKED_OUT: Final = ("document", "ir_hash", "model", "validation")


def read_artifact(view: View, name: str) -> tuple[bytes, bool]:
    """Return an artifact, and whether git left it in conflict in lines that are worked out.

    Raises:
        StoreCorruptError: it is missing, or in conflict about more than that.
    """
    data, file = view.read(name), view.root / name
    if data is None:
        raise corrupt(file, "", "the file is missing")
    line = conflict_line(data)
    if line is None:
        return data, False
    sides = _sides(view, name)
    ours, theirs = map(_without_worked_out, sides)
    if ours and ours == theirs:
        # Because both sides say the same, whichever is read gives the same store.
        return sides[0], True
    pages = [page for page in ours.get("pages", ()) if page not in theirs.get("pages", ())]
    keys = (PageKey(*map(page.get, PageKey._fields)) for page in pages)
    changed = "; ".join(map(formats.describe_page, keys)) or "the same lines"
    raise corrupt(
        file,
        f"line {line}",
        "a conflict marker of git",
        why=f"both branches changed {changed}; the next command takes ours, and puts theirs into "
        "history/",
        hint=f"pytest-regen rebuild {shlex.quote(str(view.root))}",
    )


def _without_worked_out(data: bytes) -> dict[str, Any]:
    value = json_or_none(data)
    if not isinstance(value, dict):
        return {}
    left = {key: item for key, item in value.items() if key not in _WORKED_OUT}
    pages = value.get("pages")
    pages = pages if isinstance(pages, list) else []
    # Branches number their new pages alike, and nothing is found by the number.
    left["pages"] = [{**page, "index": 0} for page in pages if isinstance(page, dict)]
    return left


def with_worked_out(
    envelope: formats.PagesEnvelope, ir: IR, prompts: Sequence[PromptEntry]
) -> formats.PagesEnvelope:
    """Return what a store says of itself, by what is in it."""
    hashes = {type_.name: type_hash(type_) for type_ in ir.types}
    last = max(envelope.pages, key=lambda page: page.generated_at, default=envelope)
    is_planned = all(entry.type_hash == hashes.get(entry.type_name) for entry in prompts)
    # Only of prompts that were made from it, because older ones would look fresh.
    new_hash = ir_hash(ir) if is_planned and envelope.ir_hash is not None else envelope.ir_hash
    return replace(envelope, ir_hash=new_hash, model=last.model)


def read_ours(path: Path) -> tuple[IR, formats.PagesEnvelope] | None:
    """Return our version of a store that git could not merge; ``None`` of any other."""
    try:
        view = store_files(path).view()
        sides = {name: _sides(view, name) for name in (IR_FILE, PROMPTS_FILE, PAGES_FILE)}
        if all(ours == theirs for ours, theirs in sides.values()):
            return None
        ir = formats.read_ir(json_or_none(sides[IR_FILE][0]), path / IR_FILE)
        return ir, formats.read_pages(sides[PAGES_FILE][0], path / PAGES_FILE)
    except (OSError, StoreError):
        return None


def take_ours(path: Path) -> tuple[Sequence[str], Sequence[str], Sequence[str]] | None:
    """Make our version the store where git could not merge it; theirs goes to the history.

    Returns:
        The files that held conflict markers, the types to which both gave an output, and the names
        of what went to the history; ``None`` where there was no conflict.

    Raises:
        StoreCorruptError: the two versions cannot be told apart, or one of them cannot be read.
        StoreWriteError: the folder cannot be written; it is as it was.
    """
    files = store_files(path)
    # Under the lock, because a command that runs beside this one would read half of each.
    with files.locked() as view:
        names = (IR_FILE, PROMPTS_FILE, PAGES_FILE, formats.SCHEMA_FILE)
        sides = {name: _sides(view, name) for name in names}
        ours, theirs = (formats.read_pages(side, path / PAGES_FILE) for side in sides[PAGES_FILE])
        source = view.read(ours.source_file) or b""
        sides[ours.source_file] = versions(source) or (source, source)
        torn = {name: our for name, (our, their) in sides.items() if our != their}
        if not torn:
            return None
        prompts = formats.read_prompts(sides[PROMPTS_FILE][0], path / PROMPTS_FILE)
        planned = {entry.key for entry in prompts}
        stays = [page for page in ours.pages if page.key in planned]
        texts = {(page.key, page.output) for page in stays}
        # Once each, because git merged some of them into both sides.
        others = dict.fromkeys((*ours.pages, *theirs.pages))
        entries = [
            HistoryEntry.of(page, "replaced")
            for page in others
            if (page.key, page.output) not in texts
        ]
        sources = {source_name(source.decode("utf-8", "replace"), ours.source_file): source}
        sources = sources if ours.source_file in torn else {}
        ir = formats.read_ir(json_or_none(sides[IR_FILE][0]), path / IR_FILE)
        envelope = with_worked_out(replace(ours, pages=tuple(stays)), ir, prompts)
        # Theirs goes to the history in the change that takes ours, because a kill must not lose it.
        history = history_files(path, entries, sources)
        files.commit({**history, **torn, PAGES_FILE: as_json(envelope.to_json())})
    types = dict.fromkeys(entry.type_name for entry in entries)
    return tuple(torn), tuple(types), (*(entry.id for entry in entries), *sources)


def _sides(view: View, name: str) -> tuple[bytes, bytes]:
    data, file = view.read(name) or b"", view.root / name
    sides = versions(data)
    if sides is None:
        raise corrupt(
            file,
            "",
            "the two versions cannot be told apart",
            why="a conflict marker has no counterpart",
            hint=f"take one side (git checkout --ours -- '{file}', or --theirs), then run "
            f"pytest-regen rebuild '{file.parent}'; the other side is in the history of git",
        )
    return sides
