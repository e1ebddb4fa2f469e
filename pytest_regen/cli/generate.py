"""``generate``: stores from an API description, or the missing units of a file."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from pytest_regen.cli.diff import changes_json, show_changes
from pytest_regen.cli.output import (
    AsJson,
    Attempts,
    BudgetTokens,
    CassetteOption,
    DryRun,
    EngineChoice,
    EngineOption,
    InOrder,
    Jobs,
    ModelOption,
    ProviderName,
    RecordChoice,
    RecordOption,
    UnitNames,
    describe_failure,
    emit_json,
    fact,
    fail,
    hold_back,
    money_json,
    next_step,
    say,
    shorten,
    show_failures,
    show_issues,
    show_prompt_faults,
)
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.selection import (
    PLAIN_REQUEST,
    PLAIN_VALUES,
    UNREADABLE,
    PartSelection,
    Skipped,
    select_parts,
)
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents import Document, Operation, Part, read_document
from pytest_regen.documents.changes import direction_of
from pytest_regen.errors import (
    DocumentDefectError,
    NothingToGenerateError,
    RegenError,
    StoreError,
    UsageError,
)
from pytest_regen.languages import DEFAULT_LANGUAGE
from pytest_regen.regeneration import GenerateResult, Sharing, generate_stores
from pytest_regen.regeneration.costs import AskSize, Estimate
from pytest_regen.regeneration.prompt_faults import SPELLING_ADVICE
from pytest_regen.stores import RegenStore
from pytest_regen.text import plural
from pytest_regen.turns.values import Usage
from pytest_regen.validation.stores import from_errors_command

if TYPE_CHECKING:
    from pytest_regen.units.place import UnitFile

__all__ = ["generate"]


def generate(
    spec: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="OpenAPI or Swagger document, JSON or YAML; or a file with units, or a folder.",
        ),
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="OPERATION",
            help='Method and path, for example "GET /v1/projects"; with --schemas, names of '
            "schemas; after a file with units, more of them.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder that holds a folder per operation.")
    ] = Path("generated"),
    every: Annotated[
        bool, typer.Option("--all", help="Every operation with a JSON response.")
    ] = False,
    tag: Annotated[str | None, typer.Option("--tag", help="Every operation with this tag.")] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="PATTERN",
            help='With --all or --tag: operations to leave out, such as "GET /internal/*" or '
            '"/admin/*"; may be repeated.',
        ),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", help="Target language.")
    ] = DEFAULT_LANGUAGE,
    schemas: Annotated[
        bool,
        typer.Option(
            "--schemas", help="The schemas with names, or those that are named, as one store."
        ),
    ] = False,
    request: Annotated[
        bool, typer.Option("--request", help="Read what operations take, not what they answer.")
    ] = False,
    status: Annotated[
        str | None, typer.Option("--status", help="Response to read, exactly.")
    ] = None,
    fields_per_page: Annotated[
        int | None, typer.Option("--fields-per-page", min=1, help="Instead of a token target.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", help="Namespace of the source.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="Profile of the language.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Ask every page again.")] = False,
    discard_edits: Annotated[
        bool, typer.Option("--discard-edits", help="Rebuild changed types edited by hand.")
    ] = False,
    allow_defects: Annotated[
        bool,
        typer.Option("--allow-defects", help="Generate what can be read of a broken document."),
    ] = False,
    model: ModelOption = None,
    attempts: Attempts = None,
    jobs: Jobs = 1,
    budget: BudgetTokens = None,
    cassette: CassetteOption = None,
    record: RecordOption = RecordChoice.NONE,
    provider: ProviderName = None,
    engine: EngineOption = EngineChoice.LIVE,
    check: Annotated[
        bool, typer.Option("--check", help="Only say what would be asked; exit 1 if anything.")
    ] = False,
    units: UnitNames = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Generate the types of an operation's response, or update those that are there.

    Of a file that a kind claims, ask for the units that are missing or stale.
    """
    project = Project.here()
    turns = TurnOptions(project, model, attempts, budget, jobs, cassette, record, provider, engine)
    if files := _unit_files(project, spec, names or (), units):
        from pytest_regen.cli.units import generate_file, generate_files, refuse_types

        refuse_types(
            files[0],
            operation=names if len(files) == 1 else None,
            all=every,
            tag=tag,
            exclude=exclude,
            schemas=schemas,
            request=request,
        )
        options = {"force": force, "check": check, "dry_run": dry_run, "as_json": as_json}
        if len(files) == 1:
            code = generate_file(files[0], units, turns, **options)
        else:
            code = generate_files(files, turns, **options)
        raise typer.Exit(code)
    _refuse_unclaimed(project, spec, names_operations=bool(names or tag or every or schemas))
    document = read_document(spec)
    many = every or tag is not None
    selection = select_parts(
        document,
        names or (),
        every=every,
        tag=tag,
        exclude=exclude or (),
        status=status,
        schemas=schemas,
        request=request,
    )
    work = _Work(
        project,
        document,
        selection,
        out,
        {
            "language": language,
            "status": status,
            "fields_per_page": fields_per_page,
            "namespace": namespace,
            "profile": profile,
            "force": force,
            "allow_defects": allow_defects,
        },
    )
    if check:
        words = ["--all"] if every else ["--tag", tag] if tag else list(names or ())
        words += [*["--schemas"] * schemas, *["--request"] * request]
        words += [word for pattern in exclude or () for word in ("--exclude", pattern)]
        words += ["--allow-defects"] if allow_defects else []
        words += ["--out", str(out)]
        other = language if language != DEFAULT_LANGUAGE else None
        kept = {"--status": status, "--language": other, "--profile": profile}
        kept |= {"--namespace": namespace, "--provider": turns.provider}
        kept |= {"--engine": engine.value if turns.is_batch else None}
        words += [word for option, value in kept.items() if value for word in (option, value)]
        again = shlex.join(["pytest-regen", "generate", str(spec), *words])
        results = work.each(
            {"dry_run": True},
            goes_on=many,
            show=None if as_json else lambda result: _show_check(result, turns),
            describe=(lambda result: _check_json(result, turns)) if as_json else None,
        )
        _check(results, turns, many=many, again=again, as_json=as_json)
    if dry_run:
        results = work.each(
            {"dry_run": True},
            goes_on=many,
            show=None if as_json else lambda result: _show_plan(result, turns),
            describe=(lambda result: _plan_json(result, turns)) if as_json else None,
        )
        cost = None
    else:
        last: list[GenerateResult] = []
        with turns.run("generating", as_json=as_json) as (progress, settings):
            results = work.each(
                {
                    "settings": settings,
                    "attempts": turns.replies(),
                    "discard_edits": discard_edits,
                },
                goes_on=many,
                # The only one is told of below, after the progress.
                show=None
                if as_json
                else (lambda result: _show(result, namespace, turns, cost=None))
                if many
                else last.append,
                describe=_result_json if as_json else None,
            )
        cost = progress.cost
        for result in last:
            _show(result, namespace, turns, cost=cost)
    if as_json:
        of_all = results.estimate(turns).to_json(turns.price_of)
        report = {"stores": results.reports, **results.others} if many else results.report
        emit_json({**report, **({"estimate": of_all} if dry_run else money_json(cost))})
    else:
        _show_uncollected(project, results)
    if many:
        _show_sum(results, turns, dry_run=dry_run, cost=cost)
    raise typer.Exit(results.exit_code)


