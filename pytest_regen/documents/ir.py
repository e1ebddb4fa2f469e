"""The intermediate representation: what is read from an API description, as ``ir.json`` holds it.

Values only. Other programs read the file, so that names and shapes change with ``version`` alone;
``enum_names``, ``primary_key`` and ``reviews`` are present only where the document gives cause.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr
from pydantic.functional_serializers import model_serializer

from pytest_regen.canonical import canonical_hash
from pytest_regen.files import store_slug

FORMAT = 3
"""How this release reads a document and words a prompt. Raised with every change that makes
another IR of a document that is still the same: a store of another number is not stale for that."""

ScalarKind = Literal["string", "integer", "number", "boolean", "any"]
EnumValue = StrictStr | StrictInt
"""A wire value: its JSON type is kept."""


_ABSENT: Final = frozenset(
    {"format", "discriminator", "enum_names", "primary_key", "schemas", "reviews"}
)
"""What is not written where there is none."""


class _Node(BaseModel):
    """Base of every IR value: immutable, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @model_serializer(mode="wrap")
    def _without_absent(self, dump: Callable[[Any], dict[str, Any]], info: Any) -> dict[str, Any]:
        data = dump(self)
        # In files alone, because other programs read those, and a new key must not appear there.
        absent = _ABSENT if info.mode == "json" else ()
        return {key: data[key] for key in data if key not in absent or data[key] not in (None, [])}

    def to_json(self) -> dict[str, Any]:
        """Return what ``ir.json`` has of it, every key of the format present."""
        return self.model_dump(mode="json")


_SAME_FORMAT: Final[Mapping[str, str]] = {
    "datetime": "date-time",
    "full-date": "date",
    "guid": "uuid",
}


def usual_format(name: str) -> str:
    """Return the word of JSON Schema for a format that documents call by another, or the name."""
    return _SAME_FORMAT.get(name.lower(), name)


_FAMILIES: Final[Mapping[str, str]] = {
    **_SAME_FORMAT,
    "base64": "byte",
    "currency": "decimal",
    "iri": "uri",
    "money": "decimal",
    "uri-reference": "uri",
    "url": "uri",
}
"""The same, with formats that languages hold in one type, though strings are drawn otherwise."""


class Scalar(_Node):
    """A value without structure; ``any`` where the document allows every JSON value."""

    kind: ScalarKind
    """The JSON type."""
    format: str | None = None
    """As the document words it: ``int64``, ``decimal``, ``uuid``, ``date-time``, …"""

    @property
    def format_family(self) -> str:
        """The format that stands for all that languages hold in one type; empty without one."""
        # Documents write Date-Time, dateTime and datetime.
        lowered = (self.format or "").lower()
        return _FAMILIES.get(lowered, lowered)


class Ref(_Node):
    """A type of the same store, by the name the source declares."""

    kind: Literal["ref"] = "ref"
    """Says that this is a reference."""
    name: str
    """Of the type."""


class ArrayOf(_Node):
    """A JSON array."""

    kind: Literal["array"] = "array"
    """Says that this is an array."""
    items: "TypeExpr"
    """The type expression of each item."""


class MapOf(_Node):
    """A JSON object whose keys are data."""

    kind: Literal["map"] = "map"
    """Says that this is a map."""
    values: "TypeExpr"
    """The type expression of each value."""


class UnionOf(_Node):
    """One of several: only for languages that say so, see ``Language.has_unions``."""

    kind: Literal["union"] = "union"
    """Says that this is a union."""
    options: tuple["TypeExpr", ...]
    """Two or more, all different, in the document's order."""
    discriminator: str | None = None
    """JSON name of the property that tells the options apart: all are types of the store, and the
    constraint ``const`` of that field differs from one to the other."""


TypeExpr = Annotated[Scalar | Ref | ArrayOf | MapOf | UnionOf, Field(discriminator="kind")]


class FieldIR(_Node):
    """One property of an object."""

    json_name: str
    """As it is written in JSON."""
    type: TypeExpr
    """A type expression: a scalar, a reference, an array, a map or a union."""
    required: StrictBool = False
    """Whether it is always there."""
    nullable: StrictBool = False
    """Whether it may be ``null``."""
    read_only: StrictBool = False
    """Whether it stands in responses only."""
    write_only: StrictBool = False
    """Whether it stands in requests only."""
    deprecated: StrictBool = False
    """Whether the document says so."""
    description: str | None = None
    """As the document has it."""
    constraints: dict[str, Any] = {}
    """What the document says beyond the type: ``minimum``, ``pattern``, ``default``, …"""


