"""A file with units as a place of the main flow: opened, asked about, written."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_regen.commit import AtomicFiles, Candidate, Trial
from pytest_regen.commit import View as FilesView
from pytest_regen.errors import StoreCorruptError, UsageError
from pytest_regen.files import Stamp, from_here, stamp
from pytest_regen.text import quoted
from pytest_regen.units.kind import Kind, Unit, call_kind, unusable
from pytest_regen.units.ledger import PastText, entry_name, hand_name, read_history
from pytest_regen.units.loading import ProjectKinds
from pytest_regen.units.texts import texts_or_none, units_in
from pytest_regen.units.view import Asked, FileUnits
from pytest_regen.validation.issues import WEAKENED, FailedTest, Feedback

if TYPE_CHECKING:
    from pytest_regen.regeneration.places import Changes
    from pytest_regen.regeneration.values import Answer, Ask, TurnSettings
    from pytest_regen.units.writing import UnitUpdate

# What the shortest answer costs in output, for the budget's estimate.
_LEAST_TOKENS: Final = 64
# Characters of the last answer that a correction shows.
_LONGEST_ANSWER: Final = 2_000
# Characters of a test that a correction shows.
_LONGEST_TEST: Final = 4_000


_LOCK: Final = ".regen/locks/units.lock"

Ignored = Callable[[str], Collection[str]]
"""Returns the codes that are not reported for a unit, by its id."""


def project_files(root: Path) -> AtomicFiles:
    """Return the files of a project as units are written: all or none."""
    return AtomicFiles(
        root,
        what=f"the units of {root}",
        lock=root / _LOCK,
        journal=".regen/journal",
        aside=".regen/history",
    )


def open_units(
    kinds: ProjectKinds, path: Path | str, *, ignore: Ignored = lambda _: (), is_lost: bool = False
) -> "UnitFile":
    """Return the file at ``path`` with its units.

    Args:
        kinds: of the project.
        path: from the root of the project, or absolute.
        ignore: the codes that are not reported, by id of a unit.
        is_lost: whether it is opened for the sake of its ledger: no kind need claim it.

    Raises:
        UsageError: no kind claims it.
    """
    path = kinds.absolute(path)
    kind, place = kinds.kind_of(path), kinds.place(path)
    if is_lost and place is not None:
        # A module without marker lines is still one of its kind's.
        able = kinds.kind_to_enclose(path)
        reader = able or kind or kinds.kind_to_read(path)
        return UnitFile(kinds, place, reader, ignore, is_lost=able is None)
    if kind is None or place is None:
        raise UsageError(
            f"no kind claims {path}",
            why=f"the project has {', '.join(claim.origin for claim in kinds.kinds) or 'no kinds'}",
            hint="name a file that the globs of a kind match",
        )
    return UnitFile(kinds, place, kind, ignore)


class UnitFile:
    """A file whose units are of one kind: opened, asked about, written.

    Args:
        kinds: of the project.
        place: the file, from the root, with forward slashes.
        kind: claims the file.
        ignore: the codes that are not reported, by id of a unit.
        is_lost: whether the kind does not claim the file, or the file is gone.
    """

    noun, group, option, has_pages = "unit", "files", "--unit", False
    history_path = ".regen/history"
    _last: FileUnits | None = None
    _stamps: tuple[Stamp | None, ...] = ()

    def __init__(
        self, kinds: ProjectKinds, place: str, kind: Kind, ignore: Ignored, *, is_lost: bool = False
    ) -> None:
        self.kind = kind
        self.ignore = ignore
        self.is_lost = is_lost
        self.root = kinds.root
        self.files = project_files(kinds.root)
        self.path = self.root / place
        self.place = self.file_name = place
        """The file, as ids, diffs and the folder of its recordings name it."""
        self.here = self.source = from_here(self.path)
        """The file as commands name it."""
        self.is_imported, self.trial_seconds = kind.is_imported, kind.trial_seconds
        # By the class, because to ask each unit would take as long as checking it.
        self.has_users = type(kind).uses is not Kind.uses
        """Whether the kind may say that units use one another."""
        self._kinds = kinds

    @property
    def title(self) -> str:
        """How reports name the kind: ``functions``, ``translations``, a class."""
        kind = type(self.kind)
        package, _, module = kind.__module__.partition(".kinds.")
        if package != "pytest_regen":
            return kind.__name__
        return "functions" if module.startswith("functions") else "translations"

    def elsewhere(self, name: str) -> str:
        """Return another file that has a unit, or had it but for its marks, and tests it not."""
        is_code = hasattr(self.kind.region, "defined")
        if not is_code and type(self.kind).units is not Kind.units:
            return ""  # Such names are no file's own: every catalogue has the same.
        word = name.rpartition(".")[2]
        for place, text in self._kinds.texts_like(self.path).items():
            is_near = place != self.place and (is_code or Path(place).name == self.path.name)
            if is_near and word in text and name in units_in(self.kind, text):
                kind = self._kinds.kind_of(self.root / place)
                if kind is None or name not in texts_or_none(kind, text):
                    return place
        return ""

    def open(self) -> FileUnits:
        """Read the file and its ledger.

        Raises:
            StoreCorruptError: what a killed process left cannot be read.
        """
        return self.files.read(self._read)

    def _read(self, view: FilesView) -> FileUnits:
        units = FileUnits(self, view)
        try:
            # Now, because the files may have changed when they are needed.
            _ = units.data, units.ledger
        except OSError as error:
            place = Path(error.filename or self.path)
            raise StoreCorruptError(
                f"{from_here(place)} cannot be read: {error.strerror or error}",
                hint="put a file there that can be read, then run the same command again",
            ) from error
        return units

    @contextmanager
    def update(self) -> "Iterator[UnitUpdate]":
        """Lock the project's units and read the file afresh."""
        from pytest_regen.units.writing import UnitUpdate

        with self.files.locked() as files:
            view = self._last
            # What this object wrote last, unless the file or its ledger changed since.
            if view is None or self._stamps != self._stamp():
                view = self._read(files)
            update = UnitUpdate(self, view)
            yield update
            # Still under the lock, because a stamp taken after it could be another writer's.
            if update.view is not view:
                self._last, self._stamps = update.view, self._stamp()

    def _stamp(self) -> tuple[Stamp | None, ...]:
        """Return what is another as soon as the file or its ledger is another.

        Entries are replaced by renames, as git does it too, so that their folder changes.
        """
        folder = (self.root / entry_name(self.place, "-")).parent
        return tuple(map(stamp, (self.path, folder, self.root / hand_name(self.place))))

    # The main flow

    def asks(
        self,
        view: FileUnits,
        name: str,
        findings: Mapping[int, Sequence[Feedback]],
        settings: "TurnSettings",
    ) -> "list[Ask]":
        """Return the request for a unit, with its corrections."""
        # Here, because a run that asks nothing of a model is to load nothing that asks.
        from pytest_regen.regeneration.asking import model_to_ask, request_for
        from pytest_regen.regeneration.values import Ask
        from pytest_regen.turns.values import estimate_tokens

        prompt, inputs = view.prompt(name), view.inputs(name)
        notes = [note for page in findings.values() for note in page]
        correction = _correction(view, name, notes)
        tests = tuple(note.source for note in notes if isinstance(note, FailedTest))
        failures = tuple(
            note if isinstance(note, str) else f"{note.message}\n{note.detail or ''}"
            for note in notes
            if isinstance(note, str) or note.code != WEAKENED
        )
        recorded = view.entry(name)
        reply = recorded.output if recorded else ""
        # With a correction it is another request, because its words are in it.
        is_answered = recorded is not None and not correction and recorded.answers(prompt)
        model = model_to_ask(settings, recorded, view.last_of_each_model)
        return [
            Ask(
                name,
                1,
                request_for(view.system, prompt, correction, model, settings),
                estimate_tokens(reply)
                or view.usual_tokens
                or max(_LEAST_TOKENS, estimate_tokens(prompt)),
                title=f"{name} of {self.place}",
                extract=partial(_extract, view.bare_unit(name)),
                entry=Asked(prompt, inputs, tests, failures),
                correction=correction,
                stored=reply if is_answered else None,
            )
        ]

    def past(self) -> list[PastText]:
        """Return the texts that were replaced or rejected, oldest first."""
        units = self.open()
        return list(read_history(units.files, units.ledger.place))

    def record_issues(self, view: FileUnits) -> None:
        """Do nothing: the ledger says nothing of issues."""

    def prepare(self, answers: "Sequence[Answer]") -> None:
        """Do nothing: a text is put into its file and checked in no time."""

    def join(self) -> "Changes | None":
        """Return nothing: a file that git tore can be read, and is rebuilt as any other."""
        return None

    def trial(
        self, candidate: FileUnits, answers: "Sequence[Answer]"
    ) -> AbstractContextManager[Trial]:
        """Put texts in place for a test that reads the file."""
        from pytest_regen.units.writing import UnitUpdate

        issues = {answer.ask.name: candidate.all_issues(answer.ask.name) for answer in answers}

        def place(files: FilesView) -> Candidate:
            # Made anew under the lock, because others may have written since.
            return UnitUpdate(self, self._read(files)).candidate(answers, issues)

        return self.files.trial(place)

    def is_on_trial(self) -> bool:
        """Return whether a test looks at a candidate that is in place for that time only."""
        return self.files.is_on_trial(self.place)

    def changed_paths(self) -> tuple[Path, ...]:
        """Return the file; its ledger is committed with it."""
        return (self.path, self.root / ".regen")


