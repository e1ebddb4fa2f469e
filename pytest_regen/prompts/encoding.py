"""How much of a text a prompt holds, and what a text costs."""

from pytest_regen.turns.values import estimate_tokens

__all__ = ["clip", "estimate_tokens"]


def clip(text: str, limit: int) -> tuple[str, str]:
    """Return the first ``limit`` characters of ``text`` and a note, empty if all of it is there."""
    if len(text) <= limit:
        return text, ""
    return text[:limit], f"first {limit} of {len(text)} characters"
