"""``convert`` leaves a green suite green; ``check``, ``show``; cassettes called ``x.yaml.gz``."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import vcr
import yaml
from cassette_commands import checked, codes, foreign, run
from loopback import Answer, Asked, serving
from recorded import record, replaying
from turn_values import turn

from pytest_regen.cassettes import ReplayProvider, read_cassette, use_cassette
from pytest_regen.cassettes.files.format import FIRST_LINE
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.errors import CassetteUnreadableError
from pytest_regen.turns import Message

requests = pytest.importorskip("requests")
SECRET = "sk-ant-api03-" + "a1B2c3D4" * 5
SESSION = "s3ss10nQ7xK9mZ2pL5vB8nR4"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    git("init")
    return tmp_path


def git(*words: str) -> None:
    whole = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words)
    subprocess.run(whole, check=True, capture_output=True)


def converted(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    git("add", ".")
    capsys.readouterr()
    code = run("convert", *words, "--json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def service(asked: Asked) -> Answer:
    if asked.target == "/me":
        return Answer(b"me" if "sid=" in asked.headers.get("cookie", "") else b"")
    return ANSWERS[asked.target]


KIND = ("content-type", "application/json")
ANSWERS = {
    "/moved": Answer(status=302, headers=(("location", "/there"),)),
    "/login": Answer(b"in", headers=(("set-cookie", f"sid={SESSION}; Path=/"),)),
    "/bytes": Answer(b'{"price":1.10, "big":1e400}\n', headers=(KIND,)),
    "/there": Answer(b"there", headers=(("etag", '"abc"'),)),
}


def asked_for(url: str) -> object:
    moved = requests.get(f"{url}/moved")
    redirects = moved.url, moved.text, [one.status_code for one in moved.history]
    with requests.Session() as session:
        session.get(f"{url}/login")
        cookies = "sid" in session.cookies, session.get(f"{url}/me").text
    return redirects, cookies, requests.get(f"{url}/bytes").content


def test_a_green_suite_stays_green(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Redirects, cookies, bytes; found at the port it was recorded at, by vcrpy itself."""
    path = folder / "c.yaml"
    with serving({"/*": service}) as url, vcr.use_cassette(str(path), record_mode="all"):
        live = asked_for(url)

    code, found = converted(capsys, "c.yaml")

    assert (code, found["files"][0]["status"]) == (0, "converted")
    assert path.read_text("utf-8").startswith(FIRST_LINE)
    assert SESSION not in path.read_text("utf-8")
    with vcr.use_cassette(str(path), record_mode="none") as cassette:
        assert asked_for(url) == live
    assert cassette.all_played
    with use_cassette(path) as run_:
        assert asked_for(url) == live
    assert run_.unplayed == 0


def test_convert_makes_it_ours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Decompressed, without credentials; replayed by us and loaded by vcrpy as before."""
    said = gzip.compress(json.dumps({"said": f"ö {SECRET}"}, ensure_ascii=False).encode())
    path = foreign(folder / "c.yaml", {"a": 1}, {"a": 2}, headers={"x-api-key": ["k"]}, said=said)

    code, found = converted(capsys, "c.yaml")

    assert code == 0
    assert found == {
        "ok": True,
        "files": [
            {
                "path": "c.yaml", "status": "converted", "written": "c.yaml",
                "interactions": 2,
                "changes": {
                    "headers": ["x-api-key"], "replaced": ["response body $.said"],
                },
            }
        ],
    }  # fmt: skip
    text = path.read_text("utf-8")
    assert "ö [anthropic-key]" in text
    assert "x-api-key" not in text
    with vcr.use_cassette(str(path), record_mode="none") as cassette:
        assert len(cassette) == 2
    assert checked(capsys, "c.yaml")[0] == 0


# What is said and kept


def test_a_dry_run_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what each file would lose."""
    foreign(folder / "a.yaml", {"a": 1}, headers={"Authorization": ["Bearer x"]})
    foreign(folder / "b.yaml", {"a": 1})
    before = {path: path.read_bytes() for path in folder.glob("*.yaml")}

    assert run("convert", "a.yaml", "b.yaml", "--dry-run") == 0

    assert {path: path.read_bytes() for path in folder.glob("*.yaml")} == before
    said = capsys.readouterr().err
    assert "a.yaml: would be converted, 1 recording: without the headers authorization\n" in said
    assert "b.yaml: would be converted, 1 recording: nothing but the layout\n" in said
    assert "2 convertible" in said


