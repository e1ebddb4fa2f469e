"""What was said between a test, pytest-regen and a model, as the report shows it.

A transcript is a list of JSON objects in the order in which things were said; its format is in
docs/reference/formats.md.
It is made where the item ran, so in a worker too, and only for a report that somebody asked for.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_regen.credentials.search import scrub_text
from pytest_regen.pytest_plugin.stash import scrubber_of
from pytest_regen.regeneration.values import Attempt
from pytest_regen.validation.issues import Feedback, Issue

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.sessions import Conversation

Json = dict[str, Any]

MAX_MESSAGE: Final = 12_000
"""Characters of a message that are kept; a report is read by people."""

MAX_MESSAGES: Final = 60
"""Messages of one unit that are kept."""

_TEXTS: Final = ("text", "correction")


def transcript_of(attempts: Sequence[Attempt], config: pytest.Config) -> list[Json]:
    """Return what was asked for a type or unit, what came back, and how that did in its test."""
    entries: list[Json] = []
    for attempt in attempts:
        answer, ask = attempt.answer, attempt.answer.ask
        system = {"role": "system", "text": ask.request.system}
        # Once, because all turns of a unit have the same one.
        if system not in entries:
            entries.append(system)
        prompt = ask.request.messages[-1].content
        entries.append(
            {
                "role": "user",
                "correction": ask.correction,
                "text": prompt.removeprefix(ask.correction).lstrip("\n"),
                "page": ask.page,
            }
        )
        if answer.failure:
            entries.append({"role": "failure", "text": str(answer.failure)})
        else:
            entries.append({"role": "assistant", "text": "".join(answer.pieces)})
            entries.append(_trial(attempt.findings, is_kept=attempt.is_kept))
    return _bounded(entries, config)


def conversation_of(
    conversations: "Iterable[Conversation]",
    findings: Iterable[Feedback],
    config: pytest.Config,
    *,
    passes: bool,
) -> list[Json]:
    """Return the conversations of a test's sessions, and how the test ended.

    Args:
        conversations: of all its sessions.
        findings: what the test fails with now.
        config: of the run.
        passes: whether it passes.
    """
    entries: list[Json] = []
    for system, messages in conversations:
        if messages:
            entries.append({"role": "system", "text": system})
        for message, is_correction in messages:
            entry: Json = {"role": message.role, "text": message.content}
            # With all keys of an entry above, because one template shows both.
            if message.role != "assistant":
                entry |= {"role": "user", "correction": "", "page": None}
            if message.role != "assistant" and is_correction:
                entry |= {"correction": message.content, "text": ""}
            entries.append(entry)
    return _bounded([*entries, _trial(findings, is_kept=passes)], config)


def _trial(findings: Iterable[Feedback], *, is_kept: bool) -> Json:
    issues = [
        finding if isinstance(finding, Issue) else Issue("", str(finding))
        for finding in dict.fromkeys(findings)
    ]
    keys = ("code", "severity", "message", "detail")
    rows = [{key: getattr(issue, key) for key in keys} for issue in issues]
    return {"role": "trial", "kept": is_kept, "issues": rows}


def _bounded(entries: Sequence[Json], config: pytest.Config) -> list[Json]:
    """Return what the report shows of a conversation: of very many messages the ends."""
    half = MAX_MESSAGES // 2
    if (left_out := len(entries) - 2 * half) > 0:
        gap: Json = {"role": "left_out", "messages": left_out}
        entries = [*entries[:half], gap, *entries[-half:]]
    scrub = scrubber_of(config) or str
    bounded = []
    for entry in entries:
        # Scrubbed before it is cut: half a key is no key.
        texts = {key: scrub(scrub_text(entry[key])) for key in _TEXTS if key in entry}
        cut = sum(max(0, len(text) - MAX_MESSAGE) for text in texts.values())
        bounded.append(dict(entry))
        bounded[-1].update({key: text[:MAX_MESSAGE] for key, text in texts.items()})
        if cut:
            bounded[-1]["cut"] = cut
    return bounded
