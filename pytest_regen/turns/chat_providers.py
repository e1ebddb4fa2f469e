"""Turns with OpenAI, Ollama and whatever LiteLLM reaches, each through its own SDK.

An SDK is imported by the first turn. Cassettes see its HTTP client; so a replay imports it as well,
but needs no key and no network.
"""

import functools
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pytest_regen.credentials.names import is_private_name
from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import (
    MissingKeyError,
    ProviderError,
    RegenError,
    TransportError,
    UsageError,
)
from pytest_regen.extras import needs
from pytest_regen.turns.chat import (
    chat_messages,
    reply_of_completion,
    reply_of_ollama,
    strict_schema,
    with_described_schema,
)
from pytest_regen.turns.interception import CassetteMiss, TurnInterceptor, current_interceptor
from pytest_regen.turns.sdk import (
    REPLAY_KEY,
    Clients,
    checked_retries,
    deliver,
    heeding_warnings,
    host_of,
    is_replay,
    plain,
    played,
    root_cause,
    without_user,
)
from pytest_regen.turns.values import Reply, TurnRequest, Usage, estimate_tokens
from pytest_regen.turns.wire import (
    connection_failure,
    cut_stream,
    in_brief,
    status_failure,
    timeout_failure,
)

if TYPE_CHECKING:
    import ollama
    import openai

LimitParameter = Literal["max_completion_tokens", "max_tokens"]

_OPENAI: Final = "https://api.openai.com/v1"
_OLLAMA: Final = "http://localhost:11434"
_SMALLEST_CONTEXT: Final = 8_192
"""Tokens; a server that is told nothing may take 4,096, and cuts longer prompts without a word."""
_FILTERED: Final = ("content_filter", "content_policy_violation")
"""Codes of errors that say: the model, or a filter before it, declined."""
_SHORTEST_KEY: Final = 16
"""Characters of a key in the environment; a shorter value may be an ordinary word."""


