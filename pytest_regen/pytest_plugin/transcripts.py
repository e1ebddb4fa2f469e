"""What was said between a test, pytest-regen and a model, as the report shows it.

A transcript is a list of JSON objects in the order in which things were said, see docs/pytest.md.
It is made where the item ran, so in a worker too, and only for a report that somebody asked for.
"""

from collections.abc import Iterable, Iterator, Sequence
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


def transcript_of(attempts: Sequence[Attempt], config: pytest.Config) -> list[Json]:
    """Return what was asked for a type or unit, what came back, and how that did in its test.

    Nothing where no report was asked for.
    """
    if not _is_read(config):
        return []
    return _Writer(config).bounded(_attempts(attempts))


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
    if not _is_read(config):
        return []
    return _Writer(config).bounded(_conversations(conversations, findings, passes=passes))


def _is_read(config: pytest.Config) -> bool:
    return config.option.regen_report is not None


def _attempts(attempts: Sequence[Attempt]) -> Iterator[Json]:
    systems: set[str] = set()
    for attempt in attempts:
        system = attempt.request.system
        if system not in systems:
            systems.add(system)
            yield {"role": "system", "text": system}
        prompt = attempt.request.messages[-1].content
        prompt = prompt.removeprefix(attempt.correction).lstrip("\n")
        asked = {"role": "user", "correction": attempt.correction, "text": prompt}
        yield {**asked, "page": attempt.page}
        if attempt.failure:
            yield {"role": "failure", "text": attempt.failure}
            continue
        yield {"role": "assistant", "text": attempt.reply}
        yield _trial(attempt.findings, is_kept=attempt.is_kept)


def _conversations(
    conversations: "Iterable[Conversation]",
    findings: Iterable[Feedback],
    *,
    passes: bool,
) -> Iterator[Json]:
    for system, messages in conversations:
        if not messages:
            continue
        yield {"role": "system", "text": system}
        for message, is_correction in messages:
            if message.role == "assistant":
                yield {"role": "assistant", "text": message.content}
                continue
            texts = {"correction": "", "text": message.content}
            if is_correction:
                texts = {"correction": message.content, "text": ""}
            yield {"role": "user", **texts, "page": None}
    yield _trial(findings, is_kept=passes)


def _trial(findings: Iterable[Feedback], *, is_kept: bool) -> Json:
    issues = [
        finding if isinstance(finding, Issue) else Issue("", str(finding))
        for finding in dict.fromkeys(findings)
    ]
    shown = [
        {
            "code": issue.code,
            "severity": issue.severity,
            "message": issue.message,
            "detail": issue.detail,
        }
        for issue in issues
    ]
    return {"role": "trial", "kept": is_kept, "issues": shown}


class _Writer:
    """Takes credentials out and cuts what is too long, in that order: half a key is no key."""

    def __init__(self, config: pytest.Config) -> None:
        self._scrub = scrubber_of(config)

    def bounded(self, messages: Iterable[Json]) -> list[Json]:
        """Return messages, of very many the first and the last."""
        found = [self._message(message) for message in messages]
        if len(found) <= MAX_MESSAGES:
            return found
        half = MAX_MESSAGES // 2
        left_out = {"role": "left_out", "messages": len(found) - 2 * half}
        return [*found[:half], left_out, *found[-half:]]

    def _message(self, message: Json) -> Json:
        texts = {key: message[key] for key in ("text", "correction") if key in message}
        cut = 0
        written: Json = {}
        for key, text in texts.items():
            clean = scrub_text(text)
            clean = self._scrub(clean) if self._scrub else clean
            written[key] = clean[:MAX_MESSAGE]
            cut += len(clean) - len(written[key])
        return {**message, **written, **({"cut": cut} if cut else {})}
