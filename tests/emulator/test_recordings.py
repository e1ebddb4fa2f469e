"""Responses look like recorded ones, field by field; skipped where the recordings are absent."""

import gzip
import json
import re
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
NEWER_HEADERS = {"anthropic-organization-id", "content-encoding", "vary"}
"""Headers that it has added since."""
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
INFRASTRUCTURE = {
    "cf-cache-status",
    "cf-ray",
    "connection",
    "content-length",
    "content-security-policy",
    "date",
    "server",
    "server-timing",
    "strict-transport-security",
    "transfer-encoding",
    "via",
    "x-cloud-trace-context",
    "x-envoy-upstream-service-time",
    "x-robots-tag",
}
"""Headers that proxies and the connection add."""
FORMATS = {
    "anthropic-organization-id": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "cache-control": "no-cache",
    "content-encoding": "gzip",
    "content-type": r"application/json|text/event-stream; charset=utf-8",
    "request-id": r"req_\w+",
    "vary": "Accept-Encoding",
    "x-should-retry": "false",
    **{
        f"anthropic-ratelimit-{kind}-{name}": pattern
        for kind in ("requests", "tokens", "input-tokens", "output-tokens")
        for name, pattern in (
            ("limit", r"\d+"),
            ("remaining", r"\d+"),
            ("reset", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
        )
    },
}
"""Headers of the API and what they look like, recorded or emulated."""


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


def emulated(interaction: dict[str, Any], core: Emulator | None = None) -> HttpResponse:
    """Return what the emulator answers to the recorded request, told to say the same."""
    reply = reply_of(response_text(interaction))
    core = core or api(reply, clock=Clock(0.0))
    core.responder = lambda _body: reply
    path = interaction["request"]["uri"].partition(".com")[2].partition("?")[0]
    packed = {} if "parsed_body" in interaction["response"] else {"accept-encoding": "gzip"}
    headers = {**HEADERS, **packed, "anthropic-version": "2023-06-01"}
    fields = request_of(interaction)
    return core.handle("POST", urlsplit(path), headers, dumped(fields))


def fields(value: Any, path: str = "$") -> Iterator[tuple[str, object]]:
    """Yield every field in the order in which it stands, with its type or its value."""
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
    """Return a recorded message with its model in front, where it stands since early in 2026."""
    return {"model": recorded["model"], **recorded} if "model" in recorded else recorded


def compared(
    ours: dict[str, Any], theirs: dict[str, Any]
) -> tuple[list[tuple[str, object]], list[tuple[str, object]]]:
    """Return the fields of both, ours without those that are newer than the recording."""
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


@pytest.mark.parametrize("interaction", STREAMS)
def test_streams_are_written_as_recorded(interaction: dict[str, Any]) -> None:
    """Byte by byte: names of events, compact JSON, the ping; only the padding is not."""
    sent = b"".join(part.data for part in emulated(interaction).parts or ()).decode()

    for text in (response_text(interaction).rstrip("\n") + "\n\n", sent):
        pieces = text.removesuffix("\n\n").split("\n\n")
        assert 'event: ping\ndata: {"type": "ping"}' in pieces
        for piece in pieces:
            name, data = re.fullmatch(r"event: (\w+)\ndata: ({.*})", piece).groups()  # type: ignore[union-attr]
            value = json.loads(data)
            compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            assert value["type"] == name
            assert re.sub(r" *}$", "}", data) == compact or name == "ping"


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
def test_headers_are_those_of_the_api(interaction: dict[str, Any]) -> None:
    """Whatever was recorded is there, in the same format, and nothing that never was."""
    response = emulated(interaction)
    recorded_headers = interaction["response"]["headers"]
    theirs = {name.lower(): values[0] for name, values in recorded_headers.items()}
    theirs = {name: value for name, value in theirs.items() if name not in INFRASTRUCTURE}
    ours = {name: value for name, value in response.headers.items() if name != "server"}

    assert theirs.keys() <= ours.keys()
    for name, value in (*theirs.items(), *ours.items()):
        assert re.fullmatch(FORMATS[name], value), (name, value)
    assert ours["content-type"] == theirs["content-type"]
    if "request-id" in theirs:  # the others kept an excerpt
        limits_of_requests = {name for name in FORMATS if "-requests-" in name}
        assert ours.keys() - theirs.keys() <= NEWER_HEADERS | (
            limits_of_requests if response.status == 200 else set()
        )


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
