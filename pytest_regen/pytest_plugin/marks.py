"""The arguments of our markers, checked."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pytest

from pytest_regen.modes import POLICIES, RECORD_MODES, Policy, RecordMode
from pytest_regen.pytest_plugin.usage_errors import usage_error

__all__ = [
    "CassetteMark",
    "RegenMark",
    "cassette_arguments",
    "cassette_mark",
    "named_hosts",
    "regen_mark",
]

_WORDS: dict[str, tuple[str, ...]] = {
    "record": RECORD_MODES,
    "drift": POLICIES,
    "unplayed": POLICIES,
}
"""Arguments that are one of some words."""


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
    """The arguments of ``@pytest.mark.cassette(…)``, in their order."""

    name: str | None = None
    record: RecordMode | None = None
    drift: Policy | None = None
    unplayed: Policy | None = None
    ignore: tuple[str, ...] | None = None
    """Paths into request bodies that vary."""
    normalize: Callable[[Any], Any] | None = None
    keep_headers: tuple[str, ...] | None = None
    """Headers of requests that are kept, too, by name or pattern."""
    drop_headers: tuple[str, ...] | None = None
    """Headers of requests and answers that are not kept."""
    passthrough_hosts: tuple[str, ...] | None = None
    """Hosts whose requests are neither recorded nor replayed nor missed."""


def regen_mark(item: pytest.Item) -> RegenMark:
    """Return what the item's ``regen`` marker says; defaults where it has none.

    Raises:
        pytest.UsageError: an argument is unknown or of the wrong kind.
    """
    given = _arguments(item, "regen", ("store", "types", "attempts", "on"))
    attempts = given.get("attempts")
    if attempts is not None and (type(attempts) is not int or attempts < 1):
        raise _wrong(item, f"regen(attempts={attempts!r})", "it is a whole number of at least 1")
    store = given.get("store")
    if store is not None and not isinstance(store, str | os.PathLike):
        raise _wrong(item, f"regen(store={store!r})", "it is the path of a store")
    return RegenMark(
        None if store is None else os.fspath(store),
        _names(item, "regen", "types", given.get("types")) or (),
        attempts,
        None
        if given.get("on") is None
        else frozenset(_names(item, "regen", "on", given["on"]) or ()),
    )


def cassette_mark(item: pytest.Item) -> CassetteMark:
    """Return what the item's ``cassette`` marker says; defaults where it has none.

    Raises:
        pytest.UsageError: an argument is unknown or of the wrong kind.
    """
    given = _arguments(item, "cassette", tuple(field.name for field in fields(CassetteMark)))
    return cassette_arguments(item, given)


def cassette_arguments(item: pytest.Item, given: Mapping[str, object]) -> CassetteMark:
    """Return what a ``cassette`` marker or the fixture ``cassette_config`` says.

    Raises:
        pytest.UsageError: an argument is of the wrong kind.
    """
    said: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    for key, value in said.items():
        if key in {"ignore", "keep_headers", "drop_headers", "passthrough_hosts"}:
            said[key] = _names(item, "cassette", key, value)
        elif key == "normalize":
            if not callable(value):
                raise _wrong(item, f"cassette({key}={value!r})", "it is a function")
        elif not isinstance(value, str):
            raise _wrong(item, f"cassette({key}={value!r})", "it is text")
        elif value not in _WORDS.get(key, (value,)):
            near = _near(value, _WORDS[key])
            words = ", ".join(_WORDS[key])
            raise _wrong(item, f"cassette({key}={value!r})", f"{near}it is one of {words}")
    return CassetteMark(**said)


def named_hosts(item: pytest.Item, mark: str, value: object) -> tuple[str, ...]:
    """Return the hosts that a mark or fixture names as ``passthrough_hosts``.

    Raises:
        pytest.UsageError: it is neither a name nor a list of names.
    """
    return _names(item, mark, "passthrough_hosts", value) or ()


def _arguments(item: pytest.Item, name: str, known: tuple[str, ...]) -> dict[str, object]:
    mark = item.get_closest_marker(name)
    if mark is None:
        return {}
    if len(mark.args) > len(known):
        raise _wrong(item, f"{name}{mark.args!r}", f"it takes {', '.join(known)}, and no more")
    given = {**dict(zip(known, mark.args, strict=False)), **mark.kwargs}
    for key, value in given.items():
        if key not in known:
            takes = f"{_near(key, known)}it takes {', '.join(known)}"
            raise _wrong(item, f"{name}({key}={value!r}): unknown argument", takes)
    return given


def _names(item: pytest.Item, mark: str, key: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence | set | frozenset) and all(isinstance(v, str) for v in value):
        return tuple(str(one) for one in value)
    raise _wrong(item, f"{mark}({key}={value!r})", "it is a name or a list of names")


def _near(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only what is wrong comes here

    near = get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def _wrong(item: pytest.Item, what: str, why: str) -> pytest.UsageError:
    return usage_error(f"{item.nodeid}: {what}", why=why, hint="correct the mark")
