"""The folder of one endpoint: opened, created, updated."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Generic

from pytest_regen import commit
from pytest_regen.commit import LOCK_TIMEOUT, Contents, View
from pytest_regen.documents.ir import IR, SCHEMAS, ir_hash
from pytest_regen.errors import StoreWriteError
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.store_folders import PAGES_FILE
from pytest_regen.stores.formats import (
    PagesEnvelope,
    StoredPage,
    ir_as_json,
    now,
    source_file_fault,
)
from pytest_regen.stores.history import store_files
from pytest_regen.stores.snapshot import Snapshot
from pytest_regen.stores.transaction import (
    PageChange,
    StoreT,
    StoreUpdate,
    create_or_update,
    pages_and_source,
    update,
)
from pytest_regen.stores.trials import (
    Content,
    TrialRecord,
    contents_at_end,
    splice,
    take_out,
)
from pytest_regen.strict_json import as_json
from pytest_regen.validation.issues import Issue


class Trial(Generic[StoreT]):
    """A candidate that is in place; taken out again unless ``accept`` is called."""

    def __init__(self, kind: type[StoreT], path: Path, trial_: commit.Trial) -> None:
        self._kind = kind
        self._path = path
        self._trial = trial_
        self._record = TrialRecord.from_json(trial_.record, path)
        self.history: tuple[str, ...] = ()
        """Ids of the history entries that the end of the trial wrote: the old outputs where the
        candidate was accepted, else the candidate's."""

    @property
    def is_accepted(self) -> bool:
        """Whether the candidate stays."""
        return self._trial.is_accepted

    @property
    def store(self) -> StoreT:
        """The store with the candidate in place, read afresh on each access."""
        return self._kind.open(self._path)

    def accept(self, issues: Mapping[str, Sequence[Issue]] | None = None) -> None:
        """Keep the candidate; the outputs it stands in for go to the history as replaced.

        Args:
            issues: type name to what was found in the old outputs, kept with them.

        Raises:
            StoreWriteError: the folder cannot be written; the candidate is taken out instead.
        """
        self._trial.accept(partial(self._end, is_accepted=True, issues=issues or {}))

    def reject(self, issues: Iterable[Issue] = ()) -> None:
        """Take the candidate out; what is wrong with it is kept with it in the history."""
        names = {key.type_name for key in self._record.candidates}
        found = dict.fromkeys(names, tuple(issues))
        self._trial.reject(partial(self._end, is_accepted=False, issues=found))

    def withdraw(self) -> None:
        """Take the candidate out and keep nothing of it here: it is kept elsewhere."""
        self._trial.reject(partial(self._end, is_accepted=False, issues={}, keeps=False))

    def _end(
        self,
        view: View,
        *,
        is_accepted: bool,
        issues: Mapping[str, Sequence[Issue]],
        keeps: bool = True,
    ) -> Contents:
        contents, self.history = contents_at_end(
            self._record, view, is_accepted=is_accepted, issues=issues, keeps=keeps
        )
        return contents


@contextmanager
def trial(
    kind: type[StoreT], base: StoreT, pages: Iterable[StoredPage], source: str
) -> Iterator[Trial[StoreT]]:
    """Put a candidate in place; see ``RegenStore.trial``."""
    pages = tuple(pages)
    files = store_files(base.path)

    def place(_: View) -> tuple[object, Contents]:
        return _candidate(kind.open(base.path), base, pages, source)

    with files.trial(place, take_out) as placed:
        candidate = Trial(kind, base.path, placed)
        try:
            yield candidate
        finally:
            candidate.reject()


def _candidate(
    store: Snapshot, base: Snapshot, pages: tuple[StoredPage, ...], source: str
) -> tuple[object, Contents]:
    """Return the record of a candidate, and the files that put it in place."""
    if store.source != base.source:
        # Others committed since the candidate was made: only its own blocks are put in.
        source = splice(store.source, source, dict.fromkeys(page.type_name for page in pages))
    contents = pages_and_source(store, PageChange(store, pages, None, ()), source)
    record = TrialRecord(
        Content(
            (store.path / PAGES_FILE).read_bytes(),
            store.source.encode() if store.has_source else None,
        ),
        Content(contents[PAGES_FILE] or b"", source.encode()),
        tuple(page.key for page in pages),
    )
    return record.to_json(), contents


