"""``validate --jobs``: several processes look at stores first, and what is told stays the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import command
from store_factory import MISSPELT, make_store

SETTINGS = '[tool.pytest.ini_options]\nregen_stores = ["generated/*"]\n'


@pytest.fixture
def project(here: Path) -> Path:
    """A project with stores, one of which is wrong."""
    (here / "pyproject.toml").write_text(SETTINGS, "utf-8")
    for number in range(5):
        make_store(here / "generated" / f"GET_{number}", MISSPELT if number == 1 else None)
    return here


def test_two_processes_tell_the_same_as_one(project: Path) -> None:
    """Exit code, order, words and files are the same."""
    broken = project / "generated/GET_1/ir.json"
    before = broken.read_bytes()
    one = command("validate", "--by-type")
    written = broken.read_bytes()
    broken.write_bytes(before)

    two = command("validate", "--by-type", "--jobs", 2)

    assert broken.read_bytes() == written
    assert written != before
    assert (one.code, one.told) == (two.code, two.told)
    assert one.code == 1


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_all_processes(project: Path) -> None:
    blocked = project / "generated/GET_3/ir.json"
    blocked.unlink()
    os.mkfifo(blocked)
    words = [sys.executable, "-m", "pytest_regen", "validate", "--jobs", "2"]
    running = subprocess.Popen(
        words, cwd=project, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    # A named pipe can be opened when another process reads it, here the last to be started.
    with running, blocked.open("w"):
        os.killpg(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=20)

    assert running.returncode == 130
    assert err.startswith("error: stopped")
    assert "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)
