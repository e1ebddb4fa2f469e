"""The counts behind the benchmark's milliseconds, which a slow machine does not change."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from cassette_commands import foreign

from pytest_regen.cassettes import matching, read_cassette, use_cassette
from pytest_regen.cassettes.files import format as format_
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.credentials import search

URL = "https://api.anthropic.com/v1/messages"
JSON_TYPE = {"content-type": ("application/json",)}


def filled(path: Path, count: int, answer: bytes = b"{}") -> Path:
    with use_cassette(path, mode="once", http_clients=False) as run:
        for number in range(count):
            body = b'{"n": %d}' % number
            run.record(Interaction("POST", URL, JSON_TYPE, body, 200, "OK", JSON_TYPE, answer))
    return path


@pytest.mark.parametrize("count", [10, 400])
def test_a_request_is_compared_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """One lookup of one key, and one recording parsed, however many there are."""
    path = filled(tmp_path / "c.yaml", count)
    asked: list[str] = []
    parsed: list[int] = []

    class Counting(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.append(key)
            return super().get(key, default)

    index, build = matching._index, format_.build_interaction
    monkeypatch.setattr(matching, "_index", lambda keys: Counting(index(keys)))

    def counted(data: object, file: Path, line: int) -> Any:
        parsed.append(line)
        return build(data, file, line)

    monkeypatch.setattr(format_, "build_interaction", counted)
    with use_cassette(path, http_clients=False) as run:
        assert not parsed  # opening the file parses none
        found = run.take("POST", "http://elsewhere/v1/messages", b'{"n":%d}' % (count - 1))

    assert found is not None
    assert (len(asked), len(parsed)) == (1, 1)


def test_a_cassette_is_in_memory_once(tmp_path: Path) -> None:
    """Recordings are views of the bytes read, so that an index costs little beside the file."""
    path = filled(tmp_path / "c.yaml", 400, b"x" * 8_000)
    size = path.stat().st_size

    tracemalloc.start()
    file = read_cassette(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert file is not None
    assert len(file.interactions) == 400
    assert peak < 1.5 * size


def test_a_cassette_of_vcrpy_is_read_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [{"n": number, "text": "to be or not " * 300} for number in range(20)]
    path = foreign(tmp_path / "c.yaml", *bodies)

    def unused(*_: object) -> None:
        raise AssertionError("it takes longer than reading the file")

    monkeypatch.setattr(format_, "interaction_text", unused)
    monkeypatch.setattr(search, "scrub_text", unused)
    with use_cassette(path, http_clients=False) as run:
        assert run.take("POST", URL, json.dumps(bodies[9]).encode()) is not None
