"""A number with its noun, as messages say it."""

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """Return ``1 repair``, ``2 repairs``, ``1,200 repairs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
