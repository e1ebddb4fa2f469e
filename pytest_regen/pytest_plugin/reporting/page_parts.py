"""The boxes of the page: an item, the work on it, a diff, what is to be told of a cassette."""

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import dedent
from typing import Final

from pytest_regen.html import Child, Html, element
from pytest_regen.plurals import counted
from pytest_regen.pytest_plugin.reporting.report import Json

__all__ = [
    "cassette_boxes",
    "cause_boxes",
    "command_line",
    "error_box",
    "item_box",
    "name_of",
    "visible",
    "warnings_list",
]

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""What makes a text look like another one: control characters, and those that turn it around."""

_REASONS: Final = {
    "clean": "nothing is left to mend",
    "attempts": "still wrong after the attempts allowed",
    "no_progress": "the same errors came back",
    "unfixable": "no reply can mend it",
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
        return f"page {pages[0]}" if len(pages) == 1 else counted(len(pages), "page")
    reason = next((heal["stop_reason"] for heal in heals if heal["stop_reason"]), "")
    if reason:
        return visible(_REASONS.get(reason, reason))
    errors = _errors(item["issues"])
    codes = list(dict.fromkeys(one["code"] for one in errors if one["code"]))
    return visible(", ".join(codes[:3])) + (" …" if len(codes) > 3 else "")  # noqa: PLR2004


def _errors(issues: Iterable[Json]) -> list[Json]:
    return [one for one in issues if one["severity"] == "error"]


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
    rows = [element("li", _issue(one)) for one in issues]
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
    before = [one for one in _errors(heal["findings"]) if one not in known]
    yield _issues("What was wrong before", before)
    of = () if heal["unit"] == item["id"] else (" of ", name_of(heal["unit"]))
    yield element("h3", ("Regeneration", of))
    yield element("p", visible(" · ".join(_facts(heal))), class_="facts")
    if heal["why"]:
        yield element("p", visible(heal["why"]), class_="why")
    if heal["diff"]:
        yield element("pre", element("code", _diff(heal["diff"])), class_="diff")


def _facts(heal: Json) -> Iterator[str]:
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
        yield f"{counted(heal['attempts'], 'call')} of the test"
    if heal["calls"]:
        yield counted(heal["calls"], "request")
        yield f"{heal['tokens_in']:,} tokens in, {heal['tokens_out']:,} out"
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
    """Return warnings, each with the item that told it."""
    rows = [element("li", (_issue(one), name_of(item["id"]))) for item, one in warnings]
    return element("ul", rows, class_="issues")


def cause_boxes(causes: Iterable[Json]) -> Iterator[Html]:
    """Yield what several tests have in common: a box for each cause, with its tests."""
    for one in causes:
        tests = one["tests"]
        if len(tests) > 1:
            kind = element("span", visible(one["kind"]), class_="code")
            said = element("span", visible(one["cause"]), class_="message")
            count = element("span", counted(len(tests), "test"), class_="reason")
            rows = [element("li", name_of(test)) for test in tests]
            content = (element("summary", (kind, said, count)), element("ul", rows, class_="names"))
            yield element("details", content, class_="item drifted")


def cassette_boxes(notes: Sequence[Json]) -> Iterator[Html]:
    """Yield what is to be told of cassettes: a box for each one that a test uses."""
    used = [note for note in notes if note["test"]]
    for test, cassette in dict.fromkeys((note["test"], note["cassette"]) for note in used):
        mine = [one for one in used if (one["test"], one["cassette"]) == (test, cassette)]
        yield _cassette_box(test, cassette, mine)
    for note in notes:
        if not note["test"]:
            said = f"{note['what']}; {note['next']}" if note["next"] else note["what"]
            place = element("span", visible(note["cassette"]), class_="place")
            kind = element("span", visible(note["kind"]), class_="code")
            yield element("p", (kind, visible(said), place), class_="item drifted")


def _cassette_box(test: str, cassette: str, notes: Sequence[Json]) -> Html:
    failed = any(note["failed"] for note in notes)
    reason = element("span", "failed the test", class_="reason") if failed else None
    commands = dict.fromkeys(note["next"] for note in notes if note["next"])
    content = (
        element("summary", (name_of(test), reason)),
        element("ul", [element("li", _told(note)) for note in notes], class_="issues"),
        element("p", visible(cassette), class_="place"),
        (element("h3", "Next"), [command_line(one) for one in commands]) if commands else None,
    )
    kind = "failed" if failed else "drifted"
    return element("details", content, class_=f"item {kind}", open=True)


def _told(note: Json) -> Child:
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
