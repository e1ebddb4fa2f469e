"""The provider of the real API: the real SDK over real HTTP, against the emulator."""

import asyncio
import json
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tables import each
from turn_values import turn

from pytest_regen.emulator import EmulatedReply, Emulator, Fault
from pytest_regen.errors import (
    MissingKeyError,
    ProviderError,
    RejectedRequestError,
    TransportError,
)
from pytest_regen.turns import AnthropicProvider, BatchProvider, Reply, TurnRequest, Usage
from pytest_regen.turns.sdk import notes

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


@each("limit", [200, STREAMED])
def test_a_refusal_has_its_reason(limit: int) -> None:
    """Category and explanation, as far as the API names them."""
    bare = EmulatedReply("", stop_reason="refusal")
    told = replace(bare, category="bio", explanation="Methods of a lab.")
    request = turn(max_tokens=limit)
    replies = [asked(refusal, request=request)[0] for refusal in (told, bare)]

    assert [reply.refusal for reply in replies] == ["bio: Methods of a lab.", ""]


@each(
    ("fault", "kind", "shown"),
    [
        (Fault(400, message="messages: too odd"), RejectedRequestError, "too odd"),
        (Fault(401, message=f"{KEY}: no"), RejectedRequestError, "did not accept the key"),
        (Fault(404, message="model: nope"), RejectedRequestError, "model: nope"),
        (Fault(429), TransportError, "limits the rate"),
        (Fault(500), TransportError, "HTTP 500"),
        (Fault(529), TransportError, "overloaded"),
        (Fault(502, body="<html>bad gateway</html>"), TransportError, "bad gateway"),
        (Fault(kind="drop"), TransportError, "could not be reached"),
    ],
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


@each(
    ("fault", "shown", "status", "limit"),
    [
        (
            Fault(400, message="Your credit balance is too low to access the Anthropic API."),
            "the account has no credit left (HTTP 400)",
            402,
            200,
        ),
        (Fault(429, error_code="enforced_spend_limit_reached"), "spend limit", 429, 200),
        (
            broken("error_event", status=429, error_code="enforced_spend_limit_reached"),
            "spend limit",
            429,
            STREAMED,
        ),
    ],
)
def test_what_only_money_mends_ends_a_run_at_once(
    fault: Fault, shown: str, status: int, limit: int
) -> None:
    """It is no malformed request, and no limit of speed: no other request is answered either."""
    error, requests = asked(fault, request=turn(max_tokens=limit))

    assert isinstance(error, RejectedRequestError)
    assert shown in str(error)
    assert (error.status, requests) == (status, 1)


def test_a_stream_that_breaks_off_is_asked_for_again() -> None:
    """As a body is, in threads and loops; what the attempts took is in the usage of the reply."""
    request = turn(max_tokens=STREAMED)
    whole, _ = asked("Whole.", request=request)
    reply, requests = asked(broken("cut"), broken("error_event"), "Whole.", request=request)
    with Emulator(in_order(broken("cut"), "Whole.")) as emulator:
        provider = AnthropicProvider(api_key=KEY, base_url=emulator.base_url)
        other = asyncio.run(provider.asend(request))

    assert (reply.text, other.text, requests) == ("Whole.", "Whole.", 3)
    assert reply.usage.input_tokens == 3 * whole.usage.input_tokens
    assert reply.usage.output_tokens > whole.usage.output_tokens + 50


def test_what_broken_streams_took_is_told_by_the_failure() -> None:
    """Input as the stream's beginning told it, output by what was written; refused or cut again."""
    request = turn(max_tokens=STREAMED)
    whole, _ = asked(LONG, request=request)
    error, requests = asked(broken("unfinished"), request=request, max_retries=1)
    refused, _ = asked(broken("cut"), Fault(status=401), request=request)

    assert isinstance(error, TransportError)
    assert requests == 2
    assert error.usage is not None
    assert error.usage.input_tokens == 2 * whole.usage.input_tokens
    assert 50 < (error.usage.output_tokens or 0) <= 2 * whole.usage.output_tokens
    assert isinstance(refused, RejectedRequestError)
    assert refused.usage is not None
    assert refused.usage.total_tokens > 50


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


@each("limit", [200, STREAMED])
def test_one_provider_serves_threads_and_event_loops(limit: int) -> None:
    """One after the other and all at once, whole or streamed: each gets its own answer."""

    async def all_at_once(provider: AnthropicProvider) -> list[Reply]:
        return await asyncio.gather(*map(provider.asend, turns))

    turns = [turn(f"number {n}", max_tokens=limit) for n in range(8)]
    with Emulator(lambda body: body["messages"][-1]["content"]) as emulator:
        provider = AnthropicProvider(api_key=KEY, base_url=emulator.base_url)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(provider.send, turns))
        for _ in range(2):
            replies += asyncio.run(all_at_once(provider))

    assert [reply.text for reply in replies] == [f"number {n}" for n in range(8)] * 3
    assert {(reply.stop_reason, reply.model) for reply in replies} == {("end_turn", turn().model)}
    assert all(reply.usage.output_tokens and reply.id.startswith("msg_") for reply in replies)


def test_a_deprecated_model_answers_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whole, streamed and in a batch, where warnings are errors."""
    notes.clear()
    old = "claude-sonnet-4-5"
    request = turn(model=old)
    with Emulator(batch_seconds=0) as api, warnings.catch_warnings():
        warnings.simplefilter("error")
        provider = AnthropicProvider(api_key=KEY, base_url=api.base_url)
        replies = [provider.send(request), provider.send(replace(request, max_tokens=STREAMED))]
        replies.append(asyncio.run(provider.asend(request)))
        provider.close()
        options: Any = {"api_key": KEY, "base_url": api.base_url}
        with BatchProvider(folder=tmp_path, poll=0.02, **options) as batches:
            replies.append(batches.send(request))
    told = [*notes]
    notes.clear()

    assert {reply.text for reply in replies} == {replies[0].text}
    assert told == caplog.messages
    assert told == [f"note: {old} is deprecated by its provider and retires on November 30th, 2026"]
