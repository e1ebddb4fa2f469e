"""Sessions of tests: what fails in one call of the body becomes the feedback of the next."""

import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import pytest

from pytest_regen import sessions
from pytest_regen.canonical import canonical_json
from pytest_regen.errors import NoProgressError, UsageError
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.providers import budget_of, hooks_of, price_in
from pytest_regen.pytest_plugin.stash import SESSION_MAKERS
from pytest_regen.sessions import ScenarioFeedback, TestScenario
from pytest_regen.sessions.prompts import list_item
from pytest_regen.text import plural
from pytest_regen.turns import structured
from pytest_regen.turns.exchange import Tally, TurnExchange
from pytest_regen.turns.reply_text import load_json
from pytest_regen.turns.values import DEFAULT_MODEL, Message

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun

T = TypeVar("T")

_WRONG: Final = "Your last answer was tested, and is wrong:"

Conversation = tuple[str, Sequence[tuple[Message, bool]]]
"""A system prompt, and messages, each with whether it says what was wrong with the one before."""


class ReplayableGeneratorSession(sessions.GeneratorSession[T], Generic[T]):
    """A session that goes through the body of its test once more, up to the turn that failed."""

    __test__ = False

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._asked: list[tuple[str, str]] = []
        """Questions, each with the text of its last answer."""
        self._position = 0
        self.feedback = ""
        """What its next turn has still to send."""
        self._failed_answers: set[tuple[str, str, str]] = set()
        """Failures, each with the question and the answer it was about."""

    def set_response(self, response: structured.Schema[T]) -> None:
        """Return answers as ``response`` from now on: a body called again makes its classes anew.

        Args:
            response: a type with the same JSON structured.Schema as the one before.
        """
        self._adapter = structured.adapter_of(response)

    def rewind(self) -> None:
        """Go back to the first question, and drop feedback that was not sent."""
        self._position, self.feedback = 0, ""

    def give_feedback(self, feedback: sessions.ItemFeedback[Any] | ScenarioFeedback) -> None:
        """Keep what was wrong for the next turn."""
        self.feedback = "\n".join(f"- {list_item(note)}" for note in feedback.notes)

    def ask(self, message: str, *, check: Any = None) -> T:
        """Take one turn; in a body called again, what was asked is remembered, the last redone."""
        number, question = self._next(message)
        if question is not None:
            super().ask(question, check=check)
            # To the end, because what was asked after it was asked of the old answer.
            self._asked[number:] = [(message, self.history[-1].content)]
        return self._answer(number)

    async def aask(self, message: str, *, check: Any = None) -> T:
        """Take one turn without blocking the event loop; as ``ask``."""
        number, question = self._next(message)
        if question is not None:
            await super().aask(question, check=check)
            self._asked[number:] = [(message, self.history[-1].content)]
        return self._answer(number)

    def _answer(self, number: int) -> T:
        # From its text, so that neither a value that the body changed nor a class of an earlier
        # call comes back.
        return structured.parse_json_with_schema(self._asked[number][1], self._adapter)

    def _next(self, message: str) -> tuple[int, str | None]:
        """Return where the body stands, and what to ask there: ``None`` if it was asked before.

        Raises:
            NoProgressError: the same answer would get the same feedback twice.
        """
        number, self._position = self._position, self._position + 1
        if number >= len(self._asked):
            return number, message
        question, answer = self._asked[number]
        is_same = question == message
        if is_same and (number < len(self._asked) - 1 or not self.feedback):
            return number, None
        if not self.feedback:
            return number, message
        feedback, self.feedback = self.feedback, ""
        # Parsed, because the same answer in another layout is no progress either.
        failed = (feedback, message, canonical_json(load_json(structured.extract_json(answer))))
        if failed in self._failed_answers:
            raise NoProgressError(
                "the model gave an answer again that had failed with the same words",
                why="asking again in the same words would be answered as before",
                hint="say more in the assertion, as what was found and what is wanted, or change "
                "the prompt",
            )
        self._failed_answers.add(failed)
        # A question in new words would not say that the old one went wrong.
        again = "Answer again, in full." if is_same else message
        return number, f"{_WRONG}\n\n{feedback}\n\n{again}"


class ReplayableItemSession(sessions.ItemSession[T], Generic[T]):
    """A session of items that brings its set up to date with what the test finds."""

    __test__ = False
    feedback: Any = None
    """What its next turn has still to send."""

    def rewind(self) -> None:
        """Drop feedback that was not sent; the set stays."""
        self.feedback = None

    def give_feedback(self, feedback: sessions.ItemFeedback[T] | ScenarioFeedback) -> None:
        """Keep what was wrong for the next turn."""
        if isinstance(feedback, ScenarioFeedback):
            feedback = sessions.ItemFeedback(notes=feedback.notes)
        self.feedback = feedback

    def current(self) -> list[T]:
        """Return the set: generated in the first call of the body, mended in the next."""
        feedback, self.feedback = self.feedback, None
        if not self.turn_count:
            self.generate()
        elif feedback is not None and feedback.asks_for_replacements:
            self.regenerate(feedback)
        return self.items

    async def acurrent(self) -> list[T]:
        """Return the set without blocking the event loop; as ``current``."""
        feedback, self.feedback = self.feedback, None
        if not self.turn_count:
            await self.agenerate()
        elif feedback is not None and feedback.asks_for_replacements:
            await self.aregenerate(feedback)
        return self.items


class ReplayableScenarioSession(
    ReplayableItemSession[TestScenario], sessions.ScenarioGeneratorSession
):
    """The same for scenarios: a correction is put in place, a replacement takes its place."""

    scenarios = ReplayableItemSession.current
    ascenarios = ReplayableItemSession.acurrent

    def give_feedback(self, feedback: sessions.ItemFeedback[Any] | ScenarioFeedback) -> None:
        """Keep what was wrong for the next turn."""
        self.feedback = feedback


