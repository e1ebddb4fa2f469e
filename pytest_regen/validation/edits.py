"""What was edited in a store by hand, and other issues of its files."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pytest_regen.canonical import text_hash
from pytest_regen.errors import RegenError
from pytest_regen.languages import Language, find_language
from pytest_regen.languages.base import Declaration
from pytest_regen.sources import same_leaves
from pytest_regen.store_folders import PAGES_FILE, PROMPTS_FILE
from pytest_regen.stores import RegenStore
from pytest_regen.stores.formats import SCHEMA_FILE
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.pieces import Piece, Split, stitch_pages

_WAYS_OUT = "keep the edit with `pytest-regen adopt`, or drop it with `pytest-regen rebuild`"
_GONE = "`pytest-regen rebuild` writes it from the stored pages"
_NO_WAY_BACK = (
    "keep the edit with `pytest-regen adopt`, or take pages.json back from version control"
    " (`git checkout`) and run `pytest-regen rebuild`"
)

Where = Literal["source", "pages", "both", "apart"]
"""``pages``: only in pages.json. ``both``: in pages.json and the source alike. ``apart``: in both,
differently."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One type that is not as it was stored."""

    type_name: str
    where: Where
    message: str
    line: int | None = None
    """First line of the block in the source; ``None`` where the block is gone, or is not edited."""
    pages: tuple[int, ...] = ()
    """Pages whose output was edited in pages.json."""

    @property
    def issue(self) -> Issue:
        """The DRIFT issue of this edit."""
        detail = _WAYS_OUT
        if self.where in {"both", "apart"}:
            detail = _NO_WAY_BACK
        elif self.where == "source" and self.line is None:
            detail = _GONE
        return Issue.of(
            "DRIFT",
            self.message,
            type_name=self.type_name,
            page=self.pages[0] if self.pages else None,
            line=self.line,
            detail=detail,
            file=PAGES_FILE if self.where == "pages" else None,
        )


def broken_file(store: RegenStore, found: Split) -> str:
    """Return why the types of a source cannot be found; empty where they can."""
    # A type is written to the source as soon as it has all of its pages.
    is_written = any(_is_complete(store, name) for name in store.type_names)
    if not store.has_source:
        return f"the source file {store.envelope.source_file} is missing" if is_written else ""
    if found.broken:
        return found.broken
    if not found.has_boundaries and is_written:
        return f"the boundary lines are gone from {store.envelope.source_file}"
    return ""


def edits(store: RegenStore, found: Split) -> Iterator[Edit]:
    """Yield the types whose block, or whose pages, are not as they were stored.

    White space between tokens is no edit. A source that cannot be split into types is one edit
    of the first type.
    """
    broken = broken_file(store, found)
    if broken:
        for name in store.type_names[:1]:
            yield Edit(name, "source", broken)
        return
    if not store.has_source:
        return
    tampered: dict[str, list[int]] = {}
    for key in store.tampered_pages:
        tampered.setdefault(key.type_name, []).append(key.page)
    pieces = {piece.name: piece for piece in found.pieces}
    for name in store.type_names:
        if not _is_complete(store, name):
            continue
        piece, pages = pieces.get(name), tuple(tampered.get(name, ()))
        if piece is None:
            yield Edit(
                name, "source", f"the block of {name!r} is gone from {store.envelope.source_file}"
            )
        elif pages:
            yield _in_pages(store, name, pages, piece.text, piece.first_line)
        elif not _is_same(store, name, piece.text):
            message = f"the block of {name!r} was edited: it differs from its stored pages"
            yield Edit(name, "source", message, piece.first_line)


def _in_pages(store: RegenStore, name: str, pages: tuple[int, ...], block: str, line: int) -> Edit:
    """Return the edit of a type of which outputs were edited in pages.json."""
    numbers = ", ".join(map(str, pages))
    words = ("page", "was") if len(pages) == 1 else ("pages", "were")
    what = f"{words[0]} {numbers} of {name!r} {words[1]} edited in {PAGES_FILE}"
    if split_block(store, name, block, pages) is not None:
        source = store.envelope.source_file
        return Edit(name, "pages", f"{what}; {source} is as it was written", None, pages)
    if _is_same(store, name, block):
        return Edit(name, "both", f"{what}, and the source with it", line, pages)
    return Edit(name, "apart", f"{what}, and the source in another way", line, pages)


def split_block(
    store: RegenStore, name: str, block: str, pages: Sequence[int]
) -> dict[int, str] | None:
    """Return the outputs of ``pages`` as the block still holds them.

    ``None`` where the block does not prove what pages.json lost: an output in it has another hash
    than what was stored.
    """
    prompts = store.prompts_of(name)
    outputs: Sequence[str] = (block,)
    if len(prompts) > 1:
        language = find_language(store.ir.language)
        try:
            outputs = language.split(block, name=name, units=[entry.fields for entry in prompts])
        except RegenError:
            return None
    stored = {page.page: page.output_hash for page in store.pages_of(name)}
    found = {}
    for entry, output in zip(prompts, outputs, strict=True):
        if entry.page in pages:
            # Members stand deeper in the block than on a page of their own.
            forms = (output, textwrap.dedent(output))
            found[entry.page] = next(
                (form for form in forms if text_hash(form) == stored[entry.page]), None
            )
    proven = {page: output for page, output in found.items() if output is not None}
    return proven if len(proven) == len(found) else None


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


