"""The end of a run: what was regenerated, what was not and why, what changed, what comes next."""

import gc
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import pytest

from pytest_regen.pytest_plugin.choices import Choices
from pytest_regen.pytest_plugin.selection import from_here, id_from_here, text_from_here
from pytest_regen.pytest_plugin.stash import RECORD_KEY, notes_on_models, used_sandbox
from pytest_regen.text import plural, visible

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.hyperlinks import CodeLinks
    from pytest_regen.regeneration.prompt_faults import PromptFault
    from pytest_regen.turns.values import Usage
    from pytest_regen.validation.issues import Issue


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
    cost: str = ""
    """US dollars that live calls cost; empty where that is not known."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    """What was wrong before: issues as ``findings_json`` has them."""
    ordered: list[dict[str, Any]] = field(default_factory=list)
    """Errors that the prompts ask for themselves: ``code``, ``finding``, ``message``, ``field``."""
    transcript: list[dict[str, Any]] = field(default_factory=list)
    """What was said, where a report was asked for; see ``transcripts``."""
    has_pages: bool = True
    """Whether it is a type, which has pages; a unit is asked for as a whole."""
    pending: list[str] = field(default_factory=list)
    """The id of the candidate that waits for review."""

    @property
    def is_ordered(self) -> bool:
        """Whether nothing is wrong but what the prompts ask for; of all such, one line is shown."""
        return self.outcome == "failed" and self.stop_reason == "unfixable" and bool(self.ordered)

    @property
    def tokens(self) -> int:
        """Tokens that passed through the model."""
        return self.tokens_in + self.tokens_out + self.cache_read


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

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the record that ``to_json`` made."""
        known = {entry.name: data[entry.name] for entry in fields(cls)}
        return cls(**{**known, "heals": [HealReport(**heal) for heal in data["heals"]]})


def tokens_in(usage: "Usage") -> int:
    """Return the tokens that were read anew, those written to the prompt cache included."""
    return (usage.input_tokens or 0) + (usage.cache_write_tokens or 0)


def _record_of(item: pytest.Item) -> Record:
    return item.stash.setdefault(_RECORD, Record())


def add_warnings(
    item: pytest.Item,
    issues: "Iterable[Issue]",
    *,
    note: str = "",
    not_run: tuple[str, str] | None = None,
    command: str = "",
    outdated: str = "",
    id_of: "Callable[[Issue], str]" = lambda _: "",
) -> None:
    """Remember the warnings of a type; a later validation of it replaces them.

    Args:
        item: the type.
        issues: its warnings.
        note: about its store, shown once per run.
        not_run: the place of its store and why its code was not run, where it was not.
        command: what ends the warnings, or the failure.
        outdated: the place of its store, where the command makes that anew.
        id_of: returns what a warning is about, "" where that is the item.
    """
    warnings = [[id_of(issue), f"{issue.code}: {issue.message}"] for issue in issues]
    # Most items have none.
    if warnings or note or not_run or command or _RECORD in item.stash:
        record = _record_of(item)
        record.warnings, record.notes, record.next = warnings, [note] if note else [], command
        record.not_run, record.outdated = list(not_run or ()), outdated


def note_only_read(item: pytest.Item, id_: str) -> None:
    """Remember that a function was checked and that nothing in the run calls it.

    Args:
        item: the function.
        id_: as marks name it.
    """
    _record_of(item).only_read = id_


def note_command(item: pytest.Item, command: str | None, *notes: str) -> None:
    """Remember what heals a failing item, and what is to be said of it once per run."""
    record = _record_of(item)
    record.next = record.next if command is None else command
    record.notes = [*record.notes, *notes]


def note_old_module(item: pytest.Item, place: str, *, passed_apart: bool = False) -> None:
    """Remember that a test ran on a module as it was before it was healed.

    Args:
        item: the test.
        place: the file, from the rootdir.
        passed_apart: whether it passed in a process of its own afterwards.
    """
    record = _record_of(item)
    is_told = record.passed_apart or any(heal.outcome == "regenerated" for heal in record.heals)
    if is_told and not passed_apart:
        return
    record.old_modules = list(dict.fromkeys((*record.old_modules, place)))
    record.passed_apart = record.passed_apart or passed_apart


