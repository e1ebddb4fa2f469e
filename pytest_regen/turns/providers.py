"""Providers without a network (a function, a script, a placeholder), and those that are named."""

import functools
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from pytest_regen.errors import NoTemplateError, ProviderError, UsageError
from pytest_regen.modes import SERVICES, TEMPLATE, split_provider
from pytest_regen.turns.anthropic import AnthropicProvider
from pytest_regen.turns.steps import calling, in_thread, no_reply
from pytest_regen.turns.values import Provider, Reply, TurnRequest

ScriptLine = str | Reply | Exception


class CallableProvider:
    """Makes a provider of a function from messages to text.

    Args:
        fn: takes a list of ``{"role": ..., "content": ...}``, the system prompt first where there
            is one, and returns the reply's text, or a ``Reply``. It may be a coroutine function.
        model: name that replies carry; by default the function's own, as ``module:name``.
    """

    def __init__(
        self,
        fn: Callable[[list[dict[str, str]]], "str | Reply | Awaitable[str | Reply]"],
        *,
        model: str = "",
    ) -> None:
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
        owner = fn if hasattr(fn, "__qualname__") else type(fn)
        return f"{getattr(owner, '__module__', None) or '?'}:{owner.__qualname__}"

    def send(self, request: TurnRequest) -> Reply:
        """Return what the function says.

        Raises:
            ProviderError: the function raised, or returned something else than text.
        """
        from pytest_regen.turns.background import run_in_background

        if self.is_async:
            return run_in_background(self.asend(request))
        return self._reply(self._call(request))

    async def asend(self, request: TurnRequest) -> Reply:
        """Return what the function returns, awaited if need be; raises as ``send`` does."""
        # A plain function is called in a thread: in the event loop it would block all else, and
        # Ctrl-C would wait for it.
        answer = self._call(request) if self.is_async else await in_thread(self._call, request)
        with calling(self._name):
            return self._reply(await answer if inspect.isawaitable(answer) else answer)

    def _call(self, request: TurnRequest) -> object:
        messages = [{"role": "system", "content": request.system}] if request.system else []
        messages += [{"role": m.role, "content": m.content} for m in request.messages]
        with calling(self._name):
            return self._fn(messages)

    def _reply(self, answer: object) -> Reply:
        # A plain text says neither why it ended nor which model wrote it.
        reply = Reply(answer, stop_reason="") if isinstance(answer, str) else answer
        if isinstance(reply, Reply):
            return reply if reply.model else replace(reply, model=self._model or self.reference)
        raise no_reply(self._name, type(answer).__name__)

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
        if not self._answers and number > len(self._lines):
            raise ProviderError(
                f"the script has {len(self._lines)} replies, and request {number} asks for another",
                hint="add a reply to the script, or find out who asks once more",
            )
        line = self._answers(request) if self._answers else self._lines[number - 1]
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, Reply) else Reply(line, model=self.reference)

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the next reply of the script; raises as ``send`` does."""
        return self.send(request)


class DryRunProvider:
    """Answers every request with a placeholder that says that no code was generated."""

    reference = "dry-run"
    """What stands for a model of the API where outputs say who wrote them."""

    def send(self, request: TurnRequest) -> Reply:
        """Return the placeholder."""
        size = len(request.system) + sum(len(m.content) for m in request.messages)
        return Reply(
            "// DRY RUN: no model was asked and no code was generated.\n"
            f"// The request has {len(request.messages)} message(s), {size:,} characters in all.",
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
    provider = AnthropicProvider(model, max_retries=max_retries, timeout=timeout)
    provider.require_key()
    return provider


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
    service, model = split_provider(reference) or ("", "")
    if service:
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
    module_name, colon, path = reference.partition(":")
    if not (module_name and colon and path):
        raise UsageError(f"{option} {reference!r} names no provider", hint=f"write it as {_FORM}")
    where = str(folder or Path.cwd())
    is_importable = where in sys.path or ("" in sys.path and Path(where) == Path.cwd())
    # For this import only, because a folder that stays would hide modules of the same names.
    sys.path[:0] = [] if is_importable else [where]
    try:
        attribute = _attribute(f"{option} {reference!r}", module_name, path)
        return _as_provider(attribute, f"{option} {reference!r}")
    finally:
        if not is_importable and where in sys.path:
            sys.path.remove(where)


KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""What holds the key of a service, where that is one variable."""


def reference_of(service: str, model: str) -> str | None:
    """Return what stands for a service where outputs say who wrote them; ``None``: the API."""
    if service == "litellm":
        inner, slash, _ = model.partition("/")
        return f"litellm:{inner}" if slash else "litellm"
    return None if service == "anthropic" else service


def _attribute(title: str, module_name: str, path: str) -> object:
    """Return what a reference names; ``title`` is the reference and where it stands."""
    try:
        value: object = import_module(module_name)
    except Exception as error:
        service = get_close_matches(module_name, SERVICES, n=1)
        if service and isinstance(error, ModuleNotFoundError) and error.name == module_name:
            raise UsageError(
                f"{title} names no provider",
                why=f"did you mean {service[0]}:{path}? there is no module {module_name!r}",
                hint=f"write it as {service[0]}:{path}",
            ) from error
        raise UsageError(
            f"{title}: {module_name!r} cannot be imported",
            why=f"{type(error).__name__}: {error}",
            hint="run from the folder that holds the module, or install it",
        ) from error
    for name in path.split("."):
        if not hasattr(value, name):
            public = sorted(n for n in vars(value) if not n.startswith("_"))[:8]
            raise UsageError(
                f"{title}: {module_name!r} has no {path!r}",
                why=f"it has {', '.join(public) or 'no public names'}",
                hint=f"write it as {_FORM}",
            )
        value = getattr(value, name)
    return value


def _as_provider(value: object, title: str) -> Provider:
    if not inspect.isclass(value) and isinstance(value, Provider):
        return value
    if callable(value):
        required = 0
        with suppress(TypeError, ValueError):  # Some that are built in have no signature.
            required = sum(
                parameter.default is parameter.empty and "VAR_" not in parameter.kind.name
                for parameter in inspect.signature(value).parameters.values()
            )
        # No class, because to call one with the messages would make a provider of them.
        if required == 1 and not inspect.isclass(value):
            return CallableProvider(value)
        provider = None if required else value()
        if isinstance(provider, Provider):
            return provider
    raise UsageError(
        f"{title} is not a provider: {type(value).__name__}",
        why="a provider has send(request) -> Reply",
        hint="name a provider, a function without parameters that makes one, or a function from "
        "messages to text",
    )
