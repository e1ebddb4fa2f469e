"""The vendor's SDK talks to the emulator over HTTP as it talks to the API."""

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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


def test_a_plain_call(emulator: Emulator, client: Client) -> None:
    """The message has an omitted thinking block first, then the text; all of it is labelled."""
    says(emulator, "Héllo.")

    raw = client().messages.with_raw_response.create(**CALL)
    message = raw.parse()

    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[0].thinking == ""
    assert message.content[1].text == "Héllo."
    assert message.stop_reason == "end_turn"
    assert raw.headers["server"] == "pytest-regen-emulator"
    assert message._request_id.startswith("req_emu")
    assert message.id.startswith("msg_01Emu")


def test_a_stream_arrives_piece_by_piece(emulator: Emulator, client: Client) -> None:
    says(emulator, EmulatedReply("one two three", chunks=3, chunk_delay=0.05))

    with client().messages.stream(**CALL) as stream:
        arrivals = [(time.perf_counter(), piece) for piece in stream.text_stream]
        final = stream.get_final_message()

    assert [piece for _, piece in arrivals] == ["one", " tw", "o t", "hre", "e"]
    # Pieces that came at once would be read within moments, however busy the machine.
    assert arrivals[-1][0] - arrivals[0][0] > 0.05
    assert final.stop_reason == "end_turn"


def test_a_stream_says_what_a_plain_call_says(emulator: Emulator, client: Client) -> None:
    """The same request gives the same content and usage, streamed or not, but for the id."""
    reply = EmulatedReply("Look.", thinking="Hm.", tools=[ToolUse("look", {"at": "it"})])
    says(emulator, reply)
    call = {**CALL, "tools": [{"name": "look", "input_schema": {"type": "object"}}]}

    plain = client().messages.create(**call)
    with client().messages.stream(**call) as stream:
        streamed = stream.get_final_message()

    def shown(message: Any) -> Any:
        blocks = [block.model_dump(exclude={"id", "parsed_output"}) for block in message.content]
        return blocks, message.stop_reason, message.usage.model_dump()

    assert shown(streamed) == shown(plain)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (429, "RateLimitError"),
        (529, "OverloadedError"),
    ],
)
def test_each_status_is_the_error_it_is(
    emulator: Emulator, client: Client, status: int, error: str
) -> None:
    """A scripted status becomes the SDK's class for it, with the request id of the header."""
    says(emulator, Fault(status))

    with pytest.raises(getattr(anthropic, error, anthropic.APIStatusError)) as caught:
        client(max_retries=0).messages.create(**CALL)

    assert type(caught.value).__name__ == error
    assert caught.value.status_code == status
    assert caught.value.request_id == caught.value.body["request_id"]


@pytest.mark.parametrize("kind", ["drop", "cut"])
def test_a_broken_connection_is_a_connection_error(
    emulator: Emulator, client: Client, kind: Any
) -> None:
    """Closed before the first byte or inside a plain body, the connection fails and is retried."""
    says(emulator, Fault(kind=kind), "Second time.")

    with pytest.raises(anthropic.APIConnectionError):
        client(max_retries=0).messages.create(**CALL)
    assert client(max_retries=0).messages.create(**CALL).content[-1].text


def listen(stream_manager: Any, heard: list[str]) -> Any:
    with stream_manager as stream:
        heard.extend(stream.text_stream)
        return stream.get_final_message()


def test_a_cut_stream_breaks_after_what_had_arrived(emulator: Emulator, client: Client) -> None:
    """The connection ends inside the body, after the deltas that were let through."""
    says(
        emulator,
        Fault(kind="cut", reply=EmulatedReply("one two three", chunks=3), after=2),
    )
    heard: list[str] = []

    with pytest.raises(httpx2.RemoteProtocolError, match="incomplete chunked read"):
        listen(client().messages.stream(**CALL), heard)

    assert heard == ["one", " tw"]


def test_an_unfinished_stream_has_no_stop_reason(emulator: Emulator, client: Client) -> None:
    """A stream may end politely before its message does; the SDK does not complain."""
    says(emulator, Fault(kind="unfinished", reply=EmulatedReply("one two", chunks=3), after=1))
    heard: list[str] = []

    final = listen(client().messages.stream(**CALL), heard)

    assert heard == ["one"]
    assert final.stop_reason is None


