"""The SDK's own types decide which requests have the right shape; what they lack is noted."""

import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from typing import Any, Required

import pytest
from emulator_requests import MODEL, api, assistant, body, said, send, user
from tables import each

from pytest_regen.emulator import Emulator, serve
from pytest_regen.emulator.shapes import check_shape

anthropic = pytest.importorskip("anthropic")
types = anthropic.types

WRONG = {
    "a role that nobody has": (
        body(messages=[{"role": "bogus", "content": "x"}]),
        "messages.0.role: Input should be 'user' or 'assistant'",
    ),
    "content that is a number": (
        body(messages=[user(5)]),
        "messages.0.content: Input should be a valid list",
    ),
    "a tool without a name": (body(tools=[{"input_schema": {}}]), "tools.0.name: Field required"),
    "a misspelt member": (
        body(max_tokens=..., max_token=5),
        "max_tokens: Field required",
    ),
    "a block behind an iterable": (
        body(messages=[user("Hi."), user([{"type": "text", "text": 5}])]),
        "messages.1.content.0.text: Input should be a valid string",
    ),
}


@each(("fields", "message"), WRONG.values(), ids=WRONG)
def test_what_pydantic_would_let_pass_is_refused(fields: dict[str, Any], message: str) -> None:
    """The types alone accept all five: iterables are never read, unknown members are ignored."""
    response = send(api(), fields)

    assert response.status == 400
    assert message in said(response)["error"]["message"]


UNKNOWN = {
    "a member": (body(colour="red"), "colour: the SDK has no field of this name"),
    "a member of a block": (
        body(messages=[user([{"type": "text", "text": "x", "tone": "dry"}])]),
        "messages.0.content.0.tone: the SDK has no field of this name",
    ),
    "a block": (
        body(messages=[user([{"type": "smell"}])]),
        "messages.0.content.0.type: the SDK has no type for 'smell'",
    ),
    "a tool": (
        body(tools=[{"type": "telescope_20270101"}]),
        "tools.0.type: the SDK has no type for 'telescope_20270101'",
    ),
    "a way to think": (
        body(thinking={"type": "aloud", "budget_tokens": "many"}),
        "thinking.type: the SDK has no type for 'aloud'",
    ),
}


