"""Units as test items: which of them this run is about, and what is shown of one that fails."""

import gc
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.errors import KindError, RegenError
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.names import asking_options, cassette_of_unit, heal_command
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.selection import from_here, text_from_here
from pytest_regen.pytest_plugin.stash import raise_known_failure
from pytest_regen.pytest_plugin.summary import add_warnings, note_only_read
from pytest_regen.regeneration.flow import stages
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.text import excerpt, plural, visible
from pytest_regen.units.inventory import is_lost, lost_files, unmarked_kinds
from pytest_regen.units.loading import (
    PYTEST_LISTS,
    ProjectKinds,
    PytestLists,
    load_kinds,
    prepare_kinds,
)
from pytest_regen.units.naming import (
    adopt_command,
    command,
    decode_name,
    encode_name,
    forget_command,
    node_id,
    rebuild_command,
    unit_id,
)
from pytest_regen.units.place import UnitFile, open_units
from pytest_regen.validation.issues import Issue, ValidationResult

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

    from pytest_regen.units.view import FileUnits

DAMAGED = "file"
"""Name of the one item of a file whose units cannot be named."""

_SHOWN_NAMES = 12

_KINDS: pytest.StashKey[ProjectKinds] = pytest.StashKey()
_FILES: "pytest.StashKey[dict[Path, FileCheck]]" = pytest.StashKey()


@dataclass(slots=True)
class UnitSelection:
    """The files with units of this run, each with the names asked for."""

    names: dict[Path, set[str] | None] = field(default_factory=dict)
    """``None`` where all units of the file were asked for."""

    def add(self, path: Path, name: str | None) -> None:
        """Ask for one unit, or for all of a file."""
        asked = self.names.get(path, set())
        self.names[path] = None if name is None or asked is None else {*asked, name}


def kinds_of(config: pytest.Config) -> ProjectKinds:
    """Return the kinds of the project, loaded once.

    Raises:
        pytest.UsageError: one cannot be loaded.
    """
    if _KINDS not in config.stash:
        try:
            config.stash[_KINDS] = load_kinds(
                config.rootpath,
                choices_of(config).settings,
                lists=_pytest_lists(config),
            )
        except RegenError as error:
            raise plain_usage_error(str(error)) from None
    return config.stash[_KINDS]


def _pytest_lists(config: pytest.Config) -> PytestLists:
    lists = dict(PYTEST_LISTS)
    for key in lists:
        with suppress(ValueError):  # -p no:doctest: nobody knows its settings then.
            lists[key] = [str(value) for value in config.getini(key)]
    return lists


def select_units(config: pytest.Config, args: Sequence[str]) -> tuple[UnitSelection, list[str]]:
    """Return the units of this run, and the arguments that remain for pytest.

    Without a path on the command line all claimed files are in, whatever ``testpaths`` says; with
    paths, those that they name or contain.

    Raises:
        pytest.UsageError: a kind cannot be loaded, a glob matches nothing, two kinds claim one
            file, or a file has no unit of the name asked for.
    """
    selection = UnitSelection()
    kinds = kinds_of(config)
    try:
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            for path in (*kinds.files, *lost_files(kinds)):
                selection.add(path, None)
            return selection, list(args)
        return selection, [arg for arg in args if not _take(arg, config, kinds, selection)]
    except RegenError as error:
        raise plain_usage_error(str(error)) from None


def notes_on_kinds(config: pytest.Config) -> Iterator[str]:
    """Yield what is to be said of kinds without a unit, as their tests are not there either."""
    for what in unmarked_kinds(kinds_of(config)):
        yield f"note: {what}; next: pytest-regen init"


def _take(arg: str, config: pytest.Config, kinds: ProjectKinds, selection: UnitSelection) -> bool:
    """Add what an argument asks for; return whether pytest must not see it."""
    named, separator, text = arg.partition("::")
    path = Path(os.path.normpath(config.invocation_params.dir / named))
    if path.is_dir():
        if not separator:
            for below in kinds.below(path):
                selection.add(below, None)
        return False
    if kinds.kind_of(path) is None and not is_lost(kinds, path):
        return False
    selection.add(path, _known_name(config, path, text) if separator else None)
    return True


