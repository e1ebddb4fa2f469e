"""Turns with OpenAI and servers that speak like it: also Ollama's, and a LiteLLM proxy.

An SDK is imported by the first turn. Cassettes see its HTTP client; so a replay imports it as well,
but needs no key and no network.
"""

import re
from abc import abstractmethod
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal, Unpack

from pytest_regen.extras import needs
from pytest_regen.turns import chat, sdk
from pytest_regen.turns.interception import CassetteMiss, TurnInterceptor, current_interceptor
from pytest_regen.turns.values import Cost, Reply, TurnRequest, size_of
from pytest_regen.turns.wire import in_brief

LimitParameter = Literal["max_completion_tokens", "max_tokens"]

_OLLAMA_PORT: Final = 11_434
_SMALLEST_CONTEXT: Final = 8_192
"""Tokens; a server that is told nothing may take 4,096, and cuts longer prompts without a word."""
_FILTERED: Final = ("content_filter", "content_policy_violation")
"""Codes of errors that say: the model, or a filter before it, declined."""


class _ChatProvider(sdk.SdkProvider):
    """One model behind an address; see the classes below for the arguments."""

    reference: str
    """Who answers, where outputs say who wrote them."""
    default_key: ClassVar[str] = ""
    """Sent to a server of one's own, which asks for none."""

    def __init__(self, model: str, **options: Unpack[sdk.SdkOptions]) -> None:
        super().__init__(**options)
        self.model = model

    def _key_for(self, interceptor: TurnInterceptor | None) -> str:
        return self._key or self.default_key or super()._key_for(interceptor)

    def _begin(self, request: TurnRequest) -> Coroutine[Any, Any, Reply]:
        interceptor = current_interceptor()
        return self._live(request, interceptor, self._key_for(interceptor))

    async def _live(
        self, request: TurnRequest, interceptor: TurnInterceptor | None, key: str
    ) -> Reply:
        client = await self._client(key)
        path, body = self._asked(request)
        try:
            # Past the methods of the SDK, because bodies are sent and read as they are.
            answer = await client.post(path, cast_to=object, body=body)
            reply = self._reply(answer)
            # A recording was paid for when it was made.
            usage = replace(reply.usage, cost=Cost()) if sdk.is_replay(interceptor) else reply.usage
            return replace(reply, usage=usage)
        except CassetteMiss as miss:
            raise sdk.deliver(miss, interceptor) from None
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises
            if getattr(error, "code", None) in _FILTERED:
                why = in_brief(str(error), 300)
                return Reply("", stop_reason="refusal", model=self.model, refusal=why)
            failure, cause = self._failure(error, self.model)
            raise failure from cause

    @abstractmethod
    def _asked(self, request: TurnRequest) -> tuple[str, dict[str, Any]]:
        """Return the path and the body of a request."""

    def _reply(self, body: object) -> Reply:
        return chat.reply_of_completion(body, address=self._address)

    def _make(self, key: str) -> Any:
        with needs("openai", "turns with OpenAI, Ollama or a LiteLLM proxy"):
            import openai
        return openai.AsyncOpenAI(
            api_key=key,
            base_url=self.base_url,
            max_retries=self.max_retries,
            timeout=self.timeout,
        )

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
            or 5xx; it obeys ``Retry-After``. By default 2.
        timeout: seconds to wait for a reply; 600 by default.
        limit_parameter: the parameter that limits a reply. Reasoning models of OpenAI refuse
            ``max_tokens``; some other servers know nothing else.
    """

    reference = "openai"
    key_variable = "OPENAI_API_KEY"
    address_variable = "OPENAI_BASE_URL"
    default_address = "https://api.openai.com/v1"

    def __init__(
        self,
        model: str,
        *,
        limit_parameter: LimitParameter = "max_completion_tokens",
        **options: Unpack[sdk.SdkOptions],
    ) -> None:
        super().__init__(model, **options)
        self._limit_parameter = limit_parameter

    def _asked(self, request: TurnRequest) -> tuple[str, dict[str, Any]]:
        messages, schema = chat.chat_messages(request), request.response_schema
        body = {"model": self.model, self._limit_parameter: request.max_tokens}
        strict = None if schema is None else chat.strict_schema(schema)
        if strict is not None:
            form = {"name": "reply", "strict": True, "schema": strict}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif schema is not None:
            messages = chat.described_schema(messages, schema)
        return "/chat/completions", {**body, "messages": messages}


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
    default_key = "ollama"

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

    def _reply(self, body: object) -> Reply:
        return chat.reply_of_ollama(body, address=self._address)

    def _asked(self, request: TurnRequest) -> tuple[str, dict[str, Any]]:
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
        return "/api/chat", body

    def _hints(self) -> dict[int, str]:
        return {
            401: f"set {self.key_variable} to a key that is valid for this address",
            404: f"ollama pull {self.model}",
        }

    def _hint_unreached(self) -> str:
        return "start the server with `ollama serve`, or set OLLAMA_HOST to where it runs"


class LiteLLMProvider(_ChatProvider):
    """Sends turns to a LiteLLM proxy, which reaches any of the APIs that LiteLLM knows.

    Args:
        model: as the proxy names it: ``groq/llama-3.3-70b-versatile``.
        api_key: the credential, where the proxy asks for one; otherwise ``LITELLM_PROXY_API_KEY``.
        base_url: the address; otherwise ``LITELLM_PROXY_API_BASE``, otherwise port 4000 of this
            machine.
        max_retries: as of ``OpenAIProvider``.
        timeout: seconds to wait for a reply.
    """

    key_variable = "LITELLM_PROXY_API_KEY"
    address_variable = "LITELLM_PROXY_API_BASE"
    default_address = "http://localhost:4000"
    default_key = "litellm"

    @property
    def reference(self) -> str:  # type: ignore[override]  # it is never set
        """Who answers, where outputs say who wrote them."""
        service, slash, _ = self.model.partition("/")
        return f"litellm:{service}" if slash else "litellm"

    def _asked(self, request: TurnRequest) -> tuple[str, dict[str, Any]]:
        messages, schema = chat.chat_messages(request), request.response_schema
        if schema is not None:
            # Described, because the proxy refuses a format that the service behind it has not.
            messages = chat.described_schema(messages, schema)
        body = {"model": self.model, "max_tokens": request.max_tokens, "messages": messages}
        return "/chat/completions", body

    def _hint_unreached(self) -> str:
        return (
            f"start the proxy with `litellm --model {self.model}`, or set {self.address_variable} "
            "to where it runs"
        )
