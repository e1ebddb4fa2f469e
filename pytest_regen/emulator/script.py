"""Scripts: rules that match requests, the replies they get in turn, and what happens to batches.

They are read from YAML.
"""

import dataclasses
import fnmatch
import re
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import yaml

from pytest_regen.canonical import canonical_hash
from pytest_regen.emulator.values import (
    ApiError,
    BatchStep,
    EmulatedReply,
    Fault,
    FaultKind,
    ResponderResult,
    ToolUse,
)
from pytest_regen.errors import UsageError
from pytest_regen.turns.wire import EMULATOR_NAME

Count = Literal["rule", "request"]


@dataclass(frozen=True, slots=True)
class Match:
    """Conditions for a request; every given field must match."""

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
        if answer is None:
            raise no_match(body, self.path)
        return answer

    def find(self, body: Mapping[str, Any]) -> ResponderResult | None:
        """Return the answer to one request and count it; ``None`` if no rule matches."""
        for number, rule in enumerate(self.rules):
            if rule.match.accepts(body):
                key = (number, canonical_hash(body) if rule.count == "request" else "")
                with self._lock:
                    turn = self._counts.get(key, 0)
                    self._counts[key] = turn + 1
                return rule.step(turn)
        return None

    def next_batch(self) -> BatchStep:
        """Return what happens to the next call that creates a batch."""
        with self._lock:
            if len(self._batches) > 1:
                return self._batches.popleft()
            return self._batches[0] if self._batches else BatchStep()


def no_match(body: Mapping[str, Any], path: Path | None) -> ApiError:
    """Return the error for a request that no rule matches."""
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


_Built = TypeVar("_Built", EmulatedReply, Fault, BatchStep)
_SCRIPT_KEYS = {"version", "rules", "batches"}
_RULE_KEYS = {"name", "match", "count", "replies"}
_REPLY_KEYS = {f.name for f in dataclasses.fields(EmulatedReply)} | {"file", "times"}
_FAULT_KEYS = {f.name for f in dataclasses.fields(Fault)}
_BATCH_KEYS = {f.name for f in dataclasses.fields(BatchStep)}
_TEXT = (str,), "a text"
_NUMBER = (int,), "a whole number"
_SECONDS = (int, float), "a number of seconds"
_FLAG = (bool,), "true or false"
_VALUES: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("model", "system", "user", "text", "pattern", "stop_reason"), _TEXT),
    **dict.fromkeys(("thinking", "category", "explanation", "kind", "type"), _TEXT),
    **dict.fromkeys(("message", "error_code", "body"), _TEXT),
    **dict.fromkeys(("turn", "output_tokens", "status", "after", "times"), _NUMBER),
    **dict.fromkeys(("delay", "chunk_delay", "retry_after_ms", "seconds", "unlisted"), _SECONDS),
    **dict.fromkeys(("should_retry", "check_schema"), _FLAG),
    "retry_after": ((int, float, str), "a number of seconds or an HTTP date"),
    "chunks": ((int, list), "a number of characters or a list of pieces, each a text"),
    "headers": ((dict,), "a mapping"),
    "tools": ((tuple,), "a list"),
    "reply": ((EmulatedReply,), "a reply"),
    "fault": ((Fault,), "a fault"),
}
_HINT = "correct the file; the shortest script is {version: 1, rules: [{replies: [Hello.]}]}"


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
    reader.keys(data, _SCRIPT_KEYS, "")
    if data.get("version") != 1:
        given = repr(data["version"]) if "version" in data else "not there"
        raise reader.wrong("version", f"is {given}; a script begins with the line 'version: 1'")
    rules = reader.items(data.get("rules"), "rules")
    batches = reader.items(data["batches"], "batches") if "batches" in data else []
    return Script(
        [reader.rule(rule, f"rules[{i}]") for i, rule in enumerate(rules)],
        path=path,
        batches=[reader.batch(step, f"batches[{i}]") for i, step in enumerate(batches)],
    )