def _known_name(config: pytest.Config, path: Path, text: str) -> str:
    check = units_of(config, path)
    names = check.item_names
    for name in (decode_name(text), text):
        if name in names:
            return name
    shown = ", ".join(names[:_SHOWN_NAMES]) + ("" if len(names) <= _SHOWN_NAMES else ", …")
    raise usage_error(
        f"not found: {check.here}::{text}",
        why=f"the file has no unit {decode_name(text)!r}; it has {shown or 'none'}",
        hint=f"pytest --collect-only {shlex.quote(check.here)}",
    )


def units_of(config: pytest.Config, path: Path) -> "FileCheck":
    """Return what is known of a claimed file; read on first use."""
    checks = config.stash.setdefault(_FILES, {})
    if path not in checks:
        checks[path] = FileCheck(config, path)
    return checks[path]


def forget_units(config: pytest.Config, path: Path) -> None:
    """Drop what is known of a file, because it was written."""
    config.stash.setdefault(_FILES, {}).pop(path, None)


class FileCheck:
    """A file with units, as it stood when it was first looked at."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self.config = config
        self.path = path
        self.here = from_here(path, config)
        """As commands spell it."""

    @cached_property
    def file(self) -> UnitFile:
        """The file and its kind."""
        kinds = kinds_of(self.config)
        return open_units(
            kinds,
            self.path,
            ignore=choices_of(self.config).settings.ignored_codes,
            is_lost=is_lost(kinds, self.path),
        )

    @cached_property
    def units(self) -> "FileUnits":
        """What the file holds."""
        return self.file.open()

    @property
    def place(self) -> str:
        """The file as ids spell it."""
        return self.file.place

    def command_for(self, name: str) -> str:
        """Return the first of the commands that may be run about a unit; empty if there is none."""
        if not self.units.issues(name):
            return ""
        error = WrongUnitError(self, name, self.units.issues(name))
        return next((line.partition(":")[2].strip() for line in error.commands()), "")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The units that are asked for; none where nobody can say which there are."""
        try:
            found = self.units.names
        except RegenError:
            return ()  # The one item of the file fails with it.
        # They stay until the end of the run; searching them for garbage at each step costs more
        # than making them.
        gc.freeze()
        return found

    @cached_property
    def lost(self) -> "Mapping[str, Issue]":
        """What fails of the units that the ledger has and nobody asks for, by name."""
        try:
            lost = self.units.lost
        except RegenError:
            return {}
        return {one.type_name or "": one for one in lost if one.severity == "error"}

    @cached_property
    def item_names(self) -> tuple[str, ...]:
        """The units that have an item, and ``DAMAGED`` where the file itself has one."""
        names = (*self.names, *self.lost)
        try:
            has_own = not names or (DAMAGED not in names and self.units.file_issues)
        except RegenError:
            has_own = True
        return (*names, DAMAGED) if has_own else names

    def gate(self, name: str) -> tuple[tuple[Issue, ...], tuple[Issue, ...]]:
        """Return the issues that fail a unit, and those that are only reported.

        Raises:
            RegenError: the file or its ledger cannot be read, or the kind cannot say which units
                there are.
        """
        issues = self.issues(name)
        if name == self.item_names[0]:
            # What nobody misses has no item.
            issues += [one for one in self.units.orphans if one.severity == "warning"]
        return choices_of(self.config).gate(ValidationResult(tuple(issues)))

    def issues(self, name: str) -> list[Issue]:
        """Return what is wrong with what an item stands for; raises RegenError."""
        issues = [self.lost[name]] if name in self.lost else []
        if name in self.names:
            issues += self.units.issues(name)
        if name == DAMAGED:
            issues += self.units.file_issues
        return issues


def marked_units(item: pytest.Item) -> list[tuple[Path, str]]:
    """Return the units that the mark of a test names, as files and names.

    Raises:
        pytest.UsageError: one of them is not there.
    """
    config, found = item.config, []
    kinds = kinds_of(config)
    for named in regen_mark(item).units:
        place, separator, text = named.partition("::")
        path = kinds.absolute(place)
        try:
            is_claimed = kinds.kind_of(path) is not None
        except RegenError as error:
            raise plain_usage_error(str(error)) from None
        if not separator or not is_claimed:
            why = "no kind claims the file" if separator else "a unit is named path::name"
            raise usage_error(
                f"{item.nodeid}: regen(unit={named!r}): there is no such unit",
                why=f"{why}; paths begin at {config.rootpath}",
                hint="correct the mark",
            )
        found.append((path, _known_name(config, path, text)))
    return found


