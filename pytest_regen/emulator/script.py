"""Replies by rule: what a request must look like, and what it is answered, time after time."""

import fnmatch
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_regen.canonical import canonical_hash
from pytest_regen.emulator.values import Said
from pytest_regen.emulator.wire import ApiError
from pytest_regen.turns.wire import EMULATOR_NAME

__all__ = ["Match", "Rule", "Script", "Step"]

Count = Literal["rule", "request"]


@dataclass(frozen=True, slots=True)
class Match:
    """What a request must look like; every field that is given must hold."""

    model: str | None = None
    """A shell pattern over the name of the model."""
    system: str | None = None
    """Stands in the system prompt."""
    user: str | None = None
    """Stands in the last message."""
    text: str | None = None
    """Stands anywhere in the system prompt or the messages."""
    pattern: str | None = None
    """A regular expression, searched where ``text`` is; ``.`` also matches line ends."""
    turn: int | None = None
    """Number of user messages in the conversation, from 1."""

    def accepts(self, body: Mapping[str, Any]) -> bool:
        """Say whether ``body`` is such a request."""
        messages = body["messages"]
        system, last = _text(body.get("system")), _text(messages[-1]["content"])
        whole = "\n".join([system, *(_text(message["content"]) for message in messages)])
        turn = sum(message["role"] == "user" for message in messages)
        return all(
            (
                self.model is None or fnmatch.fnmatchcase(body["model"], self.model),
                self.system is None or self.system in system,
                self.user is None or self.user in last,
                self.text is None or self.text in whole,
                self.pattern is None or re.search(self.pattern, whole, re.DOTALL) is not None,
                self.turn is None or self.turn == turn,
            )
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One reply or fault, given ``times`` times in a row."""

    said: Said
    times: int = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """Requests that match get the steps in order; the last one repeats for ever."""

    steps: Sequence[Step]
    match: Match = field(default_factory=Match)
    name: str = ""
    count: Count = "rule"
    """Whether all matching requests walk through the steps together, or each different request
    on its own; with ``request``, threads in any order get the same answers."""

    def step(self, number: int) -> Said:
        """Return the reply to request ``number``, from 0."""
        for step in self.steps:
            if number < step.times:
                return step.said
            number -= step.times
        return self.steps[-1].said


class Script:
    """A responder made of rules; the first that matches answers. Safe for several threads.

    Args:
        rules: in order of precedence.
        path: the file they were read from, for messages.
    """

    def __init__(self, rules: Sequence[Rule], *, path: Path | None = None) -> None:
        self.rules = tuple(rules)
        self.path = path
        self._counts: dict[tuple[int, str], int] = {}
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any], *, headers: Mapping[str, str]) -> Said:  # noqa: ARG002 - a responder's signature
        """Answer one request.

        Raises:
            ApiError: 400, no rule matches.
        """
        said = self.find(body)
        if said is None:
            raise no_match(body, self.path)
        return said

    def find(self, body: Mapping[str, Any]) -> Said | None:
        """Return the answer to one request and count it, ``None`` where no rule matches."""
        for number, rule in enumerate(self.rules):
            if rule.match.accepts(body):
                key = (number, canonical_hash(body) if rule.count == "request" else "")
                with self._lock:
                    turn = self._counts.get(key, 0)
                    self._counts[key] = turn + 1
                return rule.step(turn)
        return None


def no_match(body: Mapping[str, Any], path: Path | None) -> ApiError:
    """Return the refusal of a request that the script does not foresee."""
    asked = _text(body["messages"][-1]["content"])[:80]
    return ApiError(
        f"{EMULATOR_NAME}: no rule of {path or 'the script'} matches this request "
        f"(last message: {asked!r})",
        headers={"x-should-retry": "false"},
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        block["text"] if "text" in block else _text(block.get("content"))
        for block in content
        if isinstance(block, dict)
    )
