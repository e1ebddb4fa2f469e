"""Files on disk: what is refused by file and line, and what foreign recorders wrote."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from bad_cassettes import BAD, HEAD, Bad, recording
from command_line import command
from recorded import loaded, record, replaying
from turn_values import turn

from pytest_regen.cassettes import Interaction, ReplayProvider, read_cassette, use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.cassettes.files.format import interaction_text
from pytest_regen.errors import CassetteUnreadableError


def text_of(*interactions: Interaction) -> str:
    return HEAD + "".join(map(interaction_text, interactions))


@pytest.mark.parametrize(
    "change",
    [
        {"uri": "https://api.anthropic.com/v1/messages?beta=true"},
        {"request_body": b'{"a": 2}'},
        {"request_body": b'{"a": true}'},
    ],
)
def test_method_path_query_and_body_make_the_key(change: dict[str, Any]) -> None:
    assert recording(**change).key != recording().key


# What is refused


def test_a_python_tag_is_never_constructed(path: Path, tmp_path: Path) -> None:
    """In a file of our own layout, too, and the tag is named."""
    victim = tmp_path / "made"
    planted = f"      string: !!python/object/apply:os.mkdir [{victim}]\n"
    lines = text_of(recording(), recording(status=201)).splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if line.startswith("      string:"))
    end = next(n for n, line in enumerate(lines) if n > at and line.startswith("    status:"))
    path.write_text("".join([*lines[:at], planted, *lines[end:]]), "utf-8")

    with pytest.raises(CassetteUnreadableError, match=r"python/object/apply:os\.mkdir") as caught:
        read_cassette(path)

    assert not victim.exists()
    assert f"{path}:{at + 1}:" in str(caught.value)


def test_a_file_cut_anywhere_is_noticed(path: Path) -> None:
    """Wherever a write ended early, but between two recordings, the file is refused by line."""
    whole = text_of(recording(), recording(request_body=b'{"a": 2}'))
    ends = {len(HEAD), len(text_of(recording())), len(whole)}

    for length in {*range(1, len(whole), 7), *range(len(whole) - 90, len(whole))}:
        if length in ends:
            continue
        path.write_text(whole[:length], "utf-8")
        with pytest.raises(CassetteUnreadableError, match=r"c\.yaml:\d+:"):
            read_cassette(path)


def test_an_edited_request_is_noticed(path: Path) -> None:
    """A key that is no longer true would answer a question that nobody asked."""
    path.write_text(text_of(recording()).replace("Hello.", "Hi there."), "utf-8")

    with pytest.raises(CassetteUnreadableError, match="was edited"):
        replay(path)
    assert "[EDITED] the recorded request was edited" in command("cassettes", "check", path).err


def test_windows_line_ends_are_no_edit(path: Path) -> None:
    record(path, [turn("one")])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    with use_cassette(path):
        assert replaying().send(turn("one")).text == "one"


def test_what_is_added_to_a_reformatted_file_leaves_its_metadata(path: Path) -> None:
    """Day and source of what was there before, though all of it is written anew."""
    record(path, [turn("one")])
    data = yaml.safe_load(path.read_text("utf-8"))
    data["recording"] |= {"recorded_at": "2020-02-02"}
    data["metadata"] = {"team: ours": {"null": [], "plants": {}}}
    path.write_text(yaml.safe_dump(data), "utf-8")

    record(path, [turn("two")], mode="new_episodes")

    file = loaded(path)
    assert file.head
    assert len(file.interactions) == 2
    assert file.metadata["recorded_at"] == "2020-02-02"
    assert file.metadata["source"] == "emulator"
    assert file.metadata["team: ours"] == {"null": [], "plants": {}}


# What others wrote


def test_a_replayed_turn_loads_no_sdk_and_no_client(path: Path) -> None:
    """A fresh process answers from the cassette without vcrpy, HTTP clients or pydantic."""
    record(path, [turn("one")])
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from pytest_regen.cassettes import use_cassette, ReplayProvider\n"
        "from pytest_regen.turns import AnthropicProvider, Message, TurnRequest\n"
        "said = (Message('user', 'one'),)\n"
        "turn = TurnRequest('You are terse.', said, 'claude-sonnet-5-5', 200)\n"
        "with use_cassette(Path(sys.argv[1]), http_clients=False):\n"
        "    assert AnthropicProvider().send(turn).text == 'one'\n"
        "assert ReplayProvider(Path(sys.argv[1])).send(turn).text == 'one'\n"
        "print(len(sys.modules), *{name.split('.')[0] for name in sys.modules})\n"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    ).stdout.split()

    heavy = {"anthropic", "vcr", "httpx2", "pydantic", "filelock", "ssl", "asyncio", "pytest"}
    assert sorted(heavy & set(loaded)) == []
    assert int(loaded[0]) < 320, "a tenth of what the SDK alone would load"


OLD_HTTPX = """interactions:
- request: {body: '', headers: {}, method: GET, uri: 'http://127.0.0.1:9/said'}
  response:
    content: 'ivy, in "deep" shade'
    headers: {content-type: [text/plain], x-served-by: [oak]}
    http_version: HTTP/1.1
    status_code: 203
