"""Scenarios on disk, and the hash that says whether they still fit what they were made from."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from pytest_regen.canonical import canonical_json
from pytest_regen.errors import StoreWriteError
from pytest_regen.sessions.values import TestScenario, Value

__all__ = ["Artifact", "ArtifactStatus", "content_hash", "read_artifact", "write_artifact"]

ArtifactStatus = Literal["generated", "verified", "failed"]

_VERSION = 1


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
        if data["version"] != _VERSION:
            return None
        return Artifact(
            str(data["input_hash"]),
            data["status"],
            tuple(TestScenario.model_validate(one) for one in data["scenarios"]),
            data.get("policy"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ValidationError):
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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            newline="\n",
            dir=path.parent,
            prefix=f".{path.name}.",
            delete=False,
        ) as file:
            file.write(text)
        os.replace(file.name, path)  # noqa: PTH105 - atomic on every platform
    except OSError as error:
        raise StoreWriteError(
            f"{path} cannot be written",
            why=str(error),
            hint="make the folder writable, or name another path",
        ) from error
