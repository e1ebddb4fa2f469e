"""Where a value stands in a document, and the value together with that place."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Pointer:
    """A JSON pointer in one of the files that make up a document."""

    file: str = ""
    """Relative to the document's folder, with forward slashes; empty for the document itself."""
    path: tuple[str, ...] = ()

    def __truediv__(self, segment: object) -> "Pointer":
        return Pointer(self.file, (*self.path, str(segment)))

    def is_in(self, outer: "Pointer") -> bool:
        """Return whether this place is ``outer`` or inside it."""
        return self.file == outer.file and self.path[: len(outer.path)] == outer.path

    def __str__(self) -> str:
        escaped = (part.replace("~", "~0").replace("/", "~1") for part in self.path)
        return f"{self.file}#" + "".join(f"/{part}" for part in escaped)


@dataclass(frozen=True, slots=True, eq=False)
class JsonNode:
    """A JSON value and where it stands.

    A node that merging has put together may hold other nodes in place of plain values; its place
    is then the one the merged value would have.
    """

    value: Any
    place: Pointer

    def child(self, key: str | int) -> "JsonNode":
        """Return the value under ``key``, which must be there."""
        value = self.value[key]
        return value if isinstance(value, JsonNode) else JsonNode(value, self.place / key)

    def entries(self, key: str) -> Iterator["JsonNode"]:
        """Yield the values of the list under ``key``; nothing where there is no list."""
        values = self.value.get(key)
        if isinstance(values, list):
            inner = JsonNode(values, self.place / key)
            for index in range(len(values)):
                yield inner.child(index)


def pointer_segments(fragment: str) -> tuple[str, ...]:
    """Return the parts of a decoded JSON pointer such as ``/components/schemas/a~1b``."""
    if not fragment:
        return ()
    parts = fragment[1:].split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


@dataclass(frozen=True, slots=True, order=True)
class Defect:
    """One thing in a document that is wrong, or that the IR cannot say."""

    where: str
    """JSON pointer after ``#``; the file's name stands before it where that is another."""
    message: str
    severity: Literal["error", "warning"] = "warning"
    """``error``: the document is broken here. ``warning``: readable, but a person should look
    (issue code REVIEW)."""
    detail: str = ""
    """More lines, where the message alone does not say it all."""

    def to_json(self) -> dict[str, str]:
        """Return the entry that ``generate --dry-run --json`` prints."""
        data = {"where": self.where, "message": self.message, "severity": self.severity}
        return {**data, "detail": self.detail} if self.detail else data

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(slots=True)
class DefectLog:
    """Collects defects; each is kept once, however often its place is visited."""

    _seen: dict[Defect, None] = field(default_factory=dict)

    def error(self, where: object, message: str) -> None:
        """Note that the document is broken at ``where``."""
        self._seen[Defect(str(where), message, "error")] = None

    def review(self, where: object, message: str, detail: str = "") -> None:
        """Note that the IR says less at ``where`` than the document does."""
        self._seen[Defect(str(where), message, "warning", detail)] = None

    def extend(self, defects: Iterable[Defect]) -> None:
        """Take over defects found elsewhere."""
        self._seen.update(dict.fromkeys(defects))

    def in_order(self) -> tuple[Defect, ...]:
        """Return all of them by place, whatever the order in which they were met."""
        return tuple(sorted(self._seen))