def _correction(units: FileUnits, name: str, findings: Sequence[Feedback]) -> str:
    """Return what was wrong with a unit, with the text that it is about.

    The model sees neither the file nor its last answer.
    """
    from pytest_regen.prompts import list_corrections

    # That there was no answer yet is nothing to correct.
    errors = [
        finding
        for finding in findings
        if isinstance(finding, str) or finding.code != "MISSING_UNIT"
    ]
    if not errors:
        return ""
    block = list_corrections(errors)
    for source in dict.fromkeys(error.source for error in errors if isinstance(error, FailedTest)):
        if source and len(source) <= _LONGEST_TEST:
            block += f"\n\nThe test that fails, as JSON: {quoted(source)}"
    text = units.output(name, 1)
    if text and "\n" in text and len(text) <= _LONGEST_ANSWER:
        # A single line is quoted with each finding.
        block += f"\n\nThe text that these are about, as JSON: {quoted(text)}"
    return block


def _extract(unit: Unit, pieces: Sequence[str]) -> str:
    """Return the text in a reply, which may have come in several pieces."""
    from pytest_regen.turns.reply_text import join_text

    # Half surrogate pairs go, because a reply may hold them and no file can.
    whole = join_text(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    kind = unit.kind
    text: object = call_kind(kind, "extract", lambda: kind.extract(whole, unit), where=unit.name)
    if not isinstance(text, str):
        raise unusable(kind, "extract", unit.name, text, "it returns the text of the unit")
    return text
