"""Runs a Python program, and notes what became of each cassette that it used.

    python played_recordings.py NOTES -m MODULE ARGUMENTS…
    python played_recordings.py NOTES SCRIPT ARGUMENTS…

``NOTES`` gets one line of JSON for each time a cassette was used.
"""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

from pytest_regen.cassettes.run import CassetteRun


def noting(notes: Path) -> None:
    """Let every cassette that ends be noted, while it does what it would do anyway."""
    finish = CassetteRun.finish

    def noted(self: CassetteRun, **options: Any) -> None:
        said = {
            "path": str(self.path.resolve()),
            "played": self.played,
            "unplayed": self.unplayed,
            "recorded": self.recorded,
            "drift": self._player.matching.drift,
        }
        with notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")
        finish(self, **options)

    CassetteRun.finish = noted  # type: ignore[method-assign]  # it is called by the noted one


def main(notes: str, *words: str) -> None:
    """Run the program in this process, as Python would."""
    noting(Path(notes))
    is_module = words[0] == "-m"
    name, *arguments = words[1:] if is_module else words
    sys.argv = [name, *arguments]
    # As for a program that is started: its folder, or the working folder, comes first.
    sys.path[0] = "" if is_module else str(Path(name).resolve().parent)
    if is_module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(name, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
