"""An agent under test: what it sends while a scripted model answers it."""

import asyncio
import dataclasses
import inspect
import json
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from html import unescape
from typing import Any, Final

from pydantic import BaseModel

from pytest_regen.canonical import canonical_json, text_hash
from pytest_regen.context.values import Ask
from pytest_regen.errors import UsageError
from pytest_regen.turns.values import Message, Provider, Reply, TurnRequest

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True


AgentFactory = Callable[[Provider], Any]
"""Makes an agent that speaks through the provider it is given. The agent has ``turn(request)``, or
is itself a function of the request, a ``ClarificationRequest``; either may be asynchronous."""

Script = Callable[[int, TurnRequest], str]
"""From the number of a call, counted from 1, and its request to the reply's text."""

_DIGEST: Final = "{digest}"
_MOST_CALLS: Final = 25
_SECONDS: Final = 0.5
"""How long one of two turns at once waits for the other."""
_PATIENCE: Final = 10
"""Seconds for two turns at once, which take milliseconds unless one blocks the other."""


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

    @property
    def prompt(self) -> str:
        """All that the first request says; empty where none was sent."""
        return text_of(self.requests[0]) if self.requests else ""


class ScriptEndError(BaseException):
    """Ends an agent that catches every exception and sends again."""


class _Model:
    """The provider of an agent under test: answers as the script of the turn says."""

    def __init__(self) -> None:
        self.requests: list[TurnRequest] = []
        self.script: Script | None = None
        self.meeting: threading.Barrier | None = None

    def send(self, request: TurnRequest) -> Reply:
        if self.script is None:
            raise AssertionError("the agent sends outside of a turn")
        self.requests.append(request)
        number = len(self.requests)
        if number > _MOST_CALLS:
            raise ScriptEndError
        if self.meeting is not None:
            try:
                self.meeting.wait(_SECONDS)
            except threading.BrokenBarrierError:
                self.meeting = None  # One turn after the other, or as many calls as do not pair.
        return Reply(self.script(number, request), model="scripted")

    async def asend(self, request: TurnRequest) -> Reply:
        # As over a network: whatever else waits for its turn gets it.
        await asyncio.sleep(0)
        return self.send(request)


class Agent:
    """One agent, and the scripted model that it speaks to."""

    def __init__(self, make: AgentFactory) -> None:
        self._model = _Model()
        agent = make(self._model)
        self._turn = agent.turn if hasattr(agent, "turn") else agent

    def take(self, request: Any, script: Script) -> Observed:
        """Let the agent take a turn; its deprecation warnings are not heeded."""
        self._begin(script)
        result, error = self._outcome(request)
        return Observed(tuple(self._model.requests), result, error)

    def take_at_once(self, requests: Sequence[Any], script: Script) -> Any:
        """Let the agent take two turns at once; return requests, in order, and both outcomes.

        Raises:
            TimeoutError: they do not end.
        """
        self._begin(script)

        async def gather() -> Any:
            turns = (self._turn(request) for request in requests)
            return await asyncio.gather(*turns, return_exceptions=True)

        outcomes: list[tuple[Any, Exception | None]]
        if inspect.iscoroutinefunction(self._turn):
            (results,) = in_threads([lambda: asyncio.run(gather())], _PATIENCE)
            outcomes = [
                (None, result) if isinstance(result, Exception) else (result, None)
                for result in results
            ]
        else:
            # Each waits in its calls until the other is there, because threads alone meet by luck.
            self._model.meeting = threading.Barrier(len(requests))
            turns = [partial(self._outcome, request) for request in requests]
            outcomes = in_threads(turns, _PATIENCE)
            self._model.meeting = None
        plain = (plain_turn(Observed((), *outcome))[1] for outcome in outcomes)
        return sorted(map(canonical_json, map(plain_request, self._model.requests))), [*plain]

    def _begin(self, script: Script) -> None:
        self._model.requests, self._model.script = [], script

    def _outcome(self, request: Any) -> tuple[Any, Exception | None]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                return resolve(self._turn(request)), None
        except AgentFormError:
            raise
        except Exception as raised:  # noqa: BLE001 - whatever the agent raises is what it did
            return None, raised
        except ScriptEndError:
            return None, None


