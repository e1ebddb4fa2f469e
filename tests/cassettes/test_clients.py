"""Every HTTP client is told in replay what it was told live, wherever it was led."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client_work import CLIENTS, SDKS
from small_site import Site
from vcr import VCR

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.turns.interception import CassetteMiss

Work = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(params=[*CLIENTS, *SDKS])
def work(request: pytest.FixtureRequest) -> Work:
    pytest.importorskip(str(request.param))
    return (CLIENTS | SDKS)[request.param]


def check_equal(again: list[dict[str, Any]], live: list[dict[str, Any]]) -> None:
    for number, (one, other) in enumerate(zip(again, live, strict=True)):
        apart = {name for name in one | other if one.get(name) != other.get(name)}
        assert not apart, f"step {number}: {[(n, one.get(n), other.get(n)) for n in apart]}"


def test_replay_tells_what_was_told_live(work: Work, site: Site, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with use_cassette(path, mode="once"):
        live = work(site.address)
    asked = len(site.seen)

    with use_cassette(path) as run:
        check_equal(work(site.address), live)

    assert len(site.seen) == asked
    assert run.unplayed == 0


@pytest.mark.parametrize(
    "work",
    [
        name if name == "requests" else pytest.param(name, marks=pytest.mark.sweep)
        for name in [*CLIENTS, *SDKS]
    ],
    indirect=True,
)
def test_a_test_marked_vcr_is_told_what_vcrpy_tells(work: Work, site: Site, tmp_path: Path) -> None:
    """Recording and replaying; where vcrpy fails, so does it."""

    def ours(mode: str) -> Any:
        return use_vcr_cassette(VcrOptions("ours", tmp_path, mode, {}, (), lambda _: None))

    def theirs(mode: str) -> Any:
        return VCR(record_mode=mode).use_cassette(str(tmp_path / "theirs.yaml"))

    def outcome(cassette: Any) -> Any:
        try:
            with cassette:
                return work(site.address)
        except (Exception, CassetteMiss):  # noqa: BLE001 - whatever vcrpy or the client says
            return "failed"

    live, expected = outcome(ours("once")), outcome(theirs("once"))
    again, replayed = outcome(ours("none")), outcome(theirs("none"))
    check_equal(without_date(live), without_date(expected))
    if replayed == "failed":  # aiohttp, led to the same address twice
        assert again == "failed"
    else:
        check_equal(without_date(again), without_date(replayed))


def without_date(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**one, "headers": [pair for pair in one.get("headers", ()) if pair[0] != "date"]}
        for one in told
    ]
