"""The arguments of our markers, checked."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

__all__ = ["CassetteMark", "RegenMark", "cassette_mark", "regen_mark"]


@dataclass(frozen=True, slots=True)
class RegenMark:
    """``@pytest.mark.regen(store=…, types=…, attempts=…, on=[codes])``."""

    store: str | None = None
    types: tuple[str, ...] = ()
    attempts: int | None = None
    on: frozenset[str] | None = None
    """Codes of issues that are healed; ``None`` for every failing assertion."""


@dataclass(frozen=True, slots=True)
class CassetteMark:
    """``@pytest.mark.cassette(name=…, record=…)``."""

    name: str | None = None
    record: str | None = None


def regen_mark(item: pytest.Item) -> RegenMark:
    """Return what the item's ``regen`` marker says; defaults where it has none.

    Raises:
        pytest.UsageError: an argument is unknown or of the wrong kind.
    """
    given = _arguments(item, "regen", ("store", "types", "attempts", "on"))
    attempts = given.get("attempts")
    if attempts is not None and (not isinstance(attempts, int) or attempts < 1):
        raise _wrong(item, f"attempts={attempts!r} must be a whole number of at least 1")
    store = given.get("store")
    return RegenMark(
        None if store is None else str(store),
        _names(item, "types", given.get("types")) or (),
        attempts,
        None if given.get("on") is None else frozenset(_names(item, "on", given["on"]) or ()),
    )


def cassette_mark(item: pytest.Item) -> CassetteMark:
    """Return what the item's ``cassette`` marker says; defaults where it has none.

    Raises:
        pytest.UsageError: an argument is unknown or of the wrong kind.
    """
    given = _arguments(item, "cassette", ("name", "record"))
    for key, value in given.items():
        if value is not None and not isinstance(value, str):
            raise _wrong(item, f"cassette({key}={value!r}) must be text")
    return CassetteMark(**{key: str(value) for key, value in given.items() if value is not None})


def _arguments(item: pytest.Item, name: str, known: tuple[str, ...]) -> dict[str, object]:
    mark = item.get_closest_marker(name)
    if mark is None:
        return {}
    if len(mark.args) > len(known):
        raise _wrong(item, f"{name}{mark.args!r} has too many arguments")
    given = {**dict(zip(known, mark.args, strict=False)), **mark.kwargs}
    for key in given:
        if key not in known:
            raise _wrong(item, f"{name}({key}=…) is unknown; it takes {', '.join(known)}")
    return given


def _names(item: pytest.Item, key: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence | set | frozenset) and all(isinstance(v, str) for v in value):
        return tuple(str(one) for one in value)
    raise _wrong(item, f"{key}={value!r} must be a name or a list of names")


def _wrong(item: pytest.Item, what: str) -> pytest.UsageError:
    return pytest.UsageError(f"{item.nodeid}: marker {what}")
