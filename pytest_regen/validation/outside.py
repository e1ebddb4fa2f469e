"""What is wrong with a source outside of its blocks, read once per file.

Text there is the user's and is not judged: comments, usings, types, regions, directives. What is
told is what no compiler takes: conflict markers of git, a type declared beside its block, a using
that the blocks need and that is gone.
"""

import re
from collections.abc import Iterator
from typing import Final

from pytest_regen.languages import language_named
from pytest_regen.languages.facts import Declaration
from pytest_regen.stores import RegenStore
from pytest_regen.stores.snapshot import SCHEMA_FILE
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.splitting import Piece, Split

__all__ = ["file_issues", "has_conflict"]

_MARKER: Final = re.compile(r"^(?:<{7}|>{7}|\|{7})(?= |\r?$)[^\n]*", re.MULTILINE)
"""A line that git writes into a file whose two sides it could not join. ``=======`` is not looked
for: it may underline a heading, and never stands alone."""

_SHOWN: Final = 40


def has_conflict(source: str) -> bool:
    """Return whether a source holds a conflict marker of git."""
    return _MARKER.search(source) is not None


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
    yield from _declared_beside(found, pieces)
    yield from _missing_usings(store, found, root)


def _conflicts(store: RegenStore, found: Split, root: str) -> Iterator[Issue]:
    """Yield the first conflict marker of the source, and of schema.md, which nothing else reads."""
    way_out = (
        "resolve the conflict, or take one side of {0} (`git checkout --ours -- {0}`, or --theirs)"
    )
    name = store.envelope.source_file
    marker = _MARKER.search(store.source) if store.has_source else None
    if marker:
        line = store.source.count("\n", 0, marker.start()) + 1
        detail = f"{way_out.format(name)}, then `pytest-regen rebuild` writes it from pages.json"
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
            detail=f"{way_out.format(SCHEMA_FILE)}; `pytest-regen generate` writes it anew",
            file=SCHEMA_FILE,
        )


def _home(found: Split, line: int) -> str | None:
    """Return the type in whose block a line stands."""
    for piece in found.pieces if found.has_boundaries else ():
        if piece.first_line <= line <= piece.first_line + piece.text.count("\n"):
            return piece.name
    return None


def _declared_beside(found: Split, pieces: dict[str, Piece]) -> Iterator[Issue]:
    """Yield types that are declared in their block and outside of it."""
    for entry in found.outside:
        piece = pieces.get(entry.name)
        if piece is None or entry.outer is not None:
            continue
        own = [one for one in piece.facts.declarations if _is_same_type(one, entry)]
        if own and not (entry.is_partial and all(one.is_partial for one in own)):
            yield Issue.of(
                "REDECLARED",
                f"{entry.name!r} is declared outside of its block, too; line "
                f"{piece.first_line + own[0].name_line - 1} declares it already",
                type_name=entry.name,
                line=entry.name_line or entry.line,
                detail="take it out, give it another name, or make both declarations partial",
            )


def _is_same_type(one: Declaration, other: Declaration) -> bool:
    return (
        one.name == other.name
        and one.outer is None
        and len(one.type_parameters) == len(other.type_parameters)
    )


def _missing_usings(store: RegenStore, found: Split, root: str) -> Iterator[Issue]:
    """Yield what the header lacks although a block needs it."""
    language = language_named(store.envelope.language)
    texts = {piece.name: piece.text for piece in found.pieces}
    for line, word, name in language.missing_in_header(
        found.around, texts, profile=store.envelope.profile
    ):
        yield Issue.of(
            "MISSING_USING",
            f"the file lacks {line!r}, and {name!r} uses {word!r}",
            type_name=root,
            line=1,
            detail="put the line back at the top of the file; where another file of the project "
            "has it as a global using, leave MISSING_USING out with `ignore`",
        )
