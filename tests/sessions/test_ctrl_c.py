"""Ctrl-C in a real process: one is enough, whoever waits for a slow model."""

import os
import signal
import subprocess
import sys
import time
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
        case "scenario session": one.generate()
        case "generator session in an event loop": asyncio.run(plain.aask("?"))
        case "scenario session in an event loop": asyncio.run(one.agenerate())
except KeyboardInterrupt:
    session = {"g": plain, "s": one}[sys.argv[1][0]]
    stopped = [one for one in session.transcript if "not waited for" in one.failure]
    print("back", len(stopped), session.reports[0].calls, session.turn_count, flush=True)
    raise
"""


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str, float]]:
    """Return what each way of waiting printed, on both streams, and the seconds to its end."""
    script = tmp_path_factory.mktemp("script") / "talk.py"
    script.write_text(SCRIPT, "utf-8")
    ways = [
        f"{who}{where}"
        for who in ("generator session", "scenario session")
        for where in ("", " in an event loop")
    ]
    return dict(zip(ways, _interrupted(script, ways), strict=True))


def _interrupted(script: Path, ways: list[str]) -> list[tuple[str, str, float]]:
    """Run all at the same time, send each one signal once it has asked, and wait for all."""
    running = [
        subprocess.Popen(
            [sys.executable, script, way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        for way in ways
    ]
    found = []
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        since = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        found.append((out, err, time.monotonic() - since))
    return found


@pytest.mark.parametrize("where", ["", " in an event loop"], ids=["", "in an event loop"])
@pytest.mark.parametrize("who", ["generator session", "scenario session"])
def test_one_ctrl_c_gives_control_back(
    interrupted: dict[str, tuple[str, str, float]], who: str, where: str
) -> None:
    """At once; what went out is in the transcript, and the process ends."""
    out, err, seconds = interrupted[who + where]

    assert out == "back 1 1 0\n", err
    assert seconds < 10
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in err
