"""Cache breakpoints: where they may stand, how many, and in which order of lifetimes."""

from collections.abc import Mapping
from typing import Any

from pytest_regen.emulator.call import Call
from pytest_regen.emulator.prompt import Place, automatic_place, places, ttl_of
from pytest_regen.emulator.wire import ApiError

__all__ = ["check_breakpoints"]

_MAX_BREAKPOINTS = 4


def check_breakpoints(call: Call) -> None:
    """Check every ``cache_control``, the one at the top included.

    Raises:
        ApiError: 400, naming the block.
    """
    found = list(places(call.body))
    marked = {i: place.ttl for i, place in enumerate(found) if place.block.get("cache_control")}
    for index in marked:
        _check_one(found[index])
    automatic = call.body.get("cache_control")
    if automatic is not None:
        _check_value(automatic, "cache_control")
        _add_automatic(call, found, marked)
    if len(marked) > _MAX_BREAKPOINTS:
        raise ApiError(
            f"A maximum of {_MAX_BREAKPOINTS} blocks with cache_control may be provided. "
            f"Found {len(marked)}."
        )
    _check_order(found, marked)


def _add_automatic(call: Call, found: list[Place], marked: dict[int, str | None]) -> None:
    """Enter the automatic breakpoint beside the explicit ones."""
    index = automatic_place(call.body, found)
    if index is None:
        return
    ttl = ttl_of(call.body["cache_control"])
    if marked.get(index, ttl) != ttl:
        raise ApiError(
            f"cache_control: ttl='{ttl}' conflicts with the ttl='{marked[index]}' of "
            f"{found[index].where}, the last cacheable block"
        )
    marked[index] = ttl


def _check_one(place: Place) -> None:
    kind = place.block.get("type")
    if kind in ("thinking", "redacted_thinking"):
        raise ApiError(f"{place.where}.{kind}.cache_control: Extra inputs are not permitted")
    if not place.can_be_marked:
        raise ApiError(f"{place.where}.text: cache_control cannot be set for empty text blocks")
    _check_value(place.block["cache_control"], f"{place.where}.cache_control")


def _check_value(value: object, where: str) -> None:
    if not isinstance(value, Mapping):
        raise ApiError(f"{where}: Input should be an object")
    fields: Mapping[str, Any] = value
    if fields.get("type") != "ephemeral":
        raise ApiError(f"{where}.type: Input should be 'ephemeral'")
    if fields.get("ttl") not in (None, "5m", "1h"):
        raise ApiError(f"{where}.ttl: Input should be '5m' or '1h'")
    for name in fields:
        if name not in {"type", "ttl"}:
            raise ApiError(f"{where}.{name}: Extra inputs are not permitted")


def _check_order(found: list[Place], marked: Mapping[int, str | None]) -> None:
    """Long lifetimes come first."""
    seen_short = False
    for index in sorted(marked):
        if marked[index] == "1h" and seen_short:
            raise ApiError(
                f"{found[index].where}.cache_control.ttl: a ttl='1h' cache_control block must not "
                "come after a ttl='5m' cache_control block. Note that blocks are processed in the "
                "following order: `tools`, `system`, `messages`."
            )
        seen_short = seen_short or marked[index] == "5m"
