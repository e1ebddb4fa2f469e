"""The main job, offline: a translation fails, is asked again from its recording, and passes.

Works on a copy below ``build/``, so that the example itself stays as it is. Run it as often as you
like: ``python examples/translations/demo.py``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pytest_regen import CallableProvider

HERE = Path(__file__).parent
COPY = HERE.parents[1] / "build" / "translations"
FILE = "locales/de.json"
UNIT = "tool.free"

careless = CallableProvider(lambda _messages: '"Frei bis {Datum}"')
"""A model that translates the name of a placeholder, too."""


def main() -> int:
    """Copy the example, let one translation go wrong, and heal it; return pytest's exit code."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(HERE, COPY, ignore=shutil.ignore_patterns("__pycache__", "locks", "history"))
    break_one_string(COPY)
    say(f"$ cd {os.path.relpath(COPY)}\n$ pytest")
    run_pytest(COPY, "-q", "--no-header")
    say("\n$ pytest --regen")
    return run_pytest(COPY, "--regen", "-q", "--no-header")


def break_one_string(folder: Path) -> None:
    """Let the careless model answer for one string; the command ends with 1, as it is wrong."""
    command = [sys.executable, "-m", "pytest_regen", "regenerate", FILE, "--unit", UNIT]
    options = ["--provider", "demo:careless", "--accept-any", "--yes"]
    subprocess.run([*command, *options], cwd=folder, check=False, capture_output=True)


def run_pytest(folder: Path, *options: str) -> int:
    """Run pytest in ``folder``; return its exit code."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, check=False).returncode


def say(text: str) -> None:
    """Show what a user would type."""
    print(text, flush=True)  # noqa: T201 - a demonstration prints


if __name__ == "__main__":
    raise SystemExit(main())
