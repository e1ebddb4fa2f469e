"""The bytes of an answer are kept, however readable the file is."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.cassettes import read_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.cassettes.files.format import header_text, interaction_text
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.scrubbing import clean_body

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
    {"indent": "\t"},
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
