"""The end of a run: what was regenerated, what was not and why, what changed, what comes next."""

import gc
import shlex
import time
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_regen.pytest_plugin.choices import Choices
from pytest_regen.pytest_plugin.project import from_here, id_from_here, text_from_here
from pytest_regen.pytest_plugin.stash import RECORD_KEY, notes_on_models, used_sandbox
from pytest_regen.text import plural, shorten, visible

if TYPE_CHECKING:
    from pytest_regen.turns.values import Usage


Outcome = Literal["regenerated", "pending", "failed", "skipped", "planned"]
"""``pending``: what would have been kept waits for review, and the item fails as before."""

REVIEW = "pytest-regen review"
"""What comes next where candidates wait."""

_RECORD: "pytest.StashKey[Record]" = pytest.StashKey()


@dataclass(frozen=True, slots=True)
class HealReport:
    """The work on one type, as the summary shows it."""

    unit: str
    """``STORE::Type``."""
    outcome: Outcome
    stop_reason: str = ""
    attempts: int = 1
    """Calls of the test, the first included."""
    calls: int = 0
    """Requests made."""
    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    cache_write: int = 0
    """The part of ``tokens_in`` that was written to the prompt cache."""
    pages: list[int] = field(default_factory=list)
    """Pages whose new output is now the stored one, or would be asked in a dry run."""
    estimate: int = 0
    """Tokens a dry run expects to send."""
    changed: list[str] = field(default_factory=list)
    """Files written, from the rootdir."""
    cassette: str = ""
    """Where turns are recorded, from the rootdir."""
    diff: str = ""
    why: str = ""
    """What stood in the way."""
    next: str = ""
    """The command to run next."""
    emulated: bool = False
    by_template: bool = False
    """Whether no model was asked."""
    cost_usd: str | None = None
    """What live calls cost; ``None`` where that is not known."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    """What was wrong before: issues as ``findings_json`` has them."""
    transcript: list[dict[str, Any]] = field(default_factory=list)
    """What was said, where a report was asked for; see ``transcripts``."""
    has_pages: bool = True
    """Whether it is a type, which has pages; a unit is asked for as a whole."""
    pending: list[str] = field(default_factory=list)
    """The id of the candidate that waits for review."""


@dataclass(slots=True)
class Record:
    """Everything the summary needs to know about one item."""

    heals: list[HealReport] = field(default_factory=list)
    warnings: list[list[str]] = field(default_factory=list)
    """Each with the id that it is about, where that is not the item's, and its text."""
    notes: list[str] = field(default_factory=list)
    """Shown once per run, however many items have it."""
    not_run: list[str] = field(default_factory=list)
    """A store whose code was not run, and why."""
    only_read: str = ""
    """The id of a function that nothing in the run calls."""
    next: str = ""
    """The command that ends the warnings, or the failure."""
    outdated: str = ""
    """The place of the store that this command makes anew."""
    sandbox: str = ""
    """The level of the sandbox that verdicts came from, if any did."""
    has_run: bool = False
    """Whether code was run at it, here and now."""
    old_modules: list[str] = field(default_factory=list)
    """Files that were healed after this process had imported them: the test ran on what was."""
    passed_apart: bool = False
    """Whether the test failed on such a module, and passed in a process of its own."""


def tokens_of(usage: "Usage") -> dict[str, Any]:
    """Return tokens as ``HealReport`` has them; those written to the cache were read anew."""
    written = usage.cache_write_tokens or 0
    return {
        "tokens_in": (usage.input_tokens or 0) + written,
        "tokens_out": usage.output_tokens or 0,
        "cache_read": usage.cache_read_tokens or 0,
        "cache_write": written,
    }


def record_of(item: pytest.Item) -> Record:
    """Return what is known of an item, to be added to; the report of its call carries it."""
    return item.stash.setdefault(_RECORD, Record())


