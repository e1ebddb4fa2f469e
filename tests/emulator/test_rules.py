"""The emulator refuses what the API refuses, in the API's words, and nothing else."""

from typing import Any

from emulator_requests import api, ask, assistant, body, said, send, text, user
from tables import each

from pytest_regen.turns.models import MODELS, find_model

OLD = "claude-sonnet-4-5"
TOOL = {"name": "look", "input_schema": {"type": "object"}}


def marked(count: int) -> list[dict[str, Any]]:
    return [text(f"part {number}", "5m") for number in range(count)]


def used(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "look", "input": {}}


def result(id_: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": "It is red."}


REFUSED: list[tuple[dict[str, Any], str]] = [
    (body(messages=[]), "messages: at least one message is required"),
    (body(messages=[user([text("")])]), "messages: text content blocks must be non-empty"),
    (body(messages=[assistant("Hi."), user("Hi.")]), 'first message must use the "user" role'),
    (
        body(system=marked(4), cache_control={"type": "ephemeral"}),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (
        body(messages=[user([text("a", "5m"), text("b", "1h")])]),
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come ",
    ),
    (
        body(messages=[user([text("", "5m"), text("x")])]),
        "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
    ),
    (body(temperature=1.0), "`temperature` is deprecated for this model."),
    (
        body(model=OLD, thinking={"type": "enabled", "budget_tokens": 1024}),
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ),
    (
        body(tool_choice={"type": "auto"}),
        "tool_choice: may only be specified while providing tools",
    ),
    (
        body(tools=[{**TOOL, "name": "look up"}]),
        "tools.0.custom.name: String should match pattern",
    ),
    (body(tools=[TOOL, TOOL]), "Tool names must be unique"),
    (
        body(model=OLD, tools=[TOOL], tool_choice={"type": "tool", "name": "hear"}),
        "Tool 'hear' not found in provided tools",
    ),
    (
        body(model="claude-opus-4-6", output_config={"effort": "xhigh"}),
        "level 'xhigh'. Supported levels: high, low, max, medium.",
    ),
    (
        body(model=OLD, messages=[user("x" * 1_000_000)]),
        "prompt is too long: 230003 tokens > 200000 maximum",
    ),
    (
        body(messages=[user("Hi."), assistant([used("t1")]), user("Well?")]),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1.",
    ),
    (
        body(messages=[user([result("t1")])]),
        "messages.0: unexpected `tool_use_id` found in `tool_result` blocks: t1.",
    ),
]


@each(("fields", "message"), REFUSED)
def test_a_broken_rule_is_named_and_not_to_be_retried(fields: dict[str, Any], message: str) -> None:
    response = send(api(), fields)

    error = said(response)
    assert response.status == 400
    assert error["error"]["type"] == "invalid_request_error"
    assert message in error["error"]["message"]
    assert error["request_id"] == response.headers["request-id"]
    assert response.headers["x-should-retry"] == "false"


@each(
    "fields",
    [
        body(messages=[user("Hi."), user("Still there?"), assistant("Hi."), user([text("x")])]),
        body(messages=[user("Hi."), {"role": "system", "content": "Be brief."}]),
        body(messages=[user(marked(4))], cache_control={"type": "ephemeral"}),
        body(system=None, stop_sequences=None, thinking=None),
        body(
            messages=[
                user("Hi."),
                assistant([used("t1"), used("t2")]),
                user([result("t2"), result("t1")]),
            ]
        ),
    ],
)
def test_what_breaks_no_rule_is_answered(fields: dict[str, Any]) -> None:
    response = send(api(), fields)

    assert response.status == 200, said(response)


OLDEST = {"claude-opus-4-5-20251101", "claude-haiku-4-5-20251001", "claude-sonnet-4-5-20250929"}
ALWAYS_THINK = {
    "claude-opus-5-5",
    "claude-fable-5",
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
}
EVERY = {model.id for model in MODELS}


@each(
    ("fields", "taken"),
    [
        ({"messages": [user("Hi."), assistant("So")]}, OLDEST),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "max_tokens": 2_000},
            OLDEST | {"claude-opus-4-6", "claude-sonnet-4-6"},
        ),
        ({"thinking": {"type": "adaptive"}}, EVERY - OLDEST),
        ({"thinking": {"type": "disabled"}}, EVERY - ALWAYS_THINK),
        (
            {"tools": [TOOL], "tool_choice": {"type": "any"}},
            EVERY - ALWAYS_THINK - {"claude-sonnet-5-5"},
        ),
        ({"tools": [TOOL], "tool_choice": {"type": "auto"}}, EVERY),
        ({"max_tokens": 64_000}, EVERY),
        ({"max_tokens": 64_001}, EVERY - OLDEST),
        ({"max_tokens": 128_001}, set()),
        ({"top_p": 1}, set()),
        ({"top_k": 1}, set()),
    ],
)
def test_models_take_what_they_are_documented_to_take(
    fields: dict[str, Any], taken: set[str]
) -> None:
    """Each parameter is accepted by exactly these models and refused with 400 by the others."""
    core = api()

    answers = {model.id: send(core, body(model=model.id, **fields)).status for model in MODELS}

    assert answers == {model.id: 200 if model.id in taken else 400 for model in MODELS}


@each(
    ("headers", "status", "message"),
    [
        ({"authorization": None}, 401, "invalid x-api-key"),
        ({"authorization": "Bearer sk-other"}, 401, "invalid x-api-key"),
        ({"authorization": None, "x_api_key": "sk-test"}, 200, ""),
        ({"anthropic_version": None}, 400, "anthropic-version: header is required"),
        ({"anthropic_version": "2020-01-01"}, 400, "is not a valid version"),
        ({"anthropic_version": "2023-06-01"}, 200, ""),
    ],
)
def test_credentials_and_version(headers: dict[str, Any], status: int, message: str) -> None:
    """A key comes as bearer or x-api-key; the version must be one the API has."""
    response = send(api(keys=["sk-test"]), body(), **headers)

    assert response.status == status
    assert message in (said(response)["error"]["message"] if status != 200 else "")


@each("model", [model.id for model in MODELS if model.is_modern])
def test_thinking_must_come_back_as_it_went_out(model: str) -> None:
    """Text, signature and, on models that bind it, what was said before are all checked."""
    core = api()
    fields = {"model": model, "thinking": {"type": "adaptive"}}
    block, words = ask(core, **fields)["content"]

    def status(block: dict[str, Any], *, first: str = "Hi.") -> int:
        turns = [user(first), assistant([block, words]), user("Go on.")]
        return send(core, body(messages=turns, **fields)).status

    known = find_model(model)
    assert known is not None
    assert status(block) == 200
    assert status({**block, "thinking": "Something else."}) == 400
    assert status({**block, "signature": "Emu" + "A" * 40}) == 400
    assert status(block, first="Edited.") == (400 if known.binds_thinking else 200)


def test_sampling_is_taken_on_the_old_version_by_old_models() -> None:
    core = api()

    old = send(core, body(model=OLD, temperature=0.1), anthropic_version="2023-06-01")
    new = send(core, body(temperature=0.1), anthropic_version="2023-06-01")

    assert (old.status, new.status) == (200, 400)
