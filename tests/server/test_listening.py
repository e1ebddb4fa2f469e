"""The command's own server under many connections that ask for nothing: it answers the others."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from serving_http import served
from subject_flow import MESSAGE, Model, app_of

from pytest_regen.server import ServerSettings
from pytest_regen.server.__main__ import KEY_VARIABLE

resource = pytest.importorskip("resource")

SUPPORT = Path(__file__).parents[1] / "support"
PATH = "/api/agents/generate-subject"
HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def connected(address: str) -> socket.socket:
    """Open a connection."""
    host, _, port = address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def ended(connection: socket.socket) -> float:
    """Return after how many seconds the other side ends a connection."""
    began = time.monotonic()
    try:
        while connection.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


def sent_slowly(connection: socket.socket, content: bytes) -> int:
    """Send a byte every 10 ms; return how many the other side waited for."""
    for number, byte in enumerate(content):
        try:
            connection.sendall(bytes([byte]))
        except OSError:
            return number
        time.sleep(0.01)
    return len(content)


@contextmanager
def small_server(log: Path, *arguments: str) -> Iterator[str]:
    """Run the command in a process that may open 256 descriptors; yields its address."""
    command = [sys.executable, "-m", "pytest_regen.server", "--port", "0", *arguments]
    command += ["--provider", "served_model:reply"]
    key = "of a server that runs for one test"
    environment = {**os.environ, KEY_VARIABLE: key, "PYTHONPATH": str(SUPPORT)}
    limit = "import resource,os,sys;resource.setrlimit(resource.RLIMIT_NOFILE,(256,256));"
    starter = [sys.executable, "-c", f"{limit}os.execv(sys.argv[1],sys.argv[1:])", *command]
    with (
        log.open("wb") as out,
        subprocess.Popen(starter, env=environment, stderr=out, stdout=out) as process,
    ):
        try:
            found = None
            while found is None and process.poll() is None:
                time.sleep(0.02)
                found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text("utf-8"))
            assert found
            yield found[0]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=20)


def test_more_stalled_heads_than_descriptors_keep_nobody_out(tmp_path: Path) -> None:
    """Three hundred connections that send half a head: others are served, the log stays short."""
    log = tmp_path / "log"
    with small_server(log) as address, ExitStack() as stalled:
        for _ in range(300):
            stalled.enter_context(connected(address)).sendall(HEAD)
            time.sleep(0.002)  # or the system's queue is full, and the next one waits a second
        began = time.monotonic()
        answers = [
            httpx2.post(f"{address}{PATH}", json={"message": "too loud"}).status_code
            for _ in range(5)
        ]
        seconds = time.monotonic() - began

    assert answers == [200] * 5
    assert seconds < 5
    assert log.stat().st_size < 3_000


def test_a_head_that_does_not_arrive_in_time_ends_its_connection() -> None:
    """Nothing at all, one byte after another, half of a second request: 0.3 seconds are given."""
    settings = ServerSettings(head_seconds=0.3, first_turns=(), second_turns=())
    with served(app_of(Model(), settings=settings), settings=settings) as address:
        with connected(address) as silent:
            assert 0.2 < ended(silent) < 2
        with connected(address) as slow:
            assert sent_slowly(slow, HEAD * 100) < 100
        with connected(address) as again:
            again.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + HEAD)
            assert 0.2 < ended(again) < 2


def test_a_turn_may_take_longer_than_a_head() -> None:
    """The time for heads says nothing about bodies, answers, or the next request."""
    settings = ServerSettings(head_seconds=0.1, first_turns=(), second_turns=())
    model = Model()

    def slow(messages: list[dict[str, str]]) -> str:
        time.sleep(0.3)
        return model(messages)

    with (
        served(app_of(slow, settings=settings), settings=settings) as address,
        httpx2.Client(base_url=address) as client,
    ):
        answers = [client.post(PATH, json={"message": MESSAGE}).status_code for _ in range(2)]

    assert answers == [200, 200]


def test_the_log_has_no_word_that_somebody_wrote(tmp_path: Path) -> None:
    """Neither of a search nor of a description: the address, the path, the status."""
    log = tmp_path / "log"
    with small_server(log) as address:
        httpx2.get(f"{address}/api/location/search", params={"q": "Secretville"})
        httpx2.post(f"{address}/api/location/search", data={"q": "Secretville"})
        httpx2.post(f"{address}{PATH}", json={"message": "Secretville is too loud"})

    logged = log.read_text("utf-8")
    assert logged.count("/api/location/search HTTP/1.1") == 2
    assert "ecretville" not in logged
