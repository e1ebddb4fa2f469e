"""Rules about text and pages: what is illegal, left over, empty, cut short, up for review."""

from collections.abc import Iterator
from typing import Final

from pytest_regen.validation.attribution import PageText
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.subject import Subject

__all__ = ["is_empty", "is_truncated", "page_outputs", "page_syntax", "text_faults"]

_CUT_SHORT: Final = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn"})


def is_truncated(page: PageText) -> bool:
    """Return whether the model ran out of room on a page."""
    return page.stop_reason in _CUT_SHORT


def is_empty(page: PageText, comment: str = "//") -> bool:
    """Return whether a page holds nothing but blanks and line comments."""
    lines = (line.strip() for line in page.output.removeprefix("\ufeff").splitlines())
    return all(not line or line.startswith(comment) for line in lines)


def page_outputs(subject: Subject) -> Iterator[Issue]:
    """Yield pages that say nothing, and pages that were cut short."""
    if subject.pages is None:
        return
    for page in subject.pages.pages:
        asked = f"it must declare {_listed(page)}" if page.fields else "it must declare the type"
        if not page.was_written:
            message = f"page {page.page} of {page.total_pages} was never written; {asked}"
            yield subject.issue("EMPTY_OUTPUT", message, page=page.page)
        elif is_truncated(page):
            message = f"page {page.page} was cut short (stop reason {page.stop_reason})"
            yield subject.issue("TRUNCATED", f"{message}; {asked}", page=page.page)
        elif is_empty(page, subject.around.language.comment):
            message = f"page {page.page} holds no code; {asked}"
            yield subject.issue("EMPTY_OUTPUT", message, page=page.page)


def _listed(page: PageText) -> str:
    shown = ", ".join(map(str, page.fields[:12]))
    more = len(page.fields) - 12
    return f"{shown} and {more} more" if more > 0 else shown


def text_faults(subject: Subject) -> Iterator[Issue]:
    """Yield what the language does not allow, at its place in the block."""
    quiet = _pages_told_otherwise(subject)
    for fault in subject.facts.faults:
        if fault.code in ("SYNTAX", "INVALID_IDENTIFIER") and _is_of_wrong_kind(
            subject, fault.line
        ):
            continue  # members of a class are no members of an enum; that is told once
        issue = subject.issue(fault.code, fault.message, line=fault.line)
        if fault.code == "SYNTAX":
            issue = issue.on_page(_guilty_page(subject, issue))
        if issue.page not in quiet or issue.page is None:
            yield issue


def _is_of_wrong_kind(subject: Subject, line: int) -> bool:
    """Return whether a line stands in an enum that must be a class, or the other way round."""
    is_enum = subject.type.kind == "enum"
    return any(
        part.name_line < line <= part.end_line and (part.kind == "enum") != is_enum
        for part in subject.main
    )


def _pages_told_otherwise(subject: Subject) -> set[int]:
    """Return the pages that were cut short or are empty: that they are illegal follows from it."""
    if subject.pages is None:
        return set()
    comment = subject.around.language.comment
    return {
        page.page for page in subject.pages.pages if is_truncated(page) or is_empty(page, comment)
    }


def _guilty_page(subject: Subject, issue: Issue) -> int | None:
    """Return the page that is illegal alone, where the block's own line points at another."""
    if subject.pages is None or len(subject.pages.pages) == 1:
        return issue.page
    illegal = sorted({fault.page for fault in subject.pages.stitched.faults})
    if not illegal or issue.page in illegal:
        return issue.page
    before = [page for page in illegal if issue.page is None or page < issue.page]
    return before[-1] if before else illegal[0]


def page_syntax(subject: Subject, told: set[int | None]) -> Iterator[Issue]:
    """Yield pages that are illegal alone though the block as a whole does not show it.

    Args:
        subject: the type.
        told: pages of which another issue already says that their text is at fault.
    """
    if subject.pages is None or len(subject.pages.pages) == 1:
        return
    told = told | _pages_told_otherwise(subject)
    for fault in subject.pages.stitched.faults:
        if fault.page not in told:
            told.add(fault.page)
            line = subject.pages.first_line_of(fault.page)
            detail = f"line {fault.line} of the page"
            code = fault.code
            yield subject.issue(code, fault.message, line=line, page=fault.page, detail=detail)
