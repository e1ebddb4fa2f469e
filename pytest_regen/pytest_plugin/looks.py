"""What a run knows of one place: its items, what is wrong with each, and what may be done about it.

A look is asked by test items, healing and reports, which do not know what kind of place it is.
``StoreLook`` says the same of a store without opening it, where nothing in it has changed.
"""

import gc
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from pytest_regen.errors import RegenError, StoreError
from pytest_regen.files import safe_file_name
from pytest_regen.modes import TEMPLATE
from pytest_regen.pytest_plugin import names as words
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.pytest_plugin.project import RunProject, from_here, from_rootdir
from pytest_regen.regeneration.places import Place, View, open_place
from pytest_regen.text import excerpt, shorten
from pytest_regen.units.naming import command, decode_name, encode_name, node_id
from pytest_regen.validation.issues import Feedback, Issue, ValidationResult

if TYPE_CHECKING:
    from pytest_regen.regeneration.flow import Check

LOOKS: "pytest.StashKey[dict[Path, Look]]" = pytest.StashKey()
"""Those of the run, by place."""


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

    @property
    def is_by_template(self) -> bool:
        """Whether the template writes the unit: it is chosen, or wrote it before.

        What a test says in words it does not read.
        """
        look, config = self.look, self.look.config
        choices = choices_of(config)
        provider = choices.provider_option or choices.provider_default
        if not look.home.has_pages or provider == TEMPLATE:
            return look.home.has_pages
        is_told = any(isinstance(note, str) for note in self.feedback)
        if is_told or provider or config.option.regen_model:
            return False
        wrote = look.view.is_by_template(self.name)
        return wrote and config.hook.pytest_regen_provider(config=config) is None

    @property
    def heal_command(self) -> str:
        """The command that heals it."""
        config, by_template = self.look.config, self.is_by_template
        return words.heal_command(config, self.nodeid, self.cassette, by_template=by_template)

    def obstacle(self) -> tuple[str, str]:
        """Return why the unit must not be asked for, and what to run; empty if it may."""
        from pytest_regen.regeneration.policies import fixable_issues

        look, name, view = self.look, self.name, self.look.view
        issues = look.issues(name)
        is_stale = any(issue.code == "STALE" for issue in issues)
        if is_stale and view.has_old_prompt(name):
            is_fixable = bool(self.feedback or fixable_issues(issues))
            if is_fixable and choices_of(look.config).ignore_stale:
                return "", ""
            why = "its stored prompts were made for another version of the document (STALE)"
            again = ("--regen-ignore-stale",)
            rerun = words.rerun_command(look.config, self.nodeid, self.cassette, *again)
            return why, rerun if is_fixable else look.command(name, issues)
        why = view.obstacle(name)
        return why, look.command(name, issues) if why else ""


