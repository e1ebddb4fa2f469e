"""What a user writes: a kind of units, and one unit as a kind's methods see it."""

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from pytest_regen.errors import KindError, RegenError
from pytest_regen.files import from_here
from pytest_regen.regions import Marked, Region, WholeFile
from pytest_regen.regions.base import decode
from pytest_regen.text import fenced_blocks, without_blank_ends, without_thinking
from pytest_regen.units.naming import encode_name
from pytest_regen.validation.issues import WEAKENED, Issue, Weakness, added_weaknesses

T = TypeVar("T")

CHECK: Final = "CHECK"
"""The code of a finding that a kind gave as a sentence."""

Finding = Issue | tuple[str, str] | str
"""What ``check`` yields: an issue, a code and a message, or a sentence."""

Example = tuple[str, str, str]
"""A name, a good text and a bad text."""

_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of a checked-in file that a model wrote."""

    name: str
    path: Path
    """The file, absolute."""
    text: str
    """What stands there; empty in ``prompt`` and ``inputs``, so that an answer is no input."""
    file_text: str
    """The whole file with ``text`` in it; empty in ``prompt`` and ``inputs``."""
    kind: "Kind"
    is_by_hand: bool = False
    """In ``check``, whether somebody wrote or adopted the text: no model did."""
    tests: tuple[str, ...] = ()
    """In ``weakens``, the sources of the tests that asked for the candidate."""
    failures: tuple[str, ...] = ()
    """In ``weakens``, what was wrong with the old text, in words."""


class Kind:
    """What units of one sort have in common. Subclass it, and set at least ``files``."""

    files: str | Sequence[str] = ()
    """Globs from the root of the project; a plain path may be absent."""
    region: Region = Marked()
    """Where the texts stand; by default between the marker lines of ``regions.Marked``."""
    system: str = ""
    """System prompt of every unit, cached by the provider."""
    system_inputs: str | None = None
    """What of the system prompt units are made from; ``None`` for all of it. A kind whose wording
    is not its users' names only what they wrote, so that a new release makes nothing stale."""
    settings: Mapping[str, Any] = {}
    """What else every unit was made from; JSON values."""
    is_imported: bool = False
    """Whether tests import the files: a candidate is then tried in a process of its own."""
    trial_seconds: float = 120
    """After which such a process is killed, and the trial has failed."""
    examples: ClassVar[Iterable[Example]] = ()
    """Texts that ``check`` must accept and refuse; the conformance suite tries them."""

    @property
    def title(self) -> str:
        """How messages name the kind."""
        return type(self).__name__

    def claims(self, file: Path) -> bool:
        """Return whether a file that ``files`` matches is one of the kind's."""
        return True

    def units(self, file: Path) -> Iterable[str]:
        """Return the names that must exist in ``file``, which may not exist yet."""
        if isinstance(self.region, WholeFile):
            return (self.region.name,)  # Whether or not it was written yet.
        if not file.exists():
            return ()
        return tuple(self.region.find(decode(file.read_bytes(), from_here(file))))

    def inputs(self, unit: Unit) -> Iterable[str | Path]:
        """Return what a unit was made from: texts, and files that are hashed.

        A mapping names each of them, so that STALE can say which one changed.
        """
        return [self.prompt(unit), *filter(None, [self.shared(unit.path)])]

    def own_inputs(self, unit: Unit) -> Iterable[str | Path]:
        """Return what a text by hand was written for; another one makes it stale.

        By default the first of ``inputs``.
        """
        return list(named_inputs(self.inputs(unit)).values())[:1]

    def shared(self, file: Path) -> str:
        """Return what all units of a file are shown: it follows ``system``, and is cached with it.

        It holds none of the units' texts, so that an answer changes nothing of it.
        """
        return ""

    def prompt(self, unit: Unit) -> str:
        """Return what is asked for; put foreign text into it through ``quoted``."""
        raise NotImplementedError(f"{self.title} has no prompt(unit)")

    def extract(self, reply: str, unit: Unit) -> str:
        """Return the text in a reply: the only fenced block, the last of several, or all of it."""
        return extract_text(reply)

    def uses(self, unit: Unit) -> Iterable[str]:
        """Return the names of units of the same file without which ``check`` may fail this one.

        Where several fail, these are asked for first, and the unit is checked again after them.
        """
        return ()

    def is_empty(self, unit: Unit) -> bool:
        """Return whether the text is a stub that is still to be generated."""
        return not unit.text.strip()

    def is_only_read(self, unit: Unit) -> bool:
        """Return whether the text is code of which ``check`` runs nothing; pytest then says so."""
        return False

    def prepare(self, files: Sequence[Path]) -> None:
        """Do for several files at once what ``check`` would do for each; called before it."""

    def check(self, unit: Unit) -> Iterable[Finding]:
        """Return what is wrong with a unit, or a candidate for it."""
        return ()

    def weakens(self, old: Unit, new: Unit) -> Iterable[Finding]:
        """Return by what a candidate is tested less than the text that it replaces.

        By default: by comments that tell a checker to look away, which the old text has not.
        """
        found = added_weaknesses(_directives(old.text), _directives(new.text))
        return [Issue.of(WEAKENED, one.message, detail=one.detail, line=one.line) for one in found]


