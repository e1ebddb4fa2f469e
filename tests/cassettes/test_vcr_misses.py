"""What is said of a miss where vcrpy matches: the reason that is the reason."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from pytest_regen.cassettes.clients.vcr.run import VcrOptions
from pytest_regen.cassettes.clients.vcr.watching import watched_cassette
from pytest_regen.emulator import Emulator
from pytest_regen.turns.interception import CassetteMiss

CONFIG = {"match_on": ["method", "scheme", "host", "port", "path", "headers"]}


def ask(folder: Path, mode: str, url: str, **options: Any) -> None:
    """Make one request with a cassette as vcrpy is configured."""
    with (
        watched_cassette(VcrOptions("c", folder, mode, CONFIG, (), lambda _: None)),
        httpx2.Client() as client,
    ):
        client.get(f"{url}/v1/models", **options)


def test_a_recording_that_was_not_played_is_not_called_played(tmp_path: Path) -> None:
    """Host and port, and what else a suite compares, have no part in our own key."""
    with Emulator(lambda _body: "x") as emulator:
        url = emulator.base_url
        ask(tmp_path, "once", url)

    with pytest.raises(CassetteMiss) as found:
        ask(tmp_path, "none", "http://127.0.0.1:9")
    why = found.value.error.why
    assert "interaction 1 is the same request to another address" in why
    assert f"recorded {url}, sent http://127.0.0.1:9 (" in why
    assert "1 recorded, 0 played" in why

    with pytest.raises(CassetteMiss) as found:
        ask(tmp_path, "none", url, headers={"accept": "text/plain"})
    assert "what match_on compares differs" in found.value.error.why
