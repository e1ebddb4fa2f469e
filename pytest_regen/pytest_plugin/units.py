"""Files with units as a run looks at them, and the kinds of the project."""

import gc
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin import names as words
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.looks import Look
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.project import kinds_of
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.units import loading, naming
from pytest_regen.units.inventory import is_lost
from pytest_regen.units.place import UnitFile, open_units
from pytest_regen.validation.issues import Issue, ValidationResult


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

    # What may be done

    def repairs(self, name: str, issues: Sequence[Issue]) -> list[tuple[str, str]]:
        """Return the commands about a unit that call for no healing, each after a word for it."""
        return [] if name in self.lost else super().repairs(name, issues)

    def may_heal(self, name: str, issues: Sequence[Issue]) -> bool:
        """Return whether another reply could correct what is wrong with a unit."""
        # Of what has no unit the issue says what to do.
        return name in self.names and super().may_heal(name, issues)

    def remarks(self, name: str, issues: Sequence[Issue]) -> Mapping[str, Any]:
        """Return the command that the run ends with."""
        # Also where there is nothing: what was said before a unit was regenerated is over.
        lost = name in self.lost
        return {"command": self.view.lost_command(name) if lost else self._ending(name, issues)}

    def _ending(self, name: str, issues: Iterable[Issue]) -> str:
        """Return the command that mends the most of what is wrong, for the whole file."""
        codes, asking = {issue.code for issue in issues}, words.asking_options(self.config)
        if codes == {"LEDGER"} and name in self.names:
            return naming.adopt_command(self.here, name)
        if codes & {"DRIFT", "CONFLICT", "LEDGER", "KIND_ERROR"}:
            return ""  # Somebody has to choose first; the failure says between what.
        if not self.names:
            return naming.forget_command(self.here) if codes == {"ORPHAN"} else ""
        generates = {"STALE", "MISSING_UNIT"}
        if fixable_issues(issue for issue in issues if issue.code not in generates):
            return naming.command("regenerate", self.here, None, "--from-errors", *asking)
        if any(issue.code in generates and not issue.is_by_hand for issue in issues):
            return naming.command("generate", self.here, None, *asking)
        if "STALE" in codes:
            return naming.adopt_command(self.here, None, "--stale")
        if "UNRECORDED" in codes:
            return naming.adopt_command(self.here)
        return naming.forget_command(self.here) if "ORPHAN" in codes else ""
