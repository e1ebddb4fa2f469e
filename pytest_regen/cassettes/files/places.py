"""Where a cassette is, and where its recordings stand until they belong to it."""

import sys
from contextlib import suppress
from pathlib import Path

__all__ = [
    "PARTIAL",
    "is_packed",
    "name_parts",
    "note_folder",
    "partial_path",
    "shown_path",
]

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


_noted: list[Path] = []


def note_folder() -> None:
    """Remember the working directory, which event loops must not ask for."""
    with suppress(OSError):
        _noted[:] = [Path.cwd()]


def shown_path(path: Path) -> str:
    """Return a path from the working directory where it lies below it, else the whole."""
    # Not imported here: where it is not loaded no loop runs.
    asyncio = sys.modules.get("asyncio")
    is_in_loop = asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001 - documented for such as us
    try:
        return str(path.relative_to(_noted[0] if is_in_loop and _noted else Path.cwd()))
    except (ValueError, OSError):
        # Somewhere else, or the working directory was removed.
        return str(path)