def test_only_what_git_holds_is_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Committed or added; a change since then, a new file and an ignored one are left."""
    names = ("committed", "added", "changed", "new", "ignored")
    paths = [foreign(folder / f"{name}.yaml", {"a": 1}) for name in names]
    (folder / ".gitignore").write_text("ignored.yaml\n", "utf-8")
    git("add", "committed.yaml", "changed.yaml")
    git("commit", "-m", "recordings")
    git("add", "added.yaml")
    foreign(folder / "changed.yaml", {"a": 2})
    before = [path.read_bytes() for path in paths]

    assert run("convert", *(path.name for path in paths)) == 1

    assert [path.read_bytes() != old for path, old in zip(paths, before, strict=True)] == [
        True, True, False, False, False,
    ]  # fmt: skip
    told = capsys.readouterr().err
    assert "new.yaml: refused: new.yaml is left as it is: git does not hold it" in told
    assert "next: git add new.yaml, or write another file with --out FILE" in told
    assert run("convert", "new.yaml", "--out", "d.yaml") == 0


def test_many_files_and_folders(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is told of; what is ours is left, what is broken ends with 2."""
    for name in ("a", "b"):
        foreign(folder / "cassettes" / f"{name}.yaml", {"a": 1})
    record(folder / "cassettes" / "ours.yaml", [turn("one")])
    ours = (folder / "cassettes" / "ours.yaml").read_bytes()

    code, found = converted(capsys, "cassettes")

    assert code == 0
    assert [one["status"] for one in found["files"]] == ["converted", "converted", "unchanged"]
    assert (folder / "cassettes" / "ours.yaml").read_bytes() == ours

    (folder / "cassettes" / "broken.yaml").write_text("interactions: [", "utf-8")
    code, found = converted(capsys, "cassettes")
    assert code == 2
    assert [one["status"] for one in found["files"]] == ["unchanged"] * 2 + ["unreadable"] + [
        "unchanged"
    ]
    assert run("convert", "cassettes", "--out", "d.yaml") == 2


def test_of_our_own_only_a_credential_that_was_put_in_by_hand_goes(folder: Path) -> None:
    """Streams are played as before."""
    turns = [turn("one"), turn("two", max_tokens=30_000)]
    replies, _ = record(folder / "c.yaml", turns)
    before = (folder / "c.yaml").read_text("utf-8")

    text = before.replace('"text": "one"', f'"text": "one {SECRET}"')
    assert text != before
    (folder / "c.yaml").write_text(text, "utf-8")
    git("add", ".")
    assert run("convert", "c.yaml") == 0
    mended = (folder / "c.yaml").read_text("utf-8")
    gone = [line for line in mended.splitlines() if line not in before.splitlines()]
    assert len(gone) == 2  # the text, and its length
    assert "one [anthropic-key]" in mended
    with use_cassette(folder / "c.yaml") as replay:
        assert [replaying().send(request) for request in turns][1] == replies[1]
    assert replay.unplayed == 0


