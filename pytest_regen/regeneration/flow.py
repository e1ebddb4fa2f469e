"""The rounds of work on one type: ask, settle, and stop with a reason.

Serves healing (what fails is mended) and named work (what was named is asked again). They differ in
which pages the first round asks and in what may replace a stored output.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_regen.errors import BudgetError, CassetteError, RefusedError, RegenError
from pytest_regen.languages import find_language
from pytest_regen.regeneration.asking import Ask, ask_pages
from pytest_regen.regeneration.candidate import (
    Check,
    Policy,
    findings_of,
    model_for,
    settle,
    settle_by_test,
    source_diff,
)
from pytest_regen.regeneration.policies import (
    is_edited,
    judged,
    obstacle,
    pages_at_fault,
    signature,
)
from pytest_regen.regeneration.values import (
    Feedback,
    HealResult,
    PageAnswer,
    StopReason,
    TurnSettings,
)
from pytest_regen.stores import RegenStore
from pytest_regen.turns.values import DEFAULT_MODEL
from pytest_regen.validation.issues import Ignore, Issue, ValidationResult

__all__ = ["ends_the_run", "heal_type", "heal_types", "regenerate_pages", "stop_reason_of"]


def heal_type(
    path: Path | str,
    type_name: str,
    *,
    settings: TurnSettings,
    rounds: int = 1,
    feedback: Sequence[Feedback] = (),
    check: Check | None = None,
    accept_any: bool = False,
    ignore: Ignore = (),
) -> HealResult:
    """Mend one type: ask its pages at fault again until nothing is wrong, or a reason to stop.

    Args:
        path: the store's folder.
        type_name: the declared name.
        settings: with what, and within which limits, pages are asked.
        rounds: how often pages may be asked again.
        feedback: what the asking test says, beyond the validator's issues.
        check: calls that test again; it sees the candidate.
        accept_any: keep a new output even if it is not better.
        ignore: codes that do not count, as ``validate_store`` takes them.

    Raises:
        StoreError: the folder cannot be read or written.
    """
    policy: Policy = "any" if accept_any else "heal"
    work = _Work(
        Path(path),
        type_name,
        settings=settings,
        policy=policy,
        feedback=feedback,
        check=check,
        ignore=ignore,
    )
    return work.blocked() or work.mend(rounds)


def regenerate_pages(
    path: Path | str,
    type_name: str,
    pages: Mapping[int, Sequence[Feedback]],
    *,
    settings: TurnSettings,
    rounds: int = 1,
    accept_any: bool = False,
    discard_edits: bool = False,
    ignore: Ignore = (),
) -> HealResult:
    """Ask named pages of one type again, whatever their state, then mend what is left to mend.

    Args:
        path: the store's folder.
        type_name: the declared name.
        pages: page number to the corrections for it.
        settings: with what, and within which limits, pages are asked.
        rounds: how often pages may be asked; the rounds after the first mend.
        accept_any: keep a new output even if errors rise.
        discard_edits: replace the block even if it was edited by hand.
        ignore: codes that do not count, as ``validate_store`` takes them.

    Raises:
        StoreError: the folder cannot be read or written.
    """
    policy: Policy = "any" if accept_any else "named"
    work = _Work(Path(path), type_name, settings=settings, policy=policy, ignore=ignore)
    return work.blocked(discard_edits=discard_edits) or work.replace_pages(pages, rounds)


def heal_types(
    path: Path | str,
    type_names: Iterable[str],
    *,
    settings: TurnSettings,
    rounds: int,
    accept_any: bool = False,
    ignore: Ignore = (),
) -> list[HealResult]:
    """Mend one type after the other, until what stops one would stop the next."""
    results: list[HealResult] = []
    for name in type_names:
        result = heal_type(
            path, name, settings=settings, rounds=rounds, accept_any=accept_any, ignore=ignore
        )
        results.append(result)
        if ends_the_run(result):
            break
    return results


def ends_the_run(result: HealResult) -> bool:
    """Whether what stopped one type would stop the next: no connection, no budget, no recording."""
    return result.stop_reason in {"transport", "budget", "cassette_miss"}


def stop_reason_of(failure: RegenError) -> StopReason:
    """Return the stop reason of a turn that gave no reply."""
    match failure:
        case RefusedError():
            return "refused"
        case BudgetError():
            return "budget"
        case CassetteError():
            return "cassette_miss"
        case _:
            return "transport"


class _Work:
    """What is known of one type while it is worked on."""

    def __init__(
        self,
        path: Path,
        type_name: str,
        *,
        settings: TurnSettings,
        policy: Policy,
        feedback: Sequence[Feedback] = (),
        check: Check | None = None,
        ignore: Ignore = (),
    ) -> None:
        self._path = path
        self._type = type_name
        self._settings = settings
        self._policy = policy
        self._check = check
        self._ignore = ignore
        self._store = RegenStore.open(path)
        self._source_before = self._store.source
        self._results: Mapping[str, ValidationResult] = judged(self._store, ignore)
        self._feedback = tuple(feedback)
        self._findings = findings_of(self._results, type_name, feedback)
        self._seen = [signature(self._findings)]
        self._so_far = HealResult(type_name, None, issues_before=self._issues())

    def blocked(self, *, discard_edits: bool = False) -> HealResult | None:
        """Return a result that says why nothing is tried; ``None`` where the type may be asked."""
        result = self._results.get(self._type)
        why = obstacle(self._store, self._results, [self._type], discard_edits=discard_edits)
        if why is None:
            return None
        return replace(
            self._so_far,
            skipped="it was edited by hand: adopt the edit, or drop it with rebuild"
            if is_edited(result)
            else f"{why.what}; {why.hint}",
            issues_after=self._issues(),
            feedback_after=self._feedback,
        )

    def mend(self, rounds: int) -> HealResult:
        """Ask the pages at fault until nothing is wrong, or a reason to stop."""
        for _ in range(rounds):
            if not self._findings:
                break
            pages = pages_at_fault(self._findings, len(self._store.prompts_of(self._type)))
            stop = self._round(pages)
            if stop is not None:
                return self._ended(stop)
        return self._ended(self._reason())

    def replace_pages(self, pages: Mapping[int, Sequence[Feedback]], rounds: int) -> HealResult:
        """Ask ``pages`` whatever their state, then mend with the rounds that are left."""
        self._seen.clear()  # Bringing the same output again is no lack of progress here.
        stop = self._round(pages)
        if stop is not None:
            return self._ended(stop)
        if self._policy == "named":
            self._policy = "heal"
        return self.mend(rounds - 1)

    def _round(self, pages: Mapping[int, Sequence[Feedback]]) -> StopReason | None:
        """Ask, count and settle once; return why no further round can help."""
        language = find_language(self._store.ir.language)
        answers = list(ask_pages(self._asks(pages), self._settings, language=language))
        self._count(answers)
        replies = [answer for answer in answers if answer.failure is None]
        stop = self._settled(replies) if replies else None
        failure = next((answer.failure for answer in answers if answer.failure), None)
        if failure is not None:
            self._so_far = replace(self._so_far, failure=failure)
            return stop_reason_of(failure)
        return stop

    def _asks(self, pages: Mapping[int, Sequence[Feedback]]) -> list[Ask]:
        return [
            Ask(
                entry,
                model_for(self._store, entry, self._settings.model, DEFAULT_MODEL),
                tuple(pages[entry.page]),
            )
            for entry in self._store.prompts_of(self._type)
            if entry.page in pages
        ]

    def _count(self, answers: Sequence[PageAnswer]) -> None:
        so_far = self._so_far
        usage = so_far.usage
        for answer in answers:
            usage += answer.usage
        self._so_far = replace(
            so_far,
            attempts=so_far.attempts + any(answer.failure is None for answer in answers),
            calls=so_far.calls + sum(answer.calls for answer in answers),
            usage=usage,
        )

    def _settled(self, replies: Sequence[PageAnswer]) -> StopReason | None:
        if self._check is None:
            settled = settle(self._path, self._type, replies, self._policy, ignore=self._ignore)
        else:
            settled = settle_by_test(
                self._path, self._type, replies, self._feedback, self._check, ignore=self._ignore
            )
            self._feedback = settled.feedback
        self._store, self._results = settled.store, settled.results
        pairs = dict.fromkeys((page.type_name, page.page) for page in settled.kept)
        self._so_far = replace(
            self._so_far,
            regenerated=tuple(dict.fromkeys((*self._so_far.regenerated, *pairs))),
            rejected=(*self._so_far.rejected, *settled.rejected),
        )
        self._findings = settled.findings
        mark = signature(settled.said)
        if mark and mark in self._seen:
            return "no_progress"
        self._seen.append(mark)
        return None

    def _reason(self) -> StopReason:
        if self._findings:
            return "attempts"
        unfixable = any(issue.code == "UNFIXABLE" for issue in self._issues())
        return "unfixable" if unfixable else "clean"

    def _ended(self, stop: StopReason) -> HealResult:
        store = self._store
        diff = source_diff(self._source_before, store.source, store.source_path.name)
        changed = (store.source_path, store.path / "pages.json") if self._so_far.regenerated else ()
        return replace(
            self._so_far,
            stop_reason=stop,
            issues_after=self._issues(),
            feedback_after=self._feedback,
            changed_paths=changed,
            diff=diff,
        )

    def _issues(self) -> tuple[Issue, ...]:
        result = self._results.get(self._type)
        return result.issues if result else ()
