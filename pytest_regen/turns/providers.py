"""Providers without a network (a function, a script, a placeholder), and those that are named."""

import functools
import inspect
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from pytest_regen.errors import (
    MissingKeyError,
    NoTemplateError,
    ProviderError,
    TransportError,
    UsageError,
)
from pytest_regen.modes import SERVICES, TEMPLATE, split_provider
from pytest_regen.turns.anthropic import AnthropicProvider
from pytest_regen.turns.interception import current_interceptor
from pytest_regen.turns.steps import in_thread
from pytest_regen.turns.values import Provider, Reply, TurnRequest
from pytest_regen.turns.wire import in_brief

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
        answer = self._call(request)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise UsageError(
                f"{self._name} is asynchronous",
                why="send() was used, which cannot wait for it",
                hint="pass a plain function, or use asend()",
            )
        return self._reply(answer)

    async def asend(self, request: TurnRequest) -> Reply:
        """Return what the function returns, awaited if need be; raises as ``send`` does.

        A plain function is called in a thread: in the event loop it would block all else, and
        Ctrl-C would wait for it.
        """
        answer = self._call(request) if self.is_async else await in_thread(self._call, request)
        if inspect.isawaitable(answer):
            try:
                answer = await answer
            except Exception as error:
                raise self._failure(error) from error
        return self._reply(answer)

    def _call(self, request: TurnRequest) -> object:
        messages = [{"role": "system", "content": request.system}] if request.system else []
        messages += [{"role": m.role, "content": m.content} for m in request.messages]
        try:
            return self._fn(messages)
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Exception:
        if isinstance(error, ProviderError):
            return error
        return TransportError(
            f"{self._name} raised {type(error).__name__}",
            why=in_brief(str(error)),
            hint="the function given as provider must return the reply's text; fix it, then "
            "run again",
        )

    def _reply(self, answer: object) -> Reply:
        if isinstance(answer, Reply):
            return answer if answer.model else replace(answer, model=self._model or self.reference)
        if isinstance(answer, str):
            # A plain text says neither why it ended nor which model wrote it.
            return Reply(answer, stop_reason="", model=self._model or self.reference)
        raise TransportError(
            f"{self._name} returned {type(answer).__name__}",
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
    asks_cassettes = True
    """Nothing is sent, so that no HTTP client need be patched for a replay."""

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


class TemplateProvider:
    """Stands for no model: types of an API are written by their language, free of charge.

    Code that asks for a page of a type calls ``Language.write_page`` in its place, for a template
    needs the type and not the words of a prompt. There is nothing else that it could answer.
    """

    reference = TEMPLATE
    """What stands for a model where outputs say who wrote them."""
    asks_cassettes = True

    def send(self, request: TurnRequest) -> Reply:
        """Refuse.

        Raises:
            NoTemplateError: always.
        """
        del request
        raise no_template("this turn")

    async def asend(self, request: TurnRequest) -> Reply:
        """Refuse; raises as ``send`` does."""
        return self.send(request)


def no_template(what: str) -> NoTemplateError:
    """Return the error of something that only a model can write."""
    return NoTemplateError(
        f"the template cannot write {what}",
        why="it writes the types of an API only, as their language spells them",
        hint="ask a model for it: leave the provider 'template' out, or name another one",
    )


_FORM = (
    f"{', '.join(f'{service}:MODEL' for service in SERVICES)}, template, or module:attribute, for "
    "example tests.models:my_provider"
)


def provider_from_environment(
    model: str | None = None, *, max_retries: int = 2, timeout: float = 600.0
) -> AnthropicProvider:
    """Return the provider that ``ANTHROPIC_API_KEY`` and ``ANTHROPIC_BASE_URL`` describe.

    Raises:
        MissingKeyError: no key is set, and no cassette in use replays without one.
    """
    require_api_key()
    return AnthropicProvider(model, max_retries=max_retries, timeout=timeout)


def require_api_key() -> None:
    """Check that turns with the real API can be taken.

    Raises:
        MissingKeyError: no key is set, and no cassette in use replays without one.
    """
    interceptor = current_interceptor()
    replays = interceptor is not None and interceptor.is_replay_only
    if not replays and not os.environ.get("ANTHROPIC_API_KEY"):
        raise MissingKeyError(
            "ANTHROPIC_API_KEY is not set",
            why="the API answers only with a key",
            hint="export ANTHROPIC_API_KEY=..., name another provider with --provider "
            "openai:MODEL, ollama:MODEL or module:attribute, or replay from a cassette",
        )


def load_provider(
    reference: str, *, folder: Path | None = None, option: str = "--provider"
) -> Provider:
    """Return the provider that ``openai:MODEL`` names, ``module:attribute``, or ``template``.

    The services are ``anthropic``, ``openai``, ``ollama`` and ``litellm``. The
    attribute is a provider, a class or function without required parameters that makes one, or a
    function from a list of messages to text.

    Args:
        reference: the name.
        folder: importable meanwhile; by default the working directory.
        option: where the name stands, for messages.

    Raises:
        UsageError: the reference is malformed, cannot be imported, or names no provider.
    """
    if reference == TEMPLATE:
        return TemplateProvider()
    named = split_provider(reference)
    if named is not None:
        return _provider_of(*named, option)
    module_name, colon, path = reference.partition(":")
    if not (module_name and colon and path):
        raise UsageError(f"{option} {reference!r} names no provider", hint=f"write it as {_FORM}")
    with _importable(folder or Path.cwd()):
        found = _attribute(f"{option} {reference!r}", module_name, path)
        return _as_provider(found, f"{option} {reference!r}")


KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""What holds the key of a service, where that is one variable."""


def reference_of(service: str, model: str) -> str | None:
    """Return what stands for a service where outputs say who wrote them; ``None``: the API."""
    if service == "litellm":
        inner, slash, _ = model.partition("/")
        return f"litellm:{inner}" if slash else "litellm"
    return None if service == "anthropic" else service


def _provider_of(service: str, model: str, option: str) -> Provider:
    if not model.strip():
        raise UsageError(
            f"{option} {service}: names no model",
            why="the model stands behind the colon",
            hint=f"write it as {service}:MODEL",
        )
    if service == "anthropic":
        return AnthropicProvider(model)
    from pytest_regen.turns import chat_providers

    classes: dict[str, Callable[[str], Provider]] = {
        "openai": chat_providers.OpenAIProvider,
        "ollama": chat_providers.OllamaProvider,
        "litellm": chat_providers.LiteLLMProvider,
    }
    return classes[service](model)


def near_reference(reference: str) -> str:
    """Return a reference with its service spelt right; empty where it is near none."""
    service, _, model = reference.partition(":")
    near = get_close_matches(service, SERVICES, n=1)
    return f"{near[0]}:{model}" if near else ""


def _attribute(named: str, module_name: str, path: str) -> object:
    try:
        found: object = import_module(module_name)
    except Exception as error:
        near = near_reference(f"{module_name}:{path}")
        if near and isinstance(error, ModuleNotFoundError) and error.name == module_name:
            raise UsageError(
                f"{named} names no provider",
                why=f"did you mean {near}? there is no module {module_name!r}",
                hint=f"write it as {near}",
            ) from error
        raise UsageError(
            f"{named}: {module_name!r} cannot be imported",
            why=f"{type(error).__name__}: {error}",
            hint="run from the folder that holds the module, or install it",
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            known = sorted(n for n in vars(found) if not n.startswith("_"))[:8]
            raise UsageError(
                f"{named}: {module_name!r} has no {path!r}",
                why=f"it has {', '.join(known) or 'no public names'}",
                hint=f"write it as {_FORM}",
            )
        found = getattr(found, name)
    return found


def _as_provider(found: object, named: str) -> Provider:
    if not inspect.isclass(found) and isinstance(found, Provider):
        return found
    if callable(found):
        required = _required_parameters(found)
        if required == 1 and not inspect.isclass(found):
            return CallableProvider(found)
        if required == 0:
            made = found()
            if isinstance(made, Provider):
                return made
    raise UsageError(
        f"{named} is no provider: {type(found).__name__}",
        why="a provider has send(request) -> Reply",
        hint="name a provider, a function without parameters that makes one, or a function from "
        "messages to text",
    )


def _required_parameters(found: object) -> int:
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]  # callable, as checked
    except (TypeError, ValueError):
        return 0
    kinds = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return sum(
        p.default is inspect.Parameter.empty and p.kind not in kinds
        for p in signature.parameters.values()
    )


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    here = str(folder)
    if here in sys.path or ("" in sys.path and folder == Path.cwd()):
        yield
        return
    sys.path.insert(0, here)
    try:
        yield
    finally:
        if here in sys.path:
            sys.path.remove(here)
