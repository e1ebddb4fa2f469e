"""Schemas that extend another by ``allOf`` and are told apart by its discriminator."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pytest_regen.documents.defects import DefectLog
from pytest_regen.documents.places import Node, Place
from pytest_regen.documents.references import Broken, References
from pytest_regen.documents.schemas import Schemas

__all__ = ["Mapped", "Subtypes"]

_HOMES: Final = (("components", "schemas"), ("definitions",))
"""Where a document keeps its named schemas: OpenAPI, Swagger."""
_NAME: Final = re.compile(r"[\w-]+")
"""What can only be the name of a schema: a file has a dot, and a reference more than that."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """What the discriminator of a schema leads to."""

    word: str = ""
    """The property that tells the subtypes apart."""
    found: tuple[Node, ...] = ()
    broken: tuple[tuple[Place, str], ...] = ()
    """Entries of the mapping that lead nowhere, and why."""


class Subtypes:
    """Finds the subtypes of schemas of one document.

    By its ``mapping`` a discriminator names some; those named schemas that extend the schema by
    ``allOf``, directly or not, are subtypes as well, told by their own names.
    """

    def __init__(self, references: References, *, has_ref_siblings: bool) -> None:
        self._references = references
        # Subtypes are looked at, not generated: their defects are not those of the response.
        self._schemas = Schemas(references, DefectLog(), has_ref_siblings=has_ref_siblings)

    def of(self, core: Node) -> Mapped:
        """Return the subtypes of a schema, in the document's order; none without discriminator."""
        declared = list(_discriminators(core))
        if not declared:
            return Mapped()
        word = next((_word(each.value) for each in declared if _word(each.value)), "")
        found: dict[Place, Node] = {}
        broken: list[tuple[Place, str]] = []
        for discriminator in declared:
            for entry in _mapping(discriminator):
                target = self._target(entry)
                if isinstance(target, Broken):
                    broken.append(
                        (entry.place, f"the discriminator maps to nothing: {target.reason}")
                    )
                else:
                    found[target.place] = target
        waiting = [core.place, *found]
        while waiting:
            for child in self._extensions.get(waiting.pop(), ()):
                if child.place not in found:
                    found[child.place] = child
                    waiting.append(child.place)
        found.pop(core.place, None)
        return Mapped(word, tuple(found.values()), tuple(broken))

    def properties(self, subtype: Node) -> frozenset[str]:
        """Return the names of all properties of a subtype, inherited ones included."""
        return frozenset(self._schemas.shape(subtype).properties)

    def _target(self, entry: Node) -> Node | Broken:
        """Return what an entry of a mapping stands for: the name of a schema, or a reference."""
        named = self._named.get(str(entry.value))
        if named is not None:
            return named
        if isinstance(entry.value, str) and _NAME.fullmatch(entry.value):
            return Broken(f"there is no schema {entry.value!r}")
        return self._references.follow(Node({"$ref": entry.value}, entry.place))

    @cached_property
    def _named(self) -> dict[str, Node]:
        """The schemas that have a name in the document."""
        for home in _HOMES:
            node = self._references.root
            for part in home:
                if not isinstance(node.value, dict) or part not in node.value:
                    break
                node = node.child(part)
            else:
                if isinstance(node.value, dict):
                    return {name: node.child(name) for name in node.value}
        return {}

    @cached_property
    def _extensions(self) -> dict[Place, list[Node]]:
        """By place of a schema: the named schemas whose ``allOf`` refers to it."""
        found: dict[Place, list[Node]] = {}
        for schema in self._named.values():
            for part in _parts(schema):
                if "$ref" in part.value:
                    base = self._references.follow(part)
                    if isinstance(base, Node):
                        found.setdefault(base.place, []).append(schema)
        return found


def _parts(schema: Node) -> Iterator[Node]:
    """Yield what is written in place: the schema itself, and what its ``allOf`` holds."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node.value, dict):
            yield node
            if "$ref" not in node.value:
                waiting.extend(node.entries("allOf"))


def _discriminators(schema: Node) -> Iterator[Node]:
    for part in _parts(schema):
        if "$ref" not in part.value and "discriminator" in part.value:
            yield part.child("discriminator")


def _word(discriminator: Any) -> str:  # noqa: ANN401 - any JSON value
    word = discriminator.get("propertyName") if isinstance(discriminator, dict) else discriminator
    return word if isinstance(word, str) else ""


def _mapping(discriminator: Node) -> Iterator[Node]:
    value = discriminator.value
    if isinstance(value, dict) and isinstance(value.get("mapping"), dict):
        mapping = discriminator.child("mapping")
        for name in mapping.value:
            yield mapping.child(name)
