"""Collects the report of a run and writes it at the end, never in a worker."""

import json
import os
import tempfile
from collections.abc import Collection, Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import RegenError
from pytest_regen.files import replace_file
from pytest_regen.github import annotation_lines, append_summary, summary_file, wants_annotations
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.items import UnitItem, description_of, findings_json
from pytest_regen.pytest_plugin.names import node_command
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.pytest_plugin.places import look_at_store
from pytest_regen.pytest_plugin.recording.log import by_cause, cassette_log
from pytest_regen.pytest_plugin.report import (
    Json,
    ReportEntry,
    clean_report,
    report_of,
)
from pytest_regen.pytest_plugin.selection import from_rootdir, store_path
from pytest_regen.pytest_plugin.stash import SESSION_MAKERS, scrubber_of
from pytest_regen.pytest_plugin.summary import record_on
from pytest_regen.testing import FeedbackError
from pytest_regen.text import visible
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.summary import RunLog


_KEY = "regen_item"

_OTHER_ANNOTATOR = "pytest_github_actions_annotate_failures"
"""The entry point of the plugin that annotates every test that fails."""


def describe(item: pytest.Item, report: pytest.TestReport, error: BaseException | None) -> None:
    """Put the kind of one of our items on its report, and what is wrong with it."""
    kind, group, issues, command = "test", "tests", None, ""
    if isinstance(item, UnitItem):
        kind, group = item.look.kind_of(item.unit)
        if report.when == "call":
            issues, command = description_of(item, error)
    elif isinstance(error, FeedbackError):
        issues = _issues_from_test(item, error)
    if SESSION_MAKERS in item.stash:
        group = "sessions"
    # pytest-xdist carries what stands here as it is.
    report.__dict__[_KEY] = {
        "kind": kind,
        "group": group,
        "place": _place_of(item, report),
        "issues": issues,
        "next": command,
    }


def _place_of(item: pytest.Item, report: pytest.TestReport) -> tuple[str, int | None]:
    """Return the file, from the rootdir, and the line in which a test failed, or stands."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and Path(crash.path).is_relative_to(item.config.rootpath):
        return from_rootdir(Path(crash.path), item.config.rootpath), crash.lineno
    path, line, _ = report.location
    return path, None if line is None else line + 1


def description_on(report: pytest.TestReport) -> dict[str, Any] | None:
    """Return what ``describe`` put on a report."""
    return report.__dict__.get(_KEY)


def _issues_from_test(item: pytest.Item, error: FeedbackError) -> list[dict[str, Any]]:
    """Return the issues that a test failed with; with their file, if its store is known."""
    issues = [note for note in error.feedback if isinstance(note, Issue)]
    try:
        return findings_json(issues, look_at_store(item.config, store_path(item)))
    except (RegenError, pytest.UsageError):
        return findings_json(issues)


SUFFIXES = (".html", ".json")


def report_path(config: pytest.Config) -> Path:
    """Return the file that the report goes to; its folder is made and can be written.

    Raises:
        pytest.UsageError: the ending is no format, or nothing can be written there.
    """
    given = config.option.regen_report
    path = Path(
        os.path.normpath(config.invocation_params.dir / os.path.expanduser(given))  # noqa: PTH111
    )
    if path.suffix.lower() not in SUFFIXES:
        better = Path(given).with_suffix(".html") if Path(given).name else "report.html"
        raise usage_error(
            f"--regen-report {given}: no report ends in {path.suffix!r}",
            why=f"the ending chooses the format: {' or '.join(SUFFIXES)}",
            hint=f"--regen-report {better}",
        )
    try:
        if path.is_dir():
            raise _unwritable(given, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only writing shows whether one may write; after hours of tests it would be too late.
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _unwritable(given, error.strerror or str(error)) from None
    return path


def write_report(path: Path, text: str) -> None:
    """Write the report, whole or not at all.

    Raises:
        OSError: it cannot be written; an older report is as it was.
    """
    # The folder may have been cleared away by a test.
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text)


def _unwritable(given: str, why: str) -> pytest.UsageError:
    return usage_error(
        f"--regen-report {given} cannot be written",
        why=why,
        hint="name a file in a folder that can be written",
    )


_STOPPED = {3: "internal error", 4: "usage error"}
"""What ends a run early without saying so, by pytest's exit code."""


def report_to(config: pytest.Config, stores: Iterable[Path], summary: "RunLog") -> None:
    """Let the run end with the report that was asked for, and with the summary of its job.

    Args:
        config: pytest's configuration.
        stores: the stores of the run.
        summary: shows in the terminal what became of the report.

    Raises:
        pytest.UsageError: it could not be written where it is to go.
    """
    path = report_path(config) if config.option.regen_report is not None else None
    places = [from_rootdir(store, config.rootpath) for store in stores]
    log = _ReportLog(config, path, places, summary)
    config.pluginmanager.register(log, "regen-report")


