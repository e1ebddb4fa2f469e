"""Cassettes that are compressed as a whole: ``x.yaml.gz``, by name."""

import gzip
from pathlib import Path

import pytest
from cassette_commands import checked, codes, foreign, run
from recorded import record, replaying
from turn_values import turn

from pytest_regen.cassettes import ReplayProvider, read_cassette, use_cassette
from pytest_regen.cassettes.files import bodies
from pytest_regen.errors import CassetteUnreadableError

pytestmark = pytest.mark.usefixtures("folder")

SECRET = "sk-ant-api03-" + "a1B2c3D4" * 5
TURNS = [turn("one"), turn("two", max_tokens=30_000)]


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


@pytest.mark.parametrize("mode", ["once", "new_episodes"])
def test_it_is_recorded_and_replayed(folder: Path, mode: str) -> None:
    """In every mode, and by whoever replays."""
    path = folder / "c.yaml.gz"

    replies, _ = record(path, TURNS, mode=mode)  # type: ignore[arg-type]  # one of them

    assert len(path.read_bytes()) < len(text_of(path)) / 2
    with use_cassette(path) as run_:
        assert [replaying().send(one) for one in TURNS] == replies
    assert run_.unplayed == 0
    assert ReplayProvider(path).send(TURNS[0]) == replies[0]
    assert [one.name for one in folder.iterdir()] == ["c.yaml.gz"]


def test_the_same_recording_has_the_same_bytes(folder: Path) -> None:
    """It holds no time, and what a plain cassette would."""
    for name in ("a.yaml.gz", "b.yaml.gz", "c.yaml"):
        # A stream tells when its pieces arrived.
        record(folder / name, TURNS[:1], drop_headers=["*"])

    assert (folder / "a.yaml.gz").read_bytes() == (folder / "b.yaml.gz").read_bytes()
    assert text_of(folder / "a.yaml.gz") == (folder / "c.yaml").read_text("utf-8")


def test_commands_take_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Secrets are found by line in what is compressed, and leave it."""
    (folder / "cassettes").mkdir()
    path = folder / "cassettes" / "c.yaml.gz"
    plain = foreign(folder / "c.yaml", {"messages": [{"role": "user", "content": SECRET}]})
    path.write_bytes(gzip.compress(plain.read_bytes()))
    line = next(n for n, s in enumerate(plain.read_text("utf-8").splitlines(), 1) if SECRET in s)

    code, found = checked(capsys, "cassettes")
    assert (code, found["checked"], codes(found)) == (1, 1, ["SECRET"])
    assert found["findings"][0]["line"] == line
    assert run("show", "cassettes/c.yaml.gz") == 0
    assert f"user: {SECRET}" in capsys.readouterr().out

    assert run("convert", "cassettes", "--out", "clean.yaml.gz") == 0
    assert "[anthropic-key]" in text_of(folder / "clean.yaml.gz")
    assert checked(capsys, "clean.yaml.gz")[0] == 0


@pytest.mark.parametrize("damage", ["cut", "noise", "bomb"])
def test_damage_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    """By name, with what to do; what would not fit into memory is not unpacked."""
    monkeypatch.setattr(bodies, "_LARGEST", 1 << 20)
    path = folder / "c.yaml.gz"
    good = gzip.compress(foreign(folder / "c.yaml", {"a": 1}).read_bytes())
    content, said = {
        "cut": (good[:-20], "ends too early"),
        "noise": (good[:15] + b"\0\xff\0" + good[18:], "broken"),
        "bomb": (gzip.compress(b"interactions: []\n" + b"#" * (2 << 20)), "more than 1 MB"),
    }[damage]
    path.write_bytes(content)

    with pytest.raises(CassetteUnreadableError) as refused:
        read_cassette(path)

    assert said in refused.value.why
    assert "c.yaml.gz" in refused.value.what
    assert refused.value.hint
