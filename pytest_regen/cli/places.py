"""What commands ask of a place, and what they say of it, whatever place it is."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regen.cli import output
from pytest_regen.cli.output import say
from pytest_regen.cli.project import Project
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.errors import StaleStoreError, UsageError
from pytest_regen.regeneration import policies, verbs
from pytest_regen.regeneration.places import Advice, Place, View
from pytest_regen.regeneration.queue import Flow
from pytest_regen.regeneration.values import TurnSettings
from pytest_regen.regeneration.verbs import Result
from pytest_regen.text import plural, shorten
from pytest_regen.units import naming
from pytest_regen.validation.issues import Issue

_ALIKE: Final = 8
"""Units that are listed with the same words before the other ones are counted."""
_MOST_TESTS: Final = 3
"""Modules of tests that a command names before it runs all."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a command asks for, and what may replace what."""

    turns: TurnOptions
    verb: str
    """``generate``: what is missing or stale; ``regenerate``: whatever is named."""
    names: Sequence[str] | None = None
    """The units; ``None`` for all."""
    pages: Sequence[int] | None = None
    """Of the one unit that is named."""
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


def chosen(place: Place[Any], view: View, request: Request) -> list[str]:
    """Return the units that a request is about.

    Raises:
        UsageError: there is no such unit, or a page is named and not one unit.
    """
    words = request.names
    if request.pages and (request.of_several or words is None or len(words) != 1):
        raise UsageError(
            f"--page {request.pages[0]} does not say of which {place.noun}",
            why=f"a page belongs to one {place.noun} of one {place.group.removesuffix('s')}",
            hint=f"name it with {place.option}, one of: {', '.join(view.names)}",
        )
    names = list(view.names) if words is None else []
    for word in words or ():
        # Of several places each has some of the units; one that has none says so.
        with suppress(*[UsageError] if request.of_several else []):
            names.append(view.resolve(word))
    if words and not names:
        names = [view.resolve(words[0])]
    if request.verb == "generate" and not request.force:
        names = [name for name in names if view.needs_answer(name)]
    if request.from_errors:
        names = [name for name in names if view.score(name).errors]
    return names


def asked_pages(place: Place[Any], view: View, request: Request) -> dict[tuple[str, int], None]:
    """Return the pages that are asked first.

    Raises:
        UsageError: as by ``chosen``, or a unit has no such page.
    """
    names = chosen(place, view, request)
    pages: dict[str, Iterable[int]] = {**verbs.targets(view, dict.fromkeys(names, request.pages))}
    for name in names:
        if request.from_errors:
            errors = policies.fixable_issues(view.issues(name))
            pages[name] = policies.pages_at_fault(errors, view.page_count(name))
        elif request.verb == "generate" and not request.force:
            # Only what is missing, because the other pages are paid for.
            pages[name] = view.missing(name) or pages[name]
    return {(name, page): None for name in names for page in pages[name]}


def old_prompts(view: View, names: Iterable[str]) -> list[str]:
    """Return the units whose prompts are older than their document."""
    return [name for name in dict.fromkeys(names) if view.has_old_prompt(name)]


def refuse_old_prompts(place: Place[Any], request: Request) -> None:
    """Ask whether to go on with prompts made for another version of the document.

    Raises:
        StaleStoreError: there is no terminal to ask, or the answer is no.
    """
    if request.ignore_stale or request.verb != "regenerate":
        return
    view = place.open()
    old = old_prompts(view, (name for name, _ in asked_pages(place, view, request)))
    names = f"{plural(len(old), place.noun)}: {shorten(old)}"
    # Of several nobody is asked, because one question would hold up all of them.
    if old and output.is_terminal() and not request.of_several:
        say(f"warning: made for another version of the document: {names}", "yellow")
        if output.confirm("Regenerate from the old prompts all the same?"):
            return
    if old:
        raise StaleStoreError(
            f"{place.here} is stale, {names}",
            why="the stored prompts were made from another IR than the document gives now",
            hint="update the store with pytest-regen generate, or go on with --ignore-stale",
        )


def asking_steps(place: Place[Any], request: Request, settings: TurnSettings) -> Flow[Result]:
    """Ask for units of a place."""
    # Of one place this was asked before, because a question would break the line of progress.
    if request.of_several:
        refuse_old_prompts(place, request)
    view = place.open()
    names = chosen(place, view, request)
    by_template = settings.keeps_template
    pages = asked_pages(place, view, request)
    # Before an edit is put back for the first page, because a missing key would stop it there.
    if settings.ready and not all(by_template and view.is_by_template(name) for name, _ in pages):
        settings.ready()
    options: dict[str, Any] = {"settings": settings, "attempts": request.turns.replies()}
    if request.verb == "generate":
        flow = verbs.generate_steps(place, request.names, force=request.force, **options)
        return (yield from flow)
    options["accept_any"] = request.accept_any
    options["discard_edits"] = request.discard_edits
    if request.from_errors:
        return (yield from verbs.heal_steps(place, names, **options))
    targets = dict.fromkeys(names, request.pages)
    notes = {name: [request.correction] for name in names} if request.correction else None
    return (yield from verbs.regenerate_steps(place, targets, corrections=notes, **options))


