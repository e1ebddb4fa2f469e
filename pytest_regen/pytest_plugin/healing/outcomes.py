"""Which units are chosen, calls of their items, and what is told of healing."""

from collections.abc import Sequence

import pytest

from pytest_regen.errors import BudgetError, CassetteError, CassetteMissError, MissingKeyError
from pytest_regen.pytest_plugin import names
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.healing.feedback import failure_of, feedback_about, feedback_of
from pytest_regen.pytest_plugin.items import UnitError, findings_json
from pytest_regen.pytest_plugin.looks import Look, Target
from pytest_regen.pytest_plugin.project import from_rootdir
from pytest_regen.pytest_plugin.summary import REVIEW, HealReport, Outcome, tokens_of
from pytest_regen.regeneration.values import HealResult
from pytest_regen.validation.issues import Feedback


class ItemCalls:
    """Calls an item about candidates, and remembers how the last call ended.

    Args:
        item: the item.
        target: the unit that it is asked about.
        failure: what the item failed with before.
    """

    def __init__(self, item: pytest.Item, target: Target, failure: BaseException | None) -> None:
        self._item = item
        self._target = target
        self.failure = failure

    def __call__(self) -> Sequence[Feedback]:
        """Call the item and return what it reports of the unit."""
        self._target.look.forget()  # The files hold a candidate now.
        self.failure = failure_of(self._item)
        if self.failure is None:
            return ()
        if isinstance(self.failure, UnitError):
            return feedback_about(self.failure.issues, self._target.name)
        return feedback_about(feedback_of(self._item, self.failure), self._target.name)


def heal_report(target: Target, result: HealResult, *, passed: bool, is_live: bool) -> HealReport:
    """Return the report of work that was tried.

    Args:
        target: the unit, looked at afterwards.
        result: how the work ended.
        passed: whether the item passes now.
        is_live: whether an answer was given just now, and so may have cost something.
    """
    look, config = target.look, target.look.config
    following = "" if passed else _next_after(target, result)
    if result.pending:  # With the candidate it may pass; the files hold none.
        passed, following = False, REVIEW
    outcome: Outcome = "pending" if result.pending else "regenerated" if passed else "failed"
    if result.stop_reason is None or isinstance(result.failure, MissingKeyError):
        outcome = "skipped"
    transcript = []
    if config.option.regen_report is not None:
        from pytest_regen.pytest_plugin.transcripts import transcript_of

        transcript = transcript_of(result.transcript, config)
    usage = result.usage
    cost = usage.cost if is_live and not result.emulated else None
    return HealReport(
        unit=target.id,
        outcome=outcome,
        stop_reason=result.stop_reason or "",
        attempts=1 + result.attempts,
        calls=result.calls,
        **tokens_of(usage),
        transcript=transcript,
        pages=sorted(page for name, page in result.regenerated if name == target.name),
        changed=[from_rootdir(path, config.rootpath) for path in result.changed_paths],
        cassette=from_rootdir(target.cassette, config.rootpath),
        diff=result.diff,
        why="" if passed or result.pending else _why(result, following, look),
        next=following,
        emulated=result.emulated,
        by_template=result.by_template,
        cost_usd=cost.json if cost else None,
        findings=findings_json((*result.issues_before, *target.feedback), look),
        has_pages=look.home.has_pages,
        pending=list(result.pending),
    )


def tell_failure(failure: BaseException | None, heal: HealReport) -> None:
    """Put what came of healing on the failure that is left, where that says something."""
    if failure is None:
        return
    if heal.pending:
        words = f"Candidate {heal.pending[0]} waits for review: {REVIEW}"
    else:
        words = f"Not regenerated: {heal.why}" if heal.why else ""
    if isinstance(failure, UnitError):
        failure.healing = words or failure.healing
        failure.next = heal.next
    elif heal.pending:
        failure.add_note(words)


def _why(result: HealResult, following: str, look: Look) -> str:
    """Return what stood in the way, without the hint where that is the command that follows."""
    if result.skipped:
        return result.skipped
    if result.by_template and result.stop_reason == "unfixable":
        return "the template writes what is asked for, and that has the same fault"
    if result.stop_reason == "clean":
        return f"what fails is not in the {look.home.noun}"
    from pytest_regen.regeneration.answers import why_lines

    lines = list(why_lines(result))
    failure = result.failure
    if isinstance(failure, CassetteMissError) and "no cassette" in failure.causes:
        nothing = "nothing was sent: --regen alone replays recordings, and there is none for this"
        lines.append(nothing)
        lines += filter(None, [failure.why.partition("; ")[2]])  # What a failed run left.
    elif isinstance(failure, CassetteMissError) and failure.recorded_with:
        lines.append(f"nothing was sent: it is recorded with {failure.recorded_with}")
    elif isinstance(failure, MissingKeyError):
        lines.append(f"nothing was sent: {failure.variable} is not set")
        lines.append("to ask another model: --regen-provider openai:MODEL or ollama:MODEL")
    elif failure is not None and (failure.hint == following or isinstance(failure, BudgetError)):
        lines += filter(None, (failure.what, failure.why))
    elif failure is not None:
        lines.append(str(failure))
    return "\n".join(lines)


def unfixable_advice(look: Look) -> str:
    """Return what to do where no reply can be right; empty where its failure decides."""
    is_described = look.home.has_pages
    return "correct the API description, then pytest-regen generate on it" if is_described else ""


def _next_after(target: Target, result: HealResult) -> str:
    """Return what to run or do; never what would end where this run did."""
    look, config, item, cassette = target.look, target.look.config, target.nodeid, target.cassette
    advice = "" if result.by_template else unfixable_advice(look)
    if advice and result.stop_reason == "unfixable":
        return advice
    is_failed_template = result.by_template and result.stop_reason not in {None, "clean"}
    if is_failed_template or result.stop_reason == "refused":
        return names.other_model_command(config, item, cassette)
    match result.stop_reason:
        case "attempts":
            # Calls of the test: its first one, those in vain, and one more.
            more = str(result.attempts + 2)
            return names.recording_command(config, item, cassette, "--regen-attempts", more)
        case "no_progress":
            words = "--correction", "what is wrong"
            again = look.regenerating(target.name, result.issues_after, *words)
            # The command tries its answer by no test of the user's.
            return again if item == target.id else f"{again} && {names.node_command(config, item)}"
        case None | "clean" | "unfixable":
            mend = look.command(target.name, result.issues_after)
            return mend or names.node_command(config, item)
    failure = result.failure
    if isinstance(failure, CassetteMissError) and failure.recorded_with:
        return names.heal_again(config, item, "none", provider=failure.recorded_with)
    if isinstance(failure, CassetteError):
        return failure.hint
    needed = failure.needed if isinstance(failure, BudgetError) else 0
    # Twice, because a correction may follow.
    more_tokens = ("--regen-budget", str(needed * 2)) if needed else ()
    again = names.rerun_command(config, item, cassette, *more_tokens)
    if isinstance(failure, MissingKeyError):
        return f"set {failure.variable}, then {again}"
    if choices_of(config).record_mode() == "none" and cassette.exists():
        # What was recorded is this very failure.
        return names.recording_command(config, item, cassette)
    return again
