"""The correction block: what was wrong with the last answer, put before the prompt it was for.

The form is requirement 2's. The block is made for one request and never stored. The model that
reads it sees neither its last answer nor the source, so each entry stands for itself: it names the
field, and quotes the line of the answer.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from pytest_regen.prompts.values import clip, list_some
from pytest_regen.text import flatten, in_quotes, quoted
from pytest_regen.validation.issues import Issue

MAX_CORRECTIONS: Final = 25
"""Entries of one block; a page with more has one cause, not many."""

_MAX_CHARACTERS: Final = 6_000
_MAX_LINE: Final = 400
_MAX_EXCERPT: Final = 240
_MAX_NAMES: Final = 1_500
_MAX_DETAIL_LINES: Final = 6

_CODED: Final = re.compile(r"\[[A-Z][A-Z0-9_]*\] ?")
_FREE_TEXT_CODE: Final = "NOTE"
_TYPE_SECTIONS: Final = ("NESTED TYPES", "TYPE REFERENCE")


def correction_block(corrections: Sequence[Issue | str], prompt: str = "") -> str:
    """Return the block for a page of a type, or ``""`` where there is nothing to correct.

    Args:
        corrections: what was wrong; see ``list_corrections``.
        prompt: the stored user text that the block is put before; its orders name the sections
            that this text has. Without it they are worded as in the requirement.
    """
    is_enum = _has(prompt, "ENUM VALUES")
    noun, units = ("values", "ENUM VALUES") if is_enum else ("fields", "FIELDS")
    types = [section for section in _TYPE_SECTIONS if _has(prompt, section)] or _TYPE_SECTIONS
    return list_corrections(
        corrections,
        subject="type",
        noun="Value" if is_enum else "Field",
        orders=(
            f"Do not introduce any types not listed in {' / '.join(types)}.",
            f"Do not omit any {noun} listed in this page's {units} section.",
        ),
    )


def list_corrections(
    corrections: Sequence[Issue | str],
    *,
    subject: str = "text",
    noun: str = "Field",
    orders: Sequence[str] = (),
) -> str:
    """Return the block that names ``corrections``, or ``""`` where there are none.

    Issues of one finding are one entry that lists their fields. A text may begin with its own
    ``[CODE]``, as in the requirement, and may have detail lines after the first; other text is
    named ``[NOTE]``. Whatever an issue quotes from a reply is shown as it is, but on one line:
    each entry has one line at two blanks and its detail at four, so that no text can pose as an
    order, a heading or another entry. Equal corrections are named once. What does not fit is
    counted, not named.

    Args:
        corrections: what was wrong.
        subject: what was asked for: ``The previous attempt for this text produced …``.
        noun: what ``Issue.field`` names.
        orders: what else to heed, a sentence each.
    """
    entries = list(dict.fromkeys(_entries(corrections, noun)))
    if not entries:
        return ""
    used, listed_fields = 0, list[str]()
    for entry in entries[:MAX_CORRECTIONS]:
        used += len(entry) + 1
        # A long block would cost more than the page, and models heed the first entries best.
        if used > _MAX_CHARACTERS and listed_fields:
            break
        listed_fields.append(entry)
    if left_out := len(entries) - len(listed_fields):
        listed_fields.append(f"  ({left_out} more not shown)")
    head = (
        f"The previous attempt for this {subject} produced the following errors. "
        "Fix them in your output."
    )
    block = ["CORRECTION REQUIRED:", head, "", *listed_fields]
    return "\n".join([*block, "", *orders] if orders else block)


def with_correction(user: str, block: str) -> str:
    """Return ``block``, a blank line and ``user`` byte for byte; ``user`` alone without a block."""
    return f"{block}\n\n{user}" if block else user


def _has(prompt: str, section: str) -> bool:
    """Return whether ``prompt`` has a section; only structure begins in the first column."""
    return f"\n{section}:" in f"\n{prompt}"


def _entries(corrections: Sequence[Issue | str], noun: str) -> Iterable[str]:
    """Yield an entry per text and per group of issues, in the order of their first."""
    groups: dict[object, list[Issue]] = {}
    for correction in corrections:
        if isinstance(correction, str):
            groups[correction] = []
            continue
        code, field, message = correction.code, correction.field, correction.message
        key: tuple[object, ...] = code, message, correction.detail
        if field is not None:
            key = code, message.replace(in_quotes(field), ""), correction.detail, ""
            # Messages differ in the field alone, and forty lines for one mistake hide the others.
            key = (code, correction.finding) if correction.finding else key
        groups.setdefault(key, []).append(correction)
    for text, issues in groups.items():
        if issues:
            yield _issue_entry(issues, noun)
        elif lines := [line.strip() for line in str(text).splitlines() if line.strip()]:
            code = "" if _CODED.match(lines[0]) else f"[{_FREE_TEXT_CODE}] "
            yield _lines(_one_line(code + lines[0]), lines[1:])


def _issue_entry(issues: Sequence[Issue], noun: str) -> str:
    """Return the entry of issues that differ in their field alone."""
    first = issues[0]
    # Codes of a user's validators are free text.
    code = f"[{re.sub(r'[^A-Z0-9_]', '_', first.code.upper()) or _FREE_TEXT_CODE}]"
    fields = list(dict.fromkeys(issue.field for issue in issues if issue.field is not None))
    names = [quoted(_short(field)) for field in fields]
    listed = list_some(names, _MAX_NAMES)
    is_shared = all(issue.detail == first.detail for issue in issues)
    details = [first.detail] if first.detail and is_shared else []
    if len(fields) > 1 and first.finding:
        return _lines(f"{code} {_one_line(first.finding)}: {listed}", details)
    # The model does not see its last answer, so that the line is quoted.
    if first.excerpt is not None:
        text, note = clip(first.excerpt.text.strip().expandtabs(4), _MAX_EXCERPT)
        details.insert(0, f"Line {first.excerpt.line}{' (cut)' if note else ''}: {text}")
    message = f"{code} {_one_line(first.message)}"
    if not fields:
        return _lines(message, details)
    listed_fields = f"{noun}: {names[0]}" if len(names) == 1 else f"{noun}s: {listed}"
    return _lines(message, details, listed_fields)


def _lines(head: str, details: Sequence[str], listed_fields: str = "") -> str:
    """Return an entry; ``head`` and ``listed_fields`` are on one line each already."""
    lines = [f"    {_one_line(detail)}" for detail in details[:_MAX_DETAIL_LINES]]
    if listed_fields:
        lines.insert(0, f"    {listed_fields}")
    if len(details) > _MAX_DETAIL_LINES:
        lines.append(f"    ({len(details) - _MAX_DETAIL_LINES} more lines not shown)")
    return "\n".join([f"  {head}", *lines])


def _one_line(text: str) -> str:
    return flatten(_short(text.strip()))


def _short(text: str) -> str:
    start, note = clip(text, _MAX_LINE)
    return f"{start} ({note})" if note else start
