"""The places that commands work on: stores, whose units are types, and files that a kind claims.

What differs between the two stands here, under the same names; no command knows which it has.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.cli import output
from pytest_regen.cli.output import say
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.errors import (
    KindError,
    StaleStoreError,
    StoreWriteError,
    UnknownTypeError,
    UsageError,
)
from pytest_regen.github import Finding, Outdated
from pytest_regen.modes import StalePolicy, split_provider, stale_outcome
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration import pages_at_fault, verbs
from pytest_regen.regeneration.costs import AskSize
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.regeneration.prompt_faults import SPELLING_ADVICE
from pytest_regen.regeneration.queue import Flow
from pytest_regen.regeneration.regenerate import PartialRegenResult
from pytest_regen.regeneration.store_edits import write_summary
from pytest_regen.regeneration.store_pages import keeps_template
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.regeneration.values import (
    DROPS_EDIT,
    KEEPS_EDIT,
    Advice,
    Changes,
    Past,
    TurnSettings,
)
from pytest_regen.regeneration.verbs import Result
from pytest_regen.stores import is_store
from pytest_regen.text import plural, shorten
from pytest_regen.turns.models import tokens_for
from pytest_regen.units import keeping, naming
from pytest_regen.units import place as unit_place
from pytest_regen.units.view import refuse_unknown
from pytest_regen.validation import stale_types
from pytest_regen.validation.issues import Issue, ValidationResult
from pytest_regen.validation.stores import behaviour_of_store, from_errors_command

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
Fact = tuple[str, str] | tuple[str, str, str]
"""What ``fact`` takes."""


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
    facts: Sequence[Fact] = ()
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
    """A place as commands name it, and what they say of it; its units are types, or others."""

    noun: str
    group: str
    option: str
    at: Any
    """The place of the engine."""

    @property
    def here(self) -> str:
        """The place as it is named, with forward slashes."""
        return str(self.at.here)

    def command(self, verb: str, name: str | None = None, *options: str) -> str:
        """Return a command about the place, or about one of its units."""
        words = [] if name is None else [f"--{self.option}", name]
        return naming.command(verb, self.here, None, *words, *options)

    def tests(self, names: Sequence[str] = ()) -> Advice:
        """Return the command that runs the tests of units."""
        return Advice(naming.tests_command(self.here))

    def names(self, request: Request) -> Sequence[str]:
        """Return the units that a request is about.

        Raises:
            UsageError: there is no such unit, or no such page of one.
        """
        raise NotImplementedError

    def refuse(self, request: Request) -> None:
        """Refuse to ask with prompts that are older than what they were made from."""

    def needs_turn(self, request: Request, settings: TurnSettings) -> bool:
        """Return whether anybody has to be asked."""
        return bool(self.names(request))

    def label(self, name: str, page: int) -> str:
        """Return how one output is named."""
        return name

    def keys(self, name: str, page: int) -> dict[str, Any]:
        """Return how JSON names one output."""
        return {"name": name}

    def facts(self, verb: str, pages: Sequence[tuple[str, int]]) -> list[Fact]:
        """Return what became of outputs, in words."""
        names = [self.label(*page) for page in pages]
        return [(verb, f"{plural(len(names), 'unit')}: {shorten(names)}")] if names else []

    def kept(self, history: Sequence[str]) -> list[Fact]:
        """Return where outputs went that were taken out, in words."""
        texts = plural(len(history), "text")
        return [("kept", f"{texts} in .regen/history")] if history else []

    def steps(self, request: Request, settings: TurnSettings) -> Flow[Result]:
        """Ask for its units."""
        if request.of_several:
            self.refuse(request)
        names = self.names(request)
        # Before an edit is put back for the first page.
        if settings.ready and self.needs_turn(request, settings):
            settings.ready()
        options: dict[str, Any] = {"settings": settings, "attempts": request.turns.replies()}
        if request.verb == "generate":
            flow = verbs.generate_steps(self.at, request.names, force=request.force, **options)
            return (yield from flow)
        options["accept_any"] = request.accept_any
        options["discard_edits"] = request.discard_edits
        if request.from_errors:
            return (yield from verbs.heal_steps(self.at, names, **options))
        targets = dict.fromkeys(names, request.pages)
        notes = {name: [request.correction] for name in names} if request.correction else None
        return (yield from verbs.regenerate_steps(self.at, targets, corrections=notes, **options))

    def tell_outputs(
        self, verb: str, result: Result, issues: Sequence[Issue], rejected: Sequence[str]
    ) -> None:
        """Tell which outputs are new, which units could not be asked for, and what is wrong."""
        for label, text, *_ in self.facts(verb, result.regenerated):
            output.fact(label, text, "green")
        for text in rejected:
            output.fact("rejected", text)
        for name, why in result.skipped.items():
            output.fact("skipped", f"{name}: {why}", "yellow")
        output.show_prompt_faults(result.prompt_faults)
        # A fault of the prompts says it once for all the types that have it.
        explained = {name for fault in result.prompt_faults for name in fault.types}
        output.show_stopped(
            item
            for item in result.results
            if item.stop_reason != "unfixable" or item.name not in explained
        )
        tell_issues(issues, self.source(result.view))

    def past(self, names: Sequence[str] | None) -> Sequence[Past]:
        """Return what was replaced or rejected, oldest first."""
        self.at.open()  # What holds no place has no history, and says so.
        return verbs.history(self.at, names)

    def past_cells(self, past: Past) -> list[str]:
        """Return the row of an entry of the history."""
        page = [f"page {past.page} of {past.page_count}"] if self.option == "type" else []
        return [past.id, past.reason, past.name, *page, f"attempt {past.attempt}", past.model]

    def restore(self, name: str, page: int | None, to: str | None) -> Kept:
        """Make outputs from the history the recorded ones."""
        changes = verbs.restore(self.at, name, page=page, to=to)
        restored, facts = [], list[Fact]()
        for new in changes.pages:
            restored.append({**self.keys(new.name, new.page), "model": new.model})
            facts.append(("restored", f"{self.label(new.name, new.page)}, written by {new.model}"))
        report = {"restored": restored, "history": changes.history, "diff": changes.diff}
        return Kept(report, changes.diff, facts, following=self.tests(changes.names))

    def adopt(self, names: Sequence[str] | None, *, with_stale: bool = False) -> Kept:
        """Record units as they stand."""
        changes = verbs.adopt(self.at, names, with_stale=with_stale)
        view = self.at.open()
        # What is wrong is recorded now, and must not be taken for clean: the gate will say so.
        issues = [issue for name in changes.names for issue in view.issues(name)]
        errors = [issue for issue in issues if issue.severity == "error"]
        pages = [(new.name, new.page) for new in changes.pages]
        pages = pages or [(name, 1) for name in changes.names]
        report = {
            "adopted": [self.keys(*page) for page in pages],
            "errors": [issue.to_json() for issue in errors],
            "diff": changes.diff,
        }
        facts = self.facts("adopted", pages)
        lines, following = self.adopted(view, changes, all_asked=names is None)
        advice = view.advice(errors) or following
        return Kept(report, changes.diff, facts, errors, lines, advice, self.source(view))

    def adopted(self, view: Any, changes: Changes, *, all_asked: bool) -> tuple[list[Line], Advice]:
        """Return what else is to be said of units that were recorded, and what comes next."""
        raise NotImplementedError

    def source(self, view: Any) -> str:
        """Return the file that lines of issues are counted in."""
        return self.here

    def rebuild(self, names: Sequence[str] | None) -> Kept:
        """Put recorded outputs back; 1 where git or the ledger leaves a choice."""
        changes = verbs.rebuild(self.at, names)
        taken = (f"our version of {Path(self.here, name).as_posix()}" for name in changes.joined)
        facts: list[Fact] = [("taken", words) for words in taken]
        facts += self.rebuilt(changes.names)
        facts += self.kept(changes.history)
        if changes.by_hand:
            left = plural(changes.by_hand, "text")
            facts.append(("left", f"{left} by hand, which only the file has"))
        view = self.at.open()
        units = [issue for name in names or view.names for issue in view.issues(name)]
        issues = [i for i in (*view.file_issues, *units) if i.code in {"CONFLICT", "LEDGER"}]
        report = {
            "rebuilt": changes.names,
            "joined": changes.joined,
            "history": changes.history,
            "by_hand": changes.by_hand,
            "diff": changes.diff,
            "errors": [issue.to_json() for issue in issues],
        }
        following = view.advice(issues) if issues else self.tests(names or changes.names)
        is_idle = not (issues or changes.diff or changes.names or changes.joined)
        idle: list[Line] = [(f"{self.here}: {self.idle}",)] if is_idle else []
        return Kept(report, changes.diff, facts, issues, idle, following, self.source(view))

    idle: str

    def rebuilt(self, names: Sequence[str]) -> list[Fact]:
        """Return which units were put back, in words."""
        return self.facts("rebuilt", [(name, 1) for name in names])


class StoreHere(_Here):
    """A store, as commands name it."""

    noun, group, option = "store", "stores", "type"
    idle = "the source is what its pages make"
    at: StorePlace

    def __init__(self, project: Project, path: Path) -> None:
        self.path = path
        self.at = StorePlace(path, project.ignored_in(path), project.root)

    @property
    def here(self) -> str:
        """The folder as it was named."""
        return self.path.as_posix()

    def names(self, request: Request) -> Sequence[str]:
        """Return the types that a request is about; ``--page`` wants one."""
        view, types, pages = self.at.open(), request.names, request.pages
        if pages and (types is None or len(types) != 1):
            raise UsageError(
                f"--page {pages[0]} does not say of which type",
                why="a page belongs to one type",
                hint=f"name it with --type, one of: {', '.join(view.names)}",
            )
        if types is None:
            return view.names
        names = []
        for word in types:
            # Of several stores each has some of the types; one that has none says so.
            with suppress(*[UnknownTypeError] if request.of_several else []):
                names.append(view.resolve(word))
        return names or [view.resolve(types[0])]

    def _asked(self, request: Request) -> list[PromptEntry]:
        """Return the prompts to execute first: what was named, or what has errors."""
        view, names = self.at.open(), self.names(request)
        chosen: Mapping[str, Iterable[int]] = verbs.targets(
            view, dict.fromkeys(names, request.pages)
        )
        if request.from_errors:
            chosen = {
                name: pages_at_fault(view.correctable(name), view.page_count(name))
                for name in names
            }
        prompts = view.store.prompts
        return [entry for entry in prompts if entry.page in chosen.get(entry.type_name, ())]

    def needs_turn(self, request: Request, settings: TurnSettings) -> bool:
        """Return whether the template writes less than all that is asked."""
        store = self.at.open().store
        return not all(keeps_template(store, entry, settings) for entry in self._asked(request))

    def stale(self, request: Request) -> list[str]:
        """Return those of the types to be asked whose prompts are older than the document."""
        names = {entry.type_name for entry in self._asked(request)}
        return [name for name in stale_types(self.at.open().store) if name in names]

    def plan(self, request: Request) -> Plan:
        """Return what would be asked."""
        turns, view, asked = request.turns, self.at.open(), self._asked(request)
        tokens = {
            entry: 0 if turns.writes(view.store, entry.type_name) else turns.estimate(entry)
            for entry in asked
        }
        types = list(dict.fromkeys(entry.type_name for entry in asked if tokens[entry]))
        keys = {(entry.type_name, entry.page) for entry in asked}
        sizes = [
            turns.size(size)
            for name, page, size in self.at.sizes(view, types, None)
            if (name, page) in keys
        ]
        width = max((len(entry.type_name) for entry in asked), default=0)
        rows, listed = [], []
        for entry, count in tokens.items():
            page = f"page {entry.page} of {entry.total_pages}"
            rows.append((f"{entry.type_name:<{width}}  {page:<12}", count))
            listed.append({**entry.key._asdict(), "estimated_input_tokens": count})
        to_do = "ask" if any(tokens.values()) or not asked else "write"
        summary = f"{self.path}: {plural(len(asked), 'page')} to {to_do}; nothing written"
        stale = self.stale(request)
        report = {"path": self.here, "stale": stale, "pages": listed}
        return Plan(rows, sizes, summary, stale=stale, report=report)

    def everything(self, request: Request) -> str:
        """Return what is asked again where nothing is named; tells what that costs."""
        plan = self.plan(request)
        if output.is_terminal():
            request.turns.show_cost(request.turns.estimate_all(plan.sizes))
        tokens = sum(count for _, count in plan.rows)
        about = f", about {tokens:,} tokens of input" if tokens else " by the template"
        return f"{plural(len(plan.rows), 'page')} of {self.path}{about}"

    def refuse(self, request: Request) -> None:
        """Ask whether to go on with prompts made for another version of the document.

        Raises:
            StaleStoreError: there is no terminal to ask, or the answer is no.
        """
        stale = [] if request.ignore_stale else self.stale(request)
        names = f"{plural(len(stale), 'type')}: {shorten(stale)}"
        if stale and output.is_terminal() and not request.of_several:
            say(f"warning: made for another version of the document: {names}", "yellow")
            if output.confirm("Regenerate from the old prompts all the same?"):
                return
        if stale:
            raise StaleStoreError(
                f"{self.path} is stale, {names}",
                why="the stored prompts were made from another IR than the document gives now",
                hint="update the store with pytest-regen generate, or go on with --ignore-stale",
            )

    def left(self, result: Result, request: Request) -> Sequence[Issue]:
        """Return what is wrong with the store."""
        return PartialRegenResult(**vars(result)).validation.issues

    def report(self, result: Result) -> dict[str, Any]:
        """Return what JSON has of a result of a store alone."""
        of_types = PartialRegenResult(**vars(result))
        return {
            "source_path": of_types.source_path.as_posix(),
            "regenerated": [self.keys(*page) for page in result.regenerated],
            "prompt_faults": [fault.to_json() for fault in result.prompt_faults],
            "model_used": of_types.model_used,
        }

    def tell(self, result: Result, issues: Sequence[Issue], turns: TurnOptions) -> str:
        """Tell what was asked of a store; return what that took."""
        source = self.source(result.view)
        entries = (f"history/{entry}.json" for entry in result.rejected)
        rejected = [f"it was no better, and is kept in {entry}" for entry in entries]
        self.tell_outputs("regenerated", result, issues, rejected)
        if result.calls or result.stop_reasons or result.skipped or result.failures:
            spent = turns.spent(result.calls, result.usage, by_template=result.by_template)
            return f"{source}: {spent}"
        return f"{source}: no errors, nothing to ask"

    def following(
        self, result: Result, issues: Sequence[Issue], code: int, turns: TurnOptions
    ) -> Advice:
        """Return what to do next, about errors that remain if there are any."""
        if not code:
            return self.tests()
        reasons = set(result.stop_reasons.values())
        if result.prompt_faults:
            return Advice(SPELLING_ADVICE)
        if "unfixable" in reasons:
            return Advice("correct the document, then pytest-regen generate on it")
        # A reply cannot help where only an edit is left, or the file around the blocks.
        mendable = fixable_issues(issues)
        drifted = {issue.type_name for issue in issues if issue.code == "DRIFT"}
        if result.skipped and drifted:
            if any(issue.type_name in drifted for issue in mendable):
                return Advice(self.command("rebuild"), DROPS_EDIT)
            return Advice(self.command("adopt"), KEEPS_EDIT)
        if result.skipped or not mendable:
            return Advice(self.command("validate"), "it says what to do about each")
        again = from_errors_command(self.at.open().store)
        is_stuck, provider = "no_progress" in reasons, split_provider(turns.provider)
        if turns.provider and not turns.by_template and not (provider and is_stuck):
            again += f" --provider {turns.provider}"
        if not is_stuck:
            return Advice(again)
        other = f"--provider {provider[0]}:NAME" if provider else "--model NAME"
        return Advice(again, f"another model may do better: add {other}")

    def verdict(self, stale: StalePolicy, *, writes: bool) -> Verdict:
        """Return what is wrong with its types; the summary in ir.json is written anew."""
        view, source = self.at.open(), self.source(self.at.open())
        results, store = view.results, view.store
        if writes:
            try:
                write_summary(store, results)
            except StoreWriteError as error:
                # What was found does not depend on it.
                where = store.path / "ir.json"
                say(f"note: the summary in {where} was not updated: {error.why}")
        issues = [issue for result in results.values() for issue in result.issues]
        old = len({issue.type_name for issue in issues if issue.code == "STALE"})
        failing = sum(result.has_errors for result in results.values())
        is_failing_old = old > 0 and stale_outcome(stale) == "fail"
        issues = [issue for issue in issues if issue.code != "STALE" or stale != "ignore"]
        old = old if stale != "ignore" else 0
        types, older = plural(len(results), "type"), "are older than the document"
        older = f"{old} {older}" if old != 1 else f"1 {older.replace('are', 'is')}"
        line: Line = (f"{self.path}: {types}, no errors, but {older}",)
        if failing:
            verb = "has" if failing == 1 else "have"
            line = (f"{self.path}: {failing} of {types} {verb} errors",)
        elif not (old and is_failing_old):
            in_ci = ", which fails in CI" if stale == "auto" else ""
            note = f"; {older}{in_ci}" if old else ""
            line = f"{self.path}: {types}, no errors{note}", "green"
        lines = [line]
        # What most machines lack is no news; JSON has it all the same.
        if view.not_run and not behaviour_of_store(store).is_expected:
            lines.append((f"behaviour: not run: {view.not_run}",))
        roots = {type_.name for type_ in store.ir.types if type_.is_root}
        types_json = [
            {"name": name, "is_root": name in roots, **_issues_json(result)}
            for name, result in results.items()
        ]
        is_ok = not (failing or is_failing_old)
        report = {
            "path": self.here,
            "source": source,
            "ok": is_ok,
            "not_run": view.not_run or None,
            "note": view.format_note or None,
            "types": types_json,
        }
        if is_failing_old:  # Then the store is updated first.
            old_first = [replace(i, severity="error") if i.code == "STALE" else i for i in issues]
        advice = view.advice(old_first if is_failing_old else issues)
        by_type = {name: _without_stale(result, stale) for name, result in results.items()}
        return Verdict(report, source, issues, lines, advice, int(not is_ok), by_type)

    def source(self, view: Any) -> str:
        """Return the file that lines of issues are counted in."""
        path: Path = view.store.source_path
        return path.as_posix()

    def label(self, name: str, page: int) -> str:
        """Return how one output is named."""
        return f"{name} page {page}"

    def keys(self, name: str, page: int) -> dict[str, Any]:
        """Return how JSON names one output."""
        return {"type_name": name, "page": page}

    def facts(self, verb: str, pages: Sequence[tuple[str, int]]) -> list[Fact]:
        """Return what became of outputs, in words."""
        return [(verb, self.label(*page)) for page in pages]

    def kept(self, history: Sequence[str]) -> list[Fact]:
        """Return where outputs went that were taken out, in words."""
        paths = (Path(self.path, "history", name).as_posix() for name in history)
        return [("kept", f"{path}, what was there before") for path in paths]

    def rebuilt(self, names: Sequence[str]) -> list[Fact]:
        """Return which types were put back, in words."""
        return [("rebuilt", name) for name in names]

    def adopted(self, view: Any, changes: Changes, *, all_asked: bool) -> tuple[list[Line], Advice]:
        """Return what else is to be said of types that were recorded, and what comes next."""
        idle: list[Line] = [(f"{self.path}: no type was edited by hand",)]
        return [] if changes.names else idle, self.tests()


class FileHere(_Here):
    """A file with units, as commands name it."""

    noun, group, option = "file", "files", "unit"
    idle = "every recorded text stands as it is recorded"

    def __init__(self, file: "UnitFile") -> None:
        self.at = self.file = file

    def names(self, request: Request) -> Sequence[str]:
        """Return the units to ask for."""
        return self.open(request)[1]

    def open(self, request: Request) -> tuple["FileUnits", list[str]]:
        """Read the file; return it with the units to ask for.

        Raises:
            UsageError: a name is that of no unit.
        """
        view = self.file.open()
        refuse_unknown_units(view, request.names)
        names = list(names_of(view) if request.names is None else request.names)
        if request.verb == "generate" and not request.force:
            names = [name for name in names if view.needs_answer(name)]
        if request.from_errors:
            names = [name for name in names if view.score(name).errors]
        return view, names

    def plan(self, request: Request) -> Plan:
        """Return what would be asked."""
        view, names = self.open(request)
        faults = view.file_issues or ((view.fault,) if view.fault else ())
        turns = request.turns
        sizes = {name: turns.size(size) for name, _, size in self.file.sizes(view, names, None)}
        width = max(map(len, names), default=0)
        rows, listed = [], []
        for name, size in sizes.items():
            count = tokens_for(size.input_tokens, size.model)
            rows.append((f"{name:<{width}}", count))
            prompt = view.prompt(name)
            listed.append({"name": name, "estimated_input_tokens": count, "prompt": prompt})
        summary, style = f"{self.here}: up to date", "green"
        following: Advice | None = self.tests()
        if names:
            units = plural(len(names), "unit")
            summary, style = f"{self.here}: {units} to ask for; nothing written", "yellow"
            following = Advice(self.command("generate")) if request.check else None
        report = {
            "path": self.here,
            "ok": not (names or faults),
            "system": view.system if names else self.file.kind.system,
            "asked": listed,
            "errors": [issue.to_json() for issue in faults],
        }
        if faults:
            following = view.advice(faults)
        code = int(bool(faults) or (request.check and bool(names)))
        largest = list(sizes.values())
        return Plan(rows, largest, summary, style, (), faults, following, code, report)

    def everything(self, request: Request) -> str:
        """Return what is asked again where nothing is named."""
        return f"{plural(len(self.names(request)), 'unit')} of {self.here}"

    def left(self, result: Result, request: Request) -> Sequence[Issue]:
        """Return what is wrong with what was asked for."""
        view = result.view
        names = request.names or view.names
        if request.from_errors and request.names is None:
            names = [item.name for item in result.results]
        return [*view.file_issues, *(issue for name in names for issue in view.issues(name))]

    def report(self, result: Result) -> dict[str, Any]:
        """Return what JSON has of a result of a file alone."""
        return {"path": self.here, "regenerated": [name for name, _ in result.regenerated]}

    def tell(self, result: Result, issues: Sequence[Issue], turns: TurnOptions) -> str:
        """Tell what was asked of a file; return what that took."""
        texts = f"{plural(len(result.rejected), 'text')}, kept in .regen/history"
        self.tell_outputs("written", result, issues, [texts] if result.rejected else [])
        if result.calls or result.results:
            return f"{self.here}: {output.usage_line(result.calls, result.usage)}"
        return "" if result.view.file_issues else f"{self.here}: nothing to ask"

    def following(
        self, result: Result, issues: Sequence[Issue], code: int, turns: TurnOptions
    ) -> Advice | None:
        """Return what to do next, about errors that remain if there are any."""
        if not code:
            return self.tests([item.name for item in result.results] or result.view.names)
        advice: Advice | None = result.view.advice(issues)
        return advice

    def verdict(self, stale: StalePolicy, *, writes: bool) -> Verdict:
        """Return what is wrong with its units."""
        view = self.file.open()
        results = {name: ValidationResult(view.issues(name)) for name in names_of(view)}
        failing = [name for name, result in results.items() if _fails(result, stale)]
        errors = [*view.file_issues, *(i for i in view.orphans if i.severity == "error")]
        is_ok = not (failing or errors)
        units = [_without_stale(result, stale).issues for result in results.values()]
        issues = [*view.file_issues, *(issue for some in units for issue in some), *view.orphans]
        total, lines = plural(len(results), "unit"), list[Line]()
        if failing:
            verb = "fails" if len(failing) == 1 else "fail"
            lines.append((f"{self.here}: {len(failing)} of {total} {verb}",))
        elif is_ok:
            lines.append((f"{self.here}: {total}, no errors", "green"))
        if view.reworded:
            words = "regenerate would ask in other words than before"
            lines.append((f"note: {shorten(view.reworded)}: {words}",))
        report = {
            "path": self.here,
            "ok": is_ok,
            "errors": [issue.to_json() for issue in view.file_issues],
            "units": [{"name": name, **_issues_json(result)} for name, result in results.items()],
            "orphans": [issue.to_json() for issue in view.orphans],
        }
        is_broken = any(i.code == "KIND_ERROR" for name in failing for i in results[name].issues)
        code = 2 if is_broken else int(not is_ok)
        return Verdict(report, self.here, issues, lines, view.advice(issues), code)

    def tests(self, names: Sequence[str] = ()) -> Advice:
        """Return the command that tests units: all tests, if of one its own item runs nothing."""
        view = self.file.open() if names else None
        is_read = view and any(view.is_only_read(name) for name in names if name in view.texts)
        return Advice("pytest") if is_read else super().tests()

    def adopted(self, view: Any, changes: Changes, *, all_asked: bool) -> tuple[list[Line], Advice]:
        """Return what else is to be said of units that were recorded, and what comes next."""
        if changes.names:
            entries = (view.entry(name) for name in changes.names)
            models = Counter(entry.model for entry in entries if entry and not entry.is_by_hand)
            lines: list[Line] = []
            for model, number in models.items():
                them = "it" if number == 1 else "them"
                lines.append((f"    {plural(number, 'text')} as {model} wrote {them}",))
            return [*lines, *only_read(view, changes.names)], self.tests(changes.names)
        lines = [(f"{self.here}: every text is recorded as it stands",)]
        units = [(name, view.issues(name)) for name in names_of(view)] if all_asked else []
        stale = [name for name, issues in units if any(i.code == "STALE" for i in issues)]
        if not stale:
            return lines, self.tests()
        right = "STALE; to say that they are right as they are:"
        lines.append((f"  {shorten(stale)}: {right}", "yellow"))
        return lines, Advice(self.command("adopt", None, "--stale"))

    def forget(self, names: Sequence[str] | None, *, is_lost: bool) -> Kept:
        """Drop what nothing asks for any more."""
        changes = verbs.forget(self.at, names)
        report = {
            "forgotten": changes.names,
            "dropped": changes.dropped,
            "history": changes.history,
            "notes": changes.notes,
            "diff": changes.diff,
        }
        facts: list[Fact] = [
            ("dropped", f"{name}, which could not be read") for name in changes.dropped
        ]
        facts += self.facts("forgotten", [(name, 1) for name in changes.names])
        facts += self.kept(changes.history)
        facts += [("to do", note, "yellow") for note in changes.notes]
        is_idle = not (changes.names or changes.dropped)
        idle: list[Line] = [(f"{self.here}: everything in it is asked for",)]
        todo = Advice("pytest") if is_lost else self.tests(changes.names)
        return Kept(report, changes.diff, facts, (), idle if is_idle else [], todo)


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


def outdated_units(places: Sequence[FileHere], request: Request) -> Outdated:
    """Return the units of files that are missing or stale, and how many files have none."""
    findings: list[Finding] = []
    current = 0
    for place in places:
        view, names = place.open(replace(request, force=False))
        current += not names
        for name in names:
            why = "it was never written" if view.missing(name) else "its inputs have changed"
            unit, path = naming.unit_id(place.here, name), Path(place.here)
            findings.append(Finding("error", unit, "out of date", why, path))
    following = naming.command("generate", str(findings[0].path)) if findings else ""
    return findings, current, following


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
        refuse_unknown(view, name, {*names_of(view), *view.texts, *view.ledger.entries})


def refuse_types(file: "UnitFile", **options: object) -> None:
    """Refuse options that are about types of a store."""
    for name, value in options.items():
        if value:
            raise UsageError(
                f"{file.here} has units, and no {name}",
                why=f"a kind claims the file ({file.kind.title}), so it is no API description",
                hint="name units with --unit, or none for all",
            )


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


def _issues_json(result: ValidationResult) -> dict[str, Any]:
    return {
        "errors": [issue.to_json() for issue in result.errors],
        "warnings": [issue.to_json() for issue in result.warnings],
    }


def _without_stale(result: ValidationResult, stale: StalePolicy) -> ValidationResult:
    if stale != "ignore":
        return result
    return ValidationResult(tuple(issue for issue in result.issues if issue.code != "STALE"))


def _fails(result: ValidationResult, stale: StalePolicy) -> bool:
    # A person's text that is stale is only told of: no model wrote it from something else.
    is_stale = any(issue.code == "STALE" and not issue.is_by_hand for issue in result.issues)
    return result.has_errors or (is_stale and stale_outcome(stale) == "fail")


def tell_issues(issues: Iterable[Issue], place: str) -> None:
    """List issues, one line each; what many units have in common is counted after a few."""
    counts: dict[tuple[str, str], int] = {}
    for issue in output.by_line(issues):
        key = issue.code, issue.message
        counts[key] = counts.get(key, 0) + 1
        if counts[key] > _ALIKE:
            continue
        at = Path(place).with_name(issue.file).as_posix() if issue.file else place
        where = f"{at}:{issue.line}" if issue.line else at
        mark = "" if issue.severity == "error" else "warning:"
        name = f"{issue.type_name or ''}{f' page {issue.page}' if issue.page else ''}"
        words = [mark, name, f"[{issue.code}]", issue.message]
        output.show_issue(issue, " ".join([f"{where}:", *filter(None, words)]))
    for (code, message), count in counts.items():
        if count > _ALIKE:
            say(f"{place}: {count - _ALIKE:,} more [{code}] {message}")


def enclose_in_file(project: Project, path: Path, names: Sequence[str]) -> None:
    """Put markers around functions that have none yet, so that they become units.

    Raises:
        UsageError: the settings do not name the file.
        SourceError: the file has no such function.
    """
    path = Path.cwd() / path
    kinds = project.kinds
    kind, place = kinds.kind_to_enclose(path), kinds.place(kinds.absolute(path))
    if kind is None and path.suffix == ".py" and kinds.kind_of(path) is None:
        listed = project.settings.shipped.get("functions")
        files = [*listed, place] if isinstance(listed, list) else [place]
        raise UsageError(
            f"{short_path(path)} is not among the files whose functions are gated",
            why=f"it takes `functions = {json.dumps(files)}` below [tool.pytest-regen] in "
            f"{short_path(project.root / 'pyproject.toml')}",
            hint=naming.command("init", f"{short_path(path).as_posix()}::{names[0]}"),
        )
    if kind is None or place is None:
        return
    with unit_place.UnitFile(kinds, place, kind).writing() as (units, write):
        new = keeping.enclose(units, write, names)
    if new:
        output.fact("marked", f"{plural(len(new), 'function')}: {shorten(new)}")
