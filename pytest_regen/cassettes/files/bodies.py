"""Decoding of compressed bodies, which could not be searched for secrets, and form boundaries.

Clients separate the parts of a form with files (``multipart/form-data``) by a random boundary. It
is replaced by a stable one, or no two requests would be equal and no recording would be found.
"""

import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from pytest_regen.errors import CassetteError

# In bytes, because a few kilobytes can decompress to more than fits into memory.
_LARGEST = 1 << 28

_PIECE = 1 << 12
_DEFLATE = 8
_UNCHANGED = frozenset({"", "identity", "aws-chunked"})
"""Encodings that leave a body as it is; S3 reports the last one, the way of the upload."""

_JSON = frozenset({b"{", b"["})
_BINARY = re.compile("[\x00-\x08\x0e-\x1f\ud800-\udfff]")
_MODULES = {
    "br": ("brotli", "brotlicffi"),
    "zstd": ("compression.zstd", "backports.zstd", "zstandard"),
}
"""Decoders for what the standard library cannot decode. HTTP clients request an encoding only if
one of these is installed, and any of them will do."""


class UndecodableBodyError(CassetteError):
    """The body cannot be decompressed here."""

    def __init__(self, why: str) -> None:
        super().__init__(
            "a recording was not written: one of its bodies cannot be searched for credentials, "
            "because it cannot be read",
            why=why,
            hint="install the decoder, or do without compression",
        )


def decode_body(
    body: bytes, headers: Mapping[str, tuple[str, ...]], *, is_whole: bool = True
) -> tuple[bytes, dict[str, tuple[str, ...]]]:
    """Return ``body`` without its content encoding, and the headers that are then true.

    A body that is decoded already but kept its header, as some recorders leave it, is unchanged.

    Args:
        body: as it came over the wire.
        headers: response headers, names in lower case.
        is_whole: whether the body is complete; if not, what is there is decoded.

    Raises:
        UndecodableBodyError: the encoding is unknown and the body not text, the decoder is not
            installed, or the body is broken or far too large.
    """
    true_headers = {
        n: v for n, v in headers.items() if n not in {"content-encoding", "transfer-encoding"}
    }
    names = ",".join(headers.get("content-encoding", ())).lower().split(",")
    # Backwards, because the header lists encodings in the order in which they were applied.
    for name in reversed([name.strip().removeprefix("x-") for name in names]):
        if name not in _UNCHANGED:
            body = _decode(name, body, is_whole=is_whole)
    return body, true_headers


def unpack(body: bytes) -> bytes:
    """Return ``body`` decompressed if its first bytes say gzip or zstd, else unchanged.

    Packed, the same text differs with the clock and with every version of a library.
    """
    for name in ("gzip", "zstd"):
        if body.startswith(_MARKS[name]):
            with suppress(UndecodableBodyError):
                return _decode(name, body, is_whole=True)
    return body


def unpack_file(data: bytes) -> bytes:
    """Return the content of a file compressed as a whole by gzip; plain bytes unchanged.

    Raises:
        UndecodableBodyError: it is broken, or far too large.
    """
    return _decode("gzip", data, is_whole=True)


def _decode(name: str, body: bytes, *, is_whole: bool) -> bytes:
    make, mark = _DECODERS.get(name), _MARKS.get(name, b"")
    has_mark = mark.startswith(body[: len(mark)])
    if (make is None or (name == "zstd" and not has_mark)) and _is_binary(body):
        raise UndecodableBodyError(f"the body is not text: unknown content encoding {name!r}")
    if make is None or not body or not has_mark or (name == "deflate" and body[:1] in _JSON):
        # Some servers name "utf-8" as an encoding, and some recorders keep the header of a body
        # that is decoded; clients pass on what they do not know.
        return body
    try:
        plain, ended = _join_frames(body, make, mark)
    except UndecodableBodyError:
        raise
    except Exception as error:  # because each module has one of its own
        if not _is_binary(body):
            return body
        raise UndecodableBodyError(f"the compressed body is broken: {error}") from error
    if is_whole and not ended:
        raise UndecodableBodyError("the compressed body is broken: it ends too early")
    return plain


