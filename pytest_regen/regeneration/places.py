"""What the verbs work on: places that hold units, which are texts that a model wrote.

A store holds types, a file that a kind claims holds units of that kind. Each is known by its name
and has pages, counted from 1: a type has one per prompt, any other unit has one. Nobody above knows
which class a place is of; ``open_place`` and ``places_in`` find them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TypeVar

from pytest_regen.errors import RegenError
from pytest_regen.validation.issues import Feedback, Issue

if TYPE_CHECKING:
    from pytest_regen.regeneration.values import Answer, Ask, Rejected, TurnSettings
    from pytest_regen.units.loading import ProjectKinds
    from pytest_regen.validation.stores import Origin


@dataclass(frozen=True, slots=True)
class Score:
    """What is wrong with one piece, as far as it decides what is kept."""

    errors: int = 0
    """Its errors, and one for each field or value that could be hidden by one of them."""
    unreadable: frozenset[int] = frozenset()
    """Its pages that were not read in full."""
    found_by_running: int = 0
    """How many of its errors only show where its code is run."""
    is_unasked: bool = False
    """Whether its code could not be run, or not because of other code."""

    def errors_beside(self, other: "Score") -> int:
        """Return the errors that count beside those of another state of the piece.

        What only running shows was there before as well, where that could not be run.
        """
        return self.errors - (self.found_by_running if other.is_unasked else 0)

    def is_as_readable_as(self, other: "Score") -> bool:
        """Return whether every page that could be read, and code that could be run, still can."""
        return self.unreadable <= other.unreadable and self.is_unasked <= other.is_unasked

    def is_no_worse_than(self, other: "Score") -> bool:
        """Return whether errors have not risen, and nothing hides more of them."""
        return self.errors_beside(other) <= other.errors and self.is_as_readable_as(other)


class Advice(NamedTuple):
    """What to run next."""

    command: str
    note: str = ""
    """What else could be done, or what the command does."""


KEEPS_EDIT: Final = "the next command keeps what was edited by hand"
DROPS_EDIT: Final = "the next command drops what was edited by hand"


class Author(NamedTuple):
    """Who wrote a unit; empty where nothing of it is recorded."""

    model: str = ""
    """``hand`` for a person."""
    generated_at: str = ""
    attempt: int = 0
    """Running number of its texts."""


class Written(NamedTuple):
    """A page that is the stored one now."""

    name: str
    page: int
    model: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of the units of a place without a turn: adopted, rebuilt, restored, forgotten."""

    names: tuple[str, ...]
    """The units that were changed."""
    history: tuple[str, ...] = ()
    """Ids of what went to the history; names of whole files that were kept there."""
    diff: str = ""
    """Unified diff of the file that people read."""
    pages: tuple[Written, ...] = ()
    """What is stored now in place of something else."""
    notes: tuple[str, ...] = ()
    """What is left to do by hand."""
    dropped: tuple[str, ...] = ()
    """Files that could not be read, and are gone."""
    joined: tuple[str, ...] = ()
    """Artifacts that were two versions of themselves, and are ours now."""
    by_hand: int = 0
    """Texts that a person wrote, which stay as they are."""


