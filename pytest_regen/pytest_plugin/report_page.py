"""The report as one page: no script, nothing from elsewhere, every text escaped."""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from pytest_regen.html import Child, Html, document, element
from pytest_regen.pytest_plugin.report import OUTCOMES, Json, headline, in_short
from pytest_regen.pytest_plugin.report_boxes import (
    Boxes,
    cassette_boxes,
    cause_boxes,
    command_line,
    error_box,
    name_of,
)
from pytest_regen.text import plural, visible

_STYLE: Final = Path(__file__).with_name("report_page.css")
_KINDS: Final = {
    "types": "Types",
    "functions": "Functions",
    "translations": "Translations",
    "sessions": "Sessions",
    "tests": "Tests",
}
_CACHE: Final = {
    "read": "read from the cache",
    "written": "written to the cache",
    "input": "other input",
    "output": "output",
}
"""What the prompt cache did with tokens; the class of a bar's part, and words."""
_WEAKENED: Final = "WEAKENED"
_TALK: Final = 2_000_000
"""Characters of conversations in one page."""
_UNITS: Final = 8
"""Units whose tokens are shown as bars."""
_TABLE_ROWS: Final = 500
_GROUPED: Final = 48
"""Closed boxes of a section that still stand one below the other."""
_MANY: Final = 100
"""Rows of a list that is open at first."""
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
    overview = [_kinds(report["kinds"]), _tokens(report)]
    body = (
        element("header", (_verdict(report), _banners(report), _shares(report))),
        element(
            "main",
            (
                _next_box(report["run"]["next"]),
                element("div", overview, class_="overview") if any(overview) else None,
                list(_sections(report)),
            ),
        ),
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
    """Show what became of the items, as a bar and in numbers that lead there."""
    totals = report["totals"]
    there = {outcome: totals[outcome] for outcome in OUTCOMES if totals[outcome]}
    yield _bar(there, label=in_short(totals), class_="shares")
    always = [outcome for outcome in OUTCOMES if outcome != "unfinished" or totals[outcome]]
    numbers = [_number(totals[outcome], outcome, outcome) for outcome in always]
    for key, noun in (("warnings", "warning"), ("drifted", "drifted cassette")):
        numbers.append(_number(totals[key], noun if totals[key] == 1 else f"{noun}s", key))
    yield element("ul", numbers, class_="totals")


def _bar(parts: Mapping[str, int], *, label: str, class_: str, scale: int = 0) -> Html:
    """Return a bar whose parts are as wide as their numbers are large.

    Args:
        parts: numbers by the class that gives them their colour.
        label: the same in words.
        class_: of the bar.
        scale: what the whole width stands for; by default the sum of the parts.
    """
    there = {name: number for name, number in parts.items() if number}
    total = max(scale, sum(there.values()), 1)
    widths = [max(_NARROWEST, _WIDTH * number // total) for number in there.values()]
    starts = [sum(widths[:number]) for number in range(len(widths))]
    rects = [
        element("rect", class_=name, x=start, width=width, height=1)
        for name, start, width in zip(there, starts, widths, strict=True)
    ]
    whole = max(sum(widths), _WIDTH if scale else 0) or _WIDTH
    return element(
        "svg",
        rects,
        class_=class_,
        viewBox=f"0 0 {whole} 1",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def _number(count: int, label: str, class_: str) -> Html:
    words: Child = (element("b", f"{count:,}"), f" {label}")
    if count:
        words = element("a", words, href=f"#{class_}")
    return element("li", words, class_=class_ if count else f"{class_} none")


# What was checked, and what it took


def _kinds(kinds: Sequence[Json]) -> Child:
    """Return how the types, units, sessions and tests stand, kind by kind."""
    if not kinds:
        return None
    rows = []
    for kind in kinds:
        outcomes = {outcome: kind[outcome] for outcome in OUTCOMES if kind[outcome]}
        words = [f"{count:,} {outcome}" for outcome, count in outcomes.items()]
        words += [f"{count:,} {state}" for state, count in kind["states"].items()]
        cells = (
            element("th", (_KINDS.get(kind["kind"], visible(kind["kind"])),), scope="row"),
            element("td", f"{kind['items']:,}", class_="amount"),
            element(
                "td",
                (
                    _bar(outcomes, label=in_short(kind), class_="shares small"),
                    element("span", _joined(words), class_="words-of"),
                ),
            ),
        )
        rows.append(element("tr", cells))
    titles = ("Kind", "Items", "State")
    head = element("tr", [element("th", title, scope="col") for title in titles])
    table = element("table", (element("thead", head), element("tbody", rows)), class_="kinds")
    return element(
        "section", (element("h2", "What was checked"), table), aria_label="What was checked"
    )


def _joined(words: Sequence[str]) -> Iterator[Child]:
    """Yield words with a dot between them; a line ends only there."""
    for number, word in enumerate(words):
        yield element("span", f"{word} ·" if number < len(words) - 1 else word)
        yield " "


def _tokens(report: Json) -> Child:
    """Return the tokens by what the prompt cache did, as bars and as a table."""
    totals = report["totals"]
    if not totals["calls"]:
        return None
    heals = [heal for item in report["items"] for heal in item["heals"] if heal["calls"]]
    heals.sort(key=lambda heal: (-sum(_states(heal).values()), heal["unit"]))
    whole = _states(totals)
    legend = [
        element(
            "li",
            (
                element("span", "", class_=f"dot {name}"),
                element("b", f"{whole[name]:,}"),
                f" {words}",
            ),
        )
        for name, words in _CACHE.items()
    ]
    most = max(sum(_states(heal).values()) for heal in heals)
    rows = [
        element(
            "li",
            (
                name_of(heal["unit"]),
                element("span", f"{sum(_states(heal).values()):,}", class_="amount"),
                _bar(_states(heal), label=_in_words(heal), class_="tokens", scale=most),
            ),
        )
        for heal in heals[:_UNITS]
    ]
    more = len(heals) - len(rows)
    rest = element("p", f"… and {more:,} more in the table", class_="facts")
    price = totals["cost_usd"]
    cost = f", ${price} for live requests whose price is known" if price is not None else ""
    content = (
        element("h2", "Tokens"),
        element("p", f"{plural(totals['calls'], 'request')}{cost}", class_="facts"),
        _bar(whole, label=_in_words(totals), class_="tokens whole"),
        element("ul", legend, class_="legend"),
        element("ul", rows, class_="units") if len(heals) > 1 else None,
        rest if more > 0 else None,
        _token_table(heals, totals),
    )
    return element("section", content, aria_label="Tokens")


def _states(of: Json) -> dict[str, int]:
    """Return tokens by what the prompt cache did, as the legend names them."""
    return {
        "read": of["cache_read"],
        "written": of["cache_write"],
        "input": of["tokens_in"] - of["cache_write"],
        "output": of["tokens_out"],
    }


def _in_words(of: Json) -> str:
    states = _states(of)
    return ", ".join(f"{states[name]:,} {words}" for name, words in _CACHE.items())


def _token_table(heals: Sequence[Json], totals: Json) -> Html:
    titles = ("Unit", *(words.capitalize() for words in _CACHE.values()), "Total")
    head = element("tr", [element("th", title, scope="col") for title in titles])
    shown = heals[:_TABLE_ROWS]

    def row(name: Child, of: Json) -> Html:
        states = _states(of)
        numbers = (*states.values(), sum(states.values()))
        cells = [element("td", f"{number:,}", class_="amount") for number in numbers]
        return element("tr", (element("th", name, scope="row"), cells))

    rows = [row(name_of(heal["unit"]), heal) for heal in shown]
    left_out = len(heals) - len(shown)
    note = f"{left_out:,} more units are in the JSON report." if left_out else ""
    table = element(
        "table",
        (
            element("thead", head),
            element("tbody", rows),
            element("tfoot", row("All", totals)),
        ),
    )
    # It scrolls by itself, by keys too.
    region = element("div", table, class_="wide", tabindex=0, role="region", aria_label="Tokens")
    content = (element("summary", "As a table"), region, element("p", note) if note else None)
    return element("details", content, class_="text")


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
    made = Boxes(report["links"].get, budget=_TALK)
    boxes: Sequence[Child] = [error_box(error) for error in errors]
    yield _section("errors", "Not collected", len(errors), boxes)
    yield _waiting(report)
    for outcome, title in (("failed", "Failing"), ("regenerated", "Regenerated")):
        found = by_outcome[outcome]
        yield _section(outcome, title, len(found), [_codes(found, made), *_boxes(found, made)])
    weaker = list(_weakened(items))
    yield _section("weakened", "Weakened", len(weaker), made.weakened(weaker))
    yield _names("unfinished", "Unfinished", by_outcome["unfinished"], is_open=True)
    warnings = [(item, issue) for item in items for issue in item["issues"]]
    warnings = [(item, issue) for item, issue in warnings if issue["severity"] == "warning"]
    is_short = len(warnings) <= _MANY
    listed = made.warnings(warnings)
    yield _section("warnings", "Warnings", len(warnings), listed, is_open=is_short)
    notes = report["cassettes"]["notes"]
    boxes = [*cause_boxes(report["cassettes"]["causes"]), *cassette_boxes(notes)]
    yield _section("drifted", "Drift and recordings", len(notes), boxes)
    changed = report["run"]["changed"]
    files = element("ul", [element("li", visible(path)) for path in changed], class_="names")
    yield _section("changed", "Changed files", len(changed), files)
    yield _names("passed", "Passed", by_outcome["passed"])
    yield _names("skipped", "Skipped", by_outcome["skipped"])


def _codes(items: Sequence[Json], made: Boxes) -> Child:
    """Return how many of many items have which code, the most frequent first."""
    if len(items) <= _OPEN:
        return None
    counts = Counter(
        code
        for item in items
        for code in {issue["code"] for issue in item["issues"] if issue["severity"] == "error"}
        if code
    )
    rows = [
        element("li", (made.code(code), f"{count:,}")) for code, count in counts.most_common(_OPEN)
    ]
    return element("ul", rows, class_="codes") if rows else None


def _boxes(items: Sequence[Json], made: Boxes) -> Iterator[Child]:
    """Yield a box for each item: the first ones open, of very many the rest by their file."""
    for item in items[:_OPEN]:
        yield made.item(item, is_open=True)
    rest = items[_OPEN:]
    if len(rest) <= _GROUPED:
        yield from (made.item(item, is_open=False) for item in rest)
        return
    by_place: dict[str, list[Json]] = {}
    for item in rest:
        by_place.setdefault(item["id"].partition("::")[0], []).append(item)
    for place, group in by_place.items():
        head = (
            element("h3", element("b", visible(place)), class_="id"),
            element("span", plural(len(group), "more item"), class_="reason"),
        )
        boxes = [made.item(item, is_open=False) for item in group]
        yield element("details", (element("summary", head), boxes), class_="group")


def _waiting(report: Json) -> Child:
    """Return the candidates that wait for a person, and the command that shows them."""
    pending = report["run"]["pending"]
    if not pending:
        return None
    units = {
        id_: heal["unit"]
        for item in report["items"]
        for heal in item["heals"]
        for id_ in heal["pending"]
    }
    rows = [
        element("li", (name_of(units[id_]), element("span", visible(id_), class_="place")))
        for id_ in pending
    ]
    content = (
        element("ul", rows, class_="names"),
        command_line("pytest-regen review"),
    )
    return _section("pending", "Waiting for review", len(pending), content)


def _weakened(items: Sequence[Json]) -> Iterator[tuple[str, Json, str]]:
    """Yield what weakens a text: the unit, the issue, and what became of the text."""
    for item in items:
        for issue in item["issues"]:
            if issue["code"] == _WEAKENED:
                yield item["id"], issue, "it is in the file"
        for heal in item["heals"]:
            for entry in heal["transcript"]:
                for issue in entry.get("issues", ()):
                    if issue["code"] == _WEAKENED:
                        fate = "a candidate was kept" if entry["kept"] else "a candidate, kept out"
                        yield heal["unit"], issue, fate


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
