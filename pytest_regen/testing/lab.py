"""What all checks share: turns of fresh agents, each taken once, with tokens never seen before."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from string import ascii_lowercase

from pydantic import BaseModel

from pytest_regen.canonical import canonical_json
from pytest_regen.testing import agents, canaries
from pytest_regen.testing.agents import Agent, AgentFactory, Observed, Replies, Script
from pytest_regen.testing.canaries import ANY_MARK, Sample, Shape, new_mark


@dataclass(frozen=True)
class Lab:
    """Turns of one agent, each taken by a new instance and with tokens never seen before.

    Whatever an agent remembers, by description, answers or process, it remembers of other tokens:
    what these turns show is what the agent makes of a request. Prompts are compared with the tokens
    of one mark put in the place of those of the other.
    """

    make: AgentFactory
    replies: Replies = field(default_factory=Replies)
    checks: Iterable[str] | None = None
    conversation: BaseModel | Sequence[BaseModel] = ()
    ignore: Iterable[str] = ()
    max_calls: int = 3
    skeleton: Callable[[str], object] | None = None
    _seen: dict[str, Observed] = field(default_factory=dict)

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """The conversations that were given, or those of the built-in agent."""
        turns = self.conversation
        turns = (turns,) if isinstance(turns, BaseModel) else turns
        samples = tuple(map(Sample, turns, ascii_lowercase))
        return samples or canaries.default_samples()

    @property
    def is_default(self) -> bool:
        """Whether turns have the members of the built-in agent's."""
        return self.samples == canaries.default_samples()

    def observe(
        self,
        shape: Shape,
        first: Sequence[str] = (),
        *,
        mark: str = "",
        agent: Agent | None = None,
    ) -> Observed:
        """Return what happens in a turn, with ``ANY_MARK`` in every token.

        Without a mark it is one that no agent has seen, and the turn is taken once.

        Args:
            shape: the turn.
            first: what the model replies before it writes.
            mark: of the tokens.
            agent: who takes it; a new instance by default.
        """
        # By what the shape holds, because each check makes its shapes anew.
        key = canonical_json({**vars(shape), "sample": id(shape.sample), "first": first})
        if not mark and key in self._seen:
            return self._seen[key]
        its_mark = mark or new_mark()
        agent = agent or Agent(self.make)
        seen = agent.take(shape.request(its_mark), self.script(its_mark, first))
        requests, result = json.loads(json.dumps(seen.plain).replace(its_mark, ANY_MARK))
        seen = replace(seen, requests=requests, result=result)
        return seen if mark else self._seen.setdefault(key, seen)

    def script(self, mark: str, first: Sequence[str] = ()) -> Script:
        """Return the script of a model whose reply does not depend on the mark of its request."""
        replies = iter(first)

        def reply(request: agents.Request) -> str:
            # With the same mark for all turns, because replies are compared as requests are.
            plain = json.loads(json.dumps(request).replace(mark, ANY_MARK))
            return next(replies, self.replies.render(plain))

        return reply

    def same(self, one: Shape, other: Shape) -> bool:
        """Return whether an agent makes the same of two requests with the same tokens."""
        # One mark for both, because an agent may keep what it made by ids that hold tokens.
        mark = new_mark()
        return bool(self.observe(one, mark=mark).plain == self.observe(other, mark=mark).plain)

    def differ(self, one: Shape, other: Shape) -> bool:
        """Return whether an agent takes two requests for different, because they are."""
        # Not by memory or by the clock, because another check looks at these.
        return not self.same(one, other) and self.same(one, one)
