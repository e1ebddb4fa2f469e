"""Scripts: rules that match requests, the replies they get in turn, and what happens to batches.

They are read from YAML.
"""

import fnmatch
import json
import re
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import yaml

from pytest_regen.canonical import canonical_hash
from pytest_regen.emulator.values import (
    FORBID,
    ApiError,
    BatchStep,
    EmulatedReply,
    Fault,
    ResponderResult,
)
from pytest_regen.errors import UsageError
from pytest_regen.turns.wire import EMULATOR_NAME

Count = Literal["rule", "request"]
_Built = TypeVar("_Built")


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
            raise ValueError(f"{self.pattern!r} is no pattern: {error}") from error

    def accepts(self, body: Mapping[str, Any]) -> bool:
        """Return whether ``body`` meets the conditions."""
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

    def step(self, number: int) -> ResponderResult:
        """Return the reply to request ``number``, from 0."""
        for step in self.steps:
            if number < step.times:
                return step.answer
            number -= step.times
        return self.steps[-1].answer


class Script:
    """A responder made of rules; the first match answers. Safe in several threads.

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
        self._batches = deque(step for step in batches for _ in range(step.times))
        self._counts: dict[tuple[int, str], int] = {}
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any], *, headers: Mapping[str, str]) -> ResponderResult:
        """Answer one request.

        Raises:
            ApiError: 400, no rule matches.
        """
        answer = self.find(body)
        if answer is not None:
            return answer
        asked = _text(body["messages"][-1]["content"])[:80]
        raise ApiError(
            f"{EMULATOR_NAME}: no rule of {self.path or 'the script'} matches this request "
            f"(last message: {asked!r})",
        )

    def find(self, body: Mapping[str, Any]) -> ResponderResult | None:
        """Return the answer to one request and count it; ``None`` if no rule matches."""
        for number, rule in enumerate(self.rules):
            if rule.match.accepts(body):
                # By its hash, because threads bring their requests in any order.
                key = (number, canonical_hash(body) if rule.count == "request" else "")
                with self._lock:
                    turn = self._counts.get(key, 0)
                    self._counts[key] = turn + 1
                return rule.step(turn)
        return None

    def next_batch(self) -> BatchStep:
        """Return what happens to the next call that creates a batch."""
        with self._lock:
            # The last step stays, so that it repeats.
            if len(self._batches) > 1:
                return self._batches.popleft()
            return self._batches[0] if self._batches else BatchStep()


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        block["text"] if isinstance(block.get("text"), str) else _text(block.get("content"))
        for block in content
        if isinstance(block, dict)
    )


_HINT = "correct the file; the shortest script is {version: 1, rules: [{replies: [Hello.]}]}"


@dataclass(frozen=True, slots=True)
class _RuleData:
    __pydantic_config__: ClassVar = FORBID
    replies: list[Any]
    match: Match = field(default_factory=Match)
    name: str = ""
    count: Count = "rule"


@dataclass(frozen=True, slots=True)
class _ScriptData:
    __pydantic_config__: ClassVar = FORBID
    version: Literal[1]
    rules: list[_RuleData]
    batches: list[dict[str, Any]] = field(default_factory=list)


def load_script(path: Path) -> Script:
    """Read a script.

    Args:
        path: a YAML file, ``version: 1``; files it names are relative to it.

    Raises:
        UsageError: it cannot be read, or a key or value is wrong, with its place.
    """
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the script {path}", why=str(error), hint=_HINT) from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is no YAML", why=str(error), hint=_HINT) from error
    reader = _Reader(path)
    script = reader.build(_ScriptData, data, "")
    rules = []
    for i, rule in enumerate(script.rules):
        steps = [reader.step(r, f"rules[{i}].replies[{n}]") for n, r in enumerate(rule.replies)]
        if not steps:
            raise reader.wrong(f"rules[{i}].replies", "is empty; a rule has at least one")
        rules.append(Rule(steps, rule.match, rule.name, rule.count))
    batches = []
    for i, step in enumerate(script.batches):
        fields = {**step, "fault": reader.fault(step.get("fault"), f"batches[{i}].fault")}
        batches.append(reader.build(BatchStep, fields, f"batches[{i}]"))
    return Script(rules, path=path, batches=batches)


class _Reader:
    """Builds values from parts of one file, with errors that name their place."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def wrong(self, where: str, what: str) -> UsageError:
        return UsageError(f"{self._path}: {where} {what}", hint=_HINT)

    def step(self, data: Any, where: str) -> Step:
        if not isinstance(data, dict):
            return Step(self.build(EmulatedReply, {"text": data}, where))
        fields = {key: value for key, value in data.items() if key != "times"}
        times = data.get("times", 1)
        if not isinstance(times, int) or times < 1:
            raise self.wrong(f"{where}.times", f"is {times!r}, not a number from 1 on")
        if "fault" not in fields:
            return Step(self.build(EmulatedReply, self.reply(fields, where), where), times)
        fault = self.fault(fields.pop("fault"), f"{where}.fault")
        if fields:
            raise self.wrong(f"{where}.{next(iter(fields))}", "is unknown beside a fault")
        return Step(self.build(Fault, fault, f"{where}.fault"), times)

    def reply(self, fields: dict[str, Any], where: str) -> dict[str, Any]:
        """Return the fields of a reply, with the text of the file that it names."""
        if "file" not in fields:
            return fields
        if "text" in fields:
            raise self.wrong(where, "has both text and file")
        path = self._path.parent / str(fields["file"])
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self.wrong(f"{where}.file", f"cannot be read: {error}") from error
        return {**{key: value for key, value in fields.items() if key != "file"}, "text": text}

    def fault(self, data: Any, where: str) -> Any:
        """Return the fields of a fault; a bare number is its status."""
        if isinstance(data, int):
            return {"status": data}
        if isinstance(data, dict) and isinstance(data.get("reply"), dict):
            return {**data, "reply": self.reply(data["reply"], f"{where}.reply")}
        return data

    def build(self, kind: type[_Built], data: Any, where: str) -> _Built:
        """Return a value of ``kind``, whose fields say what ``data`` has to be."""
        from pydantic import TypeAdapter, ValidationError

        try:
            # As JSON, because pydantic then takes mappings for dataclasses and no 1 for "1".
            return TypeAdapter(kind).validate_json(json.dumps(data, default=str), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            place = where
            for part in first["loc"]:
                place += f"[{part}]" if isinstance(part, int) else f".{part}"
            is_unknown = first["type"] == "unexpected_keyword_argument"
            what = "is unknown" if is_unknown else f"is {first['input']!r:.80}: {first['msg']}"
            raise self.wrong(place.lstrip(".") or "the file", what) from error
        except TypeError as error:
            raise self.wrong(where, f"is wrong: {error}") from error