def _unit_files(
    project: Project, path: Path, others: Sequence[str], units: Sequence[str] | None
) -> "list[UnitFile]":
    """Return the files with units that are named, or lie in a folder; none for a document.

    Raises:
        UsageError: a unit is named, and not of which file.
    """
    named = [path, *map(Path, others)]
    if not path.is_dir() and (file := project.unit_file(path, units)) is not None:
        found = project.unit_files(named) if others else [file]
    else:
        found = project.unit_files(named) if path.is_dir() else []
    if units and len(found) > 1:
        raise UsageError(
            f"--unit {units[0]} does not say of which file",
            hint="name one file, or leave the option out",
        )
    return found


def _check(
    results: "_Results", turns: TurnOptions, *, many: bool, again: str, as_json: bool
) -> NoReturn:
    """Say which stores are older than the document, and end the command."""
    codes = [int(not result.is_current) for result in results.done]
    code = max([*codes, *(error.exit_code for _, error in results.failed)], default=0)
    if as_json:
        sums = {"estimate": results.estimate(turns).to_json(turns.price_of)}
        emit_json({"stores": results.reports, **results.others, **sums} if many else results.report)
        raise typer.Exit(code)
    if many:
        old = sum(not result.is_current and not result.is_new for result in results.done)
        new = sum(result.is_new for result in results.done)
        parts = [f"{plural(len(results.done) - old - new, 'store')} up to date"]
        parts += [f"{old} older than the document"] if old else []
        parts += [f"{plural(new, 'operation')} without a store"] if new else []
        parts += [f"{len(results.failed)} impossible"] if results.failed else []
        say(", ".join(parts))
        _show_cost(results.estimate(turns), turns)
    if any(codes):
        next_step(again)
    raise typer.Exit(code)


