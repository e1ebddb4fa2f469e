"""An API description that has been read: its operations and where their responses stand."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pytest_regen.documents.naming import words
from pytest_regen.documents.places import Defect, DefectLog, JsonNode, Pointer
from pytest_regen.documents.reading import BrokenReference, References, load_file
from pytest_regen.documents.schemas import Schemas
from pytest_regen.errors import DocumentUnreadableError, UnknownOperationError
from pytest_regen.extras import needs
from pytest_regen.text import plural

_HOMES: Final = (("components", "schemas"), ("definitions",), ("$defs",))
"""Where a document keeps its named schemas: OpenAPI, Swagger, JSON Schema."""
_PLAIN: Final = "JSON Schema"
"""What stands for the version of a document that is no API description but a schema."""
_OLD_DRAFT: Final = re.compile(r"draft-0[1-7]\b")
_SCHEMA_WORDS: Final = frozenset(
    {"$schema", "$id", "$defs", "definitions", "properties", "$ref", "allOf", "oneOf", "anyOf"}
)
"""Keys of which a schema has one, where it is more than a few words about a value."""
_BESIDE_SCHEMAS: Final = frozenset({"$schema", "$id", "$defs", "definitions", "title", "$comment"})
"""Keys of a document that holds schemas and is none."""
_NAME: Final = re.compile(r"[\w-]+")
"""What can only be the name of a schema: a file has a dot, and a reference more than that."""


@dataclass(frozen=True, slots=True)
class SubtypeMap:
    """What the discriminator of a schema leads to."""

    word: str = ""
    """The property that tells the subtypes apart."""
    found: tuple[JsonNode, ...] = ()
    mapped: tuple[tuple[str, JsonNode], ...] = ()
    """Entries of the mapping: a value of that property, and the schema it stands for."""
    broken: tuple[tuple[Pointer, str], ...] = ()
    """Entries of the mapping that lead nowhere, and why."""


class Subtypes:
    """Finds the subtypes of schemas of one document.

    By its ``mapping`` a discriminator names some; those named schemas that extend the schema by
    ``allOf``, directly or not, are subtypes as well, under their own names.
    """

    def __init__(self, references: References, *, has_ref_siblings: bool) -> None:
        self._references = references
        # Subtypes are looked at, not generated: their defects are not those of the response.
        self._schemas = Schemas(references, DefectLog(), has_ref_siblings=has_ref_siblings)

    def of(self, core: JsonNode) -> SubtypeMap:
        """Return the subtypes of a schema, in the document's order; none without discriminator."""
        declared = list(_discriminators(core))
        if not declared:
            return SubtypeMap()
        word = next((_word(each.value) for each in declared if _word(each.value)), "")
        mapped: list[tuple[str, JsonNode]] = []
        broken: list[tuple[Pointer, str]] = []
        for discriminator in declared:
            for value, entry in _mapping(discriminator):
                target = self._target(entry)
                if isinstance(target, BrokenReference):
                    broken.append(
                        (entry.place, f"the discriminator maps to nothing: {target.reason}")
                    )
                else:
                    mapped.append((value, target))
        found = {target.place: target for _, target in mapped}
        waiting = [core.place, *found]
        while waiting:
            for child in self._extensions.get(waiting.pop(), ()):
                if child.place not in found:
                    found[child.place] = child
                    waiting.append(child.place)
        found.pop(core.place, None)
        return SubtypeMap(word, tuple(found.values()), tuple(mapped), tuple(broken))

    @cached_property
    def places(self) -> frozenset[Pointer]:
        """Where the named schemas stand that extend one with a discriminator."""
        named = self._schemas_by_name.values()
        waiting = [schema.place for schema in named if any(_discriminators(schema))]
        found: set[Pointer] = set()
        while waiting:
            for child in self._extensions.get(waiting.pop(), ()):
                if child.place not in found and "$ref" not in child.value:
                    found.add(child.place)
                    waiting.append(child.place)
        return frozenset(found)

    def properties(self, subtype: JsonNode) -> frozenset[str]:
        """Return the names of all properties of a subtype, inherited ones included."""
        return frozenset(self._schemas.shape(subtype).properties)

    def _target(self, entry: JsonNode) -> JsonNode | BrokenReference:
        """Return what an entry of a mapping stands for: the name of a schema, or a reference."""
        named = self._schemas_by_name.get(str(entry.value))
        if named is not None:
            return named
        if isinstance(entry.value, str) and _NAME.fullmatch(entry.value):
            return BrokenReference(f"there is no schema {entry.value!r}")
        return self._references.follow(JsonNode({"$ref": entry.value}, entry.place))

    @cached_property
    def _schemas_by_name(self) -> dict[str, JsonNode]:
        """The schemas that have a name in the document."""
        return named_schemas(self._references.root)[1]

    @cached_property
    def _extensions(self) -> dict[Pointer, list[JsonNode]]:
        """By place of a schema: the named schemas whose ``allOf`` refers to it."""
        found: dict[Pointer, list[JsonNode]] = {}
        for schema in self._schemas_by_name.values():
            for part in _parts(schema):
                if "$ref" in part.value:
                    base = self._references.follow(part)
                    if isinstance(base, JsonNode):
                        found.setdefault(base.place, []).append(schema)
        return found


