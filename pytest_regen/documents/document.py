"""An API description that has been read: its operations and where their responses stand."""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pytest_regen.documents.digests import document_digests
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


@dataclass(eq=False)
class Subtypes:
    """Finds the subtypes of schemas of one document.

    By its ``mapping`` a discriminator names some; those named schemas that extend the schema by
    ``allOf``, directly or not, are subtypes as well, under their own names.
    """

    references: References
    named: Mapping[str, JsonNode]
    has_ref_siblings: bool

    def of(self, core: JsonNode, log: DefectLog | None = None) -> SubtypeMap:
        """Return the subtypes of a schema, in the document's order; none without discriminator.

        Args:
            core: the schema.
            log: where an entry of the mapping that leads nowhere is noted.
        """
        word = ""
        mapped: list[tuple[str, JsonNode]] = []
        discriminators = list(_discriminators(core))
        for declared in discriminators:
            value = declared.value if isinstance(declared.value, dict) else {}
            # Swagger has no mapping, and the name of the property alone.
            name = value.get("propertyName", declared.value)
            word = word or (name if isinstance(name, str) else "")
            if not isinstance(value.get("mapping"), dict):
                continue
            for tag in value["mapping"]:
                entry = declared.child("mapping").child(tag)
                name = entry.value if isinstance(entry.value, str) else ""
                target: JsonNode | BrokenReference
                # An entry is the name of a schema, or a reference to one.
                if name in self.named:
                    target = self.named[name]
                elif _NAME.fullmatch(name):
                    target = BrokenReference(f"there is no schema {name!r}")
                else:
                    target = self.references.follow(JsonNode({"$ref": entry.value}, entry.place))
                if not isinstance(target, BrokenReference):
                    mapped.append((str(tag), target))
                elif log is not None:
                    log.review(entry.place, f"the discriminator maps to nothing: {target.reason}")
        # Those that the mapping leaves out extend it as well, because a mapping may be partial.
        children = {target.place: target for _, target in mapped}
        self._extend(children, [core.place, *children] if discriminators else [])
        children.pop(core.place, None)
        return SubtypeMap(word, tuple(children.values()), tuple(mapped))

    @cached_property
    def places(self) -> frozenset[Pointer]:
        """Where the named schemas stand that extend one with a discriminator."""
        children: dict[Pointer, JsonNode] = {}
        named = self.named.values()
        self._extend(children, [base.place for base in named if any(_discriminators(base))])
        # A mere reference is no type of its own, because it is another name of what it refers to.
        return frozenset(place for place, child in children.items() if "$ref" not in child.value)

    def _extend(self, children: dict[Pointer, JsonNode], bases: list[Pointer]) -> None:
        """Add to ``children`` the named schemas that extend one of ``bases``, directly or not."""
        while bases:
            for child in self._extensions.get(bases.pop(), ()):
                if child.place not in children:
                    children[child.place] = child
                    bases.append(child.place)

    @cached_property
    def schemas(self) -> Schemas:
        """Reads subtypes with all that they inherit."""
        # With a log of their own, because they are looked at and not generated here.
        return Schemas(self.references, DefectLog(), has_ref_siblings=self.has_ref_siblings)

    @cached_property
    def _extensions(self) -> dict[Pointer, list[JsonNode]]:
        """By place of a schema: the named schemas whose ``allOf`` refers to it."""
        extensions: dict[Pointer, list[JsonNode]] = {}
        for schema in self.named.values():
            for part in _parts(schema):
                if "$ref" in part.value:
                    base = self.references.follow(part)
                    if isinstance(base, JsonNode):
                        extensions.setdefault(base.place, []).append(schema)
        return extensions


