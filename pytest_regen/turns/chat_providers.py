"""Turns with OpenAI, servers that speak like it, Ollama, and whatever LiteLLM reaches.

An SDK is imported by the first turn. Cassettes see its HTTP client; so a replay imports it as well,
but needs no key and no network.
"""

import functools
import os
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pytest_regen.credentials.names import is_private_name
from pytest_regen.errors import UsageError
from pytest_regen.extras import needs
from pytest_regen.turns import chat, sdk
from pytest_regen.turns.interception import CassetteMiss, TurnInterceptor, current_interceptor
from pytest_regen.turns.values import Reply, TurnRequest, size_of
from pytest_regen.turns.wire import in_brief

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI
else:
    AsyncOpenAI = OpenAI = Any

LimitParameter = Literal["max_completion_tokens", "max_tokens"]

_OLLAMA_PORT: Final = 11_434
_SMALLEST_CONTEXT: Final = 8_192
"""Tokens; a server that is told nothing may take 4,096, and cuts longer prompts without a word."""
_FILTERED: Final = ("content_filter", "content_policy_violation")
"""Codes of errors that say: the model, or a filter before it, declined."""
_SHORTEST_KEY: Final = 16
"""Characters of a key in the environment; a shorter value may be an ordinary word."""


class _ChatProvider(sdk.SdkProvider[OpenAI, AsyncOpenAI]):
    """One model behind an address; see the classes below for the arguments."""

    reference: str
    """Who answers, where outputs say who wrote them."""
    default_address: ClassVar[str] = ""
    example: ClassVar[str] = ""

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
                hint=f"name one: {type(self).__name__}({self.example!r})",
            )
        address = base_url or os.environ.get(self.address_variable) or self.default_address
        super().__init__(
            api_key=api_key, base_url=address, max_retries=max_retries, timeout=timeout
        )
        self.model = model

    def send(self, request: TurnRequest) -> Reply:
        """Return the model's reply; a refusal or a truncated reply is a reply, too.

        Raises:
            MissingExtraError: the SDK is not installed.
            MissingKeyError: no key is set and the turn is not replayed.
            RejectedRequestError: the API refused the request; sending it again cannot help.
            TransportError: the API could not be reached, or the reply was cut.
            CassetteMissError: a cassette in use has no answer.
        """
        use = current_interceptor()
        key = self._key_for(use)
        try:
            with sdk.heeding_warnings(self.model):
                return sdk.played(self._ask(key, request), use)
        except (CassetteMiss, Exception) as error:  # noqa: BLE001 - whatever the SDK raises
            return self._refusal(error, use)

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the model's reply without blocking the event loop; raises as ``send`` does."""
        use = current_interceptor()
        key = self._key_for(use)
        try:
            with sdk.heeding_warnings(self.model):
                return sdk.played(await self._aask(key, request), use)
        except (CassetteMiss, Exception) as error:  # noqa: BLE001 - whatever the SDK raises
            return self._refusal(error, use)

    def _refusal(self, error: CassetteMiss | Exception, use: TurnInterceptor | None) -> Reply:
        """Return the refusal that an exception stands for, or raise what it means."""
        if isinstance(error, CassetteMiss):
            raise sdk.deliver(error, use) from None
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if getattr(error, "code", None) in _FILTERED or "ContentPolicyViolationError" in kinds:
            why = in_brief(str(error), 300)
            return Reply("", stop_reason="refusal", model=self.model, refusal=why)
        failure, cause = self._failure(error, self.model)
        raise failure from cause

    def _ask(self, key: str, request: TurnRequest) -> Reply:
        return self._reply(self._call(self._clients.get(key, self._make), request))

    async def _aask(self, key: str, request: TurnRequest) -> Reply:
        client = await self._clients.aget(key, self._amake)
        return self._reply(await self._call(client, request))

    def _call(self, client: Any, request: TurnRequest) -> Any:
        """Return the answer, or what a client for event loops waits for it with."""
        raise NotImplementedError

    def _reply(self, body: object) -> Reply:
        return chat.reply_of_completion(sdk.plain(body), address=self._address)

    def _make(self, key: str) -> OpenAI:
        with needs("openai", "turns with OpenAI or Ollama"):
            import openai
        return openai.OpenAI(api_key=key, **self._options())

    def _amake(self, key: str) -> AsyncOpenAI:
        with needs("openai", "turns with OpenAI or Ollama"):
            import openai
        return openai.AsyncOpenAI(api_key=key, **self._options())

    def _options(self) -> dict[str, Any]:
        options = {"base_url": self.base_url, "max_retries": self.max_retries}
        return {**options, "timeout": self.timeout}

    def _hints(self) -> dict[int, str]:
        return {
            401: f"check the key: set {self.key_variable} to one that is valid for this address",
            404: f"check the model's name (--provider {self.reference}:MODEL, in pytest "
            f"--regen-provider {self.reference}:MODEL)",
        }