class _ChatProvider:
    """One model behind one SDK; see the classes below.

    Args:
        model: the model that is asked, whatever a request names.
        api_key: the credential; otherwise the environment's.
        base_url: the address; otherwise the environment's, otherwise the SDK's default.
        max_retries: times the SDK sends a request again after a connection error, 408, 409, 429
            or 5xx; it obeys ``Retry-After``.
        timeout: seconds to wait for a reply.
    """

    reference: str = ""
    """Who answers, where outputs say who wrote them."""
    key_variable: ClassVar[str] = ""
    address_variable: ClassVar[str] = ""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = 2,
        timeout: float = 600.0,
    ) -> None:
        if not model:
            raise UsageError(
                f"{type(self).__name__} has no model",
                why="there is no default: which models an account or a machine has differs",
                hint=f"name one: {type(self).__name__}({self._example!r})",
            )
        self.model = model
        self._api_key = api_key
        self.base_url = base_url or os.environ.get(self.address_variable, "")
        self.max_retries = checked_retries(max_retries)
        self.timeout = timeout

    _example: ClassVar[str] = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={without_user(self.base_url)!r})"

    def send(self, request: TurnRequest) -> Reply:
        """Return the model's reply; a refusal or a truncated reply is a reply, too.

        Raises:
            MissingExtraError: the SDK is not installed.
            MissingKeyError: no key is set and the turn is not replayed.
            RejectedRequestError: the API refused the request; sending it again cannot help.
            TransportError: the API could not be reached, or the reply was cut.
            CassetteMissError: a cassette in use has no answer.
        """
        interceptor = current_interceptor()
        key = self._key_for(interceptor)
        try:
            with heeding_warnings(self.model):
                return played(self._ask(key, request), interceptor)
        except CassetteMiss as miss:
            raise deliver(miss, interceptor) from None
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises becomes ours
            return self._refusal(error, key)

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the model's reply without blocking the event loop; raises as ``send`` does."""
        interceptor = current_interceptor()
        key = self._key_for(interceptor)
        try:
            with heeding_warnings(self.model):
                return played(await self._aask(key, request), interceptor)
        except CassetteMiss as miss:
            raise deliver(miss, interceptor) from None
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises becomes ours
            return self._refusal(error, key)

    def require_key(self) -> None:
        """Check that a turn can be taken.

        Raises:
            MissingExtraError: the SDK is not installed.
            MissingKeyError: no key is set, and no cassette in use replays without one.
        """
        self._key_for(current_interceptor())

    def _ask(self, key: str, request: TurnRequest) -> Reply:
        raise NotImplementedError

    async def _aask(self, key: str, request: TurnRequest) -> Reply:
        raise NotImplementedError

    def _key_for(self, interceptor: TurnInterceptor | None) -> str:
        key = self._api_key or os.environ.get(self.key_variable)
        if key:
            return key
        if is_replay(interceptor):
            return REPLAY_KEY
        raise self._no_key([self.key_variable])

    def _no_key(self, names: list[str]) -> MissingKeyError:
        error = MissingKeyError(
            f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not set",
            why=f"{self._address} answers only with a key",
            hint=f"export {names[0]}=..., or replay from a cassette",
        )
        error.variable = names[0]
        return error

    @property
    def _address(self) -> str:
        return host_of(self.base_url)

    def _refusal(self, error: Exception, key: str) -> Reply:
        """Return the refusal that an exception of the SDK stands for, or raise what it means.

        The key stands in no error: a server that echoes it must not put it into a log.
        """
        if isinstance(error, RegenError):
            raise error
        words = f"{type(error).__name__} {error} {getattr(error, 'body', '')}"
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if getattr(error, "code", None) in _FILTERED or "ContentPolicyViolationError" in kinds:
            why = _in_brief(str(error))
            return Reply("", stop_reason="refusal", model=self.model, refusal=why)
        failure = self._translate(error, kinds, words)
        secrets = self._secrets(key)
        for secret in secrets:
            failure.what = failure.what.replace(secret, "[key]")
            failure.why = failure.why.replace(secret, "[key]")
        failure.args = (failure.what,)
        # A traceback shows the cause as it is, and what that goes back to.
        said = "\n".join(map(str, _chain(error)))
        is_clean = scrub_text(said) == said and not any(secret in said for secret in secrets)
        raise failure from (error if is_clean else None)

    def _secrets(self, key: str) -> list[str]:
        """Return what a server may echo of what was sent."""
        return [key] if key not in {"", REPLAY_KEY} else []

    def _translate(self, error: Exception, kinds: set[str], words: str) -> ProviderError:
        # By the names of its classes: three SDKs, and what they send with, in any release.
        address, model = self._address, self.model
        status = getattr(error, "status_code", None)
        if kinds & {"APITimeoutError", "TimeoutException"}:
            reason, name = root_cause(error), type(self).__name__
            return timeout_failure(
                reason, self.timeout, model=model, address=address, provider=name
            )
        # LiteLLM calls a connection that failed a fault of the server.
        is_unreached = "ServerError" in type(error).__name__ and "Connection error." in words
        if is_unreached or kinds & {"APIConnectionError", "ConnectionError", "ConnectError"}:
            reason = _in_brief(root_cause(error))
            hint = self._hint_unreached()
            return connection_failure(reason, model=model, address=address, hint=hint)
        if isinstance(status, int) and status >= 400:
            hints = self._hints()
            return status_failure(
                status,
                _error_body(error),
                model=model,
                address=address,
                hints=hints,
                address_variable=self.address_variable,
            )
        if "TransportError" in kinds:  # of httpx, after the answer has begun
            cut = cut_stream(_in_brief(f"{type(error).__name__}: {error}"))
            cut.usage = Usage()  # unknown, not nothing
            return cut
        return TransportError(
            f"the turn with {address} failed (model {model!r})",
            why=_in_brief(f"{type(error).__name__}: {error}"),
            hint="run the command again; what was finished before is kept",
        )

    def _hints(self) -> dict[int, str]:
        return {
            401: f"check the key: set {self.key_variable} to one that is valid for this address",
            404: f"check the model's name (--provider {self.reference}:MODEL, in pytest "
            f"--regen-provider {self.reference}:MODEL)",
        }

    def _hint_unreached(self) -> str:
        return f"check the network and {self.address_variable}, then run the command again"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _in_brief(reason: str) -> str:
    """Return words of an SDK, not all of them: LiteLLM adds tracebacks and advertisements."""
    return in_brief(reason, 300)


