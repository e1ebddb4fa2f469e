"""The stores of a project by the document that they are made of: what one command serves."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_regen.documents import Part, read_document
from pytest_regen.documents.ir import REQUEST, SCHEMAS
from pytest_regen.documents.parts import Request, endpoint_of
from pytest_regen.errors import NothingToGenerateError, RegenError, StoreError
from pytest_regen.files import from_here
from pytest_regen.regeneration.generate import generate_stores
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.text import plural, shorten
from pytest_regen.validation.stores import Origin, update_command

# Operations without a store that are looked into: some answer with nothing that needs one.
_MOST_PLANNED: Final = 50


class Absent(NamedTuple):
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


class _Group(NamedTuple):
    """What stores have in common that one command makes."""

    document: Path
    out: Path
    is_request: bool
    language: str


def command_for_all(folders: Sequence[Path]) -> str:
    """Return the command that makes stores anew; empty where there is none for all of them.

    Args:
        folders: of the stores; the first decides which document is meant.
    """
    # Others beside them may have been made in another way.
    beside = [file.parent for file in sorted(folders[0].parent.glob("*/pages.json"))]
    origins: list[Origin | None] = []
    for folder in (*folders, *beside):
        try:
            origins.append(Origin.of(RegenStore.open(folder)))
        except StoreError:
            origins.append(Origin.of_conflict(folder))
    documents = DocumentStores(filter(None, origins))
    return documents.command_for_all(origins[0]) if origins[0] else ""


class DocumentStores:
    """Stores of a project by the document and the folder that they are made of."""

    def __init__(self, stores: Iterable[Origin]) -> None:
        self._stores: dict[_Group, list[Origin]] = {}
        for store in stores:
            group = self._group_of(store)
            # One that lies elsewhere than ``generate`` puts it says nothing.
            if group is not None:
                self._stores.setdefault(group, []).append(store)

    @staticmethod
    def _group_of(store: Origin) -> _Group | None:
        endpoint, reference = store.ir.endpoint, store.ir.document
        if reference is None or store.path.name != endpoint.folder or endpoint.status == SCHEMAS:
            return None
        document, is_request = store.path / reference.path, endpoint.status == REQUEST
        if not document.is_file():
            return None
        # Behind links, because stores may name one document by several paths.
        return _Group(document.resolve(), store.path.parent, is_request, store.ir.language)

    @cached_property
    def absent(self) -> Mapping[_Group, Absent]:
        """The operations without a store; of a document that cannot be read, none."""
        absent: dict[_Group, Absent] = {}
        for group, (store, *_) in self._stores.items():
            try:
                document = read_document(group.document)
            except RegenError:
                continue
            operations = document.operations
            parts: list[Part] = [op for op in operations if op.is_answered_in_json]
            if group.is_request:
                parts = [Request(op) for op in operations if op.takes_json]
            without = [
                p for p in parts if not is_store(group.out / endpoint_of(p, document).folder)
            ]
            if len(without) <= _MOST_PLANNED:
                # A plan of each, because some are about plain values, which need no store.
                plans = generate_stores(
                    document, without, group.out, dry_run=True, allow_defects=True
                )
                nothing = {part for part, it in plans if isinstance(it, NothingToGenerateError)}
                without = [part for part in without if str(part) not in nothing]
            if without:
                names = (str(p.operation if isinstance(p, Request) else p) for p in without)
                following = f"{update_command(store, every=True)} --dry-run"
                spec, out = from_here(group.document), group.out.as_posix()
                absent[group] = Absent(spec, out, tuple(names), following)
        return absent

    def command_for_all(self, store: Origin) -> str:
        """Return the command for all stores that lie beside one and have its document.

        Empty where it would make stores that are not there, or others than those that are.
        """
        group = self._group_of(store)
        if group not in self._stores or group in self.absent:
            return ""
        # Made with --status, which --all would not repeat.
        statuses = {other.ir.endpoint.status for other in self._stores[group]}
        is_odd = any(status != REQUEST and not status.startswith("2") for status in statuses)
        return "" if is_odd else update_command(store, every=True)