class OpenAIProvider(_ChatProvider):
    """Sends turns to OpenAI's Chat Completions, or to a server that speaks them.

    One instance serves any number of threads and event loops; it makes its client on first use.

    Args:
        model: the model that is asked, whatever a request names.
        api_key: the credential; otherwise ``OPENAI_API_KEY``.
        base_url: the address; otherwise ``OPENAI_BASE_URL``, otherwise the real API.
        max_retries: times the SDK sends a request again after a connection error, 408, 409, 429
            or 5xx; it obeys ``Retry-After``.
        timeout: seconds to wait for a reply.
        limit_parameter: the parameter that limits a reply. Reasoning models of OpenAI refuse
            ``max_tokens``; some other servers know nothing else.
    """

    reference = "openai"
    key_variable = "OPENAI_API_KEY"
    address_variable = "OPENAI_BASE_URL"
    default_address = "https://api.openai.com/v1"
    example = "gpt-5"

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
        self._limit_parameter = limit_parameter

    def _call(self, client: Any, request: TurnRequest) -> Any:
        limit = {self._limit_parameter: request.max_tokens}
        return client.chat.completions.create(model=self.model, **limit, **_held_to_schema(request))


def _held_to_schema(request: TurnRequest, *, is_known: bool = True) -> dict[str, Any]:
    """Return the messages, and the argument that holds a reply to its schema, or describe that.

    Args:
        request: what is asked.
        is_known: whether the model can be held to one.
    """
    messages, schema = chat.chat_messages(request), request.response_schema
    if schema is None:
        return {"messages": messages}
    strict = chat.strict_schema(schema) if is_known else None
    if strict is None:
        return {"messages": chat.described_schema(messages, schema)}
    form = {"name": "reply", "strict": True, "schema": strict}
    response_format = {"type": "json_schema", "json_schema": form}
    return {"response_format": response_format, "messages": messages}


class OllamaProvider(_ChatProvider):
    """Sends turns to an Ollama server, through OpenAI's SDK.

    To ``/api/chat``, because the address that is compatible with OpenAI's takes no context window.

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
    example = "qwen3:8b"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        timeout: float = 600.0,
        num_ctx: int | None = None,
    ) -> None:
        super().__init__(model, base_url=base_url, max_retries=0, timeout=timeout)
        if "//" not in self.base_url:  # OLLAMA_HOST is a host, a port, or both.
            host = "localhost" if self.base_url[:1] in {"", ":"} else ""
            port = "" if re.search(r":\d+$", self.base_url) else f":{_OLLAMA_PORT}"
            self.base_url = f"http://{host}{self.base_url}{port}"
        self._num_ctx = num_ctx

    def _key_for(self, interceptor: TurnInterceptor | None) -> str:
        return self._key or "ollama"  # A server of one's own has none; a hosted one has.

    def _reply(self, body: object) -> Reply:
        return chat.reply_of_ollama(body, address=self._address)

    def _call(self, client: Any, request: TurnRequest) -> Any:
        needed = size_of(request) + request.max_tokens
        context = self._num_ctx or max(_SMALLEST_CONTEXT, 1 << (needed - 1).bit_length())
        options = {"num_predict": request.max_tokens, "num_ctx": context}
        # As Ollama's own SDK sends it, because its recordings are replayed.
        body: dict[str, Any] = {"model": self.model, "stream": False, "options": options}
        body |= {"messages": chat.chat_messages(request), "tools": []}
        schema = request.response_schema
        if schema is not None:
            # The model is told as well, because it does not see what the sampler is held to.
            body |= {
                "format": dict(schema),
                "messages": chat.described_schema(body["messages"], schema),
            }
        return client.post("/api/chat", cast_to=object, body=body)

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

    example = "groq/llama-3.3-70b-versatile"

    @property
    def reference(self) -> str:  # type: ignore[override]  # it is never set
        """Who answers, where outputs say who wrote them."""
        service, slash, _ = self.model.partition("/")
        return f"litellm:{service}" if slash else "litellm"

    @property
    def _address(self) -> str:
        return super()._address or self.model.partition("/")[0]

    def _key_for(self, interceptor: TurnInterceptor | None) -> str:
        if self._api_key:
            return self._api_key
        environment = _litellm().validate_environment(self.model)
        missing = [str(name) for name in environment.get("missing_keys") or ()]
        if missing and not sdk.is_replay(interceptor):
            raise self._no_key(missing)
        return sdk.REPLAY_KEY if missing else ""  # LiteLLM takes it from the environment.

    def _secrets(self) -> list[str]:
        # LiteLLM reads keys itself, from variables whose names nobody lists.
        return super()._secrets() or [
            value
            for name, value in os.environ.items()
            if len(value) >= _SHORTEST_KEY and is_private_name(name)
        ]

    def _ask(self, key: str, request: TurnRequest) -> Reply:
        return self._reply(_litellm().completion(**self._arguments(key, request)))

    async def _aask(self, key: str, request: TurnRequest) -> Reply:
        return self._reply(await _litellm().acompletion(**self._arguments(key, request)))

    def _arguments(self, key: str, request: TurnRequest) -> dict[str, Any]:
        can_hold = _litellm().supports_response_schema(self.model)
        return {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "max_retries": self.max_retries,
            "timeout": self.timeout,
            **({"api_key": key} if key else {}),
            **({"api_base": self.base_url} if self.base_url else {}),
            **_held_to_schema(request, is_known=can_hold),
        }

    def _hints(self) -> dict[int, str]:
        return {**super()._hints(), 401: f"check the key that LiteLLM reads for {self.model}"}

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
    with needs("litellm", "turns with LiteLLM"), sdk.heeding_warnings():  # of its own dependencies
        import litellm

        litellm.ModelResponse()  # Its schema is built by the first one, and pydantic warns of it.
    litellm.suppress_debug_info = True  # advertisements on the terminal
    litellm.telemetry = False
    return litellm