def waves_of(items: Sequence[pytest.Item]) -> Sequence[Sequence[pytest.Item]]:
    """Return items in groups: the units that one uses stand in groups before it."""
    waves: dict[int, list[pytest.Item]] = {}
    by_file: dict[Path, dict[str, pytest.Item]] = {}
    for item in items:
        if isinstance(item, UnitItem) and item.check.file.has_users:
            by_file.setdefault(item.file, {})[item.unit] = item
        else:
            waves.setdefault(0, []).append(item)
    for units in by_file.values():
        first = next(iter(units.values()))
        assert isinstance(first, UnitItem)  # as above
        for number, names in enumerate(stages(first.check.units, list(units))):
            waves.setdefault(number, []).extend(units[name] for name in names)
    return [wave for _, wave in sorted(waves.items())]


def issues_json(findings: Iterable[Issue | str], check: FileCheck) -> list[dict[str, Any]]:
    """Return issues as reports have them: with the file, and the line in it."""
    found = []
    for finding in dict.fromkeys(findings):
        issue = Issue("", str(finding)) if isinstance(finding, str) else finding
        path = check.place if issue.code else ""
        found.append({**issue.to_json(), "path": path, "line": issue.line})
    return found


def describe_unit(item: pytest.Item) -> tuple[list[dict[str, Any]], str]:
    """Return what is wrong with a unit, as reports have it, and the command to run about it."""
    if not isinstance(item, UnitItem):
        return [], ""
    check = item.check
    try:
        issues = check.issues(item.unit)
        command = check.command_for(item.unit) if issues else ""
    except RegenError:
        # The failure itself says what cannot be read.
        return [], ""
    return issues_json(issues, check), command


def kind_name(item: pytest.Item) -> str:
    """Return how reports name the kind of a unit: ``functions``, ``translations``, a class."""
    if not isinstance(item, UnitItem):
        return "units"
    kind = type(item.check.file.kind)
    package, _, module = kind.__module__.partition(".kinds.")
    if package == "pytest_regen":
        shipped = {"translation": "translations", "gettext": "translations"}
        return shipped.get(module, module.partition(".")[0])
    return kind.__name__


def ids_of(selection: UnitSelection, config: pytest.Config) -> list[str]:
    """Return the ids of all units of the run."""
    checks = [units_of(config, path) for path in selection.names]
    return [unit_id(check.place, name) for check in checks for name in check.names]


def first_unit(config: pytest.Config) -> str:
    """Return the id of some unit of the project; empty where it has none."""
    checks = (units_of(config, path) for path in kinds_of(config).files)
    return next((unit_id(check.place, check.names[0]) for check in checks if check.names), "")


def unit_nodes(
    session: pytest.Session, selection: UnitSelection
) -> Iterator["UnitFileNode | UnitItem"]:
    """Yield the nodes of the run: one per file, or the items of a file that is not there.

    pytest's ``--lf`` leaves out files that do not exist, so their units hang on the session.
    """
    for path, names in selection.names.items():
        if path.is_file():
            node: UnitFileNode = UnitFileNode.from_parent(session, path=path)
            node.asked = names
            node.add_marker("regen")
            yield node
            continue
        check = units_of(session.config, path)
        for name in check.item_names:
            if names is None or name in names:
                item = UnitItem.from_parent(
                    session,
                    name=encode_name(name),
                    nodeid=unit_id(check.place, name),
                    unit=name,
                    file=path,
                )
                item.extra_keyword_matches.add(check.place)
                item.add_marker("regen")
                yield item


_PREPARED: "pytest.StashKey[bool]" = pytest.StashKey()


