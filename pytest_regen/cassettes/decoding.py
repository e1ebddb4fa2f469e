"""Compressed bodies made readable, because what nobody can read nobody can check for secrets."""

import zlib
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["UndecodableBodyError", "decoded_body"]


class UndecodableBodyError(Exception):
    """The body is compressed in a way that cannot be undone here."""


def decoded_body(
    body: bytes, headers: Mapping[str, tuple[str, ...]], *, is_whole: bool = True
) -> tuple[bytes, dict[str, tuple[str, ...]]]:
    """Return ``body`` without its content encoding, and the headers that are then true.

    A body that was decoded before but kept its header, as some recorders leave it, stays as it is.

    Args:
        body: as it came over the wire.
        headers: response headers, names in lower case.
        is_whole: whether it ended where it should; otherwise what is there is decoded.

    Raises:
        UndecodableBodyError: the encoding is unknown, or its decoder is not installed.
    """
    kept = {n: v for n, v in headers.items() if n not in {"content-encoding", "transfer-encoding"}}
    names = [n.strip().lower() for n in ",".join(headers.get("content-encoding", ())).split(",")]
    for name in reversed([n for n in names if n and n != "identity"]):
        if is_whole:
            body = _decoder(name)(body)
        elif name in {"gzip", "x-gzip"}:
            body = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(body)
        else:
            raise UndecodableBodyError(f"the body was cut, and its encoding is {name!r}")
    return body, kept


def _decoder(name: str) -> Callable[[bytes], bytes]:
    if name in {"gzip", "x-gzip"}:
        return _gzip
    if name == "deflate":
        return _deflate
    if name == "br":
        return _installed("brotli", "decompress", name)
    if name == "zstd":
        return _installed("zstandard", "decompress", name)
    raise UndecodableBodyError(f"the body has the unknown content encoding {name!r}")


def _gzip(body: bytes) -> bytes:
    if not body.startswith(b"\x1f\x8b"):
        return body
    return _inflate(body, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes) -> bytes:
    if body[:1] in {b"{", b"["}:
        return body
    try:
        return _inflate(body, zlib.MAX_WBITS)
    except UndecodableBodyError:
        return _inflate(body, -zlib.MAX_WBITS)


def _inflate(body: bytes, bits: int) -> bytes:
    try:
        return zlib.decompress(body, bits)
    except zlib.error as error:
        raise UndecodableBodyError(f"the compressed body is broken: {error}") from error


def _installed(module: str, function: str, name: str) -> Callable[[bytes], bytes]:
    try:
        decoder: Callable[[bytes], bytes] = getattr(import_module(module), function)
    except ImportError as error:
        raise UndecodableBodyError(
            f"the body has the content encoding {name!r}, and {module!r} is not installed"
        ) from error
    return decoder
