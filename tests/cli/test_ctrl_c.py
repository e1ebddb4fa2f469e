"""Ctrl-C at the moments when no command runs: while the program starts, and while it ends."""

import os
import sys
from pathlib import Path

import pytest
from command_line import process

_PRESS = """\
import os, signal

def press(kill=os.kill, me=os.getpid(), key=signal.SIGINT):
    kill(me, key)

"""


def run_with(folder: Path, name: str, code: str) -> tuple[int, str]:
    """Run a command with a module of this name in front of all others; return how it ended."""
    folder.joinpath(f"{name}.py").write_text(_PRESS + code, "utf-8")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = process("--version", anew=True, cwd=folder, env={**os.environ, "PYTHONPATH": path})
    return ran.code, ran.err


def test_ctrl_c_while_the_program_is_loaded(tmp_path: Path) -> None:
    """It takes a while until there is a command; Ctrl-C ends that with its exit code, too."""
    code, err = run_with(tmp_path, "typer", "press()\n")

    assert code == 130
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="the process is sent a signal")
def test_ctrl_c_while_the_program_ends(tmp_path: Path) -> None:
    """Pressed when threads and connections are waited for: no traceback, no death by a signal."""
    code = "import threading\nthreading._register_atexit(press)\n"

    assert run_with(tmp_path, "sitecustomize", code) == (130, "")
