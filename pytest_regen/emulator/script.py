"""Scripts: rules that match requests, the replies they get in turn, and what happens to batches."""

import fnmatch
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from pytest_regen.canonical import canonical_hash
from pytest_regen.emulator.prompt import as_blocks
from pytest_regen.emulator.values import FORBID, ApiError, BatchStep, ResponderResult
from pytest_regen.turns.wire import EMULATOR_NAME

Count = Literal["rule", "request"]


@dataclass(frozen=True, slots=True)
class Match:
    """Conditions for a request; every given field must match."""

    __pydantic_config__: ClassVar = FORBID
    model: str | None = None
    """A shell pattern for the model's name."""
    system: str | None = None
    """Part of the system prompt."""
    user: str | None = None
    """Part of the last message."""
    text: str | None = None
    """Part of the system prompt or any message."""
    pattern: str | None = None
    """A regular expression, searched in the same places as ``text``; ``.`` also matches line
    ends."""
    turn: int | None = None
    """Number of user messages in the conversation, from 1."""

    def __post_init__(self) -> None:
        """Check the pattern.

        Raises:
            ValueError: it is no regular expression.
        """
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise ValueError(f"{self.pattern!r} is not a pattern: {error}") from error

    def accepts(self, body: Mapping[str, Any]) -> bool:
        """Return whether ``body`` meets the conditions."""
        messages = body["messages"]
        system, last = _text(body.get("system")), _text(messages[-1]["content"])
        whole = "\n".join([system, *(_text(message["content"]) for message in messages)])
        turn = sum(message["role"] == "user" for message in messages)
        return (
            fnmatch.fnmatchcase(body["model"], self.model or "*")
            and (self.system or "") in system
            and (self.user or "") in last
            and (self.text or "") in whole
            and re.search(self.pattern or "", whole, re.DOTALL) is not None
            and self.turn in {None, turn}
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One reply or fault, given ``times`` times in a row."""

    answer: ResponderResult
    times: int = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """Matching requests get the steps in order; the last step repeats."""

    steps: Sequence[Step]
    match: Match = field(default_factory=Match)
    name: str = ""
    count: Count = "rule"
    """Whether all matching requests advance through the steps together, or each distinct request on
    its own. With ``request`` the answers do not depend on the order of threads."""


class Script:
    """Rules, the first of which that matches answers. Safe in several threads.

    Args:
        rules: in order of precedence.
        path: the file they were read from, for messages.
        batches: what happens to calls that create batches, in order; the last one repeats.
    """

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        *,
        path: Path | None = None,
        batches: Sequence[BatchStep] = (),
    ) -> None:
        self.rules = tuple(rules)
        self.path = path
        self.batches = tuple(batches)
        self._counts: Counter[tuple[int, str]] = Counter()
        self._lock = threading.Lock()

    def find(self, body: Mapping[str, Any], *, is_last: bool = False) -> ResponderResult | None:
        """Return the answer to one request and count it; ``None`` if no rule matches.

        Args:
            body: of the request.
            is_last: whether nobody else can answer.

        Raises:
            ApiError: no rule matches, and nobody else can answer.
        """
        for number, rule in enumerate(self.rules):
            if rule.match.accepts(body):
                # By its hash, because threads bring their requests in any order.
                request = canonical_hash(body) if rule.count == "request" else ""
                answer: ResponderResult = self._next(rule.steps, (number, request)).answer
                return answer
        if is_last and self.rules:
            message = _text(body["messages"][-1]["content"])[:80]
            raise ApiError(
                f"{EMULATOR_NAME}: no rule of {self.path or 'the script'} matches this request "
                f"(last message: {message!r})"
            )
        return None

    def next_batch(self) -> BatchStep:
        """Return what happens to the next call that creates a batch."""
        return self._next(self.batches, (-1, "batches")) if self.batches else BatchStep()

    def _next(self, steps: Sequence[Any], counter: tuple[int, str]) -> Any:
        """Return the step that it is the turn of; the last one stays, so that it repeats."""
        with self._lock:
            number = self._counts[counter]
            self._counts[counter] += 1
        for step in steps:
            if number < step.times:
                return step
            number -= step.times
        return steps[-1]


def _text(content: object) -> str:
    return "\n".join(
        block["text"] if isinstance(block.get("text"), str) else _text(block.get("content"))
        for block in as_blocks(content)
        if isinstance(block, Mapping)
    )