class _Reader:
    """Builds values from parts of one file, with errors that name their place."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def wrong(self, where: str, what: str) -> UsageError:
        """Return an error for one place in the file."""
        return UsageError(f"{self._path}: {where} {what}", hint=_HINT)

    def keys(self, data: object, known: set[str], where: str) -> None:
        """Check that ``data`` is a mapping with known keys."""
        if not isinstance(data, dict):
            raise self.wrong(where or "the file", f"is {type(data).__name__}, not a mapping")
        for key in data:
            if key not in known:
                at = f"{where}.{key}" if where else str(key)
                raise self.wrong(at, f"is unknown; known are {', '.join(sorted(known))}")

    def items(self, data: object, where: str) -> list[Any]:
        """Return a non-empty list."""
        if not isinstance(data, list) or not data:
            raise self.wrong(where, "must be a list with at least one item")
        return data

    def rule(self, data: Any, where: str) -> Rule:
        """Return one rule."""
        self.keys(data, _RULE_KEYS, where)
        count = data.get("count", "rule")
        if count not in {"rule", "request"}:
            raise self.wrong(f"{where}.count", f"is {count!r}, expected rule or request")
        replies = self.items(data.get("replies"), f"{where}.replies")
        steps = [self.step(reply, f"{where}.replies[{i}]") for i, reply in enumerate(replies)]
        match = self.match(data.get("match") or {}, f"{where}.match")
        return Rule(steps, match, str(data.get("name", "")), count)

    def match(self, data: Any, where: str) -> Match:
        """Return the conditions of a rule."""
        self.keys(data, {f.name for f in dataclasses.fields(Match)}, where)
        return Match(**self.check_values(data, where))

    def step(self, data: Any, where: str) -> Step:
        """Return one step: a text, a reply, or a fault."""
        if isinstance(data, str):
            return Step(EmulatedReply(data))
        if isinstance(data, dict) and "fault" in data:
            self.keys(data, {"fault", "times"}, where)
            answer: ResponderResult = self.fault(data["fault"], f"{where}.fault")
        else:
            self.keys(data, _REPLY_KEYS, where)
            answer = self.reply({k: v for k, v in data.items() if k != "times"}, where)
        return Step(answer, self.times(data, where))

    def times(self, data: Mapping[str, Any], where: str) -> int:
        """Return how often in a row."""
        times = data.get("times", 1)
        if not isinstance(times, int) or isinstance(times, bool) or times < 1:
            raise self.wrong(f"{where}.times", f"is {times!r}, expected a number from 1 on")
        return times

    def batch(self, data: Any, where: str) -> BatchStep:
        """Return what happens to one call that creates a batch."""
        self.keys(data, _BATCH_KEYS, where)
        fields = {**data, "times": self.times(data, where)}
        if "fault" in fields:
            fields["fault"] = self.fault(fields["fault"], f"{where}.fault")
        return self.build(BatchStep, fields, where)

    def reply(self, data: Mapping[str, Any], where: str) -> EmulatedReply:
        """Return one reply."""
        fields = dict(data)
        if "file" in fields:
            if "text" in fields:
                raise self.wrong(where, "has both text and file")
            fields["text"] = self.text_of(fields.pop("file"), f"{where}.file")
        if "tools" in fields:
            tools = self.items(fields["tools"], f"{where}.tools")
            fields["tools"] = tuple(
                self.tool(tool, f"{where}.tools[{number}]") for number, tool in enumerate(tools)
            )
        return self.build(EmulatedReply, fields, where)

    def tool(self, data: Any, where: str) -> ToolUse:
        """Return one call of a tool."""
        self.keys(data, {"name", "input"}, where)
        name, given = data.get("name"), data.get("input", {})
        if not isinstance(name, str) or not isinstance(given, dict):
            raise self.wrong(where, "needs a name, a text, and may have an input, a mapping")
        return ToolUse(name, given)

    def fault(self, data: Any, where: str) -> Fault:
        """Return one fault; a bare number is its status."""
        if isinstance(data, int):
            return self.build(Fault, {"status": data}, where)
        self.keys(data, _FAULT_KEYS, where)
        fields = dict(data)
        kinds = get_args(FaultKind)
        if fields.get("kind", "status") not in kinds:
            raise self.wrong(
                f"{where}.kind", f"is {fields['kind']!r}, expected one of {', '.join(kinds)}"
            )
        if "reply" in fields:
            inner = fields["reply"]
            self.keys(inner, _REPLY_KEYS - {"times"}, f"{where}.reply")
            fields["reply"] = self.reply(inner, f"{where}.reply")
        return self.build(Fault, fields, where)

    def build(self, kind: type[_Built], fields: Mapping[str, Any], where: str) -> _Built:
        """Return a value with these fields."""
        try:
            return kind(**self.check_values(fields, where))
        except ValueError as error:
            raise self.wrong(where, f"is wrong: {error}") from error

    def text_of(self, name: object, where: str) -> str:
        """Return the text of a file beside the script."""
        try:
            return (self._path.parent / str(name)).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self.wrong(where, f"cannot be read: {error}") from error

    def check_values(self, data: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return ``data`` after checking the type of each value."""
        for key, value in data.items():
            takes, words = _VALUES[key]
            if not isinstance(value, takes) or (isinstance(value, bool) and bool not in takes):
                raise self.wrong(f"{where}.{key}", f"is {value!r}, expected {words}")
            if isinstance(value, int | float) and value < 0:
                raise self.wrong(f"{where}.{key}", f"is {value!r}, expected no negative number")
        chunks = data.get("chunks")
        if isinstance(chunks, list) and not all(isinstance(piece, str) for piece in chunks):
            raise self.wrong(f"{where}.chunks", f"is {chunks!r}, expected {_VALUES['chunks'][1]}")
        if "pattern" in data:
            try:
                re.compile(data["pattern"])
            except re.error as error:
                raise self.wrong(f"{where}.pattern", f"is no pattern: {error}") from error
        return dict(data)
