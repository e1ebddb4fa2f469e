"""What the main flow works on: places that hold pieces of text a model wrote.

A store holds types, a file that a kind claims holds units. Each piece is known by its name and has
pages, counted from 1: a type has one per prompt, a unit has one.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, Self, TypeVar

from pytest_regen.regeneration.values import Answer, Ask, Mark, Rejected, Score, TurnSettings
from pytest_regen.validation.issues import Feedback, Issue


class View(Protocol):
    """What a place holds at one moment, with what is wrong with it. A value."""

    @property
    def names(self) -> Sequence[str]:
        """All pieces."""
        ...

    @property
    def text(self) -> str:
        """The file that people read; for the diff."""
        ...

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what is wrong with a piece, warnings included and ignored codes left out."""
        ...

    def score(self, name: str) -> Score:
        """Return what counts when outputs are compared; an empty score for an unknown piece."""
        ...

    def missing(self, name: str) -> Sequence[int]:
        """Return the pages that were never written."""
        ...

    def page_count(self, name: str) -> int:
        """Return how many pages a piece has."""
        ...

    def ordered(self, name: str) -> frozenset[Mark]:
        """Return the marks of errors that the prompts of a piece ask for themselves.

        What is wrong with an answer that follows its prompt exactly, no other answer can correct.
        """
        ...

    def obstacle(self, name: str) -> str:
        """Return why a piece must not be asked for, an edit by hand for one; empty if it may."""
        ...

    def users(self, name: str) -> Collection[str]:
        """Return the other pieces that fail where this one is wrong, directly or not."""
        ...

    def output(self, name: str, page: int) -> str | None:
        """Return what stands on a page; ``None`` where there is nothing yet."""
        ...

    def is_placed(self, name: str) -> bool:
        """Return whether the new output of a piece could be put in its place."""
        ...

    def basis(self, name: str) -> str:
        """Return a digest of what stands there and of what is asked for.

        Another digest means that an output which was made to replace it may not do so any more.

        Raises:
            KindError: a method of the kind raised.
        """
        ...

    def with_answers(self, answers: Sequence[Answer]) -> Self:
        """Return the view with new outputs in place; nothing is written.

        Only what they change is validated again. An output that cannot be put in its place is an
        issue of its piece.
        """
        ...


V = TypeVar("V", bound=View)


class PlaceUpdate(Protocol[V]):
    """A place that is locked for writing."""

    view: V
    """What it holds, read under the lock and again after ``write``."""

    def write(
        self, candidate: V, kept: Sequence[Answer], rejected: Sequence[Rejected]
    ) -> tuple[str, ...]:
        """Write what is kept and put the rest in the history, all in one change.

        Args:
            candidate: the view with the kept outputs in place.
            kept: these outputs; none where nothing is kept.
            rejected: the others.

        Returns:
            The history ids of ``rejected``, in their order.
        """
        ...


class Trial(Protocol):
    """A candidate that is in place while a test looks at it; taken out unless it is accepted."""

    @property
    def history(self) -> tuple[str, ...]:
        """Ids of the history entries that the end of the trial wrote."""
        ...

    def accept(self) -> None:
        """Keep the candidate."""
        ...

    def withdraw(self) -> None:
        """Take the candidate out and keep nothing of it here: it is kept elsewhere."""
        ...


class Place(Protocol[V]):
    """Where pieces stand: opened, asked for, updated."""

    @property
    def path(self) -> Path:
        """The folder of a store, or a file with units."""
        ...

    @property
    def file_name(self) -> str:
        """The name of the file that people read; for the diff."""
        ...

    def open(self) -> V:
        """Return what the place holds now."""
        ...

    def asks(
        self, view: V, name: str, wanted: Mapping[int, Sequence[Feedback]], settings: TurnSettings
    ) -> list[Ask]:
        """Return the requests for pages of a piece, each with its corrections."""
        ...

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Do what takes time before others are locked out: read the new outputs once."""
        ...

    def update(self) -> AbstractContextManager[PlaceUpdate[V]]:
        """Lock the place and read it afresh."""
        ...

    def trial(
        self, view: V, candidate: V, answers: Sequence[Answer]
    ) -> AbstractContextManager[Trial]:
        """Put ``candidate`` in place for a test that reads the files; nothing is locked.

        Taken out at the end unless it was accepted; its outputs go to the history then. Should the
        process be killed, whoever opens the place next sees it as without the candidate.
        """
        ...

    def is_on_trial(self) -> bool:
        """Return whether a test looks at a candidate that is in place for that time only."""
        ...

    def changed_paths(self) -> tuple[Path, ...]:
        """Return the files that a kept output changes."""
        ...
