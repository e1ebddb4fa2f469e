"""A conversation under a fixed system prompt whose turns are transactions.

- A user message and its reply enter the history together, and the turn is counted, once the reply
  was understood. Storing the reply first would let one wrong reply poison every later turn.
- Every turn has schema repair, within the turn: repairs and continuations leave no trace in the
  history. Without it a session would end with the first reply that a limit cut or that lacks a
  bracket, after all the turns paid before.
- A turn that fails leaves the history as it was.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, cast

from pytest_regen.errors import BudgetError, ProviderError, UsageError
from pytest_regen.prompts import estimate_tokens
from pytest_regen.sessions.transcript import Exchange, Purpose, Transcript, TurnReport, report_turn
from pytest_regen.text import plural
from pytest_regen.turns.reply_text import CONTINUE
from pytest_regen.turns.steps import Progress, Steps, tell
from pytest_regen.turns.structured import object_steps
from pytest_regen.turns.values import CacheTtl, Message, Provider, Reply, TurnRequest, Usage

__all__ = [
    "Account",
    "Conversation",
    "Draft",
    "SessionBase",
    "SessionSettings",
    "TokenBudget",
    "Turn",
    "TurnLog",
    "check_limits",
]


T = TypeVar("T")
R = TypeVar("R")

_USUAL_REPLY = 1_000
"""Tokens a reply is expected to take as long as none was seen, for the budget's estimate."""

_STOPPED = "the reply was not waited for: the turn was cancelled or interrupted"


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
    model: str
    max_tokens: int
    """Upper limit of one reply; a longer one is continued."""
    max_repairs: int
    """Times per turn that a wrong reply is sent back with what is wrong with it."""
    max_turns: int | None
    """Committed turns after which the session refuses another one."""
    token_budget: int | None
    """Tokens this session may spend: input, output and cache together."""
    shared_budget: TokenBudget | None
    """A budget that others spend from as well."""
    cache: CacheTtl | None
    """Lifetime of the cache breakpoints; ``None`` sets none."""
    on_progress: Progress | None
    """Called with one line per step, possibly from several threads."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            UsageError: one of them allows nothing.
        """
        check_limits(
            max_tokens=(self.max_tokens, 1),
            max_repairs=(self.max_repairs, 0),
            max_turns=(self.max_turns, 1),
            token_budget=(self.token_budget, 1),
        )

    def tell(self, message: str) -> None:
        """Pass one line on to whoever watches."""
        tell(self.on_progress, message)


def check_limits(**limits: tuple[int | None, int]) -> None:
    """Check that each limit allows something; given are its value and the least that does.

    Raises:
        UsageError: one does not.
    """
    for name, (value, least) in limits.items():
        if value is not None and value < least:
            raise UsageError(
                f"{name} is {value}",
                why=f"a session needs at least {least}",
                hint=f"pass {name}={least} or more",
            )


@dataclass(frozen=True, slots=True)
class Draft(Generic[T]):
    """A turn that was answered and understood, and is not in the history yet."""

    value: T
    user: Message
    assistant: Message


class Account:
    """Calls counted and paid, for all conversations of a session."""

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self.usage = Usage()
        self.transcript = Transcript()
        self._reply_size = _USUAL_REPLY
        self._reserved = 0
        self._lock = threading.Lock()

    def restore(self, usage: Usage) -> None:
        """Go on from what was spent before."""
        self.usage = usage

    def reserve(self, request: TurnRequest) -> int:
        """Take what a call is estimated to need, and return it.

        Raises:
            BudgetError: it cannot.
        """
        estimate = _size_of(request) + min(self._reply_size, request.max_tokens)
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
        usage = exchange.usage
        with self._lock:
            self._reserved -= reserved
            self.transcript.add(exchange)
            if usage is not None:
                self.usage += usage
                self._reply_size = usage.output_tokens or self._reply_size
        self._settle_shared(reserved, usage)

    def _settle_shared(self, reserved: int, usage: Usage | None) -> None:
        if self._settings.shared_budget:
            self._settings.shared_budget.settle(reserved, usage)


def _spent_by(error: Exception, request: TurnRequest) -> Usage | None:
    """Return what a failed call took: as far as it was told, else its input; ``None`` if nothing.

    A reply that broke off has been asked for and, in part, written.
    """
    usage = error.usage if isinstance(error, ProviderError) else None
    if usage is None or usage.total_tokens:
        return usage
    return Usage(input_tokens=_size_of(request))


def _size_of(request: TurnRequest) -> int:
    """Return the tokens of ``request``, estimated."""
    asked = sum(estimate_tokens(message.content) for message in request.messages)
    return estimate_tokens(request.system) + asked


