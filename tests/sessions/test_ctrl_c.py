"""Ctrl-C in a real process: one is enough, whoever waits for a slow model."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import asyncio, signal, sys, time

signal.signal(signal.SIGINT, signal.default_int_handler)

from pydantic import BaseModel
from pytest_regen import CallableProvider
from pytest_regen.sessions import GeneratorSession, ScenarioGeneratorSession, ToolAnnotation

calls = 0

def slow(messages):
    global calls
    calls += 1
    print("asked", flush=True)
    time.sleep(30)

class Answer(BaseModel):
    n: int

tools = [ToolAnnotation(server_name="s", tool_name=f"t{n}") for n in range(6)]
provider = CallableProvider(slow)
one = ScenarioGeneratorSession("x", tools, provider=provider)
plain = GeneratorSession("x", Answer, provider=provider)
try:
    match sys.argv[1]:
        case "generator session": plain.ask("?")
        case "scenario session in an event loop": asyncio.run(one.agenerate())
except KeyboardInterrupt:
    session = {"g": plain, "s": one}[sys.argv[1][0]]
    stopped = [one for one in session.transcript if "not waited for" in one.failure]
    print("back", len(stopped), session.reports[0].calls, session.turn_count, flush=True)
    raise
"""


@pytest.mark.parametrize("way", ["generator session", "scenario session in an event loop"])
def test_one_ctrl_c_gives_control_back(tmp_path: Path, way: str) -> None:
    """At once; what went out is in the transcript, and the process ends."""
    script = tmp_path / "talk.py"
    script.write_text(SCRIPT, "utf-8")
    with subprocess.Popen(
        [sys.executable, script, way],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            raise

    assert out == "back 1 1 0\n", err
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in err
