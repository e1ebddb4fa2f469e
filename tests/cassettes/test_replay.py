"""Turns replayed without the SDK: as through the real SDK and vcrpy, and by a provider alone."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recorded import outcome, record, replaying
from turn_values import MODEL, turn

from pytest_regen.cassettes import ReplayProvider, use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.misses import differences
from pytest_regen.emulator import EmulatedReply, Fault
from pytest_regen.errors import CassetteMissError, RegenError, TransportError
from pytest_regen.turns import AnthropicProvider, Reply, TurnRequest
from pytest_regen.turns.wire import STREAM_ABOVE, request_body


def shown(result: Reply | RegenError) -> object:
    """Return what a caller can tell two outcomes apart by; the address is the caller's own."""
    if isinstance(result, Reply):
        return result
    return type(result), str(result).replace("127.0.0.1:9", "api.anthropic.com")


async def aoutcomes(provider: AnthropicProvider, requests: list[TurnRequest]) -> list[object]:
    """Return what comes of requests made without blocking."""
    found: list[object] = []
    for request in requests:
        try:
            found.append(shown(await provider.asend(request)))
        except RegenError as error:
            found.append(shown(error))
    return found


def check_equal(path: Path, requests: list[TurnRequest], max_retries: int) -> None:
    """Replay requests on every path, and compare what comes of each."""
    direct = ReplayProvider(path, max_retries=max_retries)
    provider = replaying(max_retries=max_retries)
    with use_cassette(path, answers_turns=False):
        through_sdk = [shown(outcome(provider, request)) for request in requests]
    with use_cassette(path, answers_turns=False):
        through_async_sdk = asyncio.run(aoutcomes(provider, requests))
    with use_cassette(path, http_clients=False):
        in_a_block = [shown(outcome(provider, request)) for request in requests]
    provider.close()

    assert [shown(outcome(direct, request)) for request in requests] == through_sdk
    assert in_a_block == through_sdk
    assert through_async_sdk == through_sdk


WORDS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30),
    st.sampled_from(["line\r\nbreak\u2028and\u0085more", "data: {}\n\nevent: error"]),
)
FILLED = WORDS.map(lambda text: f"{text}.".lstrip())
"""What the API accepts as a message."""
STATUSES = [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529]
REPLIES = st.builds(
    EmulatedReply,
    text=WORDS | st.just("word " * 400),
    stop_reason=st.sampled_from(
        ["end_turn", "refusal", "max_tokens", "stop_sequence", "pause_turn",
         "model_context_window_exceeded"]
    ),
    thinking=st.none() | WORDS,
    chunks=st.none() | st.integers(1, 5),
    check_schema=st.just(value=False),
)  # fmt: skip
FAULTS = st.builds(
    Fault,
    status=st.sampled_from(STATUSES),
    kind=st.sampled_from(["status", "status", "status", "error_event", "cut", "unfinished"]),
    message=st.none() | WORDS,
    error_code=st.sampled_from([None, None, "enforced_spend_limit_reached", "other"]),
    retry_after_ms=st.just(1),
    should_retry=st.sampled_from([None, None, True, False]),
    body=st.none() | st.sampled_from(["", "<html>Bad gateway</html>", "null", "[1]", '{"a": 1']),
    reply=st.builds(
        EmulatedReply, text=st.just("cut off " * 20), check_schema=st.just(value=False)
    ),
    after=st.integers(1, 3),
)
SAID = st.lists(REPLIES | REPLIES | FAULTS, min_size=1, max_size=8)
REQUESTS = st.lists(
    st.builds(
        turn,
        FILLED,
        max_tokens=st.sampled_from([1, 50, STREAM_ABOVE + 1]),
        model=st.sampled_from([MODEL, "", "no-such-model"]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=25, derandomize=True)
@given(requests=REQUESTS, said=SAID, max_retries=st.integers(0, 2))
@example(requests=[turn(max_tokens=STREAM_ABOVE + 1)], said=[Fault(kind="cut")], max_retries=0)
def test_replay_without_the_sdk_equals_replay_through_it(
    tmp_path_factory: pytest.TempPathFactory,
    requests: list[TurnRequest],
    said: list[Any],
    max_retries: int,
) -> None:
    """Replies, failures, retries, what nobody recorded: equal, down to the message."""
    path, waiting = tmp_path_factory.mktemp("c") / "c.yaml", list(said)
    record(
        path,
        requests,
        responder=lambda _body: waiting.pop(0) if waiting else EmulatedReply("more"),
        max_retries=max_retries,
    )

    check_equal(path, requests, max_retries)


def test_a_provider_of_its_own_plays_a_cassette(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    record(path, [turn("one")])
    provider = ReplayProvider(path)

    assert provider.send(turn("one")).text == "one"
    with pytest.raises(CassetteMissError, match="played already"):
        provider.send(turn("one"))
    with pytest.raises(CassetteMissError, match="no cassette at"):
        ReplayProvider(tmp_path / "none.yaml").send(turn("one"))


def test_turns_of_a_gateway_are_played_by_its_address(tmp_path: Path) -> None:
    """Its path is part of what must match; its host stands in messages about failures."""
    path = tmp_path / "c.yaml"
    request = request_body(turn("one"))
    head = {"content-type": ("application/json",)}
    said = json.dumps({"type": "error", "error": {"type": "api_error", "message": "down"}}).encode()
    with use_cassette(path, mode="once", http_clients=False) as run:
        uri = "https://gateway.example/anthropic/v1/messages"
        sent = json.dumps(request).encode()
        run.record(Interaction("POST", uri, head, sent, 500, "", head, said))

    gateway = ReplayProvider(path, base_url="https://gateway.example/anthropic/", max_retries=0)
    with pytest.raises(TransportError, match=r"gateway\.example failed inside"):
        gateway.send(turn("one"))
    with pytest.raises(CassetteMissError, match="has no answer"):
        ReplayProvider(path).send(turn("one"))


def test_a_difference_names_its_path_and_shows_where_texts_part() -> None:
    old = {"messages": [{"content": "a" * 500 + "old ending" + "b" * 100}], "odd key": 1}
    new = {"messages": [{"content": "a" * 500 + "new ending" + "b" * 100}, {}], "system": "s"}

    found = {d.path: d for d in differences(old, new)}

    assert set(found) == {"$.messages[0].content", "$.messages[1]", '$["odd key"]', "$.system"}
    text = found["$.messages[0].content"]
    assert "aaold ending" in text.recorded
    assert "aanew ending" in text.sent
    assert len(str(text)) < 300
    assert found["$.messages[1]"].recorded == "(absent)"
    assert found['$["odd key"]'].sent == "(absent)"
