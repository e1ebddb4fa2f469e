r"""Patterns of a schema as regular expressions of JavaScript, where they mean the same there.

JSON Schema means ECMA 262 anyway, but documents hold what other engines read: ``\A``, ``(?i)``,
``\-`` outside of a class, which JavaScript refuses under the flag ``u``.
"""

import re
import warnings
from typing import Final

_LONGEST: Final = 500
"""Characters of a pattern; a longer one is no check that anybody reads."""
_KEPT: Final = r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[dDwWsSnrtfv^$\\.*+?()\[\]{}|/])"
_TOKEN: Final = re.compile(
    rf"""
      (?P<kept>
          {_KEPT}
        | (?:[\^$]|\\[bB])(?![*+?{{])      # nothing may repeat an assertion
        | \((?:\?[:=!]|(?!\?)) | [).|]
        | (?:[*+?]|\{{\d+(?:,\d*)?\}})\??(?![*+?{{])
      )
    | \[(?P<class>\^?(?:{_KEPT}|\\\W|[^\\\]\n\r\u2028\u2029])+)\]
    | \\(?P<escaped>[^\w\n\r\u2028\u2029])
    | (?P<bare>[/{{}}\]])
    | (?P<text>[^\\\[\](){{}}*+?|^$.\n\r\u2028\u2029])
    """,
    re.VERBOSE,
)
_ALL: Final = re.compile(f"(?:{_TOKEN.pattern})*", re.VERBOSE)
_IN_CLASS: Final = re.compile(rf"(?P<kept>{_KEPT}|\\-)|\\(?P<escaped>\W)|(?P<bare>[/\[])")
_NO_RANGE: Final = re.compile(r"(?<=\\[dDwWsS])-(?=[^\]])|(?<=[^\\\[^])-(?=\\[dDwWsS])")
"""A hyphen beside a set of characters, where no range can have it as an end: it is one itself."""


def regex_literal(pattern: object) -> str | None:
    r"""Return a literal like ``/^a\/b$/u`` for a pattern; ``None`` where JavaScript has no such."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= _LONGEST:
        return None
    pattern = _NO_RANGE.sub(r"\\-", pattern)
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)  # Both engines agree on brackets, ranges, and what is repeated.
    except (re.error, OverflowError, RecursionError):
        return None
    if re.search(r"\(\?[=!]", pattern) and re.search(r"\)[*+?{]", pattern):
        return None  # Here they do not: no lookahead is repeated in JavaScript.
    return f"/{_TOKEN.sub(_spelled, pattern)}/u" if _ALL.fullmatch(pattern) else None


def _spelled(match: re.Match[str]) -> str:
    """Return a token as JavaScript spells it."""
    text = match[match.lastgroup or 0]
    if match.lastgroup == "class":
        return f"[{_IN_CLASS.sub(_spelled, text)}]"
    return f"\\{text}" if match.lastgroup == "bare" else text
