"""Where a value stands in a document, and the value together with that place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Node", "Place", "pointer_segments"]


@dataclass(frozen=True, slots=True)
class Place:
    """A JSON pointer in one of the files that make up a document."""

    file: str = ""
    """Relative to the document's folder, with forward slashes; empty for the document itself."""
    path: tuple[str, ...] = ()

    def __truediv__(self, segment: object) -> "Place":
        return Place(self.file, (*self.path, str(segment)))

    def is_in(self, outer: "Place") -> bool:
        """Return whether this place is ``outer`` or inside it."""
        return self.file == outer.file and self.path[: len(outer.path)] == outer.path

    def __str__(self) -> str:
        escaped = (part.replace("~", "~0").replace("/", "~1") for part in self.path)
        return f"{self.file}#" + "".join(f"/{part}" for part in escaped)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A JSON value and where it stands.

    A node that merging has put together may hold other nodes in place of plain values; its place
    is then the one the merged value would have.
    """

    value: Any
    place: Place

    def child(self, key: str | int) -> "Node":
        """Return the value under ``key``, which must be there."""
        value = self.value[key]
        return value if isinstance(value, Node) else Node(value, self.place / key)

    def entries(self, key: str) -> Iterator["Node"]:
        """Yield the values of the list under ``key``; nothing where there is no list."""
        values = self.value.get(key)
        if isinstance(values, list):
            inner = Node(values, self.place / key)
            for index in range(len(values)):
                yield inner.child(index)


def pointer_segments(fragment: str) -> tuple[str, ...]:
    """Return the parts of a decoded JSON pointer such as ``/components/schemas/a~1b``."""
    if not fragment:
        return ()
    parts = fragment[1:].split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
