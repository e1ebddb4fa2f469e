"""A test of the user's own, called in a fresh process: there every module is as it stands now.

What tests import must not be judged by the process that imported it before: it holds the old code,
and a candidate has no business in it. So the project's own pytest runs that one test once more, in
the same environment, and says over a pipe how it ended.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from pytest_regen.pytest_plugin.healing.feedback import feedback_about
from pytest_regen.regeneration.values import FailedTest
from pytest_regen.validation.issues import Feedback, Issue

VARIABLE: Final = "PYTEST_REGEN_TRIAL"
"""Environment variable that tells the process of a trial what it is about, as JSON."""

_CHILD: Final = "pytest_regen.pytest_plugin.healing.trial_plugin"
_MOST: Final = 1 << 20
"""Bytes of reports that are read; one test needs a few hundred."""
_SHOWN: Final = 600
"""Characters of what the process printed, where it did not get as far as the test."""

_OWN: Final = ("-p", "no:xdist", "-p", "no:cov", "-p", _CHILD, "--tb=no", "-q")

# Options that choose, count, repeat, write or show, and so are not for one test in its own process.
_FLAGS: Final = frozenset(
    """
    --exitfirst --lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise --sw-skip
    --stepwise-skip --sw-reset --stepwise-reset --cache-clear --co --collect-only --pdb --trace
    --setup-show --setup-only --setup-plan --showlocals --no-showlocals --no-header --no-summary
    --full-trace --verbose --quiet --looponfail --no-cov --no-cov-on-fail --cov-append --cov-branch
    --snapshot-update --force-regen --regen-all --regen --regen-dry-run --regen-ignore-stale
    --regen-pending
    --regen-drop-unplayed --regen-keep-failed --xfail-tb --disable-warnings
    --disable-pytest-warnings --self-contained-html --randomly-dont-reorganize
    """.split()  # noqa: SIM905 - a list of one option a line is not readable
)
_VALUES: Final = frozenset(
    """
    --numprocesses --maxprocesses --dist --tx --px --maxfail --junitxml --junit-xml --junit-prefix
    --junitprefix --deselect --durations --durations-min --color --code-highlight --tb --verbosity
    --show-capture --basetemp --lfnf --last-failed-no-failures --capture --pastebin --rootdir
    --config-file --log-file --report-log --html --css --json-report-file --inline-snapshot
    --cov-report --cov-config --cov-fail-under --cov-context --regen-only --regen-attempts
    --regen-model --regen-provider --regen-record --regen-report --regen-budget --record-mode
    --reruns --reruns-delay --count --repeat-scope --splits --group --splitting-algorithm
    """.split()  # noqa: SIM905 - as above
)
_MAY_HAVE_VALUE: Final = frozenset({"--cov"})
_SHORT_FLAGS: Final = frozenset("xvqslhVfd")
_SHORT_DROPPED: Final = frozenset("nkmrc")
_SHORT_KEPT: Final = frozenset("pWo")

_NOT_INHERITED: Final = ("PYTEST_XDIST_", "COV_CORE_", "COVERAGE_PROCESS")
_NOT_FOR_CHILDREN: Final = frozenset({"PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"})


def missing_trials() -> str:
    """Return why no test can be called in a process of its own here; empty where it can."""
    if sys.platform == "win32":
        return (
            "trials of functions are refused on Windows: the process of a candidate cannot be held "
            "within limits there; heal on Linux or macOS, or under WSL"
        )
    return ""


@dataclass(frozen=True, slots=True)
class Trial:
    """How a test ended in a process of its own."""

    passed: bool
    feedback: tuple[Feedback, ...] = ()
    """What it reported, where it failed."""
    obstacle: str = ""
    """Why it was not called at all."""
    changed: frozenset[str] = frozenset()
    """Files of the project that code of the unit's file has changed, or tried to change."""


