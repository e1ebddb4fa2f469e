"""What there is to do in a project, and what asking for it would cost: the sum of ``status``."""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.cli.turns import TurnOptions
from pytest_regen.prompts.values import PageKey
from pytest_regen.regeneration.costs import Estimate, page_size
from pytest_regen.regeneration.policies import fixable_issues, pages_at_fault
from pytest_regen.regeneration.store_pages import model_for
from pytest_regen.stores import RegenStore
from pytest_regen.text import plural
from pytest_regen.units.naming import adopt_command, command, forget_command, generate_command
from pytest_regen.units.place import UnitFile
from pytest_regen.units.view import FileUnits
from pytest_regen.validation.issues import ValidationResult
from pytest_regen.validation.stores import (
    Origin,
    from_errors_command,
    update_command,
)

if TYPE_CHECKING:
    from pytest_regen.regeneration.document_stores import DocumentStores

_NOT_MENDED: Final = frozenset({"CONFLICT", "KIND_ERROR", "LEDGER", "EDITED_PROMPT", "UNFIXABLE"})
"""Codes of what asking does not mend; ``validate`` says of each what does."""

_SORTS: Final = (
    "missing",
    "stale",
    "with_errors",
    "edited",
    "by_hand",
    "not_mended",
    "unrecorded",
    "orphans",
)
"""Sorts of work, as they are counted."""

_ORDER: Final = (
    "not_mended",
    "missing",
    "with_errors",
    "edited",
    "by_hand",
    "unrecorded",
    "orphans",
)
"""What is to be done first. The command for what is missing is the one for what is stale."""


class WorkLeft:
    """What is missing, stale, wrong, edited or not recorded, added up place by place."""

    def __init__(self, turns: TurnOptions) -> None:
        self._turns = turns
        self._estimate = Estimate(turns.price_of)
        self._counts: Counter[str] = Counter()
        self._written = 0
        """Pages that the template writes, for nothing."""
        self._firsts: dict[str, tuple[str, Origin | None]] = {}
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
        place, origin = shlex.quote(str(store.path)), Origin.of(store)
        self._counts["stores"] += 1
        self._counts["types"] += len(store.type_names)
        self._counts["outdated_stores"] += bool(missing or stale)
        self._note("missing", len(missing), lambda: update_command(store), origin)
        self._note("stale", len(stale), lambda: update_command(store), origin)
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

    def add_unreadable(self, path: Path, documents: "DocumentStores") -> None:
        """Add a store that cannot be read; one that git did not merge is made anew."""
        if origin := Origin.of_conflict(path):
            documents.add(origin)
        self._counts["stores"] += 1
        self._counts["outdated_stores"] += origin is not None
        place = shlex.quote(str(path))
        following = update_command(origin) if origin else f"pytest-regen validate {place}"
        self._note("not_mended", 1, lambda: following, origin)

    def add_file(self, file: UnitFile, view: FileUnits, names: Collection[str] | None) -> None:
        """Add a file with units, or those of them that are named."""
        chosen = [name for name in view.names if names is None or name in names]
        codes = {name: {issue.code for issue in view.issues(name)} for name in chosen}
        here = file.here
        missing = [name for name in chosen if "MISSING_UNIT" in codes[name]]
        gone = set(missing)
        stale = [name for name in chosen if "STALE" in codes[name] and name not in gone]
        by_hand = [name for name in stale if any(i.is_by_hand for i in view.issues(name))]
        stale = [name for name in stale if name not in by_hand]
        rest = set(chosen) - {*missing, *stale}
        wrong = [
            name
            for name in chosen
            if name in rest and "DRIFT" not in codes[name] and _has_mendable(view, name)
        ]
        strays = [issue for issue in view.orphans if names is None or issue.type_name in names]
        orphans = [issue for issue in strays if issue.code == "ORPHAN"]
        self._counts["files"] += 1
        self._counts["units"] += len(chosen)
        not_mended = sum(bool(found & _NOT_MENDED) for found in codes.values())
        not_mended += len(strays) - len(orphans)
        self._note("missing", len(missing), lambda: generate_command(here))
        self._note("stale", len(stale), lambda: generate_command(here))
        self._note("by_hand", len(by_hand), lambda: adopt_command(here, None, "--stale"))
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
        for _, _, size in file.sizes(view, [*missing, *stale, *wrong], None):
            self._estimate.add(self._turns.size(size))

    def _note(
        self,
        sort: str,
        number: int,
        following: Callable[[], str],
        store: Origin | None = None,
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
            ("by_hand", "unit", "by hand for what has changed since"),
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
            parts += filter(None, [estimate.money()])
        if self._written:
            parts.append(f"{self._written:,} for the template to write")
        return f": {', '.join(parts)}" if parts else ""

    def to_json(self) -> dict[str, Any]:
        """Return the sum as JSON."""
        sorts = ("stores", "types", "files", "units", *_SORTS)
        return {
            **{sort: self._counts[sort] for sort in sorts},
            "by_template": self._written,
            "estimate": self._estimate.to_json(),
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
            if store is not None and self._counts["outdated_stores"] > 1:
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


def _plural(number: int, noun: str) -> str:
    """Return ``1 page or unit``, ``12 pages or units``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {' or '.join(f'{word}s' for word in noun.split(' or '))}"


def _round(number: int) -> int:
    """Return a number with its first two digits, as an estimate is told."""
    return round(number, 2 - len(str(number))) if number >= 100 else number