class RegenStore(Snapshot):
    """A store at one moment (``RegenStore.open``); it does not follow later changes.

    Raises:
        StoreMissingError: by ``open`` and ``update``, there is no store.
        StoreCorruptError: by ``open`` and ``update``, an artifact does not hold together.
    """

    @classmethod
    @contextmanager
    def update(
        cls, path: Path | str, *, timeout: float = LOCK_TIMEOUT
    ) -> Iterator["StoreUpdate[RegenStore]"]:
        """Lock the store, read it afresh and yield it as ``tx.store``, with ``tx.write(…)``.

        Keep it short and ask no model inside: everybody else waits.

        Args:
            path: folder of the store.
            timeout: seconds to wait for another writer.

        Raises:
            StoreMissingError, StoreCorruptError: as by ``open``.
            StoreWriteError: another writer does not finish, or the folder cannot be written.
        """
        with update(cls, Path(path), timeout) as transaction:
            yield transaction

    @contextmanager
    def trial(self, *, pages: Iterable[StoredPage], source: str) -> Iterator["Trial[RegenStore]"]:
        """Put a candidate in place for a test that reads the folder.

        ``accept()`` on what is yielded keeps it. Otherwise all is put back when the block ends,
        byte for byte, and the candidate goes to the history as rejected; what others wrote
        meanwhile stays. Should this process be killed, the store reads as without the candidate.

        Args:
            pages: the candidate's, in place of those with the same identity.
            source: the whole source with the candidate's types in it, made from ``self.source``.

        Raises:
            StoreWriteError: the folder cannot be written; it is as it was.
            UnknownPageError: a page has no prompt.
        """
        with trial(RegenStore, self, pages, source) as candidate:
            yield candidate

    @classmethod
    def from_plan(
        cls,
        path: Path | str,
        *,
        ir: IR,
        prompts: Sequence[PromptEntry],
        pages: Iterable[StoredPage],
        source: str,
        source_file: str,
        namespace: str | None,
        profile: str,
    ) -> "RegenStore":
        """Return a store as it would be, before anything of it is written; see ``create``."""
        envelope = _first_envelope(ir, source_file, namespace=namespace, profile=profile)
        return cls._planned(Path(path), envelope.with_pages(pages, prompts), ir, prompts, source)

    @classmethod
    def _planned(
        cls,
        path: Path,
        envelope: PagesEnvelope,
        ir: IR,
        prompts: Sequence[PromptEntry],
        source: str = "",
    ) -> "RegenStore":
        with store_files(path).explain_errors():
            ir_data = ir_as_json(ir)
            prompts_data = as_json([entry.to_json() for entry in prompts])
        planned = cls(path, envelope, tuple(prompts), source, bool(source), ir_data, prompts_data)
        if ir.validation is None:
            # As it would be read from its JSON, which takes longer.
            found: dict[str, Any] = {"validation": {type_.name: [] for type_ in ir.types}}
            planned.__dict__["ir"] = ir.model_copy(update=found)
        return planned

    @classmethod
    def create(
        cls,
        path: Path | str,
        *,
        ir: IR,
        prompts: Sequence[PromptEntry],
        source_file: str,
        schema: str = "",
        namespace: str | None = None,
        profile: str = "default",
        boundary_tag: str = "REGEN",
        model: str = "",
    ) -> "RegenStore":
        """Make a store whose pages are all missing yet.

        Args:
            path: its folder; made where it is not there.
            ir: value of ``ir.json``.
            prompts: all of them, in the order of the source.
            source_file: plain name of the source file, such as ``ProjectDataObject.cs``.
            schema: text of ``schema.md``.
            namespace: of the source, where it has one.
            profile: of the language's assembly.
            boundary_tag: word of the boundary lines.
            model: who is going to be asked.

        Raises:
            StoreWriteError: there is a store already, or the folder cannot be written.
        """
        path = Path(path)
        if why := source_file_fault(source_file):
            raise StoreWriteError(
                f"no store can be made at {path}: {why}", hint="give the source another file name"
            )
        envelope = _first_envelope(
            ir, source_file, namespace=namespace, profile=profile, tag=boundary_tag, model=model
        )
        planned = cls._planned(path, envelope, ir, prompts)
        with create_or_update(planned, schema) as tx:
            if tx.store is not planned:
                raise StoreWriteError(
                    f"there is a store at {path} already",
                    hint=f"update it, or move {path} away first",
                )
            tx.write()
        return cls.open(path)

    @classmethod
    @contextmanager
    def create_or_update(
        cls, planned: "RegenStore", *, schema: str, timeout: float = LOCK_TIMEOUT
    ) -> Iterator["StoreUpdate[RegenStore]"]:
        """Lock a store that is not there yet, so that it is made together with its first pages.

        ``tx.store`` is the planned one; the first ``tx.write(…)`` makes the folder with all that is
        planned and all that it is given, in one step. Where another process has made a store there
        meanwhile, ``tx`` is an ``update`` of that one.

        Args:
            planned: from ``from_plan``.
            schema: text of ``schema.md``.
            timeout: seconds to wait for another writer.

        Raises:
            StoreCorruptError: of the other process, as by ``open``.
            StoreWriteError: another writer does not finish, or the folder cannot be written.
        """
        with create_or_update(planned, schema, timeout) as transaction:
            yield transaction


def _first_envelope(
    ir: IR,
    source_file: str,
    *,
    namespace: str | None,
    profile: str,
    tag: str = "REGEN",
    model: str = "",
) -> PagesEnvelope:
    """Return what a store says of itself before it has pages."""
    return PagesEnvelope(
        version=1,
        endpoint={"method": ir.endpoint.method, "path": ir.endpoint.path},
        language=ir.language,
        namespace=namespace,
        profile=profile,
        boundary_tag=tag,
        ir_hash=None if ir.endpoint.status == SCHEMAS else ir_hash(ir),
        generated_at=now(),
        model=model,
        source_file=source_file,
    )