class FreshCalls:
    """Calls an item in fresh processes, and remembers how the last call ended.

    Args:
        item: the item.
        name: the unit that it is asked about.
        path: the file of the unit.
        failure: what the item failed with before.
        seconds: after which a process is killed.
    """

    def __init__(
        self,
        item: pytest.Item,
        name: str,
        path: Path,
        failure: BaseException | None,
        seconds: float,
    ) -> None:
        self._item = item
        self._name = name
        self._path = path
        self._seconds = seconds
        self._first = failure
        self._writable: frozenset[str] | None = None
        """What the code as it was found changes: its test is made for that."""
        self.failure = failure

    def __call__(self) -> Sequence[Feedback]:
        """Call the item with the files as they stand; return what it reports of the unit."""
        trial = self.try_now()
        return feedback_about(trial.feedback, self._name)

    def try_now(self) -> Trial:
        """Call the item with the files as they stand."""
        drop_byte_code(self._path)
        try:
            trial = run_apart(
                self._item, self._path, seconds=self._seconds, writable=self._writable
            )
        finally:
            drop_byte_code(self._path)
        if self._writable is None:
            self._writable = trial.changed
        if trial.passed:
            self.failure = None
        else:
            said = "\n".join(map(_words, trial.feedback)) or trial.obstacle
            self.failure = AssertionError(f"{said}\n(called in a process of its own)")
            self.failure.__cause__ = self._first
        return trial


def drop_byte_code(path: Path) -> None:
    """Remove what Python compiled of a module.

    A file that is written twice within a second, at the same length, passes for the one before.
    """
    for file in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        file.unlink(missing_ok=True)


def run_apart(
    item: pytest.Item, path: Path, *, seconds: float, writable: Collection[str] | None
) -> Trial:
    """Call a test in a process of its own, and return how it ended.

    Args:
        item: the test.
        path: the file of the unit.
        seconds: after which the process is killed.
        writable: the files of the project that code of that file may change; ``None``: all.
    """
    root = os.path.realpath(item.config.rootpath)
    about = {
        "path": os.path.realpath(path),
        "root": root,
        "writable": None if writable is None else sorted(writable),
    }
    with tempfile.TemporaryDirectory(prefix="regen-trial-") as folder:
        log = Path(folder) / "output.txt"
        reports, code = _run(_command(item, folder), item.config, log, seconds, about)
        printed = log.read_text("utf-8", "replace").strip()[-_SHOWN:]
    trial = _read(item, reports, code, printed, seconds)
    changed = frozenset(str(one["changed"]) for one in reports if "changed" in one)
    if writable is None or not changed:
        return replace(trial, changed=changed)
    places = ", ".join(os.path.relpath(one, root) for one in sorted(changed))
    return _broken(item, f"the code changes {places}, and no candidate may change the project")


def _run(
    command: Sequence[str],
    config: pytest.Config,
    log: Path,
    seconds: float,
    about: Mapping[str, object],
) -> tuple[list[dict[str, Any]], int | None]:
    """Return what a process reported, and its exit code; ``None`` where it had to be killed."""
    source, target = os.pipe()
    environ = {**_environ(), VARIABLE: json.dumps({**about, "pipe": target})}
    chunks: list[bytes] = []
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - pytest itself
            command,
            cwd=config.invocation_params.dir,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(target,),
            start_new_session=True,
        )
    os.close(target)
    reader = Thread(target=_collect, args=(source, chunks), daemon=True)
    reader.start()
    try:
        code: int | None = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        # What the test started goes with it, and lets go of the pipe.
        _kill(process)
    reader.join(5)
    return list(_lines(b"".join(chunks))), code


