"""Real processes that are killed: at each of their effects on a store, or at any moment.

Run as a program, it imports once and forks a child per kill, which is what makes hundreds of kills
affordable. As a module, it starts that program and returns what happened.
"""

import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warm_python import run_python

_LOADED_LATE = (
    "anyio._backends._asyncio",
    "filelock",
    "pytest_regen.languages.csharp.pages",
    "pytest_regen.languages.csharp.runner",
    "pytest_regen.languages.csharp.writer",
    "pytest_regen.sandbox.processes",
    "pytest_regen.sources",
    "pytest_regen.turns.pacing",
)


@dataclass(frozen=True)
class Killed:
    """One child that was started, and what it left."""

    folder: Path
    """Its copy of the template."""
    effect: str
    """What it was about to do, or had just done, when it died; empty if it came to its end."""


def kill_at_every_effect(
    work: str, template: Path, space: Path, *, first: int = 0, step: int = 1
) -> list[Killed]:
    """Run ``work`` on copies of ``template`` and kill it at its n-th effect, for every n.

    Effects are counted twice, before and after each.

    Args:
        work: ``module:function`` of tests/support; called with the copy's path.
        template: folder of a store.
        space: where the copies go, each in a folder of its own.
        first: number of the effect to begin with; a very high one only runs the work.
        step: how many to go on by; other than 1, a sample.

    Returns:
        One for each effect, and at the end one whose work was left alone.
    """
    return _driven("effects", work, template, space, first, step)


def kill_at_random_moments(
    work: str, template: Path, space: Path, count: int, *, within: int = 60, begun: str = ""
) -> list[Killed]:
    """Run ``work``, which never ends by itself, and kill it ``count`` times at any moment.

    Args:
        work: as for ``kill_at_every_effect``.
        template: as there.
        space: as there.
        count: how often.
        within: milliseconds after its start at which it is dead.
        begun: a file of the copy that is there once the work is under way. Of four kills three
            then count from there, so that a slow machine does not only kill what is starting.
    """
    return _driven("moments", work, template, space, count, within, begun)


def kill_until_done(work: str, folder: Path, count: int, *, within: int, seed: int) -> list[float]:
    """Run ``work``, which resumes what it finds, in one folder; kill it at most ``count`` times.

    Args:
        work: as for ``kill_at_every_effect``.
        folder: the same for every run, not a copy.
        count: how often it is killed; then it is left alone.
        within: milliseconds after its start at which it is dead.
        seed: of the moments.

    Returns:
        When it was killed, in seconds since the epoch; fewer than ``count`` where it was done.
    """
    done = _driven("again", work, folder, folder, count, within, seed)
    return [float(killed.effect) for killed in done]


def run_together(work: str, folder: Path, count: int) -> list[Killed]:
    """Run ``work(folder, number)`` in ``count`` processes that start at the same moment."""
    return _driven("together", work, folder, folder.parent, count)


def run_alone(work: str, folder: Path) -> str:
    """Return what ``work(folder)`` returns in a process of its own, which it may restrict."""
    return _driven("alone", work, folder, folder)[0].effect


def _driven(how: str, work: str, template: Path, space: Path, *choices: int | str) -> list[Killed]:
    command = [__file__, how, work, str(template), str(space), *map(str, choices)]
    done = run_python(command, Path.cwd(), os.environ)
    assert done.returncode == 0, done.stderr
    return [Killed(Path(folder), effect) for folder, effect in json.loads(done.stdout)]


def _fork(child: Callable[[], None]) -> int:
    """Return the pid of a child that runs ``child`` and nothing else."""
    pid = os.fork()
    if pid:
        return pid
    try:
        child()
    except BaseException as error:  # noqa: BLE001 - told and counted by the parent
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def _copied(template: Path, space: Path, number: int) -> Path:
    folder = space / f"{number:04}" / template.name
    shutil.copytree(template, folder)
    return folder


def _at_every_effect(
    work: Callable[[Path], None], template: Path, space: Path, first: int, step: int
) -> list[tuple[str, str]]:
    from pytest_regen import files

    seen: list[tuple[str, str]] = []
    while True:
        folder = _copied(template, space, len(seen))
        told = space / f"{len(seen):04}" / "effect"
        left = [first + step * len(seen)]

        def observe(effect: str, path: Path) -> None:
            if left[0] == 0:  # noqa: B023 - forked at once
                told.write_text(f"{effect} {path.name}")  # noqa: B023 - forked at once
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1  # noqa: B023 - forked at once

        def child() -> None:
            with files.observe_effects(observe):
                work(folder)  # noqa: B023 - forked at once

        _, status = os.waitpid(_fork(child), 0)
        assert status in {0, signal.SIGKILL}, f"the work failed: {status}"
        seen.append((str(folder), told.read_text() if told.exists() else ""))
        if not told.exists():
            return seen


def _at_random_moments(
    work: Callable[[Path], None],
    template: Path,
    space: Path,
    count: int,
    within: int,
    *,
    begun: str,
) -> list[tuple[str, str]]:
    chance = random.Random(20260102)
    seen = []
    for number in range(count):
        folder = _copied(template, space, number)
        pid = _fork(lambda: work(folder))  # noqa: B023 - forked at once
        if begun and number % 4:
            _wait_for(folder / begun)
        time.sleep(chance.uniform(1, within) / 1000)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert status == signal.SIGKILL, f"the work failed: {status}"
        seen.append((str(folder), "at a random moment"))
    return seen


def _until_done(
    work: Callable[[Path], None], folder: Path, count: int, within: int, seed: int
) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    kills: list[tuple[str, str]] = []
    while True:
        pid = _fork(lambda: work(folder))
        if len(kills) < count:
            time.sleep(chance.uniform(1, within) / 1000)
            os.kill(pid, signal.SIGKILL)
        killed = time.time()
        _, status = os.waitpid(pid, 0)
        assert status in {0, signal.SIGKILL}, f"the work failed: {status}"
        if status == 0:
            return kills
        kills.append((str(folder), str(killed)))


def _wait_for(path: Path) -> None:
    for _ in range(60_000):
        if path.exists():
            return
        time.sleep(0.001)
    raise TimeoutError(f"{path} is not there after a minute")


def _together(work: Callable[[Path, int], None], folder: Path, count: int) -> list[tuple[str, str]]:
    barrier, opened = os.pipe()

    def child(number: int) -> None:
        os.close(opened)
        os.read(barrier, 1)  # Returns for all of them once the parent closes its end.
        work(folder, number)

    pids = [_fork(lambda number=number: child(number)) for number in range(count)]  # type: ignore[misc]
    time.sleep(0.2)
    os.close(opened)
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    assert not any(statuses), f"the work failed: {statuses}"
    return [(str(folder), "")]


def _main(how: str, name: str, template: str, space: str, *choices: str) -> None:
    for loaded_late in _LOADED_LATE:
        importlib.import_module(loaded_late)  # Once here, instead of in each child.
    module, function = name.split(":")
    work = getattr(importlib.import_module(module), function)
    counts = [int(choice) for choice in choices[:2]]
    if how == "effects":
        seen = _at_every_effect(work, Path(template), Path(space), *counts)
    elif how == "moments":
        seen = _at_random_moments(work, Path(template), Path(space), *counts, begun=choices[2])
    elif how == "again":
        seen = _until_done(work, Path(template), counts[0], counts[1], int(choices[2]))
    elif how == "alone":
        seen = [(template, work(Path(template)))]
    else:
        seen = _together(work, Path(template), *counts)
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    _main(*sys.argv[1:])
