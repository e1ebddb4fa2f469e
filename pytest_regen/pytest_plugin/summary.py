"""The end of a run: what was regenerated, what was not and why, what changed, what comes next."""

import os
import shlex
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from pytest_regen.plurals import counted
from pytest_regen.pytest_plugin.choices import Choices
from pytest_regen.pytest_plugin.healing.records import Heal, Record, record_on
from pytest_regen.pytest_plugin.locate import from_here, id_from_here, text_from_here

__all__ = ["RunLog"]

_DIFF_LINES = 60
"""Lines of a diff that are printed; the whole is in a file."""


class RunLog:
    """Hears every report of the run and tells the story at its end; not in workers."""

    def __init__(self, config: pytest.Config, choices: Choices) -> None:
        self._config = config
        self._choices = choices
        self._by_item: list[tuple[str, Heal]] = []
        """Node ids, and the work on a type that each has led to."""
        self._warnings: list[str] = []
        self._commands: list[str] = []
        """What ends the warnings, or brings stale types up to date."""
        self.notes: list[str] = list(choices.notes)
        """What was asked for and is not done, and the like; one line each."""
        self.report = ""
        """What became of the report that was asked for."""
        self.report_failed = False
        """Whether it could not be written."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a worker or this process sent along."""
        record: Record | None = record_on(report)
        if record is None:
            return
        self._by_item += [(report.nodeid, heal) for heal in record.heals]
        here = id_from_here(report.nodeid, self._config)
        self._warnings += [f"{here}: {warning}" for warning in record.warnings]
        self._commands += [record.next] if record.next else []
        self.notes += [note for note in record.notes if note not in self.notes]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a green run that regenerated something, where the project wants that."""
        if self.gate and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: "pytest.TerminalReporter"
    ) -> Generator[None, None, None]:
        """Print our section after all others, if there is anything to tell."""
        yield
        if not (self._heals or self._warnings or self._commands or self.notes or self.report):
            return
        terminalreporter.write_sep("=", "regen", purple=True)
        for line, colour in self._lines():
            terminalreporter.write_line(line, **dict.fromkeys(colour, True))

    @property
    def _heals(self) -> list[Heal]:
        return [heal for _, heal in self._by_item]

    @property
    def _changed(self) -> list[str]:
        return list(dict.fromkeys(path for heal in self._heals for path in heal.changed))

    @property
    def gate(self) -> str:
        """Why a green run exits with 1; empty where it does not."""
        fail_on, changed = self._choices.fail_on, bool(self._changed)
        if fail_on == "regenerated" and any(heal.outcome == "regenerated" for heal in self._heals):
            what = "a store was changed" if changed else "a test passed only after another turn"
            return f"{what} and regen_fail_on = regenerated"
        if fail_on == "auto" and self._choices.in_ci and changed:
            return "a store was changed and CI is set (regen_fail_on = auto)"
        return ""

    def _lines(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        for note in self.notes:
            yield note, ("yellow",)
        for warning in self._warnings:
            yield f"warning: {warning}", ("yellow",)
        for heal in self._heals:
            yield from self._heal_lines(heal)
        if any(heal.emulated for heal in self._heals):
            yield "emulated: replies came from the emulator or its recordings, not from a model", ()
        if self._changed:
            yield f"changed: {', '.join(map(self._here, self._changed))}", ()
        if self.gate:
            todo = "; commit the change" if self._changed else ""
            yield f"exit 1: {self.gate}{todo}", ("red",)
        if self.report:
            yield self.report, ("red",) if self.report_failed else ()
        following = self.next_command
        if following:
            yield f"next: {text_from_here(following, self._config)}", ("bold",)

    def _heal_lines(self, heal: Heal) -> Iterable[tuple[str, tuple[str, ...]]]:
        unit = id_from_here(heal.unit, self._config)
        pages = f"page {heal.pages[0]}" if len(heal.pages) == 1 else f"pages {heal.pages}"
        match heal.outcome:
            case "planned":
                asked = "nothing a reply could mend"
                if heal.pages:
                    asked = f"would ask {pages}, about {heal.estimate:,} tokens in"
                yield f"dry run: {unit}: {asked}", ()
                return
            case "regenerated":
                where = f" {pages}" if heal.pages else ""
                head, colour = f"regenerated: {unit}{where}", ("yellow",)
            case "failed":
                head, colour = f"still failing: {unit} [{heal.stop_reason}]", ("red",)
            case _:
                head, colour = f"not regenerated: {unit}", ("red",)
        if heal.calls:
            head += f", {counted(heal.calls, 'call')}, {_tokens(heal)}"
        yield head, colour
        for line in text_from_here(heal.why, self._config).splitlines():
            yield f"  {line}", ()
        yield from self._diff_lines(heal)

    def _diff_lines(self, heal: Heal) -> Iterable[tuple[str, tuple[str, ...]]]:
        lines = heal.diff.splitlines()
        for line in lines[:_DIFF_LINES]:
            colour = {"+": ("green",), "-": ("red",)}.get(line[:1], ())
            yield f"  {line}", colour
        if len(lines) > _DIFF_LINES:
            path = self._whole_diff(heal)
            yield f"  … {len(lines) - _DIFF_LINES} more lines: {path}", ()

    def _whole_diff(self, heal: Heal) -> str:
        cache: pytest.Cache | None = getattr(self._config, "cache", None)
        if cache is None:
            return "git diff shows them"
        name = "".join(char if char.isalnum() else "_" for char in heal.unit)
        path = cache.mkdir("regen") / f"{name}.diff"
        path.write_text(heal.diff, "utf-8")
        return os.path.relpath(path, self._config.invocation_params.dir)

    @property
    def next_command(self) -> str:
        """What to run next; empty where nothing is left to do."""
        told = [(nodeid, heal.next) for nodeid, heal in self._by_item if heal.next]
        if told:
            # The same one in every run, and the one that the report names.
            return min(told, key=lambda one: one[0])[1]
        if self._changed:
            stores = dict.fromkeys(str(Path(self._here(path)).parent) for path in self._changed)
            return f"git diff {' '.join(map(shlex.quote, stores))}"
        return next(iter(self._commands), "")

    def _here(self, path: str) -> str:
        """Return a path from the rootdir as it is seen from where pytest was called."""
        return from_here(self._config.rootpath / path, self._config)


def _tokens(heal: Heal) -> str:
    read = f", {heal.cache_read:,} read from the prompt cache" if heal.cache_read else ""
    cost = f", ${heal.cost}" if heal.cost else ""
    return f"{heal.tokens_in:,} tokens in, {heal.tokens_out:,} out{read}{cost}"
