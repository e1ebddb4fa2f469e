"""Text that a caller sends: when it counts as blank, and how it is shown as data.

Both go by fixed sets of characters. Categories change with the Unicode version of the interpreter,
and what Python and JavaScript strip differs; a prompt must be the same on every machine.
"""

import re
from json.encoder import encode_basestring
from typing import Final

__all__ = ["BLANK_CHARACTERS", "as_data", "is_blank", "trimmed"]

BLANK_CHARACTERS: Final = frozenset(
    {
        *map(chr, range(0x21)),  # controls and the space
        *map(chr, range(0x7F, 0xA1)),  # delete, C1 controls, no-break space
        *"\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f",
        *map(chr, range(0x2000, 0x2010)),  # spaces, zero-width characters, direction marks
        *map(chr, range(0x2028, 0x2030)),  # line and paragraph separators, embeddings
        *map(chr, range(0x205F, 0x2070)),  # mathematical space, joiners, isolates
        *"\u2800\u3000\u3164\ufeff\uffa0",
        *map(chr, range(0xFE00, 0xFE10)),  # variation selectors
        *map(chr, range(0xFFF9, 0xFFFC)),  # annotations
        *map(chr, range(0x13430, 0x13440)),  # controls that join hieroglyphs
        *map(chr, range(0x1BCA0, 0x1BCA4)),  # controls of shorthand
        *map(chr, (0x1D159, *range(0x1D173, 0x1D17B))),  # a note without head, beams of music
        *map(chr, range(0xE0000, 0xE0200)),  # tags, more variation selectors
    }
)
"""What shows nothing: a text of these alone is blank."""

_BLANK: Final = "".join(sorted(BLANK_CHARACTERS))

# What may not stand in a prompt as it is: whatever ends a line, shows nothing, turns the direction
# of text or is no character (also private ones and halves); the three from which tags, role markers
# and fences are made; and what a normal form of Unicode (NFC to NFKD) turns into one of these, into
# a quote or into a backslash: wide and small forms, Greek varia, crossed-out brackets.
_ESCAPED: Final = re.compile(
    "[<>`\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\uffff\U00013430-\U00013455\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U0010ffff"
    "\u1fef\u226e\u226f\ufe64\ufe65\ufe68\uff02\uff1c\uff1e\uff3c\uff40]"
)

_BASIC_PLANE = 0x10000


def is_blank(text: str) -> bool:
    """Return whether ``text`` holds nothing but ``BLANK_CHARACTERS``."""
    return not text.strip(_BLANK)


def trimmed(text: str) -> str:
    """Return ``text`` without ``BLANK_CHARACTERS`` at its ends."""
    return text.strip(_BLANK)


def as_data(text: str) -> str:
    """Return ``text`` as a JSON string on one line that cannot pose as anything else.

    Any JSON reader gives ``text`` back. Whatever it holds, the result has no line end, no invisible
    character, no ``<``, ``>`` or back-tick, and ends only where its quotes do.
    """
    return _ESCAPED.sub(_escape, encode_basestring(text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _BASIC_PLANE:
        return f"\\u{code:04x}"
    code -= _BASIC_PLANE
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
