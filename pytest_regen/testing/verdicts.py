"""What the checks of stateless agents share: the failure, how a turn is read and compared."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pytest_regen.context.values import Ask
from pytest_regen.testing.canaries import RequestWith, new_mark
from pytest_regen.testing.observing import (
    AgentFactory,
    Observed,
    Replies,
    Script,
    observe,
    plain_result,
)

__all__ = [
    "ANY_MARK",
    "ContextLossError",
    "Turns",
    "bad_at_first",
    "is_questions",
    "plain_turn",
    "sent_text",
    "writing",
]

ANY_MARK: Final = "00000000"
"""Stands in tokens that are compared with those of another mark."""


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


class Turns:
    """Turns of one agent, each taken by a new instance and with tokens never seen before.

    Whatever an agent remembers, by description, answers or process, it remembers of other tokens:
    what these turns show is what the agent makes of a request. Prompts are compared with the tokens
    of one mark put in the place of those of the other.
    """

    def __init__(self, make: AgentFactory, replies: Replies) -> None:
        self._make = make
        self._replies = replies

    def taken(self, request_with: RequestWith, mark: str = "") -> Observed:
        """Return what a new instance does with a request made with a new mark."""
        return observe(self._make)(request_with(mark or new_mark()), writing(self._replies))

    def text(self, request_with: RequestWith) -> str:
        """Return what a new instance sends at first, with ``ANY_MARK`` in every token."""
        mark = new_mark()
        return self.taken(request_with, mark).text.replace(mark, ANY_MARK)

    def plain(self, request_with: RequestWith, mark: str = "") -> Any:  # noqa: ANN401 - JSON
        """Return requests and result of such a turn as JSON, with ``ANY_MARK`` in every token."""
        mark = mark or new_mark()
        return self.unmarked(observe(self._make)(request_with(mark), self.script(mark)), mark)

    def script(self, mark: str) -> Script:
        """Return the script of a model whose reply does not depend on the mark of its request."""
        return lambda _, request: self._replies.written(request, mark=mark, instead=ANY_MARK)

    @staticmethod
    def unmarked(seen: Observed, mark: str) -> Any:  # noqa: ANN401 - JSON
        """Return requests and result of a turn as JSON, with ``ANY_MARK`` in every token."""
        return json.loads(json.dumps(plain_turn(seen)).replace(mark, ANY_MARK))

    def same(self, one: RequestWith, other: RequestWith) -> bool:
        """Return whether an agent makes the same of two requests."""
        mark = new_mark()
        # An agent may put a digest of its texts into the prompt: no two marks agree then.
        pairs = ((self.plain(one, with_), self.plain(other, with_)) for with_ in ("", mark))
        return any(first == second for first, second in pairs)

    def differ(self, one: RequestWith, other: RequestWith) -> bool:
        """Return whether an agent takes two requests for different, because they are.

        The first is taken again after the second. If that differs, too, then by memory or by the
        clock, and nothing is said of the requests: another check looks at that.
        """
        for mark in ("", new_mark()):
            before, between, after = (self.plain(request, mark) for request in (one, other, one))
            if before == after:
                return bool(before != between)
        return False


def is_questions(result: object) -> bool:
    """Return whether an agent's result holds questions, as far as it can be told."""
    if isinstance(result, Mapping):
        return bool(result.get("needs_clarification"))
    return isinstance(result, Ask) or bool(getattr(result, "needs_clarification", False))