def _join_frames(body: bytes, make: Callable[[bytes], Any], mark: bytes) -> tuple[bytes, bool]:
    """Return the decoded frames of a body, and whether the last one is complete.

    Args:
        body: the frames, possibly followed by other bytes.
        make: returns a decoder for one.
        mark: the bytes that each frame begins with; empty if there is only one.
    """
    decoder, size = make(body), 0
    pieces: list[bytes] = []
    # Piece by piece, because a few kilobytes can decompress to more than fits into memory.
    for start in range(0, len(body), _PIECE):
        left = body[start : start + _PIECE]
        while left:
            if decoder.eof:
                if not mark or not mark.startswith(left[: len(mark)]):
                    return b"".join(pieces), True
                decoder = make(body)
            pieces.append(decoder.decompress(left))
            size += len(pieces[-1])
            if size > _LARGEST:
                raise UndecodableBodyError(
                    f"the compressed body holds more than {_LARGEST >> 20} MB"
                )
            left = decoder.unused_data if decoder.eof else b""
    return b"".join(pieces), bool(decoder.eof)


def _deflate(body: bytes) -> Any:
    # Some servers send deflate without its header of two bytes; this recognizes the header.
    # RFC 1950: the method deflate, and two bytes that are a multiple of 31.
    is_zlib = body[0] & 15 == _DEFLATE and int.from_bytes(body[:2]) % 31 == 0
    has_header = len(body) == 1 or is_zlib
    return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)


class _Brotli:
    """A decoder of brotli with the names that the other decoders have."""

    unused_data = b""

    def __init__(self, _: bytes) -> None:
        self._decoder = _import_decoder("br").Decompressor()
        # One of the two packages of that name calls it by another name.
        self.decompress = getattr(self._decoder, "process", None) or self._decoder.decompress

    @property
    def eof(self) -> bool:
        return bool(self._decoder.is_finished())


def _zstd(_: bytes) -> Any:
    decoder = _import_decoder("zstd").ZstdDecompressor()
    return decoder.decompressobj() if hasattr(decoder, "decompressobj") else decoder


def _import_decoder(name: str) -> Any:
    for module in _MODULES[name]:
        with suppress(ImportError):
            return import_module(module)
    raise UndecodableBodyError(
        f"the body has the content encoding {name!r}, and none of {', '.join(_MODULES[name])} is "
        "installed"
    )


def _is_binary(body: bytes) -> bool:
    return _BINARY.search(body.decode("utf-8", "surrogateescape")) is not None


_DECODERS: Mapping[str, Callable[[bytes], Any]] = {
    "gzip": lambda _: zlib.decompressobj(16 + zlib.MAX_WBITS),
    "deflate": _deflate,
    "br": _Brotli,
    "zstd": _zstd,
}
_MARKS = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
"""The bytes that what is compressed begins with."""


_STABLE = "boundary"
"""Replaces a randomly drawn boundary in a cassette."""

# In characters. A shorter boundary stays, because clients draw longer ones: somebody chose it.
_SHORTEST = 16

_RANDOM = rf"(?=[^\s\";,]*\d)[^\s\";,]{{{_SHORTEST},70}}"
_FIRST_LINE = re.compile(rb"--(" + _RANDOM.encode() + rb")\r\nContent-", re.IGNORECASE)
_PARAMETER = re.compile(rf'(\bboundary=)"?{_RANDOM}"?', re.IGNORECASE)


def with_stable_boundary(body: bytes) -> bytes:
    """Return a body with its random boundary replaced; other bodies unchanged.

    Form: https://www.rfc-editor.org/rfc/rfc2046#section-5.1.1.
    """
    first_line = _FIRST_LINE.match(body)
    if first_line is None or not body.rstrip().endswith(b"--" + first_line[1] + b"--"):
        return body
    return body.replace(b"--" + first_line[1], b"--" + _STABLE.encode())


def with_stable_boundary_header(
    headers: Mapping[str, tuple[str, ...]],
) -> dict[str, tuple[str, ...]]:
    """Return request headers (names in lower case) that name the boundary the body now has."""
    return {
        name: tuple(_PARAMETER.sub(rf"\1{_STABLE}", value) for value in values)
        if name == "content-type"
        else values
        for name, values in headers.items()
    }
