"""A conversation under a fixed system prompt whose turns are transactions.

A user message and its reply enter the history together, once the reply was understood. Repairs
and continuations happen inside the turn and leave no trace in the history; a turn that fails
leaves it as it was. (The text this follows stores a reply before parsing it and counts the turn;
one wrong reply then poisons every later one. It also says of schema repair both that each turn has
it and that none has: here each turn has.)
"""

import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, cast

from pytest_regen.errors import BudgetError, UsageError
from pytest_regen.prompts import estimate_tokens
from pytest_regen.sessions.transcript import Exchange, Purpose, Transcript
from pytest_regen.turns.defaults import DEFAULT_MODEL
from pytest_regen.turns.steps import CONTINUE, Progress, Steps, object_steps
from pytest_regen.turns.values import CacheTtl, Message, Provider, Reply, TurnRequest, Usage

__all__ = ["Conversation", "Draft", "SessionSettings", "TokenBudget"]

T = TypeVar("T")
R = TypeVar("R")

_USUAL_REPLY = 1_000
"""Tokens a reply is expected to take as long as none was seen, for the budget's estimate."""


class TokenBudget(Protocol):
    """A limit shared with others; ``pytest_regen.Budget`` is one."""

    def reserve(self, estimate: int) -> int:
        """Take tokens before a call, or raise ``BudgetError``."""
        ...

    def settle(self, reserved: int, usage: Usage | None) -> None:
        """Replace a reservation by what was used, ``None`` if the call was not made."""
        ...


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """With whom, and within which limits, a session talks."""

    provider: Provider
    model: str = DEFAULT_MODEL
    max_tokens: int = 16_384
    """Upper limit of one reply; a longer one is continued."""
    max_repairs: int = 2
    """Times per turn that a wrong reply is sent back with what is wrong with it."""
    max_turns: int | None = None
    """Committed turns after which the session refuses another one."""
    token_budget: int | None = None
    """Tokens this session may spend: input, output and cache together."""
    shared_budget: TokenBudget | None = None
    """A budget that others spend from as well."""
    cache: CacheTtl | None = "5m"
    """Lifetime of the cache breakpoints; ``None`` sets none."""
    on_progress: Progress | None = None
    """Called with one line per step, possibly from several threads."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            UsageError: one of them allows nothing.
        """
        limits = (("max_tokens", self.max_tokens, 1), ("max_repairs", self.max_repairs, 0))
        for name, value, least in (*limits, ("max_turns", self.max_turns, 1)):
            if value is not None and value < least:
                raise UsageError(
                    f"{name} is {value}",
                    why=f"a session needs at least {least}",
                    hint=f"pass {name}={least} or more",
                )

    def tell(self, message: str) -> None:
        """Pass one line on to whoever watches."""
        if self.on_progress:
            self.on_progress(message)


@dataclass(frozen=True, slots=True)
class Draft(Generic[T]):
    """A turn that was answered and understood, and is not in the history yet."""

    value: T
    user: Message
    assistant: Message
    repairs: int = 0


