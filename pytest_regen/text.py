"""Words of messages; texts that came from outside, taken apart and put together again."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

_LINES_AROUND: Final = 2
_MAX_NAMES: Final = 8
_FIRST_NAMES: Final = 6
_MAX_LENGTH: Final = 60


def plural(number: int, noun: str) -> str:
    """Return ``1 repair``, ``2 repairs``, ``1,200 repairs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def join_names(names: Iterable[str], word: str) -> str:
    """Return names as a list in words, ``Cat, Dog and Fish``; of many the first, and a count.

    Args:
        names: at least one; a long one is cut.
        word: what stands before the last, ``and`` or ``or``.
    """
    parts = [f"{name:.{_MAX_LENGTH}}" for name in names]
    if len(parts) > _MAX_NAMES:
        parts = [*parts[: _MAX_NAMES - 1], f"{len(parts) - _MAX_NAMES + 1:,} more"]
    return f" {word} ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def shorten(names: Sequence[str]) -> str:
    """Return the first of many names, and how many more there are."""
    if len(names) <= _FIRST_NAMES + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_FIRST_NAMES])} and {len(names) - _FIRST_NAMES:,} more"


# Fixed ranges, not categories: those change with the Unicode version of the interpreter, and a
# prompt must be the same on every machine. Everything here is invisible, reorders text, ends a
# line, is half a character (a surrogate) or is not a character at all.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U0001fffe\U0001ffff\U0002fffe\U0002ffff"
    "\U0003fffe-\U0010ffff]"
)


def quoted(value: Any) -> str:
    """Return ``value`` as JSON on one line, every character that could mislead escaped.

    Keys keep their order. A value that JSON does not know (a date read from YAML) is quoted as its
    text. The result can be read by any JSON reader.
    """
    return flatten(json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str))


def flatten(text: str) -> str:
    """Return ``text`` on one line, invisible and unsafe characters written as JSON escapes."""
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


_TRICKS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


def visible(text: object) -> str:
    """Return a text in which nothing hides, moves a cursor or recolours a screen; lines stay."""
    return _TRICKS.sub(lambda match: repr(match[0])[1:-1], str(text))


def in_quotes(value: str | int) -> str:
    r"""Return a name or a piece of code in quotes, on one line, as it is.

    Nothing is doubled or escaped that can be seen: code that holds ``\*`` is shown with one
    backslash, as its writer wrote it. A number stands without quotes.
    """
    if isinstance(value, int):
        return str(value)
    mark = '"' if "'" in value else "'"
    return f"{mark}{flatten(value)}{mark}"


_OPENS: Final = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_CLOSES: Final = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
# Thinking whose first tag the chat template holds back, as that of DeepSeek R1 does.
_UNOPENED: Final = re.compile(
    r"(?:(?!<think(?:ing)?>).)*?(?:^[ \t]*</think(?:ing)?>|</think(?:ing)?>[ \t]*$)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def without_blank_ends(text: str) -> str:
    """Return a text without the blank lines above it, and the blanks below."""
    return re.sub(r"\A\s*\n", "", text.rstrip())


def without_thinking(text: str) -> str:
    """Return a reply without the thinking between think tags at its beginning, closed or not.

    A byte order mark before it is left out, too. Anywhere else a tag is text. Of a reply without
    the first tag, all is left out up to the end of the line with the last one.
    """
    return _split_thinking(text)[0]


def pieces_without_thinking(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return the pieces of one reply without the thinking in them, also where it was cut within.

    A piece after such a cut that does not say where the thinking ends is the answer.
    """
    answers, is_open = [], False
    for piece in pieces:
        close = _CLOSES.search(piece) if is_open else None
        answer, is_open = _split_thinking(piece[close.end() :] if close else piece)
        answers.append(answer)
    return tuple(answers)


def _split_thinking(text: str) -> tuple[str, bool]:
    """Return what is not thinking, and whether the text ends in the midst of some."""
    text = text.removeprefix("\ufeff")
    while opening := _OPENS.match(text):
        close = _CLOSES.search(text, opening.end())
        if close is None:
            return "", True
        text = text[close.end() :]
    # Looked for only where there is a tag: it reads the text letter by letter.
    unopened = _UNOPENED.match(text) if _CLOSES.search(text) else None
    if unopened:
        # Nothing after the tag: what stands before it is all there is of an answer.
        after = text[unopened.end() :]
        text = after if after.strip() else _CLOSES.sub("", text)
    return text, False


_FENCE: Final = re.compile(r"(?P<indent>[ \t]*)(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)")


def fenced_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the fenced blocks of a reply: info string, and code; the last may not be closed."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        at += 1
        if opening is None or (opening["run"][0] == "`" and "`" in opening["info"]):
            continue
        closing = re.compile(rf"\s*{opening['run'][0]}{{{len(opening['run'])},}}\s*")
        end = next((n for n in range(at, len(lines)) if closing.fullmatch(lines[n])), len(lines))
        # In a list of Markdown the code is moved as far as its fence.
        blanks = re.compile(rf"[ \t]{{0,{len(opening['indent'])}}}")
        yield opening["info"].strip(), "\n".join([blanks.sub("", n, 1) for n in lines[at:end]])
        at = end + 1


def excerpt(source: Sequence[str], number: int) -> list[str]:
    """Return a line with its number and its neighbours; nothing for a line that is not there.

    Args:
        source: all lines.
        number: of the line meant, from 1.
    """
    if not 1 <= number <= len(source):
        return []
    first, last = max(1, number - _LINES_AROUND), min(len(source), number + _LINES_AROUND)
    width = len(str(last))
    lines = []
    for at in range(first, last + 1):
        text = source[at - 1].expandtabs(4).rstrip()
        lines.append(f"  {'>' if at == number else ' '} {at:>{width}} | {text}".rstrip())
    return lines


def take_back(before: str, after: str, now: str) -> str | None:
    """Return ``now`` without the change from ``before`` to ``after``; other changes of it stay.

    ``None`` where one of the lines that the change wrote is another by now.
    """
    from difflib import SequenceMatcher  # Here, because few runs of pytest need it.

    old, new, lines = (text.splitlines(keepends=True) for text in (before, after, now))
    places = {-1: -1}
    for block in SequenceMatcher(None, new, lines).get_matching_blocks():
        places |= {block.a + number: block.b + number for number in range(block.size)}
    # From the end on, because each change moves the lines behind it.
    for tag, start, end, old_start, old_end in reversed(
        SequenceMatcher(None, new, old).get_opcodes()
    ):
        if tag == "equal":
            continue
        # What the change only took out goes behind the line that stood before it.
        first = places.get(start, -1) if end > start else places.get(start - 1, -2) + 1
        last = first + end - start
        if first < 0 or [places.get(n) for n in range(start, end)] != [*range(first, last)]:
            return None
        lines[first:last] = old[old_start:old_end]
    return "".join(lines)


def source_diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of two states of a file; empty where they agree."""
    from difflib import unified_diff

    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(unified_diff(old, new, f"a/{name}", f"b/{name}"))
