"""``regenerate``: types or pages of a store, or units of a file, asked for again."""

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pytest_regen.cli.output import (
    DROPS_EDIT,
    KEEPS_EDIT,
    Advice,
    AsJson,
    Attempts,
    BudgetTokens,
    CassetteOption,
    DryRun,
    EngineChoice,
    EngineOption,
    Jobs,
    KeepPending,
    ModelOption,
    ProviderName,
    RecordChoice,
    RecordOption,
    UnitNames,
    confirm,
    describe_failure,
    emit_json,
    fact,
    is_terminal,
    money_json,
    next_step,
    say,
    show_diff,
    show_failures,
    show_issues,
    show_pending,
    show_prompt_faults,
    show_stopped,
)
from pytest_regen.cli.project import Project
from pytest_regen.cli.several import Outcome, Task, run_tasks
from pytest_regen.cli.stores import stores_in
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.errors import (
    RegenError,
    StaleStoreError,
    StoreError,
    UnknownTypeError,
    UsageError,
)
from pytest_regen.modes import split_provider
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration import (
    PartialRegenResult,
    TurnSettings,
    fixable,
    pages_at_fault,
)
from pytest_regen.regeneration.costs import Estimate, page_size
from pytest_regen.regeneration.prompt_faults import SPELLING_ADVICE
from pytest_regen.regeneration.queue import Flow, drive_flow
from pytest_regen.regeneration.regenerate import heal_steps, regenerate_steps
from pytest_regen.regeneration.store_pages import keeps_template, model_for
from pytest_regen.regeneration.store_view import StoreView
from pytest_regen.regeneration.verbs import targets
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.text import plural, shorten
from pytest_regen.turns import Budget
from pytest_regen.turns.values import Usage
from pytest_regen.validation import stale_types
from pytest_regen.validation.issues import Ignore
from pytest_regen.validation.stores import from_errors_command

if TYPE_CHECKING:
    from pytest_regen.units.place import UnitFile


