"""What is said of a miss where vcrpy matches: the reason that is the reason."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from vcr.errors import CannotOverwriteExistingCassetteException

from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.emulator import Emulator

CONFIG = {"match_on": ["method", "scheme", "host", "port", "path", "headers"]}


def why(
    folder: Path, mode: str, url: str, config: Mapping[str, Any] = CONFIG, **options: Any
) -> str:
    with (
        use_vcr_cassette(VcrOptions("c", folder, mode, config, (), lambda _: None)) as run,
        httpx2.Client() as client,
    ):
        try:
            client.get(f"{url}/v1/models", **options)
        except CannotOverwriteExistingCassetteException as error:
            missed = run.take_pending_miss(error)
            assert missed is not None
            return missed.why
    return ""


def test_a_credential_that_differs_is_not_shown(tmp_path: Path) -> None:
    with Emulator(lambda _body: "x") as emulator:
        url = emulator.base_url
        config = {"match_on": ["method", "path", "query"]}
        assert not why(tmp_path, "once", url, config, params={"api_key": "planted-0123456789"})

    other = why(tmp_path, "none", url, config, params={"api_key": "no key"})

    assert "query.api_key: a credential, and another one than was recorded" in other
    filtered = {**config, "filter_query_parameters": ["api_key"]}
    assert not why(tmp_path, "none", url, filtered, params={"api_key": "no key"})
    assert "0123456789" not in other


def test_a_recording_that_was_not_played_is_not_called_played(tmp_path: Path) -> None:
    """Host and port, and what else a suite compares, have no part in our own key."""
    with Emulator(lambda _body: "x") as emulator:
        url = emulator.base_url
        assert not why(tmp_path, "once", url)

    other = why(tmp_path, "none", "http://127.0.0.1:9")
    server = url.removeprefix("http://")
    assert f'host: recorded "{server}", sent "127.0.0.1:9"' in other
    assert "1 recorded, 0 played" in other

    other = why(tmp_path, "none", url, headers={"accept": "text/plain"})
    assert "match_on compares headers" in other
