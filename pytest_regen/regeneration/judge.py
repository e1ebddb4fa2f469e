"""Whether a new output is better than the stored one (decisions, "Healing and acceptance")."""

from collections.abc import Mapping, Sequence

from pytest_regen.regeneration.values import Feedback
from pytest_regen.stores import RegenStore
from pytest_regen.validation import validate_store
from pytest_regen.validation.ignoring import Ignore, ignoring
from pytest_regen.validation.issues import Issue, ValidationResult

__all__ = [
    "fixable",
    "is_better",
    "is_edited",
    "is_no_worse",
    "judged",
    "pages_at_fault",
    "score",
    "signature",
]

_NOT_THE_MODELS = frozenset({"DRIFT", "STALE", "UNFIXABLE", "REVIEW"})
"""Codes that no reply can mend."""

Results = Mapping[str, ValidationResult]


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


def fixable(result: ValidationResult | None) -> tuple[Issue, ...]:
    """Return the errors that another reply could mend; warnings never trigger a retry."""
    errors = result.errors if result else ()
    return tuple(issue for issue in errors if issue.code not in _NOT_THE_MODELS)


def score(result: ValidationResult | None, feedback: Sequence[Feedback] = ()) -> int:
    """Return the type's errors, plus one if the asking test fails. Lower is better."""
    return len(result.errors if result else ()) + bool(feedback)


def is_better(
    type_name: str, before: Results, after: Results, *, failed: bool, fails: bool
) -> bool:
    """Return whether healing may keep the candidate: its score falls and no other type suffers.

    Args:
        type_name: the type being healed.
        before: the results with the stored outputs.
        after: the results with the candidate.
        failed: whether the asking test failed with the stored outputs.
        fails: whether it fails with the candidate.
    """
    old = score(before.get(type_name)) + failed
    new = score(after.get(type_name)) + fails
    return new < old and not _gained(before, after, except_for=type_name)


def is_no_worse(before: Results, after: Results) -> bool:
    """Return whether named work may keep the new output: errors rise nowhere."""
    return not _gained(before, after)


def _gained(before: Results, after: Results, *, except_for: str | None = None) -> bool:
    return any(
        score(after.get(name)) > score(before.get(name))
        for name in {*before, *after}
        if name != except_for
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
    all pages of the type, its text on page 1 (design, section 4, decision 6).
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
