"""Requests that are no longer what was recorded: told, tolerated, re-recorded from there on."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import anthropic
import pytest
from recorded import KEY, echo, loaded, record, replaying
from turn_values import MODEL, turn

from pytest_regen.cassettes import (
    Matching,
    RecordMode,
    use_cassette,
)
from pytest_regen.cassettes.json_bodies import parse_path, replace_at
from pytest_regen.emulator import Emulator
from pytest_regen.errors import CassetteMissError, UsageError
from pytest_regen.turns import Message, TurnRequest

BOTH = pytest.mark.parametrize("answers_turns", [True, False], ids=["without-sdk", "through-sdk"])


def conversation(prompts: list[str]) -> list[TurnRequest]:
    said: list[Message] = []
    requests = []
    for prompt in prompts:
        said.append(Message("user", prompt))
        requests.append(turn(messages=tuple(said)))
        said.append(Message("assistant", prompt))
    return requests


PROMPTS = ["first", "second", "third", "fourth", "fifth"]
CHANGED = ["first", "second", "third, reworded", "fourth", "fifth"]


def interactions(path: Path) -> list[str]:
    file = loaded(path)
    return [stored.text for stored in file.interactions]


def test_what_is_no_longer_asked_for_is_dropped_where_nothing_is_new(path: Path) -> None:
    """A test that asks for less needs no request to shrink its cassette."""
    record(path, conversation(PROMPTS))
    before = interactions(path)

    _, run = record(path, conversation(PROMPTS[:2]), mode="new_episodes", drop_unplayed=True)

    assert run.recorded == 0
    assert interactions(path) == before[:2]
    with use_cassette(path) as replay:
        for request in conversation(PROMPTS[:2]):
            replaying().send(request)
    assert replay.unplayed == 0


def test_replay_drops_nothing_and_nobody_drops_everything(path: Path) -> None:
    """A mode that sends nothing writes nothing; without a recording a file would be no cassette."""
    record(path, conversation(PROMPTS))
    before = path.read_bytes()
    modes: list[RecordMode] = ["none", "once"]

    for mode in modes:
        record(path, conversation(PROMPTS[:2]), mode=mode, drop_unplayed=True)
    with use_cassette(path, mode="new_episodes", drop_unplayed=True):
        pass

    assert path.read_bytes() == before


@BOTH
def test_warn_replays_in_recorded_order_and_lists(path: Path, answers_turns: bool) -> None:  # noqa: FBT001 - a case
    """What is as recorded gets its own answer; what drifted, that of its place."""
    record(path, conversation(PROMPTS))
    changed = conversation(CHANGED)

    with use_cassette(path, drift="warn", answers_turns=answers_turns) as run:
        texts = [replaying().send(request).text for request in changed]

    assert texts == PROMPTS
    assert [drift.interaction for drift in run.drifts] == [3, 4, 5]
    assert "turn 3" in run.drifts[0].request
    assert str(run.drifts[0].differences[0]).startswith("$.messages[4].content: recorded")
    assert "was given interaction 3" in str(run.drifts[0])


@BOTH
def test_ignore_is_the_order_alone(path: Path, answers_turns: bool) -> None:  # noqa: FBT001 - a case
    """As vcrpy does: the first request gets the first answer, whatever it says."""
    record(path, [turn("one"), turn("two")])

    with use_cassette(path, drift="ignore", answers_turns=answers_turns) as run:
        assert [replaying().send(turn(t)).text for t in ("two", "x")] == ["one", "two"]
        with pytest.raises(CassetteMissError):
            replaying().send(turn("one"))

    assert not run.drifts


def test_another_path_is_no_drift(path: Path) -> None:
    """Only a recording of the same method and path can stand in a request's place."""
    record(path, [turn("one")])

    with (
        pytest.raises(CassetteMissError, match="no answer to GET"),
        use_cassette(path, drift="warn", http_clients=False) as run,
    ):
        run.take("GET", "/v1/models", b"")