def _error_body(error: Exception) -> object:
    """Return what the API said, in the envelope that it stood in before an SDK took it out."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping) and "error" not in body:
        return {"error": body}
    return body or str(error)


class OpenAIProvider(_ChatProvider):
    """Sends turns to OpenAI's Chat Completions, or to a server that speaks them.

    One instance serves any number of threads and event loops; it makes its client on first use.

    Args:
        model: the model that is asked, whatever a request names.
        api_key: the credential; otherwise ``OPENAI_API_KEY``.
        base_url: the address; otherwise ``OPENAI_BASE_URL``, otherwise the real API.
        max_retries: times the SDK sends a request again.
        timeout: seconds to wait for a reply.
        limit_parameter: the parameter that limits a reply. Reasoning models of OpenAI refuse
            ``max_tokens``; some other servers know nothing else.
    """

    reference = "openai"
    key_variable = "OPENAI_API_KEY"
    address_variable = "OPENAI_BASE_URL"
    _example = "gpt-5"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = 2,
        timeout: float = 600.0,
        limit_parameter: LimitParameter = "max_completion_tokens",
    ) -> None:
        super().__init__(
            model, api_key=api_key, base_url=base_url, max_retries=max_retries, timeout=timeout
        )
        self.base_url = (self.base_url or _OPENAI).rstrip("/")
        self._limit_parameter = limit_parameter
        self._clients: Clients[openai.OpenAI, openai.AsyncOpenAI] = Clients()

    def close(self) -> None:
        """Close the connections that ``send`` opened; those of ``asend`` end with their loop."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the connections that ``asend`` opened in the running event loop."""
        await self._clients.aclose()

    def _ask(self, key: str, request: TurnRequest) -> Reply:
        client = self._clients.get(key, self._make)
        body = client.chat.completions.create(**self._arguments(request))
        return reply_of_completion(plain(body), address=self._address)

    async def _aask(self, key: str, request: TurnRequest) -> Reply:
        client = await self._clients.aget(key, self._amake)
        body = await client.chat.completions.create(**self._arguments(request))
        return reply_of_completion(plain(body), address=self._address)

    def _make(self, key: str) -> "openai.OpenAI":
        with needs("openai", "turns with OpenAI"):
            import openai
        return openai.OpenAI(api_key=key, **self._options())

    def _amake(self, key: str) -> "openai.AsyncOpenAI":
        with needs("openai", "turns with OpenAI"):
            import openai
        return openai.AsyncOpenAI(api_key=key, **self._options())

    def _options(self) -> dict[str, Any]:
        return {
            "base_url": self.base_url,
            "max_retries": self.max_retries,
            "timeout": self.timeout,
        }

    def _arguments(self, request: TurnRequest) -> dict[str, Any]:
        messages = chat_messages(request)
        arguments: dict[str, Any] = {"model": self.model, self._limit_parameter: request.max_tokens}
        arguments |= _held_to_schema(messages, request)
        return {**arguments, "messages": messages}


def _held_to_schema(
    messages: list[dict[str, str]], request: TurnRequest, *, is_known: bool = True
) -> dict[str, Any]:
    """Return the argument that holds a reply to its schema, or describe that in the last message.

    Args:
        messages: as of the request.
        request: what is asked.
        is_known: whether the model can be held to one.
    """
    if request.response_schema is None:
        return {}
    schema = strict_schema(request.response_schema) if is_known else None
    if schema is None:
        with_described_schema(messages, request)
        return {}
    held = {"name": "reply", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": held}}


class OllamaProvider(_ChatProvider):
    """Sends turns to an Ollama server.

    Args:
        model: the model that is asked, whatever a request names.
        base_url: the address; otherwise ``OLLAMA_HOST``, otherwise port 11434 of this machine.
        timeout: seconds to wait for a reply. There are no retries.
        num_ctx: tokens of the context window. By default the smallest power of two, from 8,192 on,
            that holds the request and its reply: a server that has less cuts the prompt silently.
    """

    reference = "ollama"
    key_variable = "OLLAMA_API_KEY"
    address_variable = "OLLAMA_HOST"
    _example = "qwen3:8b"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        timeout: float = 600.0,
        num_ctx: int | None = None,
    ) -> None:
        super().__init__(model, base_url=base_url, max_retries=0, timeout=timeout)
        self.base_url = self.base_url or _OLLAMA
        self._num_ctx = num_ctx
        self._clients: Clients[ollama.Client, ollama.AsyncClient] = Clients()

    def close(self) -> None:
        """Close the connections that ``send`` opened; those of ``asend`` end with their loop."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the connections that ``asend`` opened in the running event loop."""
        await self._clients.aclose()

    def _key_for(self, interceptor: TurnInterceptor | None) -> str:
        # A server of one's own has none; the SDK itself sends that of a hosted one.
        return os.environ.get(self.key_variable, "")

    def _ask(self, key: str, request: TurnRequest) -> Reply:
        client = self._clients.get(key, self._make)
        body = client.chat(**self._arguments(request))
        return reply_of_ollama(plain(body), address=self._address)

    async def _aask(self, key: str, request: TurnRequest) -> Reply:
        client = await self._clients.aget(key, self._amake)
        body = await client.chat(**self._arguments(request))
        return reply_of_ollama(plain(body), address=self._address)

    def _make(self, key: str) -> "ollama.Client":
        with needs("ollama", "turns with Ollama"):
            import ollama
        return ollama.Client(host=self.base_url, timeout=self.timeout)

    def _amake(self, key: str) -> "ollama.AsyncClient":
        with needs("ollama", "turns with Ollama"):
            import ollama
        return ollama.AsyncClient(host=self.base_url, timeout=self.timeout)

    def _arguments(self, request: TurnRequest) -> dict[str, Any]:
        messages = chat_messages(request)
        options = {"num_predict": request.max_tokens, "num_ctx": self._context_for(request)}
        arguments: dict[str, Any] = {"model": self.model, "options": options}
        if request.response_schema is not None:
            # The sampler is held to it, and the model is told: it does not see the schema.
            arguments["format"] = dict(request.response_schema)
            with_described_schema(messages, request)
        return {**arguments, "messages": messages}

    def _context_for(self, request: TurnRequest) -> int:
        if self._num_ctx is not None:
            return self._num_ctx
        texts = [request.system, *(message.content for message in request.messages)]
        needed = sum(map(estimate_tokens, texts)) + request.max_tokens
        return max(_SMALLEST_CONTEXT, 1 << (needed - 1).bit_length())

    def _hints(self) -> dict[int, str]:
        return {
            401: f"set {self.key_variable} to a key that is valid for this address",
            404: f"ollama pull {self.model}",
        }

    def _hint_unreached(self) -> str:
        return "start the server with `ollama serve`, or set OLLAMA_HOST to where it runs"


