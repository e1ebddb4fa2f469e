"""A conversation under a fixed system prompt whose turns are transactions.

- A user message and its reply enter the history together, and the turn is counted, once the reply
  was understood. Storing the reply first would let one wrong reply poison every later turn.
- Every turn has schema repair, within the turn: repairs and continuations leave no trace in the
  history. Without it a session would end with the first reply that a limit cut or that lacks a
  bracket, after all the turns paid before.
- A turn that fails leaves the history as it was.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypedDict, TypeVar

from pytest_regen.errors import BudgetError, UsageError
from pytest_regen.sessions.transcript import (
    Exchange,
    Purpose,
    SessionTranscript,
    TurnReport,
    report_turn,
)
from pytest_regen.text import plural
from pytest_regen.turns.budget import Budget, TokenBudget
from pytest_regen.turns.exchange import CONTINUE, CallRecord, TurnExchange
from pytest_regen.turns.steps import OnProgress, Steps, tell
from pytest_regen.turns.structured import object_steps
from pytest_regen.turns.values import (
    DEFAULT_MODEL,
    SESSION_MAX_TOKENS,
    CacheTtl,
    Message,
    Provider,
    TurnRequest,
    Usage,
)

T = TypeVar("T")
R = TypeVar("R")


class SessionOptions(TypedDict, total=False):
    """Keyword arguments of every session; ``GeneratorSession`` says what they mean."""

    model: str
    max_tokens: int
    max_repairs: int
    max_turns: int | None
    token_budget: int | None
    shared_budget: TokenBudget | None
    cache: CacheTtl | None
    on_progress: OnProgress | None


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Provider, model and limits of a session."""

    provider: Provider
    model: str = DEFAULT_MODEL
    max_tokens: int = SESSION_MAX_TOKENS
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
    on_progress: OnProgress | None = None
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
        """Call ``on_progress`` with one line."""
        tell(self.on_progress, message)


def check_limits(**limits: tuple[int | None, int]) -> None:
    """Check each limit, given as its value and the least value that allows anything.

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
class PendingTurn(Generic[T]):
    """A turn that was answered and understood, and is not in the history yet."""

    value: T
    user: Message
    assistant: Message


class _SessionBudget(Budget):
    """The tokens that one session may spend."""

    def _refusal(self, spent: int, estimate: int) -> BudgetError:
        return BudgetError(
            f"the session's budget of {self.limit:,} tokens does not cover the next call: "
            f"{spent:,} are spent, about {estimate:,} more are needed",
            needed=spent + estimate,
            why="a call is made only while its estimate fits the budget",
            hint="raise token_budget, or ask for less",
        )


class Account:
    """The turn exchange of a session, and what went through it, for all its conversations."""

    def __init__(self, settings: SessionSettings) -> None:
        self.usage = Usage()
        self.transcript = SessionTranscript()
        self._lock = threading.Lock()
        self._own = _SessionBudget(settings.token_budget)
        shared = (settings.shared_budget,) if settings.shared_budget else ()
        self.exchange = TurnExchange(settings.provider, budgets=(*shared, self._own))

    def restore(self, usage: Usage) -> None:
        """Continue from what was spent before."""
        self.usage = usage
        self._own.settle(0, usage)

    def enter(self, steps: Steps[R], turn: int, conversation: str) -> Steps[R]:
        """Return ``steps``; each of their calls is paid for and entered in the transcript."""
        is_first = True

        def log(call: CallRecord) -> None:
            nonlocal is_first
            purpose: Purpose = "ask"
            if not is_first:
                is_continuation = call.request.messages[-1].content == CONTINUE
                purpose = "continuation" if is_continuation else "repair"
            is_first = False
            sent = None if call.reply else call.usage
            exchange = Exchange(
                turn, purpose, call.request, call.reply, call.failure, conversation, sent
            )
            with self._lock:
                self.transcript.add(exchange)
                self.usage += exchange.usage or Usage()

        return self.exchange.around(steps, log=log)


class Conversation:
    """The history of one conversation, and the steps of its next turn.

    Args:
        system: the system prompt; the same bytes in every request.
        settings: provider, model and limits.
        account: where calls are entered; shared by the conversations of one session.
        name: of this conversation, where there are several under one system prompt.

    Attributes:
        history: the committed messages, user and assistant by turns.
    """

    def __init__(
        self,
        system: str,
        settings: SessionSettings,
        account: Account,
        *,
        name: str = "",
    ) -> None:
        self.system = system
        self.name = name
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
    ) -> Steps[PendingTurn[T]]:
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
        parsed = yield from self._account.enter(steps, turn, self.name)
        return PendingTurn(parsed.value, message, Message("assistant", parsed.text))

    def commit(self, pending: PendingTurn[Any]) -> None:
        """Add a turn to the history."""
        self.history = (*self.history, pending.user, pending.assistant)

    def restore(self, history: Sequence[Message]) -> None:
        """Continue from the turns of an earlier session."""
        self.history = tuple(history)


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
    """The turns that a session has tried, and the number of those it has taken.

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
        """Continue from so many committed turns."""
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
            yield from self._report(Turn(self.count + 1))
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

    def _report(self, turn: Turn) -> Iterator[Turn]:
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
        settings: provider, model and limits of the session.
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
    def transcript(self) -> SessionTranscript:
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
