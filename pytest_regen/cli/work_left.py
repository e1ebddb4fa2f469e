"""What there is to do in a project, and what asking for it would cost: the sum of ``status``."""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_regen.cli.output import shorten
from pytest_regen.cli.project import short_path
from pytest_regen.cli.selection import select_operations
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents import Document, Part, read_document
from pytest_regen.documents.ir import REQUEST, SCHEMAS
from pytest_regen.documents.parts import Request, endpoint_of
from pytest_regen.errors import NothingToGenerateError, RegenError
from pytest_regen.prompts.values import PageKey
from pytest_regen.regeneration import generate_store
from pytest_regen.regeneration.costs import Estimate, page_size
from pytest_regen.regeneration.policies import fixable_issues, pages_at_fault
from pytest_regen.regeneration.store_place import model_for
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.text import plural
from pytest_regen.units.naming import adopt_command, command, forget_command, generate_command
from pytest_regen.units.place import UnitFile
from pytest_regen.units.view import FileUnits
from pytest_regen.validation.issues import ValidationResult
from pytest_regen.validation.stores import (
    from_errors_command,
    update_command,
)

__all__ = ["Absent", "DocumentStores", "WorkLeft"]

_MOST_PLANNED: Final = 50
"""Operations without a store that are looked into: some answer with nothing that needs one."""

_NOT_MENDED: Final = frozenset({"CONFLICT", "KIND_ERROR", "LEDGER", "EDITED_PROMPT", "UNFIXABLE"})
"""Codes of what asking does not mend; ``validate`` says of each what does."""

_SORTS: Final = (
    "missing",
    "stale",
    "with_errors",
    "edited",
    "not_mended",
    "unrecorded",
    "orphans",
)
"""Sorts of work, as they are counted."""

_ORDER: Final = ("not_mended", "missing", "with_errors", "edited", "unrecorded", "orphans")
"""What is to be done first. The command for what is missing is the one for what is stale."""