def _show_check(result: GenerateResult, turns: TurnOptions) -> None:
    if result.note:
        say(f"note: {result.note}")
    if result.is_current:
        say(f"{result.path}: up to date", "green")
        return
    for name in () if result.is_new else ("added", "changed", "removed"):
        types = getattr(result, name)
        if types:
            fact(name, f"{plural(len(types), 'type')}: {shorten(types)}")
    show_changes(result.changes, direction_of(result.ir))
    _show_pages(result, turns)
    pages = f"{plural(len(result.asked), 'page')} to {'write' if turns.by_template else 'ask'}"
    _show_cost(_estimate(result.sizes, turns), turns)
    why = "there is no store yet" if result.is_new else "older than the document"
    say(f"{result.path}: {why}, {pages}; nothing written", "yellow")


def _estimate(sizes: Iterable[AskSize], turns: TurnOptions) -> Estimate:
    """Return what the pages take that are to be asked; the template writes pages for nothing."""
    if turns.by_template:
        return Estimate()
    return Estimate(map(turns.size, sizes))


def _show_cost(estimate: Estimate, turns: TurnOptions) -> None:
    """Tell about what pages take that are to be asked, where there are any."""
    if estimate.pages:
        fact("cost", estimate.words(turns.price_of, is_batch=turns.is_batch))


def _check_json(result: GenerateResult, turns: TurnOptions) -> dict[str, Any]:
    return {
        "path": result.path.as_posix(),
        "ok": result.is_current,
        "is_new": result.is_new,
        **(
            {"added": [], "changed": [], "removed": [], "changes": [], "asked": []}
            if result.is_current
            else {
                "added": list(result.added),
                "changed": list(result.changed),
                "removed": list(result.removed),
                "changes": changes_json(result.changes, direction_of(result.ir)),
                "asked": [key._asdict() for key in result.asked],
            }
        ),
        "note": result.note,
        "estimate": _estimate(result.sizes, turns).to_json(turns.price_of),
    }


