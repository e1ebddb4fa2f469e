"""An API description that has been read: its operations and where their responses stand."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_regen.documents.defects import Defect, DefectLog
from pytest_regen.documents.places import Node
from pytest_regen.documents.reading import load_file
from pytest_regen.documents.references import Broken, References
from pytest_regen.documents.subtypes import Subtypes
from pytest_regen.errors import DocumentUnreadableError, UnknownOperationError
from pytest_regen.plurals import counted

__all__ = ["Document", "Operation", "read_document"]

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_SUCCESS: Final = re.compile(r"2(\d\d|XX)", re.IGNORECASE)
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
    broken: tuple[tuple[str, Defect], ...] = field(repr=False, compare=False, default=())
    """The statuses whose response cannot be read, each with the reason."""

    @property
    def json_statuses(self) -> tuple[str, ...]:
        """The statuses whose response has a JSON schema."""
        return tuple(status for status, _ in self.schemas)

    @property
    def successes(self) -> tuple[str, ...]:
        """The statuses that declare a success, the first choice first: 200, then by number.

        ``default`` stands for what is not declared. It is a success only where no other is: beside
        a 204 or a redirect it describes errors.
        """
        good = [status for status in self.statuses if _SUCCESS.fullmatch(status)]
        if not good and not any(status.startswith("3") for status in self.statuses):
            good = [status for status in self.statuses if status == "default"]
        return tuple(sorted(good, key=lambda status: (status != "200", status.upper())))

    @property
    def is_answered_in_json(self) -> bool:
        """Whether a success is JSON, as far as the document can be read."""
        known = {status for status, _ in (*self.schemas, *self.broken)}
        return not known.isdisjoint(self.successes)

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
        self._listing = DefectLog()

    @property
    def has_ref_siblings(self) -> bool:
        """Whether keywords beside a ``$ref`` count: since OpenAPI 3.1."""
        return self.version.startswith("3.") and not self.version.startswith("3.0")

    @cached_property
    def subtypes(self) -> Subtypes:
        """Which schemas extend which."""
        return Subtypes(self.references, has_ref_siblings=self.has_ref_siblings)

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What is wrong with the files themselves and with the list of operations."""
        log = DefectLog()
        log.extend(self.lost_operations)
        log.extend(defect for each in self.operations for _, defect in each.broken)
        log.extend(self.references.log.sorted())
        return log.sorted()

    @property
    def lost_operations(self) -> tuple[Defect, ...]:
        """Where paths and operations cannot be read, so that ``operations`` lacks them."""
        self.operations  # noqa: B018 - listing the operations is what finds their defects
        return self._listing.sorted()

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """All operations, in the document's order."""
        lister = _Lister(self.references, self._listing, is_swagger=self.version.startswith("2"))
        return tuple(lister.operations())

    def find(self, name: str) -> Operation:
        """Return the operation called ``name``: a method and a path, ``GET /v1/projects``.

        The method may be in small letters, and a slash at the end of the path does not count.

        Raises:
            UnknownOperationError: there is none; the hint lists near matches.
        """
        known = {str(operation): operation for operation in self.operations}
        method, _, path = name.strip().partition(" ")
        if method.startswith("/"):
            method, path = "", name.strip()
        wanted = f"{method.upper()} {path.strip()}".strip()
        for candidate in (wanted, wanted.rstrip("/"), wanted + "/"):
            if candidate in known:
                return known[candidate]
        near = self._near(wanted, path.strip())
        raise UnknownOperationError(
            f"{self.path.name} has no operation {name!r}",
            why=_why_unknown(method, len(known)),
            hint=f"near matches: {', '.join(map(repr, near))}"
            if near
            else "check the document's paths",
        )

    def _near(self, wanted: str, path: str) -> list[str]:
        """Return up to five operations that may have been meant: those of the same path first."""
        names = [str(operation) for operation in self.operations]
        same = [str(each) for each in self.operations if each.path.rstrip("/") == path.rstrip("/")]
        close = difflib.get_close_matches(wanted, names, n=5, cutoff=0.5)
        return list(dict.fromkeys((*same, *close)))[:5] or names[:5]


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


def _why_unknown(method: str, count: int) -> str:
    if not count:
        return "it has no operations at all"
    why = "" if method else "an operation is named by its method and its path; "
    return f"{why}the document has {counted(count, 'operation')}"


class _Lister:
    """Finds the operations of a document, and the schemas of their JSON responses."""

    def __init__(self, references: References, log: DefectLog, *, is_swagger: bool) -> None:
        self._references = references
        self._log = log
        self._is_swagger = is_swagger

    def operations(self) -> Iterator[Operation]:
        """Yield the operations in the document's order; note those that cannot be read."""
        root = self._references.root
        if "paths" not in root.value:
            return
        for path, item in self._entries(root.child("paths")):
            if not path.startswith("/"):
                continue
            for key, node in self._entries(item):
                if key in _METHODS:
                    operation = self._followed(node)
                    if isinstance(operation, Defect):
                        self._log.extend([operation])
                    else:
                        yield self._operation(key, path, operation)

    def _operation(self, method: str, path: str, node: Node) -> Operation:
        statuses, schemas, broken = [], [], []
        produces = node.value.get("produces", self._references.root.value.get("produces"))
        for status, response in self._responses(node):
            statuses.append(status)
            followed = self._followed(response)
            if isinstance(followed, Defect):
                broken.append((status, followed))
                continue
            schema = (
                _swagger_schema(followed, produces) if self._is_swagger else _json_schema(followed)
            )
            if schema is not None:
                schemas.append((status, schema))
        tags = node.value.get("tags")
        return Operation(
            method.upper(),
            path,
            tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
            tuple(statuses),
            tuple(schemas),
            tuple(broken),
        )

    def _responses(self, operation: Node) -> Iterator[tuple[str, Node]]:
        if "responses" not in operation.value:
            return
        responses = operation.child("responses")
        if isinstance(self._followed(responses), Defect):
            yield "default", responses  # Whatever it should have been, it cannot be read.
            return
        for status, response in self._entries(responses):
            if not status.startswith("x-"):
                yield status, response

    def _entries(self, node: Node) -> Iterator[tuple[str, Node]]:
        """Yield the entries of a mapping; nothing, and a defect, where there is none."""
        followed = self._followed(node)
        if isinstance(followed, Defect):
            self._log.extend([followed])
            return
        # Beside the $ref of a path item, operations of its own may stand.
        for holder in {id(node.value): node, id(followed.value): followed}.values():
            for key in holder.value:
                if key != "$ref":
                    yield key, holder.child(key)

    def _followed(self, node: Node) -> Node | Defect:
        """Return the mapping that ``node`` is or refers to, or why it is none."""
        target = self._references.follow(node)
        if isinstance(target, Broken):
            return Defect(str(node.place), target.reason, "error")
        if not isinstance(target.value, dict):
            message = f"a mapping is wanted here, not {target.value!r:.40}"
            return Defect(str(node.place), message, "error")
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