def test_a_long_difference_is_whole_in_a_file(path: Path, tmp_path: Path) -> None:
    """The message is capped and names the file, which has both values, without credentials."""
    secret = "sk-ant-api03-" + "a1B2c3D4" * 5
    old, new = "word " * 100 + "end", "word " * 100 + f"other {secret}"
    record(path, [turn(old)])

    folder = tmp_path / "diffs"
    with pytest.raises(CassetteMissError) as caught, use_cassette(path, diff_folder=folder):
        replaying().send(turn(new))

    [file] = (tmp_path / "diffs").iterdir()
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 1_000
    text = file.read_text("utf-8")
    assert f'-        "content": "{old}"' in text
    assert '+        "content": "word word' in text
    assert secret not in text + str(caught.value)


# What varies


def ask(base_url: str, user: str) -> str:
    client = anthropic.Anthropic(api_key=KEY, base_url=base_url)
    try:
        message = client.messages.create(
            model=MODEL, max_tokens=200, metadata={"user_id": user},
            messages=[{"role": "user", "content": "hello"}],
        )  # fmt: skip
    finally:
        client.close()
    return "".join(getattr(block, "text", "") for block in message.content)


def test_declared_paths_have_no_part(path: Path) -> None:
    """Neither compared nor kept; without the declaration the same request is a miss."""
    declared = ["$.metadata.user_id"]
    with Emulator(echo) as emulator, use_cassette(path, mode="once", ignore=declared):
        ask(emulator.base_url, "user-4711")
    assert "user-4711" not in path.read_text("utf-8")

    with use_cassette(path, ignore=declared) as run:
        assert ask("http://127.0.0.1:9", "user-9999") == "hello"
    assert run.unplayed == 0
    with pytest.raises(CassetteMissError, match="user_id"), use_cassette(path):
        ask("http://127.0.0.1:9", "user-9999")


@BOTH
def test_one_function_normalizes_everywhere(path: Path, answers_turns: bool) -> None:  # noqa: FBT001 - a case
    """Recorder, matcher and drift see the same: what it takes out is neither kept nor compared."""

    def without_day(body: Any) -> Any:
        body["system"] = body["system"].partition(" Today is ")[0]
        return body

    monday = turn("hi", system="Be terse. Today is Monday.")
    record(path, [monday], normalize=without_day)
    assert "Monday" not in path.read_text("utf-8")

    with use_cassette(path, normalize=without_day, answers_turns=answers_turns):
        tuesday = dataclasses.replace(monday, system="Be terse. Today is Tuesday.")
        assert replaying().send(tuesday).text == "hi"
        with pytest.raises(CassetteMissError) as caught:
            replaying().send(dataclasses.replace(tuesday, system="Be long. Today is Tuesday."))
    assert "Tuesday" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "messages", "$.a[", "$.a b", "$.."])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a path") as caught:
        Matching(ignore=[text])

    assert "$.metadata.user_id" in caught.value.hint


@pytest.mark.parametrize(
    ("path_text", "expected"),
    [
        ("$.b[*].id", {"a": {"id": 9}, "b": [{"id": 0, "x": {"id": 2}}, {"id": 0}], "odd key": 4}),
        ("$..id", {"a": {"id": 0}, "b": [{"id": 0, "x": {"id": 0}}, {"id": 0}], "odd key": 4}),
        ('$["odd key"]', {"a": {"id": 9}, "b": [{"id": 1, "x": {"id": 2}}, {"id": 3}],
                          "odd key": 0}),
        ("$.none.of[3]", {"a": {"id": 9}, "b": [{"id": 1, "x": {"id": 2}}, {"id": 3}],
                          "odd key": 4}),
        ("$.b.*.x", {"a": {"id": 9}, "b": [{"id": 1, "x": 0}, {"id": 3}], "odd key": 4}),
    ],
)  # fmt: skip
def test_a_path_reaches_what_it_names(path_text: str, expected: object) -> None:
    value = {"a": {"id": 9}, "b": [{"id": 1, "x": {"id": 2}}, {"id": 3}], "odd key": 4}
    before = json.dumps(value)

    assert replace_at(value, parse_path(path_text), 0) == expected
    assert json.dumps(value) == before