def conversation_in(
    session: sessions.GeneratorSession[Any] | sessions.ItemSession[Any],
) -> Conversation:
    """Return the conversation of a session; items are asked for once, and all else is feedback."""
    turns = session.history
    if isinstance(session, sessions.ItemSession):
        findings = [number > 0 and turn.role == "user" for number, turn in enumerate(turns)]
    else:
        findings = [turn.content.startswith(_WRONG) for turn in turns]
    return session.system, [*zip(turns, findings, strict=True)]


ReplayableSession = ReplayableGeneratorSession[Any] | ReplayableItemSession[Any]


class SessionMaker:
    """Makes the sessions of one test; the n-th call of a body called again gets the n-th."""

    def __init__(self, request: pytest.FixtureRequest, cassette: "CassetteRun") -> None:
        config = request.config
        self.tally = Tally()
        before, after = hooks_of(config)
        provider = TurnExchange(
            request.getfixturevalue("regen_provider"),
            before=before,
            after=after,
            log=self.tally.add,
            prices=partial(price_in, config),
        )
        self._defaults: dict[str, Any] = {
            "model": choices_of(config).model or DEFAULT_MODEL,
            "shared_budget": budget_of(config),
            "provider": provider,
        }
        self._sessions: list[tuple[object, Any]] = []
        """Each with what it was made from."""
        self._position = 0
        self._with_feedback: Sequence[ReplayableSession] = ()
        request.node.stash.setdefault(SESSION_MAKERS, []).append(self)
        request.addfinalizer(partial(self._warn_unrecorded, cassette, request.node.nodeid))

    def _warn_unrecorded(self, cassette: "CassetteRun", test: str) -> None:
        records = cassette.mode != "none" and not cassette.is_replay_only
        if records and self.tally.calls and not (cassette.recorded or cassette.played):
            warnings.warn(
                f"{test}: nothing was recorded, though {plural(self.tally.calls, 'turn')} took "
                "place; why: the provider of the project sends nothing over HTTP; next: leave "
                "--regen-record out, or let regen_provider return one that does",
                pytest.PytestWarning,
                stacklevel=2,
            )

    @property
    def sessions(self) -> tuple[ReplayableSession, ...]:
        """The sessions made so far."""
        return tuple(session for _, session in self._sessions)

    def rewind(self, feedback: Sequence[ReplayableSession]) -> None:
        """Prepare for the body being called again.

        Args:
            feedback: the sessions of the test, of whichever maker, that were given feedback.
        """
        self._position, self._with_feedback = 0, feedback
        for session in self.sessions:
            session.rewind()

    def _next(self, key: object, session: T) -> T:
        """Return the session that stood here before, if it was made from the same things.

        Raises:
            UsageError: it is another one, and the model would not hear what was wrong.
        """
        number, self._position = self._position, self._position + 1
        if number < len(self._sessions) and self._sessions[number][0] == key:
            earlier: T = self._sessions[number][1]
            return earlier
        if self._with_feedback and all(session.feedback for session in self._with_feedback):
            raise UsageError(
                f"session {number + 1} of the test differs from the one in the call that failed",
                why="the session that has the feedback is not used again: the model would "
                "never see it",
                hint="make the sessions of the test from the same arguments in every call",
            )
        # To the end, because those behind it were made by a body that went another way.
        self._sessions[number:] = [(key, session)]
        return session


class GeneratorSessionMaker(SessionMaker):
    """The fixture ``generator_session``."""

    def __call__(
        self, *, system: str, response: structured.Schema[T], **settings: Any
    ) -> ReplayableGeneratorSession[T]:
        """Return a session; arguments as ``GeneratorSession`` takes them, the provider given.

        Raises:
            UsageError: the body is called again and makes another session than before, see
                ``SessionMaker``.
        """
        adapter = structured.adapter_of(response)
        new: ReplayableGeneratorSession[T] = ReplayableGeneratorSession(
            system, adapter, **{**self._defaults, **settings}
        )
        # By what the model is shown of it: a type made in the body is another one in each call.
        session = self._next((system, structured.schema_to_prompt_hint(adapter)), new)
        # Not the class of the first call: an isinstance in the body would fail.
        session.set_response(adapter)
        return session


class ItemSessionMaker(SessionMaker):
    """The fixture ``item_session``."""

    def __call__(
        self, *, system: str, item: structured.Schema[T], **settings: Any
    ) -> ReplayableItemSession[T]:
        """Return a session; arguments as ``ItemSession`` takes them, the provider given.

        Raises:
            UsageError: the body is called again and makes another session than before, see
                ``SessionMaker``.
        """
        adapter = structured.adapter_of(item)
        new: ReplayableItemSession[T] = ReplayableItemSession(
            system, adapter, **{**self._defaults, **settings}
        )
        return self._next((system, structured.schema_to_prompt_hint(adapter)), new)


class ScenarioSessionMaker(SessionMaker):
    """The fixture ``scenario_session``."""

    def __call__(
        self,
        *,
        system: str,
        annotations: Iterable[sessions.ToolAnnotation],
        handwritten: Sequence[TestScenario] = (),
        **settings: Any,
    ) -> ReplayableScenarioSession:
        """Return a session; arguments as ``ScenarioGeneratorSession`` takes them.

        Raises:
            UsageError: the body is called again and makes another session than before, see
                ``SessionMaker``.
        """
        tools = tuple(annotations)
        settings = {**self._defaults, **settings}
        session = ReplayableScenarioSession(system, tools, handwritten, **settings)
        return self._next((system, tools, tuple(handwritten)), session)