class View(Protocol):
    """What a place holds at one moment, with what is wrong with it. A value.

    The views of all places inherit from it: what most of them answer alike is answered here.
    """

    @property
    def names(self) -> Sequence[str]:
        """The units that must be there.

        Raises:
            KindError: the kind cannot say.
        """

    @property
    def file_issues(self) -> Sequence[Issue]:
        """What is wrong with the place itself, and not with one of its units."""
        return ()

    @property
    def orphans(self) -> Sequence[Issue]:
        """What the place or its memory has, and nothing asks for."""

    @property
    def format_note(self) -> str:
        """That another version of the package made the place; empty where this one did."""
        return ""

    @property
    def not_run(self) -> str:
        """Why the units were not run, where that is worth saying."""
        return ""

    @property
    def notes(self) -> Sequence[str]:
        """What is worth saying beside the issues, in words."""

    @property
    def origin(self) -> "Origin | None":
        """The document that the place is made of, so that a command can make it anew."""
        return None

    @property
    def text(self) -> str:
        """The file that people read; for the diff."""

    def author(self, name: str) -> Author:
        """Return who wrote what is recorded of a unit."""

    def unit_json(self, _name: str) -> Mapping[str, Any]:
        """Return what JSON says of a unit beside its name and issues."""
        return {}

    def has_old_prompt(self, _name: str) -> bool:
        """Return whether a prompt that is stored was made for another document than there is."""
        return False

    def is_only_read(self, _name: str) -> bool:
        """Return whether a unit is code of which nothing is run, and ``not_run`` is silent."""
        return False

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what is wrong with a unit, warnings included and ignored codes left out."""

    def score(self, name: str) -> Score:
        """Return what counts when outputs are compared; an empty score for an unknown unit."""

    def missing(self, name: str) -> Sequence[int]:
        """Return the pages that were never written."""

    def page_count(self, _name: str) -> int:
        """Return how many pages a unit has."""
        return 1

    def resolve(self, name: str) -> str:
        """Return the unit that is meant by a name.

        Raises:
            UsageError: there is none; near ones are named.
        """

    def line(self, name: str) -> int | None:
        """Return the line on which a unit begins in the file that people read, from 1."""

    def needs_answer(self, name: str) -> bool:
        """Return whether ``generate`` asks for a unit: it is missing, or out of date."""
        return bool(self.missing(name))

    def is_by_template(self, _name: str) -> bool:
        """Return whether a language wrote a unit, so that no model need be asked again."""
        return False

    def advice(self, issues: Sequence[Issue]) -> Advice | None:
        """Return the command that does the most about issues of the place; ``None`` if none does.

        STALE counts where nothing else is wrong, or where it stands as an error.
        """

    def repairs(
        self, name: str, issues: Sequence[Issue], asking: Sequence[str] = ()
    ) -> Sequence[Advice]:
        """Return the commands about one unit that call for no healing, each with a word for it.

        None where ``regenerate`` is what helps, or only an editor does.

        Args:
            name: of the unit.
            issues: what is wrong with it.
            asking: the provider and model that were typed, as options.
        """

    def obstacle(self, name: str) -> str:
        """Return why a unit must not be asked for, an edit by hand for one; empty if it may."""

    def hand_edit(self, name: str) -> RegenError | None:
        """Return what is raised where a unit that was edited by hand is named to be replaced."""

    def users(self, _name: str) -> Collection[str]:
        """Return the other units that fail where this one is wrong, directly or not."""
        return ()

    def output(self, name: str, page: int) -> str | None:
        """Return what stands on a page; ``None`` where there is nothing yet."""

    def is_placed(self, _name: str) -> bool:
        """Return whether the new output of a unit could be put in its place."""
        return True

    def basis(self, name: str) -> str:
        """Return a digest of what stands there and of what is asked for.

        Another digest means that an output which was made to replace it may not do so any more.

        Raises:
            KindError: a method of the kind raised.
        """

    def with_answers(self, answers: "Sequence[Answer]") -> Self:
        """Return the view with new outputs in place; nothing is written.

        Only what they change is validated again. An output that cannot be put in its place is an
        issue of its unit.
        """


V = TypeVar("V", bound=View)


class PlaceUpdate(Protocol[V]):
    """A place that is locked for writing."""

    view: V
    """What it holds, read under the lock and again after ``write``."""

    def write(
        self, candidate: V, answers: "Sequence[Answer]", rejected: "Rejected"
    ) -> tuple[str, ...]:
        """Write what is kept and put the rest in the history, all in one change.

        Args:
            candidate: the view with the kept outputs in place.
            answers: these outputs; none where nothing is kept.
            rejected: the others.

        Returns:
            The history ids of ``rejected``, in their order.
        """

    def adopt(self, names: Sequence[str] | None, *, with_stale: bool = False) -> Changes:
        """Record units as they stand; see ``verbs.adopt``."""

    def rebuild(self, names: Sequence[str] | None) -> Changes:
        """Put recorded outputs back; see ``verbs.rebuild``."""

    def restore(self, name: str, page: int | None, to: str | None) -> Changes:
        """Make outputs from the history the recorded ones; see ``verbs.restore``."""

    def forget(self, names: Sequence[str] | None) -> Changes:
        """Drop what nothing asks for; see ``verbs.forget``."""


class Place(Protocol[V]):
    """Where units stand: opened, asked for, updated."""

    path: Path
    """The folder of a store, or a file with units."""
    place: str
    """The same from the root of the project, with forward slashes, as ids spell it."""

    here: str
    """The same from the working directory, as commands spell it."""

    @property
    def file_name(self) -> str:
        """The file that people read, from the root of the project; for the diff."""

    noun: str
    """What its units are called: ``type``, ``unit``."""

    group: str
    """What such places are called: ``stores``, ``files``."""
    option: str
    """The option that names a unit in commands: ``--type``, ``--unit``."""

    has_pages: bool
    """Whether a unit may take several pages, each of which a language can write as well."""

    @property
    def source(self) -> str:
        """The file that people read, as commands spell it."""

    history_path: str
    """Where past outputs are kept, as commands spell it."""

    @property
    def title(self) -> str:
        """How reports name the kind of its units: ``types``, ``functions``, a class."""

    is_imported: bool
    """Whether tests import what stands there, so that a trial takes a process of its own."""
    trial_seconds: float
    """How long such a trial may take."""

    has_users: bool
    """Whether units may use one another."""

    def past(self) -> Sequence[Any]:
        """Return what was replaced or rejected, oldest first, as entries of the place's history.

        Each has ``id``, ``name``, ``page``, ``page_count``, ``model``, ``attempt``, ``reason`` and
        ``issues``; its ``to_json`` is the content of its file.

        Raises:
            StoreCorruptError: some of it cannot be read.
        """

    def open(self) -> V:
        """Return what the place holds now."""

    def asks(
        self,
        view: V,
        name: str,
        findings: Mapping[int, Sequence[Feedback]],
        settings: "TurnSettings",
    ) -> "list[Ask]":
        """Return the requests for pages of a unit, each with its corrections."""

    def record_issues(self, view: V) -> None:
        """Write down how many issues there are, where the place has a file for that.

        Raises:
            StoreWriteError: it cannot be written.
        """

    def prepare(self, answers: "Sequence[Answer]") -> None:
        """Do what takes time before others are locked out: read the new outputs once."""

    def join(self) -> Changes | None:
        """Settle what git could not join, where that cannot be read; ``None`` where it can."""

    def update(self) -> AbstractContextManager[PlaceUpdate[V]]:
        """Lock the place and read it afresh."""

    def trial(self, candidate: V, answers: "Sequence[Answer]") -> AbstractContextManager[Any]:
        """Put ``answers`` in place for a test that reads the files; yield a ``commit.Trial``.

        Nothing is locked. Taken out at the end unless it was accepted; its outputs go to the
        history then. Should the process be killed, whoever opens the place next sees it as without
        the candidate.
        """

    def is_on_trial(self) -> bool:
        """Return whether a test looks at a candidate that is in place for that time only."""

    def changed_paths(self) -> tuple[Path, ...]:
        """Return the files that a kept output changes."""


class Project(Protocol):
    """What it takes to open places: where a project lies, and what it fixed."""

    @property
    def root(self) -> Path:
        """The folder that ids begin at."""

    @property
    def kinds(self) -> "ProjectKinds":
        """The kinds of units that it has."""

    @property
    def ignored_codes(self) -> Callable[[str], frozenset[str]]:
        """Returns the codes that are not reported, by id of a unit."""

    def stores(self) -> Iterable[Path]:
        """Return the stores that it names; raises UsageError where it names none."""


PLACES: list[str] = ["pytest_regen.regeneration.store_place", "pytest_regen.units.opening"]
"""Modules with two functions: ``at`` returns the place at a path, or ``None``; ``below`` returns
the paths of places at or below a folder, or, given ``None``, of the project."""


def open_place(project: Project, path: Path) -> Place[Any] | None:
    """Return the place at a path; ``None`` where nothing of the project is one.

    Raises:
        UsageError: a kind cannot be loaded, or two claim the file.
    """
    # What reads stores is imported last for a file, because it takes a while and is not needed.
    kinds = PLACES if path.is_dir() else reversed(PLACES)
    places = (import_module(kind).at(project, path) for kind in kinds)
    return next((place for place in places if place is not None), None)


def places_in(project: Project, paths: Iterable[Path] | None = None) -> list[Place[Any]]:
    """Return the places at or below paths; by default all of the project.

    Raises:
        UsageError: as by ``open_place``.
    """
    folders = [None] if paths is None else list(paths)
    # By absolute path, because the folders that are given may lie in one another.
    by_path = {
        path.absolute(): path
        for kind in PLACES
        for folder in folders
        for path in import_module(kind).below(project, folder)
    }
    places = (open_place(project, path) for path in by_path.values())
    return [place for place in places if place is not None]
