"""An agent under test: what it sends while a scripted model answers it."""

import asyncio
import dataclasses
import inspect
import json
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_jsonable_python

from pytest_regen.canonical import canonical_json, text_hash
from pytest_regen.errors import UsageError
from pytest_regen.turns.values import Message, Provider, Reply, TurnRequest

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True


AgentFactory = Callable[[Provider], Any]
"""Makes an agent that speaks through the provider it is given. The agent has ``turn(request)``, or
is itself a function of the request, a ``ClarificationRequest``; either may be asynchronous."""

Request = Mapping[str, Any]
"""A request to the model as JSON."""
Script = Callable[[Request], str]
"""From a request to the text of its reply."""

_NOT_THEIRS: Final = ("<", str(Path(os.__file__).parent), str(Path(__file__).parents[1]))
_MOST_CALLS: Final = 25
_SECONDS: Final = 0.5
"""How long one of two turns at once waits for the other."""
_MOST_LINES: Final = 1_000
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


class _Model:
    """The provider of an agent under test: answers as the script of the turn says."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: Script | None = None
        self.meeting: threading.Barrier | None = None
        self.step: threading.Barrier | None = None
        self.lines = 0

    def meet(self, turns: int) -> None:
        """Let so many turns wait for each other in their calls, and after each line by line."""

        def go_on() -> None:
            self.step, self.lines = threading.Barrier(turns), 0

        self.meeting = threading.Barrier(turns, go_on)

    def send(self, request: TurnRequest) -> Reply:
        if self.script is None:
            raise AssertionError("the agent sends outside of a turn")
        # A copy as JSON, because an agent may go on building the list that it sends.
        plain = json.loads(json.dumps(dataclasses.asdict(request)))
        self.requests.append(plain)
        if len(self.requests) > _MOST_CALLS:
            raise ScriptEndError
        if self.meeting is not None:
            try:
                self.meeting.wait(_SECONDS)
            except threading.BrokenBarrierError:
                self.meeting = None  # One turn after the other, or as many calls as do not pair.
        return Reply(self.script(plain), model="scripted")

    async def asend(self, request: TurnRequest) -> Reply:
        # As over a network: whatever else waits for its turn gets it.
        await asyncio.sleep(0)
        return self.send(request)

    def give_way(self, frame: Any, _event: str, _value: object) -> Any:
        """Trace a thread: let it wait for the other at each line of the agent's own code."""
        if not is_own_code(frame.f_code.co_filename):
            return None
        self.lines += 1
        # Because what a turn keeps in ``self`` is lost between two lines, where threads alone
        # hardly ever change places. Not for ever, because some agents run through long loops.
        if self.step is not None and self.lines < _MOST_LINES:
            try:
                self.step.wait(_SECONDS / 10)
            except threading.BrokenBarrierError:
                self.step = None
        return self.give_way


class Agent:
    """One agent, and the scripted model that it speaks to."""

    def __init__(self, make: AgentFactory) -> None:
        self._model = _Model()
        agent = make(self._model)
        self._turn = agent.turn if hasattr(agent, "turn") else agent

    def take(self, request: Any, script: Script) -> Observed:
        """Let the agent take a turn; its deprecation warnings are not heeded."""
        requests: list[Request] = []
        self._model.requests, self._model.script = requests, script
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                result = resolve(self._turn(request))
        except AgentFormError:
            raise  # Because it is about how the checks call the agent, not what it sends.
        except Exception as error:  # noqa: BLE001 - whatever the agent raises is what it did
            return Observed(requests, repr(error), error=error)
        except ScriptEndError:
            # No error of the agent's, because it would go on for ever.
            return Observed(requests, None)
        plain = plain_result(result)
        asks = plain.get("needs_clarification") if isinstance(plain, dict) else None
        return Observed(requests, plain, bool(asks or getattr(result, "needs_clarification", None)))

    def take_at_once(self, requests: Sequence[Any], script: Script) -> Any:
        """Let the agent take two turns at once; return requests, sorted, and both results.

        Raises:
            TimeoutError: they do not end.
        """
        self._model.requests, self._model.script = [], script

        async def gather() -> Any:
            turns = (self._turn(request) for request in requests)
            return await asyncio.gather(*turns, return_exceptions=True)

        def in_small_steps(request: Any) -> Any:
            # Of this thread alone, because a debugger may trace the others.
            sys.settrace(self._model.give_way)
            return resolve(self._turn(request))

        if inspect.iscoroutinefunction(self._turn):
            (both,) = in_threads([lambda: asyncio.run(gather())], _PATIENCE)
            results = both.result()
        else:
            # Each waits in its calls until the other is there, because threads alone meet by luck.
            self._model.meet(len(requests))
            turns = [partial(in_small_steps, request) for request in requests]
            futures = in_threads(turns, _PATIENCE)
            results = [future.exception() or future.result() for future in futures]
        plain = [
            repr(result) if isinstance(result, Exception) else plain_result(result)
            for result in results
        ]
        return sorted(map(canonical_json, self._model.requests)), plain


def is_own_code(file: str) -> bool:
    """Return whether a file is neither of Python, nor installed, nor ours."""
    return "site-packages" not in file and not file.startswith(_NOT_THEIRS)


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
    (future,) = in_threads([lambda: asyncio.run(finish())])
    return future.result()


def in_threads(
    calls: Sequence[Callable[[], Any]], seconds: float | None = None
) -> list[Future[Any]]:
    """Return calls that ran at once.

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
    return results


def completion(provider: Provider) -> Callable[[Sequence[Mapping[str, str]]], str]:
    """Return ``provider`` as a function from messages to text, which many agents expect.

    Messages are mappings with ``role`` and ``content``; those of role ``system`` become the system
    prompt.
    """
    return lambda messages: provider.send(request_of(messages)).text


def request_of(messages: Sequence[Mapping[str, Any]], system: str = "") -> TurnRequest:
    """Return messages with ``role`` and ``content`` as a request."""
    systems, spoken = [system], []
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

    def __reduce__(self) -> tuple[object, ...]:
        return ContextLossError, (self.check, self.summary, self.findings)
