"""Places asked for units: ``regenerate`` of any, ``generate`` of files that a kind claims."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import typer

from pytest_regen.cli import output
from pytest_regen.cli.output import describe_failure, emit_json, fact, next_step, say
from pytest_regen.cli.places import PlaceHere, Plan, Request, tell_issues
from pytest_regen.errors import (
    MissingExtraError,
    MissingKeyError,
    RegenError,
    StoreError,
    UnknownTypeError,
    UsageError,
)
from pytest_regen.regeneration.costs import Estimate
from pytest_regen.regeneration.queue import Flow, drive_flow, drive_flows
from pytest_regen.regeneration.values import Advice, RunState, TurnSettings
from pytest_regen.regeneration.verbs import Result
from pytest_regen.stores import RegenStore
from pytest_regen.text import plural, shorten
from pytest_regen.turns import Budget
from pytest_regen.turns.values import Usage

Emit = Callable[[Any], None]
"""Takes what a command says of one place as JSON."""


@dataclass(slots=True)
class Outcome:
    """What came of several places of a sort."""

    noun: str
    total: int
    reports: dict[int, Any] = field(default_factory=dict)
    """As JSON, by the number of the place."""
    codes: list[int] = field(default_factory=list)
    failed: list[tuple[str, RegenError]] = field(default_factory=list)
    """Places that could not be worked on, and why."""
    changed: int = 0

    @property
    def exit_code(self) -> int:
        """The worst of all; 1 where some were not started."""
        codes = [*self.codes, *(error.exit_code for _, error in self.failed)]
        return max([*codes, int(self.not_started > 0)])

    @property
    def not_started(self) -> int:
        """Places that nothing was asked for."""
        return self.total - len(self.codes) - len(self.failed)

    @property
    def in_order(self) -> list[Any]:
        """The reports, in the order of the places."""
        return [self.reports[number] for number in sorted(self.reports)]

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Places that could not be worked on, as JSON."""
        return [{"path": name, **describe_failure(error)} for name, error in self.failed]

    def fail(self, name: str, error: RegenError) -> None:
        """Tell that a place cannot be worked on, and count it."""
        output.fail(error.what, why=error.why, hint=error.hint)
        self.failed.append((name, error))

    def show(self, state: RunState) -> None:
        """Tell the sum; ``state`` is that in which the run ended."""
        if state.calls:
            fact("spent", output.usage_line(state.calls, state.usage))
        counts = {
            "changed": self.changed,
            "with errors": sum(code > 0 for code in self.codes),
            "failed": len(self.failed),
            "not started": self.not_started,
        }
        parts = [f"{number:,} {what}" for what, number in counts.items() if number]
        say(", ".join([plural(self.total, self.noun), *parts]))


def ask(places: Sequence[PlaceHere], request: Request) -> int:
    """Ask places for units, and tell what came of it; return the exit code."""
    if not request.of_several:
        with _run(places, request) as (_, settings):
            result = drive_flow(places[0].steps(request, settings), settings)
        return _finish(places[0], result, request, emit_json)
    # Stores, then files: what answers may be another; the budget is one for all.
    budget, usage, outcomes = Budget(request.turns.budget), Usage(), dict[str, Outcome]()
    places = _with_types(places, request)
    for group in dict.fromkeys(place.group for place in places):
        if any(outcome.not_started for outcome in outcomes.values()):
            continue
        members = [place for place in places if place.group == group]
        with _run(members, request) as (progress, settings):
            outcome = _ask_group(members, request, replace(settings, budget=budget))
        outcomes[group] = outcome
        usage += progress.state.usage
        if not request.as_json:
            outcome.show(progress.state)
    if request.as_json:
        groups = {group: outcome.in_order for group, outcome in outcomes.items()}
        failures = [item for outcome in outcomes.values() for item in outcome.failures]
        sums = {"failures": failures, **output.money_json(usage)}
        emit_json({**_by_group(request), **groups, **sums})
    return max(outcome.exit_code for outcome in outcomes.values())


def _run(places: Sequence[PlaceHere], request: Request) -> Any:
    is_of_types = places[0].group == "stores"
    title = request.verb.removesuffix("e") + "ing"
    return request.turns.run(title, of_types=is_of_types, as_json=request.as_json)


def _by_group(request: Request) -> dict[str, list[Any]]:
    return {"stores": []} if request.verb == "regenerate" else {"files": []}


def _ask_group(places: Sequence[PlaceHere], request: Request, settings: TurnSettings) -> Outcome:
    """Drive all places through one queue; tell of each in its order, when those before it ended.

    A place that cannot be worked on leaves the others to be.

    Raises:
        UsageError, MissingKeyError, MissingExtraError: what concerns all of them.
    """
    outcome = Outcome(places[0].noun, len(places))
    numbered = {place.here: (number, place) for number, place in enumerate(places, 1)}

    def flows() -> Iterator[tuple[str, Flow[Any]]]:
        for number, place in numbered.values():
            say(f"{number}/{len(places)} {place.here}")
            yield place.here, place.steps(request, settings)

    with output.InOrder() as teller:
        for name, result in drive_flows(flows(), settings, total=len(places)):
            number, place = numbered[name]
            with output.hold_back() as lines:
                if isinstance(result, UsageError | MissingKeyError | MissingExtraError):
                    raise result
                if isinstance(result, RegenError):
                    outcome.fail(name, result)
                else:
                    emit = partial(outcome.reports.__setitem__, number)
                    code = _finish(place, result, request, emit)
                    outcome.codes.append(code)
                    outcome.changed += bool(result.regenerated)
            teller.tell(number, lines)
    return outcome


