"""Compressed answers: read by what decodes them, cut ones as far as they came, bombs refused."""

import gzip
import importlib
import json
import zlib
from collections.abc import Callable

import pytest

from pytest_regen.cassettes.files import bodies
from pytest_regen.cassettes.files.bodies import UndecodableBodyError, decode_body

TEXT = json.dumps({"said": "word " * 5_000}).encode()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def brotli(data: bytes) -> bytes:
    packed: bytes = pytest.importorskip("brotli").compress(data)
    return packed


def zstd(data: bytes) -> bytes:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            packed: bytes = importlib.import_module(name).compress(data)
        except ImportError:
            continue
        return packed
    made: bytes = (
        pytest.importorskip("zstandard").ZstdCompressor(write_content_size=False).compress(data)
    )
    return made


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "gzip of two members": (
        "gzip",
        lambda data: gzip.compress(data[:99]) + gzip.compress(data[99:]),
    ),
    "br": ("br", brotli),
    "zstd": ("zstd", zstd),
    "zstd in two frames": ("zstd", lambda data: zstd(data[:99]) + zstd(data[99:])),
}
EACH = pytest.mark.parametrize(("name", "pack"), PACKED.values(), ids=PACKED)


def decoded(name: str, body: bytes, *, is_whole: bool = True) -> bytes:
    headers = {"content-encoding": (name,), "x-kept": ("1",)}
    plain, left = decode_body(body, headers, is_whole=is_whole)
    assert left == {"x-kept": ("1",)}
    return plain


@EACH
def test_a_body_is_read_as_far_as_it_came(name: str, pack: Callable[[bytes], bytes]) -> None:
    """Of a cut one there is the beginning of what was sent; asked for the whole, it is broken."""
    packed = pack(TEXT)
    assert decoded(name, packed) == TEXT
    for length in (1, 2, 5, len(packed) // 2, len(packed) - 1):
        assert TEXT.startswith(decoded(name, packed[:length], is_whole=False))
        with pytest.raises(UndecodableBodyError):
            decoded(name, packed[:length])


@EACH
def test_a_body_that_was_decoded_before_stays(name: str, pack: Callable[[bytes], bytes]) -> None:
    pack(b"")  # skips where nothing decodes it

    assert decoded(name, TEXT) == TEXT
    assert decoded(name, b"") == b""


@EACH
def test_a_bomb_does_not_go_off(
    monkeypatch: pytest.MonkeyPatch, name: str, pack: Callable[[bytes], bytes]
) -> None:
    """A small body that stands for more than it may is refused; one that just fits is read."""
    monkeypatch.setattr(bodies, "_LARGEST", 1 << 20)

    assert decoded(name, pack(bytes(1 << 20))) == bytes(1 << 20)
    with pytest.raises(UndecodableBodyError, match="more than 1 MB"):
        decoded(name, pack(bytes((1 << 20) + 1)))


def test_several_encodings_are_undone_in_turn() -> None:
    """Of an object of S3 one tells how it came there, as if that were an encoding."""
    assert decoded("deflate, gzip", gzip.compress(zlib.compress(TEXT))) == TEXT
    assert decoded("identity", TEXT) == TEXT
    assert decoded("gzip,aws-chunked", gzip.compress(TEXT) + bytes(512)) == TEXT


def test_an_unknown_encoding_is_refused() -> None:
    """By its name, where the body cannot be read and so not searched; text is text."""
    with pytest.raises(UndecodableBodyError, match="made-up"):
        decoded("made-up", zlib.compress(TEXT))
    assert decoded("made-up", TEXT) == TEXT
    assert decoded("made-up", b"") == b""
