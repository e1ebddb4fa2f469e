"""Where a failure is shown: at the lines of the project, not within clients and cassettes."""

from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final

import pytest

__all__ = ["own_lines"]

_PACKAGE: Final = Path(__file__).parents[2]


def own_lines(item: pytest.Item, traceback: TracebackType | None) -> TracebackType | None:
    """Return ``traceback`` up to the last line of the project that asked.

    What lies behind it, a client's retries and our lookup, tells nobody why a request differs.

    Args:
        item: the test; its own file counts as the project wherever it lies.
        traceback: from the outermost frame in.

    Returns:
        The lines, or ``None`` where none of them is the project's: what it asked for failed in
        another thread, or it went on as if nothing had happened.
    """
    steps = []
    while traceback is not None:
        steps.append(traceback)
        traceback = traceback.tb_next
    while steps and not _is_own(Path(steps[-1].tb_frame.f_code.co_filename), item):
        steps.pop()
    shown = None
    for step in reversed(steps):
        shown = TracebackType(shown, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return shown


@cache
def _installed() -> tuple[Path, ...]:
    """Return where packages and the standard library lie."""
    import sysconfig  # noqa: PLC0415 - only a failure pays for it

    names = ("purelib", "platlib", "stdlib", "platstdlib")
    return tuple(Path(sysconfig.get_path(name)) for name in names)


def _is_own(file: Path, item: pytest.Item) -> bool:
    if file == item.path:
        return True
    if file.is_relative_to(_PACKAGE) or any(map(file.is_relative_to, _installed())):
        return False
    return file.is_relative_to(item.config.rootpath)
