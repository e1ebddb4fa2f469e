"""Writing: what a crash, a full disk or several processes leave behind."""

import errno
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from recorded import loaded, record
from turn_values import turn
from vcr.persisters.filesystem import FilesystemPersister
from vcr.serializers import yamlserializer

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.errors import CassetteError
from pytest_regen.turns import Reply
from pytest_regen.turns.wire import request_body

SUPPORT = str(Path(__file__).parents[1] / "support")
CHILD = f"""
import json, sys
sys.path.insert(0, {SUPPORT!r})
from pathlib import Path
from turn_values import turn
from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.turns.wire import request_body

for number in range(40):
    with use_cassette(Path(sys.argv[1]), mode="new_episodes", http_clients=False) as run:
        sent = json.dumps(request_body(turn(f"child {{number}}"))).encode()
        said = json.dumps({{"content": [], "stop_reason": "end_turn"}}).encode()
        json_type = {{"content-type": ("application/json",)}}
        run.record(Interaction("POST", "https://api.anthropic.com/v1/messages", json_type, sent,
                            200, "OK", json_type, said))
"""


def test_a_full_disk_is_told_and_keeps_the_old(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cassette is whole, the recordings stand in the partial file, the error says why."""
    record(path, [turn("one")])
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CassetteError, match="No space left"):
        record(path, [turn("two")], mode="new_episodes")

    assert path.read_bytes() == before
    left = {".gitignore", "c.yaml", "c.yaml.partial"}
    assert {p.name for p in path.parent.iterdir()} == left


def test_metadata_says_who_answered_and_by_which_versions(path: Path) -> None:
    """The day, the versions, the model, and that it was the emulator."""
    record(path, [turn("one"), turn("two", model="claude-opus-5-5")])

    file = loaded(path)
    assert file.metadata["source"] == "emulator"
    assert file.metadata["models"] == ["claude-opus-5-5", "claude-sonnet-5-5"]
    assert set(file.metadata["recorded_by"]) >= {"pytest-regen", "anthropic", "vcrpy"}


def test_each_recording_says_what_it_cost(path: Path) -> None:
    """Tokens stand beside the answer, for whoever reads the file or its diff."""
    [reply], _ = record(path, [turn("one")])

    assert isinstance(reply, Reply)
    usage = reply.usage
    tokens = f"input: {usage.input_tokens}, output: {usage.output_tokens}"
    assert f"  tokens: {{{tokens}, cache_read: 0, cache_write: 0}}\n" in path.read_text("utf-8")


def big(text: str) -> Interaction:
    json_type = {"content-type": ("application/json",)}
    sent = json.dumps({**request_body(turn(text)), "system": "word " * 1_000}).encode()
    said = json.dumps({"content": [{"type": "text", "text": "word " * 600}]}).encode()
    uri = "https://api.anthropic.com/v1/messages"
    return Interaction("POST", uri, json_type, sent, 200, "OK", json_type, said)


@pytest.mark.parametrize("drop", [False, True], ids=["appended", "rewritten"])
def test_a_later_recording_tells_its_own_day(path: Path, drop: bool) -> None:  # noqa: FBT001 - a case
    """The head keeps the day of the first, also where the file is written anew around it."""
    with use_cassette(path, mode="once") as run:
        run.record(big("one"))
        run.record(big("dropped"))
    text = path.read_text("utf-8")
    path.write_text(re.sub("recorded_at: .*", 'recorded_at: "2020-01-02"', text), "utf-8")
    before = list(getattr(read_cassette(path), "interactions", ()))

    with use_cassette(path, mode="new_episodes", drop_unplayed=drop) as run:
        assert run.take("POST", big("one").uri, big("one").request_body) is not None
        run.record(big("two"))

    lines = [line for line in path.read_text("utf-8").splitlines() if "recorded_at" in line]
    assert lines[0].strip() == 'recorded_at: "2020-01-02"'
    assert len(lines) == 2
    after = list(getattr(read_cassette(path), "interactions", ()))
    assert len(after) == (2 if drop else 3)
    assert after[0].text == before[0].text


def test_readers_never_see_half_an_append(path: Path) -> None:
    with use_cassette(path, mode="once") as run:
        run.record(big("first"))
    writer = subprocess.Popen([sys.executable, "-c", CHILD, str(path)])
    seen = []
    while writer.poll() is None:
        seen.append(len(getattr(read_cassette(path), "interactions", ())))
    assert writer.returncode == 0

    assert seen == sorted(seen)
    assert len(getattr(read_cassette(path), "interactions", ())) == 41


def of_vcrpy(path: Path, count: int = 2, *, end: str = "version: 1\n") -> str:
    one = (
        "- request:\n    body: '{\"n\": %d}'\n    headers:\n      X-Api-Key:\n      - as it is\n"
        "    method: POST\n    uri: http://a.invalid/x\n  response:\n    body:\n"
        "      string: 'one\n\n        two'\n    headers: {}\n    status:\n      code: 200\n"
        "      message: OK\n"
    )
    recordings = "".join(one % number for number in range(count))
    text = f"interactions:\n{recordings}{end}"
    path.write_text(text, "utf-8")
    return text


def asked_of(path: Path, bodies: list[bytes]) -> list[bytes]:
    requests, responses, *_ = FilesystemPersister.load_cassette(str(path), yamlserializer)
    answers = zip((request.body for request in requests), responses, strict=True)
    found = {sent: answer["body"]["string"] for sent, answer in answers}
    return [found[body] for body in bodies]


def test_what_is_added_to_a_file_of_vcrpy_stands_behind_what_is_there(path: Path) -> None:
    """In vcrpy's layout; not a byte of the rest changes, and vcrpy and we read all of it."""
    before = of_vcrpy(path)
    for sent in (b"new 1", b"\xff\x00", b"new: sk-ant-api03-" + b"xY3z" * 9):
        with use_cassette(path, mode="new_episodes", http_clients=False) as run:
            assert run.take("POST", "http://a.invalid/x", b'{"n": 1}') is not None
            run.record(exchange_of(sent))

    text = path.read_text("utf-8")
    assert text.startswith(before.removesuffix("version: 1\n"))
    assert text.endswith("version: 1\n")
    assert "xY3z" not in text
    assert asked_of(path, [b'{"n": 0}', b"new 1", b"\xff\x00"])[1:] == [b"said\n"] * 2
    with use_cassette(path, http_clients=False) as run:
        for sent in (b'{"n": 0}', b'{"n": 1}', b"new 1", b"\xff\x00"):
            assert run.take("POST", "http://a.invalid/x", sent) is not None
    assert [p.name for p in path.parent.iterdir()] == ["c.yaml"]


def exchange_of(sent: bytes, said: bytes = b"said\n") -> Interaction:
    plain = {"content-type": ("text/plain",)}
    return Interaction("POST", "http://a.invalid/x", plain, sent, 200, "OK", plain, said)


def test_what_is_added_to_a_file_of_vcrpy_is_what_is_written(path: Path) -> None:
    """To the file itself, however long it is; a stream keeps its pieces."""
    of_vcrpy(path, 300)
    size, sent = path.stat().st_size, b"new " + b"word " * 500
    stream = {"content-type": ("text/event-stream",)}
    said = b"data: {}\n\n" * 2

    with use_cassette(path, mode="new_episodes", http_clients=False) as run:
        one = replace(exchange_of(sent, said), response_headers=stream)
        run.record(replace(one, chunks=((0, 10), (7, 10)), end="closed"))

    assert path.stat().st_size - size < 2 * len(sent + said)
    with use_cassette(path, http_clients=False) as run:
        taken = run.take("POST", "http://a.invalid/x", sent)
    assert taken is not None
    assert (taken.response_body, taken.chunks, taken.end) == (said, ((0, 10), (7, 10)), "closed")


@pytest.mark.parametrize(("mark", "line_end"), [("", "\r\n"), ("\ufeff", "\r\n")])
def test_what_is_added_to_a_file_of_windows_has_its_line_ends(
    path: Path, mark: str, line_end: str
) -> None:
    """Version control turns them, and editors put a mark in front; both stay."""
    before = mark + of_vcrpy(path).replace("\n", line_end)
    path.write_text(before, "utf-8", newline="")

    with use_cassette(path, mode="new_episodes", http_clients=False) as run:
        run.record(exchange_of("ü\r\nnew: 1\n\n".encode(), b"said\r\n \n"))

    text = path.read_bytes().decode()
    version = f"version: 1{line_end}"
    assert text.startswith(before.removesuffix(version))
    assert text.endswith(version)
    assert text.count("\n") == text.count(line_end)
    with use_cassette(path, http_clients=False) as run:
        taken = run.take("POST", "http://a.invalid/x", "ü\r\nnew: 1\n\n".encode())
    assert taken is not None
    assert taken.response_body == b"said\r\n \n"
    assert len(yaml.safe_load(text)["interactions"]) == 3


@pytest.mark.parametrize("end", ["", "version: 1", "metadata:\n  a: 1\nversion: 1\n"])
def test_a_file_that_ends_otherwise_is_written_anew(path: Path, end: str) -> None:
    """Where nobody can say from its first and last line that there is room before the last."""
    of_vcrpy(path, end=end)

    with use_cassette(path, mode="new_episodes", http_clients=False) as run:
        run.record(exchange_of(b"new 1"))

    assert path.read_bytes().startswith(b"# pytest-regen cassette")
    assert asked_of(path, [b'{"n": 0}', b'{"n": 1}', b"new 1"])[1:] == [b"one\ntwo", b"said\n"]


def test_line_ends_of_windows_are_not_mixed(path: Path) -> None:
    record(path, [turn("one")])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    record(path, [turn("two")], mode="new_episodes")

    assert b"\r" not in path.read_bytes()
    assert len(getattr(read_cassette(path), "interactions", ())) == 2
