"""A provider that plays a cassette, and what differs between two requests."""

import json
from pathlib import Path

import pytest
from recorded import record
from turn_values import turn

from pytest_regen.cassettes import ReplayProvider, use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.misses import differences
from pytest_regen.errors import CassetteMissError, TransportError
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
