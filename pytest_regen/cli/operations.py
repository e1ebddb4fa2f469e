"""The chosen parts of a document, each made into a store, and what came of all of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pytest_regen import errors
from pytest_regen.cli import selection
from pytest_regen.cli.output import InOrder, describe_failure, fact, fail, hold_back, say
from pytest_regen.cli.project import Project
from pytest_regen.cli.selection import PartSelection, Skipped
from pytest_regen.cli.store_report import exit_code_of
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents import Document, Operation, Part
from pytest_regen.regeneration import GenerateResult, Sharing, generate_stores
from pytest_regen.regeneration.costs import Estimate
from pytest_regen.text import plural, shorten
from pytest_regen.turns.values import Usage

_Failure = tuple[str, errors.RegenError]
"""An operation that cannot be generated, and why."""


@dataclass(frozen=True, slots=True)
class StoreResults:
    """What came of each operation."""

    done: Sequence[GenerateResult]
    reports: Sequence[dict[str, Any]]
    """The stores as JSON, where that was asked for."""
    failed: Sequence[_Failure]
    skipped: Sequence[Skipped]
    excluded: Sequence[Operation]
    not_started: int
    has_schemas: bool
    """Whether schemas have names in the document, so that they could be one store."""

    @property
    def exit_code(self) -> int:
        """The worst of all."""
        codes = map(exit_code_of, self.done)
        return max([*codes, *(error.exit_code for _, error in self.failed)], default=0)

    @property
    def stored(self) -> list[Path]:
        """The stores that are there now."""
        return [result.plan.path for result in self.done if result.is_stored]

    @property
    def report(self) -> dict[str, Any]:
        """The only store as JSON."""
        return self.reports[0]

    def estimate(self, turns: TurnOptions) -> Estimate:
        """Return what the pages of all stores take that are to be asked."""
        return turns.estimate_all(size for result in self.done for size in result.sizes)

    @property
    def others(self) -> dict[str, Any]:
        """The operations without a store, as JSON."""
        failures = [{"operation": name, **describe_failure(error)} for name, error in self.failed]
        skipped = [{"operation": skip.operation, "reason": skip.reason} for skip in self.skipped]
        excluded = [str(operation) for operation in self.excluded]
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
        show: Callable[[GenerateResult], None] | None = None,
        describe: Callable[[GenerateResult], dict[str, Any]] | None = None,
    ) -> StoreResults:
        """Generate all, several at the same time where ``--jobs`` allows it.

        Args:
            options: of ``generate_store``, beside those that say what is to be generated.
            goes_on: whether an operation that cannot be generated leaves the others to be.
            show: tells people of a store; called as stores are finished, told in their order.
            describe: returns a store as JSON.
        """
        parts = self.selection.chosen
        skipped = list(self.selection.skipped)
        failed = self._lost_operations(skipped) if goes_on else []
        numbers = {str(part): number for number, part in enumerate(parts, 1)}
        outcomes: dict[int, GenerateResult | Skipped | _Failure] = {}
        reports: dict[int, dict[str, Any]] = {}
        with InOrder() as teller:
            for name, result in self._generate(options, goes_on=goes_on):
                number = numbers[name]
                # Held back, because stores are finished in any order and told of in theirs.
                with hold_back() as lines:
                    if isinstance(result, GenerateResult):
                        outcomes[number] = result
                        if describe is not None:
                            reports[number] = describe(result)
                        if show is not None:
                            show(result)
                    elif not goes_on:
                        raise result
                    else:
                        outcomes[number] = _failure(parts[number - 1], result)
                teller.tell(number, lines)
        done = []
        for _, outcome in sorted(outcomes.items()):
            match outcome:
                case GenerateResult():
                    done.append(outcome)
                case Skipped():
                    skipped.append(outcome)
                case _:
                    failed.append(outcome)
        if not done and not failed:
            verb = "is answered with" if isinstance(parts[0], Operation) else "takes"
            raise errors.UsageError(
                f"none of the operations {verb} a type to generate: {len(parts):,} tried",
                why=skipped[-1].reason,
                hint="name another document or tag, or --status",
            )
        not_started = len(parts) - len(outcomes)
        has_schemas = bool(self.document.named_schemas)
        return StoreResults(
            done,
            [report for _, report in sorted(reports.items())],
            failed,
            skipped,
            self.selection.excluded,
            not_started,
            has_schemas,
        )

    def _generate(
        self, options: dict[str, Any], *, goes_on: bool
    ) -> Iterator[tuple[str, GenerateResult | errors.RegenError]]:
        parts = self.selection.chosen

        def begins(number: int, part: object) -> None:
            if goes_on and "dry_run" not in options:
                say(f"{number}/{len(parts)} {part}")

        return generate_stores(
            self.document,
            parts,
            self.out,
            ignore=self.project.ignored_in,
            sharing=Sharing(self.out, is_for_many=goes_on, reads_stored=not self.options["force"]),
            begins=begins,
            **self.options,
            **options,
        )

    def _lost_operations(self, skipped: list[Skipped]) -> list[_Failure]:
        """Tell which operations the document lacks because it is broken, and return them."""
        failed: list[_Failure] = []
        for defect in self.document.lost_operations:
            if self.options["allow_defects"]:
                skipped.append(Skipped(defect.where, selection.UNREADABLE, str(defect)))
                continue
            error = errors.DocumentDefectError(
                f"the document is broken at {defect.where}, and operations may be missing",
                why=defect.message,
                hint="correct the document, or take what can be read with --allow-defects",
            )
            fail(error.what, why=error.why, hint=error.hint)
            failed.append((defect.where, error))
        return failed


def _failure(part: Part, error: errors.RegenError) -> _Failure | Skipped:
    """Tell why an operation has no store; raise what concerns the others as well."""
    match error:
        case errors.NothingToGenerateError():
            kind = (
                selection.PLAIN_VALUES if isinstance(part, Operation) else selection.PLAIN_REQUEST
            )
            return Skipped(str(part), kind, error.what)
        case errors.DocumentDefectError() | errors.StoreError():
            where = "" if str(part) in error.what else f"{part}: "
            # Told at once, because what is generated after it may take an hour.
            fail(f"{where}{error.what}", why=error.why, hint=error.hint)
            return str(part), error
        case _:
            raise error


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
    if repeated and results.has_schemas:
        names = f"{plural(len(repeated), 'type')} in more than one store: {shorten(repeated)}"
        fact("repeated", f"{names}; --schemas makes one store of all")
    if calls := sum(result.calls for result in results.done):
        usage = sum((result.usage for result in results.done), Usage())
        fact("spent", turns.spent(calls, usage))
    for kind, group in groupby(results.skipped, key=lambda skip: skip.kind):
        _tell_operations("skipped", [skip.operation for skip in group], f" {kind}")
    if results.excluded:
        _tell_operations("excluded", map(str, results.excluded))
    clean = [result for result in results.done if exit_code_of(result) == 0]
    new = [r for r in clean if r.asked or r.added or r.changed or r.removed]
    parts = [f"{plural(len(new), 'store')} {'planned' if dry_run else 'generated'}"]
    numbers = {
        "kept": len(clean) - len(new),
        "with errors": len(results.done) - len(clean),
        "failed": len(results.failed),
        "skipped": len(results.skipped),
        "excluded": len(results.excluded),
        "not started": results.not_started,
    }
    parts += [f"{number:,} {what}" for what, number in numbers.items() if number]
    say(", ".join(parts))


def _tell_operations(label: str, operations: Iterable[str], kind: str = "") -> None:
    names = list(operations)
    fact(label, f"{plural(len(names), 'operation')}{kind}: {shorten(names)}")