class Account:
    """Calls counted and paid, for all conversations of a session."""

    def __init__(self, settings: SessionSettings, usage: Usage | None = None) -> None:
        self._settings = settings
        self.usage = usage or Usage()
        self.transcript = Transcript()
        self._reply_size = _USUAL_REPLY
        self._reserved = 0
        self._lock = threading.Lock()

    def reserve(self, request: TurnRequest) -> int:
        """Take what a call is estimated to need, and return it.

        Raises:
            BudgetError: it cannot.
        """
        asked = sum(estimate_tokens(message.content) for message in request.messages)
        estimate = estimate_tokens(request.system) + asked
        estimate += min(self._reply_size, request.max_tokens)
        shared = self._settings.shared_budget
        if shared:
            shared.reserve(estimate)
        try:
            self._reserve(estimate)
        except BudgetError:
            self._settle_shared(estimate, None)
            raise
        return estimate

    def _reserve(self, estimate: int) -> None:
        limit = self._settings.token_budget
        with self._lock:
            spent = self.usage.total_tokens + self._reserved
            if limit is not None and spent + estimate > limit:
                raise BudgetError(
                    f"the session's budget of {limit:,} tokens does not cover the next call: "
                    f"{spent:,} are spent, about {estimate:,} more are needed",
                    why="a call is made only while its estimate fits the budget",
                    hint="raise token_budget, or ask for less",
                )
            self._reserved += estimate

    def settle(self, reserved: int, exchange: Exchange) -> None:
        """Enter a call that was made, or tried."""
        usage = exchange.reply.usage if exchange.reply else None
        with self._lock:
            self._reserved -= reserved
            self.transcript.add(exchange)
            if usage is not None:
                self.usage += usage
                self._reply_size = usage.output_tokens or self._reply_size
        self._settle_shared(reserved, usage)

    def release(self, reserved: int) -> None:
        """Give back what was reserved for a call that was abandoned."""
        with self._lock:
            self._reserved -= reserved
        self._settle_shared(reserved, None)

    def _settle_shared(self, reserved: int, usage: Usage | None) -> None:
        if self._settings.shared_budget:
            self._settings.shared_budget.settle(reserved, usage)


class Conversation:
    """The history of one conversation, and the steps of its next turn.

    Args:
        system: the system prompt; the same bytes in every request.
        settings: with whom and within which limits.
        account: where calls are entered; shared by the conversations of one session.
        branch: name of this conversation among several under one system prompt.
        history: messages of earlier turns.
    """

    def __init__(
        self,
        system: str,
        settings: SessionSettings,
        account: Account,
        *,
        branch: str = "",
        history: Sequence[Message] = (),
    ) -> None:
        self.system = system
        self.branch = branch
        self.history: tuple[Message, ...] = tuple(history)
        self._settings = settings
        self._account = account

    def ask(
        self,
        user: str,
        parse: Callable[[str], T],
        *,
        turn: int,
        response_schema: dict[str, object] | None = None,
    ) -> Steps[Draft[T]]:
        """Return the steps of one turn; their result enters the history by ``commit``.

        Breakpoints stand on the system prompt and on the last message, wherever it is: that is
        what the next turn and a repair both read. (The original marked the second-to-last one,
        which leaves the newest message out, and never did so in its pipeline.)

        Raises:
            ReplyFormatError: no reply could be understood.
            RefusedError: the model declined.
            BudgetError: the next call cannot be paid; it was not made.
            ProviderError: there was no reply.
        """
        cache = self._settings.cache
        message = Message("user", user)
        request = TurnRequest(
            self.system,
            (*self.history, replace(message, cache=cache)),
            self._settings.model,
            self._settings.max_tokens,
            response_schema=response_schema,
            cache=cache,
        )
        steps = object_steps(
            request, parse, max_repairs=self._settings.max_repairs, progress=self._settings.tell
        )
        parsed = yield from _watched(steps, self._account, turn, self.branch)
        return Draft(parsed.value, message, Message("assistant", parsed.text), parsed.repairs)

    def commit(self, draft: Draft[T]) -> None:
        """Let a turn enter the history."""
        self.history = (*self.history, draft.user, draft.assistant)


def _watched(steps: Steps[R], account: Account, turn: int, branch: str) -> Steps[R]:
    """Pass requests and replies through, and enter each call in ``account``."""
    purpose: Purpose = "ask"
    # To send None is to start.
    started = cast("Generator[TurnRequest, Reply | None, R]", steps)
    answer: Reply | None = None
    failure: Exception | None = None
    while True:
        try:
            request = started.throw(failure) if failure else started.send(answer)
        except StopIteration as end:
            return cast("R", end.value)
        if answer is not None:
            purpose = "continuation" if request.messages[-1].content == CONTINUE else "repair"
        reserved = account.reserve(request)
        answer = failure = None
        try:
            answer = yield request
        except Exception as error:  # noqa: BLE001 - the steps decide
            failure = error
            account.settle(reserved, Exchange(turn, purpose, request, None, str(error), branch))
        except GeneratorExit:
            account.release(reserved)
            raise
        else:
            account.settle(reserved, Exchange(turn, purpose, request, answer, "", branch))
