"""The report as one page: no script, nothing from elsewhere, every text escaped."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from pytest_regen.html import Child, Html, document, element
from pytest_regen.plurals import counted
from pytest_regen.pytest_plugin.reporting.page_parts import (
    cassette_boxes,
    cause_boxes,
    command_line,
    error_box,
    item_box,
    name_of,
    visible,
    warnings_list,
)
from pytest_regen.pytest_plugin.reporting.report import OUTCOMES, Json

__all__ = ["page_of"]

_STYLE: Final = Path(__file__).with_name("page.css")
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
        element("title", f"pytest-regen: {_in_short(report)}"),
        element("style", Html(style)),
    )
    body = (
        element("header", (_verdict(report), _banners(report), _shares(report), _spent(report))),
        element("main", (_next_box(report["run"]["next"]), list(_sections(report)))),
        element("footer", _facts(report)),
    )
    return document("en", head, body)


def _in_short(report: Json) -> str:
    totals = report["totals"]
    return ", ".join(f"{totals[one]} {one}" for one in OUTCOMES if totals[one]) or "nothing ran"


def _verdict(report: Json) -> Child:
    totals, run = report["totals"], report["run"]
    tone = next((one for one in OUTCOMES if totals[one]), "skipped")
    if report["collection_errors"]:
        tone = "failed"
    turns = "replaying only" if run["record"] == "none" else f"recording: {run['record']}"
    mode = element("p", f"{_MODES[run['mode']]}, {turns}")
    return (
        element("div", (element("p", "pytest-regen", class_="wordmark"), mode), class_="bar"),
        element("h1", _headline(report), class_=tone),
        element("p", " ".join(_more(report)), class_="more"),
    )


def _headline(report: Json) -> str:
    totals = report["totals"]
    items, failed, healed = totals["items"], totals["failed"], totals["regenerated"]
    if failed:
        return f"{failed} of {items} {'fails' if failed == 1 else 'fail'}"
    if report["collection_errors"]:
        return "Not everything could be collected"
    if not items:
        return "Nothing was checked"
    if totals["unfinished"]:
        return f"{totals['unfinished']} of {items} did not finish"
    if healed:
        return f"{_all(items)}, {healed} only after regeneration"
    return _all(items) if totals["passed"] == items else f"{totals['passed']} of {items} pass"


def _all(items: int) -> str:
    return "It passes" if items == 1 else f"All {items} pass"


def _more(report: Json) -> Iterator[str]:
    totals, run = report["totals"], report["run"]
    if not totals["items"]:
        yield "No type of a store ran, and no test that is marked regen or uses a cassette."
    elif totals["failed"] and totals["regenerated"]:
        yield f"{totals['regenerated']} passed only after regeneration."
    if totals["drifted"]:
        yield f"{counted(totals['drifted'], 'cassette')} drifted."
    because = f": {run['why_failed']}" if run["why_failed"] else ""
    yield visible(f"pytest exits with {run['exit_code']}{because}.")


def _banners(report: Json) -> Iterator[Child]:
    """Say what makes the report incomplete, or needs a footnote."""
    run = report["run"]
    if run["stopped"]:
        told = f"Stopped before the end: {visible(run['stopped'])}. This is what was known then."
        yield element("p", told, class_="banner bad")
    for note in run["notes"]:
        yield element("p", visible(note), class_="banner")
    if run["emulated"]:
        told = "Emulated: replies came from the emulator or its recordings, not from a model."
        yield element("p", told, class_="banner")


def _shares(report: Json) -> Iterator[Child]:
    """Show what became of the items, as a bar and in numbers."""
    totals = report["totals"]
    there = [one for one in OUTCOMES if totals[one]]
    widths = [max(_NARROWEST, _WIDTH * totals[one] // totals["items"]) for one in there]
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
        aria_label=_in_short(report),
    )
    always = [one for one in OUTCOMES if one != "unfinished" or totals[one]]
    numbers = [_number(totals[one], one, one) for one in always]
    for key, noun in (("warnings", "warning"), ("drifted", "drifted cassette")):
        numbers.append(_number(totals[key], noun if totals[key] == 1 else f"{noun}s", key))
    yield element("ul", numbers, class_="totals")


def _number(count: int, label: str, class_: str) -> Html:
    words = (element("b", f"{count:,}"), f" {label}")
    return element("li", words, class_=class_ if count else f"{class_} none")


def _spent(report: Json) -> Child:
    """Say what was asked of models; nothing, where nothing was."""
    totals = report["totals"]
    if not totals["calls"]:
        return None
    told = [
        (f"{totals['calls']:,}", "request" if totals["calls"] == 1 else "requests"),
        (f"{totals['tokens_in']:,}", "tokens in"),
        (f"{totals['tokens_out']:,}", "tokens out"),
        (f"{totals['cache_read']:,}", "read from the prompt cache"),
    ]
    if totals["cost_usd"] is not None:
        told.append((f"${totals['cost_usd']}", "for live requests, where the price is known"))
    return element(
        "dl",
        [element("div", (element("dt", key), element("dd", value))) for value, key in told],
        class_="spent",
    )


def _next_box(command: str) -> Child:
    if not command:
        return None
    return element("section", (element("h2", "Next"), command_line(command)), class_="next")


def _sections(report: Json) -> Iterator[Child]:
    """Yield what there is to read, what needs a person first."""
    items = report["items"]
    by_outcome = {one: [item for item in items if item["outcome"] == one] for one in OUTCOMES}
    errors = report["collection_errors"]
    boxes: Sequence[Child] = [error_box(one) for one in errors]
    yield _section("errors", "Not collected", len(errors), boxes)
    for outcome, title in (("failed", "Failing"), ("regenerated", "Regenerated")):
        found = by_outcome[outcome]
        boxes = [item_box(item, is_open=number < _OPEN) for number, item in enumerate(found)]
        yield _section(outcome, title, len(found), boxes)
    yield _names("unfinished", "Unfinished", by_outcome["unfinished"], is_open=True)
    warnings = [(item, one) for item in items for one in item["issues"]]
    warnings = [(item, one) for item, one in warnings if one["severity"] == "warning"]
    yield _section("warnings", "Warnings", len(warnings), warnings_list(warnings))
    notes = report["cassettes"]["notes"]
    told = [*cause_boxes(report["cassettes"]["causes"]), *cassette_boxes(notes)]
    yield _section("drifted", "Drift and recordings", len(notes), told)
    changed = report["run"]["changed"]
    files = element("ul", [element("li", visible(one)) for one in changed], class_="names")
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
    told = (
        ("record mode", run["record"]),
        ("model", run["model"] or "as stored"),
        ("calls of a test", f"up to {run['attempts']}"),
        ("token budget", "none" if run["budget"] is None else f"{run['budget']:,}"),
        ("CI", "yes" if run["ci"] else "no"),
        ("report format", str(report["version"])),
    )
    return element(
        "dl",
        [
            element("div", (element("dt", key), element("dd", visible(value))))
            for key, value in told
        ],
    )
