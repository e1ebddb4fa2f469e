"""Boxes of the report's page: what is known of one item, one cassette, one conversation."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import dedent
from typing import Final

from pytest_regen.html import Child, Html, element
from pytest_regen.pytest_plugin.report import Json
from pytest_regen.text import plural, visible

_CODE_IN_WORDS: Final = re.compile(r"`([^`\n]+)`")

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
_LONG: Final = 14
"""Lines of a text that are shown before the rest is folded away."""
_MOST: Final = 30_000
"""Characters of a text that are shown at all."""
_MAX_DIFF: Final = 600


def command_line(command: str) -> Html:
    """Return a command, ready to be copied; it may be prose, too."""
    return element("pre", element("code", visible(command)), class_="command")


def name_of(nodeid: str) -> Html:
    """Return a node id, its last part stressed."""
    place, separator, name = nodeid.rpartition("::")
    parts = (element("span", visible(place + separator)), element("b", visible(name)))
    return element("span", parts, class_="id")


def _prose(text: str) -> Child:
    """Return words of ours, in which back-ticks mean code."""
    parts = _CODE_IN_WORDS.split(visible(text))
    return [element("code", part) if number % 2 else part for number, part in enumerate(parts)]


def _block(text: str, class_: str | None = None) -> Html:
    cut = len(text) - _MOST
    shown = f"{text[:_MOST]}\n… {cut:,} more characters" if cut > 0 else text
    return element("pre", element("code", visible(shown)), class_=class_, tabindex=0)


def _folded(text: str) -> Child:
    """Return a text laid out as it is; of a long one the first lines, and the rest to unfold."""
    lines = text.splitlines()
    if len(lines) <= _LONG:
        return element("span", visible(text), class_="message words")
    rest = len(lines) - _LONG // 2
    return (
        element("span", visible("\n".join(lines[: _LONG // 2])), class_="message words"),
        element(
            "details",
            (
                element("summary", f"{rest:,} more lines"),
                _block("\n".join(lines[_LONG // 2 :])),
            ),
            class_="text",
        ),
    )


class Boxes:
    """Makes the boxes of one page.

    Args:
        link: where an issue code is explained, if anywhere.
        budget: characters of conversations that the page takes; whoever wants more reads the JSON.
    """

    def __init__(self, link: Callable[[str], str | None], *, budget: int) -> None:
        self._link = link
        self._room = budget
        self._systems: dict[str, int] = {}
        """System prompts that are shown, and under which number."""

    def code(self, code: str) -> Html:
        """Return an issue code, as a link to what is said about it."""
        address = self._link(code)
        if address is None:
            return element("span", visible(code), class_="code")
        return element("a", visible(code), class_="code", href=address, rel="noreferrer")

    def item(self, item: Json, *, is_open: bool) -> Html:
        """Return all that is known of a failing or regenerated item."""
        head = (
            element("h3", name_of(item["id"])),
            element("span", _reason(item), class_="reason"),
        )
        return element(
            "details",
            (element("summary", head), list(self._body(item))),
            class_=f"item {item['outcome']}",
            open=is_open,
        )

    def warnings(self, warnings: Iterable[tuple[Json, Json]]) -> Html:
        """Return warnings, each with its item."""
        rows = [
            element("li", (self._issue(issue), name_of(item["id"]))) for item, issue in warnings
        ]
        return element("ul", rows, class_="issues")

    def weakened(self, found: Iterable[tuple[str, Json, str]]) -> Html:
        """Return what weakens a text, with the unit it is about and what became of it."""
        rows = [
            element("li", (self._issue(issue), name_of(unit), element("span", fate, class_="fate")))
            for unit, issue, fate in found
        ]
        return element("ul", rows, class_="issues")

    def _body(self, item: Json) -> Iterator[Child]:
        is_wrong = item["outcome"] == "failed"
        issues = _errors(item["issues"]) if is_wrong else []
        yield self._issues("What is wrong", issues)
        for heal in item["heals"]:
            yield from self._heal(item, heal, known=issues)
        if item["text"]:
            yield element(
                "details",
                (element("summary", "As pytest shows it"), _block(item["text"])),
                class_="text",
                open=is_wrong and not issues,
            )
        if item["next"]:
            yield (element("h4", "Next"), command_line(item["next"]))

    def _issues(self, title: str, issues: Sequence[Json]) -> Child:
        if not issues:
            return None
        rows = [element("li", self._issue(issue)) for issue in issues]
        return (element("h4", title), element("ul", rows, class_="issues"))

    def _issue(self, issue: Json) -> Child:
        line, path = issue.get("line"), issue.get("path", "")
        place = f"{path}:{line}" if path and line else path
        if not issue["code"]:
            # A test's own words are laid out as they are.
            return (_folded(issue["message"]), _detail(issue["detail"]))
        return (
            self.code(issue["code"]),
            element("span", _prose(issue["message"]), class_="message"),
            _detail(issue["detail"]),
            element("span", visible(place), class_="place") if place else None,
        )

    def _heal(self, item: Json, heal: Json, known: Sequence[Json]) -> Iterator[Child]:
        """Yield what was done about a type or unit, which need not be the item itself."""
        before = [error for error in _errors(heal["findings"]) if error not in known]
        yield self._issues("What was wrong before", before)
        of = () if heal["unit"] == item["id"] else (" of ", name_of(heal["unit"]))
        yield element("h4", ("Regeneration", of))
        yield element("p", visible(" · ".join(_heal_facts(heal))), class_="facts")
        if heal["why"]:
            yield element("p", _prose(heal["why"]), class_="why")
        yield from self._conversation(heal["transcript"])
        if heal["diff"]:
            yield element("pre", element("code", _diff(heal["diff"])), class_="diff", tabindex=0)

    def _conversation(self, transcript: Sequence[Json]) -> Iterator[Child]:
        """Yield what was said, folded away."""
        if not transcript:
            return
        size = sum(len(entry.get("text", "")) for entry in transcript)
        replies = sum(entry["role"] == "assistant" for entry in transcript)
        if size > self._room:
            text = "The conversation is left out here; a report as JSON has it."
            yield element("p", text, class_="facts")
            return
        self._room -= size
        title = f"Conversation: {'1 reply' if replies == 1 else f'{replies} replies'}"
        rows: list[Child] = []
        prompts: set[str] = set()
        attempt = 0
        for entry in transcript:
            attempt += entry["role"] == "user"
            rows += self._said(entry, attempt, prompts)
        content = (element("summary", title), element("ol", rows))
        yield element("details", content, class_="talk")

    def _said(self, entry: Json, attempt: int, prompts: set[str]) -> Iterator[Child]:
        match entry["role"]:
            case "system":
                yield self._system(entry)
            case "user":
                yield from _asked(entry, attempt, prompts)
            case "assistant":
                yield _message("assistant", "Model", _block(entry["text"]), _cut(entry))
            case "failure":
                said = element("p", _prose(entry["text"]))
                yield _message("trial bad", "No reply", said)
            case "left_out":
                count = plural(entry["messages"], "message")
                yield _message("note", "", element("p", f"… {count} more …"))
            case "trial":
                yield self._trial(entry)

    def _system(self, entry: Json) -> Html:
        text = entry["text"]
        number = self._systems.get(text)
        if number is not None:
            link = element("a", "the same as above", href=f"#system-{number}")
            return _message("note", "System prompt", element("p", link))
        number = self._systems[text] = len(self._systems) + 1
        size = plural(len(text) + entry.get("cut", 0), "character")
        content = (element("summary", size), _block(text), _cut(entry))
        folded = element("details", content, id=f"system-{number}", class_="text")
        return _message("note", "System prompt", folded)

    def _trial(self, entry: Json) -> Html:
        issues = entry["issues"]
        is_clean = not _errors(issues)
        verdict = "Kept" if entry["kept"] else "Not kept"
        left = len(_errors(issues))
        if is_clean:
            words = "nothing is wrong with it any more" if entry["kept"] else ""
        elif entry["kept"]:
            words = f"it is better than what was there, {plural(left, 'error')} left"
        else:
            words = plural(left, "error")
        rows = [element("li", self._issue(issue)) for issue in _errors(issues)]
        return _message(
            "trial good" if entry["kept"] and is_clean else "trial bad",
            "Put to the test",
            element("p", (element("b", verdict), f": {words}" if words else "")),
            element("ul", rows, class_="issues") if rows else None,
        )


def _message(class_: str, title: str, *content: Child) -> Html:
    head = element("h5", title) if title else None
    return element("li", (head, content), class_=class_)


def _asked(entry: Json, attempt: int, prompts: set[str]) -> Iterator[Child]:
    page = f", page {entry['page']}" if (entry["page"] or 1) > 1 else ""
    text, is_known = entry["text"], entry["text"] in prompts
    if entry["correction"]:
        title = f"Correction{page}{', before the same prompt' if is_known else ''}"
        yield _message("correction", title, _block(entry["correction"]), _cut(entry))
    if not text or (is_known and entry["correction"]):
        return
    title = f"Prompt{page}"
    if is_known:
        yield _message("user", title, element("p", "as above", class_="facts"))
        return
    prompts.add(text)
    lines = len(text.splitlines())
    content: Child = _block(text)
    if lines > _LONG and attempt:
        summary = element("summary", plural(lines, "line"))
        content = element("details", (summary, _block(text)), class_="text")
    yield _message("user", title, content, None if entry["correction"] else _cut(entry))


def _cut(entry: Json) -> Child:
    if not entry.get("cut"):
        return None
    return element("p", f"… {plural(entry['cut'], 'more character')}", class_="facts")


def _detail(text: str | None) -> Child:
    if not text:
        return None
    if "\n" in text:
        return _block(text)
    return element("span", _prose(text), class_="detail")


def _reason(item: Json) -> str:
    """Return in a few words why an item is where it is."""
    heals = item["heals"]
    if item["outcome"] == "regenerated":
        pages = [page for heal in heals for page in heal["pages"]]
        if item["kind"] != "type" or len(pages) < 2:
            return "by another reply"
        return f"{plural(len(pages), 'page')} of it"
    if any(heal["outcome"] == "pending" for heal in heals):
        return "a candidate waits for review"
    reason = next((heal["stop_reason"] for heal in heals if heal["stop_reason"]), "")
    if reason:
        return visible(_REASONS.get(reason, reason))
    codes = list(dict.fromkeys(error["code"] for error in _errors(item["issues"])))
    codes = [code for code in codes if code]
    return visible(", ".join(codes[:3])) + (" …" if len(codes) > 3 else "")


def _errors(issues: Iterable[Json]) -> list[Json]:
    return [issue for issue in issues if issue["severity"] == "error"]


def _heal_facts(heal: Json) -> Iterator[str]:
    yield _what_happened(heal)
    if heal["outcome"] == "planned":
        yield f"about {heal['estimate']:,} tokens in"
        return
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


def _what_happened(heal: Json) -> str:
    pages = heal["pages"]
    named = f" page {pages[0]}" if len(pages) == 1 else f" pages {', '.join(map(str, pages))}"
    named = named if pages and heal["has_pages"] else ""
    match heal["outcome"]:
        case "planned":
            return f"would ask{named or ' for it'}" if pages else "would ask nothing"
        case "pending":
            return "a candidate waits for review"
        case "skipped":
            return "not regenerated"
        case "failed":
            return "regenerated, and still failing" if pages else "nothing better came back"
        case _:
            return f"regenerated{named}"


def _diff(text: str) -> Iterator[Child]:
    lines = text.removesuffix("\n").split("\n")
    for line in lines[:_MAX_DIFF]:
        is_head = line.startswith(("--- ", "+++ "))
        kind = "head" if is_head else _DIFF_LINES.get(line[:1], "same")
        # The line end is kept for whoever copies the diff.
        yield element("span", f"{visible(line.removesuffix(chr(13)))}\n", class_=kind)
    if len(lines) > _MAX_DIFF:
        yield element("span", f"… {len(lines) - _MAX_DIFF:,} more lines\n", class_="head")


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
    used: dict[tuple[str, str], list[Json]] = {}
    for note in notes:
        if note["test"]:
            used.setdefault((note["test"], note["cassette"]), []).append(note)
    for (test, cassette), mine in used.items():
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
        element("summary", (element("h3", name_of(test)), reason)),
        element("ul", [element("li", _notes(note)) for note in notes], class_="issues"),
        element("p", visible(cassette), class_="place"),
        (element("h4", "Next"), [command_line(command) for command in commands])
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
    head = element("summary", element("h3", element("b", visible(error["id"])), class_="id"))
    return element("details", (head, _block(error["text"])), class_="item failed", open=True)
