"""What there is to do in a project, and what asking for it would cost: the sum of ``status``."""

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.cli.places import command
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.regeneration.costs import AskSize, Estimate, asks_for
from pytest_regen.regeneration.document_stores import DocumentStores
from pytest_regen.regeneration.places import Place, View
from pytest_regen.regeneration.policies import fixable_issues, pages_at_fault
from pytest_regen.text import plural
from pytest_regen.validation.stores import Origin, update_command

if TYPE_CHECKING:
    from pathlib import Path

_NOT_MENDED: Final = frozenset({"CONFLICT", "KIND_ERROR", "LEDGER", "EDITED_PROMPT", "UNFIXABLE"})
"""Codes of what asking does not mend; ``validate`` says of each what does."""


_SORTS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "not_mended": ("that asking does not mend", ("validate",)),
    "missing": ("missing", ()),
    "stale": ("stale", ()),
    "with_errors": ("with errors", ("regenerate", "--from-errors")),
    "edited": ("edited by hand", ("adopt",)),
    "by_hand": ("by hand for what has changed since", ("adopt", "--stale")),
    "unrecorded": ("not recorded", ("adopt",)),
    "orphans": ("that nothing asks for", ("forget",)),
}
"""What is to be done, first things first: how it is counted, and which command does it, beside
``generate`` where there is none."""

_PAGES: Final = frozenset({"missing", "stale", "with_errors"})
"""Sorts of which pages are counted, where units have pages."""