def _collect(source: int, chunks: list[bytes]) -> None:
    left = _MOST
    with os.fdopen(source, "rb", buffering=0) as pipe:
        while left > 0 and (data := pipe.read(min(left, 65_536))):
            chunks.append(data)
            left -= len(data)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _lines(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.split(b"\n"):
        try:
            report = json.loads(line)
        except ValueError:
            continue
        if isinstance(report, dict):
            yield report


def _read(
    item: pytest.Item,
    reports: Sequence[Mapping[str, Any]],
    code: int | None,
    printed: str,
    seconds: float,
) -> Trial:
    """Return how a test ended.

    It passed only if it and nothing else said so, and the process ended as pytest does.
    """
    own = [report for report in reports if report.get("id") == item.nodeid]
    phases = {str(report.get("when")): str(report.get("outcome")) for report in own}
    failed = next((report for report in own if report.get("outcome") == "failed"), None)
    if failed is not None:
        found = tuple(_feedback(failed.get("feedback")))
        return Trial(passed=False, feedback=found) if found else _broken(item, "it fails")
    if "skipped" in phases.values():
        why = "it is skipped in a process of its own"
        return Trial(passed=False, feedback=(f"[TEST] {item.name}: {why}",), obstacle=why)
    ended = [report for report in reports if "exit" in report]
    is_whole = phases == {"setup": "passed", "call": "passed", "teardown": "passed"}
    if is_whole and len(own) == 3 and code == 0 and ended == [{"exit": 0}]:
        return Trial(passed=True)
    if code is None:
        return _broken(item, f"it did not end within {seconds:g} seconds")
    refused = next((report for report in reports if "collected" in report), None)
    if refused is not None:
        return _broken(item, f"its module cannot be imported: {refused['collected']}")
    if "setup" in phases:
        return _broken(item, f"its process ended (exit {code}) before the test did")
    why = f"it could not be called in a process of its own (exit {code}): {printed or 'no output'}"
    return Trial(passed=False, feedback=(f"[TEST] {item.name}: {why}",), obstacle=why)


def _broken(item: pytest.Item, why: str) -> Trial:
    return Trial(passed=False, feedback=(f"[TEST] {item.name}: {why}",))


def _feedback(found: object) -> Iterator[Feedback]:
    for entry in found if isinstance(found, list) else ():
        if "code" in entry:
            yield Issue.from_json(entry)
        else:
            yield FailedTest(str(entry.get("text", "")), str(entry.get("source", "")))


def _words(note: Feedback) -> str:
    return note if isinstance(note, str) else f"{note.code}: {note.message}"


# The command


def _command(item: pytest.Item, folder: str) -> list[str]:
    config = item.config
    here = str(config.invocation_params.dir)
    # As the process at hand was started: with the folder on the path, or without.
    python = [sys.executable] if here in sys.path or "" in sys.path else [sys.executable, "-P"]
    place = ["--rootdir", str(config.rootpath)]
    if config.inipath is not None:
        place += ["-c", str(config.inipath)]
    ini = ["-o", "addopts=", "-o", f"cache_dir={folder}/cache"]
    test = f"{config.rootpath}{os.sep}{item.nodeid}"
    return [*python, "-m", "pytest", *kept_options(config), *place, *ini, *_OWN, test]


def kept_options(config: pytest.Config) -> list[str]:
    """Return the options of this run that matter to a single test.

    What chooses tests, counts, distributes, writes or shows is left out, and so are our own; what
    is left are plugins, ini values and the options of other plugins.
    """
    worker = getattr(config, "workerinput", None)
    given = worker.get("regen_args", ()) if worker else config.invocation_params.args
    args = [
        *config.getini("addopts"),
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        *map(str, given),
    ]
    places = {str(arg) for arg in getattr(config.option, "file_or_dir", None) or ()}
    return list(_keep(args, lambda arg: arg in places or _names_a_file(arg, config)))


def _names_a_file(arg: str, config: pytest.Config) -> bool:
    """Return whether an argument names tests: in a worker nothing else says so."""
    return (config.invocation_params.dir / arg.partition("::")[0]).exists()


def _keep(args: Sequence[str], is_place: Callable[[str], bool]) -> Iterator[str]:
    waiting = deque(args)
    while waiting:
        arg = waiting.popleft()
        if arg.startswith("--"):
            name, has_value, _ = arg.partition("=")
            if name not in _FLAGS | _VALUES | _MAY_HAVE_VALUE:
                yield arg
            elif not has_value and _has_value(name, waiting, is_place):
                waiting.popleft()
        elif arg.startswith("-") and len(arg) > 1:
            yield from _keep_short(arg, waiting)
        elif not is_place(arg):
            yield arg  # The value of an option that we do not know.


def _has_value(name: str, after: Sequence[str], is_place: Callable[[str], bool]) -> bool:
    """Return whether the next argument belongs to an option that is left out."""
    if name in _MAY_HAVE_VALUE:
        return bool(after) and not (after[0].startswith("-") or is_place(after[0]))
    return name in _VALUES and bool(after)


def _keep_short(arg: str, waiting: deque[str]) -> Iterator[str]:
    """Yield what is kept of options of one letter, which may be written as one: ``-xvn2``."""
    for at, letter in enumerate(arg[1:], 1):
        if letter in _SHORT_FLAGS:
            continue
        value = arg[at + 1 :] or (waiting.popleft() if waiting else "")
        if letter in _SHORT_KEPT:
            yield from (f"-{letter}", value)
        elif letter not in _SHORT_DROPPED:
            yield arg
        return


def _environ() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_NOT_INHERITED) and name not in _NOT_FOR_CHILDREN
    }
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}
