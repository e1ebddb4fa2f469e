"""What ``generate`` says of one store, in words and as JSON: a plan, a check, or a result."""

from typing import Any

from pytest_regen.cli.diff import changes_json, show_changes
from pytest_regen.cli.output import (
    describe_failure,
    fact,
    next_step,
    say,
    show_failures,
    show_stopped,
)
from pytest_regen.cli.places import tell_issues
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents.changes import direction_of
from pytest_regen.prompts import estimated_input_tokens
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration import GenerateResult
from pytest_regen.regeneration.costs import Estimate
from pytest_regen.stores import RegenStore
from pytest_regen.text import plural, shorten
from pytest_regen.turns.models import tokens_for
from pytest_regen.turns.values import DEFAULT_MODEL
from pytest_regen.validation.stores import from_errors_command


def exit_code_of(result: GenerateResult) -> int:
    """Return the exit code that a store comes to."""
    if result.failures:
        return max(failure.exit_code for failure in result.failures)
    return int(any(verdict.has_errors for verdict in result.validation.values()))


def _others_json(result: GenerateResult) -> dict[str, Any]:
    shared = [{**key._asdict(), "from": folder} for key, folder in result.shared.items()]
    skipped = [
        {"schema": name, "reason": f"it is {what}"} for name, what in result.plan.skipped.items()
    ]
    others = {"shared": shared, "skipped": skipped}
    # Left out where empty, because most stores share and skip nothing.
    return {name: value for name, value in others.items() if value}


def plan_json(result: GenerateResult, turns: TurnOptions) -> dict[str, Any]:
    """Return as JSON what would be asked for a store."""
    return {
        "ir": result.plan.ir.to_json(),
        "prompts": [
            {**entry.to_json(), "estimated_input_tokens": _estimate(entry, result, turns)}
            for entry in result.plan.prompts
        ],
        **_others_json(result),
        "defects": [defect.to_json() for defect in result.plan.defects],
        "estimate": Estimate(turns.price_of, result.sizes).to_json(),
    }


def result_json(result: GenerateResult) -> dict[str, Any]:
    """Return as JSON what came of a store."""
    verdicts = result.validation.values()
    return {
        "path": result.plan.path.as_posix(),
        "ok": exit_code_of(result) == 0,
        **{state: list(names) for state, names in result.types.items()},
        "asked": [key._asdict() for key in result.asked],
        **_others_json(result),
        "calls": result.calls,
        "tokens": result.usage.total_tokens,
        "stop_reasons": dict(result.stop_reasons),
        "failures": [describe_failure(failure) for failure in result.failures],
        "errors": [i.to_json() for verdict in verdicts for i in verdict.errors],
        "defects": [defect.to_json() for defect in result.plan.defects],
    }


def show_plan(result: GenerateResult, turns: TurnOptions) -> None:
    """Tell whether a store is as its document wants it, and what would be asked for it."""
    plan = result.plan
    is_up_to_date = plan.is_current and not result.asked
    if result.note:
        say(f"note: {result.note}")
    if plan.previous is not None and not plan.is_current:
        _show_types(result, "added", "changed", "removed")
        show_changes(changes_json(result.changes, direction_of(plan.ir)))
    asked = set(result.asked)
    waiting = [entry for entry in plan.prompts if entry.key in asked]
    width = max((len(entry.type_name) for entry in waiting), default=0)
    for entry in waiting:
        estimate = _estimate(entry, result, turns)
        page = f"page {entry.page} of {entry.total_pages}"
        fields = plural(len(entry.fields), "field")
        about = f", about {estimate:,} tokens" if estimate else ""
        say(f"  {entry.type_name:<{width}}  {page:<12}  {fields:>9}{about}")
    for defect in plan.defects:
        is_error = defect.severity == "error"
        text = f"error: {defect}" if is_error else str(defect)
        fact("document", text, "red" if is_error else "yellow")
    _show_without_calls(result)
    turns.show_cost(Estimate(turns.price_of, result.sizes))
    if is_up_to_date:
        say(f"{plan.path}: up to date", "green")
        return
    written = len(result.written)
    # Apart, because what the template writes costs nothing and needs no key.
    to_ask = len(result.asked) - written
    parts = [f"{plural(to_ask, 'page')} to ask"] if to_ask or not written else []
    parts += [f"{plural(written, 'page')} to write by the template"] if written else []
    # Of one that is up to date all pages are asked with --force.
    why = "" if plan.is_current else "older than the document, "
    why = "there is no store yet, " if plan.previous is None else why
    say(f"{plan.path}: {why}{', '.join(parts)}; nothing written", "yellow")


def _estimate(entry: PromptEntry, result: GenerateResult, turns: TurnOptions) -> int:
    """Return about how many tokens a request for a page takes; the template takes none."""
    # Of a model, because each counts the tokens of a text differently.
    model = turns.model_asked or DEFAULT_MODEL
    is_free = entry.key in result.written
    return 0 if is_free else tokens_for(estimated_input_tokens(entry), model)


def show_result(result: GenerateResult, namespace: str | None, turns: TurnOptions) -> None:
    """Tell what came of a store."""
    _show_types(result, "added", "changed", "removed", "kept")
    _show_without_calls(result)
    source = result.plan.path / result.plan.source_file
    # The header is what stands above the first boundary line.
    header = source.read_text("utf-8").partition(":BEGIN ")[0] if source.is_file() else None
    if namespace and header is not None and namespace not in header:
        advice = f"change the namespace to {namespace} there"
        fact("header", f"it stays as it is, for it is yours: {advice}")
    tell_issues((i for verdict in result.validation.values() for i in verdict.issues), str(source))
    # Of the others the failure below says why.
    show_stopped(item for item in result.results if item.rejected)
    spent = turns.spent(result.calls, result.usage, by_template=bool(result.written))
    say(f"{source}: {spent}")
    if result.failures:
        stored = "what was finished is stored: the same command again asks only for the rest"
        say(stored if result.is_stored else f"nothing was written to {result.plan.path}")
        show_failures(result.failures)
    elif any(verdict.has_errors for verdict in result.validation.values()):
        next_step(from_errors_command(RegenStore.open(result.plan.path)))


def _show_types(result: GenerateResult, *states: str) -> None:
    for state in states:
        if types := result.types[state]:
            fact(state, f"{plural(len(types), 'type')}: {shorten(types)}")


def _show_without_calls(result: GenerateResult) -> None:
    """Tell which schemas have no type by themselves, and which pages another store has."""
    if result.plan.skipped:
        names = [f"{name} ({what})" for name, what in result.plan.skipped.items()]
        fact("skipped", f"{plural(len(names), 'schema')} without a type: {shorten(names)}")
    if result.shared:
        folders = sorted(set(result.shared.values()))
        fact("shared", f"{plural(len(result.shared), 'page')} with {shorten(folders)}")


def check_json(result: GenerateResult, turns: TurnOptions) -> dict[str, Any]:
    """Return as JSON whether a store is as its document wants it."""
    is_old = not result.plan.is_current
    return {
        "path": result.plan.path.as_posix(),
        "ok": result.plan.is_current,
        "is_new": result.plan.previous is None,
        **{
            state: list(result.types[state]) if is_old else []
            for state in ("added", "changed", "removed")
        },
        "changes": changes_json(result.changes, direction_of(result.plan.ir)) if is_old else [],
        "asked": [key._asdict() for key in result.asked] if is_old else [],
        "note": result.note,
        "estimate": Estimate(turns.price_of, result.sizes).to_json(),
    }
