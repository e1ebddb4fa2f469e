"""Numbers with their nouns, and lists of names, as messages say them."""

from collections.abc import Iterable
from typing import Final

__all__ = ["counted", "listed"]

_MAX_NAMES: Final = 8
_MAX_LENGTH: Final = 60


def counted(number: int, noun: str) -> str:
    """Return ``1 repair``, ``2 repairs``, ``1,200 repairs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Iterable[str], word: str) -> str:
    """Return names as a list in words, ``Cat, Dog and Fish``; of many the first, and a count.

    Args:
        names: at least one; a long one is cut.
        word: what stands before the last, ``and`` or ``or``.
    """
    shown = [f"{name:.{_MAX_LENGTH}}" for name in names]
    if len(shown) > _MAX_NAMES:
        shown = [*shown[: _MAX_NAMES - 1], f"{len(shown) - _MAX_NAMES + 1:,} more"]
    return f" {word} ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
