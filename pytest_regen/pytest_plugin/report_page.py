"""The report as one page: no script, nothing from elsewhere, every text escaped."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from textwrap import dedent
from typing import Final

from pytest_regen.html import Child, Html, document, element
from pytest_regen.pytest_plugin.report import OUTCOMES, Json, headline, in_short
from pytest_regen.text import plural

__all__ = [
    "cassette_boxes",
    "cause_boxes",
    "command_line",
    "error_box",
    "item_box",
    "name_of",
    "page_of",
    "visible",
    "warnings_list",
]


_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""What makes a text look like another one: control characters, and those that turn it around."""

_REASONS: Final = {
    "clean": "nothing is left to correct",
    "attempts": "still wrong after the attempts allowed",
    "no_progress": "the same errors came back",
    "unfixable": "no reply can correct it",
    "refused": "the model declined",
    "budget": "the token budget is spent",
    "transport": "the model could not be reached",
    "cassette_miss": "the recording has no answer",
}
_DIFF_LINES: Final = {"+": "add", "-": "del", "@": "hunk"}


def visible(text: object) -> str:
    """Return a text in which nothing hides: what has no shape of its own is spelled out."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", str(text))


def command_line(command: str) -> Html:
    """Return a command, ready to be copied; it may be prose, too."""
    return element("pre", element("code", visible(command)), class_="command")


def name_of(nodeid: str) -> Html:
    """Return a node id, its last part stressed."""
    place, separator, name = nodeid.rpartition("::")
    parts = (element("span", visible(place + separator)), element("b", visible(name)))
    return element("span", parts, class_="id")


def item_box(item: Json, *, is_open: bool) -> Html:
    """Return all that is known of a failing or regenerated item."""
    head = (name_of(item["id"]), element("span", _reason(item), class_="reason"))
    return element(
        "details",
        (element("summary", head), list(_body(item))),
        class_=f"item {item['outcome']}",
        open=is_open,
    )


def _reason(item: Json) -> str:
    """Return in a few words why an item is where it is."""
    heals = item["heals"]
    if item["outcome"] == "regenerated":
        pages = [page for heal in heals for page in heal["pages"]]
        return f"page {pages[0]}" if len(pages) == 1 else plural(len(pages), "page")
    reason = next((heal["stop_reason"] for heal in heals if heal["stop_reason"]), "")
    if reason:
        return visible(_REASONS.get(reason, reason))
    errors = _errors(item["issues"])
    codes = list(dict.fromkeys(error["code"] for error in errors if error["code"]))
    return visible(", ".join(codes[:3])) + (" …" if len(codes) > 3 else "")


def _errors(issues: Iterable[Json]) -> list[Json]:
    return [issue for issue in issues if issue["severity"] == "error"]


def _body(item: Json) -> Iterator[Child]:
    is_wrong = item["outcome"] == "failed"
    issues = _errors(item["issues"]) if is_wrong else []
    yield _issues("What is wrong", issues)
    for heal in item["heals"]:
        yield from _heal(item, heal, known=issues)
    if item["text"]:
        yield element(
            "details",
            (element("summary", "As pytest shows it"), _block(item["text"])),
            class_="text",
            open=is_wrong and not issues,
        )
    if item["next"]:
        yield (element("h3", "Next"), command_line(item["next"]))


def _issues(title: str, issues: Sequence[Json]) -> Child:
    if not issues:
        return None
    rows = [element("li", _issue(issue)) for issue in issues]
    return (element("h3", title), element("ul", rows, class_="issues"))


def _issue(issue: Json) -> Child:
    place = f"{issue['path']}:{issue['line']}" if issue["line"] else issue["path"]
    lines = visible(issue["message"])
    return (
        element("span", visible(issue["code"]), class_="code") if issue["code"] else None,
        # A test's own words are laid out as they are.
        element("span", lines, class_="message" if issue["code"] else "message words"),
        _detail(issue["detail"]) if issue["detail"] else None,
        element("span", visible(place), class_="place") if place else None,
    )


def _detail(text: str) -> Html:
    if "\n" in text:
        return _block(text)
    return element("span", visible(text), class_="detail")


def _heal(item: Json, heal: Json, known: Sequence[Json]) -> Iterator[Child]:
    """Yield what was done about a type, which need not be the item itself."""
    before = [error for error in _errors(heal["findings"]) if error not in known]
    yield _issues("What was wrong before", before)
    of = () if heal["unit"] == item["id"] else (" of ", name_of(heal["unit"]))
    yield element("h3", ("Regeneration", of))
    yield element("p", visible(" · ".join(_heal_facts(heal))), class_="facts")
    if heal["why"]:
        yield element("p", visible(heal["why"]), class_="why")
    if heal["diff"]:
        yield element("pre", element("code", _diff(heal["diff"])), class_="diff")


def _heal_facts(heal: Json) -> Iterator[str]:
    pages = heal["pages"]
    named = f"page {pages[0]}" if len(pages) == 1 else f"pages {', '.join(map(str, pages))}"
    match heal["outcome"]:
        case "planned":
            yield f"would ask {named}" if pages else "would ask nothing"
            yield f"about {heal['estimate']:,} tokens in"
            return
        case "skipped":
            yield "not regenerated"
        case "failed":
            yield "regenerated, and still failing" if pages else "nothing better came back"
        case _:
            yield f"regenerated {named}" if pages else "regenerated"
    if heal["attempts"] > 1:
        yield f"{plural(heal['attempts'], 'call')} of the test"
    if heal["calls"]:
        yield plural(heal["calls"], "request")
        yield f"{heal['tokens_in']:,} tokens in, {heal['tokens_out']:,} out"
    if heal["by_template"]:
        yield "by the template, without a model"
    if heal["cache_read"]:
        yield f"{heal['cache_read']:,} read from the prompt cache"
    if heal["cost_usd"] is not None:
        yield f"${heal['cost_usd']}"
    if heal["emulated"]:
        yield "emulated"


def _diff(text: str) -> Iterator[Child]:
    for line in text.removesuffix("\n").split("\n"):
        is_head = line.startswith(("--- ", "+++ "))
        kind = "head" if is_head else _DIFF_LINES.get(line[:1], "same")
        # The line end is kept for whoever copies the diff.
        yield element("span", f"{visible(line.removesuffix(chr(13)))}\n", class_=kind)


def _block(text: str) -> Html:
    return element("pre", element("code", visible(text)))


def warnings_list(warnings: Iterable[tuple[Json, Json]]) -> Html:
    """Return warnings, each with its item."""
    rows = [element("li", (_issue(issue), name_of(item["id"]))) for item, issue in warnings]
    return element("ul", rows, class_="issues")


def cause_boxes(causes: Iterable[Json]) -> Iterator[Html]:
    """Yield what several tests have in common: a box for each cause, with its tests."""
    for cause in causes:
        tests = cause["tests"]
        if len(tests) > 1:
            kind = element("span", visible(cause["kind"]), class_="code")
            text = element("span", visible(cause["cause"]), class_="message")
            count = element("span", plural(len(tests), "test"), class_="reason")
            rows = [element("li", name_of(test)) for test in tests]
            content = (element("summary", (kind, text, count)), element("ul", rows, class_="names"))
            yield element("details", content, class_="item drifted")


def cassette_boxes(notes: Sequence[Json]) -> Iterator[Html]:
    """Yield the notes about cassettes: a box for each one that a test uses."""
    used = [note for note in notes if note["test"]]
    for test, cassette in dict.fromkeys((note["test"], note["cassette"]) for note in used):
        mine = [note for note in used if (note["test"], note["cassette"]) == (test, cassette)]
        yield _cassette_box(test, cassette, mine)
    for note in notes:
        if not note["test"]:
            text = f"{note['what']}; {note['next']}" if note["next"] else note["what"]
            place = element("span", visible(note["cassette"]), class_="place")
            kind = element("span", visible(note["kind"]), class_="code")
            yield element("p", (kind, visible(text), place), class_="item drifted")


def _cassette_box(test: str, cassette: str, notes: Sequence[Json]) -> Html:
    failed = any(note["failed"] for note in notes)
    reason = element("span", "failed the test", class_="reason") if failed else None
    commands = dict.fromkeys(note["next"] for note in notes if note["next"])
    content = (
        element("summary", (name_of(test), reason)),
        element("ul", [element("li", _notes(note)) for note in notes], class_="issues"),
        element("p", visible(cassette), class_="place"),
        (element("h3", "Next"), [command_line(command) for command in commands])
        if commands
        else None,
    )
    kind = "failed" if failed else "drifted"
    return element("details", content, class_=f"item {kind}", open=True)


def _notes(note: Json) -> Child:
    first, _, rest = note["what"].partition("\n")
    return (
        element("span", visible(note["kind"]), class_="code"),
        element("span", visible(first), class_="message"),
        _block(dedent(rest)) if rest else None,
    )


def error_box(error: Json) -> Html:
    """Return what could not be collected."""
    head = element("summary", element("b", visible(error["id"]), class_="id"))
    return element("details", (head, _block(error["text"])), class_="item failed", open=True)


_STYLE: Final = Path(__file__).with_name("report_page.css")
_OPEN: Final = 12
"""Boxes of a section that are open at first; more would be a wall."""
_MODES: Final = {
    "gate": "Gate",
    "heal": "Healing",
    "dry_run": "Dry run",
    "collect": "Collecting only",
}
_WIDTH: Final = 1000
"""Units of the bar that shows the shares."""
_NARROWEST: Final = 12
"""Units of a share, however small: one of a thousand is to be seen too."""


def page_of(report: Json) -> str:
    """Return the page of a report, as ``report_of`` made it."""
    style = _STYLE.read_text("utf-8")
    # Even if a text got through as markup, a browser would run and load nothing.
    digest = b64encode(sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = (
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"pytest-regen: {in_short(report['totals'])}"),
        element("style", Html(style)),
    )
    body = (
        element("header", (_verdict(report), _banners(report), _shares(report), _costs(report))),
        element("main", (_next_box(report["run"]["next"]), list(_sections(report)))),
        element("footer", _facts(report)),
    )
    return document("en", head, body)


def _verdict(report: Json) -> Child:
    totals, run = report["totals"], report["run"]
    tone = next((outcome for outcome in OUTCOMES if totals[outcome]), "skipped")
    if report["collection_errors"]:
        tone = "failed"
    turns = "replaying only" if run["record"] == "none" else f"recording: {run['record']}"
    mode = element("p", f"{_MODES[run['mode']]}, {turns}")
    return (
        element("div", (element("p", "pytest-regen", class_="wordmark"), mode), class_="bar"),
        element("h1", headline(report), class_=tone),
        element("p", " ".join(_more(report)), class_="more"),
    )


def _more(report: Json) -> Iterator[str]:
    totals, run = report["totals"], report["run"]
    if not totals["items"]:
        yield "No type of a store ran, and no test that is marked regen or uses a cassette."
    elif totals["failed"] and totals["regenerated"]:
        yield f"{totals['regenerated']} passed only after regeneration."
    if totals["drifted"]:
        yield f"{plural(totals['drifted'], 'cassette')} drifted."
    because = f": {run['why_failed']}" if run["why_failed"] else ""
    yield visible(f"pytest exits with {run['exit_code']}{because}.")


def _banners(report: Json) -> Iterator[Child]:
    """Say what makes the report incomplete, or needs a footnote."""
    run = report["run"]
    if run["stopped"]:
        text = f"Stopped before the end: {visible(run['stopped'])}. This is what was known then."
        yield element("p", text, class_="banner bad")
    for note in run["notes"]:
        yield element("p", visible(note), class_="banner")
    if run["emulated"]:
        text = "Emulated: replies came from the emulator or its recordings, not from a model."
        yield element("p", text, class_="banner")


def _shares(report: Json) -> Iterator[Child]:
    """Show what became of the items, as a bar and in numbers."""
    totals = report["totals"]
    there = [outcome for outcome in OUTCOMES if totals[outcome]]
    widths = [max(_NARROWEST, _WIDTH * totals[store] // totals["items"]) for store in there]
    starts = [sum(widths[:number]) for number in range(len(widths))]
    parts = [
        element("rect", class_=one, x=start, width=width, height=1)
        for one, start, width in zip(there, starts, widths, strict=True)
    ]
    box = f"0 0 {sum(widths) or _WIDTH} 1"
    yield element(
        "svg",
        parts,
        class_="shares",
        viewBox=box,
        preserveAspectRatio="none",
        role="img",
        aria_label=in_short(report["totals"]),
    )
    always = [outcome for outcome in OUTCOMES if outcome != "unfinished" or totals[outcome]]
    numbers = [_number(totals[alway], alway, alway) for alway in always]
    for key, noun in (("warnings", "warning"), ("drifted", "drifted cassette")):
        numbers.append(_number(totals[key], noun if totals[key] == 1 else f"{noun}s", key))
    yield element("ul", numbers, class_="totals")


def _number(count: int, label: str, class_: str) -> Html:
    words = (element("b", f"{count:,}"), f" {label}")
    return element("li", words, class_=class_ if count else f"{class_} none")


def _costs(report: Json) -> Child:
    """Say what was asked of models; nothing, where nothing was."""
    totals = report["totals"]
    if not totals["calls"]:
        return None
    figures = [
        (f"{totals['calls']:,}", "request" if totals["calls"] == 1 else "requests"),
        (f"{totals['tokens_in']:,}", "tokens in"),
        (f"{totals['tokens_out']:,}", "tokens out"),
        (f"{totals['cache_read']:,}", "read from the prompt cache"),
    ]
    if totals["cost_usd"] is not None:
        figures.append((f"${totals['cost_usd']}", "for live requests, where the price is known"))
    return element(
        "dl",
        [element("div", (element("dt", key), element("dd", value))) for value, key in figures],
        class_="spent",
    )


def _next_box(command: str) -> Child:
    if not command:
        return None
    return element("section", (element("h2", "Next"), command_line(command)), class_="next")


def _sections(report: Json) -> Iterator[Child]:
    """Yield what there is to read, what needs a person first."""
    items = report["items"]
    by_outcome = {
        outcome: [item for item in items if item["outcome"] == outcome] for outcome in OUTCOMES
    }
    errors = report["collection_errors"]
    boxes: Sequence[Child] = [error_box(error) for error in errors]
    yield _section("errors", "Not collected", len(errors), boxes)
    for outcome, title in (("failed", "Failing"), ("regenerated", "Regenerated")):
        found = by_outcome[outcome]
        boxes = [item_box(item, is_open=number < _OPEN) for number, item in enumerate(found)]
        yield _section(outcome, title, len(found), boxes)
    yield _names("unfinished", "Unfinished", by_outcome["unfinished"], is_open=True)
    warnings = [(item, issue) for item in items for issue in item["issues"]]
    warnings = [(item, issue) for item, issue in warnings if issue["severity"] == "warning"]
    yield _section("warnings", "Warnings", len(warnings), warnings_list(warnings))
    notes = report["cassettes"]["notes"]
    boxes = [*cause_boxes(report["cassettes"]["causes"]), *cassette_boxes(notes)]
    yield _section("drifted", "Drift and recordings", len(notes), boxes)
    changed = report["run"]["changed"]
    files = element("ul", [element("li", visible(path)) for path in changed], class_="names")
    yield _section("changed", "Changed files", len(changed), files)
    yield _names("passed", "Passed", by_outcome["passed"])
    yield _names("skipped", "Skipped", by_outcome["skipped"])


def _section(id_: str, title: str, count: int, content: Child, *, is_open: bool = True) -> Child:
    if not count:
        return None
    heading = (element("h2", title), element("span", f"{count:,}", class_="count"))
    return element(
        "details", (element("summary", heading), content), id=id_, class_="section", open=is_open
    )


def _names(id_: str, title: str, items: Sequence[Json], *, is_open: bool = False) -> Child:
    rows = []
    for item in items:
        why = item["text"] if item["outcome"] == "skipped" else ""
        rows.append(element("li", (name_of(item["id"]), f" {visible(why)}" if why else None)))
    content = element("ul", rows, class_="names")
    return _section(id_, title, len(items), content, is_open=is_open)


def _facts(report: Json) -> Child:
    run = report["run"]
    rows = (
        ("record mode", run["record"]),
        ("model", run["model"] or "as stored"),
        ("calls of a test", f"up to {run['attempts']}"),
        ("token budget", "none" if run["budget"] is None else f"{run['budget']:,}"),
        ("CI", "yes" if run["ci"] else "no"),
        ("sandbox", run["sandbox"] or "not used"),
        ("report format", str(report["version"])),
    )
    return element(
        "dl",
        [
            element("div", (element("dt", key), element("dd", visible(value))))
            for key, value in rows
        ],
    )
