"""Canonical JSON and the hashes built on it. A leaf: imports nothing from the package."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """Return ``value`` as compact JSON with sorted keys, not ASCII-escaped.

    RFC 8785 is not used: it refuses integers above 2^53, which real documents hold.

    Raises:
        ValueError: ``value`` holds NaN or an infinity, which JSON has no words for.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def canonical_hash(value: Any) -> str:
    """Return ``sha256:`` and the hex digest of ``value`` as canonical JSON in UTF-8."""
    return text_hash(canonical_json(value))


def file_hash(data: bytes) -> str:
    """Return ``sha256:`` and the hex digest of a file's bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def text_hash(text: str) -> str:
    """Return ``sha256:`` and the hex digest of ``text`` in UTF-8.

    Lone surrogates, which a JSON document may smuggle in, are hashed as they are.
    """
    return file_hash(text.encode("utf-8", "surrogatepass"))


def source_hash(text: str) -> str:
    r"""Return the hash of source text over LF line ends, so that ``\r\n`` is no edit."""
    return text_hash(text.replace("\r\n", "\n").replace("\r", "\n"))