class Look:
    """A place as it stood when it was first looked at; see ``look_at``.

    Args:
        config: of the run.
        path: of the place.
    """

    DAMAGED: ClassVar = "file"
    """Name of the one item of a place of which nobody can say what it holds."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self.config = config
        self.path = path
        self.place = from_rootdir(path, config.rootpath)
        """As node ids spell it."""
        self.here = from_here(path, config)
        """As commands spell it."""

    def forget(self) -> None:
        """Drop what is known of the place, because it was written."""
        self.config.stash.setdefault(LOOKS, {}).pop(self.path, None)

    # What there is

    @cached_property
    def home(self) -> Place[View]:
        """The place, as the main flow works on it."""
        place = open_place(RunProject(self.config), self.path)
        if place is None:
            raise StoreError(f"{self.here} is not there any more", hint="run pytest again")
        return place

    @cached_property
    def view(self) -> View:
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
        raise usage_error(
            f"not found: {self.here}::{text}",
            why=f"the {self.DAMAGED} has no {self.home.noun} {name!r}; it has {shorten(names)}",
            hint=f"pytest --collect-only {shlex.quote(self.here)}",
        )

    def id_of(self, name: str) -> str:
        """Return the id of the item of a unit."""
        return node_id(self.place, name)

    def heading(self, name: str) -> str:
        """Return what stands above the failure of an item."""
        # Not the id, because pytest takes its end for a method, and spells dots as "::".
        return f"{self.here}: {encode_name(name)}"

    def kind_of(self, _name: str) -> tuple[str, str]:
        """Return how reports name what an item stands for, and the group it is shown in."""
        return self.home.noun, self.home.title

    # What is wrong

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what is wrong with what an item stands for; raises RegenError."""
        issues = [self.lost[name]] if name in self.lost else []
        if name in self.names:
            issues += self.view.issues(name)
        if name == self.DAMAGED:
            issues += self.view.file_issues
        return tuple(issues)

    @property
    def unasked(self) -> tuple[Issue, ...]:
        """What nobody asks for and no item stands for; told with the first item."""
        return tuple(issue for issue in self.view.orphans if issue.severity == "warning")

    def gate(self, name: str) -> tuple[tuple[Issue, ...], tuple[Issue, ...]]:
        """Return the issues that fail an item, and those that only warn, as the project wants."""
        unasked = self.unasked if name == self.item_names[0] else ()
        return choices_of(self.config).gate(ValidationResult((*self.issues(name), *unasked)))

    @property
    def format_note(self) -> str:
        """That another version of the package made the place; empty where this one did."""
        return self.view.format_note

    @property
    def not_run(self) -> str:
        """Why the units were not run, where that is worth saying."""
        return self.view.not_run

    def is_only_read(self, name: str) -> bool:
        """Return whether a unit is code that was checked, and of which nothing was run."""
        return name in self.names and self.view.is_only_read(name)

    def user_errors(self, _name: str) -> tuple[Issue, ...]:
        """Return what fails a unit because a hook of the user's says so."""
        return ()

    # Where it stands

    @property
    def source_path(self) -> Path:
        """The file that people read."""
        return self.path

    def line_of(self, name: str) -> int | None:
        """Return the line on which a unit begins, counted from 0."""
        try:
            line = self.view.line(name)
        except RegenError:
            return None  # The item itself fails with it.
        return line - 1 if line else None

    def location_of(self, issue: Issue) -> tuple[str, int | None]:
        """Return the file that an issue is about, from the rootdir, and the line in it."""
        return self.place, issue.line

    def excerpt_of(self, issue: Issue) -> list[str]:
        """Return the lines around an issue."""
        # The line of a KIND_ERROR is one of the kind's.
        if not issue.line or issue.file is not None or issue.code == "KIND_ERROR":
            return []
        return excerpt(self.view.text.splitlines(), issue.line)

    # What may be done

    def repairs(self, name: str, issues: Sequence[Issue]) -> list[tuple[str, str]]:
        """Return the commands about a unit that call for no healing, each after a word for it."""
        if name in self.lost:
            return []  # The issue says what to do.
        advice = self.view.repairs(name, issues, words.asking_options(self.config))
        # The view knows the path that it was opened by.
        return [(step.note, step.command.replace(str(self.path), self.here)) for step in advice]

    def may_heal(self, name: str, issues: Sequence[Issue]) -> bool:
        """Return whether another reply could correct what is wrong with a unit."""
        from pytest_regen.regeneration.policies import fixable_issues

        is_fixable = name in self.names and bool(fixable_issues(issues))
        return is_fixable and not self.view.obstacle(name)

    def commands(self, name: str, issues: Sequence[Issue], following: str) -> list[tuple[str, str]]:
        """Return what may be run about a unit, each after a word for it.

        Args:
            name: the unit.
            issues: what it fails with.
            following: the command that follows after healing in vain.
        """
        repairs = self.repairs(name, issues)
        if repairs or not self.may_heal(name, issues):
            return repairs
        if following:  # What was tried in vain is not told once more.
            return [("next", following)]
        return [("regenerate", self._healing(name)), ("or", self.regenerating(name, issues))]

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
        return Target(self, name, (), self.id_of(name), self.cassette_of(name)).heal_command

    def regenerating(self, name: str, issues: Sequence[Issue], *options: str) -> str:
        """Return the command that asks for the page that issues are about, or for the unit."""
        pages = {issue.page for issue in issues}
        page = ("--page", str(*pages)) if len(pages) == 1 and pages != {None} else ()
        asking = words.asking_options(self.config)
        which = (self.home.option, name, *page)
        return command("regenerate", self.here, None, *which, *options, *asking)

    def ending(self, name: str, issues: Sequence[Issue]) -> str:
        """Return the command that mends the most of what is wrong, for the whole place."""
        if name in self.lost:
            command_of_lost: Callable[[str], str] = getattr(self.view, "lost_command", lambda _: "")
            return command_of_lost(name)
        advice = self.view.advice(issues) if issues else None
        if advice is None or not {"DRIFT", "CONFLICT", "LEDGER"}.isdisjoint(i.code for i in issues):
            return ""  # Somebody has to choose first; the failure says between what.
        asks = advice.command.startswith(("pytest-regen generate", "pytest-regen regenerate"))
        asking = words.asking_options(self.config) if asks else ()
        return " ".join([advice.command, *map(shlex.quote, asking)])

    def rescue(self, _error: RegenError) -> str:
        """Return the command that mends a place that cannot be read; empty where none does."""
        return ""

    # Healing

    def checker(self, _name: str) -> "Check | None":
        """Return what calls validators of the user's about a candidate; ``None`` without any."""
        return None

    def cassette_of(self, name: str) -> Path:
        """Return the file in which asking for a unit because of its own item is recorded."""
        # By its name alone where the place lies outside the project.
        place = self.path.name if self.place.startswith("..") else self.place
        return self.config.rootpath / "cassettes/regen" / place / f"{safe_file_name(name)}.yaml"
