"""The work on one type, worded for the summary: what was done, what was not, what comes next."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regen.errors import BudgetError, CassetteError, MissingKeyError
from pytest_regen.prompts import estimate_tokens
from pytest_regen.pytest_plugin.checks import StoreCheck
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.commands import (
    again_command,
    heal_command,
    is_edited,
    mending_command,
    node_command,
    recording_command,
    regenerate_command,
)
from pytest_regen.pytest_plugin.failures import findings_json
from pytest_regen.pytest_plugin.healing.records import Heal, Outcome, tokens_in
from pytest_regen.pytest_plugin.locate import from_rootdir
from pytest_regen.regeneration import HealResult, fixable, pages_at_fault
from pytest_regen.regeneration.values import Feedback

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.healing.feedback import Target

__all__ = ["heal_of", "planned", "skipped"]

_WHY = {
    "clean": "what fails is not in the pages of the type",
    "attempts": "it still fails after the attempts allowed",
    "no_progress": "the same errors came back; asking again as before would not help",
    "unfixable": "no reply can mend it: what is asked for is itself at fault",
}
_BAD_DOCUMENT = "correct the API description, then pytest-regen generate on it"


def heal_of(
    nodeid: str,
    check: StoreCheck,
    result: HealResult,
    *,
    cassette: Path,
    feedback: Sequence[Feedback] = (),
    passed: bool,
    cost: str = "",
) -> Heal:
    """Return the story of a regeneration that was tried.

    Args:
        nodeid: the item that asked for it.
        check: the store as it is now.
        result: how it ended.
        cassette: where its turns are recorded.
        feedback: what the item had to say before, beyond the type's issues.
        passed: whether the item passes now.
        cost: US dollars that live calls cost, where that is known.
    """
    outcome: Outcome = "regenerated" if passed else "failed"
    if result.stop_reason is None:
        outcome = "skipped"
    following = _next(nodeid, check, result, cassette)
    usage = result.usage
    root = check.config.rootpath
    return Heal(
        unit=f"{check.place}::{result.type_name}",
        outcome=outcome,
        stop_reason=result.stop_reason or "",
        attempts=1 + result.attempts,
        calls=result.calls,
        tokens_in=tokens_in(usage),
        tokens_out=usage.output_tokens or 0,
        cache_read=usage.cache_read_tokens or 0,
        pages=sorted(page for name, page in result.regenerated if name == result.type_name),
        changed=[from_rootdir(path, root) for path in result.changed_paths],
        diff=result.diff,
        why="" if passed else _why(result, following),
        next="" if passed else following,
        emulated=result.emulated,
        cost=cost,
        findings=findings_json((*result.issues_before, *feedback), check),
    )


def skipped(unit: str, why: str, following: str) -> Heal:
    """Return the story of a type that was left alone, and what to run or do about it."""
    return Heal(unit, "skipped", why=why, next=following)


def planned(nodeid: str, check: StoreCheck, target: "Target", cassette: Path) -> Heal:
    """Return the story of a dry run: the pages that would be asked, and their estimate.

    Args:
        nodeid: the item that asks.
        check: the store.
        target: the type, and what is wrong with it.
        cassette: where it would be recorded.
    """
    prompts = check.store.prompts_of(target.type_name)
    issues = check.result(target.type_name)
    found = (*fixable(issues), *target.feedback)
    pages = [page for page in pages_at_fault(found, len(prompts)) if found]
    asked = [prompt for prompt in prompts if prompt.page in pages]
    following = heal_command(check.config, nodeid, cassette)
    if is_edited(issues.errors):
        # As without the dry run: an edit is kept or dropped, not regenerated.
        pages, asked = [], []
        following = mending_command(check, target.type_name, issues.errors)
    elif not pages:
        following = mending_command(check, target.type_name, issues.issues) or _BAD_DOCUMENT
    return Heal(
        f"{check.place}::{target.type_name}",
        "planned",
        pages=pages,
        estimate=sum(estimate_tokens(prompt.system + prompt.user) for prompt in asked),
        next=following,
    )


def _why(result: HealResult, following: str) -> str:
    """Return what stood in the way, without the hint where that is the command that follows."""
    if result.skipped:
        return result.skipped
    failure = result.failure
    if failure is not None and (
        failure.hint == following or isinstance(failure, MissingKeyError | BudgetError)
    ):
        return "\n".join(filter(None, (failure.what, failure.why)))
    if failure is not None:
        return str(failure)
    return _WHY.get(result.stop_reason or "", result.stop_reason or "")


def _next(nodeid: str, check: StoreCheck, result: HealResult, cassette: Path) -> str:
    """Return what to run or do; never what would end where this run did."""
    config, name = check.config, result.type_name
    page = next((issue.page for issue in result.issues_after if issue.page), None)
    match result.stop_reason:
        case "attempts":
            more = str(result.attempts + 2)
            return recording_command(config, nodeid, cassette, "--regen-attempts", more)
        case "no_progress":
            command = regenerate_command(check.here, name, page)
            return f"{command} --correction 'what is wrong'"
        case "unfixable":
            return _BAD_DOCUMENT
        case "refused":
            return recording_command(config, nodeid, cassette, "--regen-model", "MODEL")
        case None | "clean":
            # Nothing was asked for, or nothing is left that a reply could mend.
            left = mending_command(check, name, result.issues_after)
            return left or node_command(config, nodeid)
        case _:
            return _again(nodeid, check, result, cassette)


def _again(nodeid: str, check: StoreCheck, result: HealResult, cassette: Path) -> str:
    """Return the same run of one item again, once what stood in its way is away."""
    failure = result.failure
    if isinstance(failure, CassetteError):
        return failure.hint
    budget = failure.needed * 2 if isinstance(failure, BudgetError) and failure.needed else None
    again = again_command(check.config, nodeid, cassette, budget=budget)
    if isinstance(failure, MissingKeyError):
        return f"set ANTHROPIC_API_KEY, then {again}"
    if choices_of(check.config).record_mode() == "none" and cassette.exists():
        # What was recorded is this very failure.
        return recording_command(check.config, nodeid, cassette)
    return again
