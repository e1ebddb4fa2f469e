"""Values as Python writes them: literals in the form that formatters leave alone."""

import textwrap
from typing import Final

from pytest_regen.languages.names import first_sentence

WIDTH: Final = 88
"""Of a line, where formatters break it by default."""


def literal(value: str | float) -> str:
    """Return a literal of ``value``, a string in the quotes that need fewer escapes."""
    if not isinstance(value, str):
        return repr(value)
    # Behind a double quote ``repr`` takes single ones, so that it escapes those and no others.
    inner = repr(f'"{value}')[2:-1]
    if value.count('"') > value.count("'"):
        return f"'{inner}'"
    return '"{}"'.format(inner.replace("\\'", "'").replace('"', '\\"'))


def raw(pattern: str) -> str:
    """Return a regular expression as a raw string, where one can hold it."""
    mark = "'" if '"' in pattern else '"'
    is_raw = "\\" in pattern and not pattern.endswith("\\") and mark not in pattern
    return f"r{mark}{pattern}{mark}" if is_raw else literal(pattern)


def sentence(text: str | None) -> str:
    """Return a description as code shows it: on one line, of a long one the first sentence."""
    return first_sentence(" ".join((text or "").split()))


def described(text: str, indent: str) -> str:
    """Return the argument ``description``, of a long text as a string of several parts."""
    whole = f"description={literal(text)}"
    if len(f"{indent}{whole},") <= WIDTH:
        return whole
    inner = f"{indent}    "
    attempts = []
    # A backslash or a quotation mark takes two places, so that fewer characters may fit.
    for width in range(WIDTH - len(inner) - len('" "'), WIDTH // 2, -8):
        # Each part but the last ends with the blank at which the text is broken.
        *parts, last = _wrapped(text, width)
        attempts.append([inner + literal(part) for part in (*(f"{part} " for part in parts), last)])
    lines = min(attempts, key=lambda lines: max(map(len, lines)))
    return "\n".join(["description=(", *lines, f"{indent})"]) if len(lines) > 1 else whole


def docstring(text: str, indent: str) -> list[str]:
    """Return the lines of a docstring; its quotation marks are single, so that none is escaped."""
    # A backslash is doubled, because none in a description is meant as an escape.
    plain = comment_text(text).replace("\\", "\\\\").replace('"', "'")
    mark = '"""'
    if len(f"{indent}{mark}{plain}{mark}") <= WIDTH:
        return [f"{indent}{mark}{plain}{mark}"]
    lines = _wrapped(f"{mark}{plain}", WIDTH - len(indent))
    return [f"{indent}{line}" for line in (*lines, mark)]


def comment(text: str, indent: str) -> list[str]:
    """Return the lines of a comment that describes what comes after it."""
    head = f"{indent}#: "
    return [f"{head}{line}" for line in _wrapped(comment_text(text), WIDTH - len(head))]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def comment_text(text: str) -> str:
    """Return text without characters that are not seen."""
    visible = (char if char.isprintable() else " " for char in text)
    return " ".join("".join(visible).split())