def add_heal(item: pytest.Item, heal: HealReport) -> None:
    """Remember the work on one type, for the summary and for report readers."""
    record = _record_of(item)
    if heal.outcome == "regenerated":
        # The item passes now, so that earlier attempts that failed need no next step.
        record.heals = [replace(vain, outcome="skipped", next="") for vain in record.heals]
    record.heals.append(heal)
    mine = [entry for entry in item.user_properties if not entry[0].startswith("regen.")]
    item.user_properties[:] = mine + _properties(record.heals)


def _properties(heals: list[HealReport]) -> list[tuple[str, object]]:
    # Nothing is tried after what lets the item pass.
    passes = heals[-1].outcome == "regenerated"
    shown = heals[-1] if passes else heals[0]
    return [
        ("regen.outcome", shown.outcome),
        ("regen.stop_reason", shown.stop_reason),
        ("regen.attempts", max(heal.attempts for heal in heals)),
        ("regen.calls", sum(heal.calls for heal in heals)),
        ("regen.tokens", sum(heal.tokens for heal in heals)),
        ("regen.tokens_in", sum(heal.tokens_in for heal in heals)),
        ("regen.tokens_out", sum(heal.tokens_out for heal in heals)),
        ("regen.pages", ",".join(f"{heal.unit}:{page}" for heal in heals for page in heal.pages)),
    ]


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the item's record on the report of its call, if it has one."""
    if report.when != "call":
        return
    level, has_run = used_sandbox()
    if level:
        _record_of(item).sandbox = level
        _record_of(item).has_run = has_run
    if notes := notes_on_models():
        note_command(item, None, *notes)
    record = item.stash.get(_RECORD, None)
    if record is not None:
        report.__dict__[RECORD_KEY] = record.to_json()


def record_on(report: pytest.TestReport) -> Record | None:
    """Return the record a report carries."""
    data = report.__dict__.get(RECORD_KEY)
    return None if data is None else Record.from_json(data)


_ALIKE = 5
"""Warnings in the same words that are printed of one file before the rest is counted."""

_MOST_PATHS = 3
"""Paths that stand in a command before it is about all."""

_DIFF_LINES = 60
"""Lines of a diff that are printed; the whole is in a file."""


