"""A value asked for in steps: a wrong reply is sent back, one that was cut is continued."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pytest_regen.errors import ReplyFormatError, UsageError
from pytest_regen.plurals import counted
from pytest_regen.turns.driving import Progress, Steps
from pytest_regen.turns.joining import Whole, extended, join, whole_reply
from pytest_regen.turns.values import TurnRequest, Usage

__all__ = ["Parsed", "object_steps"]

T = TypeVar("T")

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
        whole = yield from whole_reply(request, progress=tell)
        usage += whole.usage
        try:
            value, text = _understood(whole, parse, salvage)
        except ReplyFormatError as error:
            error.is_truncated = whole.is_truncated
            ask = f"{error.problem}\n\n{error.asks or _MEND}"
            said = "".join(whole.pieces).strip()
            again = (said, ask) in sent
            if whole.is_truncated or again or repairs == max_repairs:
                _explain(error, whole.reply.stop_reason, repairs, again=again)
                raise
            if said:
                sent.add((said, ask))
            request = extended(whole.request, whole.reply.text, ask)
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


def _understood(
    whole: Whole,
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
    saved = salvage(joined.pieces) if salvage and not joined.is_whole else None
    if saved is None:
        raise first
    return saved, "".join(whole.pieces)