class TypeIR(_Node):
    """One type to generate: an object, an enum, or a name for a union, an array or a map."""

    name: str
    """The name the source declares; unique in a store."""
    schema_id: str
    """Where the document has it: a JSON pointer, after the file's name where that is another."""
    is_root: StrictBool = False
    """Whether it is the type of the response itself."""
    kind: Literal["object", "enum", "alias"]
    """Whether it has fields or values, or is another name: only where ``Language.has_unions``."""
    description: str | None = None
    """As the document has it."""
    fields: tuple[FieldIR, ...] = ()
    """Of an object, in the document's order. An alias has one without a name: its value."""
    enum_values: tuple[EnumValue, ...] = ()
    """Of an enum: its wire values, text or integers."""
    enum_names: tuple[str, ...] | None = None
    """One label per value, where the document gives them (``x-enumNames``, titles of consts)."""
    primary_key: str | None = None
    """JSON name of the root's key, where the document makes one plain."""

    @property
    def units(self) -> tuple[EnumValue, ...]:
        """What pages are made of: JSON names of an object's fields, or an enum's values."""
        is_object = self.kind == "object"
        return tuple(field.json_name for field in self.fields) if is_object else self.enum_values


class Review(_Node):
    """A place where a type says less than its document does: what validation reports as REVIEW."""

    type_name: str
    """The type that says less."""
    field: str | None = None
    """JSON name, where only one field is concerned."""
    where: str
    """JSON pointer into the document, after the file's name where that is another."""
    message: str
    """What it does not say."""
    detail: str = ""
    """More lines, where the message alone does not say it all."""


REQUEST = "request"
SCHEMAS = "schemas"


class Endpoint(_Node):
    """The part of a document a store belongs to: in most cases the response of an operation."""

    method: str
    """Of the operation, in capitals; ``SCHEMAS`` for schemas with names."""
    path: str
    """Of the operation; for schemas with names the JSON pointer to where they stand."""
    status: str = "200"
    """Of the response; ``request`` for what an operation takes, ``schemas`` for schemas."""

    @property
    def folder(self) -> str:
        """The name of its store's folder: ``GET_v1_ships``, ``POST-request_v1_ships``."""
        if self.status == SCHEMAS:
            return SCHEMAS
        slug = store_slug(self.method, self.path)
        if self.status == REQUEST:
            # No method has a hyphen: no operation has a folder of that name.
            return f"{self.method}-{REQUEST}{slug.removeprefix(self.method)}"
        return slug

    def words(self, schemas: Iterable[str] | None = None) -> list[str]:
        """Return the words of a command that name this part of a document.

        Args:
            schemas: names of those that were chosen; all by default.
        """
        if self.status == SCHEMAS:
            return ["--schemas", *(schemas or ())]
        words = [f"{self.method} {self.path}"]
        return [*words, "--request"] if self.status == REQUEST else words

    def __str__(self) -> str:
        if self.status == SCHEMAS:
            return f"schemas of {self.path}"
        return f"{self.method} {self.path} ({self.status})"


class DocumentRef(_Node):
    """The API description a store was made from."""

    # Older stores hold digests too, because of which any two branches conflicted in every store.
    model_config = ConfigDict(extra="ignore")

    path: str = Field(pattern=r"^[^\x00]*$")
    """Relative to the store, with forward slashes."""


