"""The SDK's own types decide which requests have the right shape; what they lack is noted."""

import subprocess
import sys
from typing import Any

import pytest
from emulator_requests import api, body, said, send, user
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


@each("fields", [{"thread": {"type": "create"}}, {"fallbacks": "default"}])
def test_the_shapes_of_the_beta_client_pass(fields: dict[str, Any]) -> None:
    with Emulator(lambda _body: "Hello.") as emulator:
        with anthropic.Anthropic(api_key="k", base_url=emulator.base_url) as client:
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
