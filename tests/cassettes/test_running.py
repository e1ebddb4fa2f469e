"""Recording and replaying: modes, matching, misses, several threads."""

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import anthropic
import pytest
from recorded import KEY, echo, loaded, outcome, record, replaying
from tables import each
from turn_values import MODEL, turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.emulator import Emulator, Fault
from pytest_regen.errors import CassetteMissError, TransportError, UsageError
from pytest_regen.turns import AnthropicProvider, Reply

BOTH = pytest.mark.parametrize("answers_turns", [True, False], ids=["without-sdk", "through-sdk"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "turns.yaml"


def texts(path: Path) -> list[str]:
    file = loaded(path)
    bodies = [json.loads(stored.interaction.request_body) for stored in file.interactions]
    return [body["messages"][-1]["content"] for body in bodies]


@BOTH
def test_what_was_recorded_comes_back(path: Path, answers_turns: bool) -> None:  # noqa: FBT001 - a case
    """Text, usage, model and id are the recorded ones; no key and no server are needed."""
    requests = [turn("one"), turn("two", max_tokens=30_000), turn("three", cache="5m")]
    recorded, _ = record(path, requests)

    with use_cassette(path, answers_turns=answers_turns) as run:
        replayed = [replaying().send(request) for request in requests]

    assert replayed == recorded
    assert (run.played, run.unplayed, run.recorded) == (3, 0, 0)
    assert run.emulated


@BOTH
def test_a_miss_is_told_at_once(
    path: Path,
    slept: list[float],
    answers_turns: bool,  # noqa: FBT001 - a case
) -> None:
    """Cassette, request, nearest recording, the differing path, and the command to record."""
    record(path, [turn("Write the type Invoice."), turn("Unrelated.")])

    with use_cassette(path, answers_turns=answers_turns):
        provider = replaying(max_retries=5)
        with pytest.raises(CassetteMissError) as caught:
            provider.send(turn("Write the type Invoices."))
    assert slept == []

    shown = str(caught.value)
    assert str(path) in shown
    assert "POST /v1/messages" in shown
    assert MODEL in shown
    assert "turns.yaml:13" in shown
    assert '$.messages[0].content: recorded "Write the type Invoice.", sent' in shown
    assert "--regen-record new_episodes" in shown


def test_a_missing_cassette_says_what_lies_beside_it(path: Path) -> None:
    """A test that records and then is skipped or fails leaves a partial file, not a cassette."""

    def skipped() -> None:
        with use_cassette(path, mode="once", http_clients=False) as run:
            run.record(Interaction("GET", "https://api.example/x", {}, b"", 200, "OK", {}, b"{}"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        skipped()
    with (
        pytest.raises(CassetteMissError, match="no cassette") as found,
        use_cassette(path, http_clients=False),
    ):
        replaying().send(turn())

    assert f"{path.name}.partial was left by a run" in found.value.why


def test_a_miss_that_somebody_swallows_is_told_at_the_end(path: Path) -> None:
    """A bare except around the client does not turn a missing recording into a pass.

    Who catches our error from our provider was told; that block ends well.
    """
    record(path, [turn("one")])
    with use_cassette(path, answers_turns=False), pytest.raises(CassetteMissError):
        replaying().send(turn("other"))
    client = anthropic.Anthropic(api_key="x", base_url="http://127.0.0.1:9")

    def careless() -> None:
        with contextlib.suppress(BaseException):
            client.messages.create(
                model=MODEL, max_tokens=5, messages=[{"role": "user", "content": "x"}]
            )

    with pytest.raises(CassetteMissError, match="has no answer"), use_cassette(path):
        careless()
    client.close()


def test_a_recorded_failure_with_nothing_behind_it_is_retried_live(path: Path) -> None:
    """Where new requests may be sent, the retry that was never recorded is one of them."""
    with Emulator(lambda _body: Fault(529)) as busy, use_cassette(path, mode="once"):
        once = AnthropicProvider(api_key=KEY, base_url=busy.base_url, max_retries=0)
        assert isinstance(outcome(once, turn()), TransportError)

    replies, run = record(path, [turn()], mode="new_episodes", responder=lambda _body: "live")

    assert getattr(replies[0], "text", "") == "live"
    assert (run.played, run.recorded) == (1, 1)


def test_once_records_where_there_is_no_file_and_replays_after(path: Path) -> None:
    """The second run sends nothing; what is new then is a miss."""
    record(path, [turn("one")], mode="once")
    again, run = record(path, [turn("one"), turn("two")], mode="once")

    assert (run.played, run.recorded) == (1, 0)
    assert isinstance(again[1], CassetteMissError)
    assert texts(path) == ["one"]


def test_new_episodes_keeps_the_old_byte_for_byte(path: Path) -> None:
    record(path, [turn("one"), turn("two")])
    before = path.read_text("utf-8")

    _, run = record(path, [turn("one"), turn("new")], mode="new_episodes")

    assert (run.played, run.recorded, run.unplayed) == (1, 1, 1)
    assert path.read_text("utf-8").startswith(before)
    assert texts(path) == ["one", "two", "new"]


def test_all_sends_everything_and_keeps_what_was_not_sent(path: Path) -> None:
    record(path, [turn("one"), turn("two")])

    replies, run = record(path, [turn("two")], mode="all", responder=lambda _body: "anew")

    assert (run.played, run.recorded) == (0, 1)
    assert isinstance(replies[0], Reply)
    assert replies[0].text == "anew"
    assert texts(path) == ["one", "two"]
    with use_cassette(path):
        assert replaying().send(turn("two")).text == "anew"


def test_rewrite_keeps_nothing_of_the_old(path: Path) -> None:
    """The file holds what this run recorded, even if the old one could not be read."""
    record(path, [turn("one")])
    path.write_bytes(b"\xff\xfe broken")

    record(path, [turn("two")], mode="rewrite")

    assert texts(path) == ["two"]


def test_a_failed_run_leaves_the_cassette_alone(path: Path) -> None:
    """What it recorded stands beside it, in a file that loads and git does not see."""
    path.parent.mkdir()
    git = ["git", "-C", str(path.parent)]
    subprocess.run([*git, "init", "-q"], check=True)
    record(path, [turn("one")])
    before = path.read_bytes()

    def fails() -> None:
        with Emulator(echo) as emulator, use_cassette(path, mode="rewrite"):
            AnthropicProvider(api_key=KEY, base_url=emulator.base_url).send(turn("two"))
            assert path.read_bytes() == before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()

    assert path.read_bytes() == before
    assert texts(path.with_name("turns.yaml.partial")) == ["two"]
    status = subprocess.check_output([*git, "status", "--short", "-uall"], text=True)
    assert status == "?? turns.yaml\n"


@each(
    "options,says",
    [
        ({"mode": "always"}, "new_episodes"),
        ({"path": Path("c.json"), "mode": "once"}, r"\.yaml"),
        ({"drift": "maybe"}, "fail, warn, ignore"),
        ({"keep_headers": "x-one"}, "keep_headers"),
        ({"keep_headers": ["a b"]}, "keep_headers"),
        ({"drop_headers": [1]}, "drop_headers"),
        ({"passthrough_hosts": ["https://example.com"]}, "passthrough_hosts"),
        ({"passthrough_hosts": ["example.com:443"]}, "passthrough_hosts"),
        ({"passthrough_hosts": [""]}, "passthrough_hosts"),
        ({"passthrough_hosts": ["[a-z]xample.com"]}, "passthrough_hosts"),
    ],
)
def test_an_option_that_cannot_be_is_refused(path: Path, options: Any, says: str) -> None:
    """Before anything is sent or written; of what would match nothing the name is told."""
    with pytest.raises(UsageError, match=says), use_cassette(**{"path": path, **options}):
        pass
