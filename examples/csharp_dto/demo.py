"""The main job, offline: a type fails, is regenerated from its recording, and passes.

Works on a copy below ``build/``, so that the example itself stays as it is. Run it as often as you
like: ``python examples/csharp_dto/demo.py``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pytest_regen import CallableProvider, RegenStore, partial_regenerate

HERE = Path(__file__).parent
COPY = HERE.parents[1] / "build" / "demo"
STORE = "generated/GET_v1_port-calls_callId-b21766ff"
TYPE = "Berth"


def main() -> int:
    """Copy the example, let one type go wrong, and heal it; return pytest's exit code."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(HERE, COPY, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    break_one_type(COPY / STORE)
    say(f"$ cd {os.path.relpath(COPY)}\n$ pytest")
    run_pytest(COPY, "-q", "--no-header")
    say("\n$ pytest --regen")
    return run_pytest(COPY, "--regen", "-q", "--no-header")


def break_one_type(store: Path) -> None:
    """Let a careless model write one type again: it misspells a JSON name and forgets a field."""
    good = RegenStore.open(store).pages_of(TYPE)[0].output
    lines = good.replace('"depthAtChartDatum"', '"depthAtChartDatun"').split("\n")
    start = next(i for i, line in enumerate(lines) if '"bollards"' in line)
    end = lines.index("", start) if "" in lines[start:] else len(lines) - 1
    careless = "\n".join(lines[:start] + lines[end + 1 :])
    partial_regenerate(
        store, [TYPE], provider=CallableProvider(lambda _messages: careless), accept_any=True
    )


def run_pytest(folder: Path, *options: str) -> int:
    """Run pytest in ``folder``; return its exit code."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, check=False).returncode


def say(text: str) -> None:
    """Show what a user would type."""
    print(text, flush=True)  # noqa: T201 - a demonstration prints


if __name__ == "__main__":
    raise SystemExit(main())
