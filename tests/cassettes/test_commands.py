"""``cassettes check``, ``show`` and ``convert`` as a user calls them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from cassette_commands import checked, codes, foreign, run
from recorded import record
from turn_values import turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.turns import Message

pytestmark = pytest.mark.usefixtures("folder")

SECRET = "sk-ant-api03-" + "a1B2c3D4" * 5


@pytest.mark.parametrize("where", ["gzip", "stream"])
def test_secrets_are_found_where_they_stand(
    folder: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """In pieces of a stream, in what is compressed; the value itself is never printed."""
    path = folder / "c.yaml"
    if where == "stream":
        pieces = [f"data: {json.dumps({'delta': {'text': one}})}\n\n" for one in SECRET]
        foreign(path, {}, said="".join(pieces).encode())
        kind = "headers: {content-type: [text/event-stream]}\n    status:"
        text = path.read_text("utf-8").replace("headers: {}\n    status:", kind)
        path.write_text(text, "utf-8")
    else:
        foreign(path, {}, said=gzip.compress(json.dumps({"said": SECRET}).encode()))

    code, found = checked(capsys, str(path))

    assert code == 1
    assert set(codes(found)) == {"SECRET"}
    assert run("check", str(path)) == 1
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    advice = "revoke" if where == "stream" else "pytest-regen cassettes convert"
    assert f"next: {advice}" in said.err


def test_show_reads_as_a_conversation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each message once, replies, tokens, what the cache did; streams as what they say."""
    first = (Message("user", "Hello.", cache="5m"),)
    second = (*first, Message("assistant", "Hello."), Message("user", "And again."))
    record(folder / "c.yaml", [turn(messages=first), turn(messages=second, max_tokens=30_000)])

    assert run("show", "c.yaml") == 0
    text = capsys.readouterr().out
    assert run("show", "c.yaml", "--json") == 0
    shown = json.loads(capsys.readouterr().out)

    assert text.count("user: Hello.") == 1
    assert "(2 messages as before)" in text
    assert "\nAnd again.\n" in text
    assert "source: emulator" in text
    assert "cache_read" in text
    assert [one["repeated"] for one in shown["interactions"]] == [0, 2]
    assert shown["interactions"][1]["stop_reason"] == "end_turn"
    assert shown["interactions"][1]["tokens"]["output"] > 0


def events_of(deltas: list[dict[str, Any]]) -> str:
    return "".join(f"data: {json.dumps({'choices': [{'delta': one}]})}\n\n" for one in deltas)


def test_show_tells_what_a_reply_says_thinks_and_calls(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of messages, chat completions, whole or in chunks, and errors; of the unknown everything."""
    blocks = [
        {"type": "thinking", "thinking": "Look it up.", "signature": "EqQ="},
        {"type": "tool_use", "id": "t", "name": "find", "input": {"plant": "Efeu \u00fc"}},
    ]
    function = {"name": "find", "arguments": '{"plant": "ivy"}'}
    chat = {"message": {"reasoning_content": "Hm.", "tool_calls": [{"function": function}]}}
    chunks = [
        {"tool_calls": [{"index": 0, "function": {"name": "find", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"plant": '}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"ivy"}'}}]},
    ]
    words = [{"content": "Ivy"}, {"content": " and fern."}]
    error = {"error": {"type": "rate_limit_error", "message": "slowly"}}
    with use_cassette(folder / "c.yaml", mode="once", http_clients=False) as run_:
        for number, (kind, said) in enumerate((
            ("application/json", json.dumps({"content": blocks, "stop_reason": "tool_use"})),
            ("application/json", json.dumps({"choices": [chat]})),
            ("text/event-stream", events_of(chunks)),
            ("text/event-stream", f"{events_of(words)}data: [DONE]\n\n"),
            ("text/event-stream", "data: tick\n\ndata: tock\n\n"),
            ("application/json", json.dumps(error)),
        )):  # fmt: skip
            uri, head = f"https://api.example/{number}", {"content-type": (kind,)}
            run_.record(Interaction("POST", uri, {}, b"{}", 200, "OK", head, said.encode()))

    assert run("show", "c.yaml") == 0
    text = capsys.readouterr().out
    assert run("show", "c.yaml", "--json") == 0
    shown = json.loads(capsys.readouterr().out)

    assert 'reply: [thinks: Look it up.]\n[calls find with {"plant": "Efeu \u00fc"}]\n' in text
    assert 'reply: [thinks: Hm.]\n[calls find with {"plant": "ivy"}]\n' in text
    assert '\nreply: [calls find with {"plant": "ivy"}]\n' in text
    assert "reply: Ivy and fern.\n" in text
    assert "data: tick" in text
    assert "rate_limit_error: slowly" in text
    assert shown["interactions"][0]["content"] == blocks


@pytest.mark.parametrize("command", ["check", "show", "convert"])
def test_what_is_not_there_is_wrong_usage(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And so is a folder without cassettes: a check of nothing would always pass."""
    assert run(command, "gone.yaml", "--json") == 2
    assert "gone.yaml" in json.loads(capsys.readouterr().out)["what"]
    assert run("check", ".") == 2
    assert "next: " in capsys.readouterr().err


def test_show_cuts_long_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(folder / "c.yaml", [turn("word " * 1_000 + "end")])

    run("show", "c.yaml")
    assert "more characters)" in capsys.readouterr().out
    run("show", "c.yaml", "--full")
    assert "word end" in capsys.readouterr().out


def test_what_is_nested_too_deep_is_not_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message that a file makes deeper than any is told in one line."""
    results: object = "deep"
    for _ in range(420):
        results = [{"type": "tool_result", "content": results}]
    foreign(folder / "c.yaml", {"messages": [{"role": "user", "content": results}]})

    assert run("show", "c.yaml") == 3
    assert "c.yaml cannot be shown: a message in it is nested too deep" in capsys.readouterr().err
