"""How figures of cassettes are measured: CPU time, memory, and the processes that measure them."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from processor_time import children_seconds

__all__ = ["RIVALS", "child", "cpu", "cpu_of", "peak_memory", "start_child"]

_SCRIPT = Path(__file__).with_name("cassettes.py")
RIVALS = "REGEN_BENCH_RIVALS"
"""The variable that names folders of rivals: installed beside the package they would not be
measured alone, for plugins find each other."""

_SHOWN = 110
"""Characters of an error."""


def cpu(work: Callable[[], object], times: int) -> float:
    """Return the CPU seconds of the fastest of several runs."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def peak_memory() -> int:
    """Return the most bytes that this process has held at once."""
    # Not of ``getrusage``: that knows what the process held that started this one.
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def cpu_of(words: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> float:
    """Return the CPU seconds of a process."""
    before = children_seconds()
    subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(environment or {})},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return children_seconds() - before


def start_child(subject: str, *words: str) -> "subprocess.Popen[str]":
    """Start the script for one figure of one subject; only rivals see the folders of rivals."""
    paths = os.environ.get(RIVALS, "") if subject != "pytest-regen" else ""
    return subprocess.Popen(
        [sys.executable, str(_SCRIPT), "--one", subject, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


def child(subject: str, *words: str) -> str:
    """Return one figure, or the error for which there is none."""
    out, complaints = start_child(subject, *words).communicate()
    if out.strip():
        return out.strip().splitlines()[-1]
    # The line of the traceback that names the exception; its message may go on below.
    messages = [
        line for line in complaints.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)
    ]
    if not messages:
        return "fails: no figure"
    name, _, message = re.sub(r"\S*/tmp/[^\s:]*", "…", messages[-1]).partition(": ")
    # Parsers say where they were first, and what was wrong last.
    why = re.sub(r"^(?:.*error: )?(?:line \d+ column \d+: )?", "", message)[:_SHOWN]
    return f"fails: {name.rpartition('.')[2]}: {why}".rstrip(": ").replace("|", "/")
