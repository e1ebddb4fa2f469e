"""Clients that vcrpy patches: what it hands on as a body is compared and kept as what was sent."""

import io
import subprocess
import sys
import textwrap
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import vcr.patch
from loopback import Answer, Asked, serving
from recorded import loaded
from vcr.request import Request
from vcr.stubs import VCRHTTPSConnection

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.clients.vcr_patches import _builder
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.cassettes.interactions import body_bytes
from pytest_regen.errors import CassetteMissError

URL = "https://api.example/v1/messages"
ANSWER = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": b"{}"}}


def send(body: Any) -> bool:
    target = _builder()._cassette
    request = Request("POST", URL, body, {})
    is_recorded = bool(target.can_play_response_for(request))
    if is_recorded:
        target.play_response(request)
    else:
        target.append(request, ANSWER)
    return is_recorded


def fetched(client: str, url: str) -> bytes:
    if client == "urllib":
        with urllib.request.urlopen(url) as response:
            return bytes(response.read())
    module = pytest.importorskip(client)
    return bytes(module.get(url).content)


@pytest.mark.parametrize("client", ["urllib", "requests"])
def test_threads_are_all_recorded(tmp_path: Path, client: str) -> None:
    """The patches of vcrpy serve all threads, also while one makes a connection or sends."""
    path, count = tmp_path / "c.yaml", 24

    def ask(number: int) -> bytes:
        return fetched(client, f"{address}/{number}")

    with serving({"/*": lambda asked: Answer(asked.target.encode())}) as address:
        for mode in ("once", "none"):
            with use_cassette(path, mode=mode) as run, ThreadPoolExecutor(8) as pool:
                found = list(pool.map(ask, range(count)))
            assert found == [f"/{number}".encode() for number in range(count)]
            assert (run.recorded, run.played) == ((count, 0) if mode == "once" else (0, count))


def test_threads_are_all_recorded_by_a_test_marked_vcr(tmp_path: Path) -> None:
    """Also with a cassette inside another one, which leaves vcrpy as it was."""
    path, count = tmp_path / "c.yaml", 24
    before = vcr.patch.force_reset, VCRHTTPSConnection._baseclass
    options = VcrOptions("c.yaml", tmp_path, "once", {}, (), lambda _: None)
    with serving({"/*": lambda asked: Answer(asked.target.encode())}) as address:
        with use_vcr_cassette(options), use_cassette(tmp_path / "inner.yaml", mode="once"):
            fetched("urllib", f"{address}/inner")
        with use_vcr_cassette(options), ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: fetched("urllib", f"{address}/{number}"), range(count)))

    file = loaded(path)
    assert len({one.key for one in file.interactions}) == count
    assert (vcr.patch.force_reset, VCRHTTPSConnection._baseclass) == before


def test_threads_with_a_block_each_lose_nothing(tmp_path: Path) -> None:
    """The last to begin one serves all of them, and may end before their answers come."""
    path, count = tmp_path / "c.yaml", 6
    began, sent = threading.Barrier(count + 1), threading.Barrier(count + 1)
    may_send, may_answer = threading.Event(), threading.Event()

    def ask(number: int) -> None:
        with use_cassette(path, mode="once"):
            began.wait(10)
            may_send.wait(10)
            fetched("urllib", f"{address}/{number}")

    def answer(asked: Asked) -> Answer:
        sent.wait(10)
        may_answer.wait(10)
        return Answer(asked.target.encode())

    with serving({"/*": answer}) as address, ThreadPoolExecutor(count) as pool:
        asking = [pool.submit(ask, number) for number in range(count)]
        began.wait(10)
        with use_cassette(path, mode="once"):
            may_send.set()
            sent.wait(10)
        may_answer.set()
        for one in asking:
            one.result(10)

    file = loaded(path)
    assert len({one.key for one in file.interactions}) == count


@pytest.mark.parametrize(
    ("body", "other", "kept"),
    [
        ({"model": "m", "n": 1}, {"model": "m", "n": 2}, b'{"model": "m", "n": 1}'),
        ([("a", "1")], [("a", "2")], b'[["a", "1"]]'),
        ([b"pie", b"ces"], [b"pie"], b"pieces"),
        ((part for part in (b"pie", "ces")), [b"pie"], b"pieces"),
        (io.BytesIO(b"file"), io.BytesIO(b"other"), b"file"),
        (None, b"something", b""),
    ],
)
def test_a_body_is_compared_by_what_is_in_it(
    tmp_path: Path, body: Any, other: Any, kept: bytes
) -> None:
    """Aiohttp hands on the objects behind ``json=`` and ``data=``, others files and pieces."""
    path = tmp_path / "c.yaml"
    with use_cassette(path, mode="once"):
        assert not send(body)

    file = loaded(path)
    assert body_bytes(kept) == kept
    sent = file.interactions[0].interaction.request_body
    assert b"".join(sent.split()) == b"".join(kept.split())
    with pytest.raises(CassetteMissError), use_cassette(path):
        send(other)
    with use_cassette(path):
        assert send(kept)


FORKED = """
    import multiprocessing, sys, urllib.request
    from pytest_regen.cassettes import use_cassette

    def ask(_):
        urllib.request.urlopen("http://127.0.0.1:9/nothing-listens")

    if __name__ == "__main__":
        with use_cassette(sys.argv[1], mode="once"):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                pool.map(ask, [1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="fork")
def test_a_forked_worker_is_told(tmp_path: Path) -> None:
    """Its pool gets an error it can hand on: neither waits for ever nor loses a recording."""
    program = tmp_path / "forked.py"
    program.write_text(textwrap.dedent(FORKED), "utf-8")

    done = subprocess.run(
        [sys.executable, program, tmp_path / "c.yaml"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.returncode == 1
    assert "was opened by another process" in done.stderr.splitlines()[-3], done.stderr
    assert not (tmp_path / "c.yaml").exists()
