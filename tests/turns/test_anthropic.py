"""The provider of the real API: the real SDK over real HTTP, against the emulator."""

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from tables import each
from turn_values import turn

from pytest_regen.emulator import EmulatedReply, Emulator, Fault
from pytest_regen.errors import (
    MissingKeyError,
    ProviderError,
    RejectedRequestError,
    TransportError,
    UsageError,
)
from pytest_regen.turns import AnthropicProvider, Reply, TurnRequest, Usage

KEY = "opaque-key-of-a-gateway"
STREAMED = 30_000


def in_order(*said: Any) -> Callable[..., Any]:
    waiting = list(said)
    return lambda _body: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def asked(*said: Any, request: TurnRequest | None = None, **options: Any) -> tuple[Any, int]:
    with Emulator(in_order(*said)) as emulator:
        provider = AnthropicProvider(api_key=KEY, base_url=emulator.base_url, **options)
        try:
            outcome: Any = provider.send(request or turn())
        except ProviderError as error:
            outcome = error
        finally:
            provider.close()
        return outcome, len(emulator.requests)


@pytest.mark.parametrize("limit", [200, STREAMED])
def test_a_turn_comes_back_with_its_counts(limit: int) -> None:
    """Whole or streamed, a reply carries text, stop reason, usage, model and id."""
    reply, requests = asked("Hello.", request=turn(max_tokens=limit))

    assert isinstance(reply, Reply)
    assert (reply.text, reply.stop_reason, reply.model) == ("Hello.", "end_turn", turn().model)
    assert reply.usage.input_tokens
    assert reply.usage.output_tokens
    assert reply.id.startswith("msg_")
    assert requests == 1


def test_breakpoints_reach_the_cache() -> None:
    long = "A rule that matters. " * 200
    with Emulator() as emulator:
        provider = AnthropicProvider(api_key=KEY, base_url=emulator.base_url)
        first = provider.send(turn("one", system=long, cache="5m"))
        second = provider.send(turn("two", system=long, cache="5m"))

    assert first.usage.cache_write_tokens
    assert second.usage.cache_read_tokens == first.usage.cache_write_tokens


@pytest.mark.parametrize("limit", [200, STREAMED])
def test_overload_is_retried_as_the_server_asks(limit: int) -> None:
    busy = Fault(529, retry_after_ms=10)

    reply, requests = asked(busy, busy, "At last.", request=turn(max_tokens=limit))

    assert reply.text == "At last."
    assert requests == 3


def test_retry_after_is_obeyed() -> None:
    start = time.monotonic()

    asked(Fault(429, retry_after=0.3), "Now.")

    assert time.monotonic() - start >= 0.3


@pytest.mark.parametrize("limit", [200, STREAMED])
def test_a_refusal_has_its_reason(limit: int) -> None:
    """Category and explanation, as far as the API names them."""
    bare = EmulatedReply("", stop_reason="refusal")
    told = replace(bare, category="bio", explanation="Methods of a lab.")
    request = turn(max_tokens=limit)
    replies = [asked(refusal, request=request)[0] for refusal in (told, bare)]

    assert [reply.refusal for reply in replies] == ["bio: Methods of a lab.", ""]


def test_a_spent_credit_ends_a_run_at_once() -> None:
    """It is a 400, as a request that is malformed, but no other request is answered either."""
    spent = "Your credit balance is too low to access the Anthropic API."
    error, requests = asked(Fault(400, message=spent))

    assert isinstance(error, RejectedRequestError)
    assert "the account has no credit left (HTTP 400)" in str(error)
    assert (error.status, requests) == (402, 1)
    assert "billing" in error.hint


def test_a_spend_limit_is_not_retried() -> None:
    """Only money mends it; the message says so."""
    error, requests = asked(Fault(429, error_code="enforced_spend_limit_reached"))

    assert isinstance(error, RejectedRequestError)
    assert "spend limit" in str(error)
    assert requests == 1


