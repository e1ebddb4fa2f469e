"""The code in a model's reply: out of its fences, or without the sentences around it."""

import re
from collections.abc import Iterator, Sequence

from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.languages.base import Language
from pytest_regen.text import fenced_blocks, without_blank_ends, without_thinking

_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,}).*")
_SENTENCE = re.compile(r"[^\W\d_].*[.:!?]['\")*_`]*|[^\W\d_]\S*(?:\s+\S+){3,}")
"""What begins with a letter and ends as sentences do, or has four words."""
_MARKDOWN = re.compile(r"(?:[-*+>]|#{1,6}|\d+[.)])\s+\S.*|\*\*\S.*")
_MOST_BLOCKS = 20
"""Blocks of one reply that are parsed: because one that repeats itself may have thousands."""


def extract_code(
    reply_text: str | None,
    *,
    language: str | Language = DEFAULT_LANGUAGE,
    type_name: str | None = None,
    fields: Sequence[str | int] = (),
) -> str:
    """Return the code in a model's reply, with LF line ends; "" where there is none.

    The first of these that is legal, else the first: the fenced blocks of the language; all that
    stands from the first fence on; the reply without the sentences around its code. Nothing in a
    reply is ever read as a boundary, and no thinking at its beginning as code.

    Args:
        reply_text: the text of the reply, if it has any.
        language: the target language or its name.
        type_name: the type that was asked for. Of several blocks that declare it, the one is taken
            that holds most of ``fields``, the last of several.
        fields: the JSON names or enum values that were asked for.
    """
    target = find_language(language)
    text = (reply_text or "").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    likeliest: str | None = None
    # Lazily, because most replies are right at the first reading and parsing takes long.
    for reading in _readings(without_thinking(text), target, type_name, [*map(str, fields)]):
        code = without_blank_ends(reading)
        if not target.illegality(code):
            return code
        likeliest = code if likeliest is None else likeliest
    return likeliest or ""


def _readings(
    text: str, target: Language, type_name: str | None, fields: Sequence[str]
) -> Iterator[str]:
    """Yield the ways to read a reply, the likeliest first."""
    blocks = [*fenced_blocks(text)]
    if blocks:
        yield _chosen(blocks[-_MOST_BLOCKS:], target, type_name, fields)
    lines = text.split("\n")
    fences = [at for at, line in enumerate(lines) if _FENCE.fullmatch(line)]
    first, last = 0, len(lines)
    while last and _is_prose(lines[last - 1].strip(), target):
        last -= 1
    while first < last and _is_prose(lines[first].strip(), target):
        first += 1
    spans = [(0, len(lines)), (0, last), (first, last)]
    if fences:
        # Comments and strings of the code may hold fences themselves, because descriptions do; and
        # a reply that was cut and then begun again opens its fence a second time.
        begin, again, end = fences[0] + 1, fences[-2:][0] + 1, fences[-1]
        spans = [(begin, end), (again, end), (begin, last), *spans]
    yield from ("\n".join(lines[start:end]) for start, end in spans)


def _chosen(
    blocks: Sequence[tuple[str, str]],
    target: Language,
    type_name: str | None,
    fields: Sequence[str],
) -> str:
    """Return the blocks that are code of the language, joined, or the one that was asked for."""
    tagged = [((info.split() or [""])[0].strip("{}.").lower(), code) for info, code in blocks]
    codes = [code for tag, code in tagged if tag in target.fence_tags]
    codes = codes or [code for tag, code in tagged if not tag] or [code for _, code in tagged]
    # A single block is not looked at, because whoever asked tries what is returned.
    legal = [code for code in codes if not target.illegality(code)] if len(codes) > 1 else codes
    if len(legal) < 2:
        return (legal or codes)[0]
    parts: list[str] = []
    later: set[str] = set()
    candidates: list[str] = []
    for code in reversed(legal):
        names = {declared.name for declared in target.read(code).declarations}
        candidates += [code] * (type_name in names)
        # A model corrects itself below: what is declared again there does not count.
        if code not in parts and not (names and names <= later):
            parts.insert(0, without_blank_ends(code))
        later |= names
    if candidates:
        # Of equals the first, which is the last of the reply, because these are in reverse.
        return max(candidates, key=lambda code: sum(field in code for field in fields))
    return "\n\n".join(parts)


def _is_prose(line: str, target: Language) -> bool:
    """Return whether a line is blank, a fence or a sentence, not code or a comment."""
    syntax = target.syntax
    if not line or _FENCE.fullmatch(line):
        return True
    # ">" is no sign of code here, because Markdown quotes with it.
    is_code = line.startswith((target.comment.open, *syntax.comment_marks))
    if is_code or (syntax.code_signs & set(line)) - {">"}:
        return False
    return bool(_MARKDOWN.fullmatch(line) or _SENTENCE.fullmatch(line))
