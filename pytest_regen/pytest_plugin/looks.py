"""What a run knows of one place: its items, what is wrong with each, and what may be done about it.

A look is asked by test items, healing and reports, which do not know what kind of place it is.
What is said here holds for any place of the main flow; ``StoreLook`` and ``UnitLook`` say the rest.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.names import asking_options, cassette_of_unit, heal_command
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.pytest_plugin.selection import from_here, from_rootdir
from pytest_regen.regeneration.flow import Check
from pytest_regen.regeneration.places import Place
from pytest_regen.regeneration.values import HealResult
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


@dataclass(frozen=True, slots=True)
class Plan:
    """What asking for a unit would be."""

    pages: Sequence[int] = ()
    estimate: int = 0
    """Tokens that would be sent."""
    next: str = ""
    """The command to run in the place of healing; empty where healing is next."""
    by_template: bool = False


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
        raise NotImplementedError

    @cached_property
    def view(self) -> Any:
        """What the place holds."""
        return self.home.open()

    @property
    def names(self) -> Collection[str]:
        """The units that are asked for."""
        names: Collection[str] = self.view.names
        return names

    @property
    def item_names(self) -> Sequence[str]:
        """The names that have an item: one where nobody can say what the place holds."""
        try:
            return tuple(self.names) or (self.DAMAGED,)
        except RegenError:
            return (self.DAMAGED,)

    def known_name(self, text: str) -> str:
        """Return the name of an item that somebody typed, as its id or as it is.

        Raises:
            pytest.UsageError: the place has no such unit.
        """
        for name in (decode_name(text), text):
            if name in self.item_names:
                return name
        known = self.item_names
        shown = ", ".join(known[:_SHOWN_NAMES]) + ("" if len(known) <= _SHOWN_NAMES else ", …")
        raise usage_error(
            f"not found: {self.here}::{text}",
            why=f"the file has no unit {decode_name(text)!r}; it has {shown or 'none'}",
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
        return "unit", "units"

    def prepare(self, items: Sequence[pytest.Item]) -> None:
        """Do what is cheaper for all items of a run at once, before the first of them is called."""

    # What is wrong

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what is wrong with what an item stands for; raises RegenError."""
        issues: tuple[Issue, ...] = self.view.issues(name)
        return issues

    def gate(self, name: str) -> tuple[tuple[Issue, ...], tuple[Issue, ...]]:
        """Return the issues that fail an item, and those that only warn, as the project wants."""
        return choices_of(self.config).gate(ValidationResult(self.issues(name)))

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

    def line_of(self, _name: str) -> int | None:
        """Return the line on which a unit begins, counted from 0."""
        return None

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

    def commands(
        self, name: str, _issues: Sequence[Issue], _page: int | None = None, following: str = ""
    ) -> Iterator[str]:
        """Yield lines with what may be run about a unit.

        Args:
            name: the unit.
            _issues: what it fails with.
            _page: the page that these are about, where it is one.
            following: the command that follows after healing in vain.
        """
        cassette = cassette_of_unit(self.config, self.place, name)
        if following:  # What was tried in vain is not told once more.
            yield f"  next:          {following}"
        else:
            yield f"  regenerate:    {heal_command(self.config, self.id_of(name), cassette)}"
            asking = asking_options(self.config)
            yield f"  or:            {command('regenerate', self.here, name, *asking)}"

    def command(self, name: str, issues: Sequence[Issue]) -> str:
        """Return the first command that may be run about a unit; empty if there is none."""
        lines = self.commands(name, issues) if issues else iter(())
        return next((line.partition(":")[2].strip() for line in lines), "")

    def remarks(self, _name: str, _issues: Sequence[Issue]) -> Mapping[str, Any]:
        """Return what the end of a run says beside warnings, as ``add_warnings`` takes it."""
        return {}

    def rescue(self, _error: RegenError) -> str:
        """Return the command that mends a place that cannot be read; empty where none does."""
        return ""

    # Healing

    @property
    def has_users(self) -> bool:
        """Whether units may use one another, so that those that are used are healed first."""
        return getattr(self.home, "has_users", False)

    @property
    def is_imported(self) -> bool:
        """Whether tests import the units: a candidate is tried in a process of its own."""
        return getattr(self.home, "is_imported", False)

    @property
    def trial_seconds(self) -> float:
        """After how long such a process is ended."""
        return float(getattr(self.home, "trial_seconds", 60.0))

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

    def plan(self, target: Target) -> Plan:
        """Return what asking for a unit would be, if nothing stands in the way."""
        return Plan(range(1, self.view.page_count(target.name) + 1))

    def correcting(self, name: str, _page: int | None) -> str:
        """Return the command that tells a model in words what is wrong."""
        asking = asking_options(self.config)
        options = ("--correction", "what is wrong", *asking)
        return command("regenerate", self.here, name, *options)

    def mending(self, target: Target, _result: HealResult) -> tuple[str, bool]:
        """Return what to run where no answer can help, and whether it stands for all else."""
        return self.command(target.name, self.issues(target.name)), False

    def cassette_of(self, name: str) -> Path:
        """Return the file in which asking for a unit because of its own item is recorded."""
        return cassette_of_unit(self.config, self.place, name)