def _prepare(session: pytest.Session) -> None:
    """Let kinds do for all files of the run what is cheaper at once; a worker gets its own few."""
    if session.stash.get(_PREPARED, False) or hasattr(session.config, "workerinput"):
        return
    session.stash[_PREPARED] = True
    kinds = kinds_of(session.config)
    prepare_kinds(kinds, [one.file for one in session.items if isinstance(one, UnitItem)])


_MARKED: "pytest.StashKey[frozenset[tuple[Path, str]]]" = pytest.StashKey()


def _marked_in(session: pytest.Session) -> frozenset[tuple[Path, str]]:
    """Return the units that marks of the tests of this run name, as files and names."""
    if _MARKED not in session.stash:
        tests = (item for item in session.items if not isinstance(item, UnitItem))
        session.stash[_MARKED] = frozenset(unit for item in tests for unit in marked_units(item))
    return session.stash[_MARKED]


class UnitFileNode(pytest.File):
    """A file with units."""

    holds_regen_items = True
    asked: set[str] | None = None
    """The units to run; ``None`` for all."""

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item per unit; a file whose units cannot be named is one item that fails."""
        return [
            UnitItem.from_parent(self, name=encode_name(name), unit=name, file=self.path)
            for name in units_of(self.config, self.path).item_names
            if self.asked is None or name in self.asked
        ]


class UnitItem(pytest.Item):
    """One unit: passes if nothing is wrong with it."""

    def __init__(self, *, unit: str, file: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unit = unit
        """The unit's name, as its kind has it."""
        self.file = file

    @property
    def check(self) -> FileCheck:
        """The file of the unit."""
        return units_of(self.config, self.file)

    def _id_of(self, issue: Issue) -> str:
        """Return the id of a unit that has no item, and whose warning this one tells."""
        name = issue.type_name
        return unit_id(self.check.place, name) if name and name != self.unit else ""

    def runtest(self) -> None:
        """Check the unit.

        Raises:
            WrongUnitError: something is wrong with it.
            KindError: the kind cannot say which units there are.
        """
        raise_known_failure(self)
        _prepare(self.session)
        failing, warned = self.check.gate(self.unit)
        # Also where there is nothing: what was said before it was regenerated is over.
        if self.unit in self.check.lost:
            command_ = self.check.units.lost_command(self.unit)
        else:
            command_ = _ending_command(self.check, self.unit, (*warned, *failing))
        add_warnings(self, warned, command=command_, id_of=self._id_of)
        if failing:
            raise WrongUnitError(self.check, self.unit, failing)
        is_marked = (self.file, self.unit) in _marked_in(self.session)
        if (
            not is_marked
            and self.unit in self.check.names
            and self.check.units.is_only_read(self.unit)
        ):
            note_only_read(self, unit_id(self.check.place, self.unit))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> "str | TerminalRepr":
        """Return our own text without a traceback; anything unforeseen as pytest shows it."""
        error = excinfo.value
        if not isinstance(error, WrongUnitError | RegenError):
            return super().repr_failure(excinfo, style)
        text = excinfo.getrepr(style="value", chain=False)
        for entry in getattr(getattr(text, "reprtraceback", None), "reprentries", ()):
            entry.lines = [text_from_here(line, self.config) for line in entry.lines]
            if isinstance(error, KindError) and error.trace:
                entry.lines += ["", *map(visible, error.trace.splitlines())]
        crash = text.reprcrash
        if crash is not None:
            message = error.summary if isinstance(error, WrongUnitError) else error.what
            crash.message = text_from_here(message, self.config)
            crash.path = str(self.file)
            crash.lineno = (isinstance(error, WrongUnitError) and error.issues[0].line) or 1
        return text

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the file, and the line on which the unit begins."""
        try:
            found = self.check.units.texts.get(self.unit)
        except RegenError:
            found = None  # The item itself fails with it.
        # Not the id itself: pytest takes its end for a class and a method, and spells dots as "::".
        title = f"{self.check.here}: {encode_name(self.unit)}"
        return self.file, found.line - 1 if found and found.line else None, title


class WrongUnitError(AssertionError):
    """Something is wrong with a unit. The text is worded when it is shown."""

    def __init__(self, check: FileCheck, name: str, issues: Sequence[Issue]) -> None:
        super().__init__(check.place, name, len(issues))
        self.check = check
        self.name = name
        self.issues = tuple(issues)
        self.healing = self.next = ""
        """What came of regenerating, where that was tried, and the command that follows."""

    def __str__(self) -> str:
        here = f"{self.check.here}::{encode_name(self.name)}"
        parts = [f"{here}: {plural(len(self.issues), 'error')}"]
        parts += [_issue_text(self.check, issue) for issue in self.issues]
        parts[-1] += "".join(f"\n{line}" for line in self.commands())
        if self.healing:
            parts.append(self.healing)
        return "\n\n".join(parts)

    @property
    def summary(self) -> str:
        """The first issue in one line, for pytest's short summary."""
        first = self.issues[0]
        more = f" (and {len(self.issues) - 1} more)" if len(self.issues) > 1 else ""
        return f"{first.code}: {first.message}{more}"

    def commands(self) -> Iterator[str]:
        """Yield what may be run about the unit."""
        here, name, asking = self.check.here, self.name, asking_options(self.check.config)
        codes = {issue.code for issue in self.issues}
        if "DRIFT" in codes:
            yield f"  keep:          {adopt_command(here, name)}"
            yield f"  drop:          {rebuild_command(here, name)}"
        elif "CONFLICT" in codes and name not in self.check.lost:
            # The file itself has an item, and is no unit.
            adopt = adopt_command(here, name if name in self.check.names else None)
            yield f"  our side:      {rebuild_command(here)}"
            yield f"  by hand:       correct the file, then {adopt}"
        elif name not in self.check.names:
            return  # The issue says what to do.
        elif "LEDGER" in codes:
            yield f"  record:        {adopt_command(here, name)}"
        elif "MISSING_UNIT" in codes and not self.check.units.has_place(name):
            return  # The issue says what to write into the file.
        elif codes & {"MISSING_UNIT", "STALE"} and codes <= {"MISSING_UNIT", "STALE"}:
            keep = f"\n  keep:          {adopt_command(here, name)}" if "STALE" in codes else ""
            yield f"  generate:      {command('generate', here, name, *asking)}{keep}"
        elif not (codes & {"KIND_ERROR"} or self.check.units.fault):
            cassette = cassette_of_unit(self.check.config, self.check.place, name)
            heal = heal_command(self.check.config, node_id(self.check.place, name), cassette)
            offers = (
                f"  regenerate:    {heal}",
                f"  or:            {command('regenerate', here, name, *asking)}",
            )
            # What was tried in vain is not told once more.
            yield from (f"  next:          {self.next}",) if self.next else offers


