"""The correction block: what was wrong with a page's last output, put before its stored prompt.

The form is requirement 2's. The block is made for one request and never stored.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from pytest_regen.prompts.encoding import clip, flatten, quote
from pytest_regen.validation.issues import Issue

__all__ = ["MAX_CORRECTIONS", "correction_block", "with_correction"]

MAX_CORRECTIONS: Final = 25
"""Issues named in one block; a page with more has one cause, not many."""

_MAX_CHARACTERS: Final = 6_000
_MAX_LINE: Final = 400
_MAX_DETAIL_LINES: Final = 6

_HEAD: Final = (
    "CORRECTION REQUIRED:\n"
    "The previous attempt for this type produced the following errors. Fix them in your output.\n"
)
_TAIL: Final = (
    "\nDo not introduce any types not listed in NESTED TYPES / TYPE REFERENCE.\n"
    "Do not omit any fields listed in this page's FIELDS section."
)
_CODED: Final = re.compile(r"\[[A-Z][A-Z0-9_]*\] ?")
_FREE_TEXT_CODE: Final = "NOTE"


def correction_block(corrections: Sequence[Issue | str]) -> str:
    """Return the block that names ``corrections``, or ``""`` where there are none.

    A text may begin with its own ``[CODE]``, as in the requirement, and may have detail lines after
    the first; other text is named ``[NOTE]``. Whatever an issue quotes from a reply is flattened:
    each issue has one line at two blanks and its detail at four, so that no text can pose as an
    order, a heading or another issue. Equal corrections are named once. What does not fit is
    counted, not named.
    """
    entries = list(dict.fromkeys(filter(None, map(_entry, corrections))))
    if not entries:
        return ""
    named = entries[: _fitting(entries)]
    if left_out := len(entries) - len(named):
        named.append(f"  ({left_out} more not shown)")
    return "\n".join([_HEAD, *named, _TAIL])


def with_correction(user: str, block: str) -> str:
    """Return ``block``, a blank line and ``user`` byte for byte; ``user`` alone without a block."""
    return f"{block}\n\n{user}" if block else user


def _fitting(entries: Sequence[str]) -> int:
    """Return how many of ``entries`` are named; the first one always is."""
    used = 0
    for count, entry in enumerate(entries[:MAX_CORRECTIONS]):
        used += len(entry) + 1
        if used > _MAX_CHARACTERS and count:
            return count
    return min(len(entries), MAX_CORRECTIONS)


def _entry(correction: Issue | str) -> str:
    if isinstance(correction, Issue):
        details = [] if correction.field is None else [f"Field: {quote(_short(correction.field))}"]
        details += [correction.detail] if correction.detail else []
        return _lines(f"[{_code(correction.code)}] {_one_line(correction.message)}", details)
    head, *details = [line.strip() for line in correction.splitlines() if line.strip()] or [""]
    if not head:
        return ""
    if not _CODED.match(head):
        head = f"[{_FREE_TEXT_CODE}] {head}"
    return _lines(_one_line(head), details)


def _lines(head: str, details: Sequence[str]) -> str:
    shown = [f"    {_one_line(detail)}" for detail in details[:_MAX_DETAIL_LINES]]
    return "\n".join([f"  {head}", *shown, *_rest(len(details) - len(shown))])


def _rest(count: int) -> Iterable[str]:
    return [f"    ({count} more lines not shown)"] if count > 0 else []


def _code(code: str) -> str:
    """Return a code as it may stand in brackets; codes of a user's validators are free text."""
    return re.sub(r"[^A-Z0-9_]", "_", code.upper()) or _FREE_TEXT_CODE


def _one_line(text: str) -> str:
    return flatten(_short(text.strip()))


def _short(text: str) -> str:
    shown, note = clip(text, _MAX_LINE)
    return f"{shown} ({note})" if note else shown
