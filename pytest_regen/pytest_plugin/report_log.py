"""Collects the report of a run and writes it at the end, never in a worker."""

import json
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen import github
from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import MissingExtraError, RegenError
from pytest_regen.extras import needs
from pytest_regen.files import replace_file
from pytest_regen.links import code_link
from pytest_regen.pytest_plugin import report as reports
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.items import UnitError, UnitItem, findings_json
from pytest_regen.pytest_plugin.names import node_command
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.places import look_at
from pytest_regen.pytest_plugin.project import from_rootdir, store_path
from pytest_regen.pytest_plugin.recording.log import by_cause, cassette_log
from pytest_regen.pytest_plugin.report import Json, ReportEntry
from pytest_regen.pytest_plugin.stash import SESSION_MAKERS, scrubber_of
from pytest_regen.pytest_plugin.summary import record_on
from pytest_regen.testing.failures import FeedbackError
from pytest_regen.text import visible
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.summary import RunLog


_KEY = "regen_item"

_OTHER_ANNOTATOR = "pytest_github_actions_annotate_failures"
"""The entry point of the plugin that annotates every test that fails."""

_STOPPED = {3: "internal error", 4: "usage error"}
"""What ends a run early without saying so, by pytest's exit code."""


def describe(item: pytest.Item, report: pytest.TestReport, error: BaseException | None) -> None:
    """Put the kind of one of our items on its report, and what is wrong with it."""
    kind, group, command = "test", "tests", ""
    issues: list[dict[str, Any]] | None = None
    if isinstance(item, UnitItem):
        kind, group = item.look.kind_of(item.unit)
        if report.when == "call":
            issues, failing = [], error.issues if isinstance(error, UnitError) else None
            with suppress(RegenError):  # The failure itself says what cannot be read.
                wrong = item.look.issues(item.unit)
                command = item.look.command(item.unit, wrong if failing is None else failing)
                issues = findings_json(wrong, item.look)
    elif isinstance(error, FeedbackError):
        notes = [note for note in error.feedback if isinstance(note, Issue)]
        try:
            issues = findings_json(notes, look_at(item.config, store_path(item)))
        except (RegenError, pytest.UsageError):
            issues = findings_json(notes)  # No store is known that would tell their file.
    if SESSION_MAKERS in item.stash:
        group = "sessions"
    path, line, _ = report.location
    place = (path, None if line is None else line + 1)
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and Path(crash.path).is_relative_to(item.config.rootpath):
        place = (from_rootdir(Path(crash.path), item.config.rootpath), crash.lineno)
    # pytest-xdist carries what stands here as it is.
    report.__dict__[_KEY] = {
        "kind": kind,
        "group": group,
        "place": place,
        "issues": issues,
        "next": command,
    }


def _report_path(config: pytest.Config) -> Path:
    """Return the file that the report goes to; its folder is made and can be written.

    Raises:
        pytest.UsageError: the ending is no format, its extra is not installed, or nothing can be
            written there.
    """
    option = config.option.regen_report
    typed = os.path.expanduser(option)  # the name of a user that is not there stays
    path = Path(os.path.normpath(config.invocation_params.dir / typed))
    if path.suffix.lower() not in {".html", ".json"}:
        raise usage_error(
            f"--regen-report {option}: no report ends in {path.suffix!r}",
            why="the ending chooses the format: .html or .json",
            hint="--regen-report report.html",
        )
    try:
        if path.suffix.lower() == ".html":
            with needs("report", "reports as HTML"):
                # Imported before hours of tests, not after them.
                import_module("pytest_regen.pytest_plugin.report_page")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only writing shows whether one may write; after hours of tests it would be too late.
        is_new = not path.exists()
        path.open("a").close()
        if is_new:
            path.unlink()
    except MissingExtraError as error:
        raise plain_usage_error(str(error)) from None
    except OSError as error:
        raise usage_error(
            f"--regen-report {option} cannot be written",
            why=error.strerror or str(error),
            hint="name a file in a folder that can be written",
        ) from None
    return path