@pytest.mark.parametrize(
    ("fault", "kind", "shown"),
    [
        (Fault(400, message="messages: too odd"), RejectedRequestError, "too odd"),
        (Fault(401), RejectedRequestError, "did not accept the key"),
        (Fault(403), RejectedRequestError, "HTTP 403"),
        (Fault(404, message="model: nope"), RejectedRequestError, "model: nope"),
        (Fault(413), RejectedRequestError, "too large"),
        (Fault(429), TransportError, "limits the rate"),
        (Fault(500), TransportError, "HTTP 500"),
        (Fault(504), TransportError, "HTTP 504"),
        (Fault(529), TransportError, "overloaded"),
        (Fault(502, body="<html>bad gateway</html>"), TransportError, "bad gateway"),
        (Fault(kind="drop"), TransportError, "could not be reached"),
    ],
    ids=lambda value: value.kind + str(value.status) if isinstance(value, Fault) else None,
)
def test_each_failure_is_one_clear_message(
    fault: Fault, kind: type[ProviderError], shown: str
) -> None:
    """Value, reason and next command; the model is named; the key is not."""
    error, _ = asked(fault, max_retries=0)

    assert type(error) is kind
    assert shown in str(error)
    assert turn().model in str(error)
    assert "next: " in str(error)
    assert KEY not in str(error)


LONG = EmulatedReply("So it goes on. " * 40)


def broken(kind: Any, **changes: Any) -> Fault:
    return Fault(kind=kind, reply=LONG, after=12, retry_after_ms=1, **changes)


@pytest.mark.parametrize("kind", ["cut", "error_event"])
def test_a_stream_that_breaks_off_is_asked_for_again(kind: Any) -> None:
    """As a body is; what the attempts took is in the usage of the reply."""
    request = turn(max_tokens=STREAMED)
    whole, _ = asked("Whole.", request=request)
    reply, requests = asked(broken(kind), broken(kind), "Whole.", request=request)

    assert (reply.text, requests) == ("Whole.", 3)
    assert reply.usage.input_tokens == 3 * whole.usage.input_tokens
    assert reply.usage.output_tokens > whole.usage.output_tokens + 50


def test_a_stream_that_breaks_off_each_time_tells_what_it_took() -> None:
    """Input as the stream's beginning told it, output by what was written."""
    request = turn(max_tokens=STREAMED)
    whole, _ = asked(LONG, request=request)
    error, requests = asked(broken("unfinished"), request=request, max_retries=1)

    assert isinstance(error, TransportError)
    assert requests == 2
    assert error.usage is not None
    assert error.usage.input_tokens == 2 * whole.usage.input_tokens
    assert 50 < (error.usage.output_tokens or 0) <= 2 * whole.usage.output_tokens


def test_what_broken_streams_took_is_told_by_the_failure_that_follows() -> None:
    refused = Fault(status=401)
    error, requests = asked(broken("cut"), refused, request=turn(max_tokens=STREAMED))

    assert isinstance(error, RejectedRequestError)
    assert requests == 2
    assert error.usage is not None
    assert error.usage.total_tokens > 50


def test_what_only_money_mends_is_not_asked_for_again_within_a_stream() -> None:
    """A spend limit told in the midst of a stream ends the turn."""
    fault = broken("error_event", status=429, error_code="enforced_spend_limit_reached")
    error, requests = asked(fault, request=turn(max_tokens=STREAMED))

    assert isinstance(error, RejectedRequestError)
    assert requests == 1


def test_a_broken_stream_is_asked_for_again_without_blocking_the_loop() -> None:
    with Emulator(in_order(broken("cut"), "Whole.")) as emulator:
        provider = AnthropicProvider(api_key=KEY, base_url=emulator.base_url)
        reply = asyncio.run(provider.asend(turn(max_tokens=STREAMED)))

        assert reply.text == "Whole."
        assert len(emulator.requests) == 2


