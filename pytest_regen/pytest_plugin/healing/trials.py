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
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from pytest_regen.pytest_plugin.healing.feedback import feedback_about
from pytest_regen.pytest_plugin.looks import Target
from pytest_regen.pytest_plugin.stash import TRIAL_PLUGIN, TRIAL_VARIABLE
from pytest_regen.validation.issues import FailedTest, Feedback, Issue

_MOST: Final = 1 << 20
"""Bytes of reports that are read; one test needs a few hundred."""
_LONGEST: Final = 600
"""Characters of what the process printed, where it did not get as far as the test."""

# Options that choose, count, repeat or write, and so are not for one test in its own process.
_FLAGS: Final = """
    --exitfirst --lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise --sw-skip
    --stepwise-skip --sw-reset --stepwise-reset --cache-clear --co --collect-only --pdb --trace
    --setup-only --setup-plan --looponfail --no-cov --no-cov-on-fail --cov-append --cov-branch
    --snapshot-update --force-regen --regen-all --regen --regen-dry-run --regen-ignore-stale
    --regen-pending --regen-drop-unplayed --regen-keep-failed --randomly-dont-reorganize
    -x -v -q -s -l -h -V -f -d
"""
_VALUES: Final = """
    --numprocesses --maxprocesses --dist --tx --px --maxfail --junitxml --junit-xml --deselect
    --durations --color --tb --basetemp --lfnf --last-failed-no-failures --capture --pastebin
    --rootdir --config-file --log-file --report-log --html --css --json-report-file
    --inline-snapshot --cov-report --cov-config --cov-fail-under --cov-context --regen-only
    --regen-attempts --regen-jobs --regen-model --regen-provider --regen-record --regen-report
    --regen-budget --record-mode --reruns --reruns-delay --count --repeat-scope --splits --group
    --splitting-algorithm -n -k -m -r -c
"""
_NOT_INHERITED: Final = (
    "PYTEST_XDIST_",
    "PYTEST_ADDOPTS",
    "PYTEST_CURRENT_TEST",
    "COV_CORE_",
    "COVERAGE_PROCESS",
)


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


class FreshCalls:
    """Calls an item in fresh processes, and remembers how the last call ended.

    Args:
        item: the item.
        target: the unit that it is asked about.
        failure: what the item failed with before.
        others: further tests about the unit, called along with the item. Those that pass with the
            stored code must pass with every candidate.
    """

    def __init__(
        self,
        item: pytest.Item,
        target: Target,
        failure: BaseException | None,
        others: Sequence[str] = (),
    ) -> None:
        self._item = item
        self._tests = [item.nodeid, *others]
        self._name = target.name
        self._path = target.look.path
        self._seconds = target.look.home.trial_seconds * len(self._tests)
        self._first = failure
        self._writable: list[str] | None = None
        """What the stored code changes: its test is made for that, and no candidate does more."""
        self.failure = failure

    def __call__(self) -> Sequence[Feedback]:
        """Call the item with the files as they stand; return what it reports of the unit."""
        return feedback_about(self.try_now().feedback, self._name)

    def try_now(self) -> Trial:
        """Call the item with the files as they stand."""
        _drop_byte_code(self._path)
        try:
            trial = self._run_apart()
        finally:
            _drop_byte_code(self._path)
        if trial.passed:
            self.failure = None
            return trial
        notes = [
            note if isinstance(note, str) else f"{note.code}: {note.message}"
            for note in trial.feedback
        ]
        text = "\n".join(notes) or trial.obstacle
        self.failure = AssertionError(f"{text}\n(called in a process of its own)")
        self.failure.__cause__ = self._first
        return trial

    def _run_apart(self) -> Trial:
        config = self._item.config
        root = os.path.realpath(config.rootpath)
        about = {"path": os.path.realpath(self._path), "root": root, "writable": self._writable}
        with tempfile.TemporaryDirectory(prefix="regen-trial-") as folder:
            start_folder = str(config.invocation_params.dir)
            # As the process at hand was started: with the folder on the path, or without.
            is_on_path = start_folder in sys.path or "" in sys.path
            command = [sys.executable, *([] if is_on_path else ["-P"]), "-m", "pytest"]
            command += [*kept_options(config), "--rootdir", str(config.rootpath)]
            if config.inipath is not None:
                command += ["-c", str(config.inipath)]
            # Last, so that it wins: one process, reported by our plugin, with a cache of its own.
            command += ["-o", "addopts=", "-o", f"cache_dir={folder}/cache"]
            command += ["-p", "no:xdist", "-p", "no:cov", "-p", TRIAL_PLUGIN, "--tb=no", "-q"]
            # Because one of the others may be broken for a reason of its own.
            command.append("--continue-on-collection-errors")
            command += [f"{config.rootpath}{os.sep}{test}" for test in self._tests]
            log = Path(folder) / "output.txt"
            reports, code = _run(command, start_folder, log, self._seconds, about)
            printed = log.read_text("utf-8", "replace").strip()[-_LONGEST:]
        changed = sorted({str(report["changed"]) for report in reports if "changed" in report})
        if self._writable is not None and changed:
            places = ", ".join(os.path.relpath(place, root) for place in changed)
            why = f"the code changes {places}, and no candidate may change the project"
            return self._broken(why)
        codes = [0]
        if self._writable is None:
            self._writable = changed
            others = self._tests[1:]
            # What fails with the stored code as well, no candidate has to mend.
            self._tests[1:] = [test for test in others if _passes(reports, test)]
            codes = [0, 1] if others else [0]
        return self._read(reports, code, printed, codes)

    def _read(
        self,
        reports: Sequence[Mapping[str, Any]],
        code: int | None,
        printed: str,
        codes: Sequence[int] = (0,),
    ) -> Trial:
        """Return how the tests ended.

        They passed only if they and nothing else said so, and the process ended as pytest does.
        """
        phases = [report for report in reports if report.get("id") in self._tests]
        outcomes = {str(report.get("when")): str(report.get("outcome")) for report in phases}
        failed = next((report for report in phases if report.get("outcome") == "failed"), None)
        if failed is not None:
            feedback = tuple(map(_feedback_of, failed.get("feedback") or ()))
            return Trial(passed=False, feedback=feedback) if feedback else self._broken("it fails")
        if "skipped" in outcomes.values():
            return self._broken("it is skipped in a process of its own", is_obstacle=True)
        ends = [report for report in reports if "exit" in report]
        is_whole = all(_passes(reports, test) for test in self._tests)
        if is_whole and code in codes and ends == [{"exit": code}]:
            return Trial(passed=True)
        if code is None:
            return self._broken(f"it did not end within {self._seconds:g} seconds")
        refused = next((report for report in reports if "collected" in report), None)
        if refused is not None:
            return self._broken(f"its module cannot be imported: {refused['collected']}")
        if "setup" in outcomes:
            return self._broken(f"its process ended (exit {code}) before the test did")
        why = f"it could not be called in a process of its own (exit {code}): "
        return self._broken(why + (printed or "no output"), is_obstacle=True)

    def _broken(self, why: str, *, is_obstacle: bool = False) -> Trial:
        feedback = (f"[TEST] {self._item.name}: {why}",)
        return Trial(passed=False, feedback=feedback, obstacle=why if is_obstacle else "")


