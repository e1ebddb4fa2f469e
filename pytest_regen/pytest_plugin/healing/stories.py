"""The work on one type, worded for the summary: what was done, what was not, what comes next."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regen.prompts import estimate_tokens
from pytest_regen.pytest_plugin.checks import StoreCheck
from pytest_regen.pytest_plugin.commands import (
    heal_command,
    mending_command,
    node_command,
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


def heal_of(
    nodeid: str,
    check: StoreCheck,
    result: HealResult,
    *,
    feedback: Sequence[Feedback] = (),
    passed: bool,
    cost: str = "",
) -> Heal:
    """Return the story of a regeneration that was tried.

    Args:
        nodeid: the item that asked for it.
        check: the store as it is now.
        result: how it ended.
        feedback: what the item had to say before, beyond the type's issues.
        passed: whether the item passes now.
        cost: US dollars that live calls cost, where that is known.
    """
    outcome: Outcome = "regenerated" if passed else "failed"
    if result.stop_reason is None:
        outcome = "skipped"
    following = _next(nodeid, check, result)
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


def skipped(unit: str, why: str, command: str) -> Heal:
    """Return the story of a type that was left alone, and what to run next."""
    return Heal(unit, "skipped", why=why, next=command)


def planned(nodeid: str, check: StoreCheck, target: "Target", cassette: Path) -> Heal:
    """Return the story of a dry run: the pages that would be asked, and their estimate.

    Args:
        nodeid: the item that asks.
        check: the store.
        target: the type, and what is wrong with it.
        cassette: where it would be recorded.
    """
    prompts = check.store.prompts_of(target.type_name)
    found = (*fixable(check.result(target.type_name)), *target.feedback)
    pages = [page for page in pages_at_fault(found, len(prompts)) if found]
    asked = [prompt for prompt in prompts if prompt.page in pages]
    return Heal(
        f"{check.place}::{target.type_name}",
        "planned",
        pages=pages,
        estimate=sum(estimate_tokens(prompt.system + prompt.user) for prompt in asked),
        next=heal_command(nodeid, cassette)
        if found
        else mending_command(check, target.type_name, check.result(target.type_name).issues),
    )


def _why(result: HealResult, following: str) -> str:
    """Return what stood in the way, without the hint where that is the command that follows."""
    if result.skipped:
        return result.skipped
    failure = result.failure
    if failure is not None and failure.hint == following:
        return "\n".join(filter(None, (failure.what, failure.why)))
    if failure is not None:
        return str(failure)
    return _WHY.get(result.stop_reason or "", result.stop_reason or "")


def _next(nodeid: str, check: StoreCheck, result: HealResult) -> str:
    name = result.type_name
    page = next((issue.page for issue in result.issues_after if issue.page), None)
    match result.stop_reason:
        case "attempts":
            more = str(result.attempts + 2)
            return node_command(nodeid, "--regen", "--regen-attempts", more)
        case "no_progress" | "unfixable":
            command = regenerate_command(check.place, name, page)
            return f"{command} --correction 'what is wrong'"
        case "refused":
            return node_command(nodeid, "--regen", "--regen-model", "MODEL")
        case "cassette_miss":
            return result.failure.hint if result.failure else node_command(nodeid, "--regen")
        case None | "clean":
            # Nothing was asked for, or nothing is left that a reply could mend.
            left = mending_command(check, name, result.issues_after)
            return left or node_command(nodeid)
        case _:
            return node_command(nodeid, "--regen")
