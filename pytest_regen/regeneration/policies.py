"""Whether a new output is better than the stored one: fewer errors, and none of them hidden.

Code that cannot be read has one issue, which says so, and not one for each field that nobody could
find in it. Counted like that, an apology would be better than a class with two wrong fields. So it
has all errors that its fields would have, and never takes the place of code that can be read.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_regen.errors import EditedPromptError, HandEditError
from pytest_regen.regeneration.values import Feedback
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.validation import validate_store
from pytest_regen.validation.edits import broken_file
from pytest_regen.validation.issues import Ignore, Issue, ValidationResult, ignoring
from pytest_regen.validation.pieces import split
from pytest_regen.validation.stores import update_command

__all__ = [
    "Score",
    "fixable",
    "is_better",
    "is_edited",
    "is_no_worse",
    "judged",
    "obstacle",
    "pages_at_fault",
    "scores",
    "signature",
]


_NOT_THE_MODELS = frozenset(
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
"""Codes that no reply can mend."""

_HIDING: Final = frozenset(
    {"ARTIFACT", "EMPTY_OUTPUT", "INVALID_IDENTIFIER", "MISSING_CLASS", "SYNTAX", "TRUNCATED"}
)
"""Codes after which a page was read in part or not at all."""

Results = Mapping[str, ValidationResult]


@dataclass(frozen=True, slots=True)
class Score:
    """What is wrong with one type, as far as it decides what is kept."""

    errors: int = 0
    """Its errors, and one for each field or value that could be hidden by one of them."""
    unreadable: frozenset[int] = frozenset()
    """Its pages that were not read in full."""

    def is_no_worse_than(self, other: "Score") -> bool:
        """Return whether errors have not risen and every page that could be read still can."""
        return self.errors <= other.errors and self.unreadable <= other.unreadable


Scores = Mapping[str, Score]


def judged(store: RegenStore, ignore: Ignore) -> dict[str, ValidationResult]:
    """Return what counts against a store, type by type.

    What a project ignores neither counts nor is mended. An edit by hand always counts: to be silent
    about it is no leave to overwrite it.
    """
    found = validate_store(store)
    kept = ignoring(found, ignore)
    for name, result in found.items():
        if is_edited(result) and not is_edited(kept[name]):
            drift = [issue for issue in result.issues if issue.code == "DRIFT"]
            kept[name] = ValidationResult.of([*drift, *kept[name].issues])
    return kept


def is_edited(result: ValidationResult | None) -> bool:
    """Return whether the type's block is not what its pages make."""
    return any(issue.code == "DRIFT" for issue in (result.issues if result else ()))


def obstacle(
    store: RegenStore, results: Results, names: Iterable[str], *, discard_edits: bool = False
) -> HandEditError | EditedPromptError | None:
    """Return why types must not be asked, although there is a model; ``None`` where they may.

    Args:
        store: the store.
        results: what is wrong with each type.
        names: of the types; the first one with an obstacle counts.
        discard_edits: whether edits of the source may be lost.

    Raises:
        StoreWriteError: what is answered could not be written.
    """
    store.refuse_links()
    place = shlex.quote(str(store.path))
    broken = broken_file(store, split(store.source, store.envelope.language))
    if broken and store.has_source and not discard_edits:
        return HandEditError(
            f"{store.source_path}: {broken}",
            why="no block can be told from another, so no reply could be put into the file",
            hint=f"pytest-regen rebuild {place}",
        )
    for name in names:
        result = results.get(name)
        if is_edited(result) and not discard_edits:
            return HandEditError(
                f"{name} in {store.source_path} was edited by hand",
                why="regenerating it would discard the edit",
                hint=f"keep it: pytest-regen adopt {place} --type {name}; "
                f"or drop it: pytest-regen rebuild {place} --type {name}",
            )
        if result and any(issue.code == "EDITED_PROMPT" for issue in result.issues):
            return EditedPromptError(
                f"a prompt of {name} in {store.path / 'prompts.json'} was edited",
                why="its answer would pass for one to the document",
                hint=f"{update_command(store)}, which writes the prompts anew",
            )
    return None


def fixable(result: ValidationResult | None) -> tuple[Issue, ...]:
    """Return the errors that another reply could mend; warnings never trigger a retry."""
    errors = result.errors if result else ()
    return tuple(issue for issue in errors if issue.code not in _NOT_THE_MODELS)


def scores(store: RegenStore, results: Results) -> dict[str, Score]:
    """Return the score of each type of ``store``, given what is wrong with it."""
    return {name: _score(store, name, result) for name, result in results.items()}


def _score(store: RegenStore, type_name: str, result: ValidationResult) -> Score:
    """Return a type's score; an issue without a page is about all of them."""
    hiding = [issue for issue in result.errors if issue.code in _HIDING]
    if not hiding:
        return Score(len(result.errors))
    named = {issue.page for issue in hiding}
    unreadable = [
        prompt for prompt in store.prompts_of(type_name) if None in named or prompt.page in named
    ]
    reported = {issue.field for issue in result.errors}
    hidden = sum(
        str(unit) not in reported and not _stands_in(str(unit), store.pages.get(prompt.key))
        for prompt in unreadable
        for unit in prompt.fields
    )
    return Score(len(result.errors) + hidden, frozenset(prompt.page for prompt in unreadable))


def _stands_in(word: str, page: StoredPage | None) -> bool:
    """Return whether a field's name is in code that cannot be read, so that it may be there."""
    text = page.output if page else ""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def is_better(type_name: str, before: Scores, after: Scores, *, failed: bool, fails: bool) -> bool:
    """Return whether healing may keep the candidate: its errors fall and no other type suffers.

    Args:
        type_name: the type being healed.
        before: the scores with the stored outputs.
        after: the scores with the candidate.
        failed: whether the asking test failed with the stored outputs; it counts as an error.
        fails: whether it fails with the candidate.
    """
    old, new = before.get(type_name, Score()), after.get(type_name, Score())
    falls = new.errors + fails < old.errors + failed and new.unreadable <= old.unreadable
    others = {*before, *after} - {type_name}
    return falls and _no_worse(before, after, others)


def is_no_worse(before: Scores, after: Scores) -> bool:
    """Return whether named work may keep the new output: errors rise nowhere."""
    return _no_worse(before, after, {*before, *after})


def _no_worse(before: Scores, after: Scores, names: Iterable[str]) -> bool:
    nothing = Score()
    return all(
        after.get(name, nothing).is_no_worse_than(before.get(name, nothing)) for name in names
    )


def signature(findings: Sequence[Feedback]) -> frozenset[tuple[str, ...]]:
    """Return what makes two rounds the same: codes, fields and words, whatever their lines."""
    return frozenset(
        (item,) if isinstance(item, str) else (item.code, item.field or "", item.message)
        for item in findings
    )


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
            for number in range(1, total + 1):
                placed.setdefault(number, [])
            placed[1].append(finding)
    return {page: tuple(placed[page]) for page in sorted(placed)}