def _passes(reports: Sequence[Mapping[str, Any]], test: str) -> bool:
    """Return whether a test passed in each of its phases, and said so once.

    Code that forges a report cannot also keep pytest from sending its own.
    """
    phases = [(each.get("when"), each.get("outcome")) for each in reports if each.get("id") == test]
    return phases == [("setup", "passed"), ("call", "passed"), ("teardown", "passed")]


def _drop_byte_code(path: Path) -> None:
    # Before the call and after it: Python takes a file that is written twice within a second, at
    # the same length, for the one that it compiled before.
    for file in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        file.unlink(missing_ok=True)


def _run(
    command: Sequence[str], folder: str, log: Path, seconds: float, about: Mapping[str, object]
) -> tuple[list[dict[str, Any]], int | None]:
    """Return what a process reported, and its exit code; ``None`` where it had to be killed."""
    source, target = os.pipe()
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)
    }
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    environ[TRIAL_VARIABLE] = json.dumps({**about, "pipe": target})
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(target,),
            start_new_session=True,
        )
    os.close(target)
    chunks: list[bytes] = []

    def collect() -> None:
        left = _MOST
        with os.fdopen(source, "rb", buffering=0) as pipe:
            while left > 0 and (data := pipe.read(min(left, 65_536))):
                chunks.append(data)
                left -= len(data)

    # In a thread: a full pipe would stop the process, and this one has to watch the time.
    reader = Thread(target=collect, daemon=True)
    reader.start()
    try:
        code: int | None = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        # The whole group: what the test started goes with it, and lets go of the pipe.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    reader.join(5)
    reports = []
    for line in b"".join(chunks).split(b"\n"):
        # The last line is torn where the process was killed.
        with suppress(ValueError):
            report = json.loads(line)
            if isinstance(report, dict):
                reports.append(report)
    return reports, code


def _feedback_of(entry: Mapping[str, Any]) -> Feedback:
    if "code" in entry:
        return Issue.from_json(entry)
    return FailedTest(str(entry.get("text", "")), str(entry.get("source", "")))


def kept_options(config: pytest.Config) -> list[str]:
    """Return the options of this run that matter to a single test.

    What chooses tests, counts, distributes or writes is left out, and so are our own; what is left
    are plugins, ini values and the options of other plugins.
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    for name in _FLAGS.split():
        parser.add_argument(name, action="store_true")
    for name in _VALUES.split():
        parser.add_argument(name)
    parser.add_argument("--cov", nargs="?")
    for name in ("-p", "-W", "-o"):
        parser.add_argument(name, action="append", default=[])
    worker = getattr(config, "workerinput", None)
    typed = worker.get("regen_args", ()) if worker else config.invocation_params.args
    args = [
        *config.getini("addopts"),
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        *map(str, typed),
    ]
    options, unknown = parser.parse_known_args(args)
    kept = [f"-{name}{value}" for name in "pWo" for value in getattr(options, name)]
    places = {str(arg) for arg in getattr(config.option, "file_or_dir", None) or ()}
    for word in unknown:
        # In a worker nothing but the file system tells a path from the value of an option.
        path = config.invocation_params.dir / word.partition("::")[0]
        if word.startswith("-") or not (word in places or path.exists()):
            kept.append(word)
    return kept
