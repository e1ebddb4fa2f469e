"""Text inside text: escapes, base64 and percent-encoding, decoded and encoded again.

Standard library only. Credentials are found in decoded text and replaced in the encoded one.
"""

import re
import sys
import zlib
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import quote_plus, unquote_to_bytes

_ESCAPED = re.compile(
    # JSON, YAML, Python, shells and HTML; terminal colours; folded lines.
    r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|U[0-9A-Fa-f]{8}|u\{[0-9A-Fa-f]{1,6}\}|033"
    r"|[\\\"'`/abefnrtv0N_LP ]|\r?\n[ \t]*)"
    r"|\x1b\[[0-9;]*[A-Za-z]"
    r"|&(?:#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos|nbsp);"
)
_MEANINGS: Final = {
    **{f"\\{same}": same for same in "\\\"'`/ "},
    **dict(zip((rf"\{letter}" for letter in "abefnrtv0N_LP"),
               "\a\b\x1b\f\n\r\t\v\0\x85\xa0\u2028\u2029", strict=True)),
    "\\033": "\x1b",
    **{f"&{name};": sign for name, sign in zip(("amp", "lt", "gt", "quot", "apos", "nbsp"),
                                               "&<>\"'\xa0", strict=True)},
}  # fmt: skip
_NUMBER = re.compile(r"[\\&][uUx#{]+([0-9A-Fa-f]+)")
_SURROGATES: Final = range(0xD800, 0xE000)
_NO_LETTER: Final = "\ufffd"


def unescape(text: str) -> str:
    """Return ``text`` without its escapes.

    Undoes one level: what was escaped twice is escaped once afterwards.
    """
    if not ("\\" in text or "\x1b[" in text or ("&" in text and ";" in text)):
        return text
    return _ESCAPED.sub(lambda match: _meaning(match[0]), text)


def escaped_places(text: str) -> Callable[[int], int]:
    """Return a function from a position in the unescaped ``text`` to the position in ``text``."""
    plain, escaped, ahead = [0], [0], 0
    for match in _ESCAPED.finditer(text):
        ahead += len(match[0]) - len(_meaning(match[0]))
        plain.append(match.end() - ahead)
        escaped.append(match.end())

    def place(at: int) -> int:
        last = bisect_right(plain, at) - 1
        return escaped[last] + at - plain[last]

    return place


@lru_cache(maxsize=4096)
def _meaning(token: str) -> str:
    """Return what an escape stands for, at most one character."""
    if token in _MEANINGS:
        return _MEANINGS[token]
    if token[0] == "\x1b":
        return "\x1b"
    if token[1] in "\r\n":
        return ""
    (digits,) = _NUMBER.findall(token)
    code = int(digits, 10 if token[0] == "&" and "x" not in token else 16)
    is_letter = code <= sys.maxunicode and code not in _SURROGATES
    return chr(code) if is_letter else _NO_LETTER


class Edit(NamedTuple):
    """A part of a text and its replacement."""

    start: int
    end: int
    text: str
    kinds: tuple[str, ...]
    """The kinds of credential that it replaces."""


Clean = Callable[[str], tuple[str, tuple[str, ...]] | None]
"""Returns a decoded text without its credentials, and their kinds; ``None`` if it holds none."""

_RUN = re.compile(r"[A-Za-z0-9+/_-]{20,}+")
_BASE64 = re.compile(
    # Lines may be broken, as in mail, and indented, as in YAML.
    r"[A-Za-z0-9+/_-]{20,}(?:\r?\n[ \t]*[A-Za-z0-9+/_-]{4,})*={0,2}"
)
_ONE_ALPHABET = str.maketrans("-_", "+/")
_JOINTS = re.compile(r"[-_/+]")
_SHORTEST: Final = 20
"""In digits of base64: less is too short to hide a credential."""
_FIRST_LINES: Final = 3
# In characters. Only in shorter texts base64 is also looked for after another word, because each
# place to begin at is another text to search.
_SHORT: Final = 1 << 12
_LARGEST: Final = 1 << 22
"""How many bytes of compressed data are searched."""
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_ENDS = r"""[\s"'<>\\&?;,{}]"""
_BEFORE = re.compile(rf"(?s:.*){_ENDS}")
_UP_TO = re.compile(_ENDS.replace("[", "[^", 1) + "*")
# How many characters before the first percent sign of a word are searched: a limit, because without
# one each of many signs in a row would be searched to the beginning of the text.
_FARTHEST: Final = 1 << 12


