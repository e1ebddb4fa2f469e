"""An agent under test: what it sends while a scripted model answers it."""

import asyncio
import inspect
import json
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, Final

from pydantic_core import to_jsonable_python

from pytest_regen.canonical import canonical_json, text_hash
from pytest_regen.errors import UsageError
from pytest_regen.turns.background import run_in_background
from pytest_regen.turns.values import Message, Provider, Reply, TurnRequest

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True


AgentFactory = Callable[[Provider], Any]
"""Makes an agent that speaks through the provider it is given. The agent has ``turn(request)``, or
is itself a function of the request, a ``ClarificationRequest``; either may be asynchronous."""

Request = Mapping[str, Any]
"""A request to the model as JSON."""

ANY_MARK: Final = "00000000"
"""Stands in tokens that are compared with those of another mark."""
_MOST_CALLS: Final = 25
_SECONDS: Final = 0.5
"""How long one of two turns at once waits for the other."""


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

    def render(self, request: Request) -> str:
        """Return the finished text for a request."""
        return self.generate.replace("{digest}", text_hash(canonical_json(request))[7:19])


@dataclass(frozen=True, slots=True)
class Observed:
    """What an agent did in one turn."""

    requests: Sequence[Request]
    result: Any
    """As JSON; where it raised, what the error says."""
    asks: bool = False
    """Whether the result holds questions, as far as its form shows."""
    error: Exception | None = None

    @property
    def plain(self) -> Any:
        """Requests and result, for comparison."""
        return [*self.requests], self.result

    @property
    def prompt(self) -> str:
        """All that the first request says; empty where none was sent."""
        return text_of(self.requests[0]) if self.requests else ""

    @property
    def failure(self) -> str:
        """Why nothing can be seen of this turn; empty where it asked the model and ended."""
        if self.error is not None:
            return f"the second turn raises {type(self.error).__name__}: {self.error}"[:300]
        return "" if self.requests else "the second turn asks no model"


class ScriptEndError(BaseException):
    """Ends an agent that catches every exception and sends again."""


class Agent:
    """One agent, and the scripted model that it speaks to: the provider it is made with."""

    def __init__(self, make: AgentFactory, replies: Replies) -> None:
        self._replies = replies
        self._requests: list[Request] = []
        self._first: Iterator[str] = iter(())
        self._mark = ANY_MARK
        self._meeting: threading.Barrier | None = None
        agent = make(self)
        self._turn = agent.turn if hasattr(agent, "turn") else agent

    def send(self, request: TurnRequest) -> Reply:
        """Answer the agent with what the turn begins with, then with a finished text."""
        # A copy as JSON, because an agent may go on building the list that it sends.
        plain = self._plain(request)
        self._requests.append(plain)
        if len(self._requests) > _MOST_CALLS:
            raise ScriptEndError
        if self._meeting is not None:
            try:
                self._meeting.wait(_SECONDS)
            except threading.BrokenBarrierError:
                self._meeting = None  # One turn after the other, or as many calls as do not pair.
        return Reply(next(self._first, self._replies.render(plain)), model="scripted")

    async def asend(self, request: TurnRequest) -> Reply:
        """Answer as over a network: whatever else waits for its turn gets it."""
        await asyncio.sleep(0)
        return self.send(request)

    def take(self, request: Any, first: Iterable[str] = (), mark: str = ANY_MARK) -> Observed:
        """Let the agent take a turn; its deprecation warnings are not heeded.

        Args:
            request: of the turn.
            first: what the model replies before it writes.
            mark: of the tokens in the request; what is seen has ``ANY_MARK`` in its place.
        """
        requests: list[Request] = []
        self._requests, self._first, self._mark = requests, iter(first), mark
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                result = self._run(request)
        except AgentFormError:
            raise  # Because it is about how the checks call the agent, not what it sends.
        except Exception as error:  # noqa: BLE001 - whatever the agent raises is what it did
            return Observed(requests, self._plain(error), error=error)
        except ScriptEndError:
            # No error of the agent's, because it would go on for ever.
            return Observed(requests, None)
        plain = self._plain(result)
        asks = plain.get("needs_clarification") if isinstance(plain, dict) else None
        return Observed(requests, plain, bool(asks or getattr(result, "needs_clarification", None)))

    def take_at_once(self, requests: Sequence[Any], first: Iterable[str], mark: str) -> Any:
        """Let the agent take several turns at once; return requests, sorted, and results."""
        self._requests, self._first, self._mark = [], iter(first), mark
        is_async = inspect.iscoroutinefunction(self._turn)
        # Each waits in its calls until the others are there, because threads alone meet by luck.
        self._meeting = None if is_async else threading.Barrier(len(requests))

        def turn(request: Any) -> Any:
            return self._turn(request) if is_async else asyncio.to_thread(self._run, request)

        async def gather() -> Any:
            return await asyncio.gather(*map(turn, requests), return_exceptions=True)

        results = resolve(gather())
        return sorted(map(canonical_json, self._requests)), [*map(self._plain, results)]

    def _run(self, request: Any) -> Any:
        return resolve(self._turn(request))

    def _plain(self, value: object) -> Any:
        """Return a request, a result or an error as JSON, with ``ANY_MARK`` in its tokens."""
        plain = repr(value) if isinstance(value, BaseException) else plain_result(value)
        return json.loads(json.dumps(plain).replace(self._mark, ANY_MARK))


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
    return run_in_background(finish())


def completion(provider: Provider) -> Callable[[Sequence[Mapping[str, str]]], str]:
    """Return ``provider`` as a function from messages to text, which many agents expect.

    Messages are mappings with ``role`` and ``content``; those of role ``system`` become the system
    prompt.
    """
    return lambda messages: provider.send(request_of(messages)).text


def request_of(messages: Iterable[Mapping[str, Any]]) -> TurnRequest:
    """Return messages with ``role`` and ``content`` as a request."""
    systems, spoken = [], []
    for message in messages:
        if message["role"] in ("system", "developer"):
            systems.append(message["content"])
        else:
            is_agent = message["role"] == "assistant"
            spoken.append(Message("assistant" if is_agent else "user", message["content"]))
    return TurnRequest("\n\n".join(filter(None, systems)), tuple(spoken), model="", max_tokens=4096)


def text_of(request: Request) -> str:
    """Return all that a request says, system prompt first."""
    return "\n".join((request["system"], *(message["content"] for message in request["messages"])))


def readable(prompt: str) -> str:
    """Return a prompt with the usual escapes undone, so that tokens stand in it as they are."""
    # JSON, also as a string of JSON; Markdown; XML.
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), prompt)
    return unescape(_BACKSLASH.sub(r"\1", text))


_ESCAPE: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")
_BACKSLASH: Final = re.compile(r"\\([{},])")


def plain_result(result: object) -> Any:
    """Return the result of an agent as JSON, as far as it has such a form."""
    # Any other object by its type, because its address is another one in each process.
    return to_jsonable_python(
        result, by_alias=False, fallback=lambda value: type(value).__qualname__
    )


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
