"""What a run knows of one place: its items, what is wrong with each, and what may be done about it.

A look is asked by test items, healing and reports, which do not know what kind of place it is.
What is said here holds for any place of the main flow; ``StoreLook`` and ``UnitLook`` say the rest.
"""

import gc
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.files import safe_file_name
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.names import asking_options, heal_command
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.pytest_plugin.project import RunProject
from pytest_regen.pytest_plugin.selection import from_here, from_rootdir
from pytest_regen.regeneration.flow import Check
from pytest_regen.regeneration.places import Place
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.text import excerpt
from pytest_regen.units.naming import command, decode_name, encode_name, node_id
from pytest_regen.validation.issues import Feedback, Issue, ValidationResult

_SHOWN_NAMES = 12

_LOOKS: "pytest.StashKey[dict[Path, Look]]" = pytest.StashKey()


@dataclass(frozen=True, slots=True)
class Target:
    """One unit to ask for, because of one item."""

    look: "Look"
    name: str
    feedback: tuple[Feedback, ...]
    """What is wrong with it beyond its issues."""
    nodeid: str
    """Of the item."""
    cassette: Path
    """Where asking for it is recorded."""

    @property
    def id(self) -> str:
        """Of the unit, as its own item has it."""
        return self.look.id_of(self.name)


