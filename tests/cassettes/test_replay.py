"""A provider that plays a cassette, and what differs between two requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import record
from turn_values import turn

from pytest_regen.cassettes import ReplayProvider, use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.misses import differences, distance
from pytest_regen.errors import CassetteMissError, TransportError
from pytest_regen.turns import Message
from pytest_regen.turns.wire import request_body


def test_a_provider_of_its_own_plays_a_cassette(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    record(path, [turn("one")])
    provider = ReplayProvider(path)

    assert provider.send(turn("one")).text == "one"
    with pytest.raises(CassetteMissError, match="played already"):
        provider.send(turn("one"))
    with pytest.raises(CassetteMissError, match="no cassette at"):
        ReplayProvider(tmp_path / "none.yaml").send(turn("one"))


def test_turns_of_a_gateway_are_played_by_its_address(tmp_path: Path) -> None:
    """Its path is part of what must match; its host stands in messages about failures."""
    path = tmp_path / "c.yaml"
    request = request_body(turn("one"))
    head = {"content-type": ("application/json",)}
    said = json.dumps({"type": "error", "error": {"type": "api_error", "message": "down"}}).encode()
    with use_cassette(path, mode="once", http_clients=False) as run:
        uri = "https://gateway.example/anthropic/v1/messages"
        sent = json.dumps(request).encode()
        run.record(Interaction("POST", uri, head, sent, 500, "", head, said))

    gateway = ReplayProvider(path, base_url="https://gateway.example/anthropic/", max_retries=0)
    with pytest.raises(TransportError, match=r"gateway\.example failed inside"):
        gateway.send(turn("one"))
    with pytest.raises(CassetteMissError, match="has no answer"):
        ReplayProvider(path).send(turn("one"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(old=JSON, new=JSON)
def test_equal_values_and_only_they_have_no_differences(old: Any, new: Any) -> None:
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
