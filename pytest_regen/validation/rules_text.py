"""Rules about text and pages: what is illegal, left over, empty, cut short, up for review."""

import re
from collections.abc import Iterator
from typing import Final, get_args

from pytest_regen.languages.facts import DeclarationKind
from pytest_regen.validation.attribution import PageText
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.rules_types import wrong_kind
from pytest_regen.validation.splitting import read_text
from pytest_regen.validation.subject import Subject

__all__ = ["illegal_pages", "page_outputs", "text_faults"]

_ILLEGAL: Final = frozenset({"SYNTAX", "INVALID_IDENTIFIER"})


def page_outputs(subject: Subject) -> Iterator[Issue]:
    """Yield pages that say nothing, and pages that were cut short."""
    if subject.pages is None:
        return
    for page in subject.pages.pages:
        asked = f"it must declare {_listed(page)}" if page.fields else "it must declare the type"
        if not page.was_written:
            message = f"page {page.page} of {page.total_pages} was never written; {asked}"
            yield subject.issue("EMPTY_OUTPUT", message, page=page.page)
        elif page.is_truncated:
            message = f"page {page.page} was cut short (stop reason {page.stop_reason})"
            yield subject.issue("TRUNCATED", f"{message}; {asked}", page=page.page)
        elif page.page in subject.pages.silent:
            message = f"page {page.page} holds no code; {asked}"
            yield subject.issue("EMPTY_OUTPUT", message, page=page.page)


def _listed(page: PageText) -> str:
    shown = ", ".join(map(str, page.fields[:12]))
    more = len(page.fields) - 12
    return f"{shown} and {more} more" if more > 0 else shown


def illegal_pages(subject: Subject) -> Iterator[Issue]:
    """Yield what is illegal about each of several pages that is illegal alone."""
    if subject.pages is not None:
        for page in sorted(subject.illegal_pages - subject.pages.silent):
            yield from _faults_of_page(subject, page)


def text_faults(subject: Subject) -> Iterator[Issue]:
    """Yield what the language does not allow, at its place in the block.

    A page that is illegal alone has spoken for itself; what it does to the pages after it is no
    fault of theirs.
    """
    told = subject.illegal_pages | (subject.pages.silent if subject.pages else frozenset())
    is_broken = subject.pages is not None and subject.pages.is_broken
    for fault in subject.facts.faults:
        unit = subject.unit_at(fault.line) if fault.in_member else None
        issue = subject.issue(fault.code, fault.message, line=fault.line, unit=unit)
        if (fault.code in _ILLEGAL or issue.page not in {None, 1}) and _is_of_wrong_kind(subject):
            continue  # members of a class are no members of an enum; that is told once
        is_echo = issue.page in told or (is_broken and fault.code == "SYNTAX")
        if not is_echo or issue.page is None:
            yield issue


def _faults_of_page(subject: Subject, number: int) -> Iterator[Issue]:
    """Yield what is illegal about a page read alone, at its place in the block."""
    pages = subject.pages
    if pages is None:
        return
    found: list[tuple[str, int, str, bool]] = []
    if number == 1:
        # The first page is a source of its own: all of its faults can be told at once.
        facts = read_text(subject.around.ir.language, pages.pages[0].output)
        kind, row = _declared_as(subject, pages.pages[0].output)
        if kind is not None and (kind == "enum") != (subject.type.kind == "enum"):
            # Its members are illegal only because of that.
            message = wrong_kind(subject, kind)
            place = pages.line_of(number, row)
            yield subject.issue("MISSING_CLASS", message, line=place, page=number)
            return
        found += [(e.code, e.line, e.message, e.in_member) for e in facts.faults]
    if not found:
        own = [fault for fault in pages.stitched.faults if fault.page == number]
        found += [(e.code, e.line, e.message, e.in_member) for e in own]
    for code, own_line, message, in_member in found:
        line = pages.line_of(number, own_line)
        unit = subject.unit_at(line) if in_member and line is not None else None
        yield subject.issue(code, message, line=line, page=number, unit=unit)


def _declared_as(subject: Subject, code: str) -> tuple[str | None, int]:
    """Return as what illegal code declares the type, by its words alone, and on which line."""
    kinds = "|".join(get_args(DeclarationKind))
    found = re.search(rf"\b({kinds})\s+{re.escape(subject.type.name)}\b", code)
    return (found[1], code.count("\n", 0, found.start()) + 1) if found else (None, 0)


def _is_of_wrong_kind(subject: Subject) -> bool:
    """Return whether the type is an enum that must be a class, or the other way round."""
    is_enum = subject.type.kind == "enum"
    return any((part.kind == "enum") != is_enum for part in subject.main)
