"""A value asked for in steps: a wrong reply is sent back, one that was cut is continued."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from pytest_regen.errors import RefusedError, ReplyFormatError, UsageError
from pytest_regen.plurals import counted
from pytest_regen.turns.driving import Progress, Steps
from pytest_regen.turns.joining import join
from pytest_regen.turns.values import CacheTtl, Message, Reply, TurnRequest, Usage

__all__ = ["CONTINUATIONS", "CONTINUE", "Parsed", "object_steps"]

T = TypeVar("T")

CONTINUATIONS = 3
"""Calls spent on the rest of a reply that a limit cut."""

CONTINUE = (
    "Your reply was cut off by a length limit. Continue exactly where it stopped, in the middle of "
    "a word if need be. Repeat nothing and add no introduction."
)
_MEND = "Reply with the whole corrected JSON value, and with nothing else."
_STOPPED = {
    "max_tokens": (
        "the reply was cut at max_tokens, its continuations as well",
        "raise max_tokens, or ask for less",
    ),
    "model_context_window_exceeded": (
        "stop_reason 'model_context_window_exceeded': prompt and reply fill the model's window",
        "send less, in the system prompt or in the turns before, or take a model with more room",
    ),
    "tool_use": (
        "stop_reason 'tool_use': the model called a tool instead of answering",
        "offer the model no tools where it is to answer in JSON",
    ),
}
"""Why a reply ended, where more of the same would not help, and what to do."""
_NOTHING = "(no text)"
"""Stands for an empty reply that is shown to the model; the API refuses empty messages."""

_OPENING_FENCE = re.compile(r"\A\s*(?:```+|~~~+)[^\n]*\n")


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """A reply that fitted."""

    value: T
    text: str
    repairs: int
    usage: Usage = field(default_factory=Usage)


def object_steps(
    request: TurnRequest,
    parse: Callable[[str], T],
    *,
    max_repairs: int = 2,
    salvage: Callable[[Sequence[str]], T | None] | None = None,
    progress: Progress | None = None,
) -> Steps[Parsed[T]]:
    """Ask until ``parse`` takes the reply.

    The wrong reply and what is wrong with it are appended to the request, so that each call reads
    the one before it from the cache. A reply that was sent back before, with the same words, is
    not sent back again: it would be answered as before.

    Args:
        request: the first request; its last message carries the cache breakpoint, if any.
        parse: returns the value of a reply's text, or raises ``ReplyFormatError``.
        max_repairs: times a wrong reply is sent back.
        salvage: returns what can be used of a reply that was cut and whose pieces make no whole,
            ``None`` where nothing can; or raises ``ReplyFormatError``. Without it such a reply is
            sent back as any wrong one, or is an error where its last piece was cut as well.
        progress: called with one line per repair and continuation.

    Raises:
        UsageError: ``max_repairs`` is negative.
        ReplyFormatError: the last reply did not fit, or one was cut beyond continuation.
        RefusedError: the model declined.
    """
    if max_repairs < 0:
        raise UsageError(
            f"max_repairs is {max_repairs}",
            why="it counts the times a wrong reply is sent back",
            hint="pass 0 or more",
        )
    tell = progress or (lambda _: None)
    usage = Usage()
    repairs = 0
    sent: set[tuple[str, str]] = set()
    while True:
        whole = yield from _whole_reply(request, tell)
        usage += whole.usage
        try:
            value, text = _understood(whole, parse, salvage)
        except ReplyFormatError as error:
            error.is_truncated = whole.is_truncated
            ask = f"{error.problem}\n\n{error.asks or _MEND}"
            said = "".join(whole.pieces).strip()
            again = (said, ask) in sent
            if whole.is_truncated or again or repairs == max_repairs:
                _explain(error, whole.stop_reason, repairs, again=again)
                raise
            if said:
                sent.add((said, ask))
            request = _extended(whole.request, whole.last, ask)
        else:
            return Parsed(value, text, repairs, usage)
        repairs += 1
        tell(f"Repairing the reply ({repairs}/{max_repairs})...")


def _explain(error: ReplyFormatError, stop: str | None, repairs: int, *, again: bool) -> None:
    """Say why no further reply is asked for, and what can be done about it."""
    why, hint = _STOPPED.get(stop or "", ("", ""))
    if again:
        why = "told what is wrong with it, the model gave the same reply again"
    elif repairs and not why:
        why = f"{counted(repairs, 'repair')} did not help"
    error.why = "\n".join(filter(None, (error.why, why)))
    error.hint = hint or "say in the prompt what is wanted, or try another model" + (
        "" if again else ", or raise max_repairs"
    )


@dataclass(frozen=True, slots=True)
class _Whole:
    pieces: tuple[str, ...]
    is_truncated: bool
    """Whether the last piece was cut as well."""
    stop_reason: str | None
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
    return _Whole(tuple(pieces), reply.is_truncated, reply.stop_reason, usage, request, reply.text)


def _said(reply: Reply) -> str:
    if reply.is_refusal:
        raise RefusedError(
            f"the model {reply.model} declined to answer".replace("  ", " "),
            why="the API ended the reply with stop_reason 'refusal'",
            hint="read the prompt that was sent, or try another model",
        )
    return reply.text


def _understood(
    whole: _Whole,
    parse: Callable[[str], T],
    salvage: Callable[[Sequence[str]], T | None] | None,
) -> tuple[T, str]:
    """Return the value of a reply and the text that it was read from."""
    joined = join(whole.pieces)
    first: ReplyFormatError | None = None
    for text in joined.texts:
        try:
            return parse(text), text
        except ReplyFormatError as error:
            first = first or error
    assert first is not None  # noqa: S101 - there is at least one text
    saved = salvage(whole.pieces) if salvage and not joined.is_whole else None
    if saved is None:
        raise first
    return saved, "".join(whole.pieces)


def _extended(request: TurnRequest, said: str, ask: str) -> TurnRequest:
    """Return ``request`` with a reply and a further message; the breakpoint moves to the end."""
    cache: CacheTtl | None = request.messages[-1].cache
    before = [replace(message, cache=None) for message in request.messages]
    said = said.rstrip() or _NOTHING
    messages = (*before, Message("assistant", said), Message("user", ask, cache))
    return replace(request, messages=messages)