def _parts(schema: JsonNode) -> Iterator[JsonNode]:
    """Yield what is written in place: the schema itself, and what its ``allOf`` holds."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node.value, dict):
            yield node
            # What a reference leads to is another schema, whose words are not those of this one.
            if "$ref" not in node.value:
                waiting.extend(node.entries("allOf"))


def _discriminators(schema: JsonNode) -> Iterator[JsonNode]:
    for part in _parts(schema):
        if "$ref" not in part.value and "discriminator" in part.value:
            yield part.child("discriminator")


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
    answers: Mapping[str, "JsonNode | Defect"] = field(
        repr=False, compare=False, default_factory=dict
    )
    """The statuses whose response is JSON, each with its schema, or why it cannot be read."""
    request: "JsonNode | Defect | None" = field(repr=False, compare=False, default=None)
    """The schema of the JSON body that it takes, or why it cannot be read."""

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
        return self.request is not None

    @property
    def is_answered_in_json(self) -> bool:
        """Whether a success is JSON, as far as the document can be read."""
        return not self.answers.keys().isdisjoint(self.successes)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(eq=False)
class Document:
    """An OpenAPI or Swagger document."""

    path: Path
    """The file it was read from."""
    version: str
    """What the document says: ``2.0``, ``3.0.3``, ``3.1.0``."""
    references: References
    """Follows its ``$ref``."""
    _listing: DefectLog = field(default_factory=DefectLog)

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
        schemas: dict[str, JsonNode] = {}
        home, root = "", self.references.root
        for path in _HOMES:
            node = root
            for part in path:
                is_there = isinstance(node.value, dict) and part in node.value
                node = node.child(part) if is_there else JsonNode(None, node.place)
            if isinstance(node.value, dict):
                home = home or str(node.place)
                schemas = {name: node.child(name) for name in node.value} | schemas
            if home and path == _HOMES[0]:
                break  # Because what else stands in an OpenAPI document is no place for schemas.
        if self.version == _PLAIN and root.value.keys() - _BESIDE_SCHEMAS:
            schemas = {self.name: root} | schemas
        return home, schemas

    @property
    def has_ref_siblings(self) -> bool:
        """Whether keywords beside a ``$ref`` count: since OpenAPI 3.1, and draft 2019-09."""
        if self.version == _PLAIN:
            return not _OLD_DRAFT.search(str(self.references.root.value.get("$schema", "")))
        return self.version.startswith("3.") and not self.version.startswith("3.0")

    @cached_property
    def subtypes(self) -> Subtypes:
        """Which schemas extend which."""
        return Subtypes(self.references, self.named_schemas, self.has_ref_siblings)

    @property
    def lost_operations(self) -> tuple[Defect, ...]:
        """Where paths and operations cannot be read, so that ``operations`` lacks them."""
        self.operations  # noqa: B018 - listing the operations is what finds their defects
        return self._listing.in_order()

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """All operations, in the document's order."""
        paths = JsonNode({}, Pointer())
        if "paths" in self.references.root.value:
            paths = self.references.root.child("paths")
        return tuple(
            self._operation(key, path, operation, item)
            for path, item in self._entries(paths)
            # Extensions stand beside the paths: x-….
            if path.startswith("/")
            for key, node in self._entries(item)
            if key in _METHODS
            for operation in self._mappings(node)
        )

    def _operation(self, method: str, path: str, node: JsonNode, item: JsonNode) -> Operation:
        is_swagger = self.version.startswith("2")
        root, keywords = self.references.root.value, node.value
        answers: dict[str, JsonNode | Defect] = {}
        statuses = []
        # In Swagger (uber.json) types of media stand once for the whole document.
        produces = keywords.get("produces", root.get("produces"))
        responses = list(self._entries(node.child("responses"))) if "responses" in keywords else []
        for status, response in responses:
            if status.startswith("x-"):
                continue
            statuses.append(status)
            answer: JsonNode | Defect | None = self._follow(response)
            if isinstance(answer, JsonNode):
                answer = _swagger_schema(answer, produces) if is_swagger else _json_schema(answer)
            if answer is not None:
                answers[status] = answer
        request: JsonNode | Defect | None = None
        if is_swagger:
            consumes = keywords.get("consumes", root.get("consumes"))
            # What all operations of a path take stands beside them.
            holders = [part for part in (node, self._follow(item)) if isinstance(part, JsonNode)]
            for written in (part for each in holders for part in each.entries("parameters")):
                parameter = self._follow(written)
                if isinstance(parameter, Defect):
                    request = request or parameter
                elif parameter.value.get("in") == "body":
                    request = request or _swagger_schema(parameter, consumes)
        elif "requestBody" in keywords:
            request = self._follow(node.child("requestBody"))
            request = _json_schema(request) if isinstance(request, JsonNode) else request
        # Tags are for choosing operations alone, so that wrong ones are no defect.
        tags = keywords.get("tags")
        names = tuple(map(str, tags)) if isinstance(tags, list) else ()
        return Operation(method.upper(), path, names, tuple(statuses), answers, request)

    def _entries(self, node: JsonNode) -> Iterator[tuple[str, JsonNode]]:
        """Yield the entries of a mapping; nothing, and a defect, where there is none."""
        for target in self._mappings(node):
            yield from ((key, target.child(key)) for key in target.value)

    def _mappings(self, node: JsonNode) -> Iterator[JsonNode]:
        """Yield the mapping that ``node`` is or refers to; note a defect where it is none."""
        target = self._follow(node)
        if isinstance(target, Defect):
            self._listing.extend([target])
        else:
            yield target

    def _follow(self, node: JsonNode) -> JsonNode | Defect:
        """Return the mapping that ``node`` is or refers to, or why it is no mapping."""
        target = self.references.follow(node)
        if isinstance(target, BrokenReference):
            return Defect(str(node.place), target.reason, "error")
        if not isinstance(target.value, dict):
            message = f"a mapping is wanted here, not {target.value!r:.40}"
            return Defect(str(node.place), message, "error")
        return target

    def find(self, name: str) -> Operation:
        """Return the operation called ``name``: a method and a path, ``GET /v1/projects``.

        The method may be in small letters, and a slash at the end of the path does not count.

        Raises:
            UnknownOperationError: the document has no such operation; the hint lists near matches.
        """
        operations = {str(operation): operation for operation in self.operations}
        method, _, path = name.strip().partition(" ")
        if method.startswith("/"):
            method, path = "", name.strip()
        spelled = f"{method.upper()} {path.strip()}".strip()
        # People copy paths from code, where a slash at the end comes and goes.
        for candidate in (spelled, spelled.rstrip("/"), spelled + "/"):
            if candidate in operations:
                return operations[candidate]
        names = list(operations)
        near = [name for name in names if name.partition(" ")[2].rstrip("/") == path.rstrip("/ ")]
        near += difflib.get_close_matches(spelled, names, n=5, cutoff=0.5)
        near = list(dict.fromkeys(near))[:5] or names[:5]
        why = f"the document has {plural(len(names), 'operation')}"
        if not method:
            why = f"an operation is named by its method and its path; {why}"
        hint = f"near matches: {', '.join(map(repr, near))}"
        raise UnknownOperationError(
            f"{self.path.name} has no operation {name!r}",
            why=why if names else "it has no operations at all",
            hint=hint if names else "check the document's paths",
        )


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
    value, doubled = load_file(path)
    references, why = References(path, value, doubled), ""
    what = f"{str(path)!r} is not an OpenAPI document"
    if isinstance(value, dict):
        version = str(value.get("openapi", value.get("swagger", "")))
        # Some write "openapi: 2.0", because Swagger was renamed.
        is_read = re.match(r"3\.\d|2\.0" if "openapi" in value else r"2\.0", version)
        if not version and "paths" not in value and value.keys() & _SCHEMA_WORDS:
            return Document(path, _PLAIN, references)
        if is_read and isinstance(value.get("paths", {}), dict):
            return Document(path, version, references)
        if not version:
            why = "it has neither the key 'openapi' nor 'swagger', and is not a JSON Schema"
        elif is_read:
            why = "'paths' is not a mapping"
        else:
            what = f"{str(path)!r} is of a version that is not read: {version[:40]!r}"
    else:
        why = f"it holds {'a list' if isinstance(value, list) else 'a single value'}, not a mapping"
    hint = "give an OpenAPI 3.0 or 3.1 or a Swagger 2.0 document, or a JSON Schema"
    raise DocumentUnreadableError(what, why=why, hint=hint)


def read_shared_document(path: Path) -> Document:
    """Return a document that was read before, if it is as it was: hundreds of stores are of one.

    Raises:
        DocumentUnreadableError: as ``read_document``.
    """
    return _read_state(path, tuple(document_digests(path).values()))


@lru_cache(maxsize=1)
def _read_state(path: Path, _digests: tuple[str | None, ...]) -> Document:
    return read_document(path)


def _swagger_schema(response: JsonNode, produces: Any) -> JsonNode | None:
    is_json = not isinstance(produces, list) or not produces or any(map(_rank, map(str, produces)))
    schema = response.child("schema") if is_json and "schema" in response.value else None
    # Swagger says of a download that its schema is a file; it is no JSON.
    is_file = schema and isinstance(schema.value, dict) and schema.value.get("type") == "file"
    return None if is_file else schema


def _json_schema(response: JsonNode) -> JsonNode | None:
    """Return the schema of the response's JSON body: ``application/json`` before its kin."""
    content = response.value.get("content")
    if not isinstance(content, dict):
        return None
    # By name among equals, because the order of keys must not decide which types there are.
    ranked = sorted(filter(_rank, content), key=lambda name: (-_rank(name), name))
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