class Conversation:
    """The history of one conversation, and the steps of its next turn.

    Args:
        system: the system prompt; the same bytes in every request.
        settings: with whom and within which limits.
        account: where calls are entered; shared by the conversations of one session.
        branch: name of this conversation among several under one system prompt.

    Attributes:
        history: the committed messages, user and assistant by turns.
    """

    def __init__(
        self,
        system: str,
        settings: SessionSettings,
        account: Account,
        *,
        branch: str = "",
    ) -> None:
        self.system = system
        self.branch = branch
        self.history: tuple[Message, ...] = ()
        self._settings = settings
        self._account = account

    def ask(
        self,
        user: str,
        parse: Callable[[str], T],
        *,
        turn: int,
        salvage: Callable[[Sequence[str]], T | None] | None = None,
        response_schema: dict[str, object] | None = None,
    ) -> Steps[Draft[T]]:
        """Return the steps of one turn; their result enters the history by ``commit``.

        Breakpoints stand on the system prompt and on the last message of every request, wherever
        that is: it is what the next turn and a repair both read. With the second-to-last one
        marked, a repair would pay for the newest message again. Whether there are any, and for
        how long they live, is ``cache`` of the session, and no argument of a turn: a turn with
        other breakpoints than the one before it would read less than that one wrote.

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
            request,
            parse,
            max_repairs=self._settings.max_repairs,
            salvage=salvage,
            progress=self._settings.tell,
        )
        parsed = yield from _watched(steps, self._account, turn, self.branch)
        return Draft(parsed.value, message, Message("assistant", parsed.text))

    def commit(self, draft: Draft[Any]) -> None:
        """Let a turn enter the history."""
        self.history = (*self.history, draft.user, draft.assistant)

    def restore(self, history: Sequence[Message]) -> None:
        """Go on from the turns of an earlier time."""
        self.history = tuple(history)


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
            sent = _spent_by(error, request)
            account.settle(
                reserved, Exchange(turn, purpose, request, None, str(error), branch, sent)
            )
        except GeneratorExit:
            # Stopped from outside while the provider was at work: what went out is paid.
            sent = Usage(input_tokens=_size_of(request))
            account.settle(reserved, Exchange(turn, purpose, request, None, _STOPPED, branch, sent))
            raise
        else:
            account.settle(reserved, Exchange(turn, purpose, request, answer, "", branch))


@dataclass(slots=True)
class Turn:
    """A turn under way."""

    number: int
    """Counted from 1."""
    notes: list[str] = field(default_factory=list)
    """For its report: what was left out of the replies, and why."""
    is_committed: bool = False
    """Whether it has entered the history, and counts."""


class TurnLog:
    """Which turns a session has taken, and which it tried.

    Args:
        account: where their calls are entered.
        max_turns: committed turns after which another one is refused; ``None`` for no limit.

    Attributes:
        count: committed turns.
        reports: one per turn tried.
    """

    def __init__(self, account: Account, max_turns: int | None) -> None:
        self.count = 0
        self.reports: tuple[TurnReport, ...] = ()
        self._account = account
        self._max_turns = max_turns
        self._busy = threading.Lock()

    def restore(self, count: int) -> None:
        """Go on from so many committed turns."""
        self.count = count

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Hold the session for one turn, and report the turn, also one that fails.

        Raises:
            UsageError: another turn is under way; two at once would be lost in one history.
            BudgetError: all turns are taken.
        """
        if not self._busy.acquire(blocking=False):
            raise UsageError(
                "another turn of this session is under way",
                why="each turn is asked in the light of the one before it",
                hint="wait for the other turn, or use a session of its own",
            )
        try:
            self._check_limit()
            yield from self._reported(Turn(self.count + 1))
        finally:
            self._busy.release()

    def _check_limit(self) -> None:
        limit = self._max_turns
        if limit is not None and self.count >= limit:
            raise BudgetError(
                f"the session has taken {plural(limit, 'turn')} of {limit:,}",
                why="max_turns bounds what a session may spend",
                hint="raise max_turns, or start a new session",
            )

    def _reported(self, turn: Turn) -> Iterator[Turn]:
        since, failure = len(self._account.transcript), ""
        try:
            yield turn
        except BaseException as error:
            failure = str(error) or type(error).__name__
            raise
        finally:
            self.count += turn.is_committed
            report = report_turn(
                self._account.transcript,
                turn.number,
                since=since,
                committed=turn.is_committed,
                notes=turn.notes,
                failure=failure,
            )
            self.reports = (*self.reports, report)


class SessionBase:
    """What all sessions have: an account of their calls and a log of their turns.

    Args:
        settings: with whom and within which limits the session talks.
    """

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self._account = Account(settings)
        self._log = TurnLog(self._account, settings.max_turns)

    @property
    def fingerprint(self) -> str:
        """Hash of what its replies depend on, whatever was asked so far."""
        raise NotImplementedError  # pragma: no cover - each session says it

    @property
    def transcript(self) -> Transcript:
        """Every call made: failed and cancelled ones, repairs and continuations included."""
        return self._account.transcript

    @property
    def turn_count(self) -> int:
        """Committed turns."""
        return self._log.count

    @property
    def usage(self) -> Usage:
        """Tokens of all calls, those of failed turns included: they are paid."""
        return self._account.usage

    @property
    def reports(self) -> tuple[TurnReport, ...]:
        """One report per turn tried since the session was made or restored."""
        return self._log.reports
