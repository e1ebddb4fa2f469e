"""Turns replayed without the SDK against the same turns through the real SDK and vcrpy."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import outcome, record, replaying
from tables import each
from turn_values import MODEL

from pytest_regen.cassettes import ReplayProvider, read_cassette, use_cassette
from pytest_regen.emulator import EmulatedReply, Fault
from pytest_regen.errors import RegenError
from pytest_regen.turns import AnthropicProvider, Message, Reply, TurnRequest
from pytest_regen.turns.wire import STREAM_ABOVE, request_body

EXAMPLES = Path(__file__).parents[2] / "examples"
RECORDED = sorted(path for path in EXAMPLES.rglob("*.yaml") if "cassettes" in path.parts)


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


def check_equal(path: Path, requests: list[TurnRequest], max_retries: int = 2) -> list[object]:
    """Replay requests on every path, compare what comes of each, and return it."""
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
    return through_sdk


# What the project ships


def request_of(body: Mapping[str, Any]) -> TurnRequest:
    """Return the request that was recorded as ``body``."""
    system, cache = text_of(body.get("system", ""))
    return TurnRequest(
        system,
        tuple(Message(one["role"], *text_of(one["content"])) for one in body["messages"]),
        body["model"],
        body["max_tokens"],
        body.get("output_config", {}).get("format", {}).get("schema"),
        cache,
    )


def text_of(content: Any) -> tuple[str, Any]:
    """Return the text of a message or system prompt, and the life of its breakpoint."""
    if isinstance(content, str):
        return content, None
    [block] = content
    return block["text"], block["cache_control"].get("ttl", "5m")


@each("path", RECORDED, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_every_recording_of_the_examples_replays_the_same(path: Path) -> None:
    """Each recorded request is asked again, as it stands in the file, on every path."""
    file = read_cassette(path)
    assert file is not None
    bodies = [json.loads(stored.interaction.request_body) for stored in file.interactions]
    requests = [request_of(body) for body in bodies]
    assert [request_body(request) for request in requests] == bodies

    found = check_equal(path, requests)

    assert found
    assert all(isinstance(one, Reply) and one.text for one in found)


# What nobody wrote by hand

WORDS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30),
    st.sampled_from(
        [
            "",
            " ",
            "line\r\nbreak\u2028and\u0085more",
            "👩‍👩‍👧 e\u0301 \ufeff ق 日本",
            "data: {}\n\nevent: error",
            '{"a": "b"}',
            "- yaml: |\n  \t!!python/name:os.system",
            "key sk-ant-api03-" + "a1B2c3D4" * 5,
        ]
    ),
)
FILLED = WORDS.map(lambda text: f"{text}.".lstrip())
"""What the API accepts as a message."""
TTL: st.SearchStrategy[Any] = st.sampled_from([None, "5m", "1h"])
MODELS = st.sampled_from([MODEL, "claude-haiku-4-5", ""])
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
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
MORE = EmulatedReply("more", check_schema=False)


@st.composite
def requests_made(draw: Callable[..., Any]) -> list[TurnRequest]:
    """Return the requests of a conversation, or of several that have nothing in common."""
    found: list[TurnRequest] = []
    # What the API refuses is drawn rarely, so that most requests are answered.
    refused = draw(st.integers(0, 5))
    words = WORDS if refused == 1 else FILLED
    ttl = TTL if refused == 2 else st.sampled_from([None, draw(TTL)])
    model = "no-such-model" if refused == 3 else draw(MODELS)
    for _ in range(draw(st.integers(1, 4))):
        pairs = draw(st.lists(st.tuples(words, ttl, words), max_size=4))
        before = [
            message
            for asked, ttl, told in pairs
            for message in (Message("user", asked, ttl), Message("assistant", told))
        ]
        if found and draw(st.booleans()):
            before = [*found[-1].messages, Message("assistant", draw(words))]
        found.append(
            TurnRequest(
                draw(st.just("") | words),
                (*before, Message("user", draw(words), draw(ttl))),
                model,
                draw(st.sampled_from([50, 1, 1_000, STREAM_ABOVE, STREAM_ABOVE + 1])),
                draw(st.sampled_from([None, None, SCHEMA])),
                draw(ttl),
            )
        )
    return found


def check_generated(
    path: Path, requests: list[TurnRequest], said: list[Any], max_retries: int
) -> None:
    """Record through the SDK, then replay on every path."""
    waiting = list(said)
    record(
        path,
        requests,
        responder=lambda _body: waiting.pop(0) if waiting else MORE,
        max_retries=max_retries,
    )
    check_equal(path, requests, max_retries)


GENERATED = given(requests=requests_made(), said=SAID, max_retries=st.integers(0, 2))


@settings(max_examples=25, derandomize=True)
@GENERATED
def test_replay_without_the_sdk_equals_replay_through_it(
    tmp_path_factory: pytest.TempPathFactory,
    requests: list[TurnRequest],
    said: list[Any],
    max_retries: int,
) -> None:
    """Replies, failures, retries, what nobody recorded: equal, down to the message."""
    check_generated(tmp_path_factory.mktemp("c") / "c.yaml", requests, said, max_retries)


@pytest.mark.sweep
@settings(max_examples=500)
@GENERATED
def test_replay_without_the_sdk_equals_replay_through_it_at_length(
    tmp_path_factory: pytest.TempPathFactory,
    requests: list[TurnRequest],
    said: list[Any],
    max_retries: int,
) -> None:
    """The same law over many more conversations."""
    check_generated(tmp_path_factory.mktemp("c") / "c.yaml", requests, said, max_retries)