class AgentFormError(UsageError):
    """An agent has a form that the checks cannot use."""


def resolve(result: Any) -> Any:
    """Return what an agent returned, awaited where it is asynchronous.

    Raises:
        AgentFormError: it yields its result in parts.
    """
    if inspect.isasyncgen(result) or inspect.isgenerator(result):
        raise AgentFormError(
            f"the agent's turn returns {type(result).__name__.replace('_', ' ')}, not a result",
            why="a turn that streams runs only as far as it is read",
            hint="wrap it: async def turn(request): return [part async for part in ask(request)]",
        )
    if not inspect.isawaitable(result):
        return result

    async def finish() -> Any:
        return await result

    # In a thread, because an event loop may run in this one already.
    return in_threads([lambda: asyncio.run(finish())])[0]


def in_threads(calls: Sequence[Callable[[], Any]], seconds: float | None = None) -> list[Any]:
    """Return the results of calls that run at once.

    Raises:
        TimeoutError: one does not end in so many seconds.
    """
    results: list[Future[Any]] = [Future() for _ in calls]

    def run(call: Callable[[], Any], result: Future[Any]) -> None:
        try:
            result.set_result(call())
        except BaseException as raised:  # noqa: BLE001 - raised again by whoever waits
            result.set_exception(raised)

    for call, result in zip(calls, results, strict=True):
        # No executor, because Python would wait for its threads in the end, blocked ones too.
        threading.Thread(target=run, args=(call, result), daemon=True).start()
    if wait(results, seconds).not_done:
        raise TimeoutError
    return [result.result() for result in results]


def completion(provider: Provider) -> Callable[[Sequence[Mapping[str, str]]], str]:
    """Return ``provider`` as a function from messages to text, which many agents expect.

    Messages are mappings with ``role`` and ``content``; those of role ``system`` become the system
    prompt.
    """

    def complete(messages: Sequence[Mapping[str, str]]) -> str:
        return provider.send(request_of(messages)).text

    return complete


def request_of(messages: Sequence[Mapping[str, Any]], system: str = "") -> TurnRequest:
    """Return messages with ``role`` and ``content`` as a request."""
    is_system = [message["role"] in ("system", "developer") for message in messages]
    pairs = [*zip(messages, is_system, strict=True)]
    systems = [system, *(message["content"] for message, is_one in pairs if is_one)]
    spoken = tuple(
        Message("assistant" if message["role"] == "assistant" else "user", message["content"])
        for message, is_one in pairs
        if not is_one
    )
    return TurnRequest("\n\n".join(filter(None, systems)), spoken, model="", max_tokens=4_096)


def text_of(request: TurnRequest) -> str:
    """Return all that a request says, system prompt first."""
    return "\n".join((request.system, *(message.content for message in request.messages)))


def readable(prompt: str) -> str:
    """Return a prompt with the usual escapes undone, so that tokens stand in it as they are."""
    # JSON, also as a string of JSON; Markdown; XML.
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), prompt)
    return unescape(_BACKSLASH.sub(r"\1", text))


_ESCAPE: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")
_BACKSLASH: Final = re.compile(r"\\([{},])")


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


def plain_turn(seen: Observed) -> tuple[Any, Any]:
    """Return requests and result as JSON, for comparison."""
    result = repr(seen.error) if seen.error else plain_result(seen.result)
    return [plain_request(request) for request in seen.requests], result


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
    return lambda _, request: replies.render(request)


def is_questions(result: object) -> bool:
    """Return whether an agent's result holds questions, as far as its form shows."""
    if isinstance(result, Mapping):
        return bool(result.get("needs_clarification"))
    return isinstance(result, Ask) or bool(getattr(result, "needs_clarification", False))
