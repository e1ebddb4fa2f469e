"""An agent under test: what it sends while a scripted model answers it."""

import asyncio
import dataclasses
import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from pytest_regen.canonical import canonical_json, text_hash
from pytest_regen.context.agent import prompt_of
from pytest_regen.context.requests import ClarificationRequest
from pytest_regen.context.values import Ask, ConversationContext
from pytest_regen.testing.canaries import RequestWith, new_mark
from pytest_regen.turns.values import Message, Provider, Reply, TurnRequest

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True


AgentFactory = Callable[[Provider], Any]
"""Makes an agent that speaks through the provider it is given. The agent has ``turn(request)``, or
is itself a function of the request, a ``ClarificationRequest``; either may be asynchronous."""

ScriptFunction = Callable[[int, TurnRequest], str]
"""From the number of a call, counted from 1, and its request to the reply's text."""

_DIGEST: Final = "{digest}"
_MOST_CALLS: Final = 25


@dataclass(frozen=True, slots=True)
class Replies:
    """What the scripted model says, in the form that the agent under test reads.

    The defaults are of the form that ``ClarifyingAgent`` reads.
    """

    generate: str = (
        '{"needs_clarification": false, "subject_line": "Campaign {digest}", '
        '"core_message": "They must act."}'
    )
    """A finished text. ``{digest}`` becomes a hash of the request, so that two answers are equal
    only where the requests were."""
    ask: str = (
        '{"needs_clarification": true, "clarification_questions": [{"id": "again", '
        '"question": "Is there more?", "type": "open_text"}], "inferred_context": {}}'
    )
    """A question."""
    unusable: tuple[str, ...] = ("", "I cannot say.", '{"needs_clarification": false}')
    """Replies that hold neither."""

    def render(self, request: TurnRequest, *, mark: str = "", instead: str = "") -> str:
        """Return the finished text for a request, as if ``instead`` stood in place of ``mark``."""
        text = canonical_json(plain_request(request))
        text = text.replace(mark, instead) if mark else text
        return self.generate.replace(_DIGEST, text_hash(text)[7:19])


@dataclass(frozen=True, slots=True)
class Observed:
    """What an agent did in one turn."""

    requests: tuple[TurnRequest, ...]
    result: Any
    """``None`` where it raised."""
    error: Exception | None
    ran_away: bool
    """Whether it was stopped, because it would have gone on sending."""

    @property
    def wire(self) -> list[dict[str, Any]]:
        """The requests as JSON."""
        return [plain_request(request) for request in self.requests]

    @property
    def text(self) -> str:
        """All that the first request says; empty where none was sent."""
        return text_of(self.requests[0]) if self.requests else ""


class _Enough(BaseException):
    """Ends an agent that catches every exception and sends again."""


class _Listener:
    def __init__(self, script: ScriptFunction) -> None:
        self.requests: list[TurnRequest] = []
        self._script = script

    def send(self, request: TurnRequest) -> Reply:
        self.requests.append(request)
        if len(self.requests) > _MOST_CALLS:
            raise _Enough
        return Reply(self._script(len(self.requests), request), model="scripted")

    async def asend(self, request: TurnRequest) -> Reply:
        return self.send(request)


class _Switch:
    """A provider whose listener changes from turn to turn, while the agent stays."""

    def __init__(self) -> None:
        self.listener: _Listener | None = None

    def send(self, request: TurnRequest) -> Reply:
        if self.listener is None:
            raise AssertionError("the agent sends outside of a turn")
        return self.listener.send(request)

    async def asend(self, request: TurnRequest) -> Reply:
        return self.send(request)


def observe(make: AgentFactory) -> Callable[[ClarificationRequest, ScriptFunction], Observed]:
    """Make an agent; return a function that lets it take a turn and tells what it did.

    Deprecation warnings of the agent are not heeded.
    """
    switch = _Switch()
    agent = make(switch)
    turn = agent.turn if hasattr(agent, "turn") else agent

    def take(request: ClarificationRequest, script: ScriptFunction) -> Observed:
        listener = switch.listener = _Listener(script)
        result, error, ran_away = None, None, False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                result = resolve(turn(request))
        except Exception as raised:  # noqa: BLE001 - whatever the agent raises is what it did
            error = raised
        except _Enough:
            ran_away = True
        return Observed(tuple(listener.requests), result, error, ran_away)

    return take


