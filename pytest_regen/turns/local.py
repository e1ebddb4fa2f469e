"""Providers that reach no network: a function, a script, a placeholder."""

import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from pytest_regen.errors import ProviderError, TransportError, UsageError
from pytest_regen.turns.driving import in_thread
from pytest_regen.turns.values import Reply, TurnRequest

__all__ = ["CallableProvider", "DryRunProvider", "ScriptedProvider"]

ScriptLine = str | Reply | Exception


class CallableProvider:
    """Makes a provider of a function from messages to text.

    Args:
        fn: takes a list of ``{"role": ..., "content": ...}``, the system prompt first where there
            is one, and returns the reply's text, or a ``Reply``. It may be a coroutine function;
            then only ``asend`` can be used.
        model: name that replies carry; by default the function's own, as ``module:name``.
    """

    def __init__(
        self,
        fn: Callable[[list[dict[str, str]]], "str | Reply | Awaitable[str | Reply]"],
        *,
        model: str = "",
    ) -> None:
        if not callable(fn):
            raise UsageError(
                f"{fn!r} cannot be called",
                hint="pass a function that takes a list of messages and returns text",
            )
        self._fn = fn
        self._model = model

    @property
    def is_async(self) -> bool:
        """Whether the function is asynchronous; a plain one is called in a thread by ``asend``."""
        return inspect.iscoroutinefunction(self._fn)

    @property
    def reference(self) -> str:
        """The function, as ``module:name``; of an object that can be called, its class."""
        fn: object = self._fn
        while isinstance(fn, functools.partial):
            fn = fn.func
        named = fn if hasattr(fn, "__qualname__") else type(fn)
        return f"{getattr(named, '__module__', None) or '?'}:{named.__qualname__}"

    def send(self, request: TurnRequest) -> Reply:
        """Return what the function says.

        Raises:
            ProviderError: the function raised, or returned something else than text.
        """
        said = self._called(request)
        if inspect.isawaitable(said):
            if inspect.iscoroutine(said):
                said.close()
            raise UsageError(
                f"{self._name} is asynchronous",
                why="send() was used, which cannot wait for it",
                hint="pass a plain function, or use asend()",
            )
        return self._reply(said)

    async def asend(self, request: TurnRequest) -> Reply:
        """Return what the function says, awaited if need be; raises as ``send`` does.

        A plain function is called in a thread: in the event loop it would block all else, and
        Ctrl-C would wait for it.
        """
        said = self._called(request) if self.is_async else await in_thread(self._called, request)
        if inspect.isawaitable(said):
            try:
                said = await said
            except Exception as error:
                raise self._failed(error) from error
        return self._reply(said)

    def _called(self, request: TurnRequest) -> object:
        messages = [{"role": "system", "content": request.system}] if request.system else []
        messages += [{"role": m.role, "content": m.content} for m in request.messages]
        try:
            return self._fn(messages)
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> Exception:
        if isinstance(error, ProviderError):
            return error
        return TransportError(
            f"{self._name} raised {type(error).__name__}",
            why=str(error),
            hint="the function given as provider must return the reply's text; fix it, then "
            "run again",
        )

    def _reply(self, said: object) -> Reply:
        if isinstance(said, Reply):
            return said if said.model else replace(said, model=self._model or self.reference)
        if isinstance(said, str):
            # Nobody said why the text ended, nor which model wrote it.
            return Reply(said, stop_reason="", model=self._model or self.reference)
        raise TransportError(
            f"{self._name} returned {type(said).__name__}",
            why="a provider function returns the reply's text, or a Reply",
            hint="return a str",
        )

    @property
    def _name(self) -> str:
        return getattr(self._fn, "__qualname__", type(self._fn).__name__)


class ScriptedProvider:
    """Answers from a script, for tests.

    Args:
        replies: what to answer, in order; or a function of the request. A string becomes a reply
            that ended by itself, an exception is raised.

    Attributes:
        requests: every request received, in order.
    """

    reference = "script"
    """What stands for a model where outputs say who wrote them."""

    def __init__(self, replies: Iterable[ScriptLine] | Callable[[TurnRequest], ScriptLine]) -> None:
        if isinstance(replies, str):
            raise UsageError(
                "the script is one string",
                why="each of its letters would be a reply",
                hint="pass a list: ScriptedProvider([text])",
            )
        self._answers = replies if callable(replies) else None
        self._lines = [] if callable(replies) else list(replies)
        self._lock = threading.Lock()
        self.requests: list[TurnRequest] = []

    def send(self, request: TurnRequest) -> Reply:
        """Return the next reply of the script.

        Raises:
            ProviderError: the script is used up.
        """
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        line = self._answers(request) if self._answers else self._line(number)
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, Reply) else Reply(line, model=self.reference)

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the next reply of the script; raises as ``send`` does."""
        return self.send(request)

    def _line(self, number: int) -> ScriptLine:
        if number <= len(self._lines):
            return self._lines[number - 1]
        raise ProviderError(
            f"the script has {len(self._lines)} replies, and request {number} asks for another",
            hint="add a reply to the script, or find out who asks once more",
        )


class DryRunProvider:
    """Answers every request with a placeholder that says that no code was generated."""

    reference = "dry-run"
    """What stands for a model of the API where outputs say who wrote them."""

    def send(self, request: TurnRequest) -> Reply:
        """Return the placeholder."""
        asked = len(request.system) + sum(len(m.content) for m in request.messages)
        return Reply(
            "// DRY RUN: no model was asked and no code was generated.\n"
            f"// The request has {len(request.messages)} message(s), {asked:,} characters in all.",
            model="dry-run",
        )

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the placeholder."""
        return self.send(request)