class RunLog:
    """Collects the records of a run and prints the summary at its end; not in workers."""

    def __init__(self, config: pytest.Config, choices: Choices) -> None:
        self._config = config
        self._choices = choices
        self._by_item: list[tuple[str, HealReport]] = []
        """Node ids, and the work on a type that each has led to."""
        self._warnings: list[tuple[str, str]] = []
        """Node ids as they are seen from where pytest was called, and what is reported of them."""
        self._has_failed = False
        """Whether a unit or a type fails."""
        self._commands: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
        """Node ids, and what mends those that fail; and what ends the warnings of the others."""
        self._outdated: dict[str, str] = {}
        """Commands that make a store anew, and the place of the store."""
        self._old_modules: dict[tuple[str, bool], list[str]] = {}
        """The tests that ran on what a file was before it was healed, and whether they passed in
        a process of their own."""
        self.notes: list[str] = list(choices.notes)
        """What was asked for and is not done, and the like; one line each."""
        self._started = time.time()
        self.sandbox = ""
        """The weakest level that verdicts came from, if any did."""
        self._has_run = False
        self.fallen = ""
        """In what way that is not enough."""
        self._not_run: dict[str, set[str]] = {}
        """Why code was not run, and the stores it is of."""
        self._only_read: list[str] = []
        """The functions that nothing in the run calls."""
        self.report = ""
        """What became of the report that was asked for."""
        self.report_failed = False
        """Whether it could not be written."""
        self.links: CodeLinks | None = None
        """What makes links of codes, on a terminal that shows some."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a worker or this process sent along."""
        self._has_failed |= report.failed and "regen" in report.keywords
        record: Record | None = record_on(report)
        if record is None:
            return
        self._by_item += [(report.nodeid, heal) for heal in record.heals]
        here = id_from_here(report.nodeid, self._config)
        self._warnings += [
            (id_from_here(other, self._config) if other else here, warning)
            for other, warning in record.warnings
        ]
        if record.next:
            self._commands[report.failed].append((report.nodeid, record.next))
        if record.outdated:
            self._outdated[record.next] = record.outdated
        self.notes += [note for note in record.notes if note not in self.notes]
        self._note_level(record.sandbox)
        self._has_run = self._has_run or record.has_run
        if record.not_run:
            place, reason = record.not_run
            self._not_run.setdefault(reason, set()).add(place)
        if record.only_read:
            self._only_read.append(record.only_read)
        for place in record.old_modules:
            self._old_modules.setdefault((place, record.passed_apart), []).append(here)

    def _note_level(self, level: str) -> None:
        """Keep the weakest level that code was run at, and in what way that is not enough."""
        if not level or level == self.sandbox:
            return
        from pytest_regen.sandbox.levels import is_weaker
        from pytest_regen.sandbox.verdicts import fallen_level

        if not self.sandbox or is_weaker(level, self.sandbox):
            self.sandbox = level
        settings = self._choices.settings
        self.fallen = fallen_level(self._config.rootpath, self.sandbox, settings.sandbox)

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
        commands = self._commands[self._has_failed]
        parts = self._heals, self._warnings, commands, self.all_notes, self._old_modules
        if not (any(parts) or self._has_run or self.gate or self.report):
            return
        terminalreporter.write_sep("=", "regen", purple=True)
        for line, colour in self._lines():
            shown = visible(line)
            if self.links is not None:
                shown = self.links.text(shown)
            terminalreporter.write_line(shown, **dict.fromkeys(colour, True))

    @property
    def all_notes(self) -> list[str]:
        """What is said once per run."""
        not_run = [
            f"behaviour: not run for {plural(len(stores), 'store')}: {reason}"
            for reason, stores in sorted(self._not_run.items())
        ]
        fallen = [f"note: {self.fallen}"] if self.fallen and not self._choices.in_ci else []
        return [*self.notes, *fallen, *not_run, *self._only_read_note()]

    def _only_read_note(self) -> Iterable[str]:
        if not self._only_read:
            return
        ids = sorted(dict.fromkeys(self._only_read))
        is_one = len(ids) == 1
        verb, they, them = ("was", "it has", "it") if is_one else ("were", "they have", "them")
        yield (
            f"{plural(len(ids), 'function')} {verb} only read, not run: {they} no example in the "
            f"docstring, and no test of this run is marked for {them}: {_some(ids)}; "
            f"add an example (>>>), or mark a test with "
            f'@pytest.mark.regen(unit="{ids[0]}")'
        )

    @property
    def _heals(self) -> list[HealReport]:
        return [heal for _, heal in self._by_item]

    @property
    def prompt_faults(self) -> "tuple[PromptFault, ...]":
        """Errors that the prompts ask for, each once with all types that have it."""
        from pytest_regen.regeneration.prompt_faults import prompt_faults
        from pytest_regen.validation.issues import Issue

        return prompt_faults(
            (
                id_from_here(heal.unit, self._config),
                Issue.of(
                    entry["code"], entry["message"], field=entry["field"], finding=entry["finding"]
                ),
            )
            for heal in self._heals
            for entry in heal.ordered
        )

    @property
    def pending(self) -> list[str]:
        """The ids of the candidates that this run has left for review."""
        return list(dict.fromkeys(id_ for heal in self._heals for id_ in heal.pending))

    @property
    def _changed_paths(self) -> list[str]:
        return list(dict.fromkeys(path for heal in self._heals for path in heal.changed))

    @property
    def _written_paths(self) -> list[str]:
        """What this run has changed, the recordings it made on the way included."""
        heals = [heal for heal in self._heals if heal.changed and heal.cassette]
        cassettes = [heal.cassette for heal in heals if self._is_new(heal.cassette)]
        return list(dict.fromkeys([*self._changed_paths, *cassettes]))

    def _is_new(self, place: str) -> bool:
        """Return whether a file was written since the run began."""
        try:
            return (self._config.rootpath / place).stat().st_mtime >= self._started
        except OSError:
            return False

    @property
    def gate(self) -> str:
        """Why a green run exits with 1; empty where it does not."""
        fail_on, changed = self._choices.fail_on, bool(self._changed_paths)
        if self.fallen and self._choices.in_ci:
            return self.fallen
        if fail_on == "regenerated" and any(heal.outcome == "regenerated" for heal in self._heals):
            what = self._what_changed or "a test passed only after another turn"
            return f"{what} and regen_fail_on = regenerated"
        if fail_on == "auto" and self._choices.in_ci and changed:
            return f"{self._what_changed} and CI is set (regen_fail_on = auto)"
        return ""

    @property
    def _what_changed(self) -> str:
        if any(Path(path).name == "pages.json" for path in self._changed_paths):
            return "a store was changed"
        return "a file with units was changed" if self._changed_paths else ""

    def _lines(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        for note in self.all_notes:
            yield note, ("yellow",)
        for warning in self._warning_lines():
            yield f"warning: {warning}", ("yellow",)
        alike: dict[tuple[object, ...], list[HealReport]] = {}
        for number, heal in enumerate(self._heals):
            is_alone = heal.calls or not heal.why
            key = (number,) if is_alone else (heal.outcome, heal.stop_reason, heal.why)
            alike.setdefault(key, []).extend([heal] if not heal.is_ordered else [])
        for heals in filter(None, alike.values()):
            yield from self._heal_lines(heals)
        for fault in self.prompt_faults:
            yield f"unfixable: {fault}", ("red",)
        if any(heal.emulated for heal in self._heals):
            yield "emulated: replies came from the emulator or its recordings, not from a model", ()
        for (place, passed_apart), tests in sorted(self._old_modules.items()):
            yield self._old_module_line(place, tests, passed_apart=passed_apart), ("yellow",)
        yield from self._last_lines()

    def _last_lines(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        if self.pending:
            verb = "waits" if len(self.pending) == 1 else "wait"
            count = plural(len(self.pending), "candidate")
            yield f"{count} {verb} for review: {REVIEW}", ("yellow",)
        if self._changed_paths:
            yield f"changed: {', '.join(map(self._here, self._written_paths))}", ()
        if self.gate:
            todo = "; commit the change" if self._changed_paths else ""
            yield f"exit 1: {self.gate}{todo}", ("red",)
        if self._has_run:
            from pytest_regen.sandbox.levels import level_line

            yield level_line(self.sandbox), ()
        if self.report:
            yield self.report, ("red",) if self.report_failed else ()
        following = self.next_command
        if following:
            yield f"next: {text_from_here(following, self._config)}", ("bold",)

    def _old_module_line(self, place: str, tests: list[str], *, passed_apart: bool) -> str:
        shown = _some(tests)
        if passed_apart:
            return f"passed in a process of its own, with the new {self._here(place)}: {shown}"
        return f"ran on {self._here(place)} as it was before, run again: {shown}"

    def _warning_lines(self) -> Iterable[str]:
        """Yield the warnings; of those that many items of one file share, the first and a count."""
        counts = Counter((nodeid.partition("::")[0], text) for nodeid, text in self._warnings)
        seen: Counter[tuple[str, str]] = Counter()
        for nodeid, text in self._warnings:
            place = nodeid.partition("::")[0]
            seen[place, text] += 1
            if seen[place, text] <= _ALIKE:
                yield f"{nodeid}: {text}"
            elif seen[place, text] == counts[place, text]:
                yield f"{place}: {counts[place, text] - _ALIKE:,} more: {text}"

    def _heal_lines(self, heals: list[HealReport]) -> Iterable[tuple[str, tuple[str, ...]]]:
        """Yield what came of one unit, or of several that were left alone for the same reason."""
        heal = heals[0]
        unit = _some(list(dict.fromkeys(id_from_here(each.unit, self._config) for each in heals)))
        pages = f"page {heal.pages[0]}" if len(heal.pages) == 1 else f"pages {heal.pages}"
        match heal.outcome:
            case "planned":
                asked = "nothing a reply could correct"
                if heal.pages:
                    asked = pages if heal.has_pages else "for it"
                    asked = (
                        f"would write {asked} by the template"
                        if heal.by_template
                        else f"would ask {asked}, about {heal.estimate:,} tokens in"
                    )
                yield f"dry run: {unit}: {asked}", ()
                return
            case "regenerated":
                where = f" {pages}" if heal.pages and heal.has_pages else ""
                head, colour = f"regenerated: {unit}{where}", ("yellow",)
            case "pending":
                head, colour = f"waits for review: {unit} [{heal.pending[0]}]", ("yellow",)
            case "failed":
                head, colour = f"still failing: {unit} [{heal.stop_reason}]", ("red",)
            case _:
                head, colour = f"not regenerated: {unit}", ("red",)
        if heal.calls:
            head += f", {plural(heal.calls, 'call')}, {_tokens(heal)}"
        elif heal.by_template:
            head += ", by the template"
        yield head, colour
        for line in text_from_here(heal.why, self._config).splitlines():
            yield f"  {line}", ()
        yield from self._diff_lines(heal)

    def _diff_lines(self, heal: HealReport) -> Iterable[tuple[str, tuple[str, ...]]]:
        lines = heal.diff.splitlines()
        for line in lines[:_DIFF_LINES]:
            colour = {"+": ("green",), "-": ("red",)}.get(line[:1], ())
            yield f"  {line}", colour
        if len(lines) > _DIFF_LINES:
            path = self._whole_diff(heal)
            yield f"  … {len(lines) - _DIFF_LINES} more lines: {path}", ()

    def _whole_diff(self, heal: HealReport) -> str:
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
        if self.pending:
            return REVIEW
        commands = [(nodeid, heal.next) for nodeid, heal in self._by_item if heal.next]
        if commands:
            return self._leading(commands)
        if self._changed_paths and not self._is_in_git:
            return "pytest"
        if self._changed_paths:
            sources = [path for path in self._changed_paths if Path(path).name != ".regen"]
            paths = [Path(self._here(path)) for path in sources]
            stores = {path.parent for path in paths if path.name == "pages.json"}
            shown = dict.fromkeys(
                str(path.parent if path.parent in stores else path) for path in paths
            )
            return shlex.join(["git", "diff", *(shown if len(shown) <= _MOST_PATHS else ())])
        # Beside what fails, warnings have no say.
        commands = self._commands[self._has_failed]
        best = self._leading(commands)
        outdated = {self._outdated[each] for _, each in commands if each in self._outdated}
        if best in self._outdated and len(outdated) > 1:
            from pytest_regen.regeneration.document_stores import command_for_all

            places = (self._outdated[best], *sorted(outdated))
            return command_for_all([self._config.rootpath / each for each in places]) or best
        return best

    def _leading(self, commands: list[tuple[str, str]]) -> str:
        """Return the command that helps most items: what several need alike is run for all.

        It is the same one in every run: of equals, that of the first item.
        """
        alike: dict[str, list[str]] = {}
        for nodeid, command in sorted(commands):
            own = f"pytest {shlex.quote(id_from_here(nodeid, self._config))}"
            alike.setdefault(command.replace(own, "pytest", 1), []).append(command)
        common = max(alike, key=lambda each: len(alike[each]), default="")
        if len(set(alike.get(common, ()))) < 2:
            return min(alike.get(common, ()), default="")
        option = self._config.option
        chosen = [*option.file_or_dir]
        chosen += ["-k", option.keyword] if option.keyword else []
        chosen += ["-m", option.markexpr] if option.markexpr else []
        return common.replace("pytest", shlex.join(["pytest", *map(str, chosen)]), 1)

    @property
    def _is_in_git(self) -> bool:
        root = self._config.rootpath
        return any((folder / ".git").exists() for folder in (root, *root.parents))

    def _here(self, path: str) -> str:
        """Return a path from the rootdir as it is seen from where pytest was called."""
        return from_here(self._config.rootpath / path, self._config)


def _some(names: list[str]) -> str:
    """Return names in a line; of many the first, and a count."""
    more = f" and {len(names) - _ALIKE:,} more" if len(names) > _ALIKE else ""
    return f"{', '.join(names[:_ALIKE])}{more}"


def _tokens(heal: HealReport) -> str:
    read = f", {heal.cache_read:,} read from the prompt cache" if heal.cache_read else ""
    cost = f", ${heal.cost}" if heal.cost else ""
    return f"{heal.tokens_in:,} tokens in, {heal.tokens_out:,} out{read}{cost}"
