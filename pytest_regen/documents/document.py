"""An API description that has been read: its operations and where their responses stand."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_regen.documents.defects import Defect
from pytest_regen.documents.places import Node
from pytest_regen.documents.reading import load_file
from pytest_regen.documents.references import Broken, References
from pytest_regen.errors import DocumentUnreadableError, UnknownOperationError
from pytest_regen.plurals import counted

__all__ = ["Document", "Operation", "read_document"]

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_JSON: Final = re.compile(r"[^/]+/(?:json|[^/]+\+json)", re.IGNORECASE)
_ANY: Final = ("*/*", "application/*")


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    """In capitals."""
    path: str
    tags: tuple[str, ...]
    statuses: tuple[str, ...]
    """Of all responses that are declared, ``default`` included, in the document's order."""
    schemas: tuple[tuple[str, Node], ...] = field(repr=False, compare=False, default=())
    """The statuses whose response is JSON, each with its schema."""

    @property
    def json_statuses(self) -> tuple[str, ...]:
        """The statuses whose response has a JSON schema."""
        return tuple(status for status, _ in self.schemas)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Document:
    """An OpenAPI or Swagger document.

    Attributes:
        path: the file it was read from.
        sha256: ``sha256:`` and the hex digest of that file; files it refers to are not in it.
        version: what the document says: ``2.0``, ``3.0.3``, ``3.1.0``.
        references: follows its ``$ref``.
    """

    def __init__(self, path: Path, sha256: str, version: str, references: References) -> None:
        self.path = path
        self.sha256 = sha256
        self.version = version
        self.references = references

    @property
    def has_ref_siblings(self) -> bool:
        """Whether keywords beside a ``$ref`` count: since OpenAPI 3.1."""
        return self.version.startswith("3.") and not self.version.startswith("3.0")

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What is wrong with the files themselves and with the list of operations."""
        self.operations  # noqa: B018 - listing the operations is what finds their defects
        return self.references.log.sorted()

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """All operations, in the document's order."""
        return tuple(_operations(self.references, is_swagger=self.version.startswith("2")))

    def find(self, name: str) -> Operation:
        """Return the operation called ``name``: a method and a path, ``GET /v1/projects``.

        The method may be in small letters, and a slash at the end of the path does not count.

        Raises:
            UnknownOperationError: there is none; the hint lists near matches.
        """
        known = {str(operation): operation for operation in self.operations}
        method, _, path = name.strip().partition(" ")
        wanted = f"{method.upper()} {path.strip()}"
        for candidate in (wanted, wanted.rstrip("/"), wanted + "/"):
            if candidate in known:
                return known[candidate]
        like = difflib.get_close_matches(wanted, known, n=5, cutoff=0.5) or list(known)
        # Who names a path without a method means an operation of that path.
        bare = (path.strip() or method).rstrip("/")
        same = [one for one in known if one.partition(" ")[2].rstrip("/") == bare]
        near = list(dict.fromkeys([*same, *like]))[:5]
        raise UnknownOperationError(
            f"{self.path.name} has no operation {name!r}",
            why=f"it has {counted(len(known), 'operation')}"
            if known
            else "it has no operations at all",
            hint=f"near matches: {', '.join(map(repr, near))}"
            if near
            else "check the document's paths",
        )


def read_document(path: Path) -> Document:
    """Return the API description in a JSON or YAML file.

    Raises:
        DocumentUnreadableError: the file cannot be read, or is no OpenAPI 3.x or Swagger 2.0.
    """
    path = Path(path)
    loaded = load_file(path)
    return Document(path, loaded.sha256, _version(loaded.value, path), References(path, loaded))


