"""The folder of one endpoint: opened, created, updated."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_regen.documents.ir import IR, ir_hash
from pytest_regen.errors import StoreWriteError
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.stores import files
from pytest_regen.stores.formats import PagesEnvelope, StoredPage, now, source_file_fault
from pytest_regen.stores.snapshot import Snapshot, is_store
from pytest_regen.stores.transaction import (
    LOCK_TIMEOUT,
    StoreUpdate,
    create_files,
    locked,
    telling,
    update,
)
from pytest_regen.stores.trial import Trial, trial

__all__ = ["RegenStore"]


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
        envelope = PagesEnvelope(
            version=1,
            endpoint={"method": ir.endpoint.method, "path": ir.endpoint.path},
            language=ir.language,
            namespace=namespace,
            profile=profile,
            boundary_tag=boundary_tag,
            ir_hash=ir_hash(ir),
            generated_at=now(),
            model=model,
            source_sha256=None,
            source_file=source_file,
        )
        with telling(path):
            files.make_folder(path.resolve().parent)
        with locked(path):
            if is_store(path):
                raise StoreWriteError(
                    f"there is a store at {path} already",
                    hint=f"update it, or move {path} away first",
                )
            create_files(path, envelope, ir, prompts, schema)
        return cls.open(path)
