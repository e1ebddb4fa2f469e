"""What was edited in a store by hand, and other issues of its files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pytest_regen.languages import find_language
from pytest_regen.sources import same_leaves
from pytest_regen.store_folders import PAGES_FILE, PROMPTS_FILE
from pytest_regen.stores import RegenStore
from pytest_regen.stores.formats import SCHEMA_FILE
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.pieces import Split, split

_WAYS_OUT = "keep the edit with `pytest-regen adopt`, or drop it with `pytest-regen rebuild`"
_GONE = "`pytest-regen rebuild` writes it from the stored pages"
_IN_PAGES = (
    "`pytest-regen adopt` stores what the source has, `pytest-regen rebuild` writes the source from"
    " pages.json"
)


@dataclass(frozen=True, slots=True)
class Edit:
    """One type that is not as it was stored."""

    type_name: str
    message: str
    line: int | None = None
    """First line of the block in the source; ``None`` where it is gone, or pages were edited."""
    pages: tuple[int, ...] = ()
    """Pages whose output was edited in pages.json."""

    @property
    def issue(self) -> Issue:
        """The DRIFT issue of this edit."""
        ways_out = _GONE if self.line is None else _WAYS_OUT
        return Issue.of(
            "DRIFT",
            self.message,
            type_name=self.type_name,
            page=self.pages[0] if self.pages else None,
            line=self.line,
            detail=_IN_PAGES if self.pages else ways_out,
            file=PAGES_FILE if self.pages else None,
        )


def broken_file(store: RegenStore, whole: Split) -> str:
    """Return why the types of a source cannot be found; empty where they can."""
    # A type is written to the source as soon as it has all of its pages.
    is_written = any(store.stitch_type(name) is not None for name in store.type_names)
    if not store.has_source:
        return f"the source file {store.envelope.source_file} is missing" if is_written else ""
    if whole.broken:
        return whole.broken
    if not whole.has_boundaries and is_written:
        return f"the boundary lines are gone from {store.envelope.source_file}"
    return ""


def edits(store: RegenStore, whole: Split) -> Iterator[Edit]:
    """Yield the types whose block, or whose pages, are not as they were stored.

    White space between tokens is no edit. A source that cannot be split into types is one edit
    of the first type.
    """
    broken = broken_file(store, whole)
    # One for all, because which types are in a file that cannot be split nobody knows.
    if broken:
        for name in store.type_names[:1]:
            yield Edit(name, broken)
        return
    if not store.has_source:
        return
    language = store.envelope.language
    pieces = {piece.name: piece for piece in whole.pieces}
    for name in store.type_names:
        written, piece = store.stitch_type(name), pieces.get(name)
        if written is None:
            continue  # It was never put into the source, because pages of it are missing.
        pages = tuple(key.page for key in store.tampered_pages if key.type_name == name)
        if piece is None:
            message = f"the block of {name!r} is gone from {store.envelope.source_file}"
            yield Edit(name, message)
        elif pages:
            words = ("page", "was") if len(pages) == 1 else ("pages", "were")
            numbers = ", ".join(map(str, pages))
            message = f"{words[0]} {numbers} of {name!r} {words[1]} edited in {PAGES_FILE}"
            yield Edit(name, message, None, pages)
        elif not same_leaves(written, piece.text, language=language):
            message = f"the block of {name!r} was edited: it differs from its stored pages"
            yield Edit(name, message, piece.first_line)


def edited_types(store: RegenStore) -> frozenset[str]:
    """Return the types whose block, or whose pages, are not as they were stored."""
    whole = split(store.source, store.envelope.language)
    return frozenset(edit.type_name for edit in edits(store, whole))


def edited_prompts(store: RegenStore) -> Iterator[Issue]:
    """Yield the prompts that are not as they were made: their text or their fields were edited."""
    numbers = {entry.key: number for number, entry in enumerate(store.prompts)}
    for key in store.plan.edited_prompts:
        yield Issue.of(
            "EDITED_PROMPT",
            f"the prompt of page {key.page} of {key.type_name!r} was edited "
            f"(entry {numbers[key]} of {PROMPTS_FILE}, counted from 0)",
            type_name=key.type_name,
            page=key.page,
            file=PROMPTS_FILE,
            detail="`pytest-regen generate` on the document writes it anew, free of charge; to say "
            "more to the model, `pytest-regen regenerate` takes --correction",
        )


_MARKER: Final = re.compile(r"^(?:<{7}|>{7}|\|{7})(?= |\r?$)[^\n]*", re.MULTILINE)
"""A line that git writes into a file whose two sides it could not join. ``=======`` is not looked
for: it may underline a heading, and never stands alone."""

_SHOWN: Final = 40
_RESOLVED: Final = (
    "resolve the conflict, or let `pytest-regen rebuild` write what differs from pages.json"
)
_REBUILT: Final = "`pytest-regen rebuild` takes our side, `pytest-regen generate` writes it anew"


def file_issues(store: RegenStore, whole: Split) -> Iterator[Issue]:
    """Yield what is wrong with the file as a whole, each on the type it belongs to, else the root.

    Args:
        store: the store.
        whole: its source, as it was split.
    """
    root = next(iter(store.type_names), None)
    if root is None:
        return
    # Conflict markers: the first of the source, and of schema.md, which nothing else reads.
    try:
        schema = (store.path / SCHEMA_FILE).read_text("utf-8")
    except (OSError, ValueError):
        schema = ""  # It is there to be read by people; the store works without it.
    for text, file in ((store.source if store.has_source else "", None), (schema, SCHEMA_FILE)):
        marker = _MARKER.search(text)
        if marker is None:
            continue
        line, marked = text.count("\n", 0, marker.start()) + 1, repr(marker[0].strip()[:_SHOWN])
        homes = (
            piece.name
            for piece in (whole.pieces if whole.has_boundaries and file is None else ())
            if piece.first_line <= line <= piece.first_line + piece.text.count("\n")
        )
        where = f" on line {line} of {file}" if file else ""
        yield Issue.of(
            "CONFLICT",
            f"a conflict marker of git{where}: {marked}",
            type_name=next(homes, root),
            line=None if file else line,
            detail=_REBUILT if file else _RESOLVED,
            file=file,
        )
    if not whole.has_boundaries or not store.has_source:
        return
    language = find_language(store.envelope.language)
    pieces = {piece.name: piece for piece in whole.pieces}
    for entry in whole.outside:
        piece = pieces.get(entry.name) if entry.outer is None else None
        same = [
            inner
            for inner in (piece.facts.declarations if piece else ())
            if inner.name == entry.name
            and inner.outer is None
            # Because C# tells types of one name apart by how many parameters they take.
            and len(inner.type_parameters) == len(entry.type_parameters)
        ]
        if piece and same and not (entry.is_partial and all(inner.is_partial for inner in same)):
            line = piece.first_line + same[0].name_line - 1
            yield Issue.of(
                "REDECLARED",
                f"{entry.name!r} is declared outside of its block, too; line {line} declares it "
                "already",
                type_name=entry.name,
                line=entry.name_line or entry.line,
                detail=language.redeclared,
            )
    texts = {name: piece.text for name, piece in pieces.items()}
    for lack in language.missing_in_header(whole.around, texts, profile=store.envelope.profile):
        message = f"the file lacks {lack.line!r}, and {lack.type_name!r} uses {lack.word!r}"
        yield Issue.of("MISSING_USING", message, type_name=root, line=1, detail=lack.advice)
