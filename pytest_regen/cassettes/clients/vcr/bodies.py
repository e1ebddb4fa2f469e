"""What clients and vcrpy hand over as a body or a header, as bytes and text."""

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_regen.cassettes.strict_json import json_bytes
from pytest_regen.errors import CassetteError

__all__ = ["body_bytes", "comparable_bytes"]


def body_bytes(body: Any) -> bytes:  # noqa: ANN401 - as the patched client gave it
    """Return the body of a request, or of an answer, as one piece.

    Of aiohttp vcrpy hands on what stands behind ``json=`` or ``data=``, and not which of the two:
    a mapping or a list of either is compared and kept as JSON.

    Raises:
        CassetteError: it is of a kind that cannot be read before it is sent.
    """
    if hasattr(body, "read"):
        body = body.read()
    if body is None or isinstance(body, str):
        return (body or "").encode()
    if _is_bytes(body):
        return bytes(body)
    is_json = isinstance(body, Mapping | list | tuple | bool | int | float)
    if is_json and not _is_pieces(body):
        return json_bytes(body, _plain)
    if isinstance(body, Iterable):
        return b"".join(body_bytes(piece) for piece in body)
    raise _unread(body)


def comparable_bytes(body: Any) -> bytes:  # noqa: ANN401 - as above
    """Return a body as ``body_bytes`` does; one that cannot be read is empty."""
    try:
        return body_bytes(body)
    except CassetteError:
        return b""


def _is_bytes(value: object) -> bool:
    return isinstance(value, bytes | bytearray | memoryview)


def _is_pieces(body: object) -> bool:
    """Whether a list is a body in pieces: JSON holds no bytes."""
    return isinstance(body, list | tuple) and bool(body) and all(map(_is_bytes, body))


def _plain(value: object) -> object:
    """Return a part of a body that JSON has no words for: bytes of a file, or pairs of a form."""
    if isinstance(value, bytes | bytearray):
        return value.decode("latin-1")
    if isinstance(value, Mapping):
        return [list(pair) for pair in value.items()]
    raise _unread(value)


def _unread(body: object) -> CassetteError:
    kind = f"{type(body).__module__}.{type(body).__qualname__}"
    return CassetteError(
        f"a request cannot be compared or kept: its body is a {kind}",
        why="that cannot be read before it is sent",
        hint="send bytes, text, JSON or a dict, or make this request outside the cassette",
    )