def add_heal(item: pytest.Item, heal: HealReport) -> None:
    """Remember the work on one type, for the summary and for report readers."""
    record = record_of(item)
    if heal.outcome == "regenerated":
        # The item passes now, so that earlier attempts that failed need no next step.
        record.heals = [replace(vain, outcome="skipped", next="") for vain in record.heals]
    record.heals.append(heal)
    # Nothing is tried after what lets the item pass; before it, the first attempt is its own.
    shown, heals = heal if heal.outcome == "regenerated" else record.heals[0], record.heals
    properties: dict[str, object] = {
        "outcome": shown.outcome,
        "stop_reason": shown.stop_reason,
        "attempts": max(work.attempts for work in heals),
        "calls": sum(work.calls for work in heals),
        "tokens": sum(work.tokens_in + work.tokens_out + work.cache_read for work in heals),
        "tokens_in": sum(work.tokens_in for work in heals),
        "tokens_out": sum(work.tokens_out for work in heals),
        "pages": ",".join(f"{work.unit}:{page}" for work in heals for page in work.pages),
    }
    foreign = [entry for entry in item.user_properties if not entry[0].startswith("regen.")]
    item.user_properties[:] = foreign + [(f"regen.{key}", properties[key]) for key in properties]


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the item's record on the report of its call, if it has one."""
    level, has_run = used_sandbox()
    notes = notes_on_models()
    if level or notes:
        record = record_of(item)
        record.sandbox, record.has_run = level, has_run
        record.notes += notes
    record = item.stash.get(_RECORD, Record())
    # Of most items there is nothing to say, and there may be thousands.
    if record != Record():
        # pytest-xdist carries plain values only.
        report.__dict__[RECORD_KEY] = asdict(record)


def record_on(report: pytest.TestReport) -> Record | None:
    """Return the record a report carries."""
    data = report.__dict__.get(RECORD_KEY)
    if data is None:
        return None
    return Record(**{**data, "heals": [HealReport(**heal) for heal in data["heals"]]})


def heal_words(heal: HealReport) -> tuple[str, str]:
    """Return what came of the work on a unit: words before its name, and words behind it."""
    where = f" page {heal.pages[0]}" if len(heal.pages) == 1 else f" pages {heal.pages}"
    where = where if heal.pages and heal.has_pages else ""
    match heal.outcome:
        case "planned":
            about = f", about {heal.estimate:,} tokens in"
            asked = f"would ask{where or ' for it'}{about}"
            if heal.by_template:
                asked = f"would write{where or ' for it'} by the template"
            return "dry run:", f": {asked if heal.pages else 'nothing a reply could correct'}"
        case "regenerated":
            head, tail = "regenerated:", where
        case "pending":
            head, tail = "waits for review:", f" [{heal.pending[0]}]"
        case "failed":
            head, tail = "still failing:", f" [{heal.stop_reason}]"
        case _:
            head, tail = "not regenerated:", ""
    if heal.calls:
        cached = f", {heal.cache_read:,} read from the prompt cache" if heal.cache_read else ""
        cost = f", ${heal.cost_usd}" if heal.cost_usd else ""
        tail += f", {plural(heal.calls, 'call')}, {heal.tokens_in:,} tokens in"
        tail += f", {heal.tokens_out:,} out{cached}{cost}"
    elif heal.by_template:
        tail += ", by the template"
    return head, tail


Line = tuple[str, tuple[str, ...]]
"""A line of the summary, and how it is marked up."""

_COLOURS = {"planned": (), "regenerated": ("yellow",), "pending": ("yellow",)}

_TESTS = "\0"
"""Stands for the part of a command that names a test; other parts may say ``pytest``, too."""

_MOST_PATHS = 3
"""Paths that stand in a command before it is about all."""

_DIFF_LINES = 60
"""Lines of a diff that are printed."""


