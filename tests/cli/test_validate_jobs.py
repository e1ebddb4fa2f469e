"""``validate --jobs``: the same in several processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from command_line import command, process
from store_factory import MISSPELT, make_store

from pytest_regen.cli.pool import map_in_order
from pytest_regen.errors import WorkerError

KIND = """\
import os
import time

from pytest_regen import Kind, regions


class Note(Kind):
    files = "notes/*.txt"
    region = regions.WholeFile()
    system = "You write notes."

    def prompt(self, unit):
        return "Write a note."

    def check(self, unit):
        print("looking at", unit.path.name)
        if "slow" in unit.text:
            unit.path.with_name(f"{os.getpid()}.pid").touch()
            time.sleep(60)
        if "bad" in unit.text:
            yield "BAD", "it says bad"
"""

SETTINGS = """
[tool.pytest.ini_options]
regen_stores = ["generated/*"]
[tool.pytest-regen]
kinds = ["kinds_of_jobs:Note"]
"""


@pytest.fixture
def project(here: Path) -> Path:
    """A project with stores and files of units, right and wrong ones."""
    (here / "pyproject.toml").write_text(SETTINGS, "utf-8")
    (here / "kinds_of_jobs.py").write_text(KIND, "utf-8")
    (here / "notes").mkdir()
    for number in range(18):
        (here / f"notes/{number:02}.txt").write_text("bad" if number == 17 else "fine", "utf-8")
    for number in range(5):
        make_store(here / "generated" / f"GET_{number}", MISSPELT if number == 1 else None)
    return here


@pytest.mark.parametrize("options", [("--by-type",), ("--json", "--no-write")], ids=" ".join)
def test_two_processes_tell_the_same_as_one(project: Path, options: tuple[str, ...]) -> None:
    """Exit code, order, words and files are the same, what code of a kind prints among them."""
    broken = project / "generated/GET_1/ir.json"
    before = broken.read_bytes()
    two = process("validate", *options, "--jobs", 2, cwd=project)
    written = broken.read_bytes()
    broken.write_bytes(before)
    one = command("validate", *options)

    assert broken.read_bytes() == written
    assert (written == before) == ("--no-write" in options)
    assert (one.code, two.code) == (1, 1)
    assert sorted(one.told.splitlines()) == sorted(two.told.splitlines())
    ours = [line for line in one.told.splitlines() if "looking at" not in line]
    assert [line for line in two.told.splitlines() if "looking at" not in line] == ours


def test_an_error_ends_the_work_where_it_is_met(project: Path) -> None:
    """What stands before a damaged store is told, and nothing after it."""
    (project / "generated/GET_3/ir.json").write_text("{", "utf-8")

    one = command("validate", *sorted(project.glob("generated/*")))
    two = process("validate", *sorted(project.glob("generated/*")), "--jobs", 0, cwd=project)

    assert (two.code, two.err) == (one.code, one.err)
    assert one.code == 2
    assert "GET_2: 3 types" in two.told
    assert "GET_4" not in two.told


@pytest.mark.sweep
def test_beside_threads_processes_begin_anew(project: Path) -> None:
    """A copy of a process with threads may wait for ever for what one of them holds."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        two = command("validate", "--json", "--jobs", 2)
    finally:
        end.set()
        thread.join()

    assert two.json == command("validate", "--json").json
    assert two.code == 1
    assert project.exists()


def test_a_process_that_dies_is_an_error() -> None:
    """Nobody waits for it, and the message says what to do."""
    with pytest.raises(WorkerError, match="validating has died"):
        list(map_in_order(os._exit, [1, 1], 2, title="validating"))


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_all_processes(project: Path) -> None:
    """At once, with one message and no traceback."""
    for name in ("00", "17"):
        (project / f"notes/{name}.txt").write_text("slow", "utf-8")
    words = [sys.executable, "-m", "pytest_regen", "validate", "--jobs", "2"]
    running = subprocess.Popen(
        words, cwd=project, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 50
    while len(found := list(project.glob("notes/*.pid"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)

    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=20)

    assert running.returncode == 130
    assert err.startswith("error: stopped")
    assert "Traceback" not in err
    for file in found:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.stem), 0)
