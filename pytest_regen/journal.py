"""A change of several files as one file: what each is to hold, and what it held before.

Up to version 1 the new contents lay beside the manifest, one file each; such a change may still be
lying where its writer was killed.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self


def digest(data: bytes | None) -> str | None:
    """Return the SHA-256 of a content; ``None`` where there is no file."""
    return None if data is None else hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a committed change."""

    name: str
    before: str | None
    """SHA-256 of the content that was replaced; ``None`` where there was no file."""
    after: str | None
    """That of the new content; ``None`` where the file is removed."""
    data: bytes | None = None
    """The new content."""
    staged: str | None = None
    """In a change of version 1: the file beside the manifest that holds it, until it is moved."""

    @classmethod
    def of(cls, name: str, before: bytes | None, data: bytes | None) -> Self:
        """Return the change of a file from one content to another."""
        return cls(name, digest(before), digest(data), data)

    def is_edited(self, found: bytes | None) -> bool:
        """Return whether somebody changed the file after this change was committed."""
        return digest(found) not in (self.before, self.after)


def encode_changes(changes: Iterable[Change]) -> bytes:
    """Return the file that holds some changes, contents included."""
    entries = [
        {"name": change.name, "before": change.before, **_content(change.data)}
        for change in changes
    ]
    return json.dumps({"version": 2, "changes": entries}, ensure_ascii=False, indent=1).encode()


def _content(data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {"text": None}
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def read_changes(manifest: bytes, name_fault: Callable[[str], str]) -> tuple[Change, ...]:
    """Return the changes that a file holds.

    Args:
        manifest: the file.
        name_fault: says why no file of a name may be written; empty where it may.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, RecursionError: it was not written by
            ``encode_changes``, nor by a version before.
    """
    value = json.loads(manifest)
    read = {1: _read_staged, 2: _read_whole}[value.get("version", 1)]
    changes = tuple(read(entry) for entry in value["changes"])
    for change in changes:
        # A folder comes from version control too: a manifest must not reach outside of it.
        if why := name_fault(change.name):
            raise ValueError(why)
    return changes


def _read_whole(entry: Mapping[str, Any]) -> Change:
    data = entry["text"] if "text" in entry else _decode(entry["base64"])
    if isinstance(data, str):
        data = data.encode()
    return Change(entry["name"], entry["before"], digest(data), data)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _read_staged(entry: Mapping[str, Any]) -> Change:
    name, staged = entry["name"], entry["staged"]
    if staged is not None and not (staged.isascii() and staged.isdigit()):
        message = f"{staged!r} is not a staged file"
        raise ValueError(message)
    return Change(name, entry["before"], entry["after"], staged=staged)