class WorkLeft:
    """What is missing, stale, wrong, edited or not recorded, added up place by place."""

    def __init__(self, turns: TurnOptions) -> None:
        self._turns = turns
        self._estimate = Estimate()
        self._counts: Counter[str] = Counter()
        self._written = 0
        """Pages that the template writes, for nothing."""
        self._firsts: dict[str, tuple[str, RegenStore | None]] = {}
        """The command for the first place of each sort, and the store that it is about."""
        self._failing: list[Path] = []
        """The folder of each store that has errors."""

    def add_store(self, store: RegenStore, results: Mapping[str, ValidationResult]) -> None:
        """Add a store and what is wrong with its types."""
        codes = {name: {issue.code for issue in found.issues} for name, found in results.items()}
        edited = [name for name in codes if "DRIFT" in codes[name]]
        missing = set(store.missing_pages)
        stale = _keys(store, (name for name in codes if "STALE" in codes[name])) - missing
        wrong = _pages_at_fault(store, results, edited) - missing - stale
        place = shlex.quote(str(store.path))
        self._counts["stores"] += 1
        self._counts["types"] += len(store.type_names)
        self._counts["outdated_stores"] += bool(missing or stale)
        self._note("missing", len(missing), lambda: update_command(store), store)
        self._note("stale", len(stale), lambda: update_command(store), store)
        self._note("with_errors", len(wrong), lambda: from_errors_command(store))
        if wrong:
            self._failing.append(store.path.parent)
        self._note("edited", len(edited), lambda: f"pytest-regen adopt {place}")
        self._note(
            "not_mended",
            sum(bool(found & _NOT_MENDED) for found in codes.values()),
            lambda: f"pytest-regen validate {place}",
        )
        asked = [entry for entry in store.prompts if entry.key in missing | stale | wrong]
        for entry in asked:
            if self._turns.writes(store, entry.type_name):
                self._written += 1
                continue
            model = model_for(store, entry, None)
            size = page_size(entry, model, store.ir, store.envelope.profile)
            self._estimate.add(self._turns.size(size))

    def add_unreadable(self, path: Path) -> None:
        """Add a store that cannot be read."""
        self._counts["stores"] += 1
        place = shlex.quote(str(path))
        self._note("not_mended", 1, lambda: f"pytest-regen validate {place}")

    def add_file(self, file: UnitFile, view: FileUnits, names: Collection[str] | None) -> None:
        """Add a file with units, or those of them that are named."""
        chosen = [name for name in view.names if names is None or name in names]
        codes = {name: {issue.code for issue in view.issues(name)} for name in chosen}
        here = file.here
        missing = [name for name in chosen if "MISSING_UNIT" in codes[name]]
        gone = set(missing)
        stale = [name for name in chosen if "STALE" in codes[name] and name not in gone]
        rest = set(chosen) - {*missing, *stale}
        wrong = [
            name
            for name in chosen
            if name in rest and "DRIFT" not in codes[name] and _has_mendable(view, name)
        ]
        orphans = [issue for issue in view.orphans if names is None or issue.type_name in names]
        self._counts["files"] += 1
        self._counts["units"] += len(chosen)
        not_mended = sum(bool(found & _NOT_MENDED) for found in codes.values())
        self._note("missing", len(missing), lambda: generate_command(here))
        self._note("stale", len(stale), lambda: generate_command(here))
        again = command("regenerate", here, None, "--from-errors")
        self._note("with_errors", len(wrong), lambda: again)
        edited = sum("DRIFT" in found for found in codes.values())
        self._note("edited", edited, lambda: adopt_command(here))
        self._note(
            "not_mended",
            not_mended or int(bool(view.file_issues)),
            lambda: command("validate", here),
        )
        unrecorded = sum("UNRECORDED" in found for found in codes.values())
        self._note("unrecorded", unrecorded, lambda: adopt_command(here))
        self._note("orphans", len(orphans), lambda: forget_command(here))
        for _, size in file.sizes(view, [*missing, *stale, *wrong], None):
            self._estimate.add(self._turns.size(size))

    def _note(
        self,
        sort: str,
        number: int,
        following: Callable[[], str],
        store: RegenStore | None = None,
    ) -> None:
        """Count work of a sort, and keep the command for the first place that has it."""
        if number:
            self._counts[sort] += number
            first = "missing" if sort == "stale" else sort
            if first not in self._firsts:
                self._firsts[first] = following(), store

    @property
    def is_nothing(self) -> bool:
        """Whether everything is as it should be."""
        return not self._firsts

    def words(self) -> str:
        """Return the sum in one line, with what asking would cost.

        ``12 pages missing, 3 stale, 1 type edited by hand: 15 to ask, about 41,000 tokens, about
        $0.19, $0.10 as a batch``.
        """
        asked, piece = self._noun("page"), self._noun("type")
        found, last = [], ""
        for sort, noun, what in (
            ("missing", asked, "missing"),
            ("stale", asked, "stale"),
            ("with_errors", asked, "with errors"),
            ("edited", piece, "edited by hand"),
            ("not_mended", piece, "that asking does not mend"),
            ("unrecorded", "unit", "not recorded"),
            ("orphans", "unit", "that nothing asks for"),
        ):
            if number := self._counts[sort]:
                named = f"{number:,}" if noun == last else _plural(number, noun)
                found.append(f"{named} {what}")
                last = noun
        return (", ".join(found) or f"{self._all}: nothing to do") + self._to_ask()

    def _noun(self, of_stores: str) -> str:
        """Return what is counted, in the singular: pages and types of stores, units of files."""
        nouns = [of_stores] if self._counts["stores"] else []
        return " or ".join([*nouns, *(["unit"] if self._counts["files"] else [])])

    @property
    def _all(self) -> str:
        counts = self._counts
        return ", ".join(
            f"{plural(counts[pieces], pieces[:-1])} in {plural(counts[places], places[:-1])}"
            for pieces, places in (("types", "stores"), ("units", "files"))
            if counts[places]
        )

    def _to_ask(self) -> str:
        estimate, parts = self._estimate, []
        if estimate.pages:
            tokens = estimate.input_tokens + estimate.output_tokens
            parts += [f"{estimate.pages:,} to ask", f"about {_round(tokens):,} tokens"]
            parts += filter(None, [estimate.money(self._turns.price_of)])
        if self._written:
            parts.append(f"{self._written:,} for the template to write")
        return f": {', '.join(parts)}" if parts else ""

    def to_json(self) -> dict[str, Any]:
        """Return the sum as JSON."""
        sorts = ("stores", "types", "files", "units", *_SORTS)
        return {
            **{sort: self._counts[sort] for sort in sorts},
            "by_template": self._written,
            "estimate": self._estimate.to_json(self._turns.price_of),
        }

    def next_command(self, documents: "DocumentStores") -> str:
        """Return the command to run first; empty where there is nothing to do.

        Args:
            documents: the stores by document: where each operation has one, one command serves all.
        """
        for sort in _ORDER:
            if sort not in self._firsts:
                continue
            following, store = self._firsts[sort]
            if sort == "missing" and store is not None and self._counts["outdated_stores"] > 1:
                return documents.command_for_all(store) or following
            if sort == "with_errors" and len(self._failing) > 1:
                # It looks for them in whole folders.
                folders = dict.fromkeys(map(str, self._failing))
                return shlex.join(["pytest-regen", "regenerate", *folders, "--from-errors"])
            return following
        return next((absent.command for absent in documents.absent), "")