def resolve(result: Any) -> Any:
    """Return what an agent returned, awaited where it is asynchronous."""
    if not inspect.isawaitable(result):
        return result

    async def wait() -> Any:
        return await result

    # A thread has no event loop yet, whatever runs in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, wait()).result()


def completion(provider: Provider) -> Callable[[Sequence[Mapping[str, str]]], str]:
    """Return ``provider`` as a function from messages to text, which many agents expect.

    Messages are mappings with ``role`` and ``content``; those of role ``system`` become the system
    prompt.
    """

    def complete(messages: Sequence[Mapping[str, str]]) -> str:
        system = [m["content"] for m in messages if m["role"] == "system"]
        spoken = tuple(
            Message("assistant" if m["role"] == "assistant" else "user", m["content"])
            for m in messages
            if m["role"] != "system"
        )
        request = TurnRequest("\n\n".join(system), spoken, model="", max_tokens=4_096)
        return provider.send(request).text

    return complete


def text_of(request: TurnRequest) -> str:
    """Return all that a request says, system prompt first."""
    return "\n".join((request.system, *(message.content for message in request.messages)))


def plain_request(request: TurnRequest) -> dict[str, Any]:
    """Return a request as JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(request)))
    return plain


def plain_result(result: object) -> Any:
    """Return the result of an agent as JSON, as far as it has such a form."""
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json")
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return plain_result(dataclasses.asdict(result))
    if isinstance(result, Mapping):
        return {str(key): plain_result(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return [plain_result(value) for value in result]
    if result is None or isinstance(result, str | int | float | bool):
        return result
    return type(result).__qualname__


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


def writing(replies: Replies) -> ScriptFunction:
    """Return the script of a model that writes at once."""
    return lambda _, request: replies.render(request)


def bad_at_first(bad: str, replies: Replies) -> ScriptFunction:
    """Return the script of a model that writes only when it is asked again."""
    return lambda number, request: bad if number == 1 else replies.render(request)


def first_text(check: str, seen: Observed) -> str:
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

    def observe(self, request_with: RequestWith, mark: str = "") -> Observed:
        """Return what a new instance does with a request made with a new mark."""
        return observe(self._make)(request_with(mark or new_mark()), writing(self._replies))

    def text(self, request_with: RequestWith) -> str:
        """Return what a new instance sends at first, with ``ANY_MARK`` in every token."""
        mark = new_mark()
        return self.observe(request_with, mark).text.replace(mark, ANY_MARK)

    def plain(self, request_with: RequestWith, mark: str = "") -> Any:
        """Return requests and result of such a turn as JSON, with ``ANY_MARK`` in every token."""
        mark = mark or new_mark()
        return self.without_mark(observe(self._make)(request_with(mark), self.script(mark)), mark)

    def script(self, mark: str) -> ScriptFunction:
        """Return the script of a model whose reply does not depend on the mark of its request."""
        return lambda _, request: self._replies.render(request, mark=mark, instead=ANY_MARK)

    @staticmethod
    def without_mark(seen: Observed, mark: str) -> Any:
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
        clock, and the requests are not compared: another check does that.
        """
        for mark in ("", new_mark()):
            before, between, after = (self.plain(request, mark) for request in (one, other, one))
            if before == after:
                return bool(before != between)
        return False


def is_questions(result: object) -> bool:
    """Return whether an agent's result holds questions, as far as its form shows."""
    if isinstance(result, Mapping):
        return bool(result.get("needs_clarification"))
    return isinstance(result, Ask) or bool(getattr(result, "needs_clarification", False))