def _version(value: Any, path: Path) -> str:  # noqa: ANN401 - any JSON value
    """Return the version the document declares, if it is one that is read here."""
    hint = "give an OpenAPI 3.0 or 3.1 or a Swagger 2.0 document"
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "a single value"
        raise DocumentUnreadableError(
            f"{str(path)!r} is no OpenAPI document",
            why=f"it holds {kind}, not a mapping",
            hint=hint,
        )
    declared = value.get("openapi", value.get("swagger"))
    if declared is None:
        raise DocumentUnreadableError(
            f"{str(path)!r} is no OpenAPI document",
            why="it has neither the key 'openapi' nor 'swagger'",
            hint=hint,
        )
    version = str(declared)
    if not re.match(r"3\.\d|2\.0" if "openapi" in value else r"2\.0", version):
        raise DocumentUnreadableError(
            f"{str(path)!r} is of a version that is not read: {version[:40]!r}", hint=hint
        )
    if "paths" in value and not isinstance(value["paths"], dict):
        raise DocumentUnreadableError(
            f"{str(path)!r} is no OpenAPI document", why="'paths' is not a mapping", hint=hint
        )
    return version


def _operations(references: References, *, is_swagger: bool) -> Iterator[Operation]:
    root = references.root
    if "paths" not in root.value:
        return
    for path, item in _mapping(root.child("paths"), references):
        if not path.startswith("/"):
            continue
        for key, node in _mapping(item, references):
            if key in _METHODS:
                operation = _followed(node, references)
                if operation is not None:
                    yield _operation(key, path, operation, references, is_swagger=is_swagger)


def _operation(
    method: str, path: str, node: Node, references: References, *, is_swagger: bool
) -> Operation:
    responses = (
        list(_mapping(node.child("responses"), references)) if "responses" in node.value else []
    )
    responses = [
        (status, response) for status, response in responses if not status.startswith("x-")
    ]
    produces = node.value.get("produces", references.root.value.get("produces"))
    schemas = []
    for status, response in responses:
        followed = _followed(response, references)
        if followed is None:
            continue
        schema = _swagger_schema(followed, produces) if is_swagger else _json_schema(followed)
        if schema is not None:
            schemas.append((status, schema))
    tags = node.value.get("tags")
    return Operation(
        method.upper(),
        path,
        tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        tuple(status for status, _ in responses),
        tuple(schemas),
    )


def _mapping(node: Node, references: References) -> Iterator[tuple[str, Node]]:
    """Yield the entries of a mapping; nothing, and a defect, where there is none."""
    followed = _followed(node, references)
    if followed is None:
        return
    # Beside the $ref of a path item, operations of its own may stand.
    for holder in {id(node.value): node, id(followed.value): followed}.values():
        for key in holder.value:
            if key != "$ref":
                yield key, holder.child(key)


def _followed(node: Node, references: References) -> Node | None:
    """Return the mapping that ``node`` is or refers to; ``None``, and a defect, if it is none."""
    target = references.follow(node)
    if isinstance(target, Broken):
        references.log.error(node.place, target.reason)
        return None
    if not isinstance(target.value, dict):
        references.log.error(node.place, f"a mapping is wanted here, not {target.value!r:.40}")
        return None
    return target


def _swagger_schema(response: Node, produces: Any) -> Node | None:  # noqa: ANN401 - any JSON value
    if "schema" not in response.value:
        return None
    schema = response.child("schema")
    if isinstance(schema.value, dict) and schema.value.get("type") == "file":
        return None
    if isinstance(produces, list) and produces and not any(map(_rank, map(str, produces))):
        return None
    return schema


def _json_schema(response: Node) -> Node | None:
    """Return the schema of the response's JSON body: ``application/json`` before its kin."""
    content = response.value.get("content")
    if not isinstance(content, dict):
        return None
    ranked = sorted(
        (name for name in content if _rank(name)), key=lambda name: (-_rank(name), name)
    )
    for name in ranked:
        media = content[name]
        if isinstance(media, dict) and "schema" in media:
            return response.child("content").child(name).child("schema")
    return None


def _rank(media_type: str) -> int:
    """Return how plainly a media type means JSON; 0 if it does not."""
    bare = media_type.partition(";")[0].strip().lower()
    if bare == "application/json":
        return 3
    return 2 if _JSON.fullmatch(bare) else 1 if bare in _ANY else 0
