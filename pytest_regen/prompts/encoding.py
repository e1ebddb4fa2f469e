"""How much of a text a prompt holds, and what a text costs."""

from typing import Final

__all__ = ["clip", "estimate_tokens"]

_BYTES_PER_TOKEN: Final = 3.5
"""Prose has about four bytes per token; JSON and code have fewer. The estimate errs high."""


def clip(text: str, limit: int) -> tuple[str, str]:
    """Return the first ``limit`` characters of ``text`` and a note, empty if all of it is there."""
    if len(text) <= limit:
        return text, ""
    return text[:limit], f"first {limit} of {len(text)} characters"


def estimate_tokens(text: str) -> int:
    """Return about how many tokens ``text`` takes; the same on every machine, without a model."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return int((size + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN) if size else 0
