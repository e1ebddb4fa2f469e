"""The places that commands work on: stores, whose units are types, and files that a kind claims.

What differs between the two stands here, under the same names; no command knows which it has.
"""

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.cli import output
from pytest_regen.cli.github import OutdatedUnits
from pytest_regen.cli.output import Advice, say
from pytest_regen.cli.project import Project
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.errors import (
    KindError,
    StaleStoreError,
    StoreWriteError,
    UnknownTypeError,
    UsageError,
)
from pytest_regen.modes import StalePolicy, split_provider, stale_outcome
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration import fixable, pages_at_fault, targets
from pytest_regen.regeneration import regenerate as types_work
from pytest_regen.regeneration import restore as edits
from pytest_regen.regeneration.costs import AskSize, page_size
from pytest_regen.regeneration.prompt_faults import SPELLING_ADVICE
from pytest_regen.regeneration.queue import Flow
from pytest_regen.regeneration.store_place import StoreView, keeps_template, model_for
from pytest_regen.regeneration.values import TurnSettings
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.stores import history as store_history
from pytest_regen.text import plural, shorten
from pytest_regen.turns.models import tokens_for
from pytest_regen.units import naming
from pytest_regen.units import work as units_work
from pytest_regen.validation import stale_types
from pytest_regen.validation import stores as checks
from pytest_regen.validation.edits import broken_file
from pytest_regen.validation.issues import Issue, ValidationResult, without_ignored
from pytest_regen.validation.pieces import split
from pytest_regen.validation.stores import from_errors_command

if TYPE_CHECKING:
    from pytest_regen.units.place import UnitFile
    from pytest_regen.units.view import FileUnits

