"""Files that are no cassettes: told by file and line at every door, never an empty cassette."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_cassettes import BAD, Bad
from command_line import command
from recorded import replaying
from turn_values import turn

from pytest_regen.cassettes import ReplayProvider, use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.errors import CassetteUnreadableError


@pytest.fixture(params=BAD)
def bad(request: pytest.FixtureRequest) -> Bad:
    return BAD[request.param]


@pytest.fixture
def path(bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"c{bad.suffix}"
    path.write_bytes(bad.content)
    return path


def replay(path: Path) -> object:
    with use_cassette(path, http_clients=False):
        return replaying().send(turn("Hello."))


def record(path: Path) -> object:
    with use_cassette(path, mode="new_episodes", http_clients=False) as run:
        taken = run.take("POST", "/v1/messages", b"{}")
        # What is recorded later is read when it is needed; here all of it is.
        return taken, [stored.interaction for _, stored in run.index.numbered]


def provide(path: Path) -> object:
    return ReplayProvider(path).send(turn("Hello."))


def play_marked(path: Path) -> object:
    config = {"serializer": path.suffix.removeprefix(".")}
    with use_vcr_cassette(VcrOptions(path.name, path.parent, "none", config, (), lambda _: None)):
        return None


@pytest.mark.parametrize("door", [replay, record, provide, play_marked])
def test_it_is_refused_by_file_and_line(
    bad: Bad, path: Path, door: Callable[[Path], object]
) -> None:
    """By what replays and by what records; the file stays as it is."""
    if door is record and bad.suffix == ".json":
        pytest.skip("JSON is not recorded")
    if door is play_marked and not bad.vcr:
        pytest.skip("vcrpy plays it")

    with pytest.raises(CassetteUnreadableError) as caught:
        door(path)

    assert caught.value.line == bad.line or not bad.line
    assert caught.value.what == f"{path.name}:{caught.value.line}: the cassette cannot be read"
    assert bad.says in caught.value.why
    assert "\n" not in caught.value.why
    assert caught.value.hint
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == bad.content


@pytest.mark.parametrize("name", ["check", "show", "convert"])
def test_commands_end_with_two(bad: Bad, path: Path, name: str) -> None:
    ran = command("cassettes", name, path.name)

    assert ran.code == 2
    assert re.search(rf"{re.escape(path.name)}:{bad.line or r'[0-9]+'}: ", ran.err)
    assert bad.says in ran.err
    assert not ran.out
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == bad.content