def test_convert_names_json_cassettes_anew(folder: Path) -> None:
    """The JSON file stays; a target that is there already is not overwritten."""
    data = {"version": 1, "interactions": [{
        "request": {"method": "GET", "uri": "https://x.example/", "headers": {}, "body": None},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": {},
                     "body": {"string": "hi"}}}]}  # fmt: skip
    (folder / "c.json").write_text(json.dumps(data), "utf-8")

    assert run("convert", "c.json") == 0
    assert run("convert", "c.json") == 1
    assert run("convert", "c.json", "--out", "d.yaml") == 0

    assert (folder / "c.json").exists()
    assert read_cassette(folder / "c.yaml") is not None
    assert (folder / "d.yaml").read_text("utf-8") == (folder / "c.yaml").read_text("utf-8")


# What is refused


def test_what_another_serializer_reads_is_left(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = foreign(folder / "c.yaml", {"a": 1})
    data = yaml.safe_load(path.read_text("utf-8"))
    response = data["interactions"][0]["response"]
    del response["body"]
    response["parsed_body"] = {"a": 1}
    path.write_text(yaml.safe_dump(data), "utf-8")
    before = path.read_bytes()

    code, found = converted(capsys, "c.yaml")

    assert code == 1
    [one] = found["files"]
    assert one["status"] == "refused"
    assert "vcrpy cannot read it, so a serializer of the suite's own must" in one["why"]
    assert "--out FILE" in one["next"]
    assert path.read_bytes() == before
    assert converted(capsys, "c.yaml", "--out", "d.yaml")[0] == 0


def test_an_address_that_would_change_is_left(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A test that sends the credential finds the old file only; our own fixture does not mind."""
    path = foreign(folder / "c.yaml", {"a": 1})
    uri = f"/v1/messages?key={SECRET}"
    path.write_text(path.read_text("utf-8").replace("/v1/messages", uri), "utf-8")

    code, found = converted(capsys, "c.yaml")
    assert code == 1
    assert "would not find it" in found["files"][0]["why"]
    assert SECRET not in json.dumps(found)

    assert converted(capsys, "c.yaml", "--out", "d.yaml")[0] == 0
    assert SECRET not in (folder / "d.yaml").read_text("utf-8")


pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("where", ["gzip", "stream"])
def test_secrets_are_found_where_they_stand(
    folder: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """In pieces of a stream, in what is compressed; the value itself is never printed."""
    path = folder / "c.yaml"
    if where == "stream":
        pieces = [f"data: {json.dumps({'delta': {'text': one}})}\n\n" for one in SECRET]
        foreign(path, {}, said="".join(pieces).encode())
        kind = "headers: {content-type: [text/event-stream]}\n    status:"
        text = path.read_text("utf-8").replace("headers: {}\n    status:", kind)
        path.write_text(text, "utf-8")
    else:
        foreign(path, {}, said=gzip.compress(json.dumps({"said": SECRET}).encode()))

    code, found = checked(capsys, str(path))

    assert code == 1
    assert set(codes(found)) == {"SECRET"}
    assert run("check", str(path)) == 1
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    advice = "revoke" if where == "stream" else "pytest-regen cassettes convert"
    assert f"next: {advice}" in said.err


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


def events_of(deltas: list[dict[str, Any]]) -> str:
    return "".join(f"data: {json.dumps({'choices': [{'delta': one}]})}\n\n" for one in deltas)


def test_show_tells_what_a_reply_says_thinks_and_calls(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of messages, chat completions, whole or in chunks, and errors; of the unknown everything."""
    blocks = [
        {"type": "thinking", "thinking": "Look it up.", "signature": "EqQ="},
        {"type": "tool_use", "id": "t", "name": "find", "input": {"plant": "Efeu \u00fc"}},
    ]
    function = {"name": "find", "arguments": '{"plant": "ivy"}'}
    chat = {"message": {"reasoning_content": "Hm.", "tool_calls": [{"function": function}]}}
    chunks = [
        {"tool_calls": [{"index": 0, "function": {"name": "find", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"plant": '}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"ivy"}'}}]},
    ]
    words = [{"content": "Ivy"}, {"content": " and fern."}]
    error = {"error": {"type": "rate_limit_error", "message": "slowly"}}
    with use_cassette(folder / "c.yaml", mode="once", http_clients=False) as run_:
        for number, (kind, said) in enumerate((
            ("application/json", json.dumps({"content": blocks, "stop_reason": "tool_use"})),
            ("application/json", json.dumps({"choices": [chat]})),
            ("text/event-stream", events_of(chunks)),
            ("text/event-stream", f"{events_of(words)}data: [DONE]\n\n"),
            ("text/event-stream", "data: tick\n\ndata: tock\n\n"),
            ("application/json", json.dumps(error)),
        )):  # fmt: skip
            uri, head = f"https://api.example/{number}", {"content-type": (kind,)}
            run_.record(Interaction("POST", uri, {}, b"{}", 200, "OK", head, said.encode()))

    assert run("show", "c.yaml") == 0
    text = capsys.readouterr().out
    assert run("show", "c.yaml", "--json") == 0
    shown = json.loads(capsys.readouterr().out)

    assert 'reply: [thinks: Look it up.]\n[calls find with {"plant": "Efeu \u00fc"}]\n' in text
    assert 'reply: [thinks: Hm.]\n[calls find with {"plant": "ivy"}]\n' in text
    assert '\nreply: [calls find with {"plant": "ivy"}]\n' in text
    assert "reply: Ivy and fern.\n" in text
    assert "data: tick" in text
    assert "rate_limit_error: slowly" in text
    assert shown["interactions"][0]["content"] == blocks


@pytest.mark.parametrize("command", ["check", "show", "convert"])
def test_what_is_not_there_is_wrong_usage(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And so is a folder without cassettes: a check of nothing would always pass."""
    assert run(command, "gone.yaml", "--json") == 2
    assert "gone.yaml" in json.loads(capsys.readouterr().out)["what"]
    assert run("check", ".") == 2
    assert "next: " in capsys.readouterr().err


def test_show_cuts_long_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(folder / "c.yaml", [turn("word " * 1_000 + "end")])

    run("show", "c.yaml")
    assert "more characters)" in capsys.readouterr().out
    run("show", "c.yaml", "--full")
    assert "word end" in capsys.readouterr().out


def test_what_is_nested_too_deep_is_not_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message that a file makes deeper than any is told in one line."""
    results: object = "deep"
    # Comprehensions take no frame from 3.12 on; before, JSON of more levels is not read at all.
    for _ in range(420 if sys.version_info < (3, 12) else 600):
        results = [{"type": "tool_result", "content": results}]
    foreign(folder / "c.yaml", {"messages": [{"role": "user", "content": results}]})

    assert run("show", "c.yaml") == 3
    assert "c.yaml cannot be shown: a message in it is nested too deep" in capsys.readouterr().err


TURNS = [turn("one"), turn("two", max_tokens=30_000)]


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def test_it_is_recorded_and_replayed(folder: Path) -> None:
    """In parts, and by whoever replays."""
    path = folder / "c.yaml.gz"

    replies = [record(path, [one], mode="new_episodes")[0][0] for one in TURNS]

    assert len(path.read_bytes()) < len(text_of(path)) / 2
    with use_cassette(path) as run_:
        assert [replaying().send(one) for one in TURNS] == replies
    assert run_.unplayed == 0
    assert ReplayProvider(path).send(TURNS[0]) == replies[0]
    assert {one.name for one in folder.iterdir()} - {".git"} == {"c.yaml.gz"}


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


def test_damage_is_refused(folder: Path) -> None:
    """By name, with what to do."""
    good = gzip.compress(foreign(folder / "c.yaml", {"a": 1}).read_bytes())
    (folder / "c.yaml.gz").write_bytes(good[:-20])

    with pytest.raises(CassetteUnreadableError, match=r"c\.yaml\.gz") as refused:
        read_cassette(folder / "c.yaml.gz")

    assert "ends too early" in refused.value.why