class _Agent:
    """An agent without a fault, and the places where one may be put in."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def turn(self, request: ClarificationRequest) -> dict[str, Any]:
        """Take one turn, asking the model at most twice."""
        prompt = self.prompt(request)
        found = self._ask(prompt)
        if not self.is_fine(found, request):
            found = self._ask(self.prompt_again(prompt, request))
        if not self.is_fine(found, request):
            raise ValueError("the model gives no text")
        return found

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the prompt of the second turn."""
        return prompt_of(request)

    def prompt_again(self, prompt: str, request: ClarificationRequest) -> str:
        """Return the prompt of a retry."""
        del request
        return f"{prompt}\n\nYou have to write now."

    def is_fine(self, found: Mapping[str, Any], request: ClarificationRequest) -> bool:
        """Return whether a reply may be returned."""
        asks = bool(found.get("clarification_questions")) and not request.is_second_turn
        return asks or bool(found.get("subject_line"))

    def _ask(self, prompt: str) -> dict[str, Any]:
        message = Message("user", prompt)
        reply = self._provider.send(TurnRequest("You write subject lines.", (message,), "", 1_000))
        try:
            found = json.loads(reply.text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class AnswersOnly(_Agent):
    """Sends the answers without what was asked: the fault that the requirement is about."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the answers."""
        if request.conversation_context is None:
            return prompt_of(request)
        answers = request.conversation_context.model_dump(mode="json")["answers"]
        return f"The user answered: {json.dumps(answers)}. Write the subject line."


class SwappedAnswers(_Agent):
    """Gives one question's answer to the other."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the prompt with the answers of two questions of one type exchanged."""
        context = request.conversation_context
        if context is not None and len({answer.kind for answer in context.answers.values()}) == 1:
            answers = context.model_dump(mode="json")["answers"]
            swapped = dict(zip(answers, reversed(answers.values()), strict=True))
            request = request.with_context(context.with_answers(swapped))
        return prompt_of(request)


class ForgetfulRetry(_Agent):
    """Drops the context exactly where a reply has to be recovered."""

    def prompt_again(self, prompt: str, request: ClarificationRequest) -> str:
        """Return the description."""
        del prompt
        return f"Write a subject line now, for {json.dumps(request.message)}."


class GlobalMemory(_Agent):
    """Remembers, for the whole process, what others wrote."""

    seen: Final[dict[str, None]] = {}

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the prompt and what other conversations were about."""
        others = [text for text in self.seen if text != request.message]
        self.seen[request.message] = None
        return f"{prompt_of(request)}\n\nOthers wrote: {json.dumps(others)}"


class UnescapedRenderer(_Agent):
    """Pastes texts into the prompt as they are."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return every leaf, as it came."""
        context = request.conversation_context
        return prompt_of(request) if context is None else "\n".join(_paste_answers(context))


def _paste_answers(context: ConversationContext) -> Iterator[str]:
    wire = context.model_dump(mode="json")
    yield f"## Original Issue\n{wire['original_description']}\n\n## Questions I Asked"
    for question in wire["questions_asked"]:
        yield f"- {_flat(question)}"
    yield "\n## User's Clarifications"
    for key, answer in wire["answers"].items():
        yield f"- {key}: {_flat(answer)}"
    yield f"\n## My Previous Analysis\n- {_flat(wire['inferred_context'])}"


def _flat(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_flat(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_flat, value))
    return str(value)


class LegacyFirst(_Agent):
    """Looks at the legacy fields before the context."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the legacy prompt, where there are legacy answers."""
        if request.clarification_answers is not None:
            return prompt_of(request.model_copy(update={"conversation_context": None}))
        return prompt_of(request)


class AsksForEver(_Agent):
    """Hands on whatever the model asks, on every turn."""

    def is_fine(self, found: Mapping[str, Any], request: ClarificationRequest) -> bool:
        """Return whether there is anything in it."""
        del request
        return bool(found.get("clarification_questions") or found.get("subject_line"))


class HelplessWithoutAnswers(_Agent):
    """Cannot go on when a person skips."""

    def prompt(self, request: ClarificationRequest) -> str:
        """Return the prompt, if there are answers."""
        context = request.conversation_context
        if context is not None and not context.answers:
            raise KeyError("answers")
        return prompt_of(request)


KNOWN_BAD: Final[Mapping[str, AgentFactory]] = {
    "carries_full_context": AnswersOnly,
    "answers_in_place": SwappedAnswers,
    "stateless": GlobalMemory,
    "legacy_ignored": LegacyFirst,
    "retry_keeps_context": ForgetfulRetry,
    "reasking_bounded": AsksForEver,
    "skip_works": HelplessWithoutAnswers,
    "structure_holds": UnescapedRenderer,
}
"""By the name of the one check that the agent fails; it passes all the others."""