def test_an_error_in_the_middle_of_a_stream(emulator: Emulator, client: Client) -> None:
    says(emulator, Fault(kind="error_event", after=1))
    heard: list[str] = []

    with pytest.raises(anthropic.APIStatusError) as caught:
        listen(client().messages.stream(**CALL), heard)

    assert heard
    assert caught.value.status_code == 200
    assert caught.value.type == "overloaded_error"


def test_refusals_and_empty_replies(emulator: Emulator, client: Client) -> None:
    """A refusal explains itself, an empty reply has no text, and both are status 200."""
    says(
        emulator,
        EmulatedReply(stop_reason="refusal", category="cyber", explanation="No."),
        EmulatedReply(),
        EmulatedReply("So far", stop_reason="model_context_window_exceeded"),
    )
    talk = client()

    refused = talk.messages.create(**CALL)
    empty = talk.messages.create(**CALL)
    full = talk.messages.create(**CALL)

    assert (refused.stop_details.category, refused.stop_details.explanation) == ("cyber", "No.")
    assert [block.type for block in empty.content] == ["thinking"]
    assert full.stop_reason == "model_context_window_exceeded"


def test_structured_output(emulator: Emulator, client: Client) -> None:
    """``parse`` reads what the script says; text that breaks the schema is the script's fault."""
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str
        age: int

    says(emulator, '{"name":"Ada","age":36}', '{"name":"Ada"}')
    talk = client()

    parsed = talk.messages.parse(**CALL, output_format=Person)

    assert parsed.parsed_output == Person(name="Ada", age=36)
    with pytest.raises(anthropic.InternalServerError, match="'age' is a required property"):
        talk.messages.parse(**CALL, output_format=Person)


@pytest.mark.parametrize(
    ("reply", "limit"),
    [
        (EmulatedReply('{"name":', stop_reason="max_tokens"), 1_000),
        ("Ada is 36 years old.", 4),
    ],
    ids=["by the script", "by the request"],
)
def test_a_cut_reply_is_not_held_to_the_schema(
    emulator: Emulator, client: Client, reply: EmulatedReply | str, limit: int
) -> None:
    """What is cut is no JSON any more, whoever cut it, so it arrives as far as it goes."""
    says(emulator, reply)
    schema = {"type": "object", "required": ["age"]}

    message = client().messages.create(
        **{**CALL, "max_tokens": limit},
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )

    assert message.stop_reason == "max_tokens"
    assert 0 < len(message.content[-1].text) < 20


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
    """It ends by the clock, its results come by custom id, errors among them, then it goes."""
    talk = client().messages.batches
    params = dict(CALL)
    batch = talk.create(
        requests=[
            *({"custom_id": f"r{n}", "params": params} for n in range(5)),
            {"custom_id": "wrong", "params": {**params, "temperature": 1.0}},
        ]
    )
    assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 6)

    emulator.clock.advance(60)
    ended = talk.retrieve(batch.id)
    results = {result.custom_id: result.result for result in talk.results(batch.id)}

    assert (ended.processing_status, ended.request_counts.succeeded) == ("ended", 5)
    assert ended.results_url.startswith(emulator.base_url)
    assert list(results) != sorted(results)
    assert results["r0"].message.usage.service_tier == "batch"
    assert results["wrong"].error.error.type == "invalid_request_error"
    assert talk.delete(batch.id).type == "message_batch_deleted"
    assert [found.id for found in talk.list(limit=2)] == []


def test_a_cancelled_batch_has_no_messages(emulator: Emulator, client: Client) -> None:
    talk = client().messages.batches
    batch = talk.create(requests=[{"custom_id": "a", "params": dict(CALL)}])
    assert talk.cancel(batch.id).processing_status == "canceling"

    emulator.clock.advance(1)

    assert talk.retrieve(batch.id).processing_status == "ended"
    assert [result.result.type for result in talk.results(batch.id)] == ["canceled"]


def test_calls_at_once_do_not_mix(emulator: Emulator, client: Client) -> None:
    """Twenty-four threads with four calls each, half of them streamed: each its own answer."""
    emulator.responder = lambda body: f"You said {body['messages'][0]['content']}."
    talk = client(max_retries=0)

    def answer(number: int) -> str:
        call = {**CALL, "messages": [{"role": "user", "content": str(number)}]}
        if number % 2:
            with talk.messages.stream(**call) as stream:
                return str(stream.get_final_text())
        return str(talk.messages.create(**call).content[-1].text)

    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(answer, range(24 * 4)))

    assert answers == [f"You said {number}." for number in range(24 * 4)]
