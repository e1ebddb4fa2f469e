"""Responses look like recorded ones, field by field; skipped where the recordings are absent."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from emulator_requests import HEADERS, api, dumped, said

from pytest_regen.emulator import Emulator
from pytest_regen.emulator.limits import Clock
from pytest_regen.emulator.values import EmulatedReply, HttpResponse, ToolUse
from pytest_regen.turns.models import find_model

FOLDER = Path(__file__).parents[3] / "shared/data/anthropic-cassettes"
FILES = sorted(FOLDER.glob("*.yaml")) if FOLDER.is_dir() else []
pytestmark = pytest.mark.skipif(not FILES, reason="the recordings are not beside this checkout")

NEWER = {"stop_details", "output_tokens_details", "cache_creation", "inference_geo", "request_id"}
"""Fields that the API has added since the oldest recordings."""
VALUES = {
    "input",
    "inference_geo",
    "message",
    "role",
    "service_tier",
    "stop_reason",
    "stop_sequence",
    "type",
}
"""Fields of which the value counts, not only its type, where they hold a text or are null."""


def recorded() -> list[Any]:
    return [
        pytest.param(interaction, id=f"{path.stem[:40]}-{number}")
        for path in FILES
        for number, interaction in enumerate(
            yaml.safe_load(path.read_text("utf-8"))["interactions"]
        )
    ]


def request_of(interaction: dict[str, Any]) -> dict[str, Any]:
    request = interaction["request"]
    fields = request.get("parsed_body") or json.loads(request["body"])
    if find_model(fields["model"]) is None and fields["model"] != "claude-does-not-exist":
        fields["model"] = "claude-sonnet-4-5"
    parsed: dict[str, Any] = fields
    return parsed


def response_text(interaction: dict[str, Any]) -> str:
    response = interaction["response"]
    if "parsed_body" in response:
        return json.dumps(response["parsed_body"])
    text = response["body"]["string"]
    return gzip.decompress(text).decode() if isinstance(text, bytes) else str(text)


def events(text: str) -> list[Any]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def reply_of(text: str) -> EmulatedReply:
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


def emulated(interaction: dict[str, Any], core: Emulator | None = None) -> HttpResponse:
    reply = reply_of(response_text(interaction))
    core = core or api(reply, clock=Clock(0.0))
    core.responder = lambda _body: reply
    path = interaction["request"]["uri"].partition(".com")[2].partition("?")[0]
    packed = {} if "parsed_body" in interaction["response"] else {"accept-encoding": "gzip"}
    headers = {**HEADERS, **packed, "anthropic-version": "2023-06-01"}
    fields = request_of(interaction)
    return core.handle("POST", urlsplit(path), headers, dumped(fields))


def fields(value: Any, path: str = "$") -> Iterator[tuple[str, object]]:
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in members:
        place = f"{path}.{name}"
        if name in VALUES and not isinstance(inner, dict):
            yield place, inner
        elif name == "input":
            yield place, json.dumps(inner, sort_keys=True)
        elif isinstance(inner, dict | list):
            yield place, type(inner).__name__
            yield from fields(inner, place)
        elif isinstance(inner, str) and inner.startswith(("msg_01", "toolu_01", "req_")):
            yield place, inner.split("_")[0]
        else:
            yield place, type(inner).__name__


def as_today(recorded: dict[str, Any]) -> dict[str, Any]:
    return {"model": recorded["model"], **recorded} if "model" in recorded else recorded


def compared(
    ours: dict[str, Any], theirs: dict[str, Any]
) -> tuple[list[tuple[str, object]], list[tuple[str, object]]]:
    recorded = list(fields(theirs))
    known = {path for path, _ in recorded}
    newer = [
        path for path, _ in fields(ours) if path not in known and path.rpartition(".")[2] in NEWER
    ]
    kept = [
        (path, what)
        for path, what in fields(ours)
        if not any(f"{path}.".startswith(f"{gone}.") for gone in newer)
    ]
    return kept, recorded


PLAIN = [one for one in recorded() if not response_text(one.values[0]).startswith("event:")]
STREAMS = [one for one in recorded() if response_text(one.values[0]).startswith("event:")]


@pytest.mark.parametrize("interaction", PLAIN)
def test_plain_bodies_have_the_recorded_fields(interaction: dict[str, Any]) -> None:
    """Every field with its type, in its place, and none that the API never had."""
    theirs = as_today(json.loads(response_text(interaction)))

    response = emulated(interaction)

    ours, expected = compared(said(response), theirs)
    assert response.status == interaction["response"]["status"]["code"]
    assert sorted(ours) == sorted(expected)
    # Who keeps a parsed body sorts its keys; the others hold the order that was sent.
    if "parsed_body" not in interaction["response"]:
        assert ours == expected


@pytest.mark.parametrize("interaction", STREAMS)
def test_streams_have_the_recorded_events(interaction: dict[str, Any]) -> None:
    """The same events in the same order, deltas counted as one, each field in its place."""
    sent = b"".join(part.data for part in emulated(interaction).parts or ()).decode()

    theirs, ours = distinct(events(response_text(interaction))), distinct(events(sent))

    assert [event["type"] for event in ours] == [event["type"] for event in theirs]
    for mine, expected in zip(ours, theirs, strict=True):
        if "message" in expected:
            expected["message"] = as_today(expected["message"])
        if mine["type"] == "message_delta":  # the oldest recording has output tokens alone
            mine["usage"] = {k: v for k, v in mine["usage"].items() if k in expected["usage"]}
        left, right = compared(mine, expected)
        assert left == right


def distinct(found: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for event in found:
        kind = (event["type"], event.get("index"), (event.get("delta") or {}).get("type"))
        before = kept[-1] if kept else {}
        last = (before.get("type"), before.get("index"), (before.get("delta") or {}).get("type"))
        if kind != last or kind[0] != "content_block_delta":
            kept.append(event)
    return kept


def test_a_conversation_reads_what_was_written_before() -> None:
    """As recorded: a turn that was asked before reads all of it, the next one adds its own."""
    [path] = [path for path in FILES if "cache_real_api" in path.stem]
    first, second = yaml.safe_load(path.read_text("utf-8"))["interactions"]
    theirs = [one["response"]["parsed_body"]["usage"] for one in (first, second)]

    core = api(clock=Clock(0.0))
    emulated_response = emulated(first, core)
    assert emulated_response.on_start
    emulated_response.on_start()
    ours = [said(emulated(one, core))["usage"] for one in (first, second)]

    for again, added in (theirs, ours):
        assert again["cache_read_input_tokens"] == added["cache_read_input_tokens"] > 0
        assert again["cache_creation_input_tokens"] == 0
        assert added["cache_creation_input_tokens"] > 0
        assert again["input_tokens"] == added["input_tokens"] == 3
