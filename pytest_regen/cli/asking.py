"""Places asked for units: ``regenerate``, and ``generate`` where units stand already."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import typer

from pytest_regen import errors
from pytest_regen.cli import output, places
from pytest_regen.cli.output import describe_failure, emit_json, fact, say
from pytest_regen.cli.places import Request
from pytest_regen.modes import split_provider
from pytest_regen.regeneration.costs import AskSize, Estimate, asks_for
from pytest_regen.regeneration.places import Advice, Place, View
from pytest_regen.regeneration.queue import Flow, drive_flow, drive_flows
from pytest_regen.regeneration.values import RunState, TurnSettings
from pytest_regen.regeneration.verbs import Result
from pytest_regen.text import plural, shorten
from pytest_regen.turns import Budget
from pytest_regen.turns.values import Usage
from pytest_regen.validation.issues import Issue

Places = Sequence[Place[Any]]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of several places of a sort, or of several operations."""

    noun: str
    total: int
    reports: dict[int, Any] = field(default_factory=dict)
    """As JSON, by the number of the place."""
    codes: list[int] = field(default_factory=list)
    failed: list[tuple[str, errors.RegenError]] = field(default_factory=list)
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

    def failures(self, key: str = "path") -> list[dict[str, Any]]:
        """Return the places that could not be worked on, as JSON; ``key`` holds their name."""
        return [{key: name, **describe_failure(error)} for name, error in self.failed]

    def fail(self, name: str, error: errors.RegenError) -> None:
        """Tell that a place cannot be worked on, and count it."""
        where = "" if name in error.what else f"{name}: "
        # Told at once, because what is asked after it may take an hour.
        output.fail(f"{where}{error.what}", why=error.why, hint=error.hint)
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


def ask(targets: Places, request: Request) -> int:
    """Ask places for units, and tell what came of it; return the exit code."""
    # By itself, because its error ends the command, and JSON has its report alone.
    if not request.of_several:
        with _run(targets, request) as (_, settings):
            result = drive_flow(places.asking_steps(targets[0], request, settings), settings)
        code, report = _finish(result, request)
        if request.as_json:
            emit_json(report)
        return code
    # Group by group, because what answers may be another; the budget is one for all.
    budget, usage, outcomes = Budget(request.turns.budget), Usage(), dict[str, Outcome]()
    targets = _with_names(targets, request)
    for group in dict.fromkeys(place.group for place in targets):
        if any(outcome.not_started for outcome in outcomes.values()):
            continue  # Because what stopped the last group, as a budget, stops this one as well.
        members = [place for place in targets if place.group == group]
        with _run(members, request) as (progress, settings):
            outcome = _ask_group(members, request, replace(settings, budget=budget))
        outcomes[group] = outcome
        usage += progress.state.usage
        if not request.as_json:
            outcome.show(progress.state)
    if request.as_json:
        groups = {group: outcome.in_order for group, outcome in outcomes.items()}
        failures = [item for outcome in outcomes.values() for item in outcome.failures()]
        sums = {"failures": failures, **output.money_json(usage)}
        emit_json({**_by_group(request), **groups, **sums})
    return max(outcome.exit_code for outcome in outcomes.values())


def _run(targets: Places, request: Request) -> Any:
    place = targets[0]
    return request.turns.run(places=_noun(place), of_types=place.has_pages, as_json=request.as_json)


def _noun(place: Place[Any]) -> str:
    return place.group.removesuffix("s")


def _asked(place: Place[Any]) -> str:
    """Return what is asked for one by one."""
    return "page" if place.has_pages else place.noun


def _by_group(request: Request) -> dict[str, list[Any]]:
    return {"stores": []} if request.verb == "regenerate" else {"files": []}


def _ask_group(targets: Places, request: Request, settings: TurnSettings) -> Outcome:
    """Drive all places through one queue; tell of each in its order, when those before it ended.

    A place that cannot be worked on leaves the others to be.

    Raises:
        UsageError, MissingKeyError, MissingExtraError: what concerns all of them.
    """
    outcome = Outcome(noun=_noun(targets[0]), total=len(targets))

    def flows() -> Iterator[tuple[str, Flow[Any]]]:
        for number, place in enumerate(targets, 1):
            say(f"{number}/{len(targets)} {place.here}")
            yield place.here, places.asking_steps(place, request, settings)

    # These end the command, because every other place would fail with the same.
    of_all = errors.UsageError | errors.MissingKeyError | errors.MissingExtraError

    def take(number: int, name: str, result: Result | errors.RegenError) -> None:
        if isinstance(result, of_all):
            raise result
        if isinstance(result, errors.RegenError):
            outcome.fail(name, result)
        else:
            code, outcome.reports[number] = _finish(result, request)
            outcome.codes.append(code)
            outcome.changed += bool(result.regenerated)

    names = [place.here for place in targets]
    output.tell_in_order(names, drive_flows(flows(), settings, total=len(targets)), take)
    return outcome