class _ReportLog:
    """Writes ``--regen-report``.

    Args:
        config: pytest's configuration.
        path: the file, if one was asked for; its ending chooses the format.
        stores: the stores of the run, as node ids spell them.
        summary: shows in the terminal what became of the report.
    """

    def __init__(
        self,
        config: pytest.Config,
        path: Path | None,
        stores: Collection[str],
        summary: "RunLog",
    ) -> None:
        self._config = config
        self._choices = choices_of(config)
        self._path = path
        self._stores = frozenset(stores)
        self._summary = summary
        self._entries: dict[str, ReportEntry] = {}
        self._collection_errors: dict[str, Json] = {}
        self._stopped = ""
        self._annotations: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            error = {"id": report.nodeid, "text": _text_of_failure(report)}
            self._collection_errors[report.nodeid] = error

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a phase of one of our items ended."""
        description = description_on(report)
        # A worker that crashed sends a report that no item of its own has described.
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
            entry.issues = (
                description["issues"] if description["issues"] is not None else entry.issues
            )
            entry.command = description["next"] or entry.command
        record = record_on(report)
        if record is not None:
            entry.command = entry.command or record.next
        entry.heals = record.heals if record is not None else entry.heals
        entry.add_phase(self._category(report), _text_of(report))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note that the run ended before its end."""
        self._stopped = str(excinfo.value) or excinfo.typename

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Write the report, after all other plugins have decided how the run ends."""
        yield
        report = clean_report(self._report(session), self._clean)
        if self._path is not None:
            self._write(session, self._path, report)
        self._tell_github(report)

    def _tell_github(self, report: Json) -> None:
        """Write the job summary, and prepare the lines that GitHub makes annotations of."""
        job = summary_file()
        if job is not None:
            from pytest_regen.pytest_plugin.report_github import summary_blocks

            try:
                append_summary(job, summary_blocks(report, report["links"].get))
            except OSError as error:
                why = f"{error.strerror or error}: {job}"
                self._summary.notes.append(f"GITHUB_STEP_SUMMARY was not written: {why}")
        if wants_annotations(self._choices.annotations):
            from pytest_regen.pytest_plugin.report_github import annotations_of

            found = annotations_of(report, self._config.rootpath, leaves_out=self._is_annotated)
            self._annotations = list(annotation_lines(found))

    def _is_annotated(self, item: Json) -> bool:
        """Return whether pytest-github-actions-annotate-failures annotates an item as well."""
        return item["kind"] == "test" and self._config.pluginmanager.has_plugin(_OTHER_ANNOTATOR)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: "pytest.TerminalReporter"
    ) -> Generator[None, None, None]:
        """Print the annotations after all else: in the log they stand together."""
        yield
        for line in self._annotations:
            terminalreporter.write_line(visible(line))

    def _write(self, session: pytest.Session, path: Path, report: Json) -> None:
        place = os.path.relpath(path, self._config.invocation_params.dir)
        try:
            write_report(path, _render(report, path.suffix.lower()))
        except OSError as error:
            # Whoever asked for a report must not take a green run for one that has it.
            why = f"{error.strerror or error}: {place}"
            self._summary.report, self._summary.report_failed = f"no report: {why}", True
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        else:
            self._summary.report = f"report: {place}"

    def _category(self, report: pytest.TestReport) -> str:
        """Return pytest's word for how a phase ended, as the terminal has it."""
        found = self._config.hook.pytest_report_teststatus(report=report, config=self._config)
        return str(found[0]) if found else ""

    def _report(self, session: pytest.Session) -> Json:
        log = cassette_log(self._config)
        cassettes = {
            "drifted": sorted(log.drifted),
            "causes": [
                {"kind": kind, "cause": cause, "tests": tests}
                for (kind, cause), tests in by_cause(log.notes).items()
            ],
            "notes": sorted((note.to_json() for note in log.notes), key=json.dumps),
        }
        errors = list(self._collection_errors.values())
        report = report_of(self._run(session), self._entries.values(), errors, cassettes)
        return {**report, "links": self._links(report)}

    def _links(self, report: Json) -> dict[str, str]:
        """Return where the issue codes of a report are explained, of those that are."""
        from pytest_regen.links import code_link

        said = [heal["findings"] for item in report["items"] for heal in item["heals"]]
        said += [item["issues"] for item in report["items"]]
        said += [
            entry["issues"]
            for item in report["items"]
            for heal in item["heals"]
            for entry in heal["transcript"]
            if "issues" in entry
        ]
        codes = sorted({issue["code"] for issues in said for issue in issues if issue["code"]})
        docs_url = self._choices.settings.docs_url
        links = {code: code_link(code, docs_url=docs_url) for code in codes}
        return {code: link for code, link in links.items() if link}

    def _run(self, session: pytest.Session) -> Json:
        choices = self._choices
        stopped = session.shouldfail or session.shouldstop or self._stopped
        return {
            "mode": self._mode,
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
            "prompt_faults": [fault.to_json() for fault in self._summary.prompt_faults],
            "notes": sorted(self._summary.all_notes),
            "next": self._summary.next_command,
        }

    @property
    def _mode(self) -> str:
        if self._config.option.collectonly:
            return "collect"
        if self._choices.dry_run:
            return "dry_run"
        return "heal" if self._choices.heal else "gate"

    def _clean(self, text: str) -> str:
        """Return a text without credentials, places of this machine and halves of letters."""
        text = scrub_text(text.replace(f"{self._config.rootpath}{os.sep}", ""))
        scrub = scrubber_of(self._config)
        text = scrub(text) if scrub else text
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _text_of(report: pytest.TestReport) -> str:
    """Return what pytest shows of a phase that went wrong, or why it was skipped."""
    if report.failed:
        return _text_of_failure(report)
    if not report.skipped:
        return ""
    reason = getattr(report, "wasxfail", None)
    where = report.longrepr
    return str(reason or (where[-1] if isinstance(where, tuple) else ""))


def _text_of_failure(report: pytest.TestReport | pytest.CollectReport) -> str:
    # Not `longreprtext`, which starts with the worker and its interpreter.
    return str(report.longrepr).strip("\n")


def _render(report: Json, suffix: str) -> str:
    if suffix == ".json":
        return json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    from pytest_regen.pytest_plugin.report_page import page_of

    return page_of(report)