def _keys(store: RegenStore, names: Iterable[str]) -> set[PageKey]:
    return {entry.key for name in names for entry in store.prompts_of(name)}


def _pages_at_fault(
    store: RegenStore, results: Mapping[str, ValidationResult], edited: Collection[str]
) -> set[PageKey]:
    """Return the pages with errors that another reply could correct; edits are a person's."""
    found = set()
    for name, result in results.items():
        entries = store.prompts_of(name)
        if name not in edited and entries:
            pages = pages_at_fault(fixable_issues(result.issues), len(entries))
            found |= {entry.key for entry in entries if entry.page in pages}
    return found


def _has_mendable(view: FileUnits, name: str) -> bool:
    issues = fixable_issues(view.issues(name))
    return any(issue.code not in _NOT_MENDED for issue in issues)


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


class DocumentStores:
    """The stores of a project by the document and the folder that they are made of."""

    def __init__(self, *, is_whole: bool) -> None:
        """Know of no store yet.

        Args:
            is_whole: whether folders or the project are looked at, not single stores: then what
                is not there can be said.
        """
        self._is_whole = is_whole
        self._groups: dict[_Group, RegenStore] = {}
        """The first store of each, for the command."""
        self._odd: set[_Group] = set()

    def add(self, store: RegenStore) -> None:
        """Add a store; one that lies elsewhere than ``generate`` puts it says nothing."""
        group = self._group_of(store) if self._is_whole else None
        if group is None:
            return
        self._groups.setdefault(group, store)
        status = store.ir.endpoint.status
        if status != REQUEST and not status.startswith("2"):
            self._odd.add(group)  # Made with --status, which --all would not repeat.

    @staticmethod
    def _group_of(store: RegenStore) -> "_Group | None":
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
                short_path(group.document).as_posix(),
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
            chosen = select_operations(
                document, tag=None, exclude=(), status=None, request=group.is_request
            ).chosen
        except RegenError:
            return ()
        found = [
            part for part in chosen if not is_store(group.out / endpoint_of(part, document).folder)
        ]
        if len(found) <= _MOST_PLANNED:
            found = [part for part in found if _has_types(document, part, group.out)]
        return tuple(str(part.operation if isinstance(part, Request) else part) for part in found)

    def command_for_all(self, store: RegenStore) -> str:
        """Return the command for all stores that lie beside one and have its document.

        Empty where it would make stores that are not there, or others than those that are.
        """
        group = self._group_of(store)
        if group not in self._groups or group in self._odd or self._lacks_stores(group):
            return ""
        return update_command(store, every=True)

    def _lacks_stores(self, group: "_Group") -> bool:
        out, spec = group.out.as_posix(), short_path(group.document).as_posix()
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


def _plural(number: int, noun: str) -> str:
    """Return ``1 page or unit``, ``12 pages or units``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {' or '.join(f'{word}s' for word in noun.split(' or '))}"


def _round(number: int) -> int:
    """Return a number with its first two digits, as an estimate is told."""
    return round(number, 2 - len(str(number))) if number >= 100 else number
