"""Where a cassette is, and where its recordings stand until they belong to it."""

from pathlib import Path

__all__ = ["PARTIAL", "is_packed", "name_parts", "partial_path", "shown_path"]

PARTIAL = ".partial"
"""How the name of a file ends that a run records into; killed, it may leave half a recording."""


_PACKED = ".gz"


def is_packed(path: Path) -> bool:
    """Whether a cassette is compressed as a whole, going by its name: ``x.yaml.gz``."""
    return path.suffix.lower() == _PACKED


def name_parts(path: Path) -> tuple[str, str, str]:
    """Return the parts of a file's name: ``x``, ``.yaml``, ``.gz``.

    The suffixes are in lower case, and empty where there is none.
    """
    packed = _PACKED if is_packed(path) else ""
    inner = Path(path.stem) if packed else path
    return inner.stem, inner.suffix.lower(), packed


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