def named_inputs(inputs: Iterable[str | Path]) -> Mapping[str, str | Path]:
    """Return what ``inputs`` gave, each by the name that STALE says."""
    if isinstance(inputs, Mapping):
        return inputs
    by_name: dict[str, str | Path] = {}
    for number, value in enumerate(inputs, 1):
        name = value.name if isinstance(value, Path) else ""
        # By number where a name says too little, because STALE has to tell them apart.
        by_name[name if name and name not in by_name else f"input {number}"] = value
    return by_name


def _directives(text: str) -> Iterable[Weakness]:
    from pytest_regen.suppressions import find_directives

    return [Weakness.of_directive(said, line, "text") for line, said in find_directives(text)]


def extract_text(reply: str) -> str:
    """Return the last fenced block of a reply, or the whole of it; no surrounding blank lines."""
    text = without_thinking(reply.replace("\r\n", "\n"))
    blocks = [code for _, code in fenced_blocks(text)]
    if blocks:
        return blocks[-1]
    text = without_blank_ends(text)
    # Of several lines the ends stay, because blanks there may be indentation.
    return text if "\n" in text else text.strip()


def call_kind(kind: Kind, method: str, call: Callable[[], T], *, where: str = "") -> T:
    """Return what a method of a kind returns.

    Raises:
        KindError: it raised; the error has the traceback from the kind's own code on, or the words
            of an error that a kind raised to be read.
    """
    try:
        return call()
    # Without a traceback, because its words were written to be read.
    except RegenError as error:
        raise KindError(error.what, trace="", why=error.why, hint=error.hint) from error
    except (Exception, SystemExit) as error:
        # An exit would end the run as if nothing were wrong.
        trace = error.__traceback__
        # From their own frame on, because ours say nothing about what is wrong with the kind.
        while trace and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            trace = trace.tb_next
        lines = traceback.format_exception(type(error), error, trace)
        about = f" for {encode_name(where)}" if where else ""
        raise KindError(
            f"{kind.title}.{method} raised {type(error).__name__}{about}",
            trace="".join(lines).rstrip(),
            why=str(error) or type(error).__name__,
            hint=f"correct {type(kind).__module__}.{type(kind).__qualname__}.{method}, or what it "
            "reads",
        ) from error


def unusable(kind: Kind, method: str, name: str, value: object, rule: str) -> KindError:
    """Return the error about what a method of a kind gave."""
    return KindError(
        f"{kind.title}.{method} gives {value!r:.80} for {name}",
        trace="",
        why=rule,
        hint=f"correct {type(kind).__module__}.{type(kind).__qualname__}.{method}",
    )


def issues_from(findings: object, unit: Unit, *, code: str = CHECK) -> tuple[Issue, ...]:
    """Return what ``check`` gave as issues of the unit; sentences get ``code``.

    Raises:
        TypeError: it is nothing that ``check`` may give.
    """
    if findings is None:
        return ()
    if isinstance(findings, str | Issue) or not isinstance(findings, Iterable):
        findings = [findings]
    return tuple(_issue(finding, unit, code) for finding in findings)


def _issue(finding: object, unit: Unit, default: str) -> Issue:
    match finding:
        case Issue():
            # A unit has no pages, and is looked for in its file alone.
            return replace(finding, type_name=unit.name, page=None, file=None)
        case (str() as code, str() as message):
            return Issue.of(code, message, type_name=unit.name)
        case str() as message if message.strip():
            return Issue.of(default, message, type_name=unit.name)
    raise TypeError(
        f"check yields {finding!r:.200}; it is an Issue, a (code, message) or a sentence"
    )
