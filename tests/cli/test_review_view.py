"""``review`` at a terminal: a candidate after the other, keys, other widths, and Ctrl-C."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from command_line import at_terminal, command
from review_work import FILE, TRANSLATOR, WRONG, german, write_project
from unit_work import GERMAN, write_json

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which candidates wait for two strings."""
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path, monkeypatch)
    command("regenerate", FILE, "--from-errors", "--pending", *TRANSLATOR)
    return tmp_path


def without_size() -> dict[str, str]:
    """Return the environment without what would hide the size of the terminal."""
    return {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}


class Terminal:
    """A review under way at a terminal of its own."""

    def __init__(self, root: Path, columns: int) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(columns)
        path = os.pathsep.join((str(SUPPORT), os.environ.get("PYTHONPATH", "")))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest_regen", "review"],
            cwd=root,
            env={**without_size(), "PYTHONPATH": path, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        self.theirs = theirs
        self._seen = ""

    def resize(self, columns: int) -> None:
        """Let the terminal be that wide."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str) -> list[str]:
        """Return the lines that are shown until a text is; what was waited for before is gone."""
        end = time.monotonic() + 30
        while text not in self._seen and time.monotonic() < end:
            if select.select([self._ours], [], [], 0.1)[0]:
                shown = os.read(self._ours, 65536).decode().replace("\r\n", "\n")
                self._seen += COLOUR.sub("", shown)
        assert text in self._seen
        found, _, self._seen = self._seen.partition(text)
        return found.splitlines()


def test_a_review_at_eighty_columns(here: Path) -> None:
    """Accepted with a key, shown again at another width; Ctrl-C keeps what was decided."""
    terminal = Terminal(here, 80)
    before = termios.tcgetattr(terminal.theirs)
    first = terminal.wait_for(" q  quit")
    assert any("1 of 2  locales/de.json::berth" in line for line in first)
    assert '+  "berth": "Liegeplatz {number}",' in first
    assert any(line.split(maxsplit=2)[:2] == ["was", "wrong"] for line in first)
    assert max(map(len, first)) <= 80

    terminal.press("xa")
    terminal.wait_for("accepted    locales/de.json::berth")
    terminal.wait_for(" q  quit")
    terminal.resize(50)
    again = terminal.wait_for(" q  quit")
    assert any("2 of 2" in line for line in again)
    assert max(map(len, again)) <= 50
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.process.wait(30) == 130
    assert termios.tcgetattr(terminal.theirs) == before
    assert german(here) == {**GERMAN, "leave": WRONG["leave"]}
    assert command("review", "--check").code == 1


@pytest.mark.sweep
def test_what_no_longer_fits_cannot_be_accepted_by_a_key(here: Path) -> None:
    """The reason stands there; ``R`` rejects it and the rest."""
    write_json(here / FILE, {**WRONG, "berth": "Platz {number}"})

    seen = at_terminal("review", cwd=here, typed="aAR")

    assert seen.code == 0
    shown = COLOUR.sub("", seen.err)
    assert "it was edited by hand" in shown
    assert " a  accept" not in shown
    assert "0 accepted, 2 rejected, 0 left" in shown
    assert german(here)["leave"] == WRONG["leave"]
