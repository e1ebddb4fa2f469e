"""Sessions and scenarios as plain JSON: what is read is checked whole before it is used."""

import json
import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from pytest_regen.canonical import canonical_hash, canonical_json
from pytest_regen.errors import StoreWriteError, UsageError
from pytest_regen.files import refuse_obstacle, replace_file
from pytest_regen.sessions.scenarios import TestScenario, ToolAnnotation, Value
from pytest_regen.turns.values import Cost, Message, Role, Usage

ArtifactStatus = Literal["generated", "verified", "failed"]

_VERSION = 1


@dataclass(frozen=True)
class Artifact:
    """A set of scenarios and where it comes from."""

    input_hash: str
    """``content_hash`` of everything the set depends on."""
    status: ArtifactStatus
    """``generated`` is not verified yet; only ``verified`` is ever taken for a success."""
    scenarios: tuple[TestScenario, ...]
    policy: Mapping[str, Any] | None = None
    """The rules the scenarios were verified with."""


_ARTIFACT = TypeAdapter(Artifact)


def content_hash(*parts: str | Sequence[Value] | Mapping[str, Any] | int | None) -> str:
    """Return ``sha256:`` and the hash of ``parts``, which do not run into each other."""
    return canonical_hash(
        [
            [item.to_json() if isinstance(item, Value) else item for item in part]
            if isinstance(part, list | tuple)
            else part
            for part in parts
        ]
    )


def read_artifact(path: Path) -> Artifact | None:
    """Return what ``write_artifact`` wrote; ``None`` where it is missing or damaged.

    A damaged artifact costs a generation, not an error: everything in it can be made again.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
        return _ARTIFACT.validate_python(data) if data.pop("version") == _VERSION else None
    # The last of lists in lists in lists, which this module never writes.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def write_artifact(path: Path, artifact: Artifact) -> None:
    """Write an artifact: whole or not at all, two spaces, a final line end, folders as needed.

    Raises:
        StoreWriteError: the folder cannot be written.
    """
    data = {"version": _VERSION, **_ARTIFACT.dump_python(artifact, exclude_none=True)}
    text = sendable(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
    except OSError as error:
        raise _unwritable(path, error) from error


def sendable(text: str) -> str:
    """Return ``text`` with halves of characters as the escapes that JSON has for them.

    Because models write such escapes, JSON can hold them, and neither a request nor a file can.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def check_path(path: str | os.PathLike[str]) -> Path:
    """Return where an artifact is to be, if nothing seems to keep it from being written there.

    Raises:
        StoreWriteError: it cannot; better known before everything is paid than after.
    """
    target = Path(path)
    try:
        refuse_obstacle(target)
    except OSError as error:
        raise _unwritable(target, error) from error
    return target


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
    # Before anything is paid that rests on it, because it is written at the end of the run.
    try:
        canonical_json(policy)
        if isinstance(policy, Mapping):
            return policy
        why = f"it is {policy!r:.100}"
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error)
    raise UsageError(
        "the compiler's policy is not plain JSON",
        why=why,
        hint="return a dict of texts, numbers, lists and dicts; model_dump(mode='json') makes one",
    )


VERSION = 2
"""Number of the form that is written, and the only one that is read."""

_MOST_PROBLEMS = 5

S = TypeVar("S", bound="SessionState")
Tokens = Annotated[int, Field(ge=0)] | None


# Strict and closed, because a state that is poisoned would be paid for in every later turn.
class _Stored(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class StoredMessage(_Stored):
    """A message of the API."""

    role: Role
    content: str = Field(pattern=r"\S")  # Because the API refuses empty ones.


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


class SessionState(_Stored):
    """What every session writes."""

    KIND: ClassVar[str]
    ARGUMENTS: ClassVar[tuple[str, ...]] = ()
    """What a session is made from, beside its prompt and model."""
    version: int
    kind: str
    system: str
    model: str
    usage: StoredUsage
    history: list[StoredMessage]

    def messages(self) -> tuple[Message, ...]:
        """Return the history.

        Raises:
            UsageError: it does not alternate from user to assistant.
        """
        # The API refuses two messages of one role, and a question without its answer is no turn.
        roles = [message.role for message in self.history]
        if roles != ["user", "assistant"] * (len(roles) // 2):
            raise not_ours(f"its history does not alternate: {', '.join(roles)}")
        return tuple(Message(message.role, message.content) for message in self.history)


class GeneratorState(SessionState):
    """What ``GeneratorSession.to_json`` writes."""

    KIND: ClassVar[str] = "generator-session"
    schema_hash: str
    """Hash of the schema that the history holds; empty where it holds none."""


class StoredMemory(_Stored):
    """What a session of items knows, see ``items.Memory``."""

    items: list[JsonValue]
    wrong: dict[str, dict[str, str]]
    sent: list[str]


class ItemState(SessionState):
    """What ``ItemSession.to_json`` writes."""

    KIND: ClassVar[str] = "item-session"
    memory: StoredMemory


class ScenarioState(ItemState):
    """What ``ScenarioGeneratorSession.to_json`` writes."""

    KIND: ClassVar[str] = "scenario-session"
    ARGUMENTS: ClassVar[tuple[str, ...]] = ("annotations", "handwritten")
    annotations: list[ToolAnnotation]
    handwritten: list[TestScenario]


def load_state(data: object, state: type[S]) -> S:
    """Return ``data``, from any source, as the state that ``to_json`` wrote.

    Raises:
        UsageError: it is something else; all that is wrong is named with its place.
    """
    if not isinstance(data, Mapping):
        raise not_ours(f"it is of type {type(data).__name__}, and to_json() returns a dict")
    for name, right in (("kind", state.KIND), ("version", VERSION)):
        if data.get(name) != right:
            raise not_ours(f"its {name} is {data.get(name)!r}, and {right!r} is read here")
    try:
        return state.model_validate(dict(data))
    except ValidationError as error:
        raise not_ours(problems_of(error)) from error


def problems_of(error: ValidationError, place: str = "") -> str:
    """Return what is wrong in words, each problem with its place below ``place``."""
    problems = error.errors(include_url=False, include_context=False)
    return "; ".join(
        f"{'.'.join(filter(None, (place, *map(str, problem['loc']))))}: {problem['msg']}, not "
        f"{problem['input']!r:.40}"
        for problem in problems[:_MOST_PROBLEMS]
    )


def not_ours(why: str) -> UsageError:
    """Return the error of a state that no session wrote."""
    hint = "pass what to_json() returned, read by json.loads where it is text"
    return UsageError("this is not a session that can be restored", why=why, hint=hint)
