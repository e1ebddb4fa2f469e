"""One contract for all providers: their real SDKs over real HTTP, against a server of a script."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from chat_service import DROPPED, MODEL, Asked, Failed, Line, Said, chat_service
from loopback import Answer
from tables import each
from turn_values import turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.errors import (
    CassetteMissError,
    ProviderError,
    RejectedRequestError,
    TransportError,
)
from pytest_regen.turns import (
    AnthropicProvider,
    CallableProvider,
    LiteLLMProvider,
    OllamaProvider,
    OpenAIProvider,
    Reply,
    TurnRequest,
    Usage,
)
from pytest_regen.turns.chat import strict_schema
from pytest_regen.turns.structured import describe_schema

KEY = "sk-proj-" + "Zz9" * 12
OTHER = "sk-proj-" + "Yy8" * 12
SOON = (("retry-after-ms", "1"),)
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def of_anthropic(address: str) -> AnthropicProvider:
    return AnthropicProvider("claude-sonnet-5-5", api_key=KEY, base_url=address, timeout=5)


def of_openai(address: str) -> OpenAIProvider:
    return OpenAIProvider("gpt-5", api_key=KEY, base_url=f"{address}/v1", timeout=5)


def of_ollama(address: str) -> OllamaProvider:
    return OllamaProvider("qwen3:8b", base_url=address, timeout=5)


def of_litellm(address: str) -> LiteLLMProvider:
    return LiteLLMProvider("groq/kite-1", api_key=KEY, base_url=f"{address}/v1", timeout=5)


Make = Callable[[str], Any]
every = each("make", [of_anthropic, of_openai, of_ollama, of_litellm])


def ask(provider: Any, way: str, request: TurnRequest | None = None) -> Reply:
    if way == "send":
        reply: Reply = provider.send(request or turn())
        if hasattr(provider, "close"):
            provider.close()
        return reply
    answer: Reply = asyncio.run(provider.asend(request or turn()))
    return answer


def outcomes(make: Make, *script: Line) -> tuple[list[Any], list[Asked]]:
    found: list[Any] = []
    for way in ("send", "asend"):
        with chat_service(*script) as service:
            try:
                found.append(ask(make(service.address), way))
            except ProviderError as error:
                found.append(error)
    return found, service.requests


@every
def test_a_turn_comes_back_with_its_counts(make: Make) -> None:
    """Text, stop reason, the model as the API says it, and tokens by cache state."""
    replies, asked = outcomes(make, Said("Hello.", cached=20))

    for reply in replies:
        assert (reply.text, reply.stop_reason, reply.model) == ("Hello.", "end_turn", MODEL)
        assert reply.usage.total_tokens == 57
        assert reply.usage.cache_read_tokens in {20, None}
    assert "temperature" not in json.dumps(asked[0].body)


@every
def test_a_cut_reply_and_a_refusal_are_replies(make: Make) -> None:
    cut, asked = outcomes(make, Said("ha", finish="length"))
    refused, _ = outcomes(make, Said("", finish="content_filter"))

    assert [reply.is_truncated for reply in cut] == [True, True]
    assert [reply.is_refusal for reply in refused] == [True, True]
    assert len(asked) == 1


@pytest.mark.parametrize("make", [of_openai, of_litellm])
def test_what_declines_in_a_field_or_an_error_of_its_own_is_a_refusal(make: Make) -> None:
    """OpenAI has a field for it; filters before a model answer with an error."""
    replies, _ = outcomes(make, Said(None, refusal="I cannot."))
    filtered, _ = outcomes(make, Failed(400, code="content_filter"))

    assert [(reply.is_refusal, reply.text) for reply in replies] == [(True, "I cannot.")] * 2
    assert [reply.is_refusal for reply in filtered] == [True, True]
    assert [reply.refusal for reply in replies] == ["I cannot."] * 2
    assert all("it went wrong" in reply.refusal for reply in filtered)


HOSTILE = f"no\n::error::planted {KEY}\r\n\x1b]8;;javascript:x\x07 \u2028::warning::w"


@every
@pytest.mark.parametrize(("status", "secret"), [(400, KEY), (401, KEY), (418, OTHER)])
def test_what_a_server_says_is_one_line_without_a_key(make: Make, status: int, secret: str) -> None:
    """A log of GitHub would obey a line that begins with ``::``, a terminal an escape sequence.

    Sending it again cannot help.
    """
    errors, asked = outcomes(make, Failed(status, HOSTILE.replace(KEY, secret)))

    for error in errors:
        assert isinstance(error, RejectedRequestError)
        assert error.status == status
        assert "planted" in error.why
        assert error.why.isprintable()
        assert secret[:16] not in "".join(format_exception(error))
        assert "key" in error.hint.lower() or status != 401
    assert len(asked) == 1


def test_what_a_function_raises_is_one_line_without_its_key() -> None:
    """A provider of a user's own raises what somebody else's server says."""

    def refuse(_messages: object) -> str:
        raise RuntimeError(HOSTILE)

    for way in ("send", "asend"):
        with pytest.raises(TransportError) as error:
            ask(CallableProvider(refuse), way)

        assert "::error::planted" in error.value.why
        assert error.value.why.isprintable()
        assert KEY not in str(error.value)


def test_a_password_in_an_address_is_in_no_text() -> None:
    """Neither in how a provider shows itself nor in an error, whether a scheme stands before it."""
    address = "ann:tide-table@127.0.0.1:9"
    shown = [
        repr(OpenAIProvider("m", api_key=KEY, base_url=f"https://{address}/v1")),
        repr(AnthropicProvider("m", api_key=KEY, base_url=f"https://{address}")),
        repr(OllamaProvider("m", base_url=address)),
    ]
    with pytest.raises(ProviderError) as error:
        OllamaProvider("m", base_url=address).send(turn())

    shown.append(str(error.value))
    assert all("127.0.0.1:9" in text and "tide" not in text for text in shown)


@every
def test_what_is_not_there_says_what_to_do(make: Make) -> None:
    """A server that says nothing of a model is hardly one that lacks it."""
    for said, hints in {
        "no such model": ("check the model's name", "ollama pull qwen3:8b"),
        "404 page not found": ("check the address, ", "check the model's name (--provi"),
    }.items():
        for error in outcomes(make, Failed(404, said))[0]:
            assert said in error.why
            assert error.hint.startswith(hints)


@pytest.mark.parametrize("make", [of_anthropic, of_openai, of_litellm])
def test_what_may_pass_is_retried(make: Make) -> None:
    """A rate limit and a fault of the server, as soon as the server says; no spent account."""
    replies, asked = outcomes(make, Failed(429, headers=SOON), Failed(500, headers=SOON), "Now.")
    spent, _ = outcomes(make, Failed(429, code="insufficient_quota", headers=SOON))

    assert [reply.text for reply in replies] == ["Now.", "Now."]
    assert len(asked) == 3
    for error in spent:
        assert isinstance(error, RejectedRequestError)
        assert "the account has no quota left" in str(error)
        assert "billing" in error.hint


@every
def test_what_does_not_pass_is_a_transport_error(make: Make) -> None:
    """Of the server, of the line, and answers that are something else; what broke has a cost."""
    for line in (Failed(500, headers=SOON), Answer(b"<html>"), Answer(b"{}"), DROPPED):
        errors, _ = outcomes(lambda address: without_retries(make(address)), line)
        assert [type(error) for error in errors] == [TransportError] * 2, line
    assert [error.usage for error in errors] == [Usage()] * 2
    with pytest.raises(TransportError, match="could not be reached") as nobody:
        ask(without_retries(make("http://127.0.0.1:1")), "send")

    assert "127.0.0.1:1" in str(nobody.value)
    assert nobody.value.usage is None


def without_retries(provider: Any) -> Any:
    provider.max_retries = 0
    return provider


@every
def test_a_reply_is_held_to_its_schema(make: Make) -> None:
    with chat_service('{"a": 1}') as service:
        reply = ask(make(service.address), "asend", turn(response_schema=SCHEMA))

    assert json.loads(reply.text) == {"a": 1}
    # Told in a message, it is quoted.
    said = json.dumps(service.requests[0].body).replace("\\", "")
    assert '"additionalProperties": false' in said


def test_openai_is_asked_in_its_own_words() -> None:
    """Other servers know another limit; a schema it cannot hold to, free keys, is described."""
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    with chat_service("{}") as service:
        address = f"{service.address}/v1"
        ask(of_openai(service.address), "send", turn("List.", response_schema=free))
        other = OpenAIProvider("m", api_key=KEY, base_url=address, limit_parameter="max_tokens")
        ask(other, "send")

    first, second = (asked.body for asked in service.requests)
    assert (first["max_completion_tokens"], second["max_tokens"]) == (200, 200)
    assert {"max_tokens", "response_format"}.isdisjoint(first)
    assert first["messages"][-1]["content"].startswith("List.\n\nRespond with one JSON value")


def test_schemas_are_closed_and_name_all_members() -> None:
    """Optional members become required, which the API demands; what cannot be said is none."""
    kite = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "x"},
            "tail": {"$ref": "#/$defs/T", "description": "the API takes no word beside a $ref"},
            "home": {"type": ["object", "null"], "properties": {"port": {"type": "string"}}},
        },
        "$defs": {"T": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"enum": [1]}]}}},
    }

    strict = strict_schema(kite)

    assert strict is not None
    assert strict["required"] == ["name", "tail", "home"]
    assert strict["additionalProperties"] is False
    assert strict["properties"]["name"] == {"type": "string"}
    assert strict["properties"]["tail"] == {"$ref": "#/$defs/T"}
    assert strict["properties"]["home"]["required"] == ["port"]
    assert strict["properties"]["home"]["additionalProperties"] is False
    for unsaid in (
        {},
        {"type": "array"},
        {"$ref": "#", "minimum": 1},
        {"allOf": [{"type": "null"}]},
    ):
        assert strict_schema({"type": "object", "properties": {"a": unsaid}}) is None, unsaid
    assert strict_schema({"type": "object", "properties": {}}) is None


def test_ollama_is_asked_as_its_own_sdk_asks() -> None:
    """With room for the prompt and its reply: a server with less would cut it without a word."""
    with chat_service("Recorded.") as service:
        of_ollama(service.address).send(turn(response_schema=SCHEMA))
        ask(of_ollama(service.address), "send", turn("long " * 10_000))
        ask(OllamaProvider("m", base_url=service.address, num_ctx=512), "send")

    hint = describe_schema(SCHEMA)
    assert (service.requests[0].path, service.requests[0].body) == (
        "/api/chat",
        {
            "model": "qwen3:8b",
            "stream": False,
            "options": {"num_predict": 200, "num_ctx": 8192},
            "format": SCHEMA,
            "messages": [
                {"role": "system", "content": "You are terse."},
                {"role": "user", "content": f"Say something.{hint}"},
            ],
            "tools": [],
        },
    )
    rooms = [asked.body["options"]["num_ctx"] for asked in service.requests[1:]]
    assert rooms == [16_384, 512]


def test_a_server_of_one_s_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for make, path in ((OllamaProvider, ""), (LiteLLMProvider, "/v1")):
        monkeypatch.delenv(make.key_variable, raising=False)
        with chat_service("Hello.") as service:
            provider = make("groq/kite-1", base_url=service.address + path)
            assert provider.send(turn()).text == "Hello."
            provider.close()

        assert service.requests[0].body["model"] == "groq/kite-1"


@every
@pytest.mark.parametrize("way", ["send", "asend"])
def test_a_cassette_answers_without_key_and_server(make: Make, way: str, tmp_path: Path) -> None:
    """Recorded over HTTP, replayed through the same SDK; the file has no key."""
    path = tmp_path / "talk.yaml"
    with chat_service("Recorded.") as service:
        with use_cassette(path, mode="once"):
            first = ask(make(service.address), way)
        with use_cassette(path, mode="none"):
            provider = make(service.address)
            provider._api_key = None
            again = ask(provider, way)
            with pytest.raises(CassetteMissError, match="Something else"):
                ask(provider, way, turn("Something else."))

    assert (again.text, again.usage) == (first.text, first.usage)
    assert len(service.requests) == 1
    assert KEY not in path.read_text("utf-8")


def test_ollama_s_host_is_read_as_ollama_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for host, address in {
        "": "http://localhost:11434",
        ":9": "http://localhost:9",
        "https://models.example.org/": "https://models.example.org",
    }.items():
        monkeypatch.setenv("OLLAMA_HOST", host)

        assert OllamaProvider("m").base_url == address
