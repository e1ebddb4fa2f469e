"""Fixtures that a mark asks for, set up before those that the test names itself."""

from collections.abc import Sequence

import pytest

__all__ = ["ask_first"]


def ask_first(item: pytest.Item, wanted: Sequence[str]) -> None:
    """Put fixtures where automatic ones would be: first among those of the test itself.

    What another fixture of the test sends while it is set up is theirs, too.
    """
    names: list[str] | None = getattr(item, "fixturenames", None)
    if names is None:
        return
    # One that the test names itself would otherwise come after the automatic ones.
    names[:] = [name for name in names if name not in wanted]
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    wider = [n for n in names if n in known and known[n][-1].scope != "function"]
    at = max((names.index(name) + 1 for name in wider), default=0)
    names[at:at] = wanted