class IR(_Node):
    """The whole of ``ir.json``."""

    version: Literal[1] = 1
    """Of the format."""
    format: StrictInt = 1
    """Raised when a release reads documents differently; 1 where the file does not say."""
    endpoint: Endpoint
    """The part of the document that was read."""
    language: str
    """The target language; names and unions depend on it."""
    document: DocumentRef | None = None
    """Where it was read from."""
    schemas: tuple[StrictStr, ...] | None = None
    """Names of the schemas that a store of schemas was asked for; absent where that is all."""
    types: tuple[TypeIR, ...]
    """All types to generate, the root first."""
    reviews: tuple[Review, ...] = ()
    """Present only where there are any. Not part of ``ir_hash``: no code depends on them."""
    validation: dict[str, Any] | None = None
    """The last validation summary; not part of ``ir_hash``."""

    @classmethod
    def of(cls, value: "IR | Mapping[str, Any]") -> Self:
        """Return ``value`` as an ``IR``, whether it is one or the value of ``ir.json``.

        Raises:
            ValidationError: the mapping is no IR.
        """
        return value if isinstance(value, cls) else cls.model_validate(value)

    def type_named(self, name: str) -> TypeIR | None:
        """Return the type declared as ``name``, or ``None``."""
        return next((type_ for type_ in self.types if type_.name == name), None)

    @property
    def root(self) -> TypeIR | None:
        """The type of the response itself; ``None`` in an IR put together by hand without one."""
        return next((type_ for type_ in self.types if type_.is_root), None)


def ir_hash(ir: IR | Mapping[str, Any]) -> str:
    """Return the hash of endpoint, language and types, without the validation summary.

    Takes the model or the raw value of ``ir.json``: an invalid file can be stale, too.
    """
    data: Mapping[str, Any] = ir.to_json() if isinstance(ir, IR) else ir
    return canonical_hash({key: data.get(key) for key in ("endpoint", "language", "types")})


def type_hash(type_: TypeIR) -> str:
    """Return the hash of one type's IR; a page whose ``type_hash`` differs is stale."""
    return canonical_hash(type_.to_json())


def expressions_in(expression: TypeExpr) -> Iterator[TypeExpr]:
    """Yield ``expression`` and all that it is made of, from the outside in."""
    yield expression
    inside: tuple[TypeExpr, ...] = ()
    match expression:
        case ArrayOf(items=inner) | MapOf(values=inner):
            inside = (inner,)
        case UnionOf(options=options):
            inside = options
    for part in inside:
        yield from expressions_in(part)


def referenced_names(expression: TypeExpr) -> Iterator[str]:
    """Yield the names of the types that ``expression`` uses."""
    return (part.name for part in expressions_in(expression) if isinstance(part, Ref))


def with_expressions(type_: TypeIR, change: Callable[[TypeExpr], TypeExpr]) -> TypeIR:
    """Return ``type_`` with the types of its fields changed, from the inside out."""

    def changed(expression: TypeExpr) -> TypeExpr:
        match expression:
            case ArrayOf(items=inner):
                expression = ArrayOf(items=changed(inner))
            case MapOf(values=inner):
                expression = MapOf(values=changed(inner))
            case UnionOf(options=options):
                inside = tuple(map(changed, options))
                expression = expression.model_copy(update={"options": inside})
        return change(expression)

    fields = (part.model_copy(update={"type": changed(part.type)}) for part in type_.fields)
    return type_.model_copy(update={"fields": tuple(fields)})


def without_aliases(types: Iterable[TypeIR]) -> dict[str, TypeIR]:
    """Return types by name, with what aliases stand for wherever they are referred to."""
    listed = {type_.name: type_ for type_ in types}
    values: dict[str, TypeExpr] = {}

    def value_of(expression: TypeExpr) -> TypeExpr:
        return (
            values.get(expression.name, expression) if isinstance(expression, Ref) else expression
        )

    for name, type_ in listed.items():
        if type_.kind == "alias":  # Those that it refers to stand before it.
            values[name] = with_expressions(type_, value_of).fields[0].type
    if not values:
        return listed
    return {name: with_expressions(type_, value_of) for name, type_ in listed.items()}


def show_expression(expression: TypeExpr) -> str:
    """Return a type in words that belong to no language: ``Kite[]``, ``map<string (date)>``."""
    match expression:
        case Ref(name=name):
            return name
        case ArrayOf(items=UnionOf() as items):
            return f"({show_expression(items)})[]"
        case ArrayOf(items=items):
            return f"{show_expression(items)}[]"
        case MapOf(values=values):
            return f"map<{show_expression(values)}>"
        case UnionOf(options=options):
            return " | ".join(map(show_expression, options))
        case Scalar(kind=kind, format=format_):
            return f"{kind} ({format_})" if format_ else kind
