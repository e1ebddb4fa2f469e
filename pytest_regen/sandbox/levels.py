"""How far a child process is kept apart, and the command line that does it.

Three levels: ``bwrap`` (bubblewrap: files are read-only, nothing but what the child needs can be
seen, no network, no other process), ``namespace`` (``unshare``: no network, no other process) and
``process`` (limits only). A level counts as working only after a child has tried it here.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from pytest_regen.errors import SandboxError, UsageError
from pytest_regen.modes import SandboxLevel
from pytest_regen.sandbox.mounts import Mounts, bwrap_options, plain_path, printed
from pytest_regen.strict_json import json_or_none

Level = SandboxLevel

LEVELS: Final[Mapping[Level, str]] = {
    "bwrap": "files read-only and only those it needs, no network, no other processes",
    "namespace": "no network, no other processes, but your files; no security boundary",
    "process": "limits only; no security boundary",
}
"""What each level means, strongest first."""

VARIABLE: Final = "REGEN_SANDBOX"
"""The environment variable that asks for one level."""

_UNSHARE: Final = (
    *("--user", "--map-current-user", "--net", "--ipc", "--uts", "--mount"),
    *("--pid", "--fork", "--kill-child", "--mount-proc"),
)


def missing() -> str | None:
    """Return why nothing can be run here, or ``None``."""
    if os.name != "posix":
        return f"code that a model wrote is not run on {sys.platform}: nothing limits it there"
    return None


def level_line(level: str) -> str:
    """Return the line that names a level and what it means."""
    meaning = next((text for name, text in LEVELS.items() if name == level), "")
    return f"sandbox: {level} ({meaning})"


def is_weaker(level: str, other: str) -> bool:
    """Return whether a level keeps code less apart than another."""
    names: list[str] = [*LEVELS]
    return names.index(level) > names.index(other)


_used: dict[Level, bool] = {}
"""Levels that verdicts of this process came from, and whether code was run at each here."""


def used_level() -> Level | None:
    """Return the weakest level that verdicts of this process came from; ``None``: no code ran."""
    return max(_used, key=[*LEVELS].index, default=None)


def has_run() -> bool:
    """Return whether code was run in this process: else all verdicts were kept ones."""
    return any(_used.values())


def note_used_level(level: Level, *, is_kept: bool = True) -> None:
    """Note that code was run at a level, here or in the run whose verdict is kept."""
    _used[level] = _used.get(level, False) or not is_kept


def forget_used_level() -> None:
    """Begin anew, for a run of pytest within a process that has had children before."""
    _used.clear()


def strongest_level() -> Level:
    """Return the strongest level that works here, or the one that is asked for.

    Raises:
        SandboxError: nothing can be run here.
        UsageError: a level is asked for that does not work here, or that there is not.
    """
    if reason := missing():
        raise SandboxError(reason, hint="run it on Linux or macOS")
    asked_for = os.environ.get(VARIABLE, "")
    for level in LEVELS:
        # The last one is not tried, because it promises nothing that could fail.
        if asked_for in {"", level} and (level == "process" or _works(level)):
            return level
    raise UsageError(
        f"{VARIABLE}={asked_for} is not a level of the sandbox that works here",
        why="its program is not installed, or this system allows no namespaces",
        hint=f"unset {VARIABLE}, or install bubblewrap (bwrap); levels are {', '.join(LEVELS)}",
    )


def command(level: Level, argv: Sequence[str], mounts: Mounts) -> list[str] | None:
    """Return the command line that runs ``argv`` at a level; ``None``: its program is not there."""
    if level == "bwrap":
        program = shutil.which("bwrap")
        return [program, *bwrap_options(program, mounts), "--", *argv] if program else None
    if level == "namespace":
        program = shutil.which("unshare")
        return [*_dying_with_us(), program, *_UNSHARE, "--", *argv] if program else None
    return [*_dying_with_us(), *argv]


_TRIAL: Final = """
import json, os, sys
try:
    open(os.path.join(sys.argv[1], "written"), "w").close()
except OSError:
    pass
print(json.dumps([os.readlink("/proc/self/ns/" + name) for name in ("pid", "net", "ipc")]))
"""
"""Tries what the levels above ``process`` keep a child from."""


@cache
def _works(level: Level) -> bool:
    """Return whether a child at that level is really kept from what the level promises."""
    # In a folder of its own, because the trial is to fail only where it may not write.
    with tempfile.TemporaryDirectory(prefix="regen-") as folder:
        mounts = Mounts(Path(folder).resolve())
        mounts.work.mkdir()
        mounts.empty.touch()
        trial = [plain_path(sys.executable), "-I", "-S", "-c", _TRIAL, str(mounts.holder)]
        argv = command(level, trial, mounts)
        spaces = json_or_none(printed(*argv)) if argv else None
        has_written = (mounts.holder / "written").exists()
    if not isinstance(spaces, list) or (level == "bwrap" and has_written):
        return False
    # By the namespaces themselves, because a wrapper may start and keep nothing apart.
    ours = {str(Path("/proc/self/ns", name).readlink()) for name in ("pid", "net", "ipc")}
    return len(spaces) == len(ours) and not ours & {*spaces}


@cache
def _dying_with_us() -> tuple[str, ...]:
    """Return what stands before a command line so that the kernel ends it when we end."""
    program = shutil.which("setpriv") if sys.platform == "linux" else None
    words = (str(program), "--pdeathsig", "KILL", "--no-new-privs")
    return words if program and printed(*words, "echo", "works") else ()
