"""The chosen parts of a document, each made into a store, and what came of all of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from pytest_regen.cli.output import InOrder, describe_failure, fact, fail, hold_back, say
from pytest_regen.cli.project import Project
from pytest_regen.cli.selection import (
    PLAIN_REQUEST,
    PLAIN_VALUES,
    UNREADABLE,
    PartSelection,
    Skipped,
)
from pytest_regen.cli.store_report import exit_code_of
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents import Document, Operation, Part
from pytest_regen.errors import (
    DocumentDefectError,
    NothingToGenerateError,
    RegenError,
    StoreError,
    UsageError,
)
from pytest_regen.regeneration import GenerateResult, Sharing, generate_stores
from pytest_regen.regeneration.costs import AskSize, Estimate
from pytest_regen.text import plural, shorten
from pytest_regen.turns.values import Usage


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """What is kept of a store that is finished: there may be thousands."""

    number: int
    """Of the operation, from 1."""
    path: Path
    exit_code: int
    asked: int
    shared: int
    sizes: tuple[AskSize, ...]
    calls: int
    usage: Usage
    is_current: bool
    is_new: bool
    is_stored: bool
    is_kept: bool
    """Whether it was there already, just as the document wants it."""
    report: dict[str, Any] | None
    """As JSON, where that was asked for."""

    @classmethod
    def of(
        cls, number: int, result: GenerateResult, report: dict[str, Any] | None
    ) -> "StoreSummary":
        """Return what is kept of a result."""
        return cls(
            number,
            result.path,
            exit_code_of(result),
            len(result.asked),
            len(result.shared),
            result.sizes,
            result.calls,
            result.usage,
            result.is_current,
            result.is_new,
            result.is_stored,
            not (result.asked or result.added or result.changed or result.removed),
            report,
        )


@dataclass(frozen=True, slots=True)
class StoreResults:
    """What came of each operation."""

    done: Sequence[StoreSummary]
    failed: Sequence[tuple[str, RegenError]]
    skipped: Sequence[Skipped]
    excluded: Sequence[Operation]
    not_started: int = 0

    @property
    def exit_code(self) -> int:
        """The worst of all."""
        codes = [done.exit_code for done in self.done]
        return max([*codes, *(error.exit_code for _, error in self.failed)], default=0)

    @property
    def stored(self) -> list[Path]:
        """The stores that are there now."""
        return [done.path for done in self.done if done.is_stored]

    @property
    def reports(self) -> list[dict[str, Any]]:
        """The stores as JSON."""
        return [done.report for done in self.done if done.report is not None]

    @property
    def report(self) -> dict[str, Any]:
        """The only store as JSON."""
        return self.reports[0]

    def estimate(self, turns: TurnOptions) -> Estimate:
        """Return what the pages of all stores take that are to be asked."""
        return turns.estimate_all(size for done in self.done for size in done.sizes)

    @property
    def others(self) -> dict[str, Any]:
        """The operations without a store, as JSON."""
        return {
            "failures": [
                {"operation": name, **describe_failure(error)} for name, error in self.failed
            ],
            "skipped": [
                {"operation": each.operation, "reason": each.reason} for each in self.skipped
            ],
            "excluded": [str(operation) for operation in self.excluded],
        }


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
        show: Callable[[GenerateResult], None] | None,
        describe: Callable[[GenerateResult], dict[str, Any]] | None,
    ) -> StoreResults:
        """Generate all, several at the same time where ``--jobs`` allows it.

        Args:
            options: of ``generate_store``, beside those that say what is to be generated.
            goes_on: whether an operation that cannot be generated leaves the others to be.
            show: tells people of a store; called as stores are finished, told in their order.
            describe: returns a store as JSON.
        """
        operations = self.selection.chosen
        failed: list[tuple[str, RegenError]] = []
        skipped = list(self.selection.skipped)
        if goes_on:
            self._tell_lost(failed, skipped)
        done: list[StoreSummary] = []
        numbers = {str(operation): number for number, operation in enumerate(operations, 1)}
        early: list[tuple[int, tuple[str, RegenError] | Skipped]] = []
        with InOrder() as told:
            for name, result in self._generate(options, goes_on=goes_on):
                number = numbers[name]
                with hold_back() as lines:
                    if isinstance(result, GenerateResult):
                        report = describe(result) if describe else None
                        done.append(StoreSummary.of(number, result, report))
                        if show is not None:
                            show(result)
                    elif not goes_on:
                        raise result
                    else:
                        early.append((number, self._failure(operations[number - 1], result)))
                told.tell(number, lines)
        for _, failure in sorted(early, key=itemgetter(0)):
            skipped.append(failure) if isinstance(failure, Skipped) else failed.append(failure)
        if not done and not failed:
            verb = "is answered with" if isinstance(operations[0], Operation) else "takes"
            raise UsageError(
                f"none of the operations {verb} a type to generate: {len(operations):,} tried",
                why=skipped[-1].reason,
                hint="name another document or tag, or --status",
            )
        done.sort(key=attrgetter("number"))
        rest = len(operations) - len(done) - len(early)
        return StoreResults(done, failed, skipped, self.selection.excluded, rest)

    def _generate(
        self, options: dict[str, Any], *, goes_on: bool
    ) -> Iterator[tuple[str, GenerateResult | RegenError]]:
        operations = self.selection.chosen

        def begins(number: int, operation: object) -> None:
            if goes_on and "dry_run" not in options:
                say(f"{number}/{len(operations)} {operation}")

        return generate_stores(
            self.document,
            operations,
            self.out,
            ignore=self.project.ignored_in,
            sharing=Sharing(self.out, is_for_many=goes_on, reads_stored=not self.options["force"]),
            begins=begins,
            **self.options,
            **options,
        )

    def _failure(self, operation: Part, error: RegenError) -> tuple[str, RegenError] | Skipped:
        """Tell why an operation has no store; raise what concerns the others as well."""
        match error:
            case NothingToGenerateError():
                kind = PLAIN_VALUES if isinstance(operation, Operation) else PLAIN_REQUEST
                return Skipped(str(operation), kind, error.what)
            case DocumentDefectError() | StoreError():
                named = "" if str(operation) in error.what else f"{operation}: "
                fail(f"{named}{error.what}", why=error.why, hint=error.hint)
                return str(operation), error
            case _:
                raise error

    def _tell_lost(self, failed: list[tuple[str, RegenError]], skipped: list[Skipped]) -> None:
        """Tell which operations the document lacks because it is broken."""
        for defect in self.document.lost_operations:
            if self.options["allow_defects"]:
                skipped.append(Skipped(defect.where, UNREADABLE, str(defect)))
                continue
            error = DocumentDefectError(
                f"the document is broken at {defect.where}, and operations may be missing",
                why=defect.message,
                hint="correct the document, or take what can be read with --allow-defects",
            )
            fail(error.what, why=error.why, hint=error.hint)
            failed.append((defect.where, error))


def show_sum(results: StoreResults, turns: TurnOptions, *, dry_run: bool) -> None:
    """Tell what came of many operations, where that is not on the screen any more."""
    shared = sum(done.shared for done in results.done)
    if shared or dry_run:
        asked = sum(done.asked for done in results.done)
        estimate = results.estimate(turns)
        tokens = estimate.input_tokens
        about = f", about {tokens:,} tokens of input" if dry_run and tokens else ""
        rest = f"; {plural(shared, 'page')} shared by stores" if shared else ""
        verb = "to ask" if dry_run else "asked"
        fact("pages", f"{asked:,} {verb}{about}{rest}")
        turns.show_cost(estimate)
    if calls := sum(done.calls for done in results.done):
        usage = sum((done.usage for done in results.done), Usage())
        fact("spent", turns.spent(calls, usage))
    for kind, whose in groupby(results.skipped, key=lambda each: each.kind):
        names = [each.operation for each in whose]
        fact("skipped", f"{plural(len(names), 'operation')} {kind}: {shorten(names)}")
    if results.excluded:
        names = [str(operation) for operation in results.excluded]
        fact("excluded", f"{plural(len(names), 'operation')}: {shorten(names)}")
    failing = sum(done.exit_code > 0 for done in results.done)
    kept = sum(done.exit_code == 0 and done.is_kept for done in results.done)
    made = len(results.done) - failing - kept
    parts = [f"{plural(made, 'store')} {'planned' if dry_run else 'generated'}"]
    others = {
        "kept": kept,
        "with errors": failing,
        "failed": len(results.failed),
        "skipped": len(results.skipped),
        "excluded": len(results.excluded),
        "not started": results.not_started,
    }
    parts += [f"{number:,} {what}" for what, number in others.items() if number]
    say(", ".join(parts))