class RunLog:
    """Collects the records of a run and prints the summary at its end; not in workers."""

    def __init__(self, config: pytest.Config, choices: Choices) -> None:
        self._config = config
        self._choices = choices
        self._records: list[tuple[str, bool, Record]] = []
        """Node ids, whether the item failed, and its record."""
        self._has_failed = False
        """Whether a unit or a type fails."""
        self.notes: list[str] = list(choices.notes)
        """What was asked for and is not done, and the like; one line each."""
        self._started = time.time()
        self.sandbox = ""
        """The weakest level that verdicts came from, if any did."""
        self.fallen = ""
        """In what way that is not enough."""
        self.report = ""
        """What became of the report that was asked for."""
        self.report_failed = False
        """Whether it could not be written."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a worker or this process sent along."""
        if report.failed and "regen" in report.keywords:
            self._has_failed = True
        record = record_on(report)
        if record is None:
            return
        self._records.append((report.nodeid, report.failed, record))
        self.notes += [note for note in record.notes if note not in self.notes]
        if not record.sandbox or record.sandbox == self.sandbox:
            return
        from pytest_regen.sandbox.levels import is_weaker
        from pytest_regen.sandbox.verdicts import fallen_level

        if not self.sandbox or is_weaker(record.sandbox, self.sandbox):
            self.sandbox = record.sandbox
        settings = self._choices.settings
        self.fallen = fallen_level(self._config.rootpath, self.sandbox, settings.sandbox)

    # First, so that no plugin counts it as an ordinary pass.
    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """Count a test that passed only after regeneration as an outcome of its own."""
        # Only a record tells of one, and most of thousands of tests have none.
        if report.passed and RECORD_KEY in report.__dict__:
            # Lists under pytest-xdist, tuples without it.
            properties = map(tuple, getattr(report, "user_properties", ()))
            if ("regen.outcome", "regenerated") in properties:
                return "regenerated", "G", ("REGENERATED", {"yellow": True})
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a green run that regenerated something, where the project wants that."""
        # Plugins that look for referrers at the end, as hypothesis does, must find all objects.
        gc.unfreeze()
        if self.gate and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: "pytest.TerminalReporter"
    ) -> Generator[None, None, None]:
        """Print our section after all others, if there is anything to show."""
        yield
        lines = [*self._note_lines(), *self._heal_lines()]
        lines += [*self._old_module_lines(), *self._last_lines()]
        if not lines:
            return
        terminalreporter.write_sep("=", "regen", purple=True)
        for line, colour in lines:
            terminalreporter.write_line(visible(line), **dict.fromkeys(colour, True))

    @property
    def all_notes(self) -> list[str]:
        """What is said once per run."""
        notes = list(self.notes)
        if self.fallen and not self._choices.in_ci:
            notes.append(f"note: {self.fallen}")
        not_run: dict[str, set[str]] = {}
        for _, _, record in self._records:
            if record.not_run:
                place, reason = record.not_run
                not_run.setdefault(reason, set()).add(place)
        for reason, stores in sorted(not_run.items()):
            notes.append(f"behaviour: not run for {plural(len(stores), 'store')}: {reason}")
        ids = sorted({record.only_read for _, _, record in self._records if record.only_read})
        if ids:
            notes.append(
                f"only read, not run: {shorten(ids)}; to run one, add an example (>>>) to "
                f'its docstring, or mark a test with @pytest.mark.regen(unit="{ids[0]}")'
            )
        return notes

    @property
    def _heals(self) -> list[HealReport]:
        return [heal for _, _, record in self._records for heal in record.heals]

    @property
    def _pending(self) -> list[str]:
        """The ids of the candidates that this run has left for review."""
        return list(dict.fromkeys(id_ for heal in self._heals for id_ in heal.pending))

    @property
    def _changed_paths(self) -> list[str]:
        return list(dict.fromkeys(path for heal in self._heals for path in heal.changed))

    @property
    def gate(self) -> str:
        """Why a green run exits with 1; empty where it does not."""
        if self.fallen and self._choices.in_ci:
            return self.fallen
        fail_on, changed = self._choices.fail_on, self._changed_paths
        what = "a file with units was changed" if changed else ""
        if any(Path(path).name == "pages.json" for path in changed):
            what = "a store was changed"
        if fail_on == "regenerated" and any(heal.outcome == "regenerated" for heal in self._heals):
            what = what or "a test passed only after another turn"
            return f"{what} and regen_fail_on = regenerated"
        if fail_on == "auto" and self._choices.in_ci and changed:
            return f"{what} and CI is set (regen_fail_on = auto)"
        return ""

    def _note_lines(self) -> Iterable[Line]:
        for note in self.all_notes:
            yield note, ("yellow",)
        alike: dict[str, list[str]] = {}
        for nodeid, _, record in self._records:
            for other, text in record.warnings:
                alike.setdefault(text, []).append(id_from_here(other or nodeid, self._config))
        for text, ids in alike.items():
            yield f"warning: {shorten(ids)}: {text}", ("yellow",)

    def _heal_lines(self) -> Iterable[Line]:
        alike: dict[tuple[object, ...], list[HealReport]] = {}
        for number, heal in enumerate(self._heals):
            # Several that were left alone for the same reason are told together.
            is_alone = heal.calls or not heal.why
            key = (number,) if is_alone else (heal.outcome, heal.stop_reason, heal.why)
            alike.setdefault(key, []).append(heal)
        for heals in alike.values():
            heal, (head, tail) = heals[0], heal_words(heals[0])
            units = dict.fromkeys(id_from_here(work.unit, self._config) for work in heals)
            yield f"{head} {shorten(list(units))}{tail}", _COLOURS.get(heal.outcome, ("red",))
            if heal.outcome == "planned":
                continue
            for line in text_from_here(heal.why, self._config).splitlines():
                yield f"  {line}", ()
            lines = heal.diff.splitlines()
            for line in lines[:_DIFF_LINES]:
                yield f"  {line}", {"+": ("green",), "-": ("red",)}.get(line[:1], ())
            if len(lines) > _DIFF_LINES:
                more = len(lines) - _DIFF_LINES
                yield f"  … {more} more lines, in git diff or the report of --regen-report", ()
        if any(heal.emulated for heal in self._heals):
            yield "emulated: replies came from the emulator or its recordings, not from a model", ()

    def _old_module_lines(self) -> Iterable[Line]:
        old: dict[tuple[str, bool], list[str]] = {}
        for nodeid, _, record in self._records:
            for place in record.old_modules:
                tests = old.setdefault((place, record.passed_apart), [])
                tests.append(id_from_here(nodeid, self._config))
        for (path, passed_apart), tests in sorted(old.items()):
            place = self._here(path)
            line = f"ran on {place} as it was before, run again: {shorten(tests)}"
            if passed_apart:
                line = f"passed in a process of its own, with the new {place}: {shorten(tests)}"
            yield line, ("yellow",)

    def _last_lines(self) -> Iterable[Line]:
        if pending := self._pending:
            verb = "waits" if len(pending) == 1 else "wait"
            yield f"{plural(len(pending), 'candidate')} {verb} for review: {REVIEW}", ("yellow",)
        changed = self._changed_paths
        # Those of answers that were not kept as well, because the next run replays them.
        cassettes = [heal.cassette for heal in self._heals if heal.calls and heal.cassette]
        if written := dict.fromkeys([*changed, *filter(self._is_new, cassettes)]):
            yield f"changed: {', '.join(map(self._here, written))}", ()
        if self.gate:
            todo = "; commit the change" if changed else ""
            yield f"exit 1: {self.gate}{todo}", ("red",)
        if any(record.has_run for _, _, record in self._records):
            from pytest_regen.sandbox.levels import level_line

            yield level_line(self.sandbox), ()
        if self.report:
            yield self.report, ("red",) if self.report_failed else ()
        if following := self.next_command:
            yield f"next: {text_from_here(following, self._config)}", ("bold",)

    def _is_new(self, place: str) -> bool:
        """Return whether a file was written since the run began."""
        try:
            return (self._config.rootpath / place).stat().st_mtime >= self._started
        except OSError:
            return False

    @property
    def next_command(self) -> str:
        """What to run next; empty where nothing is left to do."""
        if self._pending:
            return REVIEW
        commands = [
            (nodeid, heal.next)
            for nodeid, _, record in self._records
            for heal in record.heals
            if heal.next
        ]
        if commands:
            return self._leading(commands)
        changed, root = self._changed_paths, self._config.rootpath
        # Without a repository nothing can show the change, and another run can only confirm it.
        if changed and not any((folder / ".git").exists() for folder in (root, *root.parents)):
            return "pytest"
        if changed:
            paths = [Path(self._here(path)) for path in changed if Path(path).name != ".regen"]
            stores = {path.parent for path in paths if path.name == "pages.json"}
            places = dict.fromkeys(
                str(path.parent if path.parent in stores else path) for path in paths
            )
            return shlex.join(["git", "diff", *(places if len(places) <= _MOST_PATHS else ())])
        # Beside what fails, warnings have no say.
        records = [entry for entry in self._records if entry[1] == self._has_failed]
        best = self._leading([(nodeid, record.next) for nodeid, _, record in records])
        outdated = {record.next: record.outdated for _, _, record in records if record.outdated}
        if best in outdated and len(set(outdated.values())) > 1:
            from pytest_regen.regeneration.document_stores import command_for_all

            # The first decides which document is meant.
            folders = (outdated[best], *sorted(set(outdated.values())))
            return command_for_all([root / folder for folder in folders]) or best
        return best

    def _leading(self, commands: list[tuple[str, str]]) -> str:
        """Return the command that helps most items: what several need alike is run for all.

        It is the same one in every run: of equals, that of the first item.
        """
        alike: dict[str, list[str]] = {}
        for nodeid, command in sorted(commands):
            if command:
                # Without its node, so that the same command about two items is the same text.
                alone = f"pytest {shlex.quote(id_from_here(nodeid, self._config))}"
                alike.setdefault(command.replace(alone, _TESTS, 1), []).append(command)
        if not alike:
            return ""
        common, own = max(alike.items(), key=lambda entry: len(entry[1]))
        if len(set(own)) < 2:
            return own[0]
        option = self._config.option
        chosen = [*option.file_or_dir]
        chosen += ["-k", option.keyword] if option.keyword else []
        chosen += ["-m", option.markexpr] if option.markexpr else []
        return common.replace(_TESTS, shlex.join(["pytest", *map(str, chosen)]), 1)

    def _here(self, path: str) -> str:
        """Return a path from the rootdir as it is seen from where pytest was called."""
        return from_here(self._config.rootpath / path, self._config)
