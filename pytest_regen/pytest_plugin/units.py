"""Files with units as a run looks at them, and the kinds of the project."""

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin import names as words
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.looks import Look, Plan, Target
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.turns.values import estimate_tokens
from pytest_regen.units import loading, naming
from pytest_regen.units.inventory import is_lost, unmarked_kinds
from pytest_regen.units.place import UnitFile, open_units
from pytest_regen.validation.issues import Issue, ValidationResult

_KINDS: pytest.StashKey[loading.ProjectKinds] = pytest.StashKey()


def kinds_of(config: pytest.Config) -> loading.ProjectKinds:
    """Return the kinds of the project, loaded once.

    Raises:
        pytest.UsageError: one cannot be loaded.
    """
    if _KINDS not in config.stash:
        lists = dict(loading.PYTEST_LISTS)
        for key in lists:
            with suppress(ValueError):  # -p no:doctest: nobody knows its settings then.
                lists[key] = [str(value) for value in config.getini(key)]
        settings = choices_of(config).settings
        try:
            config.stash[_KINDS] = loading.load_kinds(config.rootpath, settings, lists=lists)
        except RegenError as error:
            raise plain_usage_error(str(error)) from None
    return config.stash[_KINDS]


def notes_on_kinds(config: pytest.Config) -> Iterator[str]:
    """Yield what is to be said of kinds without a unit, as their tests are not there either."""
    for what in unmarked_kinds(kinds_of(config)):
        yield f"note: {what}; next: pytest-regen init"


def marked_units(item: pytest.Item) -> list[tuple[Look, str]]:
    """Return the units that the mark of a test names.

    Raises:
        pytest.UsageError: one of them is not there.
    """
    config = item.config
    marked: list[tuple[Look, str]] = []
    kinds = kinds_of(config)
    for unit in regen_mark(item).units:
        place, separator, text = unit.partition("::")
        path = kinds.absolute(place)
        try:
            is_claimed = kinds.kind_of(path) is not None
        except RegenError as error:
            raise plain_usage_error(str(error)) from None
        if not separator or not is_claimed:
            why = "no kind claims the file" if separator else "a unit is named path::name"
            raise usage_error(
                f"{item.nodeid}: regen(unit={unit!r}): there is no such unit",
                why=f"{why}; paths begin at {config.rootpath}",
                hint="correct the mark",
            )
        look = UnitLook.of(config, path)
        marked.append((look, look.known_name(text)))
    return marked


_PREPARED: "pytest.StashKey[bool]" = pytest.StashKey()


