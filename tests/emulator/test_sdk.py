"""The vendor's SDK talks to the emulator over HTTP as it talks to the API."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from emulator_requests import MODEL

from pytest_regen.emulator import EmulatedReply, Emulator, Fault, Rule, Script, Step, ToolUse

anthropic = pytest.importorskip("anthropic")
httpx2 = pytest.importorskip("httpx2")

Client = Callable[..., Any]
CALL: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 1_000,
    "messages": [{"role": "user", "content": "Say hello."}],
}


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture
def client(emulator: Emulator) -> Iterator[Client]:
    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> Any:
            made = anthropic.Anthropic(
                api_key="sk-ant-secret", base_url=emulator.base_url, **options
            )
            return stack.enter_context(made)

        yield make


def says(emulator: Emulator, *steps: EmulatedReply | Fault | str | Step) -> Emulator:
    whole = [step if isinstance(step, Step) else Step(step) for step in steps]
    emulator.script = Script([Rule(whole)])
    return emulator


def test_a_stream_says_what_a_plain_call_says(emulator: Emulator, client: Client) -> None:
    """The same request gives the same content and usage, but for the id; all of it is labelled."""
    reply = EmulatedReply("Löok.", thinking="Hm.", tools=[ToolUse("look", {"at": "it"})])
    says(emulator, reply)
    call = {**CALL, "tools": [{"name": "look", "input_schema": {"type": "object"}}]}

    raw = client().messages.with_raw_response.create(**call)
    plain = raw.parse()
    with client().messages.stream(**call) as stream:
        streamed = stream.get_final_message()

    def shown(message: Any) -> Any:
        blocks = [block.model_dump(exclude={"id", "parsed_output"}) for block in message.content]
        return blocks, message.stop_reason, message.usage.model_dump()

    assert shown(streamed) == shown(plain)
    assert [block.type for block in plain.content] == ["thinking", "text", "tool_use"]
    assert (plain.content[0].thinking, plain.content[1].text) == ("", "Löok.")
    assert raw.headers["server"] == "pytest-regen-emulator"
    assert plain._request_id.startswith("req_emu")


def test_a_stream_arrives_piece_by_piece(emulator: Emulator, client: Client) -> None:
    says(emulator, EmulatedReply("one two three", chunks=3, chunk_delay=0.05))

    with client().messages.stream(**CALL) as stream:
        arrivals = [(time.perf_counter(), piece) for piece in stream.text_stream]
        final = stream.get_final_message()

    assert [piece for _, piece in arrivals] == ["one", " tw", "o t", "hre", "e"]
    # Pieces that came at once would be read within moments, however busy the machine.
    assert arrivals[-1][0] - arrivals[0][0] > 0.05
    assert final.stop_reason == "end_turn"


def test_each_status_is_the_error_it_is(emulator: Emulator, client: Client) -> None:
    """A scripted status becomes the SDK's class for it, with the request id of the header."""
    for status, name in ((400, "BadRequestError"), (429, "RateLimitError"), (529, "Overloaded")):
        says(emulator, Fault(status))

        with pytest.raises(anthropic.APIStatusError) as caught:
            client(max_retries=0).messages.create(**CALL)

        assert type(caught.value).__name__.startswith(name)
        assert caught.value.status_code == status
        assert caught.value.request_id == caught.value.body["request_id"]


def test_streams_stop_as_scripted(emulator: Emulator, client: Client) -> None:
    """Inside the body, politely but too early, or in an error: after the deltas let through."""
    reply = EmulatedReply("one two three", chunks=3)
    kinds: tuple[Any, ...] = ("cut", "unfinished", "error_event")
    says(emulator, *(Fault(kind=kind, reply=reply, after=2) for kind in kinds))
    talk, heard = client(), []

    def listen() -> Any:
        with talk.messages.stream(**CALL) as stream:
            heard.extend(stream.text_stream)
            return stream.get_final_message()

    with pytest.raises(httpx2.RemoteProtocolError, match="incomplete chunked read"):
        listen()
    assert listen().stop_reason is None
    with pytest.raises(anthropic.APIStatusError) as caught:
        listen()

    assert heard == ["one", " tw"] * 3
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")


def test_a_reply_keeps_the_schema_unless_it_is_cut_or_refused(
    emulator: Emulator, client: Client
) -> None:
    """Text that breaks it is the script's fault; what is cut is no JSON, whoever cut it."""
    says(
        emulator,
        '{"name":"Ada","age":36}',
        '{"name":"Ada"}',
        EmulatedReply('{"name":', stop_reason="max_tokens"),
        EmulatedReply(stop_reason="refusal", category="cyber", explanation="No."),
    )
    schema = {"type": "object", "required": ["age"]}
    talk = client().messages
    call = {**CALL, "output_config": {"format": {"type": "json_schema", "schema": schema}}}

    whole = talk.create(**call)
    with pytest.raises(anthropic.InternalServerError, match="'age' is a required property"):
        talk.create(**call)
    cut, refused = talk.create(**call), talk.create(**call)
    says(emulator, "Ada is 36 years old.")
    limited = talk.create(**{**call, "max_tokens": 4})

    assert whole.content[-1].text == '{"name":"Ada","age":36}'
    assert (cut.stop_reason, cut.content[-1].text) == ("max_tokens", '{"name":')
    assert (refused.stop_details.category, refused.stop_details.explanation) == ("cyber", "No.")
    assert limited.stop_reason == "max_tokens"


def test_models_are_listed_and_found(client: Client) -> None:
    """The list is in pages; one model is found by alias; an unknown one is not."""
    talk = client()

    everything = [model.id for model in talk.models.list(limit=3)]

    assert MODEL in everything
    assert len(everything) == len(set(everything)) > 10
    assert talk.models.retrieve("claude-haiku-4-5").id == "claude-haiku-4-5-20251001"
    with pytest.raises(anthropic.NotFoundError, match="model: claude-nine"):
        talk.models.retrieve("claude-nine")


def test_a_batch_from_creation_to_deletion(emulator: Emulator, client: Client) -> None:
    """It ends by the clock, its results come by custom id, errors among them; one is cancelled."""
    talk = client().messages.batches
    batch = talk.create(
        requests=[
            *({"custom_id": f"r{n}", "params": CALL} for n in range(5)),
            {"custom_id": "wrong", "params": {**CALL, "temperature": 1.0}},
        ]
    )
    other = talk.create(requests=[{"custom_id": "a", "params": CALL}])
    assert talk.cancel(other.id).processing_status == "canceling"
    assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 6)

    emulator.clock.advance(60)
    ended = talk.retrieve(batch.id)
    results = {result.custom_id: result.result for result in talk.results(batch.id)}

    assert (ended.processing_status, ended.request_counts.succeeded) == ("ended", 5)
    assert ended.results_url.startswith(emulator.base_url)
    assert list(results) != sorted(results)
    assert results["r0"].message.usage.service_tier == "batch"
    assert results["wrong"].error.error.type == "invalid_request_error"
    assert [result.result.type for result in talk.results(other.id)] == ["canceled"]
    assert talk.delete(batch.id).type == "message_batch_deleted"
    assert [found.id for found in talk.list(limit=2)] == [other.id]
