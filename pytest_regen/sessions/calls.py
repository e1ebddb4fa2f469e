"""What the loop asks of its parts, as calls: made one after the other, or in an event loop.

The loop is written once, as a generator of calls, and driven as the turns of a session are. An
asynchronous run awaits ``ajudge`` where a part has it, and calls ``judge`` in a thread where it has
not; so with everything that is asked for.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_regen.errors import UsageError
from pytest_regen.turns.driving import in_thread

__all__ = ["Call", "Caller", "Calls"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Call:
    """A method of one part by its plain name, and what it is given."""

    part: object
    method: str
    arguments: tuple[object, ...] = ()


Calls = Generator[Call, Any, R]
"""Yields calls, is sent what they return, has thrown into it what they raise."""


class Caller:
    """Makes the calls."""

    def send(self, call: Call, /) -> object:
        """Return what the method returns.

        Raises:
            UsageError: the part does not have it.
        """
        return _method(call)(*call.arguments)

    async def asend(self, call: Call, /) -> object:
        """Return what the asynchronous twin of the method returns, or the method in a thread.

        Raises:
            UsageError: the part has neither.
        """
        twin = getattr(call.part, f"a{call.method}", None)
        if twin is not None:
            return await twin(*call.arguments)
        return await in_thread(_method(call), *call.arguments)


def _method(call: Call) -> Callable[..., object]:
    method: Callable[..., object] | None = getattr(call.part, call.method, None)
    if method is None:
        name, twin = type(call.part).__name__, f"a{call.method}"
        is_there = hasattr(call.part, twin)
        raise UsageError(
            f"{name} has no {call.method}()",
            why=f"{twin}() is there, which only an event loop can wait for"
            if is_there
            else "the loop asks for it",
            hint="await acompile_verify_repair(…) instead" if is_there else f"add {call.method}()",
        )
    return method
