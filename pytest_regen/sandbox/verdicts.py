"""The level of the sandbox that verdicts came from: kept with each, remembered for the project."""

from pathlib import Path
from typing import Any, Final

from pytest_regen.cache import Cache
from pytest_regen.errors import RegenError
from pytest_regen.sandbox.levels import (
    LEVELS,
    Level,
    is_weaker,
    missing,
    note_used_level,
    strongest_level,
    used_level,
)

REMEMBERED: Final = ".regen/sandbox"
"""The file, from the root of the project, that names the strongest level it was recorded at."""


class VerdictCache(Cache):
    """Results that code was run for, each with its level; it counts as that level's.

    One from a weaker level than works here does not count at all.
    """

    def get(self, section: str, key: str) -> Any | None:
        """Return what was put there, or ``None``."""
        entry = super().get(section, key)
        if not isinstance(entry, dict) or entry.keys() != {"level", "value"}:
            return None
        level = next((name for name in LEVELS if name == entry["level"]), None)
        try:
            # The strongest is asked for last, because to try the levels starts processes.
            if level and level != "bwrap" and is_weaker(level, strongest_level()):
                return None
        except RegenError:
            return None  # Whoever runs the code says why it cannot be run.
        if level:
            note_used_level(level)
        return entry["value"]

    def put(self, section: str, key: str, value: Any) -> bool:
        """Keep a JSON value with the level that it came from."""
        return super().put(section, key, {"level": used_level(), "value": value})


def _remembered(root: Path) -> Level | None:
    try:
        words = (root / REMEMBERED).read_text("utf-8").split()
    except (OSError, ValueError):
        return None
    # Both lines where git has joined two branches, with its markers or without.
    return next((level for level in LEVELS if level in words), None)


def level_to_remember(root: Path, *, is_code: bool = False) -> dict[str, bytes | None]:
    """Return the file that remembers the level, where it is to say more: it is never lowered.

    Args:
        root: of the project.
        is_code: what is recorded will be run, though perhaps it was not yet.
    """
    level = used_level() or (strongest_level() if is_code and missing() is None else "process")
    is_more = is_weaker(_remembered(root) or "process", level)
    return {REMEMBERED: f"{level}\n".encode()} if is_more else {}


def fallen_level(root: Path, used: str, least: Level | None) -> str:
    """Return in what way code was kept less apart than before; empty where it was not.

    Args:
        root: of the project.
        used: the level that verdicts came from.
        least: the level that the settings accept.
    """
    needed = least or _remembered(root)
    if needed is None or not is_weaker(used, needed):
        return ""
    place = "sandbox in [tool.pytest-regen]" if least else REMEMBERED
    return (
        f"code was run in the sandbox {used}, and {place} says {needed}; next: install what "
        f'{needed} needs (bubblewrap), or accept less: sandbox = "{used}" in [tool.pytest-regen]'
    )
