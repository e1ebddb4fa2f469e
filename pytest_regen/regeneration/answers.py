"""Why the text is as it was: what was wrong with each answer, the same in pytest and commands."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_regen.regeneration.values import HealResult, StopReason
from pytest_regen.text import flatten, plural
from pytest_regen.validation.issues import WEAKENED, Feedback, Issue

_STOPPED: Final[dict[StopReason, str]] = {
    "no_progress": "the same errors came back; asking again as before would not help",
    "unfixable": "no reply can correct it: what is asked for is itself at fault",
}

# Errors of one answer that are told before the others are counted.
_SHOWN: Final = 3
# Characters of a sentence, or of a line that is quoted.
_LONGEST: Final = 240


def why_lines(result: HealResult) -> Iterator[str]:
    """Yield what was wrong with each answer that was not kept, and why no other was asked for."""
    replies = [attempt for attempt in result.transcript if not attempt.answer.failure]
    rounds = Counter(attempt.answer.ask.page for attempt in replies)
    # First drafts are kept as they come, so that the transcript does not have them.
    drafts = result.attempts - max(rounds.values(), default=0)
    seen: Counter[int] = Counter()
    last_lines: dict[int, list[str]] = {}
    for attempt in replies:
        page = attempt.answer.ask.page
        seen[page] += 1
        if not attempt.is_kept:
            errors = [
                finding
                for finding in attempt.findings
                if isinstance(finding, str) or finding.severity == "error"
            ]
            # What makes it worse comes first, however right it looks.
            errors.sort(key=lambda item: isinstance(item, str) or item.code != WEAKENED)
            lines = issue_lines(errors) or ["it was no better than what it was to replace"]
            of_page = f" for page {page}" if len(rounds) > 1 else ""
            head = f"answer {drafts + seen[page]} of {result.allowed}{of_page} was not kept"
            is_known = lines == last_lines.get(page)
            first, *more = ["it has the same errors"] if is_known else lines
            yield f"{head}: {first}"
            yield from (f"  {line}" for line in more)
            last_lines[page] = lines
    reason = result.stop_reason
    if reason == "attempts" and not last_lines:
        yield f"errors remain after {plural(result.attempts, 'answer')} of {result.allowed}"
    elif reason in _STOPPED:
        yield _STOPPED[reason]


def issue_lines(findings: Sequence[Feedback]) -> list[str]:
    """Return errors in a line each: code, sentence, place; of many the first, and a count."""
    more = len(findings) - _SHOWN
    lines = [_line(finding) for finding in findings[:_SHOWN]]
    return [*lines, f"and {plural(more, 'more error')}"] if more > 0 else lines


def _line(finding: Feedback) -> str:
    if not isinstance(finding, Issue):
        return _cut(flatten(" ".join(str(finding).split())))
    parts = [finding.message, *(finding.detail or "").splitlines()[:_SHOWN]]
    words = flatten("; ".join(filter(None, (" ".join(part.split()) for part in parts))))
    at = finding.excerpt
    place = f" (line {at.line}: {_cut(flatten(at.text.strip()))})" if at and at.text else ""
    code = f"{finding.code}: " if finding.code else ""
    return f"{code}{_cut(words)}{place}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
