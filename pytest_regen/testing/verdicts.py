"""What the checks of stateless agents share: the failure, and how a turn is read."""

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_regen.context.values import Ask
from pytest_regen.testing.observing import Observed, Replies, Script, plain_result

__all__ = [
    "ContextLossError",
    "bad_at_first",
    "is_questions",
    "plain_turn",
    "sent_text",
    "writing",
]


class ContextLossError(AssertionError):
    """An agent's second turn lacks something, or has something it must not have.

    Args:
        check: name of the check, a key of ``CHECKS``.
        findings: what is wrong; paths of leaves, where leaves are lost.
    """

    def __init__(self, check: str, summary: str, findings: Iterable[str] = ()) -> None:
        self.check = check
        self.summary = summary
        self.findings = tuple(findings)
        super().__init__("\n  ".join((f"{check}: {summary}", *self.findings)))

    def __reduce__(self) -> tuple[object, ...]:
        return ContextLossError, (self.check, self.summary, self.findings)


def writing(replies: Replies) -> Script:
    """Return the script of a model that writes at once."""
    return lambda _, request: replies.written(request)


def bad_at_first(bad: str, replies: Replies) -> Script:
    """Return the script of a model that writes only when it is asked again."""
    return lambda number, request: bad if number == 1 else replies.written(request)


def sent_text(check: str, seen: Observed) -> str:
    """Return what the first request of a turn says.

    Raises:
        ContextLossError: the turn failed, or sent nothing.
    """
    if seen.error is not None:
        error = f"{type(seen.error).__name__}: {seen.error}"
        raise ContextLossError(check, "the second turn raises", [error[:300]]) from seen.error
    if not seen.requests:
        raise ContextLossError(check, "the second turn asks no model")
    return seen.text


def plain_turn(seen: Observed) -> tuple[Any, Any]:
    """Return requests and result as JSON, for comparison."""
    return seen.wire, repr(seen.error) if seen.error else plain_result(seen.result)


def is_questions(result: object) -> bool:
    """Return whether an agent's result holds questions, as far as it can be told."""
    if isinstance(result, Mapping):
        return bool(result.get("needs_clarification"))
    return isinstance(result, Ask) or bool(getattr(result, "needs_clarification", False))