def without_overlaps(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits in order; where two readings are possible, the one that begins first."""
    apart: list[Edit] = []
    for edit in sorted(edits):
        if not apart or edit.start >= apart[-1].end:
            apart.append(edit)
    return apart


def base64_edits(text: str, long: str, clean: Clean) -> Iterator[Edit]:
    """Yield the replacements in base64, which is searched only if a ``long`` word contains some."""
    at = 0
    for run in _RUN.findall(long):
        # Words, names and numbers are not base64, which has letters of both cases.
        start = -1 if run.islower() or run.isupper() else text.find(run, at)
        match = _BASE64.match(text, start) if start >= 0 else None
        if match is None:
            # The next run stands behind this one.
            at = max(at, start)
            continue
        at, base64 = match.end(), match[0]
        # After a word, a path or a line break base64 may begin later.
        starts = [0]
        if len(base64) <= _SHORT:
            for joint in _JOINTS.finditer(base64.partition("\n")[0]):
                is_new = all(joint.end() % 4 != begin % 4 for begin in starts)
                if is_new and len(base64) - joint.end() >= _SHORTEST:
                    starts.append(joint.end())
            starts += [line.end() for line in islice(re.finditer("\n", base64), _FIRST_LINES)]
        readings = ((start + n, *reading) for n in starts for reading in _readings(base64[n:]))
        for begin, plain, encode in readings:
            # Of an image the letters alone first, because it has few.
            if isinstance(plain, bytes) and not clean(letters_in(plain)):
                continue
            cleaned = clean(plain if isinstance(plain, str) else plain.decode("latin-1"))
            if cleaned:
                yield Edit(begin, at, encode(cleaned[0]), cleaned[1])
                break


def percent_edits(text: str, clean: Clean) -> Iterator[Edit]:
    """Yield the replacements in percent-encoding, as in addresses and forms."""
    at, match = 0, _PERCENT.search(text)
    while match is not None:
        before = _BEFORE.match(text, max(at, match.start() - _FARTHEST), match.start())
        start = before.end() if before else max(at, match.start() - _FARTHEST)
        behind = _UP_TO.match(text, match.end())
        at = behind.end() if behind else match.end()
        data = text[start:at].replace("+", " ").encode("utf-8", "surrogatepass")
        if cleaned := clean(unquote_to_bytes(data).decode("latin-1")):
            encoded = quote_plus(cleaned[0].encode("latin-1"), safe="/:=@[]")
            yield Edit(start, at, encoded, cleaned[1])
        match = _PERCENT.search(text, at)


def letters_in(data: bytes) -> str:
    """Return the runs of eight or more ASCII letters in bytes, one per line.

    An image has few, so usually these are all that has to be searched.
    """
    spans = runs(data.translate(_LETTERS), _FEWEST_LETTERS)
    return b"\n".join([data[start:end] for start, end in spans]).decode("ascii")


def runs(shades: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of at least ``least`` ``x`` between blanks.

    Made with ``shade_table``, this finds runs of letters a hundred times as fast as a pattern.
    """
    row = b"x" * least
    start = shades.find(row)
    while start >= 0:
        end = shades.find(b" ", start)
        end = end if end >= 0 else len(shades)
        yield start, end
        start = shades.find(row, end)


def shade_table(is_kept: Callable[[str], bool]) -> bytes:
    """Return a translation table: ``x`` for the bytes to keep, blanks for the others."""
    return bytes(ord("x" if is_kept(chr(code)) else " ") for code in range(256))


_LETTERS: Final = shade_table(lambda sign: " " <= sign <= "~" or sign in "\t\n\r\x1b")
_FEWEST_LETTERS: Final = 8
_FEWEST_WIDE: Final = 16


def _readings(base64: str) -> Iterator[tuple[str | bytes, Callable[[str], str]]]:
    """Yield readings of base64, each with a function that encodes another text like it."""
    digits = "".join(base64.split()).rstrip("=")
    letters = b"-_" if "-" in digits or "_" in digits else b"+/"
    # A single digit more than whole bytes need carries nothing; padding fits both alphabets.
    whole = digits[: len(digits) - (len(digits) % 4 == 1)].translate(_ONE_ALPHABET)
    data = b64decode(whole + "=" * (-len(whole) % 4))

    def encoder(encode: Callable[[str], bytes]) -> Callable[[str], str]:
        return lambda clean: b64encode(encode(clean), letters).decode()

    try:
        yield data.decode(), encoder(str.encode)
    except UnicodeDecodeError:
        yield data, encoder(lambda clean: clean.encode("latin-1", "replace"))
    # UTF-16, in which every second byte is zero.
    zeros, beside = bytes(_FEWEST_WIDE), data[1::2]
    may_be_wide = len(data) % 2 == 0 and zeros in beside
    letters_at = runs(data[::2].translate(_LETTERS), _FEWEST_WIDE) if may_be_wide else ()
    if any(zeros in beside[start:end] for start, end in letters_at):
        yield data.decode("utf-16-le", "replace"), encoder(lambda clean: clean.encode("utf-16-le"))
    if data[:2] == b"\x1f\x8b" or (data[:1] == b"x" and int.from_bytes(data[:2]) % 31 == 0):
        bits = zlib.MAX_WBITS | (16 if data[:1] == b"\x1f" else 0)
        with suppress(zlib.error):
            plain = zlib.decompressobj(bits).decompress(data, _LARGEST).decode("latin-1")
            yield plain, encoder(lambda clean: zlib.compress(clean.encode("latin-1"), wbits=bits))