def _with_names(targets: Places, request: Request) -> Places:
    """Return the places that have one of the units named; one that is unreadable may have it.

    Raises:
        UsageError: a unit is in none of those that can be read.
    """
    if request.names is None:
        return targets
    # Looked at before anybody is asked, because a misspelt name would cost the whole run.
    having: list[Place[Any]] = []
    lacking: dict[str, errors.UsageError] = {}
    resolved: set[str] = set()
    for place in targets:
        names = set()
        try:
            view = place.open()
        except errors.RegenError:
            having.append(place)  # Its turn tells why it cannot be read.
            continue
        for name in request.names:
            try:
                view.resolve(name)
                names.add(name)
            except errors.UsageError as error:
                lacking.setdefault(name, error)
        having += [place] if names else []
        resolved |= names
    for name in lacking.keys() - resolved:
        raise lacking[name]
    return having


def _finish(result: Result, request: Request) -> tuple[int, dict[str, Any]]:
    """Show what came of asking a place; return the exit code, and what JSON says where it does."""
    place, view, new, names = result.place, result.view, result.regenerated, request.names
    answered = [name for name, _ in new] or view.names
    orphans = view.orphans if place.has_pages else ()
    # All of a store, because its pages make one source: a new one may break another.
    if names is None or place.has_pages:
        names = view.names
    left = [*view.file_issues, *(i for name in names for i in view.issues(name)), *orphans]
    wrong = [issue for issue in left if issue.severity == "error"]
    code = int(bool(wrong))
    # Not 1, because asking again does not mend it.
    if result.skipped or any(issue.code == "KIND_ERROR" for issue in wrong):
        code = 2
    code = max((failure.exit_code for failure in result.failures), default=code)
    if request.as_json:
        return code, {
            "path": place.here,
            "source_path": place.source,
            "regenerated": [
                places.keys(place, *page) if place.has_pages else page[0] for page in new
            ],
            "model_used": view.author(answered[-1]).model if answered else "",
            "ok": code == 0,
            "rejected": list(result.rejected),
            "stop_reasons": dict(result.stop_reasons),
            "skipped": dict(result.skipped),
            "calls": result.calls,
            "tokens": result.usage.total_tokens,
            **output.money_json(result.usage),
            "errors": [issue.to_json() for issue in wrong],
            "warnings": [issue.to_json() for issue in left if issue.severity != "error"],
            "failures": [describe_failure(failure) for failure in result.failures],
            "diff": result.diff,
            **({"pending": dict(result.pending)} if result.pending else {}),
        }
    _tell(result, left, code, request)
    return code, {}


def _tell(result: Result, left: Sequence[Issue], code: int, request: Request) -> None:
    place, turns = result.place, request.turns
    output.show_diff(result.diff)
    verb = "written" if request.verb == "generate" else "regenerated"
    places.tell_units(place, verb, result.regenerated, "green")
    if result.rejected:
        texts = plural(len(result.rejected), "text")
        fact("rejected", f"{texts}, no better than what was there, kept in {place.history_path}")
    for name, why in result.skipped.items():
        fact("skipped", f"{name}: {why}", "yellow")
    output.show_stopped(result.results)
    places.tell_issues(left, place.source)
    if result.results:
        spent = turns.spent(result.calls, result.usage, by_template=result.by_template)
        say(f"{place.source}: {spent}")
    elif not left:
        say(f"{place.source}: no errors, nothing to ask", "green")
    output.show_failures(result.failures)
    for name, id_ in result.pending.items():
        fact("waits", f"{name} [{id_}]", "yellow")
    if result.pending:
        output.next_step("pytest-regen review")
    elif not result.failures:
        places.advise(_following(result, left, code, request))


def _following(result: Result, left: Sequence[Issue], code: int, request: Request) -> Advice | None:
    """Return what to do next, about errors that remain if there are any."""
    view, turns = result.view, request.turns
    if not code:
        names = [item.name for item in result.results]
        return places.advice_to_test(turns.project, result.place, view, names)
    advice: Advice | None = view.advice(left)
    stuck = [name for name, why in result.stop_reasons.items() if why == "no_progress"]
    if advice is None or not (stuck or advice.command.endswith("--from-errors")):
        return advice
    again, provider = advice.command, split_provider(turns.provider)
    if stuck and not result.by_template:
        # In a person's words, because the model has just answered the same twice.
        words = "--correction", "what is wrong"
        again = places.command("regenerate", result.place, stuck[0], *words)
    # With who was asked, because the same command without it asks somebody else.
    if turns.provider and not turns.by_template:
        again += f" --provider {turns.provider}"
    if turns.model and not provider:
        again += f" --model {turns.model}"
    if not stuck:
        return Advice(again)
    other = f"--provider {provider[0]}:NAME" if provider else "--model NAME"
    return Advice(again, f"another model may do better: name it by {other}")