def _ending_command(check: FileCheck, name: str, issues: Iterable[Issue]) -> str:
    """Return the command that mends the most of what is wrong, for the whole file."""
    issues, asking = tuple(issues), asking_options(check.config)
    codes = {issue.code for issue in issues}
    if codes == {"LEDGER"} and name in check.names:
        return adopt_command(check.here, name)
    if codes & {"DRIFT", "CONFLICT", "LEDGER", "KIND_ERROR"}:
        return ""  # Somebody has to choose first; the failure says between what.
    if not check.names:
        return forget_command(check.here) if codes == {"ORPHAN"} else ""
    others = (issue for issue in issues if issue.code not in {"STALE", "MISSING_UNIT"})
    if fixable_issues(others):
        return command("regenerate", check.here, None, "--from-errors", *asking)
    if {"STALE", "MISSING_UNIT"} & {issue.code for issue in issues if not issue.is_by_hand}:
        return command("generate", check.here, None, *asking)
    if "STALE" in codes:
        return adopt_command(check.here, None, "--stale")
    if "UNRECORDED" in codes:
        return adopt_command(check.here)
    return forget_command(check.here) if "ORPHAN" in codes else ""


def _issue_text(check: FileCheck, issue: Issue) -> str:
    place = f"{check.here}:{issue.line}" if issue.line else check.here
    lines = [f"{place}: {issue.code}: {issue.message}"]
    lines += [f"    {line}" for line in (issue.detail or "").splitlines()]
    if issue.line and issue.code != "KIND_ERROR":
        lines += excerpt(check.units.text.splitlines(), issue.line)
    return "\n".join(lines)
