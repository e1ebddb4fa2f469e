"""The code in a model's reply: out of fences and prose, by what reads best as code."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_regen.languages import language_named
from pytest_regen.languages.base import Language
from pytest_regen.sources.fences import Fenced, fence_lines, fenced_blocks, split_stuck_fences

__all__ = ["Extraction", "extract_code"]

_SENTENCE_END = re.compile(r"[.:!?]['\")*_`]*$")
_MARKDOWN = re.compile(r"(?:[-*+>]|#{1,6}|\d+[.)])\s+\S|\*\*\S")
_CODE_SIGNS = frozenset(";{}[]=<>")
_SENTENCE_WORDS = 4
_BYTES_TO_SPEND = 3_000_000
"""How much text is parsed for one reply: one full of fences must not take minutes."""
_ILLEGAL_COST = 16
"""How much slower text is parsed that is no code."""
_MOST_ENDS = 12
"""How many fences are tried as the end of code that no fence opens."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The code of a reply."""

    code: str
    """With LF line ends, without blank lines before and after it; "" where there is none."""
    notes: tuple[str, ...] = ()
    """What was left out or put together, in sentences for people."""


@dataclass(slots=True)
class _Judge:
    """Tells how far texts are from being code of one language, within limits."""

    language: Language
    to_spend: int = _BYTES_TO_SPEND
    seen: dict[str, int] = field(default_factory=dict)

    def weigh(self, code: str) -> int:
        """Return 0 for legal code; more is worse."""
        if code not in self.seen:
            self.seen[code] = self._parsed(code) if self.to_spend > 0 else len(code) + 1
        return self.seen[code]

    def _parsed(self, code: str) -> int:
        weight = self.language.illegality(code)
        self.to_spend -= len(code) * (_ILLEGAL_COST if weight else 1)
        return weight


def extract_code(reply_text: str | None, *, language: str | Language = "csharp") -> Extraction:
    """Return the code in a model's reply.

    Fences of any kind are read, closed or not, each with every line that could end it; the
    reading that the language finds legal is taken, else the one that is least illegal. So a fence
    inside a comment or string of the code does not end it. Nothing in a reply is ever read as a
    boundary.

    Args:
        reply_text: the text of the reply, if it has any.
        language: the target language or its name.
    """
    speaks = language_named(language) if isinstance(language, str) else language
    judge = _Judge(speaks)
    text = (reply_text or "").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        return Extraction("", ("the reply is empty",))
    blocks = _blocks(text, judge)
    readings = _of_fenced(text, blocks, judge) if blocks else _of_bare(text, judge)
    best: tuple[int, Extraction] | None = None
    for candidate in readings:
        weight = judge.weigh(candidate.code)
        if not weight:
            return candidate
        # No fence, and the less is left, the better; with fences, the likeliest reading stands.
        if best is None or (not blocks and weight < best[0]):
            best = weight, candidate
    return best[1] if best else Extraction(_trimmed(text))


def _of_fenced(text: str, blocks: Sequence[Fenced], judge: _Judge) -> Iterator[Extraction]:
    """Yield the ways to read a reply that has fences, the likeliest first."""
    yield _chosen(blocks, text, judge)
    inner = _blocks(blocks[0].code, judge)
    if inner:
        # A fence around fences: the outer one shows Markdown.
        yield _chosen(inner, blocks[0].code, judge)
    lines = text.split("\n")
    for at in (len(lines), *reversed(fence_lines(text)[-_MOST_ENDS:])):
        # Bare code: fence lines before its end stand in comments or strings.
        before = _trimmed("\n".join(lines[:at]))
        if _CODE_SIGNS & set(before):
            yield Extraction(
                before, ("text after the code was left out",) if at < len(lines) else ()
            )
    yield from _of_bare(text, judge)


def _of_bare(text: str, judge: _Judge) -> Iterator[Extraction]:
    """Yield the ways to read a reply without regard to fences on lines of their own."""
    yield Extraction(_trimmed(text))
    stuck = split_stuck_fences(text, judge.language.fence_tags)
    blocks = _blocks(stuck, judge) if stuck != text else []
    if blocks:
        yield _chosen(blocks, stuck, judge)
    yield from _without_prose(text, judge)


