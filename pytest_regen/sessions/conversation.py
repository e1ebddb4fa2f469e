"""A conversation under a fixed system prompt whose turns are transactions."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypedDict, TypeVar

from pytest_regen.errors import BudgetError, UsageError
from pytest_regen.sessions import transcript
from pytest_regen.sessions.state import VERSION, SessionState, content_hash, load_state, sendable
from pytest_regen.text import plural
from pytest_regen.turns import values
from pytest_regen.turns.budget import Budget, TokenBudget
from pytest_regen.turns.exchange import CONTINUE, CallRecord, TurnExchange
from pytest_regen.turns.steps import OnProgress, Steps, adrive, drive, tell
from pytest_regen.turns.structured import ObjectWithRepair, object_steps

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
    cache: values.CacheTtl | None
    on_progress: OnProgress | None


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Provider, model and limits of a session."""

    provider: values.Provider
    model: str = values.DEFAULT_MODEL
    max_tokens: int = values.SESSION_MAX_TOKENS
    """Upper limit of one reply; a longer one is continued."""
    max_repairs: int = 2
    """Times per turn that a wrong reply is sent back with what is wrong with it."""
    max_turns: int | None = None
    """Committed turns after which the session refuses another one."""
    token_budget: int | None = None
    """Tokens this session may spend: input, output and cache together."""
    shared_budget: TokenBudget | None = None
    """A budget that others spend from as well."""
    cache: values.CacheTtl | None = "5m"
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


def check_limits(**limits: tuple[float | None, int]) -> None:
    """Check each limit, given as its value and the least value that allows anything.

    Raises:
        UsageError: one does not.
    """
    for name, (value, least) in limits.items():
        if value is not None and value < least:
            raise UsageError(
                f"{name} is {value}",
                why=f"less than {least} would allow nothing",
                hint=f"pass {name}={least} or more",
            )


class _SessionBudget(Budget):
    """The tokens that one session may spend."""

    def reserve(self, estimate: int) -> int:
        try:
            return super().reserve(estimate)
        except BudgetError as error:
            # Because the options that any other budget's error names do not change this one.
            raise BudgetError(
                error.what,
                needed=error.needed,
                why=error.why,
                hint="raise token_budget, or ask for less",
            ) from None


@dataclass(slots=True)
class Turn:
    """A turn under way."""

    number: int
    """Counted from 1."""
    notes: list[str] = field(default_factory=list)
    """For its report: what was left out of the replies, and why."""
    last_call: CallRecord | None = None
    """The last call made for it: the next one continues or repairs, and goes on from there."""
    is_committed: bool = False
    """Whether it has entered the history, and counts."""


