"""The work on one type, worded for the summary: what was done, what was not, what comes next."""

import shlex
from typing import TYPE_CHECKING

from pytest_regen.prompts import estimate_tokens
from pytest_regen.pytest_plugin.checks import StoreCheck
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.failures import node_command, regenerate_command
from pytest_regen.pytest_plugin.locate import unit_path
from pytest_regen.pytest_plugin.records import Heal, Outcome
from pytest_regen.regeneration import HealResult, fixable, pages_at_fault
from pytest_regen.turns import cost_of

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.feedback import Target

__all__ = ["heal_of", "planned", "skipped"]

_WHY = {
    "clean": "what fails is not in the pages of the type",
    "attempts": "it still fails after the attempts allowed",
    "no_progress": "the same errors came back; asking again as before would not help",
    "unfixable": "no reply can mend it: what is asked for is itself at fault",
}


def heal_of(nodeid: str, check: StoreCheck, result: HealResult, *, passed: bool) -> Heal:
    """Return the story of a regeneration that was tried."""
    outcome: Outcome = "regenerated" if passed else "failed"
    if result.stop_reason is None:
        outcome = "skipped"
    usage = result.usage
    root = check.config.rootpath
    return Heal(
        unit=f"{check.place}::{result.type_name}",
        outcome=outcome,
        stop_reason=result.stop_reason or "",
        attempts=1 + result.attempts,
        calls=result.calls,
        tokens_in=(usage.input_tokens or 0) + (usage.cache_write_tokens or 0),
        tokens_out=usage.output_tokens or 0,
        cache_read=usage.cache_read_tokens or 0,
        pages=sorted(page for name, page in result.regenerated if name == result.type_name),
        changed=[unit_path(path, root) for path in result.changed_paths],
        diff=result.diff,
        why="" if passed else _why(result),
        next="" if passed else _next(nodeid, check, result),
        emulated=result.emulated,
        cost=_cost(check, result),
    )


def skipped(nodeid: str, unit: str, why: str, *options: str) -> Heal:
    """Return the story of a type that was left alone."""
    return Heal(unit, "skipped", why=why, next=node_command(nodeid, "--regen", *options))


def planned(nodeid: str, check: StoreCheck, target: "Target") -> Heal:
    """Return the story of a dry run: the pages that would be asked, and their estimate."""
    prompts = check.store.prompts_of(target.type_name)
    found = (*fixable(check.result(target.type_name)), *target.feedback)
    pages = [page for page in pages_at_fault(found, len(prompts)) if found]
    asked = [prompt for prompt in prompts if prompt.page in pages]
    return Heal(
        f"{check.place}::{target.type_name}",
        "planned",
        pages=pages,
        estimate=sum(estimate_tokens(prompt.system + prompt.user) for prompt in asked),
        next=node_command(nodeid, "--regen"),
    )


def _cost(check: StoreCheck, result: HealResult) -> str:
    """Return what live calls cost; what was replayed or emulated cost nothing."""
    choices = choices_of(check.config)
    if not result.calls or result.emulated or choices.record_mode() == "none":
        return ""
    model = choices.model or check.store.envelope.model
    known = choices.settings.price.get(model)
    cost = known.cost(result.usage) if known else cost_of(result.usage, model)
    return "" if cost is None else f"${cost:.4f}"


def _why(result: HealResult) -> str:
    if result.skipped:
        return result.skipped
    if result.failure is not None:
        return str(result.failure)
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
        case None:
            return f"pytest-regen adopt {shlex.quote(check.place)} --type {shlex.quote(name)}"
        case _:
            return node_command(nodeid, "--regen")
