"""The bytes of an answer are kept, however readable or huge the file is; the reader of JSON."""

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cassette_work import ask
from command_line import command
from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.cassettes.files import format as format_
from pytest_regen.cassettes.files.format import header_text, interaction_text
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.scrubbing import clean_body
from pytest_regen.credentials.search import find_secrets
from pytest_regen.errors import CassetteError
from pytest_regen.strict_json import (
    json_or_none,
    strict_loads,
)

JSON = {"content-type": ("application/json",)}
TOKEN = "ghp_" + "aB3dE6gH9" * 4


def written(path: Path, body: bytes) -> str:
    kept = Interaction("GET", "https://a.example/", {}, b"", 200, "OK", JSON, body)
    path.write_text(header_text({"source": "other"}) + interaction_text(kept), "utf-8", newline="")
    return path.read_text("utf-8")


def read(path: Path) -> bytes:
    file = read_cassette(path)
    assert file is not None
    return file.interactions[0].interaction.response_body


EXACT = {
    "infinity": b'{"x":1e400}',
    "trailing zero": b'{"price":1.10}',
    "escapes": rb'{"a":"gr\u00fcn \/ \ud83d\ude00 \ud800 \n"}',
    "byte order mark": b'\xef\xbb\xbf{"a":1}',
    "windows": b'{\r\n  "a": 1\r\n}\r\n',
    "empty but for a blank": b'{"a":{ }}',
    "latin-1": '{"a":"grün"}'.encode("latin-1"),
    "zero bytes": b"\x00\x01{}",
    "quoted signs": b'{"a":"\\": \\"\\\\","b":"{[,:]}"}',
}


@pytest.mark.parametrize("body", EXACT.values(), ids=EXACT)
def test_what_comes_back_is_what_came(path: Path, body: bytes) -> None:
    written(path, body)

    assert read(path) == body


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
STYLES: list[dict[str, Any]] = [
    {"separators": (",", ":")},
    {},
    {"ensure_ascii": False, "separators": (",", ":")},
    {"indent": 2},
    {"separators": (" ,", " : ")},
]


@given(value=ANY_JSON, style=st.sampled_from(STYLES), behind=st.sampled_from(["", "\n", "\r\n"]))
def test_any_json_comes_back(tmp_path_factory: Any, value: Any, style: Any, behind: str) -> None:
    path = tmp_path_factory.mktemp("any") / "c.yaml"
    body = (json.dumps(value, **style) + behind).encode("utf-8", "surrogatepass")

    written(path, body)

    assert read(path) == body


@pytest.mark.parametrize(("style", "layout"), [((",", ":"), "compact"), ((", ", ": "), "spaced")])
def test_the_file_is_readable(path: Path, style: tuple[str, str], layout: str) -> None:
    """One member a line, in the words of the wire, and a note that tells how it was."""
    said = '{"a": 1.10, "b": [{"c": "x: y, z"}, {}], "d": []}'
    body = said.replace(", ", style[0], 1).replace('": ', f'"{style[1]}')
    for sign in ('10, "b', "}, {}", '], "d'):
        body = body.replace(sign, sign.replace(", ", style[0]))

    text = written(path, body.encode())

    assert f"  layout: {layout}\n" in text
    assert '        {\n          "a": 1.10,\n          "b": [\n            {\n' in text
    assert '"c": "x: y, z"\n            },\n            {}\n          ],\n' in text
    assert read(path) == body.encode()


def test_an_answer_may_be_edited(path: Path) -> None:
    text = written(path, b'{"a":1.10,"b":"x"}')
    path.write_text(text.replace('"x"', '"an, edit: here"'), "utf-8")

    assert read(path) == b'{"a":1.10,"b":"an, edit: here"}'


def test_a_test_that_is_marked_vcr_gets_the_bytes(path: Path) -> None:
    """Of a file of ours, by whichever mark it is used."""
    body = b'{"price":1.10,"none":[]}'
    written(path, body)
    options = VcrOptions("c.yaml", path.parent, "none", {}, (), lambda _: None)

    with use_vcr_cassette(options):
        answer = httpx2.get("https://a.example/")

    assert answer.content == body
    assert answer.headers["content-length"] == str(len(body))


SCRUBBED: dict[str, tuple[bytes, bytes]] = {
    "value": (
        b'{"price":1.10, "note":"is TOKEN!" ,"big":1e400}',
        b'{"price":1.10, "note":"is [github-token]!" ,"big":1e400}',
    ),
    "name": (b'{"TOKEN" : 1.0,"b":"\\u00fc"}', b'{"[github-token]" : 1.0,"b":"\\u00fc"}'),
    "escapes beside it": (
        rb'{"a":"gr\u00fcn \/ TOKEN \ud83d\ude00 \/"}',
        rb'{"a":"gr\u00fcn / [github-token] \ud83d\ude00 /"}',
    ),
    "password": (
        b'{"password":"hunter2!" , "n":1e3}',
        b'{"password":"[assigned-secret]" , "n":1e3}',
    ),
    "JSON in JSON": (
        rb'{"a":"{\"price\":1.10 ,\"t\":\"TOKEN\"}"}',
        rb'{"a":"{\"price\":1.10 ,\"t\":\"[github-token]\"}"}',
    ),
    "lines": (
        b'{"a":1.10 ,"t":"TOKEN"}\n{"b" :2}\n',
        b'{"a":1.10 ,"t":"[github-token]"}\n{"b" :2}\n',
    ),
}


