"""Values as Python writes them: literals in the form that formatters leave alone."""

import re
import unicodedata
from typing import Final

_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that are not seen, or that would end the line."""
_LONG: Final = 200
"""Of a description with more characters the first sentence is written."""
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)")


def literal(value: str | float) -> str:
    """Return a literal of ``value``, a string in the quotes that need fewer escapes."""
    if not isinstance(value, str):
        return repr(value)
    mark = "'" if value.count('"') > value.count("'") else '"'
    return f"{mark}{''.join(_escape(char, mark) for char in value)}{mark}"


def _escape(char: str, mark: str) -> str:
    if char == mark:
        return f"\\{char}"
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char != " " and (unicodedata.category(char) in _INVISIBLE or char.isspace()):
        code = ord(char)
        if code <= 0xFF:
            return f"\\x{code:02x}"
        return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
    return char


def sentence(text: str | None) -> str:
    """Return a description as code shows it: on one line, of a long one the first sentence."""
    plain = " ".join((text or "").split())
    if len(plain) <= _LONG:
        return plain
    end = _SENTENCE_END.search(plain)
    return plain[: end.end()] if end else plain


def docstring(text: str) -> str:
    """Return a docstring of one line; its quotation marks are single, so that none is escaped."""
    plain = comment_text(text).replace("\\", "\\\\").replace('"', "'")
    return f'"""{plain}"""'


def comment_text(text: str) -> str:
    """Return text without characters that are not seen."""
    shown = (" " if unicodedata.category(char) in _INVISIBLE else char for char in text)
    return " ".join("".join(shown).split())