version: 1
"""


def test_an_answer_in_the_layout_vcrpy_once_had_for_httpx(path: Path) -> None:
    """With ``status_code`` and ``content``; vcrpy still plays it, and so do both readers here."""
    path.write_text(OLD_HTTPX, "utf-8")

    for cassette in (
        use_cassette(path),
        use_vcr_cassette(VcrOptions("c", path.parent, "none", {}, (), lambda _: None)),
    ):
        with cassette:
            said = httpx2.get("http://127.0.0.1:9/said")

        assert (said.status_code, said.text) == (203, 'ivy, in "deep" shade')
        assert said.headers["x-served-by"] == "oak"


def test_names_in_several_spellings_and_values_as_bytes(path: Path) -> None:
    """All values of a header are its values; vcrpy keeps what a client gave it as bytes so."""
    path.write_text(
        """
interactions:
- request:
    body: null
    headers: {X-Amz-Date: [!!binary MjAyNg==]}
    method: GET
    uri: https://a.example/
  response:
    body: {string: x}
    headers:
      Set-Cookie: [a=1]
      set-cookie: b=2
      Location: !!binary L2dyw7xu
    status: {code: 200, message: OK}
version: 1
""",
        "utf-8",
    )

    file = loaded(path)
    found = file.interactions[0].interaction
    assert found.request_headers == {"x-amz-date": ("2026",)}
    assert found.response_headers == {"set-cookie": ("a=1", "b=2"), "location": ("/grün",)}


@pytest.fixture(params=BAD)
def bad(request: pytest.FixtureRequest) -> Bad:
    return BAD[request.param]


@pytest.fixture
def bad_path(bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"c{bad.suffix}"
    path.write_bytes(bad.content)
    return path


def replay(path: Path) -> object:
    with use_cassette(path, http_clients=False):
        return replaying().send(turn("Hello."))


def add(path: Path) -> object:
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


@pytest.mark.parametrize("door", [replay, add, provide, play_marked])
def test_it_is_refused_by_file_and_line(
    bad: Bad, bad_path: Path, door: Callable[[Path], object]
) -> None:
    """By what replays and by what records; the file stays as it is."""
    if door is add and bad.suffix == ".json":
        pytest.skip("JSON is not recorded")
    if door is play_marked and not bad.vcr:
        pytest.skip("vcrpy plays it")

    with pytest.raises(CassetteUnreadableError) as caught:
        door(bad_path)

    assert caught.value.line == bad.line or not bad.line
    assert caught.value.what == f"{bad_path.name}:{caught.value.line}: the cassette cannot be read"
    assert bad.says in caught.value.why
    assert "\n" not in caught.value.why
    assert caught.value.hint
    assert [file.name for file in bad_path.parent.iterdir()] == [bad_path.name]
    assert bad_path.read_bytes() == bad.content


@pytest.mark.parametrize("name", ["check", "show", "convert"])
def test_commands_end_with_two(bad: Bad, bad_path: Path, name: str) -> None:
    ran = command("cassettes", name, bad_path.name)

    assert ran.code == 2
    assert re.search(rf"{re.escape(bad_path.name)}:{bad.line or r'[0-9]+'}: ", ran.err)
    assert bad.says in ran.err
    assert not ran.out
    assert [file.name for file in bad_path.parent.iterdir()] == [bad_path.name]
    assert bad_path.read_bytes() == bad.content