def _with_types(places: Sequence[PlaceHere], request: Request) -> Sequence[PlaceHere]:
    """Return the places that have one of the types named; one that is unreadable may have it.

    Raises:
        UnknownTypeError: a type is in none of those that can be read.
    """
    if request.names is None:
        return places
    chosen: list[PlaceHere] = []
    lacking: dict[str, UnknownTypeError] = {}
    resolved: set[str] = set()
    for place in places:
        try:
            store = RegenStore.open(place.at.path)
        except RegenError:
            chosen.append(place)  # Its turn tells why it cannot be read.
            continue
        for name in request.names:
            try:
                store.resolve_type(name)
            except UnknownTypeError as error:
                lacking.setdefault(name, error)
            else:
                resolved.add(name)
                chosen.append(place)
    for name in request.names:
        if name in lacking and name not in resolved:
            raise lacking[name]
    return list(dict.fromkeys(chosen))


def _finish(place: PlaceHere, result: Result, request: Request, emit: Emit) -> int:
    """Show what came of asking a place, or emit it as JSON; return the exit code."""
    left = place.left(result, request)
    errors = [issue for issue in left if issue.severity == "error"]
    code = int(bool(errors))
    if result.skipped or any(issue.code == "KIND_ERROR" for issue in errors):
        code = 2
    code = max((failure.exit_code for failure in result.failures), default=code)
    if request.as_json:
        pending = {"pending": dict(result.pending)} if result.pending else {}
        emit(
            {
                **place.report(result),
                "ok": code == 0,
                "rejected": list(result.rejected),
                "stop_reasons": dict(result.stop_reasons),
                "skipped": dict(result.skipped),
                "calls": result.calls,
                "tokens": result.usage.total_tokens,
                **output.money_json(result.usage),
                "errors": [issue.to_json() for issue in errors],
                "warnings": [issue.to_json() for issue in left if issue.severity != "error"],
                "failures": [describe_failure(failure) for failure in result.failures],
                "diff": result.diff,
                **pending,
            }
        )
        return code
    output.show_diff(result.diff)
    if spent := place.tell(result, left, request.turns):
        say(spent, "green" if spent.endswith("nothing to ask") else "")
    output.show_failures(result.failures)
    output.show_pending(result.pending)
    if not (result.failures or result.pending):
        advise(place.following(result, left, code, request.turns))
    return code


def advise(advice: Advice | None) -> None:
    """Tell what to do next, where there is anything."""
    if advice:
        next_step(*advice)


def plan(places: Sequence[PlaceHere], request: Request) -> int:
    """Say what would be asked; return the exit code. An unreadable store leaves the others."""
    turns, failed = request.turns, Outcome("place", len(places))
    total = Estimate(turns.price_of)
    reports = _by_group(request)
    codes = [0]
    for place in _with_types(places, request) if request.of_several else places:
        try:
            made = place.plan(request)
        except StoreError as error:
            if not request.of_several:
                raise
            failed.fail(place.here, error)
            continue
        codes.append(made.code)
        estimate = Estimate(turns.price_of, made.sizes, of=total)
        report = {**made.report, "estimate": estimate.to_json()}
        reports.setdefault(place.group, []).append(report)
        if not request.as_json:
            _tell_plan(place, made, estimate, request)
    codes += [error.exit_code for _, error in failed.failed]
    if request.as_json and not request.of_several:
        emit_json(report)
    elif request.as_json:
        failures = {"failures": failed.failures} if failed.failed else {}
        emit_json({**reports, **failures, "estimate": total.to_json()})
    elif request.of_several and total.pages:
        say(total.sum_words(is_batch=turns.is_batch))
    return max(codes)


def _tell_plan(place: PlaceHere, made: Plan, estimate: Estimate, request: Request) -> None:
    tell_issues(made.faults, place.here)
    if not made.faults:
        for label, count in made.rows:
            say(f"  {label}  {f'about {count:,} tokens' if count else ''}".rstrip())
        if made.stale:
            fact("stale", f"{plural(len(made.stale), 'type')}: {shorten(made.stale)}", "yellow")
        request.turns.show_cost(estimate)
        say(made.summary, made.style)
    advise(made.following)


def confirm_everything(places: Sequence[PlaceHere], request: Request) -> None:
    """Ask whether all types and units are meant.

    Raises:
        UsageError: there is no terminal to ask.
    """
    option = "type" if request.of_several else places[0].option
    if request.of_several:
        stores = [place for place in places if place.group == "stores"]
        files = len(places) - len(stores)
        pages = sum(len(RegenStore.open(place.at.path).prompts) for place in stores)
        of_stores = f"all {plural(pages, 'page')} of {plural(len(stores), 'store')}"
        parts = [of_stores] if stores else []
        parts += [f"all units of {plural(files, 'file')}"] if files else []
        what = " and ".join(parts)
    else:
        what = f"all {places[0].everything(request)}"
    if not output.is_terminal():
        raise UsageError(
            f"regenerating {what} was not confirmed",
            why=f"no --{option} was named, which means every {option}",
            hint=f"add --yes, or name {option}s with --{option}, or --from-errors",
        )
    if not output.confirm(f"Regenerate {what}?"):
        raise typer.Exit(0)
