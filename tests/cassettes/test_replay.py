"""ReplayProvider against the path through the SDK, and what differs between two requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import outcome, record, replaying
from turn_values import turn

from pytest_regen.cassettes import ReplayProvider, use_cassette
from pytest_regen.cassettes.differences import differences, distance
from pytest_regen.emulator import EmulatedReply, Fault
from pytest_regen.errors import CassetteMissError, RegenError
from pytest_regen.turns import Message, Reply, TurnRequest

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
SAID: st.SearchStrategy[Any] = st.one_of(
    WORDS,
    st.builds(
        EmulatedReply,
        text=WORDS,
        stop_reason=st.sampled_from(["end_turn", "refusal", "max_tokens", "stop_sequence"]),
        thinking=st.none() | WORDS,
    ),
    st.sampled_from([400, 401, 404, 429, 500, 529]).map(lambda s: Fault(s, retry_after_ms=1)),
    st.just(Fault(429, error_code="enforced_spend_limit_reached")),
    st.just(Fault(529, should_retry=False)),
    st.just(Fault(kind="error_event")),
    st.just(Fault(kind="cut", reply=EmulatedReply("cut off " * 20))),
)
REQUESTS = st.lists(
    st.builds(
        lambda text, system, limit, cache: turn(
            f"{text}.", system=system, max_tokens=limit, cache=cache
        ),
        WORDS,
        WORDS.map(str.strip),
        st.sampled_from([50, 30_000]),
        st.sampled_from([None, "5m", "1h"]),
    ),
    min_size=1,
    max_size=3,
)


def shown(result: Reply | RegenError) -> object:
    """Return what a caller can tell two outcomes apart by; the address is the caller's own."""
    if isinstance(result, Reply):
        return result
    return type(result), str(result).replace("127.0.0.1:9", "api.anthropic.com")


def check_equal(path: Path, requests: list[TurnRequest], said: list[Any]) -> None:
    """Record, then replay on both paths, and compare what comes of each request."""
    waiting = list(said)
    record(path, requests, responder=lambda _body: waiting.pop(0) if waiting else "more")
    if not path.exists():
        return
    direct = ReplayProvider(path)

    with use_cassette(path, answers_turns=False):
        through_sdk = [shown(outcome(replaying(), request)) for request in requests]

    assert [shown(outcome(direct, request)) for request in requests] == through_sdk


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=REQUESTS, said=st.lists(SAID, max_size=6))
def test_replay_without_the_sdk_equals_replay_through_it(
    tmp_path_factory: pytest.TempPathFactory, requests: list[TurnRequest], said: list[Any]
) -> None:
    """Replies, failures and retries: the same on both paths, down to the message."""
    check_equal(tmp_path_factory.mktemp("c") / "c.yaml", requests, said)


@pytest.mark.sweep
@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=REQUESTS, said=st.lists(SAID, max_size=6))
def test_replay_without_the_sdk_equals_replay_through_it_at_length(
    tmp_path_factory: pytest.TempPathFactory, requests: list[TurnRequest], said: list[Any]
) -> None:
    """The same law over many more conversations."""
    check_equal(tmp_path_factory.mktemp("c") / "c.yaml", requests, said)


def test_a_provider_of_its_own_plays_a_cassette(tmp_path: Path) -> None:
    """No context is needed; each recording answers once."""
    path = tmp_path / "c.yaml"
    record(path, [turn("one")])
    provider = ReplayProvider(path)

    assert provider.send(turn("one")).text == "one"
    with pytest.raises(CassetteMissError, match="played already"):
        provider.send(turn("one"))
    with pytest.raises(CassetteMissError, match="no cassette at"):
        ReplayProvider(tmp_path / "none.yaml").send(turn("one"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(old=JSON, new=JSON)
def test_equal_values_and_only_they_have_no_differences(old: Any, new: Any) -> None:
    """True and 1 differ, as they do on the wire."""
    same = json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)

    assert (not list(differences(old, new))) == same
    assert list(differences(old, old)) == []


@given(old=JSON, new=JSON)
def test_distance_lies_between_nothing_and_everything(old: Any, new: Any) -> None:
    """It is a share, the same from both sides, and nothing for the same."""
    assert 0 <= distance(old, new) <= 1
    assert distance(old, new) == pytest.approx(distance(new, old))
    assert distance(old, old) == 0


def test_a_difference_names_its_path_and_shows_where_texts_part() -> None:
    """Long prompts are cut around the first character that differs."""
    old = {"messages": [{"content": "a" * 500 + "old ending" + "b" * 100}], "odd key": 1}
    new = {"messages": [{"content": "a" * 500 + "new ending" + "b" * 100}, {}], "system": "s"}

    found = {d.path: d for d in differences(old, new)}

    assert set(found) == {"$.messages[0].content", "$.messages[1]", '$["odd key"]', "$.system"}
    text = found["$.messages[0].content"]
    assert "aaold ending" in text.recorded
    assert "aanew ending" in text.sent
    assert len(str(text)) < 300
    assert found["$.messages[1]"].recorded == "(absent)"
    assert found['$["odd key"]'].sent == "(absent)"


def test_the_nearest_recording_is_found_by_structure(tmp_path: Path) -> None:
    """One changed word in a long conversation is nearer than a short stranger."""
    path = tmp_path / "c.yaml"
    long = tuple(Message("user" if n % 2 == 0 else "assistant", f"turn {n}") for n in range(7))
    record(path, [turn("short"), turn(messages=long), turn("other")], responder=lambda _body: "x")
    changed = (*long[:4], Message("user", "turn four, reworded"), *long[5:])

    with pytest.raises(CassetteMissError, match=r"interaction 2[\s\S]*\$\.messages\[4\]\.content"):
        ReplayProvider(path).send(turn(messages=changed))