class ReportLog:
    """Ends a run with the report that was asked for, and with the summary of its job.

    Args:
        config: pytest's configuration.
        stores: the places of the run.
        summary: shows in the terminal what became of the report.

    Raises:
        pytest.UsageError: the report cannot be written where it is to go.
    """

    def __init__(self, config: pytest.Config, stores: Iterable[Path], summary: "RunLog") -> None:
        self._config = config
        self._choices = choices_of(config)
        is_asked = config.option.regen_report is not None
        self._path = _report_path(config) if is_asked else None
        # Known here as well, because a worker that crashed sends a report that nobody described.
        self._stores = {from_rootdir(store, config.rootpath) for store in stores}
        self._summary = summary
        self._entries: dict[str, ReportEntry] = {}
        self._collection_errors: dict[str, str] = {}
        self._stopped = ""
        self._annotations: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._collection_errors[report.nodeid] = _text_of_failure(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a phase of one of our items ended."""
        description = report.__dict__.get(_KEY)
        if description is None and report.nodeid.partition("::")[0] not in self._stores:
            return
        if report.when == "setup" or report.nodeid not in self._entries:
            # An item that another plugin starts again is reported as it ended the last time.
            rerun = node_command(self._config, report.nodeid)
            self._entries[report.nodeid] = ReportEntry(report.nodeid, rerun=rerun)
        entry = self._entries[report.nodeid]
        if description is not None:
            entry.kind = description["kind"]
            if report.failed or not entry.place[0]:
                entry.place = tuple(description["place"])
            if entry.group == "tests":  # As it is set up, nobody knows of a session yet.
                entry.group = description["group"]
            if description["issues"] is not None:
                entry.issues = description["issues"]
            entry.command = description["next"] or entry.command
        record = record_on(report)
        if record is not None:
            entry.command = entry.command or record.next
            entry.heals = record.heals
        status = self._config.hook.pytest_report_teststatus(report=report, config=self._config)
        text = ""
        if report.failed:
            text = _text_of_failure(report)
        elif report.skipped:
            where = report.longrepr
            reason = getattr(report, "wasxfail", None)
            text = str(reason or (where[-1] if isinstance(where, tuple) else ""))
        entry.add_phase(str(status[0]) if status else "", text)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note that the run ended before its end."""
        self._stopped = str(excinfo.value) or excinfo.typename

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Write the report, after all other plugins have decided how the run ends."""
        yield
        report = reports.clean_report(self._report(session), self._clean)
        self._tell_github(report)
        path = self._path
        if path is None:
            return
        place = os.path.relpath(path, self._config.invocation_params.dir)
        if path.suffix.lower() == ".json":
            text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
        else:
            from pytest_regen.pytest_plugin.report_page import page_of

            text = page_of(report)
        try:
            # The folder may have been cleared away by a test.
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text)
        except OSError as error:
            # Whoever asked for a report must not take a green run for one that has it.
            why = f"{error.strerror or error}: {place}"
            self._summary.report, self._summary.report_failed = f"no report: {why}", True
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        else:
            self._summary.report = f"report: {place}"

    def _tell_github(self, report: Json) -> None:
        """Write the job summary, and prepare the lines that GitHub makes annotations of."""
        if job := os.environ.get("GITHUB_STEP_SUMMARY"):
            try:
                github.append_summary(Path(job), reports.summary_blocks(report))
            except OSError as error:
                fault = f"{error.strerror or error}: {job}"
                self._summary.notes.append(f"GITHUB_STEP_SUMMARY was not written: {fault}")
        if not github.wants_annotations(self._choices.annotations):
            return
        # A plugin that annotates every test that fails has told of them.
        is_told = self._config.pluginmanager.has_plugin(_OTHER_ANNOTATOR)
        others = {item["id"] for item in report["items"] if is_told and item["kind"] == "test"}
        findings = [
            finding
            for finding in reports.findings_of(report)
            if finding.level == "warning" or finding.unit not in others
        ]
        run = report["run"]
        if run["why_failed"]:
            changed = Path(run["changed"][0]) if run["changed"] else None
            why = run["why_failed"]
            findings.append(github.Finding("error", "regenerated", "pytest-regen", why, changed))
        self._annotations = list(github.annotation_lines(findings, self._config.rootpath))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: "pytest.TerminalReporter"
    ) -> Generator[None, None, None]:
        """Print the annotations after all else: in the log they stand together."""
        yield
        for line in self._annotations:
            terminalreporter.write_line(visible(line))

    def _report(self, session: pytest.Session) -> Json:
        choices = self._choices
        mode = "heal" if choices.heal else "gate"
        mode = "dry_run" if choices.dry_run else mode
        mode = "collect" if self._config.option.collectonly else mode
        stopped = session.shouldfail or session.shouldstop or self._stopped
        run = {
            "mode": mode,
            "record": choices.record_mode(),
            "model": choices.model,
            "provider": choices.provider_option or choices.provider_default,
            "attempts": choices.attempts(),
            "budget": choices.budget,
            "ci": choices.in_ci,
            "sandbox": self._summary.sandbox or None,
            "exit_code": int(session.exitstatus),
            "stopped": str(stopped or _STOPPED.get(int(session.exitstatus), "")),
            "why_failed": self._summary.gate,
            "notes": sorted(self._summary.all_notes),
            "next": self._summary.next_command,
        }
        log = cassette_log(self._config)
        cassettes = {
            "drifted": sorted(log.drifted),
            "causes": [
                {"kind": kind, "cause": cause, "tests": tests}
                for (kind, cause), tests in by_cause(log.notes).items()
            ],
            "notes": sorted(map(asdict, log.notes), key=json.dumps),
        }
        errors = [{"id": id_, "text": text} for id_, text in self._collection_errors.items()]
        report = reports.report_of(run, self._entries.values(), errors, cassettes)
        codes = set(map(str, _values_of("code", report["items"])))
        docs_url = self._choices.settings.docs_url
        links = {code: code_link(code, docs_url=docs_url) for code in sorted(codes - {""})}
        return {**report, "links": {code: link for code, link in links.items() if link}}

    def _clean(self, text: str) -> str:
        """Return a text without credentials, places of this machine and halves of letters."""
        text = scrub_text(text.replace(f"{self._config.rootpath}{os.sep}", ""))
        scrub = scrubber_of(self._config)
        text = scrub(text) if scrub else text
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _values_of(key: str, value: Any) -> Iterator[Any]:
    """Yield what a JSON value has under a key, wherever in it."""
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from _values_of(key, part)
    if isinstance(value, dict) and key in value:
        yield value[key]


def _text_of_failure(report: pytest.TestReport | pytest.CollectReport) -> str:
    # Not `longreprtext`, which starts with the worker and its interpreter.
    return str(report.longrepr).strip("\n")
