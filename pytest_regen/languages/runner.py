"""What running generated code takes: questions to it, and what came back. Values, and a protocol.

A language says by ``Language.runner`` how code of a profile is run. A runner hands each type the
JSON of some instances and reports what became of them; what should have become of them it does not
know. The caller compares, see ``pytest_regen.behaviour``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_regen.documents.ir import TypeIR


@dataclass(frozen=True, slots=True)
class Traits:
    """What values of the generated code can hold; what they cannot is no fault of the code."""

    largest_integer: int | None = None
    """Integers beyond it lose digits, so that no instance has one; ``None``: there is no limit."""
    keeps_offset: bool = True
    """Whether a date-time comes back with the offset that it had, not only as the same instant."""
    partial_formats: frozenset[str] = frozenset()
    """Formats of which some right carriers hold only a part: instances with them are left out."""
    takes_more: bool = True
    """Whether properties beside those of the IR are let through, as an API that grows needs it."""
    keeps_more: bool = False
    """Whether they come back unchanged."""
    tells_absence: bool = True
    """Whether a member that was left out differs from one that is null."""
    complete: Callable[[Any, Mapping[str, Any]], Any] | None = None
    """Makes a declaration of one that was read and of what a run tells of the type; it raises
    whatever goes wrong where that is not what the runner sends. ``None``: a run does not tell what
    types are."""


@dataclass(frozen=True, slots=True)
class Question:
    """Instances for one type to load and dump; which of them are valid is not said."""

    type: TypeIR
    members: Mapping[str, str]
    """JSON name of each field to the member that prompts propose for it; empty for an enum."""
    instances: tuple[str, ...]
    """JSON texts."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one instance."""

    texts: tuple[str, ...] = ()
    """The JSON that the loaded value was dumped to, once for each way to dump it that gives another
    text; none where it was not loaded or dumped."""
    refusal: str | None = None
    """Why it was refused by the strictest reading that the code has; ``None`` where it was not.

    A library that makes numbers of text, say, may refuse an instance strictly and load it all the
    same.
    """
    path: tuple[str | int, ...] = ()
    """Which value of the instance was refused, as far as that is known."""
    members: str = ""
    """What the members of the loaded value hold: a JSON object by their names; empty if unknown."""

    @classmethod
    def of(cls, texts: Any, refusal: Any, path: Any, members: Any = "") -> "Reply":
        """Return what a program sent; from outside, so that it may be anything.

        Raises:
            TypeError: it is not what a program of ours sends.
        """
        return cls(tuple(map(str, texts)), refusal, tuple(path), str(members))


@dataclass(frozen=True, slots=True)
class RunFault:
    """Why no instances of a type, or of none, were answered."""

    message: str
    type_name: str | None = None
    """``None``: the whole source could not be run."""
    line: int | None = None
    """Where in the source that was run; counts from 1."""
    detail: str = ""
    """More lines, such as the end of a traceback."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of one run."""

    replies: Mapping[str, tuple[Reply, ...]]
    """By name of a type: a reply per instance."""
    faults: tuple[RunFault, ...] = ()
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name of a type: what it is, as plain JSON, where a run tells that. ``fault`` among them:
    why it could not be loaded; ``blocked``: it is made of one that was not;
    ``texts``: JSON names of fields that are text, which is right whatever their format."""


class Runner(Protocol):
    """Runs generated code of one language and profile, in the sandbox alone."""

    @property
    def traits(self) -> Traits:
        """What values of the code can hold."""

    @property
    def is_rare(self) -> bool:
        """Whether few have what it takes: that it is missing is then not said in each run."""

    def missing(self, folder: Path) -> str | None:
        """Return what is not there to run code with, and how to get it; ``None``: all is there.

        Args:
            folder: of the store; packages are looked for there and above.
        """

    def version(self, folder: Path) -> str:
        """Return a text that differs where the same code could answer otherwise.

        That is the version of this runner, and those of the interpreter and of the libraries.
        """

    def refuses(
        self, type_: TypeIR, keyword: str, path: Sequence[str | int], value: object
    ) -> bool:
        """Return whether right code refuses an instance that violates a keyword.

        Args:
            type_: the type that the instance is for.
            keyword: as ``strategies.Violation`` has it.
            path: from the instance to the value that is wrong; it begins with the field's name,
                and is empty for an enum.
            value: what is wrong; ``None`` where it is missing.
        """

    def run(
        self,
        code: str,
        questions: Sequence[Question],
        folder: Path,
        blocks: Mapping[str, tuple[int, int]],
    ) -> Answers:
        """Run ``code`` and return what it makes of the instances.

        A type is in the replies, or has a fault, or is in neither: then it was not asked, for a
        fault of others.

        Args:
            code: the source of a store, or a part of it.
            questions: at most one for each type.
            folder: of the store; only packages are read from there and above.
            blocks: first and last line of each type, which is blank where it was left out.
        """