def regenerate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Stores, files with units, or folders of them: one or several."
        ),
    ],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="Type to regenerate, all by default; may be repeated."),
    ] = None,
    pages: Annotated[
        list[int] | None,
        typer.Option("--page", help="Page of the one type named; may be repeated."),
    ] = None,
    from_errors: Annotated[
        bool, typer.Option("--from-errors", help="Only what has errors, validated afresh.")
    ] = False,
    correction: Annotated[
        str | None, typer.Option("--correction", help="What was wrong, in your words.")
    ] = None,
    model: ModelOption = None,
    attempts: Attempts = None,
    jobs: Jobs = 1,
    budget: BudgetTokens = None,
    cassette: CassetteOption = None,
    record: RecordOption = RecordChoice.NONE,
    provider: ProviderName = None,
    engine: EngineOption = EngineChoice.LIVE,
    accept_any: Annotated[
        bool, typer.Option("--accept-any", help="Keep new outputs even if they are worse.")
    ] = False,
    discard_edits: Annotated[
        bool, typer.Option("--discard-edits", help="Replace blocks edited by hand.")
    ] = False,
    pending: KeepPending = False,
    ignore_stale: Annotated[
        bool, typer.Option("--ignore-stale", help="Go on where the document has moved on.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    units: UnitNames = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Regenerate types or pages of stores from their stored prompts, or units of files."""
    project = Project.here()
    _refuse_writing(pending=pending, discard_edits=discard_edits)
    path = paths[0]
    turns = TurnOptions(
        project,
        model,
        attempts,
        budget,
        jobs,
        cassette,
        record,
        provider,
        engine,
        pending=f"pytest-regen regenerate {shlex.join(map(str, paths))}" if pending else "",
        corrects=bool(correction),
    )
    again = _Several(
        turns,
        types,
        correction=correction,
        from_errors=from_errors,
        accept_any=accept_any,
        discard_edits=discard_edits,
        ignore_stale=ignore_stale,
        as_json=as_json,
    )
    if len(paths) > 1 or _holds_several(project, path):
        _refuse_of_one(page=pages, unit=units)
        raise typer.Exit(again.regenerate(paths, yes=yes, dry_run=dry_run))
    if file := project.unit_file(path, units):
        from pytest_regen.cli.units import refuse_types, regenerate_file

        refuse_types(file, type=types, page=pages)
        code = regenerate_file(
            file,
            units,
            turns,
            from_errors=from_errors,
            correction=correction,
            accept_any=accept_any,
            discard_edits=discard_edits,
            yes=yes,
            dry_run=dry_run,
            as_json=as_json,
        )
        raise typer.Exit(code)
    ignore = project.ignored_in(path)
    store = RegenStore.open(path)
    asked = _asked(store, types, pages, ignore if from_errors else None)
    stale = _stale(store, asked)
    if dry_run:
        _show_plan(store, asked, stale, turns, as_json=as_json)
        return
    if stale and not ignore_stale:
        _confirm_stale(store, stale)
    if types is None and not from_errors and not yes:
        _confirm_everything(store, asked, turns)
    steps = replace(again, ignore_stale=True).steps
    with turns.run("regenerating", as_json=as_json) as (_, settings):
        result = drive_flow(steps(path, settings, pages), settings)
    if as_json:
        emit_json(_report(result))
    else:
        _show(result, turns)
    raise typer.Exit(_exit_code(result))


def _refuse_writing(*, pending: bool, discard_edits: bool) -> None:
    if pending and discard_edits:
        raise UsageError(
            "--pending and --discard-edits contradict each other",
            why="an edit would be dropped at once, and what replaces it would wait",
            hint="pytest-regen rebuild drops the edit; then the same command without the option",
        )


def _holds_several(project: Project, path: Path) -> bool:
    """Return whether a path is a folder of stores, or of files with units."""
    if not path.is_dir() or is_store(path):
        return False
    return any(path.glob("*/pages.json")) or bool(project.unit_files([path]))


def _refuse_of_one(**options: object) -> None:
    """Refuse options that are about one store or file."""
    for name, value in options.items():
        if value:
            raise UsageError(
                f"--{name} does not say of which place",
                why="several stores or files are named",
                hint="name one of them, or leave the option out",
            )


@dataclass(frozen=True, slots=True)
class _Several:
    """Types of several stores and units of several files asked for again."""

    turns: TurnOptions
    types: list[str] | None
    _: KW_ONLY
    correction: str | None
    from_errors: bool
    accept_any: bool
    discard_edits: bool
    ignore_stale: bool
    as_json: bool

    def regenerate(self, paths: list[Path], *, yes: bool, dry_run: bool) -> int:
        """Ask again; return the exit code."""
        project = self.turns.project
        files = project.unit_files(paths)
        stores = self._with_types(list(dict.fromkeys(stores_in(project, paths, files))))
        if dry_run:
            return self._plan(stores, files)
        if self.types is None and not self.from_errors and not yes:
            self._confirm(stores, files)
        budget = Budget(self.turns.budget)
        outcomes: list[Outcome] = []
        usage = Usage()
        groups = ("store", [self._task(path) for path in stores]), ("file", self._file_tasks(files))
        for noun, tasks in groups:
            if not tasks or any(outcome.not_started for outcome in outcomes):
                continue
            with self.turns.run("regenerating", of_types=noun == "store", as_json=self.as_json) as (
                progress,
                settings,
            ):
                outcome = run_tasks(tasks, replace(settings, budget=budget), noun)
            outcomes.append(outcome)
            usage += progress.state.usage
            if not self.as_json:
                outcome.show(progress.state)
        if self.as_json:
            found = {outcome.noun: outcome for outcome in outcomes}
            emit_json(
                {
                    "stores": found["store"].in_order if "store" in found else [],
                    **({"files": found["file"].in_order} if "file" in found else {}),
                    "failures": [each for outcome in outcomes for each in outcome.failures],
                    **money_json(usage),
                }
            )
        return max(outcome.exit_code for outcome in outcomes)

    def _with_types(self, paths: list[Path]) -> list[Path]:
        """Return the stores that have one of the types named; one that is unreadable may have it.

        Raises:
            UnknownTypeError: a type is in none of those that can be read.
        """
        if self.types is None:
            return paths
        found: list[Path] = []
        lacks: dict[str, UnknownTypeError] = {}
        known: set[str] = set()
        for path in paths:
            try:
                store = RegenStore.open(path)
            except RegenError:
                found.append(path)  # Its turn tells why it cannot be read.
                continue
            for name in self.types:
                try:
                    store.resolve_type(name)
                except UnknownTypeError as error:
                    lacks.setdefault(name, error)
                else:
                    known.add(name)
                    found.append(path)
        for name in self.types:
            if name in lacks and name not in known:
                raise lacks[name]
        return list(dict.fromkeys(found))

    def _names(self, store: RegenStore) -> list[str] | None:
        """Return those of the types named that a store has; ``None`` for all.

        Raises:
            UnknownTypeError: it has none of them.
        """
        if self.types is None:
            return None
        known = []
        for name in self.types:
            with suppress(UnknownTypeError):
                known.append(store.resolve_type(name))
        return known or [store.resolve_type(self.types[0])]

    def steps(
        self, path: Path, settings: TurnSettings, pages: list[int] | None = None
    ) -> Flow[PartialRegenResult]:
        """Ask again for types of a store, or pages of the one type named."""
        ignore = self.turns.project.ignored_in(path)
        store = RegenStore.open(path)
        names = self._names(store)
        asked = _asked(store, names, pages, ignore if self.from_errors else None)
        stale = _stale(store, asked)
        if stale and not self.ignore_stale:
            raise _stale_error(store, stale)
        # Before an edit is put back for the first page.
        if settings.ready and not all(keeps_template(store, entry, settings) for entry in asked):
            settings.ready()
        options: dict[str, Any] = {
            "settings": settings,
            "attempts": self.turns.replies(),
            "accept_any": self.accept_any,
            "discard_edits": self.discard_edits,
            "ignore": ignore,
        }
        if self.from_errors:
            return (yield from heal_steps(path, type_names=names, **options))
        chosen = list(dict.fromkeys(entry.type_name for entry in asked))
        notes = {name: [self.correction] for name in chosen} if self.correction else None
        named = {chosen[0]: pages} if pages else None
        return (yield from regenerate_steps(path, chosen, named, notes, **options))

    def _task(self, path: Path) -> Task:
        def finish(result: PartialRegenResult, emit: Callable[[Any], None]) -> int:
            emit(_report(result)) if self.as_json else _show(result, self.turns)
            return _exit_code(result)

        return Task(path.as_posix(), partial(self.steps, path), finish)

    def _file_tasks(self, files: "Sequence[UnitFile]") -> list[Task]:
        if not files:
            return []
        from pytest_regen.cli.units import refuse_types, regenerate_task

        refuse_types(files[0], type=self.types)
        return [
            regenerate_task(
                file,
                self.turns,
                from_errors=self.from_errors,
                correction=self.correction,
                accept_any=self.accept_any,
                discard_edits=self.discard_edits,
                as_json=self.as_json,
            )
            for file in files
        ]

    def _plan(self, paths: list[Path], files: "Sequence[UnitFile]") -> int:
        """Say what would be asked; return the exit code. An unreadable store leaves the others."""
        stores: list[Any] = []
        failed = Outcome("store", len(paths))
        total = Estimate(self.turns.price_of)
        for path in paths:
            try:
                store = RegenStore.open(path)
                ignore = self.turns.project.ignored_in(path) if self.from_errors else None
                asked = _asked(store, self._names(store), None, ignore)
                stale = _stale(store, asked)
            except StoreError as error:
                failed.fail(path.as_posix(), error)
                continue
            _show_plan(
                store,
                asked,
                stale,
                self.turns,
                as_json=self.as_json,
                emit=stores.append,
                total=total,
            )
        plans: list[Any] = []
        if files:
            from pytest_regen.cli.units import plan_regeneration

            plans = plan_regeneration(
                files, self.turns, total, from_errors=self.from_errors, as_json=self.as_json
            )
        if self.as_json:
            emit_json(
                {
                    "stores": stores,
                    **({"files": plans} if files else {}),
                    **({"failures": failed.failures} if failed.failed else {}),
                    "estimate": total.to_json(),
                }
            )
        elif total.pages:
            say(total.sum_words(is_batch=self.turns.is_batch))
        return max((error.exit_code for _, error in failed.failed), default=0)

    def _confirm(self, paths: list[Path], files: "Sequence[UnitFile]") -> None:
        """Ask whether all types and units are meant.

        Raises:
            UsageError: there is no terminal to ask.
        """
        pages = sum(len(RegenStore.open(path).prompts) for path in paths)
        parts = [f"{plural(pages, 'page')} of {plural(len(paths), 'store')}"] if paths else []
        parts += [f"all units of {plural(len(files), 'file')}"] if files else []
        what = "all " + " and ".join(parts) if paths else parts[0]
        if not is_terminal():
            raise UsageError(
                f"regenerating {what} was not confirmed",
                why="no --type was named, which means every type",
                hint="add --yes, or name types with --type, or --from-errors",
            )
        if not confirm(f"Regenerate {what}?"):
            raise typer.Exit(0)


def _asked(
    store: RegenStore,
    types: list[str] | None,
    pages: list[int] | None,
    errors_except: Ignore | None,
) -> list[PromptEntry]:
    """Return the prompts to execute first: what was named, or what has errors.

    Args:
        store: as it is now.
        types: declared names or those of schemas; ``None`` for all.
        pages: of the one type named.
        errors_except: codes that do not count as errors; ``None`` asks for all that was named.

    Raises:
        UsageError: unknown types or pages, or ``--page`` without one ``--type``.
    """
    if pages and (types is None or len(types) != 1):
        raise UsageError(
            f"--page {pages[0]} does not say of which type",
            why="a page belongs to one type",
            hint=f"name it with --type, one of: {', '.join(store.type_names)}",
        )
    if errors_except is None:
        named = {types[0]: pages} if types and pages else types
        chosen = targets(StoreView(store), named)
    else:
        view = StoreView(store, errors_except)
        wanted = {store.resolve_type(name) for name in types} if types else set(store.type_names)
        chosen = {
            name: {
                page: list(notes)
                for page, notes in pages_at_fault(
                    view.correctable(name), len(store.prompts_of(name))
                ).items()
            }
            for name in store.type_names
            if name in wanted
        }
    return [entry for entry in store.prompts if entry.page in chosen.get(entry.type_name, {})]


def _stale(store: RegenStore, asked: list[PromptEntry]) -> list[str]:
    """Return those of the types to be asked whose prompts are older than the document."""
    named = {entry.type_name for entry in asked}
    return [name for name in stale_types(store) if name in named]


def _confirm_stale(store: RegenStore, stale: list[str]) -> None:
    """Ask whether to go on with prompts made for another version of the document.

    Raises:
        StaleStoreError: there is no terminal to ask, or the answer is no.
    """
    if is_terminal():
        names_stale = f"{plural(len(stale), 'type')}: {shorten(stale)}"
        say(f"warning: made for another version of the document: {names_stale}", "yellow")
        if confirm("Regenerate from the old prompts all the same?"):
            return
    raise _stale_error(store, stale)


def _stale_error(store: RegenStore, stale: list[str]) -> StaleStoreError:
    return StaleStoreError(
        f"{store.path} is stale, {plural(len(stale), 'type')}: {shorten(stale)}",
        why="the stored prompts were made from another IR than the document gives now",
        hint="update the store with pytest-regen generate, or go on with --ignore-stale",
    )


def _confirm_everything(store: RegenStore, asked: list[PromptEntry], turns: TurnOptions) -> None:
    tokens = sum(_tokens(store, entry, turns) for entry in asked)
    what = f"all {plural(len(asked), 'page')} of {store.path}"
    what += f", about {tokens:,} tokens of input" if tokens else " by the template"
    if is_terminal():
        turns.show_cost(_estimate(store, asked, turns))
        if confirm(f"Regenerate {what}?"):
            return
        raise typer.Exit(0)
    raise UsageError(
        f"regenerating {what} was not confirmed",
        why="no --type was named, which means every type",
        hint="add --yes, or name types with --type, or --from-errors",
    )


def _tokens(store: RegenStore, entry: PromptEntry, turns: TurnOptions) -> int:
    """Return about how many tokens a request for a page takes; the template takes none."""
    return 0 if turns.writes(store, entry.type_name) else turns.estimate(entry)


def _estimate(
    store: RegenStore,
    asked: list[PromptEntry],
    turns: TurnOptions,
    total: Estimate | None = None,
) -> Estimate:
    """Return what the pages take."""
    ir, profile = store.ir, store.envelope.profile
    sizes = (
        page_size(entry, model_for(store, entry, None), ir, profile)
        for entry in asked
        if not turns.writes(store, entry.type_name)
    )
    return turns.estimate_all(sizes, of=total)


def _show_plan(
    store: RegenStore,
    asked: list[PromptEntry],
    stale: list[str],
    turns: TurnOptions,
    *,
    as_json: bool,
    emit: Callable[[Any], None] = emit_json,
    total: Estimate | None = None,
) -> None:
    estimate = _estimate(store, asked, turns, total)
    if as_json:
        emit(
            {
                "path": store.path.as_posix(),
                "stale": stale,
                "pages": [
                    {
                        **entry.key._asdict(),
                        "estimated_input_tokens": _tokens(store, entry, turns),
                    }
                    for entry in asked
                ],
                "estimate": estimate.to_json(),
            }
        )
        return
    width = max((len(entry.type_name) for entry in asked), default=0)
    tokens = {entry: _tokens(store, entry, turns) for entry in asked}
    for entry, count in tokens.items():
        page = f"page {entry.page} of {entry.total_pages}"
        about = f"about {count:,} tokens" if count else ""
        say(f"  {entry.type_name:<{width}}  {page:<12}  {about}".rstrip())
    if stale:
        fact("stale", f"{plural(len(stale), 'type')}: {shorten(stale)}", "yellow")
    turns.show_cost(estimate)
    to_do = "ask" if any(tokens.values()) or not asked else "write"
    say(f"{store.path}: {plural(len(asked), 'page')} to {to_do}; nothing written")


def _report(result: PartialRegenResult) -> dict[str, Any]:
    return {
        "source_path": result.source_path.as_posix(),
        "ok": _exit_code(result) == 0,
        "regenerated": [{"type_name": name, "page": page} for name, page in result.regenerated],
        "rejected": list(result.rejected),
        "stop_reasons": dict(result.stop_reasons),
        "prompt_faults": [fault.to_json() for fault in result.prompt_faults],
        "skipped": dict(result.skipped),
        "model_used": result.model_used,
        "calls": result.calls,
        "tokens": result.usage.total_tokens,
        **money_json(result.usage),
        "errors": [issue.to_json() for issue in result.validation.errors],
        "warnings": [issue.to_json() for issue in result.validation.warnings],
        "failures": [describe_failure(failure) for failure in result.failures],
        "diff": result.diff,
        **({"pending": dict(result.pending)} if result.pending else {}),
    }


def _show(result: PartialRegenResult, turns: TurnOptions) -> None:
    show_diff(result.diff)
    for name, page in result.regenerated:
        fact("regenerated", f"{name} page {page}", "green")
    for entry in result.rejected:
        fact("rejected", f"it was no better, and is kept in history/{entry}.json")
    for name, why in result.skipped.items():
        fact("skipped", f"{name}: {why}", "yellow")
    show_prompt_faults(result.prompt_faults)
    explained = {name for fault in result.prompt_faults for name in fault.types}
    show_stopped(
        one for one in result.results if one.stop_reason != "unfixable" or one.name not in explained
    )
    show_issues({"": result.validation}, str(result.source_path))
    if result.calls or result.stop_reasons or result.skipped or result.failures:
        spent = turns.spent(result.calls, result.usage, by_template=result.by_template)
        say(f"{result.source_path}: {spent}")
    else:
        say(f"{result.source_path}: no errors, nothing to ask", "green")
    show_failures(result.failures)
    show_pending(result.pending)
    if not (result.failures or result.pending):
        next_step(*_advice(result, turns))


def _advice(result: PartialRegenResult, turns: TurnOptions) -> Advice:
    """Return what to do next, about errors that remain if there are any."""
    store = shlex.quote(str(result.source_path.parent))
    if not _exit_code(result):
        return Advice(f"pytest {store}")
    reasons = set(result.stop_reasons.values())
    if result.prompt_faults:
        return Advice(SPELLING_ADVICE)
    if "unfixable" in reasons:
        return Advice("correct the document, then pytest-regen generate on it")
    # A reply cannot help where only an edit is left, or the file around the blocks.
    drifted = {issue.type_name for issue in result.validation.errors if issue.code == "DRIFT"}
    if result.skipped and drifted:
        has_errors = any(issue.type_name in drifted for issue in fixable(result.validation))
        if has_errors:
            return Advice(f"pytest-regen rebuild {store}", DROPS_EDIT)
        return Advice(f"pytest-regen adopt {store}", KEEPS_EDIT)
    if result.skipped or not fixable(result.validation):
        return Advice(f"pytest-regen validate {store}", "it says what to do about each")
    again = from_errors_command(RegenStore.open(result.source_path.parent))
    is_stuck, named = "no_progress" in reasons, split_provider(turns.provider)
    if turns.provider and not turns.by_template and not (named and is_stuck):
        again += f" --provider {turns.provider}"
    if not is_stuck:
        return Advice(again)
    other = f"--provider {named[0]}:NAME" if named else "--model NAME"
    return Advice(again, f"another model may do better: add {other}")


def _exit_code(result: PartialRegenResult) -> int:
    if result.failures:
        return max(failure.exit_code for failure in result.failures)
    if result.skipped:
        return 2
    return int(result.validation.has_errors)