class LiteLLMProvider(_ChatProvider):
    """Sends turns to any of the APIs that LiteLLM knows.

    Args:
        model: ``PROVIDER/MODEL`` as LiteLLM names it: ``groq/llama-3.3-70b-versatile``.
        api_key: the credential; otherwise the variable that LiteLLM reads for that provider.
        base_url: the address; otherwise the provider's own.
        max_retries: times a request is sent again, by the client of those APIs that have one.
        timeout: seconds to wait for a reply.
    """

    _example = "groq/llama-3.3-70b-versatile"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = 2,
        timeout: float = 600.0,
    ) -> None:
        super().__init__(
            model, api_key=api_key, base_url=base_url, max_retries=max_retries, timeout=timeout
        )
        self._service, slash, _ = model.partition("/")
        self.reference = f"litellm:{self._service}" if slash else "litellm"

    @property
    def _address(self) -> str:
        return super()._address or self._service

    def _key_for(self, interceptor: TurnInterceptor | None) -> str:
        if self._api_key:
            return self._api_key
        found = _litellm().validate_environment(self.model)
        missing = [str(name) for name in found.get("missing_keys") or ()]
        if not missing:
            return ""  # LiteLLM takes it from the environment, or there is none.
        if is_replay(interceptor):
            return REPLAY_KEY
        raise self._no_key(missing)

    def _secrets(self, key: str) -> list[str]:
        # LiteLLM reads keys itself, from variables whose names nobody lists.
        given = super()._secrets(key)
        return given or [
            value
            for name, value in os.environ.items()
            if len(value) >= _SHORTEST_KEY and is_private_name(name)
        ]

    def _ask(self, key: str, request: TurnRequest) -> Reply:
        body = _litellm().completion(**self._arguments(key, request))
        return reply_of_completion(plain(body), address=self._address)

    async def _aask(self, key: str, request: TurnRequest) -> Reply:
        body = await _litellm().acompletion(**self._arguments(key, request))
        return reply_of_completion(plain(body), address=self._address)

    def _arguments(self, key: str, request: TurnRequest) -> dict[str, Any]:
        messages = chat_messages(request)
        arguments: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "max_retries": self.max_retries,
            "timeout": self.timeout,
        }
        if key:
            arguments["api_key"] = key
        if self.base_url:
            arguments["api_base"] = self.base_url
        can_hold = _litellm().supports_response_schema(self.model)
        arguments |= _held_to_schema(messages, request, is_known=can_hold)
        return {**arguments, "messages": messages}

    def _hints(self) -> dict[int, str]:
        return {
            401: f"check the key that LiteLLM reads for {self._service}",
            404: f"check the model's name (--provider litellm:{self._service}/MODEL, in pytest "
            f"--regen-provider litellm:{self._service}/MODEL)",
        }

    def _hint_unreached(self) -> str:
        return "check the network, then run the command again"


@functools.cache
def _litellm() -> Any:
    """Return LiteLLM, which sends nothing of its own.

    Raises:
        MissingExtraError: it is not installed.
    """
    # Otherwise its import fetches a list of prices from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with needs("litellm", "turns with LiteLLM"), heeding_warnings():  # of its own dependencies
        import litellm

        litellm.ModelResponse()  # Its schema is built by the first one, and pydantic warns of it.
    litellm.suppress_debug_info = True  # advertisements on the terminal
    litellm.telemetry = False
    return litellm
