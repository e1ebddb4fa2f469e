"""Which pages are asked, and what may replace a stored output: generate, named work and healing.

Code that cannot be parsed has one issue, which says so, instead of one for each field that is
missing from it. Counted like that, an apology would be better than a class with two wrong fields.
So a ``Score`` counts all errors that its fields would have, and such code never replaces code that
can be read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_regen.regeneration.places import View
from pytest_regen.validation.issues import IMPORT_FAILED, WEAKENED, Feedback, Issue

Mark = tuple[str, ...]
"""What a finding says, whatever its line: code, field and message, or words alone."""

# Codes that no reply can correct.
_UNFIXABLE_CODES = frozenset(
    {
        "CONFLICT",
        "DRIFT",
        "EDITED_PROMPT",
        "MISSING_USING",
        "REDECLARED",
        "REVIEW",
        "STALE",
        "UNFIXABLE",
    }
)


def _is_fixable(issue: Issue) -> bool:
    # What no page wrote stands around the types: no page can mend it.
    is_around = issue.code == IMPORT_FAILED and issue.page is None
    return issue.code not in _UNFIXABLE_CODES and not is_around


Wanted = Mapping[int, Sequence[Feedback]]
"""Pages to ask for, each with its corrections."""


@dataclass(frozen=True, slots=True)
class Change:
    """New outputs of one piece beside the stored ones."""

    name: str
    before: View
    after: View
    failed: bool = False
    """Whether the asking test fails with the stored outputs; it counts as an error."""
    fails: bool = False
    """Whether it fails with the new ones."""

    @property
    def weakens(self) -> bool:
        """Whether less is tested with the new outputs: then no fall of errors speaks for them."""
        return _weakened(self.after, self.name) > _weakened(self.before, self.name)

    @property
    def is_better(self) -> bool:
        """Whether the errors of the piece fall, and no other piece gets worse."""
        if self.weakens:
            return False
        old, new = self.before.score(self.name), self.after.score(self.name)
        # A failing test counts as an error, because it may be all that shows the fault.
        falls = new.errors_beside(old) + self.fails < old.errors + self.failed
        return falls and new.is_as_readable_as(old) and self._is_no_worse_but_for(self.name)

    @property
    def is_no_worse(self) -> bool:
        """Whether errors rise nowhere."""
        return not self.weakens and self._is_no_worse_but_for("")

    def _is_no_worse_but_for(self, name: str) -> bool:
        before, after = self.before, self.after
        # Those that use the piece are looked at after it, and asked for where they are wrong.
        neighbours = {self.name, *before.names, *after.names} - {name, *before.users(self.name)}
        return all(after.score(unit).is_no_worse_than(before.score(unit)) for unit in neighbours)


def _weakened(view: View, name: str) -> int:
    return sum(issue.code == WEAKENED and issue.severity == "error" for issue in view.issues(name))


@dataclass(frozen=True, slots=True)
class Policy:
    """What is asked of a piece in one round, and what may replace its stored outputs.

    By default healing: the pages at fault are asked, and a new output is kept if errors fall and no
    other piece gets worse.
    """

    pages: Mapping[str, Wanted] | None = None
    """Name of a piece to its pages: asked whatever their state, and kept unless errors rise."""
    is_draft: bool = False
    """Whether pages are asked for the first time: each is stored as it arrives, unscored."""
    accept_any: bool = field(default=False, kw_only=True)
    """Keep any new output."""

    @property
    def then(self) -> "Policy":
        """The policy of the next round: correct what is wrong with the new outputs."""
        return Policy(accept_any=self.accept_any)

    def pages_to_ask(self, view: View, name: str, findings: Sequence[Feedback]) -> Wanted:
        """Return the pages of a piece to ask for; none where there is nothing to ask."""
        if self.is_draft:
            return dict.fromkeys(view.missing(name), ())
        if self.pages is not None:
            return self.pages.get(name, {})
        return pages_at_fault(findings, view.page_count(name)) if findings else {}

    def may_replace(self, change: Change) -> bool:
        """Return whether the new outputs may replace the stored ones."""
        # A draft replaces nothing, and whoever takes anything has said so.
        if self.is_draft or self.accept_any:
            return True
        return change.is_better if self.pages is None else change.is_no_worse


def fixable_issues(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    """Return those of ``issues`` that are errors another reply could correct."""
    return tuple(issue for issue in issues if issue.severity == "error" and _is_fixable(issue))


def signature(findings: Iterable[Feedback]) -> frozenset[Mark]:
    """Return what makes two rounds the same: codes, fields and words, whatever their lines."""
    return frozenset(
        (item,) if isinstance(item, str) else (item.code, item.field or "", item.message)
        for item in findings
    )


def merge_findings(findings: Sequence[Feedback], more: Iterable[Feedback]) -> tuple[Feedback, ...]:
    """Return both, without repeating what only stands on another line."""
    marks = signature(findings)
    return (*findings, *(item for item in more if not signature([item]) <= marks))


def pages_at_fault(findings: Sequence[Feedback], total: int) -> dict[int, tuple[Feedback, ...]]:
    """Return the pages to ask again, each with its own corrections.

    A finding goes to the page at fault and only there. One that cannot be put on a page asks for
    all pages of the type, its text on page 1: a type's first page is where a rule for all is read.
    """
    placed: dict[int, list[Feedback]] = {}
    for finding in findings:
        page = None if isinstance(finding, str) else finding.page
        if page is not None and 1 <= page <= total:
            placed.setdefault(page, []).append(finding)
        else:
            # All of them, because nothing says on which page the fault is.
            for number in range(1, total + 1):
                placed.setdefault(number, [])
            placed[1].append(finding)
    return {page: tuple(placed[page]) for page in sorted(placed)}
