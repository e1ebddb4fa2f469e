"""``pytest-regen emulator``: started and stopped as a user does."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import anthropic
import pytest
from emulator_requests import body

from pytest_regen.emulator import Emulator, serve
from pytest_regen.errors import UsageError


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent otherwise there")
def test_it_is_stopped_with_ctrl_c_and_nothing_is_wrong() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pytest_regen", "emulator", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        while "base_url" not in running.stdout.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)

    assert running.returncode == 0
    assert "error" not in said
    assert "stopped" not in said


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on port {port} of 127") as caught:
            Emulator(lambda _body: "x", port=port).start()

    assert "choose another --port" in caught.value.hint


def test_each_request_is_a_line_and_what_was_not_checked_another(tmp_path: Path) -> None:
    """Whoever watches sees that his program asked, and what it got; the script answers."""
    lines: list[str] = []
    script = tmp_path / "replies.yaml"
    script.write_text("version: 1\nrules: [{replies: [Served.]}]", "utf-8")

    def ask(base_url: str) -> None:
        with anthropic.Anthropic(api_key="k", base_url=base_url, max_retries=0) as client:
            reply = client.messages.create(**body(), extra_body={"colour": "red"})
            assert reply.content[-1].text == "Served."
            with pytest.raises(anthropic.NotFoundError):
                client.models.retrieve("none")
        raise KeyboardInterrupt

    serve(0, script, ready=ask, answered=lines.append)

    assert lines == [
        "POST /v1/messages 200",
        "warning: not checked: colour: the SDK has no field of this name",
        "GET /v1/models/none 404",
    ]
