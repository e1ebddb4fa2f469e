"""The code in a model's reply: out of fences and prose, by what reads best as code."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import thread_time
from typing import NamedTuple

from pytest_regen.languages import DEFAULT_LANGUAGE, find_language, has_only_members
from pytest_regen.languages.base import Language, SourceFacts
from pytest_regen.regions.markers import Comment
from pytest_regen.text import without_thinking

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<run>`{3,}|~{3,})[ \t]*(?P<info>.*?)[ \t]*")
_MOST_CLOSERS = 12
"""How many lines are tried as the end of one block."""


@dataclass(frozen=True, slots=True)
class FencedBlock:
    """A fenced block."""

    tag: str
    """First word of the info string, in lower case."""
    code: str
    first_line: int
    """Line of the opening fence, counted from 1."""
    last_line: int
    """Line of the closing fence, or the last line of the text."""
    is_closed: bool
    weight: int
    """How far the code is from being legal; 0 is legal."""


def fenced_blocks(
    text: str, weigh: Callable[[str], int], clean: Callable[[str], str]
) -> list[FencedBlock]:
    """Return the fenced blocks of ``text`` in order.

    A block ends at the first line that could close it and leaves legal code; if no line does, at
    the one that leaves the least illegal code, or at the end of the text if nothing could close it.

    Args:
        text: Markdown with LF line ends.
        weigh: tells how far a code is from being legal; 0 is legal.
        clean: takes sentences off the end of a block that nothing closes.
    """
    lines = text.split("\n")
    found: list[FencedBlock] = []
    at = 0
    while at < len(lines):
        fence = _opening(lines[at])
        if fence is None:
            at += 1
            continue
        block = _block(lines, at, fence, weigh, clean)
        found.append(block)
        at = block.last_line
    return found


def fence_lines(text: str) -> list[int]:
    """Return the indexes of the lines of ``text`` that may open or close a block."""
    return [at for at, line in enumerate(text.split("\n")) if _opening(line) is not None]


def split_stuck_fences(text: str, tags: Collection[str]) -> str:
    """Return ``text`` with fences that stand at the end of other text on a line of their own."""
    words = "|".join(map(re.escape, sorted(tags)))
    pattern = rf"(?<=\S)[ \t]*(?<![`~])(`{{3,}}|~{{3,}})[ \t]*((?:{words})?)[ \t]*$"
    return re.sub(pattern, r"\n\1\2", text, flags=re.MULTILINE | re.IGNORECASE)


def _opening(line: str) -> re.Match[str] | None:
    match = _FENCE.fullmatch(line)
    if match is None or (match["run"][0] == "`" and "`" in match["info"]):
        return None
    return match


def _block(
    lines: Sequence[str],
    at: int,
    fence: re.Match[str],
    weigh: Callable[[str], int],
    clean: Callable[[str], str],
) -> FencedBlock:
    """Return the block that the fence on line index ``at`` opens."""
    tag = (fence["info"].split() or [""])[0].strip("{}.").lower()
    best: FencedBlock | None = None
    ends = (index for index in range(at + 1, len(lines)) if _ends(lines[index], fence))
    for end in [*islice(ends, _MOST_CLOSERS), len(lines)]:
        is_closed = end < len(lines)
        code = _dedent(lines[at + 1 : end], len(fence["indent"]))
        last = end + 1 if is_closed else len(lines)
        weight = weigh(code)
        if weight and not is_closed:
            code = clean(code)
            weight = weigh(code)
        block = FencedBlock(tag, code, at + 1, last, is_closed, weight)
        if not block.weight:
            return block
        if best is None or (is_closed and block.weight < best.weight):
            best = block
    assert best is not None  # the end of the text is always tried
    return best


def _ends(line: str, fence: re.Match[str]) -> bool:
    text = line.strip()
    return len(text) >= len(fence["run"]) and not text.strip(fence["run"][0])


def _dedent(lines: Sequence[str], indent: int) -> str:
    """Return the lines without as many leading blanks as the fence has, where they have them."""
    if not indent:
        return "\n".join(lines)
    return "\n".join(line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines)


_SENTENCE_END = re.compile(r"[.:!?]['\")*_`]*$")
_MARKDOWN = re.compile(r"(?:[-*+>]|#{1,6}|\d+[.)])\s+\S|\*\*\S")
_SENTENCE_WORDS = 4
_BYTES_TO_SPEND = 3_000_000
"""How much text is parsed for one reply: one full of fences must not take minutes."""
_SECONDS_TO_SPEND = 1.5
"""Processor time for one reply, where the parser is slow to recover from errors."""
_ILLEGAL_COST = 16
"""How much slower text is parsed that is no code."""
_MOST_ENDS = 12
"""How many fences are tried as the end of code that no fence opens."""
_MOST_BLOCKS = 40
"""How many legal blocks, the last ones, are held against what was asked."""
_MOST_WRAPPED = 12
"""How many strings of a JSON value are tried as code."""
_WORD = re.compile(r'"(?:[^"\\\n]|\\.)*"|[^\s"()\[\],;{}=<>]+')
_SIGNS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Extraction:
    """The code of a reply."""

    code: str
    """With LF line ends, without blank lines before and after it; "" where there is none."""
    notes: tuple[str, ...] = ()
    """What was left out or put together, in sentences for people."""


class _Fit(NamedTuple):
    """How well legal code answers what was asked, to be compared."""

    is_tidy: bool
    """Whether it declares nothing but the type, and that once, or is members alone."""
    covered: frozenset[str]
    is_named: bool
    """Whether it declares the type by its very name."""

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """What is compared."""
        return self.is_tidy, len(self.covered), self.is_named


@dataclass(slots=True)
class _Scorer:
    """Scores how far texts are from being code of one language, within limits."""

    language: Language
    type_name: str | None = None
    fields: frozenset[str] = frozenset()
    """What the code is to cover, as plain words."""
    to_spend: int = _BYTES_TO_SPEND
    ends: float = field(default_factory=lambda: thread_time() + _SECONDS_TO_SPEND)
    seen: dict[str, int] = field(default_factory=dict)

    def weigh(self, code: str) -> int:
        """Return 0 for legal code; more is worse."""
        if code not in self.seen:
            is_covered = self.to_spend > 0 and thread_time() < self.ends
            self.seen[code] = self._measure(code) if is_covered else len(code) + 1
        return self.seen[code]

    def fit(self, code: str) -> _Fit:
        """Return how well legal code answers what was asked."""
        facts = SourceFacts()
        if not has_only_members(self.language, code):
            facts = self.language.read(code)
        names = _top_level(facts)
        is_tidy = all(map(self._may_be_the_type, names)) and len(names) == len({*names})
        is_tidy = is_tidy and not (names and (facts.stray_lines or facts.faults))
        words = {_plain(word) for word in _WORD.findall(code)}
        return _Fit(is_tidy, self.fields & words, self.type_name in names)

    def _may_be_the_type(self, name: str) -> bool:
        # A root may leave its suffix out, or add it.
        asked = self.type_name or name
        return name.startswith(asked) or asked.startswith(name)

    def _measure(self, code: str) -> int:
        weight = self.language.illegality(code)
        self.to_spend -= len(code) * (_ILLEGAL_COST if weight else 1)
        return weight


def extract_code(
    reply_text: str | None,
    *,
    language: str | Language = DEFAULT_LANGUAGE,
    type_name: str | None = None,
    fields: Sequence[str | int] = (),
) -> Extraction:
    """Return the code in a model's reply.

    Fences of any kind are read, closed or not, each with every line that could end it; the
    reading that the language finds legal is taken, else the one that is least illegal. So a fence
    inside a comment or string of the code does not end it. Nothing in a reply is ever read as a
    boundary, and nothing between ``<think>`` tags as code.

    Args:
        reply_text: the text of the reply, if it has any.
        language: the target language or its name.
        type_name: the type that was asked for. Of several legal readings the one is taken that
            declares nothing else and covers most of ``fields``.
        fields: the JSON names or enum values that were asked for.
    """
    scorer = _Scorer(
        find_language(language), type_name, frozenset(map(_plain, map(str, fields))) - {""}
    )
    text = (reply_text or "").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        return Extraction("", ("the reply is empty",))
    answer = without_thinking(text)
    if answer != text and not _is_bare_code(text, scorer):
        if not answer.strip():
            return Extraction("", ("the reply ends before its answer: all of it is thinking",))
        found = _best(answer, scorer)
        return Extraction(found.code, ("what the model thought aloud was left out", *found.notes))
    return _best(text, scorer)


def _is_bare_code(text: str, scorer: _Scorer) -> bool:
    """Return whether the whole reply is code, in whose strings and comments tags are only text."""
    return not _blocks(text, scorer) and not scorer.weigh(_trim(text))


def _best(text: str, scorer: _Scorer) -> Extraction:
    """Return the reading that answers best of those that are legal, else the least illegal one."""
    blocks = _blocks(text, scorer)
    readings = _fenced_readings(text, blocks, scorer) if blocks else _bare_readings(text, scorer)
    legal: tuple[_Fit, Extraction] | None = None
    best: tuple[int, Extraction] | None = None
    for candidate in readings:
        weight = scorer.weigh(candidate.code)
        if not weight:
            if not scorer.fields:
                return candidate
            fit = scorer.fit(candidate.code)
            if fit.is_tidy and fit.covered == scorer.fields:
                return candidate
            if legal is None or fit.rank > legal[0].rank:
                legal = fit, candidate
        # No fence, and the less is left, the better; with fences, the likeliest reading stands.
        elif best is None or (not blocks and weight < best[0]):
            best = weight, candidate
    if legal:
        return legal[1]
    return best[1] if best else Extraction(_trim(text))


def _fenced_readings(
    text: str, blocks: Sequence[FencedBlock], scorer: _Scorer
) -> Iterator[Extraction]:
    """Yield the ways to read a reply that has fences, the likeliest first."""
    yield _choose(blocks, text, scorer)
    split = [block for block in blocks if block.tag in scorer.language.fence_tags or not block.tag]
    if len(split) > 1:
        # Code that goes on in the next fence, in the midst of a declaration.
        code = _trim("\n".join(block.code for block in split))
        yield Extraction(code, (f"{len(split)} code blocks were joined",))
    inner = _blocks(blocks[0].code, scorer)
    if inner:
        # A fence around fences: the outer one shows Markdown.
        yield _choose(inner, blocks[0].code, scorer)
    lines = text.split("\n")
    for at in (len(lines), *reversed(fence_lines(text)[-_MOST_ENDS:])):
        # Bare code: fence lines before its end stand in comments or strings.
        before = _trim("\n".join(lines[:at]))
        if scorer.language.syntax.code_signs & set(before):
            yield Extraction(
                before, ("text after the code was left out",) if at < len(lines) else ()
            )
    yield from _bare_readings(text, scorer)


def _bare_readings(text: str, scorer: _Scorer) -> Iterator[Extraction]:
    """Yield the ways to read a reply without regard to fences on lines of their own."""
    yield Extraction(_trim(text))
    stuck = split_stuck_fences(text, scorer.language.fence_tags)
    blocks = _blocks(stuck, scorer) if stuck != text else []
    if blocks:
        yield _choose(blocks, stuck, scorer)
    yield from _without_prose(text, scorer)
    yield from _unwrap_json(text, scorer)
    inside = without_thinking(_strip_fence(text, scorer))
    if inside != text:
        yield Extraction(_trim(inside), ("what the model thought aloud was left out",))


def _strip_fence(text: str, scorer: _Scorer) -> str:
    """Return the first fenced block, or the text that has none."""
    blocks = _blocks(text, scorer)
    return blocks[0].code if blocks else text


def _unwrap_json(text: str, scorer: _Scorer) -> Iterator[Extraction]:
    """Yield code that stands as a string in a JSON object: ``{"code": "..."}``."""
    for candidate in (text, *(block.code for block in _blocks(text, scorer))):
        try:
            value = json.loads(candidate) if candidate.lstrip()[:1] == "{" else None
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            strings = (each for each in value.values() if isinstance(each, str))
            for code in islice(strings, _MOST_WRAPPED):
                if scorer.language.syntax.code_signs & set(code):
                    yield Extraction(
                        _trim(code.replace("\r\n", "\n")), ("JSON around the code was left out",)
                    )


def _without_prose(text: str, scorer: _Scorer) -> Iterator[Extraction]:
    """Yield the reply without the sentences around its code, and what its delimiters enclose."""
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and _is_prose(lines[first], scorer.language):
        first += 1
    while last > first and _is_prose(lines[last - 1], scorer.language):
        last -= 1
    if 0 < last - first < len(lines):
        note = "text around the code was left out"
        yield Extraction(_trim("\n".join(lines[first:last])), (note,))
    inside = _between_delimiters(lines, scorer.language.comment)
    if inside:
        yield Extraction(inside, ("text outside of the delimiters was left out",))


def _between_delimiters(lines: Sequence[str], comment: Comment) -> str:
    """Return what stands from the first delimiter line to the last, these included, or ""."""
    opening, closing = map(re.escape, comment)
    pattern = re.compile(rf"[ \t]*{opening}[ \t]*(?:BEGIN|END)_FIELDS[ \t]*{closing}[ \t]*")
    found = [index for index, line in enumerate(lines) if pattern.fullmatch(line)]
    return "\n".join(lines[found[0] : found[-1] + 1]) if len(found) > 1 else ""


def _is_prose(line: str, language: Language) -> bool:
    """Return whether a line is blank or reads as a sentence, not as code or a comment."""
    text = line.strip()
    if not text:
        return True
    syntax = language.syntax
    if text.startswith((language.comment.open, *syntax.comment_marks)):
        return False
    if (syntax.code_signs & set(text)) - {">"}:
        return False
    if _MARKDOWN.match(text):
        return True
    words = text.split()
    return text[0].isalpha() and (
        _SENTENCE_END.search(text) is not None or len(words) >= _SENTENCE_WORDS
    )


def _choose(blocks: Sequence[FencedBlock], text: str, scorer: _Scorer) -> Extraction:
    """Return the code of the blocks that are code of the language, joined."""
    taken, notes = _relevant_blocks(blocks, scorer), []
    if len(taken) > 1:
        answer, taken = _best_answer(taken, scorer)
    else:
        answer = _join(taken)
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
    return Extraction(answer, tuple(notes))


def _join(blocks: Sequence[FencedBlock]) -> str:
    return "\n\n".join(filter(None, (_trim(block.code) for block in blocks)))


def _best_answer(blocks: Sequence[FencedBlock], scorer: _Scorer) -> tuple[str, list[FencedBlock]]:
    """Return the code of the legal blocks that answer what was asked, and which blocks these are.

    The one that declares the type and covers most fields; several where they share the fields, as
    the pages of a type do. Where nothing was asked for by name, all but what is said again.
    """
    blocks = blocks[-_MOST_BLOCKS:]
    latest = _latest(blocks, scorer)
    default = _join(latest), latest
    if not scorer.fields:
        return default
    fits = [scorer.fit(block.code) for block in blocks]
    found = [default, *((_join([block]), [block]) for block in reversed(blocks))]
    shared = _share_fields(blocks, fits, scorer)
    if shared:
        found.append(shared)
    return max(found, key=lambda reading: scorer.fit(reading[0]).rank)


def _share_fields(
    blocks: Sequence[FencedBlock], fits: Sequence[_Fit], scorer: _Scorer
) -> tuple[str, list[FencedBlock]] | None:
    """Return the blocks that share the fields among them as one declaration, if they do."""
    shell = max(range(len(blocks)), key=lambda at: (fits[at].is_named, len(fits[at].covered)))
    if scorer.type_name is None or not fits[shell].is_named:
        return None
    taken, covered = [shell], set(fits[shell].covered)
    for at, fit in enumerate(fits):
        if fit.is_tidy and fit.covered and not fit.covered & covered:
            taken.append(at)
            covered |= fit.covered
    if len(taken) == 1:
        return None
    declared = scorer.language.read(blocks[shell].code).declarations
    is_enum = any(entry.kind == "enum" for entry in declared if entry.name == scorer.type_name)
    codes = [blocks[at].code for at in taken]
    stitched = scorer.language.stitch(codes, name=scorer.type_name, is_enum=is_enum)
    return None if stitched.faults else (stitched.text, [blocks[at] for at in sorted(taken)])


def _blocks(text: str, scorer: _Scorer) -> list[FencedBlock]:
    """Return the fenced blocks of ``text``, sentences taken off where a fence is not closed."""

    def clean(code: str) -> str:
        lines = code.split("\n")
        while lines and _is_prose(lines[-1], scorer.language):
            lines.pop()
        return "\n".join(lines)

    return fenced_blocks(text, scorer.weigh, clean)


def _relevant_blocks(blocks: Sequence[FencedBlock], scorer: _Scorer) -> list[FencedBlock]:
    """Return the blocks that are meant: of the language or without one, and legal if any is."""
    own = [block for block in blocks if block.tag in scorer.language.fence_tags]
    plain = [block for block in blocks if not block.tag]
    pool = own or (plain if _legal(plain) else [])
    pool = pool or _legal(blocks) or plain or list(blocks)
    if not _legal(pool):
        return [max(pool, key=lambda block: len(block.code) - block.weight)]
    lines = {block.first_line for block in pool}
    return [block for block in _legal(blocks) if block.first_line in lines or not block.tag]


def _legal(blocks: Sequence[FencedBlock]) -> list[FencedBlock]:
    return [block for block in blocks if not block.weight]


def _latest(blocks: Sequence[FencedBlock], scorer: _Scorer) -> list[FencedBlock]:
    """Return the blocks without those that a later one says again: a model corrects itself."""
    kept: list[FencedBlock] = []
    later: set[str] = set()
    codes: set[str] = set()
    for block in reversed(blocks):
        names = {declared.name for declared in scorer.language.read(block.code).declarations}
        code = block.code.strip()
        if code not in codes and not (names and names <= later):
            kept.append(block)
        later |= names
        codes.add(code)
    return kept[::-1]


def _trim(text: str) -> str:
    """Return the text without blank lines around it; indentation stays."""
    return re.sub(r"\A(?:[ \t]*\n)+", "", text).rstrip()


def _top_level(facts: SourceFacts) -> list[str]:
    """Return the names that a source declares, nested ones left out."""
    return [declared.name for declared in facts.declarations if declared.outer is None]


def _plain(word: str) -> str:
    """Return a word by its letters and digits: a field and the member named after it are one."""
    return _SIGNS.sub("", word).casefold()
