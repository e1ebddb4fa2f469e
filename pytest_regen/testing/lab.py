"""What all checks share: turns of fresh agents, each taken once, with tokens never seen before."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import Any

from pydantic import BaseModel

from pytest_regen.canonical import canonical_json
from pytest_regen.testing.agents import (
    Agent,
    AgentFactory,
    ContextLossError,
    Observed,
    Replies,
    Script,
    plain_turn,
    readable,
    text_of,
)
from pytest_regen.testing.canaries import (
    ANY_MARK,
    TOKEN,
    Sample,
    Shape,
    default_samples,
    leaves,
    new_mark,
    with_value,
)
from pytest_regen.turns.values import TurnRequest

_SURE, _UNSURE = 0.98, 0.02


class Lab:
    """Turns of one agent, each taken by a new instance and with tokens never seen before.

    Whatever an agent remembers, by description, answers or process, it remembers of other tokens:
    what these turns show is what the agent makes of a request. Prompts are compared with the tokens
    of one mark put in the place of those of the other.
    """

    def __init__(
        self, make: AgentFactory, replies: Replies, conversations: Sequence[BaseModel] = ()
    ) -> None:
        self.make, self.replies = make, replies
        self.samples = tuple(map(Sample, conversations, ascii_lowercase)) or default_samples()
        self.is_default = not conversations
        self._seen: dict[str, Observed] = {}

    @classmethod
    def of(cls, make: "AgentFactory | Lab", replies: Replies) -> "Lab":
        """Return the lab of an agent; several checks of one agent share theirs."""
        return make if isinstance(make, Lab) else cls(make, replies)

    def shapes(self) -> Iterator[tuple[Shape, str]]:
        """Yield turns in which different things get lost, and what to say of them."""
        for sample in self.samples:
            shape = Shape(sample, sample.wire)
            yield shape, ""
            # Where inferences are sure, some let them win over answers; where not, some drop them.
            numbers = [keys for keys, leaf in leaves(sample.wire) if isinstance(leaf, float)]
            for confidence in (_SURE, _UNSURE) if numbers else ():
                wire = sample.wire
                for keys in numbers:
                    wire = with_value(wire, keys, confidence)
                if sample.accepts(wire):
                    where = f", where inferences have confidence {confidence}"
                    yield dataclasses.replace(shape, wire=wire), where
            yield (
                dataclasses.replace(shape, is_long=True),
                ", where texts are as long as they may be",
            )
            for number in range(len(sample.ids)) if len(sample.ids) > 1 else ():
                where = ", where only one question is answered"
                yield shape.answering(number), where

    def observe(self, shape: Shape, script: str = "write") -> Observed:
        """Return what a new instance does in a turn, with ``ANY_MARK`` in every token."""
        parts = [id(shape.sample), shape.wire, shape.is_long, shape.is_first, shape.legacy, script]
        key = canonical_json(parts)
        if key not in self._seen:
            mark = new_mark()
            seen = Agent(self.make).take(shape.request(mark), self.script(mark, script))
            self._seen[key] = _with_any_mark(seen, mark)
        return self._seen[key]

    def prompt(self, shape: Shape) -> str:
        """Return what a new instance sends at first, with ``ANY_MARK`` in every token."""
        return self.observe(shape).prompt

    def plain(self, shape: Shape, *, mark: str = "", script: str = "write") -> Any:
        """Return requests and result of such a turn as JSON."""
        if not mark:
            return json.loads(json.dumps(plain_turn(self.observe(shape, script))))
        seen = Agent(self.make).take(shape.request(mark), self.script(mark, script))
        return self.without_mark(seen, mark)

    def script(self, mark: str, name: str = "write", *, at_once: bool = False) -> Script:
        """Return the script of a model whose reply does not depend on the mark of its request.

        Args:
            mark: of the turn's tokens.
            name: ``write``, ``ask``, ``unusable``; ``bad N`` and ``worse N`` give one and two bad
                replies first, by their number: the unusable ones, then a question.
            at_once: whether turns of several samples are taken at once; each is counted for itself.
        """
        kind, _, number = name.partition(" ")
        bad = (*self.replies.unusable, self.replies.ask)[int(number or 0)]
        first = {"bad": 1, "worse": 2}.get(kind, 0)
        always = {"ask": self.replies.ask, "unusable": self.replies.unusable[-1]}

        calls: Counter[str] = Counter()

        def reply(_: int, request: TurnRequest) -> str:
            token = TOKEN.search(readable(text_of(request))) if at_once else None
            letter = token[0].partition("Ä")[2][:1] if token else ""
            calls[letter] += 1
            if calls[letter] <= first:
                return bad
            written = self.replies.render(request, mark=mark, instead=ANY_MARK)
            return always.get(kind, written)

        return reply

    @staticmethod
    def without_mark(seen: Observed, mark: str) -> Any:
        """Return requests and result of a turn as JSON, with ``ANY_MARK`` in every token."""
        return json.loads(json.dumps(plain_turn(seen)).replace(mark, ANY_MARK))

    def same(self, one: Shape, other: Shape) -> bool:
        """Return whether an agent makes the same of two requests."""
        # One mark for both: an agent may put a digest of its texts into the prompt.
        mark = new_mark()
        return bool(self.plain(one, mark=mark) == self.plain(other, mark=mark))

    def differ(self, one: Shape, other: Shape) -> bool:
        """Return whether an agent takes two requests for different, because they are.

        The first is taken again after the second. If that differs, too, then by memory or by the
        clock, and the requests are not compared: another check does that.
        """
        for marks in (new_mark(), new_mark(), new_mark()), (new_mark(),) * 3:
            shapes = zip((one, other, one), marks, strict=True)
            before, between, after = (self.plain(shape, mark=mark) for shape, mark in shapes)
            if before == after:
                return bool(before != between)
        return False

    @staticmethod
    def require_request(check: str, seen: Observed) -> None:
        """Let the check fail where a turn failed, or sent nothing."""
        if seen.error is not None:
            error = f"{type(seen.error).__name__}: {seen.error}"
            raise ContextLossError(check, "the second turn raises", [error[:300]]) from seen.error
        if not seen.requests:
            raise ContextLossError(check, "the second turn asks no model")


def _with_any_mark(seen: Observed, mark: str) -> Observed:
    requests = tuple(
        dataclasses.replace(
            request,
            system=request.system.replace(mark, ANY_MARK),
            messages=tuple(
                dataclasses.replace(message, content=message.content.replace(mark, ANY_MARK))
                for message in request.messages
            ),
        )
        for request in seen.requests
    )
    return dataclasses.replace(seen, requests=requests)
