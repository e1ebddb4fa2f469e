"""``cassettes check``, ``show`` and ``convert`` as a user calls them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import vcr
import yaml
from recorded import record, replaying
from turn_values import turn

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.cli.app import main
from pytest_regen.turns import Message

REAL = Path(__file__).parents[3] / "shared" / "data" / "anthropic-cassettes"
SECRET = "sk-ant-api03-" + "a1B2c3D4" * 5


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are called."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    """Call a command; return its exit code."""
    with pytest.raises(SystemExit) as caught:
        main(["cassettes", *words])
    return int(caught.value.code or 0)


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the JSON of a check."""
    code = run("check", *words, "--json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def codes(found: dict[str, Any]) -> list[str]:
    """Return the codes found, in order."""
    return [one["code"] for one in found["findings"]]


def foreign(
    path: Path, *bodies: Any, headers: dict[str, Any] | None = None, said: Any = b"{}"
) -> Path:
    """Write a cassette as vcrpy does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    response = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": said}}
    if isinstance(said, bytes) and said.startswith(b"\x1f\x8b"):
        response["headers"] = {"content-encoding": ["gzip"]}
    uri = "https://api.anthropic.com/v1/messages"
    data = {
        "version": 1,
        "interactions": [
            {
                "request": {"method": "POST", "uri": uri, "headers": headers or {},
                            "body": json.dumps(body)},
                "response": response,
            }
            for body in bodies
        ],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(data), "utf-8")
    return path


def test_a_clean_cassette_is_fine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What we recorded has nothing to be told of."""
    record(folder / "c.yaml", [turn("one"), turn("two", max_tokens=30_000)])

    assert checked(capsys, ".") == (0, {"checked": 1, "ok": True, "findings": []})


@pytest.mark.parametrize("where", ["body", "gzip", "header"])
def test_secrets_are_found_where_they_stand(
    folder: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """In the text, in what is compressed, in headers; the value itself is never printed."""
    path = folder / "c.yaml"
    if where == "body":
        foreign(path, {"prompt": SECRET})
    elif where == "gzip":
        foreign(path, {}, said=gzip.compress(json.dumps({"said": SECRET}).encode()))
    else:
        foreign(path, {}, headers={"X-Api-Key": ["opaque"]})

    code, found = checked(capsys, str(path))

    assert code == 1
    assert codes(found) == ["HEADER" if where == "header" else "SECRET"]
    assert run("check", str(path)) == 1
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    assert "next: pytest-regen cassettes convert" in said.err


def test_damage_is_told_by_line_and_the_rest_is_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unreadable file ends the check with 2, after everything else was looked at."""
    (folder / "a.yaml").write_text("interactions:\n- !!python/name:os.system\n", "utf-8")
    record(folder / "b.yaml", [turn("one")])
    text = (folder / "b.yaml").read_text("utf-8").replace('"one"', '"uno"', 1)
    (folder / "b.yaml").write_text(text, "utf-8")

    code, found = checked(capsys, ".")

    assert code == 2
    assert [(o["code"], o["path"]) for o in found["findings"]] == [
        ("UNREADABLE", "a.yaml"),
        ("EDITED", "b.yaml"),
    ]
    assert found["findings"][0]["line"] == 2


def test_old_large_left_and_drifted_ones_are_warnings(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of them fails the check."""
    record(folder / "c.yaml", [turn("one" * 800)])
    (folder / "d.yaml.partial").write_bytes((folder / "c.yaml").read_bytes())
    text = (folder / "c.yaml").read_text("utf-8")
    old = text.replace(text.partition("recorded_at: ")[2].partition("\n")[0], '"2020-01-02"', 1)
    (folder / "c.yaml").write_text(old, "utf-8")
    (folder / ".pytest_cache/v/regen").mkdir(parents=True)
    (folder / ".pytest_cache/v/regen/drifted").write_text('["c.yaml"]', "utf-8")

    code, found = checked(capsys, "c.yaml", "d.yaml.partial", "--max-age", "100", "--max-size", "2")

    assert code == 0
    assert codes(found) == ["DRIFT", "OVERSIZE", "STALE", "PARTIAL"]


def test_cassettes_without_a_test_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The module is gone, or has no such test; parameters and given names are understood."""
    module = "def test_a(cassette): pass\nclass TestB:\n  def test_c(self): pass\nNAME = 'given'\n"
    (folder / "test_m.py").write_text(module, "utf-8")
    for name in ("test_m/test_a[x-1]", "test_m/TestB.test_c", "test_m/given", "test_m/test_z",
                 "test_gone/test_a", "regen/store/Type"):  # fmt: skip
        foreign(folder / "cassettes" / f"{name}.yaml", {"prompt": name})

    code, found = checked(capsys, "cassettes")

    assert code == 0
    assert [(o["code"], o["path"]) for o in found["findings"]] == [
        ("UNUSED", "cassettes/test_gone/test_a.yaml"),
        ("UNUSED", "cassettes/test_m/test_z.yaml"),
    ]


def test_what_varies_between_recordings_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids and dates in requests that are otherwise the same, as paths to declare."""
    body = {
        "model": "m",
        "metadata": {"user_id": "user_01ABCDEF4711"},
        "at": "2026-01-02T03:04:05Z",
    }
    other = {
        "model": "m",
        "metadata": {"user_id": "user_02GHIJKL0815"},
        "at": "2026-05-06T07:08:09Z",
    }
    foreign(folder / "a.yaml", body)
    foreign(folder / "b.yaml", other, {"model": "another", "metadata": {}})

    code, found = checked(capsys, ".")

    assert code == 0
    assert codes(found) == ["VARIES", "VARIES"]
    messages = " ".join(one["message"] for one in found["findings"])
    assert "ignore = ['$.metadata.user_id']" in messages
    assert "$.at varies" in messages


@pytest.mark.parametrize("words", [["nowhere.yaml"], ["."]])
def test_a_check_of_nothing_is_wrong_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It would always pass."""
    assert run("check", *words) == 2
    assert "next: " in capsys.readouterr().err


def test_show_reads_as_a_conversation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each message once, replies, tokens, what the cache did; streams as what they say."""
    first = (Message("user", "Hello.", cache="5m"),)
    second = (*first, Message("assistant", "Hello."), Message("user", "And again."))
    record(folder / "c.yaml", [turn(messages=first), turn(messages=second, max_tokens=30_000)])

    assert run("show", "c.yaml") == 0
    text = capsys.readouterr().out
    assert run("show", "c.yaml", "--json") == 0
    shown = json.loads(capsys.readouterr().out)

    assert text.count("user: Hello.") == 1
    assert "(2 messages as before)" in text
    assert "\nAnd again.\n" in text
    assert "source: emulator" in text
    assert "cache_read" in text
    assert [one["repeated"] for one in shown["interactions"]] == [0, 2]
    assert shown["interactions"][1]["stop_reason"] == "end_turn"
    assert shown["interactions"][1]["tokens"]["output"] > 0


def test_show_cuts_long_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--full`` prints them whole."""
    record(folder / "c.yaml", [turn("word " * 1_000 + "end")])

    run("show", "c.yaml")
    assert "more characters)" in capsys.readouterr().out
    run("show", "c.yaml", "--full")
    assert "word end" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["show", "convert"])
def test_what_is_not_there_is_wrong_usage(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, with the path."""
    assert run(command, "gone.yaml", "--json") == 2
    assert "gone.yaml" in json.loads(capsys.readouterr().out)["what"]


def test_convert_makes_it_ours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Decoded, laid out, without credentials; replayed by us and loaded by vcrpy as before."""
    said = gzip.compress(json.dumps({"said": f"ö {SECRET}"}).encode())
    path = foreign(folder / "c.yaml", {"a": 1}, {"a": 2}, headers={"x-api-key": ["k"]}, said=said)

    assert run("convert", "c.yaml", "--json") == 0

    assert json.loads(capsys.readouterr().out) == {"path": "c.yaml", "interactions": 2}
    text = path.read_text("utf-8")
    assert text.startswith("# pytest-regen cassette")
    assert '"a": 1\n' in text
    assert "ö [anthropic-key]" in text
    assert "x-api-key" not in text
    with vcr.use_cassette(str(path), record_mode="none") as cassette:
        assert len(cassette) == 2
    assert checked(capsys, "c.yaml")[0] == 0


def test_convert_names_json_cassettes_anew(folder: Path) -> None:
    """The JSON file stays; a target that is there already is not overwritten."""
    data = {"version": 1, "interactions": [{
        "request": {"method": "GET", "uri": "https://x.example/", "headers": {}, "body": None},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": {},
                     "body": {"string": "hi"}}}]}  # fmt: skip
    (folder / "c.json").write_text(json.dumps(data), "utf-8")

    assert run("convert", "c.json") == 0
    assert run("convert", "c.json") == 2
    assert run("convert", "c.json", "--out", "d.yaml") == 0

    assert (folder / "c.json").exists()
    assert read_cassette(folder / "c.yaml") is not None
    assert (folder / "d.yaml").read_text("utf-8") == (folder / "c.yaml").read_text("utf-8")


def test_converting_our_own_changes_nothing_that_is_played(folder: Path) -> None:
    """The same answers, streams and all; twice is as once."""
    requests = [turn("one"), turn("two", max_tokens=30_000)]
    replies, _ = record(folder / "c.yaml", requests)
    run("convert", "c.yaml")
    once = (folder / "c.yaml").read_bytes()
    run("convert", "c.yaml")

    assert (folder / "c.yaml").read_bytes() == once
    with use_cassette(folder / "c.yaml") as replay:
        assert [replaying().send(request) for request in requests] == replies
    assert replay.unplayed == 0


@pytest.mark.skipif(not REAL.is_dir(), reason="the real recordings are not beside this checkout")
def test_real_recordings_are_shown_and_converted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of other projects, whatever wrote them."""
    for path in sorted(REAL.glob("*.yaml")):
        assert run("show", str(path), "--json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert all(one["reply"] or one["end"] for one in shown["interactions"])
        assert run("convert", str(path), "--out", path.name) == 0
        converted = read_cassette(folder / path.name)
        assert converted is not None
        assert len(converted.interactions) == len(shown["interactions"])
        capsys.readouterr()
    assert checked(capsys, ".")[0] == 0
