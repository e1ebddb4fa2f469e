"""Which model takes what, by the vendor's documentation; and tools, citations, warming, limits."""

from typing import Any

import pytest
from emulator_requests import api, assistant, body, said, send, text, user
from tables import each

from pytest_regen.turns.models import MODELS

TOOL = {"name": "look", "input_schema": {"type": "object"}}
OBJECT = {"type": "object", "properties": {}, "additionalProperties": False}
OLD = "claude-sonnet-4-5"

OLDEST = {"claude-opus-4-5-20251101", "claude-haiku-4-5-20251001", "claude-sonnet-4-5-20250929"}
BEFORE_4_7 = OLDEST | {"claude-opus-4-6", "claude-sonnet-4-6"}
ALWAYS_THINK = {
    "claude-opus-5-5",
    "claude-fable-5",
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
}
NEVER_FORCED = ALWAYS_THINK | {"claude-sonnet-5-5"}
EVERY = {model.id for model in MODELS}

MATRIX: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a prefilled reply": ({"messages": [user("Hi."), assistant("So")]}, OLDEST),
    "thinking with a budget": (
        {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "max_tokens": 2_000},
        BEFORE_4_7,
    ),
    "adaptive thinking": ({"thinking": {"type": "adaptive"}}, EVERY - OLDEST),
    "no thinking": ({"thinking": {"type": "disabled"}}, EVERY - ALWAYS_THINK),
    "any tool": ({"tools": [TOOL], "tool_choice": {"type": "any"}}, EVERY - NEVER_FORCED),
    "one tool": (
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "look"}},
        EVERY - NEVER_FORCED,
    ),
    "a tool if it likes": ({"tools": [TOOL], "tool_choice": {"type": "auto"}}, EVERY),
    "64,000 tokens of output": ({"max_tokens": 64_000}, EVERY),
    "64,001 tokens of output": ({"max_tokens": 64_001}, EVERY - OLDEST),
    "128,001 tokens of output": ({"max_tokens": 128_001}, set()),
    "temperature 1": ({"temperature": 1}, set()),
    "top_p 1": ({"top_p": 1}, set()),
    "top_k 1": ({"top_k": 1}, set()),
}


@each(("fields", "taken"), MATRIX.values(), ids=MATRIX)
def test_models_take_what_they_are_documented_to_take(
    fields: dict[str, Any], taken: set[str]
) -> None:
    """Each parameter is accepted by exactly these models and refused with 400 by the others."""
    core = api()

    answers = {model.id: send(core, body(model=model.id, **fields)).status for model in MODELS}

    assert answers == {model.id: 200 if model.id in taken else 400 for model in MODELS}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": OBJECT, **more}


def structured(schema: object, **fields: Any) -> dict[str, Any]:
    return body(output_config={"format": {"type": "json_schema", "schema": schema}}, **fields)


CITATION = {
    "type": "char_location",
    "cited_text": "x",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 1,
}
CITED = [{"type": "text", "text": "x", "citations": [CITATION]}]
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
REDACTED = {"type": "redacted_thinking", "data": "AAAA"}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "tool without a schema": (
        body(tools=[{"name": "look"}]),
        "tools.0.input_schema: Field required",
    ),
    "tool with a blank in its name": (
        body(tools=[tool("look up")]),
        "tools.0.custom.name: String should match pattern",
    ),
    "two tools of one name": (body(tools=[tool("a"), tool("a")]), "Tool names must be unique"),
    "a tool that is not there": (
        body(model=OLD, tools=[TOOL], tool_choice={"type": "tool", "name": "hear"}),
        "Tool 'hear' not found in provided tools",
    ),
    "a tool without a name": (
        body(model=OLD, tools=[TOOL], tool_choice={"type": "tool"}),
        "tool_choice.name: Field required",
    ),
    "citations in a user message": (
        body(messages=[user(CITED)]),
        "messages.0.content.0.text.citations",
    ),
    "redacted thinking that nobody issued": (
        body(messages=[user("Hi."), assistant([REDACTED, text("Hi.")]), user("Well?")]),
        "cannot be modified",
    ),
}


@each(("fields", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_with_400(fields: dict[str, Any], message: str) -> None:
    """A broken rule is an invalid_request_error that says which, and is not to be retried."""
    response = send(api(), fields)

    assert response.status == 400
    assert message in said(response)["error"]["message"]
    assert response.headers["x-should-retry"] == "false"


ACCEPTED: dict[str, dict[str, Any]] = {
    "20 strict tools": body(tools=[tool(f"t{number}", strict=True) for number in range(20)]),
    "a tool of the vendor": body(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    "no citations in a user message": body(messages=[user([{**text("x"), "citations": []}])]),
    "citations in an assistant message": body(
        messages=[user("Hi."), assistant(CITED), user("Well?")]
    ),
    "cited documents": body(messages=[user([{**DOCUMENT, "citations": {"enabled": True}}])]),
    "structured output from documents": structured(OBJECT, messages=[user([DOCUMENT])]),
}


@pytest.mark.parametrize("fields", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(fields: dict[str, Any]) -> None:
    response = send(api("{}"), fields)

    assert response.status == 200, said(response)


def test_the_old_version_takes_what_the_new_one_refuses() -> None:
    statuses = [
        send(api(), body(messages=[user(CITED)]), anthropic_version=version).status
        for version in ("2023-06-01", "2026-10-21")
    ]

    assert statuses == [200, 400]
