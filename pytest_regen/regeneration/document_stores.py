"""The stores of a project by the document that they are made of: what one command serves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_regen.documents import Document, Part, read_document
from pytest_regen.documents.ir import REQUEST, SCHEMAS
from pytest_regen.documents.parts import Request, endpoint_of
from pytest_regen.errors import NothingToGenerateError, RegenError, StoreError
from pytest_regen.regeneration.generate import generate_store
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.text import plural, shorten
from pytest_regen.validation.stores import Origin, from_here, update_command

_MOST_PLANNED: Final = 50
"""Operations without a store that are looked into: some answer with nothing that needs one."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Operations of a document without a store, although others have one."""

    spec: str
    """The document, seen from the working directory."""
    out: str
    """The folder that holds the stores of the others."""
    names: tuple[str, ...]
    command: str
    """Says what it would take to have them all."""

    def __str__(self) -> str:
        number = plural(len(self.names), "operation")
        verb = "has" if len(self.names) == 1 else "have"
        return f"{number} of {self.spec} {verb} no store in {self.out}: {shorten(self.names)}"

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON."""
        return {"document": self.spec, "out": self.out, "operations": list(self.names)}


def command_for_all(folders: Sequence[Path]) -> str:
    """Return the command that makes stores anew; empty where there is none for all of them.

    Args:
        folders: of the stores; the first decides which document is meant.
    """
    documents = DocumentStores(is_whole=True)
    origins = [_origin(folder) for folder in folders]
    # Others beside them may have been made in another way.
    beside = [_origin(file.parent) for file in sorted(folders[0].parent.glob("*/pages.json"))]
    for origin in filter(None, (*origins, *beside)):
        documents.add(origin)
    return documents.command_for_all(origins[0]) if origins[0] else ""


def _origin(folder: Path) -> Origin | None:
    try:
        return Origin.of(RegenStore.open(folder))
    except StoreError:
        return Origin.of_conflict(folder)


class DocumentStores:
    """The stores of a project by the document and the folder that they are made of."""

    def __init__(self, *, is_whole: bool) -> None:
        """Know of no store yet.

        Args:
            is_whole: whether folders or the project are looked at, not single stores: then what
                is not there can be said.
        """
        self._is_whole = is_whole
        self._groups: dict[_Group, Origin] = {}
        """The first store of each, for the command."""
        self._odd: set[_Group] = set()

    def add(self, store: Origin) -> None:
        """Add a store; one that lies elsewhere than ``generate`` puts it says nothing."""
        group = self._group_of(store) if self._is_whole else None
        if group is None:
            return
        self._groups.setdefault(group, store)
        status = store.ir.endpoint.status
        if status != REQUEST and not status.startswith("2"):
            self._odd.add(group)  # Made with --status, which --all would not repeat.

    @staticmethod
    def _group_of(store: Origin) -> "_Group | None":
        endpoint, reference = store.ir.endpoint, store.ir.document
        if reference is None or store.path.name != endpoint.folder or endpoint.status == SCHEMAS:
            return None
        document = store.path / reference.path
        if not document.is_file():
            return None
        is_request = endpoint.status == REQUEST
        return _Group(document.resolve(), store.path.parent, is_request, store.ir.language)

    @cached_property
    def absent(self) -> tuple[Absent, ...]:
        """The operations without a store; of a document that cannot be read, none."""
        return tuple(
            Absent(
                from_here(group.document),
                group.out.as_posix(),
                names,
                f"{update_command(store, every=True)} --dry-run",
            )
            for group, store in self._groups.items()
            if (names := self._names_without(group))
        )

    def _names_without(self, group: "_Group") -> tuple[str, ...]:
        try:
            document = read_document(group.document)
        except RegenError:
            return ()
        chosen: Iterable[Part] = (
            operation for operation in document.operations if operation.is_answered_in_json
        )
        if group.is_request:
            chosen = (
                Request(operation)
                for operation in document.operations
                if operation.request is not None or operation.broken_request is not None
            )
        lacking = [
            part for part in chosen if not is_store(group.out / endpoint_of(part, document).folder)
        ]
        if len(lacking) <= _MOST_PLANNED:
            lacking = [part for part in lacking if _has_types(document, part, group.out)]
        return tuple(str(part.operation if isinstance(part, Request) else part) for part in lacking)

    def command_for_all(self, store: Origin) -> str:
        """Return the command for all stores that lie beside one and have its document.

        Empty where it would make stores that are not there, or others than those that are.
        """
        group = self._group_of(store)
        if group not in self._groups or group in self._odd or self._lacks_stores(group):
            return ""
        return update_command(store, every=True)

    def _lacks_stores(self, group: "_Group") -> bool:
        out, spec = group.out.as_posix(), from_here(group.document)
        return any((absent.out, absent.spec) == (out, spec) for absent in self.absent)


@dataclass(frozen=True, slots=True)
class _Group:
    """What stores have in common that one command makes."""

    document: Path
    out: Path
    is_request: bool
    language: str


def _has_types(document: Document, part: Part, out: Path) -> bool:
    """Return whether a part has a type to generate: plain values need none."""
    try:
        generate_store(document, part, out, dry_run=True, allow_defects=True)
    except NothingToGenerateError:
        return False
    except RegenError:
        pass  # There is something, and a defect in it: ``generate`` says which.
    return True
