"""Forms with files (``multipart/form-data``), whose parts a client separates by a random boundary.

Compared as they are sent, no two would be equal, and nothing recorded would ever be found.
"""

import re
from collections.abc import Mapping

__all__ = ["with_stable_boundary", "with_stable_boundary_header"]

_STABLE = "boundary"
"""Stands in a cassette for a boundary that was drawn at random."""

_SHORTEST = 16
"""Characters: what clients draw is longer; a short boundary was chosen, and stays."""

_RANDOM = rf"(?=[^\s\";,]*\d)[^\s\";,]{{{_SHORTEST},70}}"
_FIRST_LINE = re.compile(rb"--(" + _RANDOM.encode() + rb")\r\nContent-", re.IGNORECASE)
_PARAMETER = re.compile(rf'(\bboundary=)"?{_RANDOM}"?', re.IGNORECASE)


def with_stable_boundary(body: bytes) -> bytes:
    """Return a body with its random boundary replaced; one that is no such form stays as it is.

    Form: https://www.rfc-editor.org/rfc/rfc2046#section-5.1.1.
    """
    found = _FIRST_LINE.match(body)
    if found is None or not body.rstrip().endswith(b"--" + found[1] + b"--"):
        return body
    return body.replace(b"--" + found[1], b"--" + _STABLE.encode())


def with_stable_boundary_header(
    headers: Mapping[str, tuple[str, ...]],
) -> dict[str, tuple[str, ...]]:
    """Return request headers (names in lower case) that say the boundary the body now has."""
    return {
        name: tuple(_PARAMETER.sub(rf"\1{_STABLE}", value) for value in values)
        if name == "content-type"
        else values
        for name, values in headers.items()
    }
