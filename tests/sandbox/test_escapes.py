"""What code gets out of the sandbox at each level: the table of docs/sandbox.md, tried."""

import contextlib
import os
import secrets
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hostile_modules import ESCAPES
from pages import ROOT

from pytest_regen.sandbox import Job, Limits, Module, ask
from pytest_regen.sandbox.levels import Level

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes of Linux")

HANDLER = "def answer(module, question):\n    return module.f(question)\n"


@dataclass
class World:
    """What there is to reach outside of the sandbox, and what shows that it was reached."""

    outside: Path
    project: Path
    mark: str = field(default_factory=lambda: f"regen-escape-{secrets.token_hex(8)}")
    signals: int = 0
    pipes: dict[str, socket.socket] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """Return what an attack is told, more than it could find out."""
        return {
            "outside": str(self.outside),
            "project": str(self.project),
            "pid": os.getpid(),
            "command": Path("/proc/self/cmdline").read_text("utf-8"),
            "port": self.pipes["port"].getsockname()[1],
            "abstract": self.mark,
            "mark": self.mark,
        }

    def left_processes(self) -> list[int]:
        """Return the processes that carry the mark."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
        return found

    def was_reached(self, name: str, answer: object) -> bool:
        """Return whether an attack got out, by its answer or by what it left."""
        match name:
            case "writes a file elsewhere":
                return (self.outside / "written").exists()
            case "changes a file of the project":
                return (self.project / "acme.py").read_text("utf-8") != "here = 1\n"
            case "sends a signal to pytest":
                return self.signals > 0
            case "leaves a process behind":
                return bool(self.left_processes())
            case "leaves shared memory behind":
                return Path("/dev/shm", self.mark).exists()
            case _:
                return bool(answer)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A user's machine, with secrets, a project and services."""
    world = World(tmp_path / "outside", tmp_path / "project")
    world.outside.mkdir()
    world.project.mkdir()
    (world.outside / "secret").write_text("secret", "utf-8")
    (world.project / ".env").write_text("KEY=secret", "utf-8")
    (world.project / "acme.py").write_text("here = 1\n", "utf-8")
    (world.project / "hidden.py").write_text("expected = 4", "utf-8")
    world.pipes = {
        "port": socket.create_server(("127.0.0.1", 0)),
        "file": socket.socket(socket.AF_UNIX),
        "abstract": socket.socket(socket.AF_UNIX),
    }
    with contextlib.chdir(world.outside):  # names of sockets are short
        world.pipes["file"].bind("socket")
    world.pipes["abstract"].bind("\0" + world.mark)
    world.pipes["file"].listen()
    world.pipes["abstract"].listen()

    def count(*_: object) -> None:
        world.signals += 1

    before = signal.signal(signal.SIGURG, count)
    with (world.outside / "secret").open("rb"):
        yield world
    signal.signal(signal.SIGURG, before)
    for number in world.left_processes():
        os.kill(number, signal.SIGKILL)
    Path("/dev/shm", world.mark).unlink(missing_ok=True)
    for pipe in world.pipes.values():
        pipe.close()


def table() -> dict[str, dict[str, bool]]:
    """Return what the page says: which attack gets out at which level."""
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in (ROOT / "docs/sandbox.md").read_text("utf-8").splitlines()
        if line.startswith("| ") and line.count("|") == 5
    ]
    head = [cell.strip("`") for cell in rows[0][1:]]
    return {
        row[0]: {level: cell == "gets out" for level, cell in zip(head, row[1:], strict=True)}
        for row in rows[1:]
    }


def test_what_gets_out_is_what_the_page_says(level: Level, world: World) -> None:
    """Nothing gets out of ``bwrap``; what does at the other levels is listed, and nothing more."""
    results = ask(
        [Job(Module("attack", source), (world.told(),)) for source in ESCAPES.values()],
        handler=HANDLER,
        import_path=[world.project],
        hidden=[world.project / "hidden.py"],
        limits=Limits(seconds=5),
    )

    answers = {
        name: result.answers[0].value if result.answers[0] else None
        for name, result in zip(ESCAPES, results, strict=True)
    }
    got_out = {name for name, answer in answers.items() if world.was_reached(name, answer)}
    assert got_out == {name for name, cells in table().items() if cells[level]}
    assert level != "bwrap" or not got_out
    assert [*table()] == [*ESCAPES]
