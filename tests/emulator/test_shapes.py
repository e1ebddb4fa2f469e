"""The SDK's own types decide which requests have the right shape; what they lack is noted."""

import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from typing import Any, Required

import pytest
from emulator_requests import api, assistant, body, said, send, user
from tables import each

from pytest_regen.emulator import Emulator

anthropic = pytest.importorskip("anthropic")
types = anthropic.types
TOOL = {"name": "look", "input_schema": {}}


@each(
    ("fields", "message"),
    [
        (body(messages=...), "messages: Field required"),
        (body(max_tokens="9"), "max_tokens: Input should be a valid integer"),
        (
            body(messages=[{"role": "bogus", "content": "x"}]),
            "messages.0.role: Input should be 'user' or 'assistant'",
        ),
        (body(tools=[TOOL], tool_choice={"type": "tool"}), "tool_choice.name: Field required"),
        (
            body(messages=[user("Hi."), user([{"type": "text", "text": 5}])]),
            "messages.1.content.0.text: Input should be a valid string",
        ),
    ],
)
def test_what_fits_no_type_is_refused(fields: dict[str, Any], message: str) -> None:
    """Also behind iterables, which pydantic alone leaves unread."""
    response = send(api(), fields)

    assert response.status == 400
    assert message in said(response)["error"]["message"]


@each(
    ("fields", "note"),
    [
        (body(colour="red"), "colour: the SDK has no field of this name"),
        (
            body(messages=[user([{"type": "smell"}])]),
            "messages.0.content.0.type: the SDK has no type for 'smell'",
        ),
        (
            body(thinking={"type": "aloud", "budget_tokens": "many"}),
            "thinking.type: the SDK has no type for 'aloud'",
        ),
    ],
)
def test_what_the_types_do_not_know_passes_with_a_note(fields: dict[str, Any], note: str) -> None:
    """The API may be newer than the SDK, so a 400 could be wrong."""
    core = api()

    assert send(core, fields).status == 200
    assert core.requests[0].notes == [note]


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
        case "server_tool_use" | "thinking" | "redacted_thinking":
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


@each("kind", typing.get_args(types.ToolUnionParam))
def test_every_tool_of_the_sdk_passes(client: Any, emulator: Emulator, kind: Any) -> None:
    create(client, emulator, tools=[minimal(kind)])


@each("kind", typing.get_args(types.ContentBlockParam))
def test_every_block_of_the_sdk_passes(client: Any, emulator: Emulator, kind: Any) -> None:
    """In the shortest conversation that may hold it; thinking must be what the emulator sent."""
    block = minimal(kind)
    if block["type"] == "thinking":
        block = client.messages.create(**body()).content[0].to_dict()
    create(client, emulator, messages=conversation(block))


@each(
    "fields",
    [
        {"thread": {"type": "create"}},
        {"compaction": {"type": "summarize"}},
        {"fallbacks": [{"model": "claude-haiku-5-5"}]},
        {"fallbacks": "default"},
    ],
)
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