@each(("fields", "note"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_the_types_do_not_know_passes_with_a_note(fields: dict[str, Any], note: str) -> None:
    """The API may be newer than the SDK, so a 400 could be wrong."""
    assert send(api(), fields).status == 200
    assert check_shape(fields, beta=False) == [note]


def test_the_notes_stand_in_the_record_and_in_the_lines_of_the_command() -> None:
    """Whoever looks at what arrived, or at the terminal, sees what was not checked."""
    lines: list[str] = []

    def ask(base_url: str) -> None:
        with anthropic.Anthropic(api_key="k", base_url=base_url) as client:
            client.messages.create(**body(), extra_body={"colour": "red"})
        raise KeyboardInterrupt

    serve(ready=ask, answered=lines.append)
    with (
        Emulator() as emulator,
        anthropic.Anthropic(base_url=emulator.base_url, api_key="k") as sdk,
    ):
        sdk.messages.create(**body(), extra_body={"colour": "red"})

    assert emulator.requests[0].notes == ["colour: the SDK has no field of this name"]
    assert lines == [
        "POST /v1/messages 200",
        "warning: not checked: colour: the SDK has no field of this name",
    ]


def minimal(annotation: Any) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if hasattr(annotation, "__required_keys__"):
        hints = typing.get_type_hints(annotation, include_extras=True)
        return {k: minimal(v) for k, v in hints.items() if typing.get_origin(v) is Required}
    if origin is typing.Literal:
        return arguments[0]
    if origin in {dict, list} or annotation in {str, int, bool, object}:
        return {str: "x", int: 1, bool: True, dict: {}, list: []}.get(origin or annotation, {})
    if origin is not None and inspect.isclass(origin) and issubclass(origin, typing.Iterable):
        return [minimal(arguments[0])]
    return minimal(arguments[0])


def members(union: Any) -> list[Any]:
    return [pytest.param(kind, id=kind.__name__) for kind in typing.get_args(union)]


def used(kind: str, id_: str) -> dict[str, Any]:
    return {"type": kind, "id": id_, "name": "web_search", "input": {}}


def conversation(block: dict[str, Any]) -> list[dict[str, Any]]:
    match block["type"]:
        case "tool_result":
            return [user("Hi."), assistant([used("tool_use", "x")]), user([block])]
        case "tool_use":
            result = {"type": "tool_result", "tool_use_id": block["id"]}
            return [user("Hi."), assistant([block]), user([result])]
        case str(kind) if kind.endswith("_result") and kind != "search_result":
            called = used("server_tool_use", block["tool_use_id"])
            return [user("Hi."), assistant([called, block]), user("Go on.")]
        case "server_tool_use":
            return [user("Hi."), assistant([block]), user("Go on.")]
        case _:
            return [user([block])]


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(lambda _body: "Hello.") as running:
        yield running


@pytest.fixture(scope="module")
def client(emulator: Emulator) -> Iterator[Any]:
    with anthropic.Anthropic(api_key="k", base_url=emulator.base_url, max_retries=0) as made:
        yield made


def create(client: Any, emulator: Emulator, **fields: Any) -> None:
    client.messages.create(**body(**fields))
    assert list(emulator.requests[-1].notes) == []


@pytest.mark.parametrize("kind", members(types.ToolUnionParam))
def test_every_tool_of_the_sdk_passes(client: Any, emulator: Emulator, kind: Any) -> None:
    create(client, emulator, tools=[minimal(kind)])


@pytest.mark.parametrize("kind", members(types.ContentBlockParam))
def test_every_block_of_the_sdk_passes(client: Any, emulator: Emulator, kind: Any) -> None:
    """In the shortest conversation that may hold it; thinking must be what the emulator sent."""
    block = minimal(kind)
    if block["type"] == "redacted_thinking":
        pytest.skip("the emulator never sends redacted thinking, so it refuses it as forged")
    if block["type"] == "thinking":
        thought = client.messages.create(**body()).content[0].to_dict()
        create(client, emulator, messages=[user("Hi."), assistant([thought]), user("Go on.")])
    else:
        create(client, emulator, messages=conversation(block))


@pytest.mark.parametrize("kind", members(types.ThinkingConfigParam))
def test_every_way_to_think_passes(client: Any, emulator: Emulator, kind: Any) -> None:
    thinking = minimal(kind)
    takes = {"enabled": "claude-haiku-4-5"}.get(thinking["type"], MODEL)
    if "budget_tokens" in thinking:
        thinking["budget_tokens"] = 1_024
    create(client, emulator, thinking=thinking, model=takes, max_tokens=2_000)


def test_a_request_of_a_batch_passes(client: Any, emulator: Emulator) -> None:
    """It is checked as a call is, once the batch is processed."""
    request = minimal(types.messages.batch_create_params.Request)
    request["params"] = body(**{**request["params"], "model": MODEL, "max_tokens": 100})
    batch = client.messages.batches.create(requests=[request])
    creation = emulator.requests[-1]
    emulator.clock.advance(60)

    [result] = client.messages.batches.results(batch.id)

    assert result.result.type == "succeeded"
    assert list(creation.notes) == []


BETA = {
    "thread": {"thread": {"type": "create"}},
    "compaction": {"compaction": {"type": "summarize"}},
    "fallbacks": {"fallbacks": [{"model": "claude-haiku-5-5"}]},
    "default fallbacks": {"fallbacks": "default"},
}


@pytest.mark.parametrize("fields", BETA.values(), ids=BETA)
def test_the_shapes_of_the_beta_client_pass(
    client: Any, emulator: Emulator, fields: dict[str, Any]
) -> None:
    client.beta.messages.create(**body(**fields), betas=["any-2026-01-01"])

    assert list(emulator.requests[-1].notes) == []


def test_without_the_sdk_the_emulator_names_the_extra() -> None:
    """Before it listens, so that no client waits for an answer that never comes."""
    code = (
        "import sys; sys.modules['anthropic'] = None\n"
        "from pytest_regen.emulator import Emulator\n"
        "Emulator().start()\n"
    )

    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)

    assert (
        "requests to the emulator need the package anthropic, which is not installed" in done.stderr
    )
    assert "pip install 'pytest-regen[anthropic]'" in done.stderr
