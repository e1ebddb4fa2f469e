"""Huge cassettes: read, played and looked at as small ones are, but for what would fill memory."""

import base64
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_cassettes import foreign
from cassette_work import ask
from command_line import command
from vcr.request import Request
from vcr.serializers import yamlserializer

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.cassettes.clients.vcr_files import Persister
from pytest_regen.cassettes.files import bodies, writer
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.scrubbing import clean_body
from pytest_regen.credentials import search
from pytest_regen.credentials.search import find_secrets
from pytest_regen.errors import CassetteError, CassetteUnreadableError

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


def test_a_huge_body_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Value by value when it is scrubbed, and not once more in the file; by us and under vcrpy."""
    searched: list[int] = []

    def counted(name: str, module: Any) -> None:
        search = getattr(module, name)

        def searching(text: str) -> Any:
            searched.append(len(text))
            return search(text)

        monkeypatch.setattr(module, name, searching)

    counted("scrub_text", search)
    counted("find_secrets", writer)
    said = json.dumps({"content": "to be or not to be " * 100_000}).encode()

    with use_cassette(tmp_path / "c.yaml", mode="once", http_clients=False) as run:
        run.record(exchange(b"{}", said))
    ours, searched[:] = sum(searched), []
    answer = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": said}}
    recorded = {"requests": [Request("POST", URI, b"{}", {})], "responses": [answer]}
    Persister([], rewrites=False).save_cassette(str(tmp_path / "d.yaml"), recorded, yamlserializer)

    assert ours < 1.1 * len(said)
    assert sum(searched) < 1.1 * len(said)
    for name in "cd":
        assert len((tmp_path / f"{name}.yaml").read_bytes()) > len(said)


def test_little_that_unpacks_to_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.yaml"
    assert bodies._LARGEST == 1 << 28
    monkeypatch.setattr(bodies, "_LARGEST", 1 << 20)
    packed = gzip.compress(b"\0" * (1 << 20) + b".", 1)
    coding = {"content-encoding": ("gzip",)}
    path.write_text(yaml.safe_dump(foreign(packed, {"content-encoding": ["gzip"]})), "utf-8")

    with pytest.raises(CassetteUnreadableError, match="more than 1 MB") as read:
        read_cassette(path)
    with (
        pytest.raises(CassetteError, match="cannot be read") as recorded,
        use_cassette(tmp_path / "d.yaml", mode="once", http_clients=False) as run,
    ):
        run.record(Interaction("POST", URI, JSON, b"{}", 200, "OK", {**JSON, **coding}, packed))

    assert read.value.line == 2
    assert "more than 1 MB" in recorded.value.why
    assert [file.name for file in tmp_path.iterdir()] == ["c.yaml"]


@pytest.mark.parametrize(
    ("brackets", "levels"),
    [
        ("[]", 90),
        ("[]", 900),
        ("[]", 100_000),
        ("{}", 900),
    ],
)
def test_deep_json_is_kept_or_refused_in_words(tmp_path: Path, levels: int, brackets: str) -> None:
    """A body may nest as deep as it likes: what comes of it is an answer, or an error of ours."""
    path = tmp_path / "c.yaml"
    opening, closing = ('{"a":', "1" + "}" * levels) if brackets == "{}" else ("[", "]" * levels)
    deep = f'{{"x": {opening * levels}{closing}}}'.encode()

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
