"""Huge cassettes: read, played and looked at as small ones are, but for what would fill memory."""

import base64
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cassette_work import ask
from command_line import command

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.files import format as format_
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.scrubbing import clean_body
from pytest_regen.credentials.search import find_secrets
from pytest_regen.errors import CassetteError

URI = "https://api.anthropic.com/v1/messages"
JSON = {"content-type": ("application/json",)}


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
