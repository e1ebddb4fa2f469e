"""A change of several files as one file: what each is to hold, and what it held before."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass


def digest(data: bytes | None) -> str | None:
    """Return the SHA-256 of a content; ``None`` where there is no file."""
    return None if data is None else hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a committed change."""

    name: str
    before: str | None
    """SHA-256 of the content that was replaced; ``None`` where there was no file."""
    data: bytes | None
    """The new content; ``None`` where the file is removed."""

    @property
    def after(self) -> str | None:
        """SHA-256 of the new content."""
        return digest(self.data)

    def is_edited(self, content: bytes | None) -> bool:
        """Return whether somebody changed the file after this change was committed."""
        return digest(content) not in (self.before, self.after)


def encode_changes(changes: Iterable[Change]) -> bytes:
    """Return the file that holds some changes, contents included."""
    entries = []
    for change in changes:
        entry = {"name": change.name, "before": change.before, "text": None}
        if change.data is not None:
            try:
                entry["text"] = change.data.decode()
            except UnicodeDecodeError:
                # An image in a history, for one: JSON holds text only.
                entry.pop("text")
                entry["base64"] = base64.b64encode(change.data).decode()
        entries.append(entry)
    return json.dumps({"version": 2, "changes": entries}, ensure_ascii=False, indent=1).encode()


def read_changes(manifest: bytes, name_fault: Callable[[str], str]) -> tuple[Change, ...]:
    """Return the changes that a file holds.

    Args:
        manifest: the file.
        name_fault: says why no file of a name may be written; empty where it may.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, RecursionError: it was not written by
            ``encode_changes``.
    """
    value = json.loads(manifest)
    if value["version"] != 2:  # Version 1 was never released.
        raise ValueError(f"version {value['version']!r} is unknown")
    changes = []
    for entry in value["changes"]:
        # A folder comes from version control too: a manifest must not reach outside of it.
        if why := name_fault(entry["name"]):
            raise ValueError(why)
        if "text" in entry:
            data = None if entry["text"] is None else entry["text"].encode()
        else:
            data = base64.b64decode(entry["base64"], validate=True)
        changes.append(Change(entry["name"], entry["before"], data))
    return tuple(changes)
