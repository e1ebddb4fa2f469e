"""Responses look like recorded ones, field by field; skipped where the recordings are absent."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from emulator_requests import HEADERS, api, dumped, said

from pytest_regen.emulator.clock import Clock
from pytest_regen.emulator.models import find_model
from pytest_regen.emulator.values import EmulatedReply, ToolUse
from pytest_regen.emulator.wire import HttpRequest, HttpResponse

FOLDER = Path(__file__).parents[3] / "shared/data/anthropic-cassettes"
FILES = sorted(FOLDER.glob("*.yaml")) if FOLDER.is_dir() else []
pytestmark = pytest.mark.skipif(not FILES, reason="the recordings are not beside this checkout")

NEWER = {"stop_details", "output_tokens_details", "cache_creation", "inference_geo", "request_id"}
"""Fields that the API has added since the oldest recordings."""
INFRASTRUCTURE = {
    "cf-cache-status",
    "cf-ray",
    "connection",
    "content-length",
    "content-security-policy",
    "date",
    "server-timing",
    "strict-transport-security",
    "transfer-encoding",
    "via",
    "x-cloud-trace-context",
    "x-envoy-upstream-service-time",
    "x-robots-tag",
}
"""Headers that proxies and the connection add."""


def recorded() -> list[Any]:
    """Return every recorded exchange as a parameter."""
    return [
        pytest.param(interaction, id=f"{path.stem[:40]}-{number}")
        for path in FILES
        for number, interaction in enumerate(
            yaml.safe_load(path.read_text("utf-8"))["interactions"]
        )
    ]


def request_of(interaction: dict[str, Any]) -> dict[str, Any]:
    """Return the recorded request, its retired models replaced by one that is left."""
    request = interaction["request"]
    fields = request.get("parsed_body") or json.loads(request["body"])
    if find_model(fields["model"]) is None and fields["model"] != "claude-does-not-exist":
        fields["model"] = "claude-sonnet-4-5"
    parsed: dict[str, Any] = fields
    return parsed


def response_text(interaction: dict[str, Any]) -> str:
    """Return the recorded body as text."""
    response = interaction["response"]
    if "parsed_body" in response:
        return json.dumps(response["parsed_body"])
    text = response["body"]["string"]
    return gzip.decompress(text).decode() if isinstance(text, bytes) else str(text)


def events(text: str) -> list[Any]:
    """Return the JSON of each event of a stream."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def reply_of(text: str) -> EmulatedReply:
    """Return the reply that says what was recorded."""
    if text.startswith("event:"):
        deltas = [event["delta"] for event in events(text) if "index" in event and "delta" in event]
        stop = next(e for e in events(text) if e["type"] == "message_delta")["delta"]["stop_reason"]
        return EmulatedReply(
            "".join(delta.get("text", "") for delta in deltas),
            stop,
            "".join(delta.get("thinking", "") for delta in deltas) or None,
            output_tokens=1,
        )
    message = json.loads(text)
    content = message.get("content", [])
    return EmulatedReply(
        "".join(block.get("text", "") for block in content),
        tools=[ToolUse(b["name"], b["input"]) for b in content if b["type"] == "tool_use"],
        output_tokens=1,
    )


def emulated(interaction: dict[str, Any]) -> HttpResponse:
    """Return what the emulator answers to the recorded request, told to say the same."""
    reply = reply_of(response_text(interaction))
    core = api(reply, clock=Clock(0.0))
    path = interaction["request"]["uri"].partition(".com")[2].partition("?")[0]
    headers = {**HEADERS, "anthropic-version": "2023-06-01"}
    fields = request_of(interaction)
    return core.handle(HttpRequest("POST", path, {}, headers, dumped(fields)))


def shape(value: Any) -> Any:
    """Return the keys and the JSON types of a value; ids by their prefix."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items() if key != "input"}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    if isinstance(value, str) and value.startswith(("msg_01", "toolu_01")):
        return value.split("_")[0]
    return type(value).__name__


def without_newer(ours: Any, theirs: Any) -> Any:
    """Return our shape without the fields that are newer than the recording."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {
            key: without_newer(inner, theirs.get(key))
            for key, inner in ours.items()
            if key in theirs or key not in NEWER
        }
    if isinstance(ours, list) and isinstance(theirs, list):
        return [without_newer(a, b) for a, b in zip(ours, theirs, strict=True)]
    return ours


@pytest.mark.parametrize("interaction", recorded())
def test_plain_bodies_have_the_recorded_shape(interaction: dict[str, Any]) -> None:
    """Every recorded field is there with its type, and no field that the API never had."""
    text = response_text(interaction)
    if text.startswith("event:"):
        pytest.skip("a stream")
    theirs = shape(json.loads(text))

    response = emulated(interaction)

    assert response.status == interaction["response"]["status"]["code"]
    assert without_newer(shape(said(response)), theirs) == theirs


@pytest.mark.parametrize("interaction", recorded())
def test_streams_have_the_recorded_events(interaction: dict[str, Any]) -> None:
    """The same kinds of events in the same order, deltas counted as one, each of its shape."""
    text = response_text(interaction)
    if not text.startswith("event:"):
        pytest.skip("not a stream")
    sent = b"".join(part.data for part in emulated(interaction).parts or ()).decode()

    theirs, ours = distinct(events(text)), distinct(events(sent))

    assert [event["type"] for event in ours] == [event["type"] for event in theirs]
    for mine, recorded_event in zip(ours, theirs, strict=True):
        delta_usage = mine["type"] == "message_delta"
        if delta_usage:  # the oldest recording has output tokens alone
            mine["usage"] = {k: v for k, v in mine["usage"].items() if k in recorded_event["usage"]}
        assert without_newer(shape(mine), shape(recorded_event)) == shape(recorded_event)


def distinct(found: list[Any]) -> list[Any]:
    """Return the events, a run of deltas of one kind only once."""
    kept: list[Any] = []
    for event in found:
        kind = (event["type"], event.get("index"), (event.get("delta") or {}).get("type"))
        before = kept[-1] if kept else {}
        last = (before.get("type"), before.get("index"), (before.get("delta") or {}).get("type"))
        if kind != last or kind[0] != "content_block_delta":
            kept.append(event)
    return kept


@pytest.mark.parametrize("interaction", recorded())
def test_headers_of_the_api_are_there(interaction: dict[str, Any]) -> None:
    """Whatever was recorded and is not of a proxy or of the connection."""
    response = emulated(interaction)
    theirs = {name.lower() for name in interaction["response"]["headers"]} - INFRASTRUCTURE
    if response.status == 400:
        theirs -= {"x-should-retry"}  # sent by the API of 2024; the SDK decides by status
    packed = {"content-encoding", "vary"}

    assert theirs - packed - {name.lower() for name in response.headers} == set()