def _without_prose(text: str, judge: _Judge) -> Iterator[Extraction]:
    """Yield the reply without the sentences around its code, and what its delimiters enclose."""
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and _is_prose(lines[first], judge.language.comment):
        first += 1
    while last > first and _is_prose(lines[last - 1], judge.language.comment):
        last -= 1
    if 0 < last - first < len(lines):
        note = "text around the code was left out"
        yield Extraction(_trimmed("\n".join(lines[first:last])), (note,))
    inside = _delimited(lines, judge.language.comment)
    if inside:
        yield Extraction(inside, ("text outside of the delimiters was left out",))


def _delimited(lines: Sequence[str], comment: str) -> str:
    """Return what stands from the first delimiter line to the last, these included, or ""."""
    pattern = re.compile(rf"[ \t]*{re.escape(comment)}[ \t]*(?:BEGIN|END)_FIELDS[ \t]*")
    found = [index for index, line in enumerate(lines) if pattern.fullmatch(line)]
    return "\n".join(lines[found[0] : found[-1] + 1]) if len(found) > 1 else ""


def _is_prose(line: str, comment: str) -> bool:
    """Return whether a line is blank or reads as a sentence, not as code or a comment."""
    text = line.strip()
    if not text:
        return True
    if text.startswith((comment, "/*", "*/")) or (_CODE_SIGNS & set(text)) - {">"}:
        return False
    if _MARKDOWN.match(text):
        return True
    words = text.split()
    return text[0].isalpha() and (
        _SENTENCE_END.search(text) is not None or len(words) >= _SENTENCE_WORDS
    )


def _chosen(blocks: Sequence[Fenced], text: str, judge: _Judge) -> Extraction:
    """Return the code of the blocks that are code of the language, joined."""
    taken, notes = _wanted(blocks, judge), []
    if len(taken) > 1:
        taken = _latest(taken, judge)
    if len(taken) > 1:
        notes.append(f"{len(taken)} code blocks were joined")
    if len(taken) < len(blocks):
        notes.append(f"{len(blocks) - len(taken)} other code blocks were left out")
    if any(not block.is_closed for block in taken):
        notes.append("the code fence is not closed")
    lines = text.split("\n")
    if any(line.strip() for line in lines[: blocks[0].first_line - 1]):
        notes.append("text before the code was left out")
    if blocks[-1].is_closed and any(line.strip() for line in lines[blocks[-1].last_line :]):
        notes.append("text after the code was left out")
    codes = [_trimmed(block.code) for block in taken]
    return Extraction("\n\n".join(filter(None, codes)), tuple(notes))


def _blocks(text: str, judge: _Judge) -> list[Fenced]:
    """Return the fenced blocks of ``text``, sentences taken off where a fence is not closed."""

    def clean(code: str) -> str:
        lines = code.split("\n")
        while lines and _is_prose(lines[-1], judge.language.comment):
            lines.pop()
        return "\n".join(lines)

    return fenced_blocks(text, judge.weigh, clean)


def _wanted(blocks: Sequence[Fenced], judge: _Judge) -> list[Fenced]:
    """Return the blocks that are meant: of the language or without one, and legal if any is."""
    own = [block for block in blocks if block.tag in judge.language.fence_tags]
    plain = [block for block in blocks if not block.tag]
    pool = own or (plain if _legal(plain) else [])
    pool = pool or _legal(blocks) or plain or list(blocks)
    if not _legal(pool):
        return [max(pool, key=lambda block: len(block.code) - block.weight)]
    return [block for block in _legal(blocks) if block in pool or not block.tag]


def _legal(blocks: Sequence[Fenced]) -> list[Fenced]:
    return [block for block in blocks if not block.weight]


def _latest(blocks: Sequence[Fenced], judge: _Judge) -> list[Fenced]:
    """Return the blocks without those that a later one says again: a model corrects itself."""
    names = [
        frozenset(declared.name for declared in judge.language.read(block.code).declarations)
        for block in blocks
    ]
    kept: list[Fenced] = []
    for index, block in enumerate(blocks):
        later = frozenset[str]().union(*names[index + 1 :])
        is_repeated = any(block.code.strip() == other.code.strip() for other in blocks[index + 1 :])
        if not is_repeated and not (names[index] and names[index] <= later):
            kept.append(block)
    return kept


def _trimmed(text: str) -> str:
    """Return the text without blank lines around it; indentation stays."""
    return re.sub(r"\A(?:[ \t]*\n)+", "", text).rstrip()
