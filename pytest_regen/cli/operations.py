"""The chosen parts of a document, each made into a store, and what came of all of them."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from pytest_regen import errors
from pytest_regen.cli.asking import Outcome
from pytest_regen.cli.output import fact, say, tell_in_order
from pytest_regen.cli.project import Project
from pytest_regen.cli.selection import PartSelection, Skipped
from pytest_regen.cli.store_report import exit_code_of, result_json, show_result
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents import Document, Operation
from pytest_regen.regeneration import GenerateResult, generate_stores
from pytest_regen.regeneration.costs import Estimate
from pytest_regen.regeneration.sharing import Sharing
from pytest_regen.text import plural, shorten
from pytest_regen.turns.values import Usage


@dataclass(slots=True, kw_only=True)
class StoreResults(Outcome):
    """What came of each operation."""

    work: "StoreWork"
    done: list[GenerateResult] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def estimate(self, turns: TurnOptions) -> Estimate:
        """Return what the pages of all stores take that are to be asked."""
        sizes = (size for result in self.done for size in result.sizes)
        return Estimate(turns.price_of, sizes)

    @property
    def others(self) -> dict[str, Any]:
        """The operations without a store, as JSON."""
        skipped = [{"operation": skip.operation, "reason": skip.reason} for skip in self.skipped]
        excluded = [str(operation) for operation in self.work.selection.excluded]
        return {
            "failures": self.failures("operation"),
            "skipped": skipped,
            "excluded": excluded,
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
        results = StoreResults(noun="store", total=len(parts), work=self)
        results.skipped += self.selection.skipped
        # Only of many, because whoever names one operation has it, and misses none.
        for defect in self.document.lost_operations if goes_on else ():
            if self.options["allow_defects"]:
                results.skipped.append(Skipped(defect.where, "that cannot be read", str(defect)))
                continue
            error = errors.DocumentDefectError(
                f"the document is broken at {defect.where}, and operations may be missing",
                why=defect.message,
                hint="correct the document, or take what can be read with --allow-defects",
            )
            results.total += 1
            results.fail(defect.where, error)

        def begins(number: int, part: object) -> None:
            # Not of a plan, because it is over before anybody has read that it began.
            if goes_on and "dry_run" not in options:
                say(f"{number}/{len(parts)} {part}")

        def take(number: int, name: str, result: GenerateResult | errors.RegenError) -> None:
            if isinstance(result, GenerateResult):
                results.done.append(result)
                results.codes.append(exit_code_of(result))
                results.reports[number] = report(result)
            elif goes_on and isinstance(result, errors.NothingToGenerateError):
                verb = "answered with" if isinstance(parts[number], Operation) else "that take"
                kind = f"{verb} plain values, which need no type"
                # It is not among those that are done, and nobody waits for it.
                results.total -= 1
                results.skipped.append(Skipped(name, kind, result.what))
            elif goes_on and isinstance(result, errors.DocumentDefectError | errors.StoreError):
                results.fail(name, result)
            else:  # It concerns the others as well.
                raise result

        stores = generate_stores(
            self.document,
            parts,
            self.out,
            ignore=self.project.ignored_in,
            # With --force nothing is taken from other stores, because each page is asked again.
            sharing=Sharing(self.out, is_for_many=goes_on, reads_stored=not self.options["force"]),
            begins=begins,
            **self.options,
            **options,
        )
        tell_in_order(list(map(str, parts)), stores, take)
        if not (results.done or results.failed):
            verb = "is answered with" if isinstance(parts[0], Operation) else "takes"
            raise errors.UsageError(
                f"none of the operations {verb} a type to generate: {len(parts):,} tried",
                why=results.skipped[-1].reason,
                hint="name another document or tag, or --status",
            )
        return results

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


def show_sum(results: StoreResults, turns: TurnOptions, *, is_plan: bool) -> None:
    """Tell what came of many operations, where that is not on the screen any more."""
    shared = sum(len(result.shared) for result in results.done)
    if shared or is_plan:
        pages = sum(len(result.asked) for result in results.done)
        estimate = results.estimate(turns)
        tokens = estimate.input_tokens
        about = f", about {tokens:,} tokens of input" if is_plan and tokens else ""
        by_stores = f"; {plural(shared, 'page')} shared by stores" if shared else ""
        fact("pages", f"{pages:,} {'to ask' if is_plan else 'asked'}{about}{by_stores}")
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
    # Apart from those with errors, because each store is to be counted once.
    clean = [result for result in results.done if exit_code_of(result) == 0]
    new = [r for r in clean if r.asked or any(r.types[s] for s in ("added", "changed", "removed"))]
    parts = [f"{plural(len(new), 'store')} {'planned' if is_plan else 'generated'}"]
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
