"""Where a cassette is, and where its recordings stand until they belong to it."""

from pathlib import Path

__all__ = ["PARTIAL", "partial_path", "shown_path"]

PARTIAL = ".partial"
"""How the name of a file ends that a run records into; killed, it may leave half a recording."""


def partial_path(path: Path, number: int = 1) -> Path:
    """Return where recordings stand until they are promoted; each of several runs has its own."""
    return path.with_name(
        f"{path.name}.{number}{PARTIAL}" if number > 1 else f"{path.name}{PARTIAL}"
    )


def shown_path(path: Path) -> str:
    """Return a path from the working directory where it lies below it, else the whole."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        # Somewhere else, or the working directory was removed.
        return str(path)