class WorkLeft:
    """What is missing, stale, wrong, edited or not recorded, added up place by place.

    Args:
        turns: with whom.
        is_whole: whether folders or the project are looked at: where each operation has a store,
            one command serves all. Of stores that are named one by one the others are not missed.
    """

    def __init__(self, turns: TurnOptions, *, is_whole: bool) -> None:
        self._turns = turns
        self._is_whole = is_whole
        self._origins: list[Origin] = []
        self._estimate = Estimate(turns.price_of)
        self._work: Counter[tuple[str, str]] = Counter()
        """By its sort, and by what is counted."""
        self._units: Counter[tuple[str, str]] = Counter()
        """By what their places are called, and by what they are called themselves."""
        self._places: Counter[str] = Counter()
        self._outdated = 0
        """Stores that are to be made anew."""
        self._written = 0
        """Pages that the template writes, for nothing."""
        self._firsts: dict[str, tuple[str, Origin | None]] = {}
        """The command for the first place of each sort, and the store that it is about."""
        self._failing: list[Path] = []
        """The folder of each store that has errors."""

    def add(self, place: Place[Any], view: View, names: Collection[str] | None = None) -> None:
        """Add a place, or those of its units that are named."""
        chosen = [name for name in view.names if names is None or name in names]
        counts, sorts = Counter[str](), dict[tuple[str, int], str]()
        for name in chosen:
            issues = view.issues(name)
            codes = {issue.code for issue in issues}
            counts["edited"] += "DRIFT" in codes
            counts["not_mended"] += bool(codes & _NOT_MENDED)
            counts["unrecorded"] += "UNRECORDED" in codes
            # It stays so below, because a page without a text has nothing else wrong with it.
            sorts |= {(name, page): "missing" for page in view.missing(name)}
            pages = [(name, page) for page in range(1, view.page_count(name) + 1)]
            if "STALE" in codes:
                sort = "by_hand" if any(issue.is_by_hand for issue in issues) else "stale"
                sorts = {**dict.fromkeys(pages, sort), **sorts}
            elif "DRIFT" not in codes:  # An edit is a person's, and no reply may replace it.
                mendable = [i for i in fixable_issues(issues) if i.code not in _NOT_MENDED]
                faulty = pages_at_fault(mendable, len(pages)) if pages else ()
                sorts = {**{(name, page): "with_errors" for page in faulty}, **sorts}
        counts.update(sorts.values())
        strays = [i for i in view.orphans if names is None or i.type_name in names]
        counts["orphans"] += sum(issue.code == "ORPHAN" for issue in strays)
        counts["not_mended"] += len(strays) - counts["orphans"]
        counts["not_mended"] += not counts["not_mended"] and bool(view.file_issues)
        self._count_place(place, len(chosen))
        if origin := view.origin:
            self._origins.append(origin)
            self._outdated += bool(counts["missing"] or counts["stale"])
            if counts["with_errors"]:
                self._failing.append(place.path.parent)
        for sort in filter(counts.get, _SORTS):
            _, words = _SORTS[sort]
            noun = "page" if place.has_pages and sort in _PAGES else place.noun
            # A store is asked again with the prompts that its document gives now.
            again = update_command(origin) if origin else command("generate", place)
            following = command(words[0], place, None, *words[1:]) if words else again
            self._note(sort, noun, counts[sort], following, None if words else origin)
        # No model is asked for what a person wrote.
        to_ask = sorted(key for key in sorts if sorts[key] != "by_hand")
        # Uncorrected, because what is wrong with a text may be another thing by then.
        for ask in asks_for(place, view, to_ask, self._turns.planning()):
            if self._turns.writes(place, view, ask.name):
                self._written += 1
            else:
                self._estimate.add(AskSize.of(ask))

    def add_unreadable(self, place: Place[Any]) -> None:
        """Add a place that cannot be read; a store that git did not merge is made anew."""
        if origin := Origin.of_conflict(place.path):
            self._origins.append(origin)
            self._outdated += 1
        self._count_place(place, 0)
        following = update_command(origin) if origin else command("validate", place)
        self._note("not_mended", place.noun, 1, following, origin)

    @cached_property
    def documents(self) -> DocumentStores:
        """The stores that were added, by the document that they are made of."""
        return DocumentStores(self._origins if self._is_whole else ())

    def _count_place(self, place: Place[Any], number: int) -> None:
        self._places[place.group] += 1
        self._units[place.group, place.noun] += number

    def _note(
        self, sort: str, noun: str, number: int, following: str, store: Origin | None
    ) -> None:
        """Count work of a sort, and keep the command for the first place that has it."""
        self._work[sort, noun] += number
        self._firsts.setdefault(sort, (following, store))

    @property
    def is_nothing(self) -> bool:
        """Whether everything is as it should be."""
        return not self._firsts

    def words(self) -> str:
        """Return the sum in one line, with what asking would cost.

        ``12 pages missing, 3 pages stale, 1 type edited by hand: 15 to ask, about 41,000 tokens,
        about $0.19, $0.10 as a batch``.
        """
        estimate = self._estimate
        parts = [
            f"{plural(number, noun)} {words}"
            for sort, (words, _) in _SORTS.items()
            for (of, noun), number in self._work.items()
            if of == sort
        ]
        places = [
            f"{plural(number, noun)} in {plural(self._places[group], group[:-1])}"
            for (group, noun), number in self._units.items()
        ]
        total, to_ask = ", ".join(parts) or f"{', '.join(places)}: nothing to do", []
        if estimate.pages:
            tokens = estimate.input_tokens + estimate.output_tokens
            # The first two digits, because it is an estimate.
            tokens = round(tokens, 2 - len(str(tokens))) if tokens >= 100 else tokens
            to_ask += [f"{estimate.pages:,} to ask", f"about {tokens:,} tokens"]
            to_ask += filter(None, [estimate.money()])
        if self._written:
            to_ask.append(f"{self._written:,} for the template to write")
        return f"{total}: {', '.join(to_ask)}" if to_ask else total

    def to_json(self) -> dict[str, Any]:
        """Return the sum as JSON."""
        counts = dict.fromkeys(("stores", "types", "files", "units", *_SORTS), 0) | self._places
        for (_, noun), number in self._units.items():
            counts[f"{noun}s"] = counts.get(f"{noun}s", 0) + number
        for (sort, _), number in self._work.items():
            counts[sort] += number
        return {**counts, "by_template": self._written, "estimate": self._estimate.to_json()}

    def next_command(self) -> str:
        """Return the command to run first; empty where there is nothing to do."""
        for sort in filter(self._firsts.get, _SORTS):
            following, store = self._firsts[sort]
            if store is not None and self._outdated > 1:
                return self.documents.command_for_all(store) or following
            if sort == "with_errors" and len(self._failing) > 1:
                # It looks for them in whole folders.
                folders = dict.fromkeys(map(str, self._failing))
                return shlex.join(["pytest-regen", "regenerate", *folders, "--from-errors"])
            return following
        return next((absent.command for absent in self.documents.absent.values()), "")