# In words


def command(verb: str, place: Place[Any], name: str | None = None, *options: str) -> str:
    """Return a command about a place, or about one of its units."""
    words = [] if name is None else [place.option, name]
    return naming.command(verb, place.here, None, *words, *options)


def advice_to_test(
    project: Project, place: Place[Any], view: View, names: Iterable[str] = ()
) -> Advice:
    """Return the command that tests units: their items, and the tests that are marked for them."""
    there = [name for name in names if view.output(name, 1) is not None]
    tests = (
        [] if place.has_pages else project.tests_of(naming.unit_id(place.place, n) for n in there)
    )
    # Of one whose own item runs nothing, any test may be the one that does.
    is_elsewhere = len(tests) > _MOST_TESTS or (not tests and any(map(view.is_only_read, there)))
    return Advice("pytest" if is_elsewhere else naming.tests_command(place.here, *tests))


def label(place: Place[Any], name: str, page: int) -> str:
    """Return how one output is named."""
    return f"{name} page {page}" if place.has_pages else name


def keys(place: Place[Any], name: str, page: int) -> dict[str, Any]:
    """Return how JSON names one output."""
    return {"type_name": name, "page": page} if place.has_pages else {"name": name}


def tell_units(
    place: Place[Any], verb: str, pages: Iterable[tuple[str, int]], style: str = ""
) -> None:
    """Tell what became of outputs: pages one by one, of others how many there are."""
    labels = [label(place, *page) for page in pages]
    if place.has_pages:
        for text in labels:
            output.fact(verb, text, style)
    elif labels:
        output.fact(verb, f"{plural(len(labels), place.noun)}: {shorten(labels)}", style)


def tell_only_read(project: Project, place: Place[Any], view: View, names: Iterable[str]) -> None:
    """Tell of which functions pytest runs nothing, and what changes that."""
    names = [name for name in names if view.is_only_read(name)]
    names = [n for n in names if not project.tests_of([naming.unit_id(place.place, n)])]
    if not names:
        return
    verb, them = ("has", "it") if len(names) == 1 else ("have", "them")
    mark = f'@pytest.mark.regen(unit="{naming.unit_id(place.place, names[0])}")'
    no_example = f"{verb} no example in the docstring: pytest only reads {them}"
    say(f"{shorten(names)} {no_example}", "yellow")
    say(f"    to have {them} run, add an example (>>>), or mark a test with {mark}")


def tell_issues(issues: Iterable[Issue], source: str) -> None:
    """List issues, one line each; what many units have in common is counted after a few."""
    counts: Counter[tuple[str, str]] = Counter()
    # Errors before warnings, because the exit code is theirs.
    for issue in sorted(issues, key=lambda issue: (issue.severity, issue.line or 0)):
        key = issue.code, issue.message
        counts[key] += 1
        if counts[key] > _ALIKE:
            continue
        at = Path(source).with_name(issue.file).as_posix() if issue.file else source
        where = f"{at}:{issue.line}" if issue.line else at
        is_error = issue.severity == "error"
        mark = "" if is_error else "warning:"
        name = f"{issue.type_name or ''}{f' page {issue.page}' if issue.page else ''}"
        words = [mark, name, f"[{issue.code}]", issue.message]
        text = " ".join([f"{where}:", *filter(None, words)])
        say(text, "red" if is_error else "yellow")
        for line in (issue.detail or "").splitlines():
            say(f"    {line}")
    for (code, message), count in counts.items():
        if count > _ALIKE:
            say(f"{source}: {count - _ALIKE:,} more [{code}] {message}")


def tell_by_unit(place: Place[Any], units: Mapping[str, Sequence[Issue]]) -> None:
    """List issues below the unit that they are about; clean units are counted."""
    wrong = {name: issues for name, issues in units.items() if issues}
    for name, issues in wrong.items():
        counts = Counter(sorted(issue.severity for issue in issues))
        say(f"{name}: {', '.join(plural(count, word) for word, count in counts.items())}")
        tell_issues(issues, place.source)
    if clean := len(units) - len(wrong):
        say(f"{plural(clean, place.noun)} clean")


def advise(advice: Advice | None) -> None:
    """Tell what to do next, where there is anything."""
    if advice:
        output.next_step(*advice)
