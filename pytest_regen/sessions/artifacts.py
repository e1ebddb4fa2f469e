"""Scenarios on disk, and the hash that says whether they still fit what they were made from."""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ValidationError

from pytest_regen.atomic import refuse_obstacle, replace_file
from pytest_regen.canonical import canonical_json
from pytest_regen.errors import StoreWriteError, UsageError
from pytest_regen.sessions.values import TestScenario, Value

__all__ = [
    "Artifact",
    "ArtifactStatus",
    "checked_path",
    "checked_policy",
    "content_hash",
    "read_artifact",
    "write_artifact",
]

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
        part = [one.to_json() if isinstance(one, Value) else one for one in part]
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
            tuple(TestScenario.model_validate(one) for one in data["scenarios"]),
            policy,
        )
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError, ValidationError),
        RecursionError,  # Lists in lists in lists: whoever damaged it, it is none of ours.
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
        "scenarios": [one.to_json() for one in artifact.scenarios],
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


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return where an artifact is to be, if it can be written there as far as can be seen now.

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


def checked_policy(policy: object) -> Mapping[str, Any]:
    """Return ``policy`` if it is rules as plain JSON: a mapping of text, numbers, lists, mappings.

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
