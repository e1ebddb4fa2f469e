"""The report as one page: what its template is given beside the JSON report."""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import jinja2

from pytest_regen.pytest_plugin import report as reports
from pytest_regen.pytest_plugin.report import OUTCOMES, Json
from pytest_regen.pytest_plugin.summary import HealReport, heal_words
from pytest_regen.text import plural, visible

_FOLDER: Final = Path(__file__).parent
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
_CACHE: Final = {
    "read": "read from the cache",
    "written": "written to the cache",
    "input": "other input",
    "output": "output",
}
"""What the prompt cache did with tokens; the class of a bar's part, and words."""
_OPEN: Final = 12
"""Boxes of a section that are open at first; more would be a wall."""


def page_of(report: Json) -> str:
    """Return the page of a report, as ``report_of`` made it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    style = _FOLDER.joinpath("report_page.css").read_text("utf-8")
    # Even if a text got through as markup, a browser would run and load nothing.
    digest = b64encode(sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    items, totals = report["items"], report["totals"]
    heals = [heal for item in items for heal in item["heals"]]
    return environment.get_template("report_page.html.j2").render(
        report,
        style=style,
        policy=policy,
        in_short=reports.in_short,
        outcomes_of=lambda counts: {name: counts[name] for name in OUTCOMES if counts[name]},
        by_outcome={name: [item for item in items if item["outcome"] == name] for name in OUTCOMES},
        counts=list(_counts(totals)),
        waiting=[(id_, heal["unit"]) for heal in heals for id_ in heal["pending"]],
        asked=sorted(
            (heal for heal in heals if heal["calls"]),
            key=lambda heal: (-sum(_tokens(heal).values()), heal["unit"]),
        ),
        tokens=_tokens,
        token_words=lambda of: ", ".join(
            f"{count:,} {_CACHE[part]}" for part, count in _tokens(of).items()
        ),
        cache_words=_CACHE,
        codes=_codes,
        reason=_reason,
        heal_words=_heal_words,
        plural=plural,
        amount="{:,}".format,
        code_split=_CODE_IN_WORDS.split,
        longest=30_000,
        most_lines=600,
        most_open=_OPEN,
    )


def _shown(value: Any) -> Any:
    """Return a value as the page shows it: nothing in it moves a cursor or turns a line around."""
    if value is None:
        return ""
    # Markup of the template's own macros is no text.
    return value if hasattr(value, "__html__") else visible(value)


def _heal_words(heal: Json) -> str:
    """Return what the terminal says of the work on a unit, without its name."""
    head, tail = heal_words(HealReport(**heal))
    return head.removesuffix(":") + tail


def _counts(totals: Json) -> Iterator[tuple[str, int, str]]:
    """Yield the numbers at the top: their section, and what they count."""
    for outcome in OUTCOMES:
        # Left out where there is none, because a zero of it would ask for an explanation.
        if outcome != "unfinished" or totals[outcome]:
            yield outcome, totals[outcome], outcome
    for key, noun in (("warnings", "warning"), ("drifted", "drifted cassette")):
        yield key, totals[key], noun if totals[key] == 1 else f"{noun}s"


def _tokens(of: Json) -> dict[str, int]:
    """Return tokens by what the prompt cache did."""
    return {
        "read": of["cache_read"],
        "written": of["cache_write"],
        "input": of["tokens_in"] - of["cache_write"],
        "output": of["tokens_out"],
    }


def _error_codes(item: Json) -> list[str]:
    errors = [issue["code"] for issue in item["issues"] if issue["severity"] == "error"]
    return list(dict.fromkeys(filter(None, errors)))


def _codes(items: Sequence[Json]) -> list[tuple[str, int]]:
    """Return how many of many items have which code, the most frequent first."""
    return Counter(code for item in items for code in _error_codes(item)).most_common(_OPEN)


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
        return _REASONS.get(reason, reason)
    codes = _error_codes(item)
    return ", ".join(codes[:3]) + (" …" if len(codes) > 3 else "")