_ALIKE: Final = 8
"""Units that are listed with the same words before the other ones are counted."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a command asks for, and what may replace what."""

    turns: TurnOptions
    verb: str
    """``generate``: what is missing or stale; ``regenerate``: whatever is named."""
    names: Sequence[str] | None = None
    """Types or units; ``None`` for all."""
    pages: Sequence[int] | None = None
    """Of the one type that is named."""
    correction: str | None = None
    from_errors: bool = False
    accept_any: bool = False
    discard_edits: bool = False
    ignore_stale: bool = False
    force: bool = False
    check: bool = False
    of_several: bool = False
    """Whether several places are asked, so that each need not have all that is named."""
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be asked of a place."""

    rows: Sequence[tuple[str, int]]
    """What is asked, with about how many tokens its request takes."""
    sizes: Sequence[AskSize]
    summary: str
    style: str = ""
    stale: Sequence[str] = ()
    faults: Sequence[Issue] = ()
    """Why it cannot be said."""
    following: Advice | None = None
    code: int = 0
    report: Mapping[str, Any] = field(default_factory=dict)


Line = tuple[str, str] | tuple[str]
"""What ``say`` takes."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a place."""

    report: Mapping[str, Any]
    source: str
    """The file that lines are counted in."""
    issues: Sequence[Issue]
    lines: Sequence[Line]
    following: Advice | None
    code: int
    by_type: Mapping[str, ValidationResult] | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What was adopted, rebuilt, restored or forgotten."""

    report: Mapping[str, Any]
    diff: str = ""
    facts: Sequence[tuple[str, str] | tuple[str, str, str]] = ()
    issues: Sequence[Issue] = ()
    lines: Sequence[Line] = ()
    following: Advice | None = None
    source: str = ""
    """The file that lines of the issues are counted in, where that is not the place."""

    @property
    def code(self) -> int:
        """1 where something is wrong with what was kept."""
        return int(any(issue.severity == "error" for issue in self.issues))


class _Here:
    """What places have in common."""

    noun: str
    group: str
    option: str
    here: str

    def command(self, verb: str, name: str | None = None, *options: str) -> str:
        """Return a command about the place, or about one of its units."""
        words = [] if name is None else [f"--{self.option}", name]
        return naming.command(verb, self.here, None, *words, *options)

    @property
    def tests(self) -> str:
        """The command that runs its tests."""
        return naming.tests_command(self.here)


class StoreHere(_Here):
    """A store, as commands name it."""

    noun, group, option = "store", "stores", "type"

    def __init__(self, project: Project, path: Path) -> None:
        self.path = path
        self.here = self.place = path.as_posix()
        self._ignore = project.ignored_in

    def open(self, request: Request) -> tuple[RegenStore, list[PromptEntry]]:
        """Read the store; return it with the prompts to execute first.

        Raises:
            UsageError: unknown types or pages, or ``--page`` without one ``--type``.
        """
        store, types, pages = RegenStore.open(self.path), request.names, request.pages
        if pages and (types is None or len(types) != 1):
            raise UsageError(
                f"--page {pages[0]} does not say of which type",
                why="a page belongs to one type",
                hint=f"name it with --type, one of: {', '.join(store.type_names)}",
            )
        names = list(store.type_names)
        if types is not None:
            names = []
            for word in types:
                # Of several stores each has some of the types; one that has none says so.
                with suppress(*[UnknownTypeError] if request.of_several else []):
                    names.append(store.resolve_type(word))
            names = names or [store.resolve_type(types[0])]
        numbers = {name: pages for name in names if pages}
        chosen: Mapping[str, Iterable[int]] = targets(store, names, numbers)
        if request.from_errors:
            view = StoreView(store, self._ignore(self.path))
            chosen = {
                name: pages_at_fault(view.correctable(name), len(store.prompts_of(name)))
                for name in names
            }
        return store, [
            entry for entry in store.prompts if entry.page in chosen.get(entry.type_name, ())
        ]

    def stale(self, store: RegenStore, asked: Sequence[PromptEntry]) -> list[str]:
        """Return those of the types to be asked whose prompts are older than the document."""
        names = {entry.type_name for entry in asked}
        return [name for name in stale_types(store) if name in names]

    def plan(self, request: Request) -> Plan:
        """Return what would be asked."""
        turns = request.turns
        store, asked = self.open(request)
        tokens = {
            entry: 0 if turns.writes(store, entry.type_name) else turns.estimate(entry)
            for entry in asked
        }
        sizes = [
            turns.size(page_size(entry, model, store.ir, store.envelope.profile))
            for entry in asked
            if tokens[entry]
            for model in (model_for(store, entry, None),)
        ]
        width = max((len(entry.type_name) for entry in asked), default=0)
        pages = {entry: f"page {entry.page} of {entry.total_pages}" for entry in asked}
        stale = self.stale(store, asked)
        to_do = "ask" if any(tokens.values()) or not asked else "write"
        listed = [
            {**entry.key._asdict(), "estimated_input_tokens": count}
            for entry, count in tokens.items()
        ]
        return Plan(
            [
                (f"{entry.type_name:<{width}}  {pages[entry]:<12}", count)
                for entry, count in tokens.items()
            ],
            sizes,
            f"{self.path}: {plural(len(asked), 'page')} to {to_do}; nothing written",
            stale=stale,
            report={"path": self.here, "stale": stale, "pages": listed},
        )

    def everything(self, request: Request) -> str:
        """Return what is asked again where nothing is named; tells what that costs."""
        plan = self.plan(request)
        tokens = sum(count for _, count in plan.rows)
        if output.is_terminal():
            request.turns.show_cost(request.turns.estimate_all(plan.sizes))
        about = f", about {tokens:,} tokens of input" if tokens else " by the template"
        return f"{plural(len(plan.rows), 'page')} of {self.path}{about}"

    def refuse(self, request: Request) -> bool:
        """Ask whether to go on with prompts made for another version of the document.

        Raises:
            StaleStoreError: there is no terminal to ask, or the answer is no.
        """
        store, asked = self.open(request)
        stale = [] if request.ignore_stale else self.stale(store, asked)
        if not stale:
            return True
        names = f"{plural(len(stale), 'type')}: {shorten(stale)}"
        if output.is_terminal() and not request.of_several:
            say(f"warning: made for another version of the document: {names}", "yellow")
            if output.confirm("Regenerate from the old prompts all the same?"):
                return True
        raise StaleStoreError(
            f"{store.path} is stale, {names}",
            why="the stored prompts were made from another IR than the document gives now",
            hint="update the store with pytest-regen generate, or go on with --ignore-stale",
        )

    def steps(self, request: Request, settings: TurnSettings) -> Flow[Any]:
        """Ask for its types."""
        if request.of_several:
            self.refuse(request)
        store, asked = self.open(request)
        # Before an edit is put back for the first page.
        if settings.ready and not all(keeps_template(store, entry, settings) for entry in asked):
            settings.ready()
        names = list(dict.fromkeys(entry.type_name for entry in asked))
        options: dict[str, Any] = {
            "settings": settings,
            "attempts": request.turns.replies(),
            "accept_any": request.accept_any,
            "discard_edits": request.discard_edits,
            "ignore": self._ignore(self.path),
        }
        if request.from_errors:
            named = None if request.names is None else names
            return (yield from types_work.heal_steps(self.path, type_names=named, **options))
        notes = {name: [request.correction] for name in names} if request.correction else None
        pages = {names[0]: request.pages} if request.pages else None
        return (yield from types_work.regenerate_steps(self.path, names, pages, notes, **options))

    def left(self, result: Any, request: Request) -> Sequence[Issue]:
        """Return what is wrong with what was asked for."""
        found: ValidationResult = result.validation
        return found.issues

    def report(self, result: Any) -> dict[str, Any]:
        """Return what JSON has of a result of a store alone."""
        return {
            "source_path": result.source_path.as_posix(),
            "regenerated": [{"type_name": name, "page": page} for name, page in result.regenerated],
            "prompt_faults": [fault.to_json() for fault in result.prompt_faults],
            "model_used": result.model_used,
        }

    def tell(self, result: Any, issues: Sequence[Issue], turns: TurnOptions) -> str:
        """Tell what was asked of a store; return what that took."""
        for name, page in result.regenerated:
            output.fact("regenerated", f"{name} page {page}", "green")
        for entry in result.rejected:
            output.fact("rejected", f"it was no better, and is kept in history/{entry}.json")
        tell_ended(result)
        tell_issues(issues, str(result.source_path))
        if result.calls or result.stop_reasons or result.skipped or result.failures:
            spent = turns.spent(result.calls, result.usage, by_template=result.by_template)
            return f"{result.source_path}: {spent}"
        return f"{result.source_path}: no errors, nothing to ask"

    def following(
        self, result: Any, issues: Sequence[Issue], code: int, turns: TurnOptions
    ) -> Advice:
        """Return what to do next, about errors that remain if there are any."""
        store = shlex.quote(str(result.source_path.parent))
        if not code:
            return Advice(f"pytest {store}")
        reasons = set(result.stop_reasons.values())
        if result.prompt_faults:
            return Advice(SPELLING_ADVICE)
        if "unfixable" in reasons:
            return Advice("correct the document, then pytest-regen generate on it")
        # A reply cannot help where only an edit is left, or the file around the blocks.
        mendable = fixable(result.validation)
        drifted = {issue.type_name for issue in issues if issue.code == "DRIFT"}
        if result.skipped and drifted:
            if any(issue.type_name in drifted for issue in mendable):
                return Advice(f"pytest-regen rebuild {store}", output.DROPS_EDIT)
            return Advice(f"pytest-regen adopt {store}", output.KEEPS_EDIT)
        if result.skipped or not mendable:
            return Advice(f"pytest-regen validate {store}", "it says what to do about each")
        again = from_errors_command(RegenStore.open(result.source_path.parent))
        is_stuck, provider = "no_progress" in reasons, split_provider(turns.provider)
        if turns.provider and not turns.by_template and not (provider and is_stuck):
            again += f" --provider {turns.provider}"
        if not is_stuck:
            return Advice(again)
        other = f"--provider {provider[0]}:NAME" if provider else "--model NAME"
        return Advice(again, f"another model may do better: add {other}")

    def verdict(self, stale: StalePolicy, *, writes: bool) -> Verdict:
        """Return what is wrong with its types; the summary in ir.json is written anew."""
        store, ignore = RegenStore.open(self.path), self._ignore(self.path)
        results = checks.validate_store(store, ignore=ignore)
        if writes:
            try:
                types_work.write_summary(store, results)
            except StoreWriteError as error:
                # What was found does not depend on it.
                where = store.path / "ir.json"
                say(f"note: the summary in {where} was not updated: {error.why}")
        behaviour = None
        if checks.wants_behaviour(store, ignore):
            behaviour = checks.behaviour_of_store(store)
        not_run = behaviour.why_not if behaviour else ""
        old = _stale_names(results)
        failing = sum(found.has_errors for found in results.values())
        is_ok = not failing and not (stale_outcome(stale) == "fail" and old)
        shown = without_ignored(results, ["STALE"] if stale == "ignore" else ())
        roots = {type_.name for type_ in store.ir.types if type_.is_root}
        following = self._advice(store, results, stale)
        lines = [self._summary(results, 0 if stale == "ignore" else len(old), failing, stale)]
        if note := checks.format_note(store):
            lines.append((f"note: {note}",))
        # What most machines lack is no news; JSON has it all the same.
        if not_run and not (behaviour and behaviour.is_expected):
            lines.append((f"behaviour: not run: {not_run}",))
        report = {
            "path": self.here,
            "source": store.source_path.as_posix(),
            "ok": is_ok,
            "not_run": not_run or None,
            "types": [
                {"name": name, "is_root": name in roots, **_issues_json(found)}
                for name, found in results.items()
            ],
        }
        issues = [issue for found in shown.values() for issue in found.issues]
        source = store.source_path.as_posix()
        return Verdict(report, source, issues, lines, following, int(not is_ok), shown)

    def _summary(
        self, results: Mapping[str, ValidationResult], old: int, failing: int, stale: StalePolicy
    ) -> Line:
        types = plural(len(results), "type")
        if failing:
            verb = "has" if failing == 1 else "have"
            return (f"{self.path}: {failing} of {types} {verb} errors",)
        older = f"{old} {'is' if old == 1 else 'are'} older than the document"
        if old and stale_outcome(stale) == "fail":
            return (f"{self.path}: {types}, no errors, but {older}",)
        note = f"; {older}{', which fails in CI' if stale == 'auto' else ''}" if old else ""
        return f"{self.path}: {types}, no errors{note}", "green"

    def _advice(
        self, store: RegenStore, results: Mapping[str, ValidationResult], stale: StalePolicy
    ) -> Advice | None:
        """Return the command to run next; an edit is kept or dropped, not regenerated."""
        failing = {name: found for name, found in results.items() if found.has_errors}
        is_old = stale != "ignore" and bool(_stale_names(results))
        if is_old and (not failing or stale_outcome(stale) == "fail"):
            # The prompts of a stale type are the old ones: it is updated before it is regenerated.
            return Advice(checks.update_command(store))
        if not failing:
            return None
        codes = {issue.code for found in failing.values() for issue in found.errors}
        edited = [
            name
            for name, found in failing.items()
            if any(issue.code == "DRIFT" for issue in found.errors)
        ]
        if any(fixable(found) for name, found in failing.items() if name not in edited):
            return Advice(from_errors_command(store))
        types = [word for name in edited for word in ("--type", name)]
        is_whole = not broken_file(store, split(store.source, store.envelope.language))
        if codes == {"DRIFT"} and is_whole:
            return Advice(self.command("adopt", None, *types), output.KEEPS_EDIT)
        if edited:
            return Advice(self.command("rebuild", None, *types), output.DROPS_EDIT)
        if codes & {"EDITED_PROMPT", "UNFIXABLE"}:
            return Advice(checks.update_command(store))
        if "CONFLICT" in codes:
            return Advice(self.command("rebuild"), "it writes the source from its pages")
        return Advice("correct the file as the lines above say")

    def past(self, names: Sequence[str] | None) -> Sequence[Any]:
        """Return what was replaced or rejected, oldest first."""
        store = RegenStore.open(self.path)
        return store_history(self.path, store.resolve_type(names[0]) if names else None)

    def past_cells(self, text: Any) -> Sequence[str]:
        """Return the row of an entry of the history."""
        page = f"page {text.page} of {text.total_pages}"
        attempt = f"attempt {text.attempt}"
        return text.id, text.reason, text.type_name, page, attempt, text.model

    def restore(self, name: str, page: int | None, to: str | None) -> Kept:
        """Make outputs from the history the stored ones."""
        taken = edits.restore_outputs(self.path, name, page=page, to=to)
        pages = [{"type_name": p.type_name, "page": p.page, "model": p.model} for p in taken.pages]
        facts = [
            ("restored", f"{p.type_name} page {p.page}, written by {p.model}") for p in taken.pages
        ]
        report = {"restored": pages, "diff": taken.diff}
        return Kept(report, taken.diff, facts, following=Advice(self.tests))

    def adopt(self, names: Sequence[str] | None, *, with_stale: bool) -> Kept:
        """Make what was edited by hand the stored outputs."""
        if with_stale:
            raise UsageError(
                f"--stale is about files with units, and {self.path} is a store",
                why="a type that is stale has new prompts",
                hint=f"pytest-regen generate, as {self.command('validate')} says",
            )
        taken = edits.adopt_edits(self.path, names)
        types, store = {page.type_name for page in taken.pages}, RegenStore.open(self.path)
        ignore = self._ignore(self.path)
        # Adopted errors are stored now, and must not be taken for clean: the gate will say so.
        left = checks.validate_store(store, types=sorted(types), ignore=ignore) if types else {}
        issues = [issue for found in left.values() for issue in found.issues]
        is_failing = any(issue.severity == "error" for issue in issues)
        report = {
            "adopted": [{"type_name": p.type_name, "page": p.page} for p in taken.pages],
            "errors": [issue.to_json() for issue in issues if issue.severity == "error"],
            "diff": taken.diff,
        }
        return Kept(
            report,
            taken.diff,
            [("adopted", f"{page.type_name} page {page.page}") for page in taken.pages],
            issues,
            [] if taken.pages else [(f"{self.path}: no type was edited by hand",)],
            Advice(from_errors_command(store) if is_failing else self.tests),
            store.source_path.as_posix(),
        )

    def rebuild(self, names: Sequence[str] | None) -> Kept:
        """Write the source from its stored pages; edits go to the history."""
        result = edits.rebuild_source(self.path, names)
        joined = (Path(self.path, name).as_posix() for name in result.joined)
        kept = (Path(self.path, "history", name).as_posix() for name in result.history)
        is_idle = not (result.type_names or result.joined)
        report = {
            "rebuilt": result.type_names,
            "joined": result.joined,
            "history": result.history,
            "diff": result.diff,
        }
        return Kept(
            report,
            result.diff,
            [
                *(("joined", f"both versions of {name}") for name in joined),
                *(("rebuilt", name) for name in result.type_names),
                *(("kept", f"{name}, what was there before") for name in kept),
            ],
            lines=[(f"{self.path}: the source is what its pages make",)] if is_idle else [],
            following=Advice(self.tests),
        )


class FileHere(_Here):
    """A file with units, as commands name it."""

    noun, group, option = "file", "files", "unit"

    def __init__(self, file: "UnitFile") -> None:
        self.file = file
        self.path = file.path
        self.here, self.place = file.here, file.place

    def open(self, request: Request) -> tuple["FileUnits", list[str]]:
        """Read the file; return it with the units to ask for.

        Raises:
            UsageError: a name is that of no unit.
        """
        from pytest_regen.units.asking import needs_answer

        view = self.file.open()
        refuse_unknown_units(view, request.names)
        names = list(names_of(view) if request.names is None else request.names)
        if request.verb == "generate" and not request.force:
            names = [name for name in names if needs_answer(view, name)]
        if request.from_errors:
            names = [name for name in names if view.score(name).errors]
        return view, names

    def plan(self, request: Request) -> Plan:
        """Return what would be asked."""
        view, names = self.open(request)
        faults = view.file_issues or ((view.fault,) if view.fault else ())
        turns = request.turns
        sizes = {name: turns.size(size) for name, size in self.file.sizes(view, names, None)}
        tokens = {name: tokens_for(size.input_tokens, size.model) for name, size in sizes.items()}
        width = max(map(len, names), default=0)
        listed = [
            {"name": name, "estimated_input_tokens": count, "prompt": view.prompt(name)}
            for name, count in tokens.items()
        ]
        summary, style, todo = f"{self.here}: up to date", "green", naming.tests_command(self.here)
        if names:
            count = plural(len(names), "unit")
            summary, style = f"{self.here}: {count} to ask for; nothing written", "yellow"
            todo = naming.generate_command(self.here) if request.check else ""
        following = unit_advice(view, faults) if faults else Advice(todo) if todo else None
        return Plan(
            [(f"{name:<{width}}", count) for name, count in tokens.items()],
            list(sizes.values()),
            summary,
            style,
            faults=faults,
            following=following,
            code=int(bool(faults) or (request.check and bool(names))),
            report={
                "path": self.here,
                "ok": not (names or faults),
                "system": view.system if names else self.file.kind.system,
                "asked": listed,
                "errors": [issue.to_json() for issue in faults],
            },
        )

    def everything(self, request: Request) -> str:
        """Return what is asked again where nothing is named."""
        return f"{plural(len(self.open(request)[1]), 'unit')} of {self.here}"

    def refuse(self, request: Request) -> bool:
        """Return True: what a file asks for is made from what stands there now."""
        return True

    def steps(self, request: Request, settings: TurnSettings) -> Flow[Any]:
        """Ask for its units."""
        from pytest_regen.units import asking

        _, names = self.open(request)
        if settings.ready and names:
            settings.ready()
        options: dict[str, Any] = {"settings": settings, "attempts": request.turns.replies()}
        if request.verb == "generate":
            asked = asking.generate_steps(self.file, request.names, force=request.force, **options)
            return (yield from asked)
        options |= {"accept_any": request.accept_any, "discard_edits": request.discard_edits}
        if request.from_errors:
            return (yield from asking.heal_steps(self.file, names, **options))
        notes = [request.correction] if request.correction else ()
        return (yield from asking.regenerate_steps(self.file, names, corrections=notes, **options))

    def left(self, result: Any, request: Request) -> Sequence[Issue]:
        """Return what is wrong with what was asked for."""
        view = result.units
        names = self.asked(result, request)
        return [*view.file_issues, *(issue for name in names for issue in view.issues(name))]

    def asked(self, result: Any, request: Request) -> Sequence[str]:
        """Return the units that a result is about."""
        if request.from_errors and request.names is None:
            return [item.name for item in result.results]
        names: Sequence[str] = request.names or result.units.names
        return names

    def report(self, result: Any) -> dict[str, Any]:
        """Return what JSON has of a result of a file alone."""
        return {"path": self.here, "regenerated": list(result.regenerated)}

    def tell(self, result: Any, issues: Sequence[Issue], turns: TurnOptions) -> str:
        """Tell what was asked of a file; return what that took."""
        if result.regenerated:
            count = plural(len(result.regenerated), "unit")
            output.fact("written", f"{count}: {shorten(result.regenerated)}", "green")
        if rejected := sum(len(item.rejected) for item in result.results):
            output.fact("rejected", f"{plural(rejected, 'text')}, kept in .regen/history")
        tell_ended(result)
        tell_issues(issues, self.here)
        if result.calls or result.results:
            return f"{self.here}: {output.usage_line(result.calls, result.usage)}"
        return "" if result.units.file_issues else f"{self.here}: nothing to ask"

    def following(
        self, result: Any, issues: Sequence[Issue], code: int, turns: TurnOptions
    ) -> Advice | None:
        """Return what to do next, about errors that remain if there are any."""
        if code:
            return unit_advice(result.units, issues)
        names = [item.name for item in result.results] or result.units.names
        return Advice(tests_of(result.units, names))

    def verdict(self, stale: StalePolicy, *, writes: bool) -> Verdict:
        """Return what is wrong with its units."""
        view = self.file.open()
        results = {name: ValidationResult(view.issues(name)) for name in names_of(view)}
        ignored = {"STALE"} if stale == "ignore" else set[str]()
        failing = [name for name, found in results.items() if _fails(found, stale)]
        codes = {issue.code for name in failing for issue in results[name].issues}
        is_ok = not failing and not file_errors(view)
        units = [issue for found in results.values() for issue in found.issues]
        shown = [issue for issue in units if issue.code not in ignored]
        issues = [*view.file_issues, *shown, *view.orphans]
        total, lines = plural(len(results), "unit"), list[Line]()
        if failing:
            verb = "fails" if len(failing) == 1 else "fail"
            lines.append((f"{self.here}: {len(failing)} of {total} {verb}",))
        elif is_ok:
            lines.append((f"{self.here}: {total}, no errors", "green"))
        report = {
            "path": self.here,
            "ok": is_ok,
            "errors": [issue.to_json() for issue in view.file_issues],
            "units": [{"name": name, **_issues_json(found)} for name, found in results.items()],
            "orphans": [issue.to_json() for issue in view.orphans],
        }
        code = 2 if "KIND_ERROR" in codes else int(not is_ok)
        return Verdict(report, self.here, issues, lines, unit_advice(view, issues), code)

    def past(self, names: Sequence[str] | None) -> Sequence[Any]:
        """Return what was replaced or rejected, oldest first."""
        texts = units_work.unit_history(self.file)
        gone = {text.entry.name for text in texts}
        refuse_unknown_units(self.file.open(), [n for n in names or () if n not in gone])
        return [text for text in texts if not names or text.entry.name in names]

    def past_cells(self, text: Any) -> Sequence[str]:
        """Return the row of an entry of the history."""
        entry = text.entry
        return text.id, text.reason, entry.name, f"attempt {entry.attempt}", entry.model

    def restore(self, name: str, page: int | None, to: str | None) -> Kept:
        """Make a past text of one unit the recorded one."""
        past, changes = units_work.restore_unit(self.file, name, to)
        model = past.entry.model
        restored = [{"name": past.entry.name, "model": model}]
        report = {"restored": restored, "history": changes.history, "diff": changes.diff}
        facts = [("restored", f"{past.entry.name}, written by {model}")]
        following = Advice(tests_of(self.file.open(), [name]))
        return Kept(report, changes.diff, facts, following=following)

    def adopt(self, names: Sequence[str] | None, *, with_stale: bool = False) -> Kept:
        """Record texts as they stand."""
        changes = units_work.adopt_units(self.file, names, with_stale=with_stale)
        view = self.file.open()
        issues = [i for n in changes.names for i in view.issues(n) if i.severity == "error"]
        report = {
            "adopted": [{"name": name} for name in changes.names],
            "errors": [issue.to_json() for issue in issues],
        }
        lines: list[Line] = [(f"{self.here}: every text is recorded as it stands",)]
        if changes.names:
            facts = [("adopted", f"{plural(len(changes.names), 'unit')}: {shorten(changes.names)}")]
            entries = (view.entry(name) for name in changes.names)
            models = Counter(entry.model for entry in entries if entry and not entry.is_by_hand)
            them = {model: "it" if number == 1 else "them" for model, number in models.items()}
            lines = [
                (f"    {plural(number, 'text')} as {model} wrote {them[model]}",)
                for model, number in models.items()
            ]
            lines += only_read(view, changes.names)
            following = unit_advice(view, issues) or Advice(tests_of(view, changes.names))
            return Kept(report, "", facts, issues, lines, following)
        stale = _stale_names({n: ValidationResult(view.issues(n)) for n in names_of(view)})
        if names is not None or not stale:
            return Kept(report, lines=lines, following=Advice(self.tests))
        right = "STALE; to say that they are right as they are:"
        lines.append((f"  {shorten(stale)}: {right}", "yellow"))
        return Kept(report, lines=lines, following=Advice(self.command("adopt", None, "--stale")))

    def rebuild(self, names: Sequence[str] | None) -> Kept:
        """Put recorded texts back; 1 where git or the ledger leaves a choice."""
        changes = units_work.rebuild_units(self.file, names)
        view = self.file.open()
        units = [issue for name in names or view.names for issue in view.issues(name)]
        issues = [i for i in (*view.file_issues, *units) if i.code in {"CONFLICT", "LEDGER"}]
        report = {
            "rebuilt": changes.names,
            "history": changes.history,
            "by_hand": changes.by_hand,
            "diff": changes.diff,
            "errors": [issue.to_json() for issue in issues],
        }
        facts = _changes("rebuilt", changes)
        if changes.by_hand:
            left = f"{plural(changes.by_hand, 'text')} by hand, which only the file has"
            facts.append(("left", left))
        if issues:
            return Kept(report, changes.diff, facts, issues, following=unit_advice(view, issues))
        idle: Line = (f"{self.here}: every recorded text stands as it is recorded",)
        following = Advice(tests_of(view, names or changes.names))
        lines = [] if changes.diff else [idle]
        return Kept(report, changes.diff, facts, lines=lines, following=following)

    def forget(self, names: Sequence[str] | None, *, is_lost: bool) -> Kept:
        """Drop what nothing asks for any more."""
        changes = units_work.forget_units(self.file, names)
        report = {
            "forgotten": changes.names,
            "dropped": changes.dropped,
            "history": changes.history,
            "notes": changes.notes,
            "diff": changes.diff,
        }
        dropped = [("dropped", f"{name}, which could not be read") for name in changes.dropped]
        is_idle = not (changes.names or changes.dropped)
        idle: Line = (f"{shlex.quote(self.here)}: everything in it is asked for",)
        todo = "pytest" if is_lost else tests_of(self.file.open(), changes.names)
        facts = [*dropped, *_changes("forgotten", changes)]
        lines = [idle] if is_idle else []
        return Kept(report, changes.diff, facts, lines=lines, following=Advice(todo))


PlaceHere = StoreHere | FileHere


def places_at(
    project: Project, paths: Sequence[Path], units: Sequence[str] | None = None
) -> tuple[list[PlaceHere], bool]:
    """Return the places at or below paths, and whether several are meant.

    Raises:
        UsageError: a path is none, or units are named and no file with units is.
    """
    path = paths[0]
    is_folder = path.is_dir() and not is_store(path)
    several = len(paths) > 1 or (
        is_folder and (any(path.glob("*/pages.json")) or bool(project.unit_files([path])))
    )
    if several:
        files = project.unit_files(paths)
        stores = dict.fromkeys(stores_in(project, paths, files))
        return [*(StoreHere(project, store) for store in stores), *map(FileHere, files)], True
    file = project.unit_file(path, units)
    return [FileHere(file) if file else StoreHere(project, path)], False


def stores_in(
    project: Project, dirs: Iterable[Path] | None, files: "Sequence[UnitFile]"
) -> list[Path]:
    """Return the stores named, and those in folders named; by default those of the project.

    Args:
        project: around the working directory.
        dirs: as they were named.
        files: the files with units among them, which are no stores.
    """
    if not dirs:
        has_kinds = any(not claim.is_installed for claim in project.kinds.kinds)
        return list(project.stores()) if project.store_globs or not (files or has_kinds) else []
    stores: list[Path] = []
    for path in dirs:
        real = Path(os.path.normpath(Path.cwd() / path))
        if any(file.path == real for file in files):
            continue
        inner = [] if is_store(path) else sorted(file.parent for file in path.glob("*/pages.json"))
        has_units = any(file.path.is_relative_to(real) for file in files)
        # A folder that holds neither is opened as a store, which says what is wrong with it.
        stores += inner or ([] if has_units else [path])
    return stores


def place_at(
    project: Project, path: Path, units: Sequence[str] | None, **of_types: object
) -> PlaceHere:
    """Return the place at a path; options about types are refused where it has none."""
    file = project.unit_file(path, units)
    if file is None:
        return StoreHere(project, path)
    refuse_types(file, **of_types)
    return FileHere(file)


def tell_unmarked(project: Project) -> None:
    """Say which kinds have no unit yet."""
    from pytest_regen.units.inventory import unmarked_kinds

    for what in unmarked_kinds(project.kinds):
        say(what, "yellow")
    output.next_step("pytest-regen init")


def outdated_units(places: Iterable[FileHere], request: Request) -> OutdatedUnits:
    """Return the units of files that are missing or stale, and how many files have none."""
    outdated: list[tuple[str, str, str]] = []
    current = 0
    for place in places:
        view, names = place.open(replace(request, force=False))
        current += not names
        for name in names:
            is_missing = any(issue.code == "MISSING_UNIT" for issue in view.all_issues(name))
            why = "it was never written" if is_missing else "its inputs have changed"
            outdated.append((naming.unit_id(place.here, name), place.here, why))
    return outdated, current


def names_of(view: "FileUnits") -> tuple[str, ...]:
    """Return the names of a file's units.

    Raises:
        KindError: the kind cannot say; the traceback is shown.
    """
    try:
        return view.names
    except KindError as error:
        for line in (error.trace or "").splitlines():
            say(f"  {line}")
        raise


def refuse_unknown_units(view: "FileUnits", names: Sequence[str] | None) -> None:
    """Refuse a name that no unit has, before anything else is wanted, such as a key.

    Raises:
        UsageError: it is not there; near ones are named.
    """
    for name in names or ():
        units_work.refuse_unknown(view, name, {*names_of(view), *view.texts, *view.ledger.entries})


def refuse_types(file: "UnitFile", **options: object) -> None:
    """Refuse options that are about types of a store."""
    for name, value in options.items():
        if value:
            raise UsageError(
                f"{file.here} has units, and no {name}",
                why=f"a kind claims the file ({file.kind.title}), so it is no API description",
                hint="name units with --unit, or none for all",
            )


def tests_of(view: "FileUnits", names: Iterable[str]) -> str:
    """Return the command that tests units: all tests, if of one its own item runs nothing."""
    texts = [name for name in names if name in view.texts]
    return "pytest" if any(map(view.is_only_read, texts)) else naming.tests_command(view.here)


def only_read(view: "FileUnits", names: Sequence[str]) -> list[Line]:
    """Return of which functions pytest runs nothing, and what changes that, in words."""
    names = [name for name in names if view.is_only_read(name)]
    if not names:
        return []
    verb, them = ("has", "it") if len(names) == 1 else ("have", "them")
    mark = f'@pytest.mark.regen(unit="{naming.unit_id(view.place, names[0])}")'
    what = f"{shorten(names)} {verb} no example in the docstring: pytest only reads {them}"
    more = f"    to have {them} run, add an example (>>>), or mark a test with {mark}"
    return [(what, "yellow"), (more,)]


def _changes(verb: str, changes: Any) -> list[tuple[str, str] | tuple[str, str, str]]:
    names, texts = changes.names, plural(len(changes.history), "text")
    facts: list[tuple[str, str] | tuple[str, str, str]] = []
    facts += [(verb, f"{plural(len(names), 'unit')}: {shorten(names)}")] if names else []
    facts += [("kept", f"{texts} in .regen/history")] if changes.history else []
    return [*facts, *(("to do", note, "yellow") for note in changes.notes)]


def _stale_names(results: Mapping[str, ValidationResult]) -> list[str]:
    return [n for n, found in results.items() if any(i.code == "STALE" for i in found.issues)]


def _issues_json(result: ValidationResult) -> dict[str, Any]:
    return {
        "errors": [issue.to_json() for issue in result.errors],
        "warnings": [issue.to_json() for issue in result.warnings],
    }


def _fails(result: ValidationResult, stale: StalePolicy) -> bool:
    # A person's text that is stale is only told of: no model wrote it from something else.
    is_stale = any(issue.code == "STALE" and not issue.is_by_hand for issue in result.issues)
    return result.has_errors or (is_stale and stale_outcome(stale) == "fail")


def tell_ended(result: Any) -> None:
    """Tell which units could not be asked for, and why answers were not kept."""
    for name, why in result.skipped.items():
        output.fact("skipped", f"{name}: {why}", "yellow")
    faults = getattr(result, "prompt_faults", ())
    output.show_prompt_faults(faults)
    explained = {name for fault in faults for name in fault.types}
    output.show_stopped(
        item
        for item in result.results
        if item.stop_reason != "unfixable" or item.name not in explained
    )


def tell_issues(issues: Iterable[Issue], place: str) -> None:
    """List issues, one line each; what many units have in common is counted after a few."""
    counts: dict[tuple[str, str], int] = {}
    for issue in sorted(issues, key=lambda issue: (issue.severity, issue.line or 0)):
        key = issue.code, issue.message
        counts[key] = counts.get(key, 0) + 1
        if counts[key] > _ALIKE:
            continue
        at = Path(place).with_name(issue.file).as_posix() if issue.file else place
        where = f"{at}:{issue.line}" if issue.line else at
        is_error = issue.severity == "error"
        name = f"{issue.type_name or ''}{f' page {issue.page}' if issue.page else ''}"
        words = ["" if is_error else "warning:", name, f"[{issue.code}]", issue.message]
        say(" ".join([f"{where}:", *filter(None, words)]), "red" if is_error else "yellow")
        for line in (issue.detail or "").splitlines():
            say(f"    {line}")
    for (code, message), count in counts.items():
        if count > _ALIKE:
            say(f"{place}: {count - _ALIKE:,} more [{code}] {message}")


def unit_advice(view: "FileUnits", issues: Sequence[Issue]) -> Advice | None:
    """Return the command that does the most about what is wrong; ``None`` if an editor does."""
    codes, here = {"BY_HAND" if issue.is_by_hand else issue.code for issue in issues}, view.here
    rebuild, adopt = naming.rebuild_command(here), naming.adopt_command(here)
    if "CONFLICT" in codes:
        return Advice(rebuild, "or correct the file in an editor")
    if view.fault is not None or "KIND_ERROR" in codes or file_errors(view):
        return None  # The lines above say what to do.
    unplaced = {issue.type_name or "" for issue in issues if issue.code == "MISSING_UNIT"}
    if unplaced and not any(map(view.has_place, unplaced)):
        codes.discard("MISSING_UNIT")  # Asking helps only after an editor did.
    if fixable(ValidationResult(tuple(issues))):
        codes.add("")
    generate = Advice(naming.generate_command(here))
    records = "the next command records texts as they stand"
    commands = {
        "DRIFT": Advice(adopt, f"{output.KEEPS_EDIT}; to drop it: {rebuild}"),
        "LEDGER": Advice(adopt, records),
        "MISSING_UNIT": generate,
        "STALE": generate,
        "BY_HAND": Advice(naming.adopt_command(here, None, "--stale"), records),
        "": Advice(naming.command("regenerate", here, None, "--from-errors")),
        "UNRECORDED": Advice(adopt, records),
        "ORPHAN": Advice(naming.forget_command(here)),
    }
    return next((advice for code, advice in commands.items() if code in codes), None)


def file_errors(view: "FileUnits") -> list[Issue]:
    """Return what is wrong with a file, and with what its ledger has and nobody asks for."""
    return [*view.file_issues, *(issue for issue in view.orphans if issue.severity == "error")]
