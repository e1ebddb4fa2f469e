"""Somebody's agent under observation: what it sends while a scripted model answers it."""

import asyncio
import dataclasses
import inspect
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from pytest_regen.canonical import canonical_json, text_hash
from pytest_regen.context.requests import ClarificationRequest
from pytest_regen.turns.values import Message, Provider, Reply, TurnRequest

__all__ = [
    "AgentFactory",
    "Observed",
    "Replies",
    "completed",
    "completion",
    "observe",
    "plain_request",
    "plain_result",
    "text_of",
]

AgentFactory = Callable[[Provider], Any]
"""Makes an agent that speaks through the provider it is given. The agent has ``turn(request)``, or
is itself a function of the request, a ``ClarificationRequest``; either may be asynchronous."""

Script = Callable[[int, TurnRequest], str]
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

    def written(self, request: TurnRequest, *, mark: str = "", instead: str = "") -> str:
        """Return the finished text for a request, as if ``instead`` stood in place of ``mark``."""
        said = canonical_json(plain_request(request))
        said = said.replace(mark, instead) if mark else said
        return self.generate.replace(_DIGEST, text_hash(said)[7:19])


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
    def __init__(self, script: Script) -> None:
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


def observe(make: AgentFactory) -> Callable[[ClarificationRequest, Script], Observed]:
    """Make an agent; return a function that lets it take a turn and tells what it did.

    Deprecation warnings of the agent are not heeded.
    """
    switch = _Switch()
    agent = make(switch)
    turn = agent.turn if hasattr(agent, "turn") else agent

    def take(request: ClarificationRequest, script: Script) -> Observed:
        listener = switch.listener = _Listener(script)
        result, error, ran_away = None, None, False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                result = completed(turn(request))
        except Exception as raised:  # noqa: BLE001 - whatever the agent raises is what it did
            error = raised
        except _Enough:
            ran_away = True
        return Observed(tuple(listener.requests), result, error, ran_away)

    return take


def completed(result: Any) -> Any:  # noqa: ANN401 - what an agent returns
    """Return what an agent returned, awaited where it is asynchronous."""
    if not inspect.isawaitable(result):
        return result

    async def wait() -> Any:  # noqa: ANN401 - as above
        return await result

    # A thread has no event loop yet, whatever runs in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, wait()).result()


def completion(provider: Provider) -> Callable[[Sequence[Mapping[str, str]]], str]:
    """Return ``provider`` as a function from messages to text, for agents that call such a one.

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


def plain_result(result: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return what an agent returned as JSON, as far as it can be told."""
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
