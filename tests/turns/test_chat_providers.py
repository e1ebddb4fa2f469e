"""One contract for all providers: their real SDKs over real HTTP, against a server of a script."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from chat_service import (
    MODEL,
    Asked,
    Dropped,
    Failed,
    Line,
    Raw,
    Said,
    chat_service,
)
from turn_values import turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.errors import (
    CassetteMissError,
    MissingKeyError,
    ProviderError,
    RejectedRequestError,
    TransportError,
    UsageError,
)
from pytest_regen.turns import (
    AnthropicProvider,
    CallableProvider,
    LiteLLMProvider,
    OllamaProvider,
    OpenAIProvider,
    Provider,
    Reply,
    TurnRequest,
    Usage,
    cost_of,
    load_provider,
    provider_from_environment,
)
from pytest_regen.turns.chat import strict_schema
from pytest_regen.turns.structured import describe_schema

KEY = "sk-proj-" + "Zz9" * 12
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
ALL: tuple[Make, ...] = (of_anthropic, of_openai, of_ollama, of_litellm)
RETRYING: tuple[Make, ...] = (of_anthropic, of_openai, of_litellm)
every = pytest.mark.parametrize("make", ALL)


def ask(provider: Any, way: str, request: TurnRequest | None = None) -> Reply:
    if way == "send":
        reply: Reply = provider.send(request or turn())
        provider_close = getattr(provider, "close", None)
        if provider_close:
            provider_close()
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


@every
def test_a_key_that_is_refused_is_told_without_the_key(make: Make) -> None:
    """Sending it again cannot help; a server that echoes the key puts it into no message."""
    errors, asked = outcomes(make, Failed(401, f"Incorrect API key provided: {KEY}"))

    for error in errors:
        assert isinstance(error, RejectedRequestError)
        assert error.status == 401
        assert KEY not in str(error)
        assert KEY not in str(error.__cause__)
        assert "key" in error.hint.lower()
    assert len(asked) == 1


def of_ollama_behind_a_proxy(address: str) -> OllamaProvider:
    return OllamaProvider("m", base_url=address.replace("//", "//ann:tide-table@"), timeout=5)


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
    errors, _ = outcomes(of_ollama_behind_a_proxy, Failed(404, "no such model"))

    assert all("127.0.0.1:9" in text for text in [*shown, str(error.value)])
    assert not [text for text in [*shown, *map(str, [error.value, *errors])] if "tide" in text]


@pytest.mark.parametrize("place", ['{{"authorization": "Bearer {}"}}', "a\n{}"])
def test_a_key_of_openai_s_form_is_hidden_wherever_it_is_echoed(place: str) -> None:
    """By any status, with words around it; the exception behind the error is left out then."""
    for status in (400, 418, 500):
        headers = SOON if status == 500 else ()
        script = [Failed(status, place.format(KEY), headers=headers)] * 3
        with chat_service(*script) as service, pytest.raises(ProviderError) as error:
            ask(of_openai(service.address), "send")

        traceback = "".join(format_exception(error.value))
        assert KEY[:16] not in traceback


HOSTILE = f"no\n::error::planted {KEY}\r\n\x1b]8;;javascript:x\x07 \u2028::warning::w"


@every
def test_what_a_server_says_is_one_line_without_control_characters(make: Make) -> None:
    """A log of GitHub would obey a line that begins with ``::``, a terminal an escape sequence."""
    errors, _ = outcomes(make, *[Failed(400, HOSTILE, headers=SOON)] * 3)

    for error in errors:
        assert "planted" in error.why
        assert len(error.why.splitlines()) == 1
        assert error.why.isprintable()


@pytest.mark.parametrize("way", ["send", "asend"])
def test_what_a_function_raises_is_one_line_without_its_key(way: str) -> None:
    """A provider of a user's own raises what somebody else's server says."""

    def refuse(_messages: object) -> str:
        raise RuntimeError(HOSTILE)

    with pytest.raises(TransportError) as error:
        ask(CallableProvider(refuse), way)

    assert "::error::planted" in error.value.why
    assert error.value.why.isprintable()
    assert KEY not in str(error.value)


@every
def test_what_is_not_there_says_what_to_do(make: Make) -> None:
    """A server that says nothing of a model is hardly one that lacks it."""
    for said, hints in {
        "no such model": ("check the model's name", "ollama pull qwen3:8b"),
        "404 page not found": ("check the address, ", "check the model's name (--provi"),
    }.items():
        for error in outcomes(make, Failed(404, said))[0]:
            assert isinstance(error, RejectedRequestError)
            assert said in error.why
            assert error.hint.startswith(hints)


@pytest.mark.parametrize("make", RETRYING)
def test_what_may_pass_is_retried(make: Make) -> None:
    """A rate limit and a fault of the server, as soon as the server says."""
    replies, asked = outcomes(make, Failed(429, headers=SOON), Failed(500, headers=SOON), "Now.")

    assert [reply.text for reply in replies] == ["Now.", "Now."]
    assert len(asked) == 3


@every
def test_what_does_not_pass_is_a_transport_error(make: Make) -> None:
    """Of the server, of the line, and answers that are something else."""
    for line in (Failed(500, headers=SOON), Raw(b"<html>"), Raw(b"{}")):
        errors, _ = outcomes(make, line)
        assert [type(error) for error in errors] == [TransportError] * 2, line


@every
def test_a_broken_connection_has_cost_something(make: Make) -> None:
    with chat_service(Dropped()) as service:
        provider = make(service.address)
        provider.max_retries = 0
        with pytest.raises(TransportError) as caught:
            ask(provider, "asend")

    assert caught.value.usage == Usage()


@every
def test_nobody_at_the_address_is_told_with_the_setting(make: Make) -> None:
    provider = make("http://127.0.0.1:1")
    provider.max_retries = 0

    with pytest.raises(TransportError, match="could not be reached") as caught:
        ask(provider, "send")

    assert "127.0.0.1:1" in str(caught.value)
    assert caught.value.usage is None


@pytest.mark.parametrize("make", [of_openai, of_litellm])
def test_an_account_without_quota_is_not_asked_to_wait(make: Make) -> None:
    quota = Failed(429, code="insufficient_quota", headers=SOON)
    errors, _ = outcomes(make, quota)

    assert [type(error) for error in errors] == [RejectedRequestError] * 2
    assert all("the account has no quota left" in str(error) for error in errors)
    assert "billing" in errors[0].hint


@every
def test_a_reply_is_held_to_its_schema(make: Make) -> None:
    with chat_service('{"a": 1}') as service:
        reply = ask(make(service.address), "asend", turn(response_schema=SCHEMA))

    assert json.loads(reply.text) == {"a": 1}
    said = json.dumps(service.requests[0].body).replace(
        "\\", ""
    )  # Told in a message, it is quoted.
    assert '"additionalProperties": false' in said


def test_a_schema_that_openai_cannot_hold_to_is_described() -> None:
    """A map with free keys is one; the model reads the schema, and nothing else is promised."""
    free = {"type": "object", "additionalProperties": {"type": "string"}}

    with chat_service("{}") as service:
        ask(of_openai(service.address), "send", turn("List.", response_schema=free))

    (asked,) = service.requests
    assert "response_format" not in asked.body
    assert asked.body["messages"][-1]["content"].startswith("List.\n\nRespond with one JSON value")


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
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": ["array", "null"]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "minimum": 1}}},
        {"type": "object", "properties": {"a": {"allOf": [{"type": "string"}]}}},
    ):
        assert strict_schema(unsaid) is None, unsaid


def test_limits_are_named_as_each_api_names_them() -> None:
    with chat_service("Hello.") as service:
        ask(of_openai(service.address), "send")
        other = OpenAIProvider(
            "m", api_key=KEY, base_url=f"{service.address}/v1", limit_parameter="max_tokens"
        )
        ask(other, "send")

    first, second = (asked.body for asked in service.requests)
    assert (first["max_completion_tokens"], second["max_tokens"]) == (200, 200)
    assert "max_tokens" not in first


def test_ollama_is_given_room_for_the_prompt_and_its_reply() -> None:
    """A server with less would cut the prompt without a word."""
    with chat_service("Hello.") as service:
        ask(of_ollama(service.address), "send")
        ask(of_ollama(service.address), "send", turn("long " * 10_000))
        ask(OllamaProvider("m", base_url=service.address, num_ctx=512), "send")

    options = [asked.body["options"] for asked in service.requests]
    assert [option["num_ctx"] for option in options] == [8_192, 16_384, 512]
    assert options[0]["num_predict"] == 200


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://localhost:11434"),
        (":9", "http://localhost:9"),
        ("https://models.example.org/", "https://models.example.org"),
    ],
)
def test_ollama_s_host_is_read_as_ollama_reads_it(
    host: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)

    assert OllamaProvider("m").base_url == address


def test_ollama_is_asked_as_its_own_sdk_asks() -> None:
    with chat_service("Recorded.") as service:
        of_ollama(service.address).send(turn(response_schema=SCHEMA))

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


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(MissingKeyError, match="OPENAI_API_KEY is not set") as caught:
        load_provider("openai:gpt-5").send(turn())

    assert caught.value.hint.startswith("export OPENAI_API_KEY=")
    assert caught.value.variable == "OPENAI_API_KEY"


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


@pytest.mark.parametrize(
    ("name", "kind", "model"),
    [
        ("anthropic:claude-sonnet-5-5", AnthropicProvider, "claude-sonnet-5-5"),
        ("openai:gpt-5", OpenAIProvider, "gpt-5"),
        ("ollama:qwen3:8b", OllamaProvider, "qwen3:8b"),
        ("litellm:groq/llama-3.3-70b", LiteLLMProvider, "groq/llama-3.3-70b"),
    ],
)
def test_providers_have_names(name: str, kind: type[Provider], model: str) -> None:
    """Service, colon, model; the model may have a colon of its own."""
    provider = load_provider(name)

    assert isinstance(provider, kind)
    assert getattr(provider, "model", None) == model


def test_a_service_without_a_model_is_refused() -> None:
    with pytest.raises(UsageError, match="names no model"):
        load_provider("openai:")


def test_the_key_of_the_messages_api_is_not_the_only_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(MissingKeyError, match="ollama:MODEL"):
        provider_from_environment()


def test_prices_are_those_of_the_service() -> None:
    """As the list has them; a server of one's own has none."""
    usage = Usage(input_tokens=1_000_000, output_tokens=0)

    assert cost_of(usage, "gpt-4o", "openai") == cost_of(usage, "openai/gpt-4o", "litellm:openai")
    assert cost_of(usage, "gpt-4o", "openai")
    assert cost_of(usage, "gpt-4o") is None
    assert cost_of(usage, "llama3.2", "ollama") is None
