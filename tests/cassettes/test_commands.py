"""``cassettes check``, ``show`` and ``convert`` as a user calls them."""

import gzip
import json
from pathlib import Path

import pytest
from cassette_commands import checked, codes, foreign, run
from recorded import record
from turn_values import turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.turns import Message

pytestmark = pytest.mark.usefixtures("folder")

SECRET = "sk-ant-api03-" + "a1B2c3D4" * 5


@pytest.mark.parametrize("where", ["gzip", "stream", "header"])
def test_secrets_are_found_where_they_stand(
    folder: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """In the text, in what is compressed, in headers; the value itself is never printed."""
    path = folder / "c.yaml"
    if where == "stream":
        pieces = [f"data: {json.dumps({'delta': {'text': one}})}\n\n" for one in SECRET]
        foreign(path, {}, said="".join(pieces).encode())
        kind = "headers: {content-type: [text/event-stream]}\n    status:"
        text = path.read_text("utf-8").replace("headers: {}\n    status:", kind)
        path.write_text(text, "utf-8")
    elif where == "gzip":
        foreign(path, {}, said=gzip.compress(json.dumps({"said": SECRET}).encode()))
    else:
        foreign(path, {}, headers={"X-Api-Key": ["opaque"]})

    code, found = checked(capsys, str(path))

    assert code == 1
    assert set(codes(found)) == {"HEADER" if where == "header" else "SECRET"}
    assert run("check", str(path)) == 1
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    advice = "revoke" if where == "stream" else "pytest-regen cassettes convert"
    assert f"next: {advice}" in said.err


def test_damage_is_told_by_line_and_the_rest_is_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unreadable file ends the check with 2, after everything else was looked at."""
    (folder / "a.yaml").write_text("interactions:\n- !!python/name:os.system\n", "utf-8")
    record(folder / "b.yaml", [turn("one")])
    text = (folder / "b.yaml").read_text("utf-8").replace('"one"', '"uno"', 1)
    (folder / "b.yaml").write_text(text, "utf-8")

    code, found = checked(capsys, ".")

    assert code == 2
    assert [(o["code"], o["path"]) for o in found["findings"]] == [
        ("UNREADABLE", "a.yaml"),
        ("EDITED", "b.yaml"),
    ]
    assert found["findings"][0]["line"] == 2


@pytest.mark.parametrize("words", [["nowhere.yaml"], ["."]])
def test_a_check_of_nothing_is_wrong_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It would always pass."""
    assert run("check", *words) == 2
    assert "next: " in capsys.readouterr().err


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


def test_show_reads_streams_of_other_apis(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Chunks of a chat completion are one text; of what is unknown everything is shown."""
    chunks = [{"choices": [{"delta": {"content": word}}]} for word in ("Ivy", " and fern.")]
    streams = [[*map(json.dumps, chunks), "[DONE]"], ["tick", "tock"]]
    with use_cassette(folder / "c.yaml", mode="once", http_clients=False) as run_:
        for number, events in enumerate(streams):
            said = "".join(f"data: {event}\n\n" for event in events).encode()
            head = {"content-type": ("text/event-stream",)}
            uri = f"https://api.example/{number}"
            run_.record(Interaction("POST", uri, {}, b"{}", 200, "OK", head, said))

    assert run("show", "c.yaml") == 0

    text = capsys.readouterr().out
    assert "reply: Ivy and fern.\n" in text
    assert "data: tick" in text


def test_show_tells_what_a_reply_thinks_and_calls(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of messages and of chat completions, whole or in chunks; JSON has the blocks as they came."""
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
    events = [f"data: {json.dumps({'choices': [{'delta': chunk}]})}\n\n" for chunk in chunks]
    json_head = {"content-type": ("application/json",)}
    with use_cassette(folder / "c.yaml", mode="once", http_clients=False) as run_:
        for number, (head, body) in enumerate((
            (json_head, json.dumps({"content": blocks, "stop_reason": "tool_use"})),
            (json_head, json.dumps({"choices": [chat]})),
            ({"content-type": ("text/event-stream",)}, "".join(events)),
        )):  # fmt: skip
            uri = f"https://api.example/{number}"
            run_.record(Interaction("POST", uri, {}, b"{}", 200, "OK", head, body.encode()))

    assert run("show", "c.yaml") == 0
    text = capsys.readouterr().out
    assert run("show", "c.yaml", "--json") == 0
    shown = json.loads(capsys.readouterr().out)

    assert 'reply: [thinks: Look it up.]\n[calls find with {"plant": "Efeu \u00fc"}]\n' in text
    assert 'reply: [thinks: Hm.]\n[calls find with {"plant": "ivy"}]\n' in text
    assert text.endswith('reply: [calls find with {"plant": "ivy"}]\n')
    assert shown["interactions"][0]["content"] == blocks


def test_show_tells_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = b'{"error": {"type": "rate_limit_error", "message": "slowly"}}'
    with use_cassette(folder / "c.yaml", mode="once", http_clients=False) as run_:
        head = {"content-type": ("application/json",)}
        uri = "https://api.example/1"
        run_.record(Interaction("POST", uri, {}, b"{}", 429, "", head, said))

    assert run("show", "c.yaml") == 0
    assert "rate_limit_error: slowly" in capsys.readouterr().out


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


@pytest.mark.parametrize("command", ["show", "convert"])
def test_what_is_not_there_is_wrong_usage(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "gone.yaml", "--json") == 2
    assert "gone.yaml" in json.loads(capsys.readouterr().out)["what"]