class Look:
    """A place as it stood when it was first looked at.

    Args:
        config: of the run.
        path: of the place.
    """

    DAMAGED: ClassVar = "file"
    """Name of the one item of a place of which nobody can say what it holds."""
    has_pages: ClassVar = False
    """Whether reports number the pages of a unit, and the template can write one."""
    at_fault: ClassVar = "the unit"
    """What is right where an item fails that nothing is wrong with any more."""
    unfixable: ClassVar = ""
    """What to do where no reply can be right; empty where its failure decides."""
    asks_stale: ClassVar = True
    """Whether what is stale is asked for again by its prompt of today."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self.config = config
        self.path = path
        self.place = from_rootdir(path, config.rootpath)
        """As node ids spell it."""
        self.here = from_here(path, config)
        """As commands spell it."""

    @classmethod
    def of(cls, config: pytest.Config, path: Path) -> Self:
        """Return the look at a place; it is read on first use, once in a run."""
        looks: dict[Path, Any] = config.stash.setdefault(_LOOKS, {})
        if path not in looks:
            looks[path] = cls(config, path)
        look: Self = looks[path]
        return look

    def forget(self) -> None:
        """Drop what is known of the place, because it was written."""
        self.config.stash.setdefault(_LOOKS, {}).pop(self.path, None)

    def again(self) -> Self:
        """Return the look at the place as it is known now."""
        return self.of(self.config, self.path)

    # What there is

    @cached_property
    def home(self) -> Place[Any]:
        """The place, as the main flow works on it."""
        from pytest_regen.regeneration import registry

        place = registry.open_place(RunProject(self.config), self.path)
        assert place is not None  # because the run found it there
        return place

    @cached_property
    def view(self) -> Any:
        """What the place holds."""
        return self.home.open()

    @cached_property
    def names(self) -> Collection[str]:
        """The units that are asked for; none where nobody can say which there are."""
        try:
            names = dict.fromkeys(self.view.names)
        except RegenError:
            return ()  # The one item of the place fails with it.
        # They stay until the end of the run; searching them for garbage at each step costs more
        # than making them.
        gc.freeze()
        return names

    @cached_property
    def lost(self) -> Mapping[str, Issue]:
        """What fails of the units that are remembered and nobody asks for, by name."""
        try:
            orphans = self.view.orphans
        except RegenError:
            return {}
        return {issue.type_name or "": issue for issue in orphans if issue.severity == "error"}

    @cached_property
    def item_names(self) -> Sequence[str]:
        """The units that have an item, those lost too, and one more where the place is wrong."""
        names = (*self.names, *self.lost)
        try:
            is_wrong = not names or (self.DAMAGED not in names and self.view.file_issues)
        except RegenError:
            is_wrong = True
        return (*names, self.DAMAGED) if is_wrong else names

    def known_name(self, text: str) -> str:
        """Return the name of an item that somebody typed, as its id or as it is.

        Raises:
            pytest.UsageError: the place has no such unit.
        """
        names, name = self.item_names, decode_name(text)
        if text in names:
            return text
        if name in names or names == (self.DAMAGED,):  # whose one item says what is wrong
            return name
        listed = ", ".join(names[:_SHOWN_NAMES]) + ("" if len(names) <= _SHOWN_NAMES else ", …")
        raise usage_error(
            f"not found: {self.here}::{text}",
            why=f"the {self.DAMAGED} has no {self.home.noun} {name!r}; it has {listed}",
            hint=f"pytest --collect-only {shlex.quote(self.here)}",
        )

    def id_of(self, name: str) -> str:
        """Return the id of the item of a unit."""
        return node_id(self.place, name)

    def heading(self, name: str) -> str:
        """Return what stands above the failure of an item."""
        # Not the id: pytest takes its end for a class and a method, and spells dots as "::".
        return f"{self.here}: {encode_name(name)}"

    def kind_of(self, _name: str) -> tuple[str, str]:
        """Return how reports name what an item stands for, and the group it is shown in."""
        return self.home.noun, self.home.title

    def prepare(self, items: Sequence[pytest.Item]) -> None:
        """Do what is cheaper for all items of a run at once, before the first of them is called."""

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
        """Return the issues that fail an item, and those that only warn, as the project wants."""
        issues = self.issues(name)
        if name == self.item_names[0]:
            # What nobody misses has no item.
            issues += tuple(issue for issue in self.view.orphans if issue.severity == "warning")
        return choices_of(self.config).gate(ValidationResult(issues))

    def user_errors(self, _name: str) -> tuple[Issue, ...]:
        """Return what fails a unit because a hook of the user's says so."""
        return ()

    def is_only_read(self, _name: str) -> bool:
        """Return whether a unit is code that was checked, and of which nothing was run."""
        return False

    # Where it stands

    @property
    def source_path(self) -> Path:
        """The file that people read."""
        return self.path

    def line_of(self, name: str) -> int | None:
        """Return the line on which a unit begins, counted from 0."""
        try:
            line: int | None = self.view.line(name)
        except RegenError:
            return None  # The item itself fails with it.
        return line - 1 if line else None

    def location_of(self, issue: Issue) -> tuple[str, int | None]:
        """Return the file that an issue is about, from the rootdir, and the line in it."""
        return self.place, issue.line

    def excerpt_of(self, issue: Issue) -> list[str]:
        """Return the lines around an issue."""
        if not issue.line or issue.code == "KIND_ERROR":  # whose line is one of the kind's
            return []
        return excerpt(self.view.text.splitlines(), issue.line)

    # What may be done

    def origin(self, _name: str, _page: int | None) -> Iterator[str]:
        """Yield lines that say what a page of a unit was written from."""
        yield from ()

    def repairs(self, name: str, issues: Sequence[Issue]) -> list[tuple[str, str]]:
        """Return the commands about a unit that call for no healing, each after a word for it."""
        if name in self.lost:
            return []  # The issue says what to do.
        advice = self.view.repairs(name, issues, asking_options(self.config))
        # The view knows the path that it was opened by.
        return [(step.note, step.command.replace(str(self.path), self.here)) for step in advice]

    def may_heal(self, name: str, issues: Sequence[Issue]) -> bool:
        """Return whether another reply could correct what is wrong with a unit."""
        is_fixable = name in self.names and bool(fixable_issues(issues))
        return is_fixable and not self.view.obstacle(name)

    def commands(
        self, name: str, issues: Sequence[Issue], page: int | None, following: str
    ) -> list[tuple[str, str]]:
        """Return what may be run about a unit, each after a word for it.

        Args:
            name: the unit.
            issues: what it fails with.
            page: the page that these are about, where it is one.
            following: the command that follows after healing in vain.
        """
        repairs = self.repairs(name, issues)
        if repairs or not self.may_heal(name, issues):
            return repairs
        if following:  # What was tried in vain is not told once more.
            return [("next", following)]
        return [("regenerate", self._healing(name)), ("or", self.regenerating(name, page))]

    def command(self, name: str, issues: Sequence[Issue]) -> str:
        """Return the one command to run about a unit; empty where only an editor helps."""
        repairs = self.repairs(name, issues)
        may_heal = bool(issues) and self.may_heal(name, issues)
        if not repairs:
            return self._healing(name) if may_heal else ""
        # An edit that has errors itself is dropped.
        is_drop = may_heal and repairs[-1][0] == "drop"
        return repairs[-1 if is_drop else 0][1]

    def _healing(self, name: str) -> str:
        cassette, by_template = self.cassette_of(name), self.by_template(name)
        return heal_command(self.config, self.id_of(name), cassette, by_template=by_template)

    def regenerating(self, name: str, page: int | None, *options: str) -> str:
        """Return the command that asks for just this page, or the unit."""
        which = (f"--{self.home.noun}", name, *(("--page", str(page)) if page else ()))
        asking = asking_options(self.config)
        return command("regenerate", self.here, None, *which, *options, *asking)

    def remarks(self, _name: str, _issues: Sequence[Issue]) -> Mapping[str, Any]:
        """Return what the end of a run says beside warnings, as ``add_warnings`` takes it."""
        return {}

    def rescue(self, _error: RegenError) -> str:
        """Return the command that mends a place that cannot be read; empty where none does."""
        return ""

    # Healing

    def checker(self, _name: str) -> Check | None:
        """Return what calls validators of the user's about a candidate; ``None`` without any."""
        return None

    def obstacle(self, target: Target) -> tuple[str, str]:
        """Return why a unit must not be asked for, and the command to run; empty if it may."""
        why: str = self.view.obstacle(target.name)
        return why, self.command(target.name, self.issues(target.name)) if why else ""

    def by_template(self, _name: str, _feedback: Sequence[Feedback] = ()) -> bool:
        """Return whether the template writes a unit."""
        return False

    def plan(self, target: Target) -> tuple[list[int], int, str]:
        """Return the pages that would be asked for, about how many tokens that takes, what to run.

        The last one is empty where healing is next.
        """
        sizes = list(self.home.sizes(self.view, [target.name], None))
        return [page for _, page, _ in sizes], sum(size.input_tokens for *_, size in sizes), ""

    def cassette_of(self, name: str) -> Path:
        """Return the file in which asking for a unit because of its own item is recorded."""
        folder = self.config.rootpath / "cassettes" / "regen" / self.home.recording
        return folder / f"{safe_file_name(name)}.yaml"