def named_schemas(root: JsonNode) -> tuple[str, dict[str, JsonNode]]:
    """Return where the schemas of a document stand that have names, and the schemas."""
    found: dict[str, JsonNode] = {}
    home = ""
    for path in _HOMES:
        node = root
        for part in path:
            if not isinstance(node.value, dict) or part not in node.value:
                break
            node = node.child(part)
        else:
            if isinstance(node.value, dict):
                home = home or str(node.place)
                found = {name: node.child(name) for name in node.value} | found
        if home and path == _HOMES[0]:
            break  # What else stands in an OpenAPI document is no place for schemas.
    return home, found


def _parts(schema: JsonNode) -> Iterator[JsonNode]:
    """Yield what is written in place: the schema itself, and what its ``allOf`` holds."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node.value, dict):
            yield node
            if "$ref" not in node.value:
                waiting.extend(node.entries("allOf"))


def _discriminators(schema: JsonNode) -> Iterator[JsonNode]:
    for part in _parts(schema):
        if "$ref" not in part.value and "discriminator" in part.value:
            yield part.child("discriminator")


def _word(discriminator: Any) -> str:
    word = discriminator.get("propertyName") if isinstance(discriminator, dict) else discriminator
    return word if isinstance(word, str) else ""


def _mapping(discriminator: JsonNode) -> Iterator[tuple[str, JsonNode]]:
    value = discriminator.value
    if isinstance(value, dict) and isinstance(value.get("mapping"), dict):
        mapping = discriminator.child("mapping")
        for name in mapping.value:
            yield str(name), mapping.child(name)


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
    schemas: tuple[tuple[str, JsonNode], ...] = field(repr=False, compare=False, default=())
    """The statuses whose response is JSON, each with its schema."""
    broken: tuple[tuple[str, Defect], ...] = field(repr=False, compare=False, default=())
    """The statuses whose response cannot be read, each with the reason."""
    request: JsonNode | None = field(repr=False, compare=False, default=None)
    """The schema of the JSON body that it takes."""
    broken_request: Defect | None = field(repr=False, compare=False, default=None)
    """Why that body cannot be read."""

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
    def takes_json(self) -> bool:
        """Whether its body is JSON, as far as the document can be read."""
        return self.request is not None or self.broken_request is not None

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
    def name(self) -> str:
        """The title of a document that is a schema itself, else the file's name without suffix."""
        value = self.references.root.value
        title = value.get("title") if self.version == _PLAIN else None
        return title if isinstance(title, str) and words(title) else self.path.stem

    @property
    def home(self) -> str:
        """Where the schemas with names stand: a JSON pointer."""
        return self._named[0] or "#"

    @property
    def named_schemas(self) -> dict[str, JsonNode]:
        """The schemas with names; a document that is a schema is one of them itself."""
        return self._named[1]

    @cached_property
    def _named(self) -> tuple[str, dict[str, JsonNode]]:
        home, found = named_schemas(self.references.root)
        if self.version == _PLAIN and self.references.root.value.keys() - _BESIDE_SCHEMAS:
            found = {self.name: self.references.root} | found
        return home, found

    @property
    def has_ref_siblings(self) -> bool:
        """Whether keywords beside a ``$ref`` count: since OpenAPI 3.1, and draft 2019-09."""
        if self.version == _PLAIN:
            return not _OLD_DRAFT.search(str(self.references.root.value.get("$schema", "")))
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
        log.extend(self.references.log.in_order())
        return log.in_order()

    @property
    def lost_operations(self) -> tuple[Defect, ...]:
        """Where paths and operations cannot be read, so that ``operations`` lacks them."""
        self.operations  # noqa: B018 - listing the operations is what finds their defects
        return self._listing.in_order()

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """All operations, in the document's order."""
        lister = _Lister(self.references, self._listing, is_swagger=self.version.startswith("2"))
        return tuple(lister.operations())

    def find(self, name: str) -> Operation:
        """Return the operation called ``name``: a method and a path, ``GET /v1/projects``.

        The method may be in small letters, and a slash at the end of the path does not count.

        Raises:
            UnknownOperationError: the document has no such operation; the hint lists near matches.
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
    with needs("openapi", "API descriptions"):
        # What comes later needs all of the extra, and asking costs money: of its packages the
        # cheapest to import is missed here.
        import_module("tree_sitter")
    path = Path(path)
    loaded = load_file(path)
    return Document(path, loaded.sha256, _version(loaded.value, path), References(path, loaded))


def _version(value: Any, path: Path) -> str:
    """Return the version the document declares, if it is one that is read here."""
    hint = "give an OpenAPI 3.0 or 3.1 or a Swagger 2.0 document, or a JSON Schema"
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "a single value"
        raise DocumentUnreadableError(
            f"{str(path)!r} is no OpenAPI document",
            why=f"it holds {kind}, not a mapping",
            hint=hint,
        )
    declared = value.get("openapi", value.get("swagger"))
    if declared is None and "paths" not in value and value.keys() & _SCHEMA_WORDS:
        return _PLAIN
    if declared is None:
        raise DocumentUnreadableError(
            f"{str(path)!r} is no OpenAPI document",
            why="it has neither the key 'openapi' nor 'swagger', and is no JSON Schema",
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
    return f"{why}the document has {plural(count, 'operation')}"


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
                    operation = self._follow(node)
                    if isinstance(operation, Defect):
                        self._log.extend([operation])
                    else:
                        yield self._operation(key, path, operation, item)

    def _operation(self, method: str, path: str, node: JsonNode, item: JsonNode) -> Operation:
        statuses, schemas, broken = [], [], []
        produces = node.value.get("produces", self._references.root.value.get("produces"))
        for status, response in self._responses(node):
            statuses.append(status)
            followed = self._follow(response)
            if isinstance(followed, Defect):
                broken.append((status, followed))
                continue
            schema = (
                _swagger_schema(followed, produces) if self._is_swagger else _json_schema(followed)
            )
            if schema is not None:
                schemas.append((status, schema))
        tags = node.value.get("tags")
        request = self._swagger_request(node, item) if self._is_swagger else self._request(node)
        return Operation(
            method.upper(),
            path,
            tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
            tuple(statuses),
            tuple(schemas),
            tuple(broken),
            None if isinstance(request, Defect) else request,
            request if isinstance(request, Defect) else None,
        )

    def _request(self, operation: JsonNode) -> JsonNode | Defect | None:
        """Return the schema of the JSON body that an operation takes."""
        if "requestBody" not in operation.value:
            return None
        body = self._follow(operation.child("requestBody"))
        return body if isinstance(body, Defect) else _json_schema(body)

    def _swagger_request(self, operation: JsonNode, item: JsonNode) -> JsonNode | Defect | None:
        """Return the schema of the parameter that is the body, of the operation or of its path."""
        consumes = operation.value.get("consumes", self._references.root.value.get("consumes"))
        around = self._follow(item)
        for holder in (operation, around):
            if isinstance(holder, Defect):
                continue
            for entry in holder.entries("parameters"):
                parameter = self._follow(entry)
                if isinstance(parameter, Defect):
                    return parameter
                if parameter.value.get("in") == "body":
                    return _swagger_schema(parameter, consumes)
        return None

    def _responses(self, operation: JsonNode) -> Iterator[tuple[str, JsonNode]]:
        if "responses" not in operation.value:
            return
        responses = operation.child("responses")
        if isinstance(self._follow(responses), Defect):
            yield "default", responses  # Whatever it should have been, it cannot be read.
            return
        for status, response in self._entries(responses):
            if not status.startswith("x-"):
                yield status, response

    def _entries(self, node: JsonNode) -> Iterator[tuple[str, JsonNode]]:
        """Yield the entries of a mapping; nothing, and a defect, where there is none."""
        followed = self._follow(node)
        if isinstance(followed, Defect):
            self._log.extend([followed])
            return
        # Beside the $ref of a path item, operations of its own may stand.
        for holder in {id(node.value): node, id(followed.value): followed}.values():
            for key in holder.value:
                if key != "$ref":
                    yield key, holder.child(key)

    def _follow(self, node: JsonNode) -> JsonNode | Defect:
        """Return the mapping that ``node`` is or refers to, or why it is no mapping."""
        target = self._references.follow(node)
        if isinstance(target, BrokenReference):
            return Defect(str(node.place), target.reason, "error")
        if not isinstance(target.value, dict):
            message = f"a mapping is wanted here, not {target.value!r:.40}"
            return Defect(str(node.place), message, "error")
        return target


def _swagger_schema(response: JsonNode, produces: Any) -> JsonNode | None:
    if "schema" not in response.value:
        return None
    schema = response.child("schema")
    if isinstance(schema.value, dict) and schema.value.get("type") == "file":
        return None
    if isinstance(produces, list) and produces and not any(map(_rank, map(str, produces))):
        return None
    return schema


def _json_schema(response: JsonNode) -> JsonNode | None:
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
