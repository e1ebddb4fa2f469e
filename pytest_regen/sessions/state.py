"""Sessions and scenarios as plain JSON: what is read is checked whole before it is used."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from pytest_regen.canonical import canonical_json
from pytest_regen.errors import StoreWriteError, UsageError
from pytest_regen.files import refuse_obstacle, replace_file
from pytest_regen.sessions.scenarios import TestScenario, ToolAnnotation, Value
from pytest_regen.text import plural
from pytest_regen.turns.values import Cost, Message, Role, Usage

ArtifactStatus = Literal["generated", "verified", "failed"]

_VERSION = 1

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A set of scenarios and where it comes from."""

    input_hash: str
    """``content_hash`` of everything the set depends on."""
    status: ArtifactStatus
    """``generated`` is not verified yet; only ``verified`` is ever taken for a success."""
    scenarios: tuple[TestScenario, ...]
    policy: Mapping[str, Any] | None = None
    """The rules the scenarios were verified with."""


def content_hash(*parts: str | Sequence[Value] | Mapping[str, Any] | int | None) -> str:
    """Return ``sha256:`` and the hash of ``parts``.

    Each part is prefixed with its length: ``("ab", "c")`` and ``("a", "bc")`` differ.
    """
    digest = hashlib.sha256()
    for part in parts:
        data = _as_text(part).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return "sha256:" + digest.hexdigest()


def _as_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Sequence):
        part = [item.to_json() if isinstance(item, Value) else item for item in part]
    return canonical_json(part)