def plan(targets: Places, request: Request) -> int:
    """Say what would be asked; return the exit code. An unreadable place leaves the others."""
    turns, total = request.turns, Estimate(request.turns.price_of)
    targets = _with_names(targets, request) if request.of_several else targets
    outcome, reports = Outcome(noun="place", total=len(targets)), _by_group(request)
    for place in targets:
        try:
            code, report = _plan_place(place, request, total)
        except errors.StoreError as error:
            # Of one nothing is left to plan; the others are planned all the same.
            if not request.of_several:
                raise
            outcome.fail(place.here, error)
            continue
        outcome.codes.append(code)
        reports.setdefault(place.group, []).append(report)
    if request.as_json and not request.of_several:
        emit_json(report)
    elif request.as_json:
        failures = {"failures": outcome.failures()} if outcome.failed else {}
        emit_json({**reports, **failures, "estimate": total.to_json()})
    elif request.of_several and total.pages:
        say(f"{total.pages:,} to ask in all, {total.words(is_batch=turns.is_batch)}")
    return outcome.exit_code


def _plan_place(place: Place[Any], request: Request, total: Estimate) -> tuple[int, dict[str, Any]]:
    """Tell what would be asked of a place; return the exit code and the plan as JSON."""
    turns, view = request.turns, place.open()
    targets = places.asked_pages(place, view, request)
    names = list(dict.fromkeys(name for name, _ in targets))
    estimate = Estimate(turns.price_of)
    tokens = dict.fromkeys(targets, 0)
    # The requests themselves, because what they cost depends on the model that would be asked.
    asks = list(asks_for(place, view, targets, turns.planning()))
    for ask in asks:
        if not turns.writes(place, view, ask.name):
            size = AskSize.of(ask)
            estimate.add(size)
            total.add(size)
            tokens[ask.name, ask.page] = size.input_tokens
    faults = view.file_issues
    code = int(bool(faults) or (request.check and bool(targets)))
    report: dict[str, Any] = {
        "path": place.here,
        "ok": not (targets or faults),
        "stale": places.old_prompts(view, names),
        "pages" if place.has_pages else "asked": [
            {**places.keys(place, *page), "estimated_input_tokens": count}
            for page, count in tokens.items()
        ],
        "errors": [issue.to_json() for issue in faults],
        "estimate": estimate.to_json(),
    }
    if not place.has_pages:
        # Those of stores stand in their files.
        report["system"] = asks[0].request.system if asks else ""
        prompts = {ask.name: ask.request.messages[0].content for ask in asks}
        for row in report["asked"]:
            row["prompt"] = prompts[row["name"]]
    if not request.as_json:
        _tell_plan(place, view, request, tokens, estimate)
    return code, report


def _tell_plan(
    place: Place[Any],
    view: View,
    request: Request,
    tokens: Mapping[tuple[str, int], int],
    estimate: Estimate,
) -> None:
    if view.file_issues:
        places.tell_issues(view.file_issues, place.source)
        places.advise(view.advice(view.file_issues))
        return
    labels = [places.label(place, *page) for page in tokens]
    width = max(map(len, labels), default=0)
    for text, count in zip(labels, tokens.values(), strict=True):
        about = f"about {count:,} tokens" if count else ""
        say(f"  {text:<{width}}  {about}".rstrip())
    if old := places.old_prompts(view, (name for name, _ in tokens)):
        fact("stale", f"{plural(len(old), place.noun)}: {shorten(old)}", "yellow")
    request.turns.show_cost(estimate)
    # What the prompts ask for themselves is wrong, and nobody is asked for it.
    if not (tokens or (request.from_errors and any(view.score(n).errors for n in view.names))):
        say(f"{place.here}: up to date", "green")
        places.advise(places.advice_to_test(request.turns.project, place, view))
        return
    pages = plural(len(tokens), _asked(place))
    to_do = "ask" if any(tokens.values()) or not tokens else "write"
    say(f"{place.here}: {pages} to {to_do}; nothing written", "yellow")
    if request.check:
        output.next_step(places.command("generate", place))


def confirm_everything(targets: Places, request: Request) -> None:
    """Ask whether all units are meant; tells what that costs.

    Raises:
        UsageError: there is no terminal to ask.
    """
    turns, first, pages = request.turns, targets[0], 0
    estimate = Estimate(turns.price_of)
    for place in targets:
        view = place.open()
        asked_pages = places.asked_pages(place, view, request)
        pages += len(asked_pages)
        for ask in asks_for(place, view, asked_pages, turns.planning()):
            if not turns.writes(place, view, ask.name):
                estimate.add(AskSize.of(ask))
    is_alike = len({place.group for place in targets}) == 1
    asked, sort = (_asked(first), _noun(first)) if is_alike else ("text", "place")
    of = first.here if len(targets) == 1 else plural(len(targets), sort)
    what, option = f"all {plural(pages, asked)} of {of}", first.option
    noun = option.removeprefix("--")
    if not output.is_terminal():
        raise errors.UsageError(
            f"regenerating {what} was not confirmed",
            why=f"no {option} was named, which means every {noun}",
            hint=f"add --yes, or name {noun}s with {option}, or --from-errors",
        )
    turns.show_cost(estimate)
    if not output.confirm(f"Regenerate {what}?"):
        # No error, because a no is an answer.
        raise typer.Exit(0)
