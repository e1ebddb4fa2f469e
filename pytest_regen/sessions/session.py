"""A conversation with a model whose replies are values of one type."""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

from pytest_regen.errors import BudgetError, ReplyFormatError, UsageError
from pytest_regen.sessions.closed_schema import closed_schema
from pytest_regen.sessions.conversation import (
    Account,
    Conversation,
    Draft,
    SessionSettings,
    TokenBudget,
)
from pytest_regen.sessions.state import (
    check_state,
    messages_from_json,
    messages_to_json,
)
from pytest_regen.sessions.transcript import (
    Transcript,
    TurnReport,
    report_turn,
    usage_from_json,
    usage_to_json,
)
from pytest_regen.turns.defaults import DEFAULT_MODEL
from pytest_regen.turns.steps import Progress, Steps, adrive, drive
from pytest_regen.turns.structured import (
    Schema,
    adapter_of,
    parse_json_with_schema,
    schema_to_prompt_hint,
)
from pytest_regen.turns.values import CacheTtl, Message, Provider, Usage

__all__ = ["GeneratorSession"]

T = TypeVar("T")

Check = Callable[[T], Iterable[str]]
"""Returns what is wrong with a value that fits the schema, in words for the model."""


class GeneratorSession(Generic[T]):
    """A conversation that remembers what worked: each turn is asked in the light of those before.

    The system prompt is fixed, so that every turn reads it, and all turns before, from the prompt
    cache. A turn enters the history only once its reply was understood; a failed turn leaves the
    session as it was, except that its tokens are spent.

    Args:
        system: the system prompt, sent as the same bytes in every request.
        response: what each reply is: a pydantic model, any type pydantic knows, a ``TypeAdapter``.
        provider: who answers.
        model: name of the model.
        max_tokens: upper limit of one reply; a longer one is continued.
        max_repairs: times per turn that a wrong reply is sent back with what is wrong with it.
        max_turns: turns after which the session refuses another one.
        token_budget: tokens the session may spend, input, output and cache together.
        shared_budget: a budget that others spend from as well, as ``pytest_regen.Budget``.
        cache: lifetime of the cache breakpoints on the system prompt and the last message.
        structured_output: have the API itself enforce the schema. Only for schemas without
            free-form objects; the hint in the first message works with any.
        on_progress: called with one line per step.

    Raises:
        UsageError: a limit allows nothing, or the schema does not survive structured output.
    """

    def __init__(
        self,
        system: str,
        response: Schema[T],
        *,
        provider: Provider,
        model: str = DEFAULT_MODEL,
        max_tokens: int = 16_384,
        max_repairs: int = 2,
        max_turns: int | None = None,
        token_budget: int | None = None,
        shared_budget: TokenBudget | None = None,
        cache: CacheTtl | None = "5m",
        structured_output: bool = False,
        on_progress: Progress | None = None,
    ) -> None:
        self._adapter = adapter_of(response)
        self._settings = SessionSettings(
            provider,
            model,
            max_tokens,
            max_repairs,
            max_turns,
            token_budget,
            shared_budget,
            cache,
            on_progress,
        )
        self._schema = closed_schema(self._adapter) if structured_output else None
        self._account = Account(self._settings)
        self._conversation = Conversation(system, self._settings, self._account)
        self._reports: tuple[TurnReport, ...] = ()
        self._turns = 0
        self._busy = threading.Lock()

    @property
    def system(self) -> str:
        """The system prompt."""
        return self._conversation.system

    @property
    def history(self) -> tuple[Message, ...]:
        """The committed turns: user and assistant messages, alternating."""
        return self._conversation.history

    @property
    def transcript(self) -> Transcript:
        """Every call made, failed ones, repairs and continuations included."""
        return self._account.transcript

    @property
    def turn_count(self) -> int:
        """Committed turns."""
        return self._turns

    @property
    def usage(self) -> Usage:
        """Tokens of all calls, those of failed turns included: they are paid."""
        return self._account.usage

    @property
    def reports(self) -> tuple[TurnReport, ...]:
        """One report per turn tried since the session was made or restored."""
        return self._reports

    def ask(self, message: str, *, check: Check[T] | None = None) -> T:
        """Take one turn and return the value of its reply.

        Args:
            message: what to ask. In the first turn the hint of the schema is appended.
            check: returns what is wrong with a value although it fits the schema; the model is
                then asked to mend its reply, as it is for a wrong schema.

        Raises:
            UsageError: the message is empty, or another turn is under way.
            ReplyFormatError: no reply could be used, repairs included.
            RefusedError: the model declined.
            BudgetError: the turns or the tokens are spent.
            ProviderError: there was no reply.
        """
        with self._turn(message) as steps:
            return self._committed(drive(steps(check), self._settings.provider))

    async def aask(self, message: str, *, check: Check[T] | None = None) -> T:
        """Take one turn without blocking the event loop; as ``ask``."""
        with self._turn(message) as steps:
            return self._committed(await adrive(steps(check), self._settings.provider))

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON, for ``from_json``: history, turns, usage.

        The provider and the response type are not in it, nor is the transcript, which has its own
        ``to_json``.
        """
        return {
            "version": 1,
            "kind": "generator-session",
            "system": self.system,
            "model": self._settings.model,
            "history": messages_to_json(self.history),
            "usage": usage_to_json(self.usage),
        }

    @classmethod
    def from_json(
        cls,
        data: Mapping[str, Any],
        response: Schema[T],
        *,
        provider: Provider,
        **settings: Any,  # noqa: ANN401 - as the constructor takes them
    ) -> Self:
        """Return the session that ``to_json`` wrote; it goes on where that one stood.

        Args:
            data: what ``to_json`` returned.
            response: what each reply is.
            provider: who answers from now on.
            **settings: the other arguments of the constructor. The model is the session's own
                unless another one is given.

        Raises:
            UsageError: ``data`` is no session, or its history does not alternate.
        """
        check_state(data, "generator-session")
        session = cls(
            str(data["system"]),
            response,
            provider=provider,
            **{"model": str(data["model"]), **settings},
        )
        session._conversation.history = messages_from_json(data["history"])
        session._account.usage = usage_from_json(data["usage"])
        session._turns = len(session.history) // 2
        return session

    @contextmanager
    def _turn(self, message: str) -> Iterator[Callable[[Check[T] | None], Steps[Draft[T]]]]:
        """Yield what makes the steps of a turn; report the turn whatever comes of it."""
        if not message.strip():
            raise UsageError(
                "the message is empty", hint="say what is wanted: session.ask('Write …')"
            )
        with exclusive(self._busy):
            check_turns(self._turns, self._settings.max_turns)
            since, turn = len(self.transcript), self._turns + 1
            try:
                yield lambda check: self._steps(message, turn, check)
            except BaseException as error:
                self._report(turn, since, failure=str(error) or type(error).__name__)
                raise
            self._report(turn, since)

    def _steps(self, message: str, turn: int, check: Check[T] | None) -> Steps[Draft[T]]:
        # On the first turn only, though the requirement's sample sends it with every one: it stands
        # in the history from then on, and more of it would only be paid again.
        hint = "" if self.history else schema_to_prompt_hint(self._adapter)
        return self._conversation.ask(
            message + hint,
            lambda text: checked(parse_json_with_schema(text, self._adapter), text, check),
            turn=turn,
            response_schema=self._schema,
        )

    def _committed(self, draft: Draft[T]) -> T:
        self._conversation.commit(draft)
        self._turns += 1
        return draft.value

    def _report(self, turn: int, since: int, failure: str = "") -> None:
        report = report_turn(
            self.transcript, turn, since=since, committed=not failure, failure=failure
        )
        self._reports = (*self._reports, report)


def checked(value: T, text: str, check: Check[T] | None) -> T:
    """Return ``value`` if ``check`` finds nothing wrong with it.

    Raises:
        ReplyFormatError: it does.
    """
    problems = list(check(value)) if check else []
    if problems:
        told = "\n".join(f"- {problem}" for problem in problems)
        raise ReplyFormatError(
            f"the reply fits the schema and not its purpose ({len(problems)} problem(s))",
            text=text,
            problem=f"The reply cannot be used:\n{told}",
            why=told,
            hint="say in the prompt what is wanted, or ask again",
        )
    return value


def check_turns(turns: int, limit: int | None) -> None:
    """Refuse another turn where all are taken.

    Raises:
        BudgetError: ``limit`` turns were committed.
    """
    if limit is not None and turns >= limit:
        raise BudgetError(
            f"the session's {limit} turn(s) are taken",
            why="max_turns bounds what a session may spend",
            hint="raise max_turns, or start a new session",
        )


@contextmanager
def exclusive(busy: threading.Lock) -> Generator[None, None, None]:
    """Hold a session for one turn.

    Raises:
        UsageError: another turn is under way; two at once would be lost in one history.
    """
    if not busy.acquire(blocking=False):
        raise UsageError(
            "another turn of this session is under way",
            why="each turn is asked in the light of the one before it",
            hint="wait for the other turn, or use a session of its own",
        )
    try:
        yield
    finally:
        busy.release()
