"""What a client may send: a well-formed head, a body as long as it says, no longer than allowed."""

import re
from collections.abc import Sequence
from io import BufferedIOBase

__all__ = ["Refused", "read_body"]

_NUMBER = re.compile(r"[0-9]+")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}")
_LINE = 8_192
_TRAILERS = 100


class Refused(Exception):  # noqa: N818 - what happens to the request, not to the program
    """A request that is no HTTP, or not of the size it claims; the connection ends after it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def read_body(
    stream: BufferedIOBase, lengths: Sequence[str], encodings: Sequence[str], *, limit: int
) -> bytes:
    """Return the body of a request.

    Args:
        stream: stands behind the head.
        lengths: every ``content-length``.
        encodings: every ``transfer-encoding``.
        limit: bytes; a longer body is not read.

    Raises:
        Refused: the headers contradict each other, or the body is not what they promise.
    """
    if encodings:
        if lengths:
            raise Refused(400, "content-length and transfer-encoding exclude each other")
        if [value.strip().lower() for value in encodings] != ["chunked"]:
            raise Refused(400, "transfer-encoding: the only one known is chunked")
        return _chunked(stream, limit)
    length = _length(lengths)
    # Numbers of thousands of digits are more than Python would read.
    if len(length) > len("999999999999") or int(length) > limit:
        raise Refused(413, "Request exceeds the maximum size")
    return _exactly(stream, int(length))


def _length(lengths: Sequence[str]) -> str:
    """Return the digits of the one length that is given, without leading zeros."""
    found = {value.strip() for value in lengths} or {"0"}
    value = found.pop()
    if found or not _NUMBER.fullmatch(value):
        raise Refused(400, "content-length: Input should be one whole number")
    return value.lstrip("0") or "0"


def _exactly(stream: BufferedIOBase, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise Refused(400, f"the body ended after {len(data)} of {size} bytes")
    return data


def _chunked(stream: BufferedIOBase, limit: int) -> bytes:
    pieces: list[bytes] = []
    left = limit
    while size := _chunk_size(stream):
        left -= size
        if left < 0:
            raise Refused(413, "Request exceeds the maximum size")
        pieces.append(_exactly(stream, size))
        if _line(stream):
            raise Refused(400, "a chunk of the body is longer than it says")
    for _ in range(_TRAILERS):
        if not _line(stream):
            return b"".join(pieces)
    raise Refused(400, "too many trailers")


def _chunk_size(stream: BufferedIOBase) -> int:
    text = _line(stream).partition(b";")[0].strip()
    if not _SIZE.fullmatch(text):
        raise Refused(400, "the size of a chunk should be a hexadecimal number")
    return int(text, 16)


def _line(stream: BufferedIOBase) -> bytes:
    line = stream.readline(_LINE)
    if not line.endswith(b"\n"):
        raise Refused(400, "the body ended inside a chunk")
    return line.rstrip(b"\r\n")
