"""A store as a place: its units are types, its files those of the folder."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regen.commit import Candidate, Trial
from pytest_regen.commit import View as FilesView
from pytest_regen.languages import find_language
from pytest_regen.prompts import correction_block, estimated_output_tokens
from pytest_regen.regeneration import store_view
from pytest_regen.regeneration.asking import request_for
from pytest_regen.regeneration.places import Changes
from pytest_regen.regeneration.store_edits import LockedStore
from pytest_regen.regeneration.store_view import StoreView
from pytest_regen.regeneration.values import Answer, Ask, TurnSettings
from pytest_regen.store_folders import PAGES_FILE, PROMPTS_FILE, is_store
from pytest_regen.stores import HistoryEntry, RegenStore, StoreUpdate, history
from pytest_regen.stores.conflicts import take_ours
from pytest_regen.stores.history import store_files
from pytest_regen.stores.store import refuse_no_store
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.validation.issues import Feedback, Ignore

if TYPE_CHECKING:
    from pytest_regen.regeneration.places import Project


def at(project: "Project", path: Path) -> "StorePlace | None":
    """Return the store at a path of a project, if there is one."""
    if not is_store(path):
        return None
    place = StorePlace(path, root=project.root)
    place.ignore = lambda name: project.ignored_codes(f"{place.place}::{name}")
    return place


def below(project: "Project", folder: Path | None) -> Iterable[Path]:
    """Return the stores at or right below a folder; by default those that a project names."""
    if folder is None:
        return project.stores()
    return [folder] if is_store(folder) else filter(is_store, sorted(folder.glob("*")))


class StorePlace:
    """The folder of a store.

    Args:
        path: the folder.
        ignore: codes that do not count.
        root: of the project.
    """

    noun = "type"
    title = "types"
    group, option, has_pages = "stores", "--type", True
    is_imported = False
    trial_seconds = 0.0
    has_users = False

    def __init__(self, path: Path | str, ignore: Ignore = (), root: Path | None = None) -> None:
        self.path = Path(path)
        self.ignore = ignore
        self.place = Path(os.path.relpath(self.path, root or Path())).as_posix()
        """The folder from the root of the project, as ids spell it."""
        # As it was given where that is shorter: outside of the working directory, say.
        self.here = min(os.path.relpath(self.path), str(self.path), key=len)
        """The folder as commands spell it."""
        self.history_path = Path(self.here, "history").as_posix()
        self._view: StoreView | None = None

    @property
    def file_name(self) -> str:
        """The source, from the root of the project."""
        return f"{self.place}/{(self._view or self.open()).store.envelope.source_file}"

    @property
    def source(self) -> str:
        """The source as commands spell it."""
        return Path(self.here, Path(self.file_name).name).as_posix()

    def open(self) -> StoreView:
        """Read the store; what is as it was is not read or validated again."""
        return self.view_of(RegenStore.open(self.path))

    def view_of(self, store: RegenStore) -> StoreView:
        """Return the view of a store: the last one, where it is the same store."""
        if self._view is None or self._view.store is not store:
            self._view = StoreView(store, self.ignore)
        return self._view

    def asks(
        self,
        view: StoreView,
        name: str,
        findings: Mapping[int, Sequence[Feedback]],
        settings: TurnSettings,
    ) -> list[Ask]:
        """Return the requests for pages of a type, each with its corrections."""
        store, before = view.store, self.written(view)
        language, asks = find_language(store.ir.language), []
        for entry in store.prompts_of(name):
            if entry.page not in findings:
                continue
            notes = findings[entry.page]
            correction = correction_block(notes, entry.user) if notes else ""
            # With a correction it is another request, because its words are in it.
            page = before.pages.get(entry.key) if before and not notes else None
            # The template reads no corrections; what a person or a test says, a model is told.
            is_told = any(isinstance(note, str) for note in notes)
            by_template = not is_told and store_view.keeps_template(before, entry, settings)
            model = store_view.model_for(before, entry, settings)
            request = request_for(entry.system, entry.user, correction, model, settings)
            ask = Ask(
                name,
                entry.page,
                request,
                output_tokens=estimated_output_tokens(entry),
                prompt_file=PROMPTS_FILE,
                title=f"{name}, page {entry.page} of {entry.total_pages}",
                extract=partial(store_view.code_in, entry=entry, language=language),
                entry=entry,
                template=partial(store_view.write_page, store, entry),
                provider=TemplateProvider() if by_template else None,
                correction=correction,
                stored=page.output if page and page.prompt_hash == entry.prompt_hash else None,
            )
            asks.append(ask)
        return asks

    def written(self, view: StoreView) -> RegenStore | None:
        """Return what the folder holds, which says who wrote each page."""
        return view.store

    def past(self) -> tuple[HistoryEntry, ...]:
        """Return what was replaced or rejected, oldest first."""
        return history(self.path)

    def record_issues(self, view: StoreView) -> None:
        """Update the ``validation`` of ``ir.json`` if it changed: what was found, by type.

        No totals, no time and no line of the file: what is found in one type changes nothing in
        what is said of another.
        """
        # Without what is null, because that would be half of the lines of a review.
        keys = ("code", "severity", "message", "page", "field")
        summary = {
            name: [
                {key: getattr(issue, key) for key in keys if getattr(issue, key) is not None}
                for issue in result.issues
            ]
            for name, result in view.results.items()
        }
        # Only then, because a file that is written anew is a change that somebody has to review.
        if view.store.ir.validation != summary:
            # Into what is read under the lock, because the store may have changed meanwhile.
            with RegenStore.update(self.path) as tx:
                tx.write(ir=tx.store.ir.model_copy(update={"validation": summary}))

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Validate the candidate before the store is locked.

        Nothing is stored that cannot be validated, and no other writer waits meanwhile.
        """
        _ = self.open().with_answers(answers).results

    def join(self) -> Changes | None:
        """Take our version of a store that git did not merge; ``None`` of any other."""
        refuse_no_store(self.path)
        taken = take_ours(self.path)
        if taken is None:
            return None
        files, types, history = taken
        # Because git may have merged the pages and not the source: a block is of one side then.
        with self.update() as update:
            rebuilt = update.rebuild(None)
        names = tuple(dict.fromkeys((*types, *rebuilt.names)))
        return Changes(names, (*history, *rebuilt.history), rebuilt.diff, joined=tuple(files))

    @contextmanager
    def update(self) -> Iterator[LockedStore]:
        """Lock the store and read it afresh."""
        with RegenStore.update(self.path) as transaction:
            yield LockedStore(self, transaction)

    def trial(
        self, candidate: StoreView, answers: Sequence[Answer]
    ) -> AbstractContextManager[Trial]:
        """Put outputs in place for a test that reads the folder."""
        issues = {answer.ask.name: candidate.issues(answer.ask.name) for answer in answers}

        def place(_: FilesView) -> Candidate:
            # Made anew under the lock, because others may have written since.
            tried = self.open().with_answers(answers).store
            pages = [tried.pages[answer.ask.entry.key] for answer in answers]
            return StoreUpdate(RegenStore.open(self.path)).candidate(pages, tried.source, issues)

        # By `trial`, because what is in place is undone whatever becomes of the test.
        return store_files(self.path).trial(place)

    def is_on_trial(self) -> bool:
        """Return whether a test looks at a candidate that is in place for that time only."""
        return store_files(self.path).is_on_trial()

    def changed_paths(self) -> tuple[Path, ...]:
        """Return the files that a kept output changes."""
        store = (self._view or self.open()).store
        return (store.source_path, store.path / PAGES_FILE)