class SessionBase:
    """What all sessions have: a history, an account of their calls, reports of their turns.

    Args:
        system: the system prompt; the same bytes in every request.
        settings: provider, model and limits of the session.
    """

    STATE: ClassVar[type[SessionState]]
    """What ``to_json`` writes."""
    _inputs: tuple[Any, ...] = ()
    """What else its replies depend on."""

    def __init__(self, system: str, settings: SessionSettings) -> None:
        self.system = system
        self.history: tuple[values.Message, ...] = ()
        """The committed turns: user and assistant messages, alternating."""
        self.transcript = transcript.SessionTranscript()
        """Every call made: failed and cancelled ones, repairs and continuations included."""
        self.usage = values.Usage()
        """Tokens of all calls, those of failed turns included: they are paid."""
        self.reports: tuple[transcript.TurnReport, ...] = ()
        """One report per turn tried since the session was made or restored."""
        self._settings = settings
        self._budget = _SessionBudget(settings.token_budget)
        shared = (settings.shared_budget,) if settings.shared_budget else ()
        self._exchange = TurnExchange(settings.provider, budgets=(*shared, self._budget))
        self._progress = settings.on_progress
        # Two turns at once would each commit a history without the other.
        self._busy = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Hash of what its replies depend on, whatever was asked so far.

        Prompts, model, types and limits are in it; budgets, progress and the version of this
        package are not, because they change no reply.
        """
        settings = self._settings
        limits = (settings.max_tokens, settings.max_repairs, settings.max_turns)
        return content_hash(self.STATE.KIND, self.system, settings.model, *limits, *self._inputs)

    @property
    def turn_count(self) -> int:
        """Committed turns."""
        return len(self.history) // 2

    def _take(self, steps: Callable[[Turn], Steps[R]], on_progress: OnProgress | None = None) -> R:
        """Take one turn and return what its steps return."""
        with self._turn(on_progress) as turn:
            return drive(steps(turn), self._exchange.wire)

    async def _atake(
        self, steps: Callable[[Turn], Steps[R]], on_progress: OnProgress | None = None
    ) -> R:
        with self._turn(on_progress) as turn:
            return await adrive(steps(turn), self._exchange.wire)

    @contextmanager
    def _turn(self, on_progress: OnProgress | None) -> Iterator[Turn]:
        """Hold the session for one turn, and report the turn, also one that fails.

        Raises:
            UsageError: another turn is under way; two at once would be lost in one history.
            BudgetError: all turns are taken.
        """
        limit = self._settings.max_turns
        if limit is not None and self.turn_count >= limit:
            raise BudgetError(
                f"the session has taken {plural(limit, 'turn')} of {limit:,}",
                why="max_turns bounds what a session may spend",
                hint="raise max_turns, or start a new session",
            )
        if not self._busy.acquire(blocking=False):
            raise UsageError(
                "another turn of this session is under way",
                why="each turn is asked in the light of the one before it",
                hint="wait for the other turn, or use a session of its own",
            )
        turn, failure = Turn(self.turn_count + 1), ""
        since = len(self.transcript)
        self._progress = on_progress or self._settings.on_progress
        try:
            yield turn
        except BaseException as error:
            failure = str(error) or type(error).__name__
            raise
        finally:
            # Also of a turn that fails or is interrupted, because what it took is paid.
            calls = self.transcript[since:]
            report = transcript.TurnReport(
                turn.number,
                turn.is_committed,
                len(calls),
                repairs=sum(call.purpose == "repair" for call in calls),
                usage=sum((call.usage or values.Usage() for call in calls), values.Usage()),
                cache=transcript.report_cache(self.transcript, calls),
                notes=tuple(turn.notes),
                failure=failure,
            )
            self.reports = (*self.reports, report)
            self._busy.release()

    def _tell(self, message: str) -> None:
        tell(self._progress, message)

    def _ask(
        self,
        messages: Sequence[values.Message],
        parse: Callable[[str], T],
        turn: Turn,
        *,
        salvage: Callable[[Sequence[str]], T | None] | None = None,
        response_schema: dict[str, object] | None = None,
    ) -> Steps[ObjectWithRepair[T]]:
        """Return the steps of one question; what is answered enters the history by ``_commit``."""
        settings = self._settings
        # Breakpoints stand on the system prompt and on the last message of every request, because
        # that is what the next turn and a repair both read. With the second-to-last one marked, a
        # repair would pay for the newest message again. Whether there are any, and for how long
        # they live, is for the session to say and not for a turn, because a turn with other
        # breakpoints than the one before it would read less than that one wrote.
        *before, last = messages
        request = values.TurnRequest(
            self.system,
            (*self.history, *before, replace(last, cache=settings.cache)),
            settings.model,
            settings.max_tokens,
            response_schema=response_schema,
            cache=settings.cache,
        )
        # Repairs are within the turn, because without them a session would end with the first
        # reply that a limit cut or that lacks a bracket, after all the turns paid before.
        steps = object_steps(
            request, parse, max_repairs=settings.max_repairs, salvage=salvage, progress=self._tell
        )

        def log(call: CallRecord) -> None:
            purpose: transcript.Purpose = "ask"
            if turn.last_call:
                is_continuation = call.request.messages[-1].content == CONTINUE
                purpose = "continuation" if is_continuation else "repair"
            turn.last_call = call
            # What was sent is paid also where no reply arrived.
            sent = None if call.reply else call.usage
            exchange = transcript.Exchange(
                turn.number, purpose, call.request, call.reply, call.failure, sent=sent
            )
            self.transcript.append(exchange)
            self.usage += exchange.usage or values.Usage()

        return self._exchange.around(steps, log=log)

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON, for ``from_json``: history, turns, usage.

        What only a program can hold is not in it: provider, types, functions. Nor is the
        transcript.
        """
        return {
            "version": VERSION,
            "kind": self.STATE.KIND,
            "system": self.system,
            "model": self._settings.model,
            "usage": transcript.usage_to_json(self.usage),
            # Without breakpoints, because each request sets its own.
            "history": [{"role": one.role, "content": one.content} for one in self.history],
        }

    @classmethod
    def _restored(cls, data: object, *parts: Any, **settings: Any) -> Self:
        """Return the session that ``to_json`` wrote, made from ``parts`` and what that holds."""
        state = load_state(data, cls.STATE)
        # The model of the state counts, because the prompt cache is one of the model.
        # The caller's own arguments come last, because they may raise a limit or name a model.
        made_from = {name: getattr(state, name) for name in state.ARGUMENTS}
        settings = {"model": state.model, **made_from, **settings}
        session = cls(state.system, *parts, **settings)
        session._restore(state)
        return session

    def _restore(self, stored: Any) -> None:
        self.history = stored.messages()
        self.usage = stored.usage.to_usage()
        self._budget.settle(0, self.usage)

    def _commit(self, turn: Turn, user: values.Message, text: str) -> None:
        """Let a question and its answer enter the history, and the turn count."""
        # Together, and only once the reply was understood, because one wrong reply in the history
        # would poison every later turn.
        self.history = (*self.history, user, values.Message("assistant", sendable(text)))
        turn.is_committed = True
