"""The chosen parts of a document, each made into a store, and what came of all of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from pytest_regen import errors
from pytest_regen.cli.output import InOrder, describe_failure, fact, fail, hold_back, say
from pytest_regen.cli.project import Project
from pytest_regen.cli.selection import PartSelection, Skipped
from pytest_regen.cli.store_report import exit_code_of, result_json, show_result
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents import Document, Operation
from pytest_regen.regeneration import GenerateResult, Sharing, generate_stores
from pytest_regen.regeneration.costs import Estimate
from pytest_regen.text import plural, shorten
from pytest_regen.turns.values import Usage

_Failure = tuple[str, errors.RegenError]
"""An operation that cannot be generated, and why."""


@dataclass(frozen=True, slots=True)
class StoreResults:
    """What came of each operation."""

    work: "StoreWork"
    done: Sequence[GenerateResult]
    reports: Sequence[Any]
    """What was made of each store for JSON, where that was asked for."""
    failed: Sequence[_Failure]
    skipped: Sequence[Skipped]
    not_started: int

    @property
    def exit_code(self) -> int:
        """The worst of all."""
        codes = map(exit_code_of, self.done)
        return max([*codes, *(error.exit_code for _, error in self.failed)], default=0)

    def estimate(self, turns: TurnOptions) -> Estimate:
        """Return what the pages of all stores take that are to be asked."""
        return turns.estimate_all(size for result in self.done for size in result.sizes)

    @property
    def others(self) -> dict[str, Any]:
        """The operations without a store, as JSON."""
        failures = [{"operation": name, **describe_failure(error)} for name, error in self.failed]
        skipped = [{"operation": skip.operation, "reason": skip.reason} for skip in self.skipped]
        excluded = [str(operation) for operation in self.work.selection.excluded]
        return {"failures": failures, "skipped": skipped, "excluded": excluded}


@dataclass(frozen=True, slots=True)
class StoreWork:
    """What is to be generated, and how."""

    project: Project
    document: Document
    selection: PartSelection
    out: Path
    options: dict[str, Any]

    def generate(
        self,
        options: dict[str, Any],
        *,
        goes_on: bool,
        report: Callable[[GenerateResult], Any] = lambda _: None,
    ) -> StoreResults:
        """Generate all, several at the same time where ``--jobs`` allows it.

        Args:
            options: of ``generate_store``, beside those that say what is to be generated.
            goes_on: whether an operation that cannot be generated leaves the others to be.
            report: tells people of a store, or returns it as JSON; called as stores are finished,
                what it tells is told in their order.
        """
        parts = self.selection.chosen
        numbers = {str(part): number for number, part in enumerate(parts)}
        skipped, failed = self._lost_operations() if goes_on else ([], [])
        outcomes: dict[int, GenerateResult | Skipped | _Failure] = {}
        reports: dict[int, Any] = {}

        def begins(number: int, part: object) -> None:
            if goes_on and "dry_run" not in options:
                say(f"{number}/{len(parts)} {part}")

        stores = generate_stores(
            self.document,
            parts,
            self.out,
            ignore=self.project.ignored_in,
            sharing=Sharing(self.out, is_for_many=goes_on, reads_stored=not self.options["force"]),
            begins=begins,
            **self.options,
            **options,
        )
        with InOrder() as teller:
            for name, result in stores:
                number = numbers[name]
                # Held back, because stores are finished in any order and told of in theirs.
                with hold_back() as lines:
                    if isinstance(result, GenerateResult):
                        outcomes[number] = result
                        reports[number] = report(result)
                    elif not goes_on:
                        raise result
                    elif isinstance(result, errors.NothingToGenerateError):
                        is_answer = isinstance(parts[number], Operation)
                        verb = "answered with" if is_answer else "that take"
                        kind = f"{verb} plain values, which need no type"
                        outcomes[number] = Skipped(name, kind, result.what)
                    else:
                        outcomes[number] = _failure(name, result)
                teller.tell(number + 1, lines)
        in_order = [outcomes[number] for number in sorted(outcomes)]
        done = [outcome for outcome in in_order if isinstance(outcome, GenerateResult)]
        skipped = [*self.selection.skipped, *skipped]
        skipped += [outcome for outcome in in_order if isinstance(outcome, Skipped)]
        failed += [outcome for outcome in in_order if isinstance(outcome, tuple)]
        if not (done or failed):
            verb = "is answered with" if isinstance(parts[0], Operation) else "takes"
            raise errors.UsageError(
                f"none of the operations {verb} a type to generate: {len(parts):,} tried",
                why=skipped[-1].reason,
                hint="name another document or tag, or --status",
            )
        in_turn = [reports[number] for number in sorted(reports)]
        return StoreResults(self, done, in_turn, failed, skipped, len(parts) - len(outcomes))

    def ask(
        self,
        turns: TurnOptions,
        *,
        discard_edits: bool = False,
        many: bool = False,
        as_json: bool = False,
    ) -> tuple[StoreResults, Usage]:
        """Ask for what is missing or outdated, and tell of each store; return what that took, too.

        Args:
            turns: with whom.
            discard_edits: whether what was edited by hand is replaced.
            many: whether an operation that cannot be generated leaves the others to be.
            as_json: whether stores are described as JSON, and nothing is told.
        """
        tell = partial(show_result, namespace=self.options.get("namespace"), turns=turns)
        report: Callable[[GenerateResult], Any] = result_json
        if not as_json:
            # The only one is told of below, because the line of progress would stand beneath it.
            report = tell if many else lambda _: None
        with turns.run(as_json=as_json) as (progress, settings):
            results = self.generate(
                {"settings": settings, "attempts": turns.replies(), "discard_edits": discard_edits},
                goes_on=many,
                report=report,
            )
        for result in () if many or as_json else results.done:
            tell(result)
        return results, progress.state.usage

    def _lost_operations(self) -> tuple[list[Skipped], list[_Failure]]:
        """Tell which operations the document lacks because it is broken, and return them."""
        skipped: list[Skipped] = []
        failed: list[_Failure] = []
        for defect in self.document.lost_operations:
            if self.options["allow_defects"]:
                skipped.append(Skipped(defect.where, "that cannot be read", str(defect)))
                continue
            error = errors.DocumentDefectError(
                f"the document is broken at {defect.where}, and operations may be missing",
                why=defect.message,
                hint="correct the document, or take what can be read with --allow-defects",
            )
            fail(error.what, why=error.why, hint=error.hint)
            failed.append((defect.where, error))
        return skipped, failed


def _failure(name: str, error: errors.RegenError) -> _Failure:
    """Tell why an operation has no store; raise what concerns the others as well."""
    if not isinstance(error, errors.DocumentDefectError | errors.StoreError):
        raise error
    where = "" if name in error.what else f"{name}: "
    # Told at once, because what is generated after it may take an hour.
    fail(f"{where}{error.what}", why=error.why, hint=error.hint)
    return name, error


def show_sum(results: StoreResults, turns: TurnOptions, *, dry_run: bool) -> None:
    """Tell what came of many operations, where that is not on the screen any more."""
    shared = sum(len(result.shared) for result in results.done)
    if shared or dry_run:
        pages = sum(len(result.asked) for result in results.done)
        estimate = results.estimate(turns)
        tokens = estimate.input_tokens
        about = f", about {tokens:,} tokens of input" if dry_run and tokens else ""
        by_stores = f"; {plural(shared, 'page')} shared by stores" if shared else ""
        fact("pages", f"{pages:,} {'to ask' if dry_run else 'asked'}{about}{by_stores}")
        turns.show_cost(estimate)
    counts = Counter(t.name for result in results.done for t in result.plan.ir.types)
    # By name, because one that stands in two stores is edited, asked for and reviewed twice.
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated and results.work.document.named_schemas:
        names = f"{plural(len(repeated), 'type')} in more than one store: {shorten(repeated)}"
        fact("repeated", f"{names}; --schemas makes one store of all")
    if calls := sum(result.calls for result in results.done):
        usage = sum((result.usage for result in results.done), Usage())
        fact("spent", turns.spent(calls, usage))
    for kind, group in groupby(results.skipped, key=lambda skip: skip.kind):
        _tell_operations("skipped", [skip.operation for skip in group], f" {kind}")
    excluded = results.work.selection.excluded
    if excluded:
        _tell_operations("excluded", map(str, excluded))
    clean = [result for result in results.done if exit_code_of(result) == 0]
    new = [r for r in clean if r.asked or any(r.types[s] for s in ("added", "changed", "removed"))]
    parts = [f"{plural(len(new), 'store')} {'planned' if dry_run else 'generated'}"]
    numbers = {
        "kept": len(clean) - len(new),
        "with errors": len(results.done) - len(clean),
        "failed": len(results.failed),
        "skipped": len(results.skipped),
        "excluded": len(excluded),
        "not started": results.not_started,
    }
    parts += [f"{number:,} {what}" for what, number in numbers.items() if number]
    say(", ".join(parts))


def _tell_operations(label: str, operations: Iterable[str], kind: str = "") -> None:
    names = list(operations)
    fact(label, f"{plural(len(names), 'operation')}{kind}: {shorten(names)}")