def test_a_body_that_breaks_off_is_not_free() -> None:
    """What it took is unknown; a connection that was never made took nothing."""
    cut, _ = asked(Fault(kind="cut", reply=LONG), max_retries=0)
    late, _ = asked(EmulatedReply("late", delay=1.0), timeout=0.1, max_retries=0)
    refused, _ = asked(Fault(status=401))

    assert cut.usage == late.usage == Usage()
    assert "0.1 s" in str(late), "how long it waited"
    assert refused.usage is None


def test_without_a_key_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing key is told with the next command; a profile on disk is never used instead."""
    profile = tmp_path / "configs" / "default.json"
    profile.parent.mkdir()
    profile.write_text(json.dumps({"api_key": "sk-ant-of-a-developer"}), "utf-8")
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))

    with Emulator() as emulator:
        provider = AnthropicProvider(base_url=emulator.base_url)
        with pytest.raises(MissingKeyError, match="export ANTHROPIC_API_KEY"):
            provider.send(turn())

        assert not emulator.requests


def test_key_and_address_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with Emulator(keys=["from-env"]) as emulator:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "from-env")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", emulator.base_url)
        assert AnthropicProvider().send(turn()).text

        with pytest.raises(RejectedRequestError, match="did not accept the key"):
            AnthropicProvider(api_key="other").send(turn())


def test_one_provider_serves_many_threads() -> None:
    with Emulator(lambda body: body["messages"][-1]["content"]) as emulator:
        provider = AnthropicProvider(api_key=KEY, base_url=emulator.base_url)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda n: provider.send(turn(f"number {n}")).text, range(24)))

    assert replies == [f"number {n}" for n in range(24)]


@pytest.mark.parametrize("limit", [200, STREAMED])
def test_the_asynchronous_twin_gives_the_same(limit: int) -> None:
    """``asend`` uses a client of its own per event loop, and gathers without mixing answers."""

    async def all_at_once(provider: AnthropicProvider) -> list[str]:
        turns = [provider.asend(turn(f"number {n}", max_tokens=limit)) for n in range(8)]
        return [reply.text for reply in await asyncio.gather(*turns)]

    with Emulator(lambda body: body["messages"][-1]["content"]) as emulator:
        provider = AnthropicProvider(api_key=KEY, base_url=emulator.base_url)
        for _ in range(2):
            assert asyncio.run(all_at_once(provider)) == [f"number {n}" for n in range(8)]


def test_negative_retries_are_refused() -> None:
    with pytest.raises(UsageError, match="-1"):
        AnthropicProvider(max_retries=-1)


def exceptions_of_the_sdk() -> list[type[Exception]]:
    found: list[type[Exception]] = []
    waiting: list[type[Exception]] = [anthropic.AnthropicError]
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found.append(kind)
            waiting += kind.__subclasses__()
    return sorted(found, key=lambda kind: kind.__name__)


def made(kind: type[Exception]) -> Exception:
    request = httpx2.Request("POST", "https://api.anthropic.com/v1/messages")
    if issubclass(kind, anthropic.APIStatusError):
        status = getattr(kind, "status_code", 500)
        response = httpx2.Response(status if isinstance(status, int) else 500, request=request)
        return kind("x", response=response, body=None)
    # Constructors differ; what matters here is the class, and that it can be shown.
    error = kind.__new__(kind, "x")
    for name in ("request_id", "status_code", "body"):
        if not hasattr(error, name):
            setattr(error, name, None)
    return error


@each("kind", exceptions_of_the_sdk(), ids=lambda kind: kind.__name__)
def test_every_exception_of_the_sdk_has_a_meaning(kind: type[Exception]) -> None:
    """Whatever the SDK can raise becomes one of our errors, with a next step."""
    provider = AnthropicProvider(api_key=KEY)

    failure, _ = provider._failure(made(kind), "claude-sonnet-5-5")

    assert isinstance(failure, ProviderError)
    assert failure.hint
