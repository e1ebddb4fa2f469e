"""What is written, and where no file can be or none that may be read or written."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from cassette_work import ask
from killing import run_alone
from recorded import loaded, record
from turn_values import turn
from vcr.persisters.filesystem import FilesystemPersister
from vcr.serializers import yamlserializer

from pytest_regen.cassettes import RecordMode, use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.turns import Reply


@pytest.mark.skipif(os.name == "nt", reason="pipes")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
@pytest.mark.parametrize("mode", ["none", "new_episodes", "rewrite"])
def test_what_is_no_file_is_told(
    tmp_path: Path, make: Callable[[Path], None], mode: RecordMode
) -> None:
    """It is not read, which might never end, nor taken for a missing cassette."""
    make(tmp_path / "c.yaml")
    before = sorted(tmp_path.rglob("*"))

    said = ask(tmp_path / "c.yaml", "x", mode=mode)

    assert f"c.yaml: the cassette cannot be {'written' if mode == 'rewrite' else 'read'}" in said
    assert "sent" not in said
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "says"), [("x" * 300 + ".yaml", "too long"), ("file/c.yaml", "irectory")]
)
@pytest.mark.parametrize("mode", ["once", "rewrite"])
def test_a_name_that_cannot_be_is_told(
    tmp_path: Path, name: str, says: str, mode: RecordMode
) -> None:
    """With what to do about it; nothing is left of the attempt."""
    (tmp_path / "file").write_bytes(b"")

    said = ask(tmp_path / name, "x", mode=mode)

    assert says in said
    assert "next: " in said
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_cassette_behind_a_link_is_written_where_it_is(tmp_path: Path) -> None:
    """The link stays one, and others who share the file see what was recorded."""
    (tmp_path / "shared").mkdir()
    target, link = tmp_path / "shared/c.yaml", tmp_path / "c.yaml"
    ask(target, "one", mode="once")
    link.symlink_to("shared/c.yaml")

    for mode, text in (("new_episodes", "two"), ("all", "three"), ("rewrite", "four")):
        assert ask(link, text, mode=mode) == "recorded"  # type: ignore[arg-type]  # modes
        assert link.is_symlink()
        assert ask(target, text) == "played"


# What may not be written, or not whole


@pytest.fixture
def home() -> Iterator[Path]:
    space = Path(tempfile.mkdtemp())
    space.chmod(0o777)
    home = space / "cassettes"
    home.mkdir()
    ask(home / "c.yaml", "old", mode="once")
    yield home
    home.chmod(0o700)
    shutil.rmtree(space)


@pytest.mark.skipif(os.name == "nt", reason="users")
def test_a_folder_that_may_not_be_written_is_told_before_anything_is_sent(home: Path) -> None:
    """An answer that cannot be kept is not paid for."""
    before = (home / "c.yaml").read_bytes()
    home.chmod(0o555)

    said = run_alone("cassette_work:record_as_nobody", home)

    assert said.startswith(str(home / "c.yaml"))
    assert "Permission denied" in said
    assert "next: make the folder writable" in said
    assert [file.name for file in home.iterdir()] == ["c.yaml"]
    assert (home / "c.yaml").read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="limits")
def test_a_file_that_may_not_grow_keeps_the_old(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording is cut off in the partial file; the cassette is as it was."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    before = (home / "c.yaml").read_bytes()

    said = run_alone("cassette_work:record_with_little_room", home)

    assert "c.yaml: the cassette cannot be written" in said
    assert "File too large" in said
    assert (home / "c.yaml").read_bytes() == before
    assert ask(home / "c.yaml", "old") == "played"
    assert ask(home / "c.yaml", "next", mode="new_episodes") == "recorded"


def test_metadata_says_who_answered_by_which_versions_and_what_it_cost(path: Path) -> None:
    """The models, and that it was the emulator; tokens stand beside each answer."""
    [reply, _], _ = record(path, [turn("one"), turn("two", model="claude-opus-5-5")])

    file = loaded(path)
    assert file.metadata["source"] == "emulator"
    assert file.metadata["models"] == ["claude-opus-5-5", "claude-sonnet-5-5"]
    assert set(file.metadata["recorded_by"]) >= {"pytest-regen", "anthropic", "vcrpy"}
    assert isinstance(reply, Reply)
    usage = reply.usage
    tokens = f"input: {usage.input_tokens}, output: {usage.output_tokens}"
    assert f"  tokens: {{{tokens}, cache_read: 0, cache_write: 0}}\n" in path.read_text("utf-8")


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


def test_what_is_added_to_a_file_of_windows_has_its_line_ends(path: Path) -> None:
    """Version control turns them, and editors put a mark in front; both stay."""
    before = "\ufeff" + of_vcrpy(path).replace("\n", "\r\n")
    path.write_text(before, "utf-8", newline="")

    with use_cassette(path, mode="new_episodes", http_clients=False) as run:
        run.record(exchange_of("ü\r\nnew: 1\n\n".encode(), b"said\r\n \n"))

    text = path.read_bytes().decode()
    assert text.startswith(before.removesuffix("version: 1\r\n"))
    assert text.endswith("version: 1\r\n")
    assert text.count("\n") == text.count("\r\n")
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
