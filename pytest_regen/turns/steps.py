"""A request with several calls as steps: written once, driven by threads or by an event loop.

Steps are a generator that yields requests, is sent replies and returns a result. What a provider
raises is thrown into it, so that it can account for the call.
"""

import re
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar, cast

from pytest_regen.errors import RefusedError, ReplyFormatError
from pytest_regen.turns.values import CacheTtl, Message, Provider, Reply, TurnRequest, Usage

__all__ = [
    "CONTINUATIONS",
    "CONTINUE",
    "Parsed",
    "Progress",
    "Steps",
    "adrive",
    "drive",
    "object_steps",
]

R = TypeVar("R")
T = TypeVar("T")

Steps = Generator[TurnRequest, Reply, R]
Progress = Callable[[str], None]

CONTINUATIONS = 3
"""Calls spent on the rest of a reply that a limit cut."""

CONTINUE = (
    "Your reply was cut off by a length limit. Continue exactly where it stopped, in the middle of "
    "a word if need be. Repeat nothing and add no introduction."
)
_MEND = "Reply with the whole corrected JSON value, and with nothing else."
_NOTHING = "(no text)"
"""Stands for an empty reply that is shown to the model; the API refuses empty messages."""

_OPENING_FENCE = re.compile(r"\A\s*(?:```+|~~~+)[^\n]*\n")
_LEAST_OVERLAP = 8


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """A reply that fitted."""

    value: T
    text: str
    repairs: int
    usage: Usage = field(default_factory=Usage)


def drive(steps: Steps[R], provider: Provider) -> R:
    """Make the calls of ``steps`` one after the other and return their result."""
    try:
        request = next(steps)
        while True:
            try:
                reply = provider.send(request)
            except Exception as error:  # noqa: BLE001 - the steps decide
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as end:
        return cast("R", end.value)
    finally:
        steps.close()


async def adrive(steps: Steps[R], provider: Provider) -> R:
    """Make the calls of ``steps`` without blocking the event loop.

    A provider without ``asend`` is called in a thread.
    """
    import asyncio  # noqa: PLC0415 - 40 ms that a turn outside an event loop need not spend

    asend: Callable[[TurnRequest], Awaitable[Reply]] | None = getattr(provider, "asend", None)
    try:
        request = next(steps)
        while True:
            try:
                if asend is not None:
                    reply = await asend(request)
                else:
                    reply = await asyncio.to_thread(provider.send, request)
            except Exception as error:  # noqa: BLE001 - the steps decide
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as end:
        return cast("R", end.value)
    finally:
        steps.close()


def object_steps(
    request: TurnRequest,
    parse: Callable[[str], T],
    *,
    max_repairs: int = 2,
    progress: Progress | None = None,
) -> Steps[Parsed[T]]:
    """Ask until ``parse`` takes the reply.

    The wrong reply and what is wrong with it are appended to the request, so that each call reads
    the one before it from the cache.

    Args:
        request: the first request; its last message carries the cache breakpoint, if any.
        parse: returns the value of a reply's text, or raises ``ReplyFormatError``.
        max_repairs: times a wrong reply is sent back.
        progress: called with one line per repair and continuation.

    Raises:
        ReplyFormatError: the last reply did not fit, or one was cut beyond continuation.
        RefusedError: the model declined.
    """
    tell = progress or (lambda _: None)
    usage = Usage()
    for repairs in range(max_repairs + 1):
        if repairs:
            tell(f"Repairing the reply ({repairs}/{max_repairs})...")
        whole = yield from _whole_reply(request, tell)
        usage += whole.usage
        try:
            value, text = _first_that_fits(whole.texts, parse)
        except ReplyFormatError as error:
            error.is_truncated = whole.is_truncated
            if whole.is_truncated or repairs == max_repairs:
                raise
            ask = f"{error.problem}\n\n{error.asks or _MEND}"
            request = _extended(whole.request, whole.last, ask)
        else:
            return Parsed(value, text, repairs, usage)
    raise AssertionError("unreachable: the last round returns or raises")  # pragma: no cover


@dataclass(frozen=True, slots=True)
class _Whole:
    texts: tuple[str, ...]
    """The pieces joined as they came; then other ways to read them."""
    is_truncated: bool
    usage: Usage
    request: TurnRequest
    """The last request made for it."""
    last: str
    """What was said to that."""


def _whole_reply(request: TurnRequest, tell: Progress) -> Steps[_Whole]:
    """Ask, and have a reply that a limit cut continued.

    The conversation only grows, so that each call reads the one before it from the cache.
    """
    reply = yield request
    usage = reply.usage
    pieces = [_said(reply)]
    for number in range(1, CONTINUATIONS + 1):
        # A full context window has no room for a continuation either.
        if reply.stop_reason != "max_tokens" or not "".join(pieces).strip():
            break
        tell(f"The reply was cut; asking for its rest ({number}/{CONTINUATIONS})...")
        request = _extended(request, reply.text, CONTINUE)
        reply = yield request
        usage += reply.usage
        pieces.append(_OPENING_FENCE.sub("", _said(reply)))
    return _Whole(_readings(pieces), reply.is_truncated, usage, request, reply.text)


def _said(reply: Reply) -> str:
    if reply.is_refusal:
        raise RefusedError(
            f"the model {reply.model} declined to answer".replace("  ", " "),
            why="the API ended the reply with stop_reason 'refusal'",
            hint="read the prompt that was sent, or try another model",
        )
    return reply.text


def _readings(pieces: list[str]) -> tuple[str, ...]:
    """Return the pieces joined as they came, without what was said twice, and the last alone.

    Models asked to go on sometimes repeat the last words, or begin again.
    """
    texts = ["".join(pieces)]
    if len(pieces) > 1:
        text = pieces[0]
        for piece in pieces[1:]:
            text += piece[_overlap(text, piece) :]
        texts += [text, pieces[-1]]
    return tuple(dict.fromkeys(texts))


def _overlap(text: str, more: str) -> int:
    """Return how many characters at the start of ``more`` repeat the end of ``text``."""
    longest = min(len(text), len(more), 400)
    sizes = range(longest, _LEAST_OVERLAP - 1, -1)
    return next((size for size in sizes if text.endswith(more[:size])), 0)


def _first_that_fits(texts: tuple[str, ...], parse: Callable[[str], T]) -> tuple[T, str]:
    first: ReplyFormatError | None = None
    for text in texts:
        try:
            return parse(text), text
        except ReplyFormatError as error:
            first = first or error
    assert first is not None  # noqa: S101 - there is at least one text
    raise first


def _extended(request: TurnRequest, said: str, ask: str) -> TurnRequest:
    """Return ``request`` with a reply and a further message; the breakpoint moves to the end."""
    cache: CacheTtl | None = request.messages[-1].cache
    before = [replace(message, cache=None) for message in request.messages]
    said = said.rstrip() or _NOTHING
    messages = (*before, Message("assistant", said), Message("user", ask, cache))
    return replace(request, messages=messages)