def _is_complete(store: RegenStore, name: str) -> bool:
    prompts = store.prompts_of(name)
    return bool(prompts) and len(store.pages_of(name)) == len(prompts)


def _is_same(store: RegenStore, name: str, block: str) -> bool:
    """Return whether a block is what its pages make, white space between tokens aside."""
    outputs = tuple(page.output for page in store.pages_of(name))
    type_ = store.ir.type_named(name)
    is_enum = type_ is not None and type_.kind == "enum"
    joined = stitch_pages(store.envelope.language, outputs, name, is_enum).text
    return joined == block or same_leaves(joined, block, language=store.envelope.language)


_MARKER: Final = re.compile(r"^(?:<{7}|>{7}|\|{7})(?= |\r?$)[^\n]*", re.MULTILINE)
"""A line that git writes into a file whose two sides it could not join. ``=======`` is not looked
for: it may underline a heading, and never stands alone."""

_SHOWN: Final = 40


def file_issues(store: RegenStore, found: Split) -> Iterator[Issue]:
    """Yield what is wrong with the file as a whole, each on the type it belongs to, else the root.

    Args:
        store: the store.
        found: its source, as it was split.
    """
    root = next(iter(store.type_names), None)
    if root is None:
        return
    yield from _conflicts(store, found, root)
    if not found.has_boundaries or not store.has_source:
        return
    pieces = {piece.name: piece for piece in found.pieces}
    language = find_language(store.envelope.language)
    yield from _redeclarations(found, pieces, language)
    yield from _missing_header_lines(store, found, language, root)


def _conflicts(store: RegenStore, found: Split, root: str) -> Iterator[Issue]:
    """Yield the first conflict marker of the source, and of schema.md, which nothing else reads."""
    marker = _MARKER.search(store.source) if store.has_source else None
    if marker:
        line = store.source.count("\n", 0, marker.start()) + 1
        detail = (
            "resolve the conflict, or let `pytest-regen rebuild` write what differs from pages.json"
        )
        yield Issue.of(
            "CONFLICT",
            f"a conflict marker of git: {marker[0].strip()[:_SHOWN]!r}",
            type_name=_home(found, line) or root,
            line=line,
            detail=detail,
        )
    try:
        schema = (store.path / SCHEMA_FILE).read_bytes().decode("utf-8", "replace")
    except OSError:
        return  # It is for people; a store without it works.
    if marker := _MARKER.search(schema):
        line = schema.count("\n", 0, marker.start()) + 1
        yield Issue.of(
            "CONFLICT",
            f"a conflict marker of git on line {line} of {SCHEMA_FILE}: "
            f"{marker[0].strip()[:_SHOWN]!r}",
            type_name=root,
            detail="`pytest-regen rebuild` takes our side, `pytest-regen generate` writes it anew",
            file=SCHEMA_FILE,
        )


def _home(found: Split, line: int) -> str | None:
    """Return the type in whose block a line stands."""
    for piece in found.pieces if found.has_boundaries else ():
        if piece.first_line <= line <= piece.first_line + piece.text.count("\n"):
            return piece.name
    return None


def _redeclarations(found: Split, pieces: dict[str, Piece], language: Language) -> Iterator[Issue]:
    """Yield types that are declared in their block and outside of it."""
    for entry in found.outside:
        piece = pieces.get(entry.name)
        if piece is None or entry.outer is not None:
            continue
        own = [known for known in piece.facts.declarations if _is_same_type(known, entry)]
        if own and not (entry.is_partial and all(known.is_partial for known in own)):
            yield Issue.of(
                "REDECLARED",
                f"{entry.name!r} is declared outside of its block, too; line "
                f"{piece.first_line + own[0].name_line - 1} declares it already",
                type_name=entry.name,
                line=entry.name_line or entry.line,
                detail=language.redeclared,
            )


def _is_same_type(one: Declaration, other: Declaration) -> bool:
    return (
        one.name == other.name
        and one.outer is None
        and len(one.type_parameters) == len(other.type_parameters)
    )


def _missing_header_lines(
    store: RegenStore, found: Split, language: Language, root: str
) -> Iterator[Issue]:
    """Yield what the header lacks although a block needs it."""
    texts = {piece.name: piece.text for piece in found.pieces}
    for lack in language.missing_in_header(found.around, texts, profile=store.envelope.profile):
        yield Issue.of(
            "MISSING_USING",
            f"the file lacks {lack.line!r}, and {lack.type_name!r} uses {lack.word!r}",
            type_name=root,
            line=1,
            detail=lack.advice,
        )