class UnitLook(Look):
    """A file with units as it stood when it was first looked at."""

    @cached_property
    def home(self) -> UnitFile:
        """The file and its kind."""
        kinds = kinds_of(self.config)
        return open_units(
            kinds,
            self.path,
            ignore=choices_of(self.config).settings.ignored_codes,
            is_lost=is_lost(kinds, self.path),
        )

    @cached_property
    def names(self) -> Collection[str]:
        """The units that are asked for; none where nobody can say which there are."""
        try:
            names = dict.fromkeys(self.view.names)
        except RegenError:
            return ()  # The one item of the file fails with it.
        # They stay until the end of the run; searching them for garbage at each step costs more
        # than making them.
        gc.freeze()
        return names

    @cached_property
    def lost(self) -> Mapping[str, Issue]:
        """What fails of the units that the ledger has and nobody asks for, by name."""
        try:
            issues = self.view.lost
        except RegenError:
            return {}
        return {one.type_name or "": one for one in issues if one.severity == "error"}

    @cached_property
    def item_names(self) -> Sequence[str]:
        """The units that have an item, those lost too, and one more where the file is wrong."""
        names = (*self.names, *self.lost)
        try:
            is_wrong = not names or (self.DAMAGED not in names and self.view.file_issues)
        except RegenError:
            is_wrong = True
        return (*names, self.DAMAGED) if is_wrong else names

    def kind_of(self, _name: str) -> tuple[str, str]:
        """Return the kind's name as the group: ``functions``, ``translations``, a class."""
        kind = type(self.home.kind)
        package, _, module = kind.__module__.partition(".kinds.")
        if package != "pytest_regen":
            return "unit", kind.__name__
        shipped = {"translation": "translations", "gettext": "translations"}
        return "unit", shipped.get(module, module.partition(".")[0])

    def prepare(self, items: Sequence[pytest.Item]) -> None:
        """Let kinds do for all files of the run what is cheaper at once."""
        # A worker of pytest-xdist gets its own few items, later.
        if self.config.stash.get(_PREPARED, False) or hasattr(self.config, "workerinput"):
            return
        self.config.stash[_PREPARED] = True
        loading.prepare_kinds(
            kinds_of(self.config),
            [one.path for one in items if isinstance(getattr(one, "look", None), UnitLook)],
        )

    # What is wrong

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what is wrong with what an item stands for; raises RegenError."""
        issues = [self.lost[name]] if name in self.lost else []
        if name in self.names:
            issues += self.view.issues(name)
        if name == self.DAMAGED:
            issues += self.view.file_issues
        return tuple(issues)

    def gate(self, name: str) -> tuple[tuple[Issue, ...], tuple[Issue, ...]]:
        """Return the issues that fail an item, and those that only warn."""
        issues = self.issues(name)
        if name == self.item_names[0]:
            # What nobody misses has no item.
            issues += tuple(one for one in self.view.orphans if one.severity == "warning")
        return choices_of(self.config).gate(ValidationResult(issues))

    def is_only_read(self, name: str) -> bool:
        """Return whether a unit is code of which its kind runs nothing."""
        return name in self.names and self.view.is_only_read(name)

    def line_of(self, name: str) -> int | None:
        """Return the line on which a unit begins."""
        try:
            text = self.view.texts.get(name)
        except RegenError:
            return None  # The item itself fails with it.
        return text.line - 1 if text and text.line else None

    # What may be done

    def commands(
        self, name: str, issues: Sequence[Issue], page: int | None = None, following: str = ""
    ) -> Iterator[str]:
        """Yield lines with what may be run about a unit."""
        here, codes = self.here, {issue.code for issue in issues}
        generates = {"MISSING_UNIT", "STALE"}
        if "DRIFT" in codes:
            yield f"  keep:          {naming.adopt_command(here, name)}"
            yield f"  drop:          {naming.rebuild_command(here, name)}"
        elif "CONFLICT" in codes and name not in self.lost:
            # The file itself has an item, and is no unit.
            adopt = naming.adopt_command(here, name if name in self.names else None)
            yield f"  our side:      {naming.rebuild_command(here)}"
            yield f"  by hand:       correct the file, then {adopt}"
        elif name not in self.names:
            return  # The issue says what to do.
        elif "LEDGER" in codes:
            yield f"  record:        {naming.adopt_command(here, name)}"
        elif "MISSING_UNIT" in codes and not self.view.has_place(name):
            return  # The issue says what to write into the file.
        elif codes & generates and codes <= generates:
            yield f"  generate:      {self._asking('generate', name)}"
            if "STALE" in codes:
                yield f"  keep:          {naming.adopt_command(here, name)}"
        elif not (codes & {"KIND_ERROR"} or self.view.fault):
            yield from super().commands(name, issues, page, following)

    def _asking(self, verb: str, name: str | None, *options: str) -> str:
        asking = words.asking_options(self.config)
        return naming.command(verb, self.here, name, *options, *asking)

    def remarks(self, name: str, issues: Sequence[Issue]) -> Mapping[str, Any]:
        """Return the command that the run ends with."""
        # Also where there is nothing: what was said before a unit was regenerated is over.
        is_lost_ = name in self.lost
        command = self.view.lost_command(name) if is_lost_ else self._ending(name, issues)
        return {"command": command}

    def _ending(self, name: str, issues: Iterable[Issue]) -> str:
        """Return the command that mends the most of what is wrong, for the whole file."""
        codes = {issue.code for issue in issues}
        if codes == {"LEDGER"} and name in self.names:
            return naming.adopt_command(self.here, name)
        if codes & {"DRIFT", "CONFLICT", "LEDGER", "KIND_ERROR"}:
            return ""  # Somebody has to choose first; the failure says between what.
        if not self.names:
            return naming.forget_command(self.here) if codes == {"ORPHAN"} else ""
        generates = {"STALE", "MISSING_UNIT"}
        if fixable_issues(issue for issue in issues if issue.code not in generates):
            return self._asking("regenerate", None, "--from-errors")
        if any(issue.code in generates and not issue.is_by_hand for issue in issues):
            return self._asking("generate", None)
        if "STALE" in codes:
            return naming.adopt_command(self.here, None, "--stale")
        if "UNRECORDED" in codes:
            return naming.adopt_command(self.here)
        return naming.forget_command(self.here) if "ORPHAN" in codes else ""

    # Healing

    @property
    def is_imported(self) -> bool:
        """Whether tests import the units: a candidate is tried in a process of its own."""
        return self.home.kind.is_imported

    @property
    def trial_seconds(self) -> float:
        """After how long such a process is ended."""
        return self.home.kind.trial_seconds

    def plan(self, target: Target) -> Plan:
        """Return about how many tokens asking for a unit takes."""
        return Plan((1,), estimate_tokens(self.view.system + self.view.prompt(target.name)))
