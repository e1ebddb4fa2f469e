"""Decoding of compressed bodies, which could not be searched for secrets, and form boundaries.

Clients separate the parts of a form with files (``multipart/form-data``) by a random boundary. It
is replaced by a stable one, or no two requests would be equal and no recording would be found.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

_LARGEST = 1 << 28
"""In bytes: a few kilobytes can decompress to more than fits into memory."""

_PIECE = 1 << 12
_DEFLATE = 8
_UNCHANGED = frozenset({"", "identity", "aws-chunked"})
"""Encodings that leave a body as it is; S3 reports the last one, the way of the upload."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_MAGIC = b"\x1f\x8b"
_BINARY = re.compile("[\x00-\x08\x0e-\x1f\ud800-\udfff]")
_MODULES = {
    "br": ("brotli", "brotlicffi"),
    "zstd": ("compression.zstd", "backports.zstd", "zstandard"),
}
"""Decoders for what the standard library cannot decode. HTTP clients request an encoding only if
one of these is installed, and any of them will do."""


class UndecodableBodyError(Exception):
    """The body cannot be decompressed here."""


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
    names = [n.strip().lower() for n in ",".join(headers.get("content-encoding", ())).split(",")]
    for name in reversed([n for n in names if n not in _UNCHANGED]):
        body = _decode(name, body, is_whole=is_whole)
    return body, true_headers


def unpack(body: bytes) -> bytes:
    """Return ``body`` decompressed if its first bytes say gzip or zstd, else unchanged.

    Packed, the same text differs with the clock and with every version of a library.
    """
    for decode, mark in ((_gzip, _GZIP_MAGIC), (_zstd, _ZSTD_MAGIC)):
        if body.startswith(mark):
            try:
                plain, ended = decode(body)
            except UndecodableBodyError:
                return body
            return plain if ended else body
    return body


def unpack_file(data: bytes) -> bytes:
    """Return the content of a file compressed as a whole by gzip; plain bytes unchanged.

    Raises:
        UndecodableBodyError: it is broken, or far too large.
    """
    if not data.startswith(_GZIP_MAGIC):
        return data
    plain, ended = _gzip(data)
    if not ended:
        raise UndecodableBodyError("the compressed file is cut: it ends too early")
    return plain


def _decode(name: str, body: bytes, *, is_whole: bool) -> bytes:
    decode = _DECODERS.get(name)
    if not body or (decode is None and not _is_binary(body)):
        # Some servers name "utf-8" as an encoding; clients pass on what they do not know.
        return body
    if decode is None:
        raise UndecodableBodyError(f"the body has the unknown content encoding {name!r}")
    plain, ended = decode(body)
    if is_whole and not ended:
        raise UndecodableBodyError("the compressed body is broken: it ends too early")
    return plain


def _gzip(body: bytes) -> tuple[bytes, bool]:
    if not _GZIP_MAGIC.startswith(body[:2]):
        return body, True
    try:
        return _frames(body, lambda: zlib.decompressobj(16 + zlib.MAX_WBITS), _GZIP_MAGIC)
    except zlib.error as error:
        raise UndecodableBodyError(f"the compressed body is broken: {error}") from error


def _deflate(body: bytes) -> tuple[bytes, bool]:
    if body[:1] in {b"{", b"["}:
        return body, True
    # Some servers send deflate without its header of two bytes; this recognizes the header.
    # RFC 1950: the method deflate, and two bytes that are a multiple of 31.
    is_zlib = body[0] & 15 == _DEFLATE and int.from_bytes(body[:2]) % 31 == 0
    has_header = len(body) == 1 or is_zlib
    decoder = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
    try:
        return _join_bounded([decoder.decompress(body, _LARGEST + 1)]), decoder.eof
    except zlib.error as error:
        return _plain_text(body, error), True


def _brotli(body: bytes) -> tuple[bytes, bool]:
    module = _import_decoder("br")
    decoder = module.Decompressor()
    # One of the two packages of that name calls it by another name.
    step = getattr(decoder, "process", None) or decoder.decompress
    try:
        return _join_bounded(step(piece) for piece in _pieces(body)), decoder.is_finished()
    except module.error as error:
        return _plain_text(body, error), True


def _zstd(body: bytes) -> tuple[bytes, bool]:
    if not _ZSTD_MAGIC.startswith(body[:4]):
        return _plain_text(body, "it does not begin as zstd does"), True
    module = _import_decoder("zstd")

    def make() -> Any:
        decoder = module.ZstdDecompressor()
        return decoder.decompressobj() if hasattr(decoder, "decompressobj") else decoder

    try:
        return _frames(body, make)
    except module.ZstdError as error:
        return _plain_text(body, error), True


def _frames(body: bytes, make: Callable[[], Any], mark: bytes = b"") -> tuple[bytes, bool]:
    """Return the decoded frames of a body, and whether the last one is complete.

    Args:
        body: the frames, possibly followed by other bytes.
        make: returns a decoder for one.
        mark: the bytes that each frame begins with.
    """
    decoder = make()

    def steps() -> Iterator[bytes]:
        nonlocal decoder
        for piece in _pieces(body):
            left = piece
            while left:
                if decoder.eof:
                    if not mark.startswith(left[: len(mark)]):
                        return
                    decoder = make()
                yield decoder.decompress(left)
                left = decoder.unused_data if decoder.eof else b""

    return _join_bounded(steps()), decoder.eof


def _import_decoder(name: str) -> Any:
    for module in _MODULES[name]:
        try:
            return import_module(module)
        except ImportError:
            continue
    raise UndecodableBodyError(
        f"the body has the content encoding {name!r}, and none of {', '.join(_MODULES[name])} is "
        "installed"
    )


def _pieces(body: bytes) -> Iterator[bytes]:
    return (body[start : start + _PIECE] for start in range(0, len(body), _PIECE))


def _join_bounded(pieces: Iterable[bytes]) -> bytes:
    joined, size = [], 0
    for piece in pieces:
        joined.append(piece)
        size += len(piece)
        if size > _LARGEST:
            raise _too_large()
    return b"".join(joined)


def _too_large() -> UndecodableBodyError:
    return UndecodableBodyError(f"the compressed body holds more than {_LARGEST >> 20} MB")


def _plain_text(body: bytes, why: object) -> bytes:
    """Return a body that is text already; one that is neither text nor compressed is broken."""
    if _is_binary(body):
        raise UndecodableBodyError(f"the compressed body is broken: {why}")
    return body


def _is_binary(body: bytes) -> bool:
    return _BINARY.search(body.decode("utf-8", "surrogateescape")) is not None


_DECODERS: Mapping[str, Callable[[bytes], tuple[bytes, bool]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}


_STABLE = "boundary"
"""Replaces a randomly drawn boundary in a cassette."""

_SHORTEST = 16
"""In characters: clients draw longer ones; a shorter boundary was chosen on purpose and stays."""

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
