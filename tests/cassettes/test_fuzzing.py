"""Any bytes, and any small damage to a good cassette: read for what it says, or refused by line."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_cassettes import HEAD, foreign, recording
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import scaled
from vcr.serializers import jsonserializer, yamlserializer

from pytest_regen.cassettes import Interaction, read_cassette
from pytest_regen.cassettes.clients.vcr_files import Persister
from pytest_regen.cassettes.files.format import interaction_text
from pytest_regen.cassettes.files.reader import CassetteFile
from pytest_regen.cassettes.upkeep.check import Limits, check_cassettes
from pytest_regen.cassettes.upkeep.convert import convert, plan_conversion
from pytest_regen.cassettes.upkeep.show import conversation
from pytest_regen.errors import CassetteUnreadableError, RegenError

EVENTS: tuple[Any, ...] = (
    {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
    {"type": "message_stop"},
)
STREAM = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in EVENTS).encode()
RECORDED = (
    recording(),
    recording(
        request_body=b'{"model": "m", "stream": true}',
        response_body=STREAM,
        response_headers={"content-type": ("text/event-stream",)},
        end="cut",
        chunks=((0, 100), (7, len(STREAM) - 100)),
    ),
    recording(request_body=b"plain text", response_body=b"\xff\x00binary", status=529, reason=""),
    recording(),
)
EMPTY_LIST = re.compile(rb"interactions\"?\s*:\s*\[\s*\]")


@dataclass(frozen=True)
class Good:
    """A cassette that is fine, in one of the forms that are read."""

    content: bytes
    suffix: str = ".yaml"

    @property
    def lines(self) -> list[bytes]:
        """Its lines, with their ends."""
        return self.content.splitlines(keepends=True)


GOOD = {
    "ours": Good((HEAD + "".join(map(interaction_text, RECORDED))).encode()),
    "vcrpy": Good(yaml.safe_dump(foreign(b"\x1f\x8b no gzip")).encode()),
    "json": Good(json.dumps(foreign(), indent=1).encode(), ".json"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


def read(path: Path) -> tuple[CassetteFile, list[Interaction]] | None:
    try:
        file = read_cassette(path)
        assert file is not None
        return file, [stored.interaction for stored in file.interactions]
    except CassetteUnreadableError as caught:
        error = caught
    assert error.line is not None
    assert 1 <= error.line <= path.read_bytes().count(b"\n") + 1
    assert error.what.endswith(f"{path.name}:{error.line}: the cassette cannot be read")
    assert error.why
    assert error.hint
    return None


def examine(path: Path) -> tuple[CassetteFile, list[Interaction]] | None:
    content = path.read_bytes()
    found = read(path)
    if found is not None:
        assert found[1] or EMPTY_LIST.search(content)
        conversation(found[0])
    findings = check_cassettes((path,), Limits())
    assert found is not None or {"UNREADABLE", "EDITED", "FOREIGN"} & {one.code for one in findings}
    assert not any("could not be checked" in one.message for one in findings)
    with suppress(RegenError):
        convert(plan_conversion(path, path.with_name("converted.yaml")))
    path.with_name("converted.yaml").unlink(missing_ok=True)
    with suppress(CassetteUnreadableError):
        serializer = jsonserializer if path.suffix == ".json" else yamlserializer
        requests, _, *_ = Persister([], rewrites=False).load_cassette(str(path), serializer)
        assert requests or EMPTY_LIST.search(content)
    assert path.read_bytes() == content
    return found


# Damage


def flipped(good: Good, at: int, to: int) -> bytes:
    return good.content[:at] + bytes([to]) + good.content[at + 1 :]


def cut(good: Good, at: int, _: int) -> bytes:
    return good.content[:at]


def twice(good: Good, at: int, to: int) -> bytes:
    lines = good.lines
    number = line_of(good, at)
    return b"".join([*lines[: number + to % 3], lines[number], *lines[number + to % 3 :]])


def without(good: Good, at: int, _: int) -> bytes:
    lines = good.lines
    del lines[line_of(good, at)]
    return b"".join(lines)


def line_of(good: Good, at: int) -> int:
    return good.content.count(b"\n", 0, at)


def spans(good: Good) -> Iterator[tuple[int, int]]:
    lines = good.content.decode().splitlines()
    starts = [n for n, line in enumerate(lines) if line.strip().startswith(("response:", '"resp'))]
    ends = [n for n, line in enumerate(lines) if line.startswith("- ")][1:]
    yield from zip(starts, [*ends, len(lines)][: len(starts)], strict=True)


def is_of_an_answer(good: Good, at: int, damage: Callable[..., bytes]) -> bool:
    number = line_of(good, at)
    tells_how = good.lines[number].startswith((b"  stream:", b"  layout:"))
    reach = 3 if damage is twice else 0
    return tells_how or any(first - reach <= number <= last for first, last in spans(good))


def plain(found: Interaction) -> Any:
    return found.status, found.reason, found.response_body, dict(found.response_headers), found.end


@cache
def answers_of(folder: Path, name: str) -> tuple[int, dict[str, list[Any]]]:
    path = folder / f"{name}{GOOD[name].suffix}"
    path.write_bytes(GOOD[name].content)
    found = read(path)
    assert found is not None
    answers: dict[str, list[Any]] = {}
    for stored, one in zip(found[0].interactions, found[1], strict=True):
        answers.setdefault(stored.key, []).append(plain(one))
    return len(found[1]), answers


def hold(
    folder: Path, name: str, damage: Callable[[Good, int, int], bytes], at: int, to: int
) -> None:
    good = GOOD[name]
    path = folder / f"c{good.suffix}"
    path.write_bytes(damage(good, at, to))

    found = examine(path)

    if found is None:
        return
    count, answers = answers_of(folder, name)
    may_differ = damage is not cut and is_of_an_answer(good, at, damage)
    for stored, one in zip(found[0].interactions, found[1], strict=True):
        assert one.key == stored.key
        if stored.key in answers and not may_differ:
            assert plain(one) in answers[stored.key]
    assert damage is not cut or len(found[1]) <= count


DAMAGES = (flipped, cut, twice, without)


@settings(max_examples=scaled(150))
@given(st.data(), st.sampled_from(sorted(GOOD)), st.sampled_from(DAMAGES), st.integers(0, 255))
def test_any_small_damage(folder: Path, data: Any, name: str, damage: Any, to: int) -> None:
    """What is left is read for what it says, or refused; no answer is given to another request."""
    at = data.draw(st.integers(0, len(GOOD[name].content) - 1))

    hold(folder, name, damage, at, to)


@pytest.mark.sweep
@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_small_damage(folder: Path, name: str, damage: Any) -> None:
    """At every byte, with the bytes that mean something to a parser."""
    for at in range(len(GOOD[name].content)):
        for to in b"\0\n #'-:{x\xff" if damage is flipped else b"\0\1\2":
            hold(folder, name, damage, at, to)