@pytest.mark.parametrize(("body", "clean"), SCRUBBED.values(), ids=SCRUBBED)
def test_a_credential_goes_and_the_rest_stays(body: bytes, clean: bytes) -> None:
    assert clean_body(body.replace(b"TOKEN", TOKEN.encode())) == clean


URI = "https://api.anthropic.com/v1/messages"


def exchange(sent: bytes, said: bytes) -> Interaction:
    return Interaction("POST", URI, JSON, sent, 200, "OK", JSON, said)


def large_bodies() -> Iterator[tuple[str, bytes, bytes]]:
    drawn = random.Random(5).randbytes(200_000)
    prose, data = b"to be or not to be " * 10_000, base64.b64encode(drawn)
    yield "prose", b'{"text": "' + prose, b" " + prose + b'"}'
    yield "base64 before", b'{"data": "' + data + b'", "text": "', b'"}'
    yield "binary", drawn + b"\0", b"\0" + drawn


def test_a_key_in_a_huge_body_is_found_whatever_it_consists_of() -> None:
    """As it is, and in base64 in large data, plain or in UTF-16."""
    key = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8i9J0" * 2
    for name, before, after in large_bodies():
        clean = clean_body(before + key.encode() + after)
        assert key.encode() not in clean, name
        assert clean.startswith(before[:1_000]), name
        assert clean.endswith(after[-1_000:]), name
    for coding in ("ascii", "utf-16-le"):
        drawn = random.Random(6).randbytes(300_000)
        hidden = base64.b64encode(drawn + b"\n" * 8 + key.encode(coding) + b"\n" * 8 + drawn)
        assert find_secrets(hidden.decode()) == ("anthropic-key",), coding


@pytest.mark.parametrize("levels", [90, 900, 100_000])
def test_deep_json_is_kept_or_refused_in_words(tmp_path: Path, levels: int) -> None:
    """A body may nest as deep as it likes: what comes of it is an answer, or an error of ours."""
    path = tmp_path / "c.yaml"
    deep = f'{{"x": {"[" * levels}{"]" * levels}}}'.encode()

    for sent, said in ((deep, b"{}"), (b"{}", deep)):
        path.unlink(missing_ok=True)
        try:
            with use_cassette(path, mode="once", http_clients=False) as run:
                run.take("POST", URI, sent)
                run.record(exchange(sent, said))
            with use_cassette(path, http_clients=False) as run:
                taken = run.take("POST", URI, sent)
        except CassetteError as error:
            assert "nested too deeply" in str(error)  # noqa: PT017 - either is right
            continue
        assert taken is not None
        assert "".join(taken.response_body.decode().split()) == "".join(said.decode().split())
        with pytest.raises(CassetteError), use_cassette(path, http_clients=False) as run:
            run.take("POST", f"{URI}/other", sent.replace(b"x", b"y"))
        for name in ("check", "show", "convert"):
            assert command("cassettes", name, path).code == 0


def test_a_cassette_of_nothing_is_told(tmp_path: Path) -> None:
    """A list without recordings is one; it is never passed by in silence."""
    path = tmp_path / "c.yaml"
    path.write_text("version: 1\ninteractions: []\n", "utf-8")

    checked, converted = (command("cassettes", name, path) for name in ("check", "convert"))

    assert "0 recorded" in ask(path, "x")
    assert checked.code == 0
    assert "[EMPTY]" in checked.err
    assert converted.code == 1
    assert "holds no recording" in converted.err


# The counts behind the benchmark's milliseconds, which a slow machine does not change


def filled(path: Path, count: int, answer: bytes = b"{}") -> Path:
    with use_cassette(path, mode="once", http_clients=False) as run:
        for number in range(count):
            run.record(exchange(b'{"n": %d}' % number, answer))
    return path


def test_only_what_answers_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the recording that answers is parsed, however many there are."""
    path = filled(tmp_path / "c.yaml", 400)
    parsed: list[int] = []
    build = format_.build_interaction

    def counted(data: object, file: Path, line: int) -> Any:
        parsed.append(line)
        return build(data, file, line)

    monkeypatch.setattr(format_, "build_interaction", counted)
    with use_cassette(path, http_clients=False) as run:
        assert not parsed  # opening the file parses none
        found = run.take("POST", "http://elsewhere/v1/messages", b'{"n":399}')

    assert found is not None
    assert len(parsed) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, "b": {"a": 2, "c": 3, "c": 3}}', "'c' is given twice"),
        ("[NaN]", "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ("[" * 200_000, "too deeply"),
    ],
)
def test_what_parsers_read_differently_is_refused(text: str, why: str) -> None:
    """As text and as bytes, by the value; one that needs no reason gets ``None``."""
    for data in (text, text.encode()):
        with pytest.raises(ValueError, match=why):
            strict_loads(data)
        assert json_or_none(data) is None