def read_artifact(path: Path) -> Artifact | None:
    """Return what ``write_artifact`` wrote; ``None`` where it is missing or damaged.

    A damaged artifact costs a generation, not an error: everything in it can be made again.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
        policy = data.get("policy")
        is_known = data["version"] == _VERSION and data["status"] in get_args(ArtifactStatus)
        if not is_known or not isinstance(policy, dict | None):
            return None
        return Artifact(
            str(data["input_hash"]),
            data["status"],
            tuple(TestScenario.model_validate(scenario) for scenario in data["scenarios"]),
            policy,
        )
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError, ValidationError),
        RecursionError,  # Lists in lists in lists, which this module never writes.
    ):
        return None


def write_artifact(path: Path, artifact: Artifact) -> None:
    """Write an artifact: whole or not at all, two spaces, a final line end, folders as needed.

    Raises:
        StoreWriteError: the folder cannot be written.
    """
    data = {
        "version": _VERSION,
        "input_hash": artifact.input_hash,
        "status": artifact.status,
        "scenarios": [scenario.to_json() for scenario in artifact.scenarios],
        **({"policy": artifact.policy} if artifact.policy is not None else {}),
    }
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if not text.isascii() and _LONE_SURROGATE.search(text):
        # Models write them, JSON can hold them, and UTF-8 cannot.
        text = json.dumps(data, indent=2, allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
    except OSError as error:
        raise _unwritable(path, error) from error


def check_path(path: str | os.PathLike[str]) -> Path:
    """Return where an artifact is to be, if nothing seems to keep it from being written there.

    Raises:
        StoreWriteError: it cannot; better known before everything is paid than after.
    """
    found = Path(path)
    try:
        refuse_obstacle(found)
    except OSError as error:
        raise _unwritable(found, error) from error
    return found


def _unwritable(path: Path, error: OSError) -> StoreWriteError:
    return StoreWriteError(
        f"{path} cannot be written",
        why=error.strerror or str(error),
        hint="make the folder writable, or name another path",
    )


def check_policy(policy: object) -> Mapping[str, Any]:
    """Return ``policy`` if it is plain JSON: a mapping of text, numbers, lists and mappings.

    Raises:
        UsageError: it is not, so that it could neither be kept nor compared.
    """
    if not isinstance(policy, Mapping):
        raise _not_plain(f"it is {policy!r:.100}")
    try:
        canonical_json(policy)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_plain(str(error)) from error
    return policy


def _not_plain(why: str) -> UsageError:
    return UsageError(
        "the compiler's policy is not plain JSON",
        why=why,
        hint="return a dict of texts, numbers, lists and dicts; model_dump(mode='json') makes one",
    )


VERSION = 1
"""Number of the form that is written, and the only one that is read."""

_MOST_PROBLEMS = 5
_SHOWN = 40
_DESCRIPTIONS = {
    "missing": "is missing",
    "model_type": "is no object",
    "extra_forbidden": "is not known here: a later version may have written it",
    "string_pattern_mismatch": "is empty",
    "too_short": "has too few items",
}
"""Problems in other words than those of pydantic, which speak of its own terms."""

S = TypeVar("S", bound="_State")
Tokens = Annotated[int, Field(ge=0)] | None


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class StoredMessage(_Stored):
    """A message of the API, which refuses empty ones."""

    role: Role
    content: str = Field(pattern=r"\S")


class StoredUsage(_Stored):
    """Tokens spent."""

    input_tokens: Tokens
    output_tokens: Tokens
    cache_read_tokens: Tokens
    cache_write_5m_tokens: Tokens
    cache_write_1h_tokens: Tokens
    cost_usd: str | None = Field(default=None, pattern=r"^\d{1,12}(\.\d{1,24})?$")

    def to_usage(self) -> Usage:
        """Return the value."""
        cost = None if self.cost_usd is None else Cost(Decimal(self.cost_usd))
        return Usage(**self.model_dump(exclude={"cost_usd"}), cost=cost)


class _State(_Stored):
    KIND: ClassVar[str]
    version: int
    kind: str
    system: str
    model: str
    usage: StoredUsage


class GeneratorState(_State):
    """What ``GeneratorSession.to_json`` writes."""

    KIND: ClassVar[str] = "generator-session"
    schema_hash: str
    """Hash of the schema that the history holds; empty where it holds none."""
    history: list[StoredMessage]

    def messages(self) -> tuple[Message, ...]:
        """Return the history.

        Raises:
            UsageError: it does not alternate from user to assistant.
        """
        return _messages(self.history)


class StoredGroup(_Stored):
    """One conversation of a scenario session."""

    tools: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(min_length=1)
    messages: list[StoredMessage] = Field(min_length=1)


class StoredMemory(_Stored):
    """What ``Memory.to_json`` writes."""

    known: list[TestScenario]
    wrong: dict[str, list[str]]
    discarded: dict[str, str] = {}
    said: list[str]
    probes: list[TestScenario]
    rule_changes: list[str]


class ScenarioState(_State):
    """What ``ScenarioGeneratorSession.to_json`` writes."""

    KIND: ClassVar[str] = "scenario-session"
    annotations: list[ToolAnnotation]
    handwritten: list[TestScenario]
    history: list[StoredGroup]
    memory: StoredMemory
    turns: int = Field(ge=0)

    def conversations(self) -> list[tuple[tuple[ToolAnnotation, ...], tuple[Message, ...]]]:
        """Return the tools and the history of each conversation.

        Raises:
            UsageError: a tool is not annotated, or has two conversations; a history does not
                alternate; the turns are not those of the histories.
        """
        annotated = {annotation.tool: annotation for annotation in self.annotations}
        tools = [(tool[0], tool[1]) for group in self.history for tool in group.tools]
        for tool, count in Counter(tools).items():
            if tool not in annotated:
                raise _not_ours(f"its history is about {'/'.join(tool)}, which is not annotated")
            if count > 1:
                raise _not_ours(f"{'/'.join(tool)} stands in {count} of its histories")
        found = [
            (
                tuple(annotated[tool[0], tool[1]] for tool in group.tools),
                _messages(group.messages),
            )
            for group in self.history
        ]
        self._check_turns([len(messages) // 2 for _, messages in found])
        return found

    def _check_turns(self, pairs: Sequence[int]) -> None:
        """Check the number of turns against the lengths of the histories.

        The first turn is in each of them, and each later one in one at least.
        """
        least, most = max(pairs, default=0), 1 + sum(count - 1 for count in pairs) if pairs else 0
        if not least <= self.turns <= most:
            raise _not_ours(
                f"it counts {plural(self.turns, 'turn')}, and its history holds "
                f"{least if least == most else f'{least} to {most}'}"
            )


def load_state(data: object, state: type[S]) -> S:
    """Return ``data``, from any source, as the state that ``to_json`` wrote.

    Raises:
        UsageError: it is something else; all that is wrong is named with its place.
    """
    if isinstance(data, str | bytes):
        raise _not_ours("it is text", hint="read it first: from_json(json.loads(text), …)")
    if not isinstance(data, Mapping):
        raise _not_ours(f"it is of type {type(data).__name__}, and to_json() returns a dict")
    if data.get("kind") != state.KIND:
        raise _not_ours(f"its kind is {data.get('kind')!r}, not {state.KIND!r}")
    if data.get("version") != VERSION:
        raise _not_ours(f"its version is {data.get('version')!r}, and {VERSION} is read here")
    try:
        return state.model_validate(dict(data))
    except ValidationError as error:
        raise _not_ours(_problems(error)) from error


def messages_to_json(history: Sequence[Message]) -> list[dict[str, str]]:
    """Return messages as the API takes them."""
    return [{"role": message.role, "content": message.content} for message in history]


def _messages(stored: Sequence[StoredMessage]) -> tuple[Message, ...]:
    roles = [message.role for message in stored]
    if roles != ["user", "assistant"] * (len(roles) // 2):
        raise _not_ours(f"its history does not alternate: {', '.join(roles)}")
    return tuple(Message(message.role, message.content) for message in stored)


def _problems(error: ValidationError) -> str:
    found = [
        f"{'.'.join(map(str, problem['loc']))} {_describe_problem(problem)}"
        for problem in error.errors(include_url=False, include_context=False)
    ]
    left = len(found) - _MOST_PROBLEMS
    return "; ".join(found[:_MOST_PROBLEMS]) + (f"; and {left} more" if left > 0 else "")


def _describe_problem(problem: ErrorDetails) -> str:
    known = _DESCRIPTIONS.get(problem["type"])
    if known:
        return known
    value = repr(problem["input"])
    shown = value if len(value) <= _SHOWN else f"{value[: _SHOWN - 3]}..."
    return f"is {shown}: {problem['msg']}"


def _not_ours(why: str, hint: str = "pass what to_json() returned") -> UsageError:
    return UsageError("this is no session that can be restored", why=why, hint=hint)