@dataclass(frozen=True, slots=True)
class _Done:
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
    def of(cls, number: int, result: GenerateResult, report: dict[str, Any] | None) -> "_Done":
        """Return what is kept of a result."""
        return cls(
            number,
            result.path,
            _exit_code(result),
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
class _Results:
    """What came of each operation."""

    done: Sequence[_Done]
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
    def reports(self) -> list[dict[str, Any]]:
        """The stores as JSON."""
        return [done.report for done in self.done if done.report is not None]

    @property
    def report(self) -> dict[str, Any]:
        """The only store as JSON."""
        return self.reports[0]

    def estimate(self, turns: TurnOptions) -> Estimate:
        """Return what the pages of all stores take that are to be asked."""
        return _estimate((size for done in self.done for size in done.sizes), turns)

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
class _Work:
    """What is to be generated, and how."""

    project: Project
    document: Document
    selection: PartSelection
    out: Path
    options: dict[str, Any]

    def each(
        self,
        options: dict[str, Any],
        *,
        goes_on: bool,
        show: Callable[[GenerateResult], None] | None,
        describe: Callable[[GenerateResult], dict[str, Any]] | None,
    ) -> _Results:
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
        done: list[_Done] = []
        numbers = {str(operation): number for number, operation in enumerate(operations, 1)}
        early: list[tuple[int, tuple[str, RegenError] | Skipped]] = []
        with InOrder() as told:
            for name, result in self._generate(options, goes_on=goes_on):
                number = numbers[name]
                with hold_back() as lines:
                    if isinstance(result, GenerateResult):
                        report = describe(result) if describe else None
                        done.append(_Done.of(number, result, report))
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
        return _Results(done, failed, skipped, self.selection.excluded, rest)

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


def _exit_code(result: GenerateResult) -> int:
    if result.failures:
        return max(failure.exit_code for failure in result.failures)
    return int(any(found.has_errors for found in result.validation.values()))


def _others_json(result: GenerateResult) -> dict[str, Any]:
    shared = [{**key._asdict(), "from": folder} for key, folder in result.shared.items()]
    skipped = [{"schema": name, "reason": f"it is {what}"} for name, what in result.skipped.items()]
    return {
        **({"shared": shared} if shared else {}),
        **({"skipped": skipped} if skipped else {}),
    }


def _plan_json(result: GenerateResult, turns: TurnOptions) -> dict[str, Any]:
    return {
        "ir": result.ir.to_json(),
        "prompts": [
            {**entry.to_json(), "estimated_input_tokens": turns.estimate(entry)}
            for entry in result.prompts
        ],
        **_others_json(result),
        "defects": [defect.to_json() for defect in result.defects],
        "estimate": _estimate(result.sizes, turns).to_json(turns.price_of),
    }


def _result_json(result: GenerateResult) -> dict[str, Any]:
    return {
        "path": result.path.as_posix(),
        "ok": _exit_code(result) == 0,
        "added": list(result.added),
        "changed": list(result.changed),
        "removed": list(result.removed),
        "kept": list(result.kept),
        "asked": [key._asdict() for key in result.asked],
        **_others_json(result),
        "calls": result.calls,
        "tokens": result.usage.total_tokens,
        "stop_reasons": dict(result.stop_reasons),
        "prompt_faults": [fault.to_json() for fault in result.prompt_faults],
        "failures": [describe_failure(failure) for failure in result.failures],
        "errors": [i.to_json() for found in result.validation.values() for i in found.errors],
        "defects": [defect.to_json() for defect in result.defects],
    }


def _show_plan(result: GenerateResult, turns: TurnOptions) -> None:
    tokens = _show_pages(result, turns)
    _show_defects(result)
    pages = plural(len(result.asked), "page")
    planned = f"{pages} to ask, about {tokens:,} tokens of input"
    if turns.by_template:
        planned = f"{pages} to write by the template, no model to ask"
    _show_skipped(result)
    _show_shared(result)
    _show_cost(_estimate(result.sizes, turns), turns)
    say(f"{result.path}: {planned}; nothing written")


def _show_defects(result: GenerateResult) -> None:
    for defect in result.defects:
        is_error = defect.severity == "error"
        text = f"error: {defect}" if is_error else str(defect)
        fact("document", text, "red" if is_error else "yellow")


def _show_pages(result: GenerateResult, turns: TurnOptions) -> int:
    """List the pages to ask or write; return about how many tokens of input they take."""
    asked = set(result.asked)
    waiting = [entry for entry in result.prompts if entry.key in asked]
    width = max((len(entry.type_name) for entry in waiting), default=0)
    tokens = 0
    for entry in waiting:
        estimate = turns.estimate(entry)
        tokens += estimate
        page = f"page {entry.page} of {entry.total_pages}"
        fields = plural(len(entry.fields), "field")
        about = "" if turns.by_template else f", about {estimate:,} tokens"
        say(f"  {entry.type_name:<{width}}  {page:<12}  {fields:>9}{about}")
    return tokens


def _show(
    result: GenerateResult, namespace: str | None, turns: TurnOptions, *, cost: Decimal | None
) -> None:
    for name in ("added", "changed", "removed", "kept"):
        types = getattr(result, name)
        if types:
            fact(name, f"{plural(len(types), 'type')}: {shorten(types)}")
    _show_skipped(result)
    _show_shared(result)
    source = result.path / result.source_file
    if namespace and source.is_file() and not _header_has(source, namespace):
        fact(
            "header",
            f"it stays as it is, for it is yours: change the namespace to {namespace} there",
        )
    show_issues(result.validation, str(source))
    show_prompt_faults(result.prompt_faults)
    say(f"{source}: {turns.spent(result.calls, result.usage, cost)}")
    if result.failures:
        stored = "what was finished is stored: the same command again asks only for the rest"
        say(stored if result.is_stored else f"nothing was written to {result.path}")
        show_failures(result.failures)
    elif any(found.has_errors for found in result.validation.values()):
        again = from_errors_command(RegenStore.open(result.path))
        next_step(SPELLING_ADVICE if result.prompt_faults else again)


def _show_skipped(result: GenerateResult) -> None:
    """Tell which schemas are read where they are used, and have no type by themselves."""
    if result.skipped:
        names = [f"{name} ({what})" for name, what in result.skipped.items()]
        fact("skipped", f"{plural(len(names), 'schema')} without a type: {shorten(names)}")


def _show_shared(result: GenerateResult) -> None:
    """Tell which pages cost nothing, because another store has them."""
    if result.shared:
        folders = sorted(set(result.shared.values()))
        fact("shared", f"{plural(len(result.shared), 'page')} with {shorten(folders)}")


def _show_uncollected(project: Project, results: _Results) -> None:
    """Say what is missing in the settings for pytest to collect the stores made."""
    stored = (done.path for done in results.done if done.is_stored)
    missing = next(filter(None, map(project.missing_line, stored)), "")
    if missing:
        say(f"pytest does not collect it yet: add {missing}")


def _header_has(source: Path, word: str) -> bool:
    """Return whether what stands above the first boundary line holds a word."""
    return word in source.read_text("utf-8").partition(":BEGIN ")[0]


def _show_sum(
    results: _Results, turns: TurnOptions, *, dry_run: bool, cost: Decimal | None
) -> None:
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
        _show_cost(estimate, turns)
    if calls := sum(done.calls for done in results.done):
        usage = sum((done.usage for done in results.done), Usage())
        fact("spent", turns.spent(calls, usage, cost))
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


def _refuse_unclaimed(project: Project, path: Path, *, names_operations: bool) -> None:
    """Refuse a path without an operation where it may be meant for a kind.

    Raises:
        UsageError: the project has kinds, and none claims the path.
    """
    if project.kinds and not names_operations:
        raise UsageError(
            f"no kind claims {short_path(path)}",
            why="the kinds of the project claim " + ", ".join(project.kinds.globs),
            hint="name one file of these; of an API description, name an operation as well, "
            "--tag or --all",
        )
