"""Text from a document as data: one line each, in quotes, unable to pose as structure."""

import json
import re
from typing import Any, Final

from pytest_regen.turns.values import estimate_tokens

__all__ = ["clip", "estimate_tokens", "flatten", "quote"]

# Fixed ranges, not categories: those change with the Unicode version of the interpreter, and a
# prompt must be the same on every machine. Everything here is invisible, reorders text, ends a
# line, is half a character or is none.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U0001fffe\U0001ffff\U0002fffe\U0002ffff"
    "\U0003fffe-\U0010ffff]"
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def quote(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return ``value`` as JSON on one line, every character that could mislead escaped.

    Keys keep their order. A value that JSON does not know (a date read from YAML) is quoted as its
    text. The result can be read by any JSON reader.
    """
    return flatten(json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str))


def flatten(text: str) -> str:
    """Return ``text`` on one line, invisible and unsafe characters written as JSON escapes."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x10000:  # noqa: PLR2004 - the end of the basic plane
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def clip(text: str, limit: int) -> tuple[str, str]:
    """Return the first ``limit`` characters of ``text`` and a note, empty if all of it is there."""
    if len(text) <= limit:
        return text, ""
    return text[:limit], f"first {limit} of {len(text)} characters"
