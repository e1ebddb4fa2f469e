"""Any small damage to a good cassette: read for what it says, or refused by line."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_cassettes import HEAD, foreign, recording
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import scaled
from vcr.serializers import jsonserializer, yamlserializer

from pytest_regen.cassettes.clients.vcr_files import Persister
from pytest_regen.cassettes.files.format import interaction_text
from pytest_regen.cassettes.files.reader import CassetteFile, read_cassette
from pytest_regen.cassettes.upkeep.check import Limits, check_cassettes
from pytest_regen.cassettes.upkeep.convert import convert, plan_conversion
from pytest_regen.cassettes.upkeep.show import conversation
from pytest_regen.errors import CassetteUnreadableError, RegenError

STREAM = b'data: {"type": "message_start", "message": {"content": []}}\n\n' * 2
RECORDED = (
    recording(),
    recording(
        request_body=b'{"model": "m", "stream": true}',
        response_body=STREAM,
        response_headers={"content-type": ("text/event-stream",)},
        end="cut",
        chunks=((0, 10), (7, len(STREAM) - 10)),
    ),
    recording(request_body=b"plain text", response_body=b"\xff\x00binary", status=529, reason=""),
)
EMPTY_LIST = re.compile(rb"interactions\"?\s*:\s*\[\s*\]")
GOOD = {
    ".yaml": (HEAD + "".join(map(interaction_text, RECORDED))).encode(),
    ".yml": yaml.safe_dump(foreign(b"\x1f\x8b no gzip")).encode(),
    ".json": json.dumps(foreign(), indent=1).encode(),
}
"""Ours, and what vcrpy writes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


def read(path: Path) -> CassetteFile | None:
    try:
        file = read_cassette(path)
        assert file is not None
        assert all(stored.key == stored.interaction.key for stored in file.interactions)
    except CassetteUnreadableError as caught:
        error = caught
    else:
        return file
    assert error.line is not None
    assert 1 <= error.line <= path.read_bytes().count(b"\n") + 1
    assert error.what.endswith(f"{path.name}:{error.line}: the cassette cannot be read")
    assert error.why
    assert error.hint
    return None


def flipped(good: bytes, at: int, to: int) -> bytes:
    return good[:at] + bytes([to]) + good[at + 1 :]


def cut(good: bytes, at: int, _: int) -> bytes:
    return good[:at]


def twice(good: bytes, at: int, to: int) -> bytes:
    lines, number = good.splitlines(keepends=True), good.count(b"\n", 0, at)
    return b"".join([*lines[: number + to % 3], lines[number], *lines[number + to % 3 :]])


def without(good: bytes, at: int, _: int) -> bytes:
    lines = good.splitlines(keepends=True)
    del lines[good.count(b"\n", 0, at)]
    return b"".join(lines)


@settings(max_examples=scaled(150))
@given(
    data=st.data(),
    suffix=st.sampled_from(sorted(GOOD)),
    damage=st.sampled_from([flipped, cut, twice, without]),
    to=st.integers(0, 255),
)
def test_any_small_damage(
    folder: Path, data: Any, suffix: str, damage: Callable[[bytes, int, int], bytes], to: int
) -> None:
    """What is left is read for what it says, or refused by line, at every door."""
    good, path = GOOD[suffix], folder / f"c{suffix}"
    content = damage(good, data.draw(st.integers(0, len(good) - 1)), to)
    path.write_bytes(content)

    file = read(path)

    if file is not None:
        assert file.interactions or EMPTY_LIST.search(content)
        conversation(file)
    findings = check_cassettes((path,), Limits())
    assert file is not None or {"UNREADABLE", "EDITED", "FOREIGN"} & {one.code for one in findings}
    assert not any("could not be checked" in one.message for one in findings)
    with suppress(RegenError):
        convert(plan_conversion(path, folder / "converted.yaml"))
    (folder / "converted.yaml").unlink(missing_ok=True)
    with suppress(CassetteUnreadableError):
        serializer = jsonserializer if suffix == ".json" else yamlserializer
        requests, _, *_ = Persister([], rewrites=False).load_cassette(str(path), serializer)
        assert requests or EMPTY_LIST.search(content)
    assert path.read_bytes() == content
