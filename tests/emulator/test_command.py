"""``pytest-regen emulator``: started and stopped as a user does."""

import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import suppress

import pytest

from pytest_regen.emulator import Emulator, serve
from pytest_regen.errors import UsageError

COMMAND = [sys.executable, "-m", "pytest_regen", "emulator"]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent otherwise there")
def test_it_is_stopped_with_ctrl_c_and_nothing_is_wrong() -> None:
    with subprocess.Popen(
        [*COMMAND, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        while "base_url" not in running.stdout.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)

    assert running.returncode == 0
    assert "error" not in said
    assert "stopped" not in said


def test_ctrl_c_while_the_address_is_told_stops_it_too() -> None:
    """Programs read the first line and may interrupt at once, before the rest is said."""

    def told(_base_url: str) -> None:
        raise KeyboardInterrupt

    try:
        serve(ready=told)
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C came out of serve()")


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*COMMAND, "--port", str(port)], check=False, capture_output=True, text=True, timeout=60
        )
        with pytest.raises(UsageError, match=f"cannot listen on port {port} of 127"):
            Emulator(lambda _body: "x", port=port).start()

    assert done.returncode == 2
    assert f"cannot listen on port {port} of 127.0.0.1" in done.stderr
    assert "choose another --port" in done.stderr


def test_each_request_is_a_line() -> None:
    """Whoever watches sees that his program asked, and what it got."""
    lines: list[str] = []
    stop = threading.Event()

    def ask(base_url: str) -> None:
        for path in ("/v1/models", "/nothing"):
            with suppress(urllib.error.HTTPError):
                headers = {"x-api-key": "any", "anthropic-version": "2023-06-01"}
                request = urllib.request.Request(base_url + path, headers=headers)
                urllib.request.urlopen(request, timeout=30).close()
        stop.set()

    serve(ready=ask, answered=lines.append, until=stop)

    assert lines == ["GET /v1/models 200", "GET /nothing 404"]
