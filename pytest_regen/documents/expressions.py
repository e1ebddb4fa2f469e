"""From schemas to type expressions and fields of the IR, and to the types they use."""

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, get_args

from pytest_regen.documents import ir, shapes
from pytest_regen.documents.document import SubtypeMap, Subtypes
from pytest_regen.documents.naming import MAX_TITLE_WORDS, NamingRules, home_name, is_component
from pytest_regen.documents.places import DefectLog, JsonNode, Pointer
from pytest_regen.documents.schemas import MAX_OPTIONS, CoreSchema, Schemas
from pytest_regen.documents.shapes import SchemaKind, Shape, all_of, kind_of, types_of
from pytest_regen.documents.unions import ANY, one_of
from pytest_regen.text import join_names

_MAX_LEVELS: Final = 40
"""Arrays and maps inside one another that are followed."""
_MAX_PLACE: Final = 200
"""Segments of the place of a type that is followed; only merging without end gets as far."""
_MAX_UNIONS: Final = 20_000
"""Unions that are read for one operation; more is an explosion, not a description."""
_MAX_SIZE: Final = 256
"""Parts of one type expression that holds a union."""
_MAX_LINES: Final = 20
"""Lines of the detail of a defect."""
_SCALARS: Final = {kind: ir.Scalar(kind=kind) for kind in get_args(ir.ScalarKind)}
_NUMBER_FORMATS: Final = frozenset({"int32", "int64", "float", "double", "decimal"})
_INSIDE: Final = frozenset({"nullableItems", "nullableValues"})
"""What is noted of an array or a map in which null may stand."""
_CONSTRAINTS: Final = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType"),
    *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
    *("default", "const", "example", "examples"),
)


@dataclass(frozen=True, slots=True)
class FieldType:
    """What a schema is worth in the IR."""

    expression: ir.TypeExpr
    """Types are referred to by their place until all are known and names can be given."""
    nullable: bool
    notes: tuple[Mapping[str, Any], ...]
    """What describes the value rather than its type, the outermost first."""
    narrowed: tuple[Any, ...] | None = None
    """The values of a generated enum that are allowed here, where not all are."""
    const: ir.EnumValue | bool | None = None
    """The only value; ``None`` where there are more, or the language has no type for it."""


@dataclass(eq=False)
class Expressions:
    """Turns schemas into expressions; remembers which schemas became types."""

    schemas: Schemas
    log: DefectLog
    subtypes: Subtypes
    language: NamingRules
    absent: str = "writeOnly"
    """The word for fields that never occur, required or not."""
    types: dict[str, tuple[JsonNode, SchemaKind]] = field(default_factory=dict)
    """By place: the schema and its kind; those that are no object and no enum are aliases."""
    tags: dict[str, dict[str, dict[str, None]]] = field(default_factory=dict)
    """By place of a type: the properties that tell it from others, and the values that stand
    for it by the mapping of a discriminator."""
    option_names: dict[str, str] = field(default_factory=dict)
    """By place of a type that stands in a union itself: what it is called there."""
    bases: set[str] = field(default_factory=set)
    """Places of schemas that stand for the union of those that extend them."""
    _open: list[Pointer] = field(default_factory=list)
    _merged: dict[Any, JsonNode] = field(default_factory=dict)
    """The first schema of each makeup."""
    _unions: dict[Pointer, FieldType] = field(default_factory=dict)
    _values: dict[str, FieldType] = field(default_factory=dict)
    """By place of an alias: what it stands for."""
    _unions_left: int = _MAX_UNIONS
    _cuts: int = 0
    """How often something was left out that contains itself."""

    def root_of(self, node: JsonNode) -> ir.TypeExpr:
        """Return the expression for a schema to begin with: an array or a map of types is one."""
        read = self.type_of(node)
        has_types = any(ir.referenced_names(read.expression))
        # Languages without a name for it declare what the array or the map holds.
        if self.language.has_unions and has_types and not isinstance(read.expression, ir.Ref):
            core = self.schemas.reduce(node).core
            return self._alias(core, self.classify(core)[1], read)
        return read.expression

    def _alias(self, core: JsonNode, kind: SchemaKind, read: FieldType) -> ir.TypeExpr:
        """Return a reference to a type that is what was read, unless its place is another's."""
        key = str(core.place)
        if kind == "object" or self.types.get(key, (core, kind))[1] != kind:
            return read.expression
        self.types[key] = (core, kind)
        # Null is said where the type is used, as it is of objects and of enums.
        notes = tuple(note for note in read.notes if note.keys() & _INSIDE)
        self._values[key] = replace(read, nullable=False, notes=notes)
        return ir.Ref(name=key)

    def type_of(self, node: JsonNode) -> FieldType:
        """Return the expression for a schema and what is said about it."""
        reduced = self.schemas.reduce(node)
        shape, kind = self.classify(reduced.core)
        word_on_null = reduced.allows_null
        nullable = bool(shape.null) if word_on_null is None else word_on_null
        if self.language.has_unions:
            const = reduced.only_value(shape, kind)
            # One value is a Literal of the field, because a type of one value helps nobody.
            if const is not None:
                notes = (*reduced.overlay, *shape.notes)
                only = shape if shape.types else replace(shape, types=types_of([const]))
                return FieldType(_scalar(only, notes), nullable, notes, const=const)
            if kind == "object" and (union := self._subtypes_of(reduced.core, shape)):
                return FieldType(union, nullable, reduced.overlay)
            if kind == "union":
                return self._union(reduced, shape, is_nullable=nullable)
        if kind in {"object", "enum"}:
            # A type written in place describes the field as well; one referred to does not.
            notes = reduced.overlay + (shape.notes if reduced.core.place.is_in(node.place) else ())
            type_ = self._type_at(reduced.core, kind)
            return FieldType(type_, nullable, notes, reduced.narrowed)
        notes = (*reduced.overlay, *shape.notes)
        if kind == "nothing" or (kind == "any" and shape.is_only_null):
            return FieldType(ANY, nullable or shape.is_only_null, notes)
        expression, inside = self._plain(reduced.core, shape, kind, notes)
        return FieldType(expression, nullable, (*notes, *inside))

    def _plain(
        self, core: JsonNode, shape: Shape, kind: SchemaKind, notes: Iterable[Mapping[str, Any]]
    ) -> tuple[ir.TypeExpr, tuple[Mapping[str, Any], ...]]:
        """Return what is no type by itself, and a note where null may be inside."""
        if kind == "scalar":
            return _scalar(shape, notes), ()
        inner = {"array": shape.items, "map": shape.extra}.get(kind, ())
        word = "items" if kind == "array" else "additionalProperties"
        items: ir.TypeExpr = ANY
        inside: tuple[Mapping[str, Any], ...] = ()
        if kind not in {"array", "map"} or self._is_cut(core, kind):
            return ANY, ()
        if inner:
            self._open.append(core.place)
            readings = self.type_of(all_of(inner, core.place / "allOf" / word))
            self._open.pop()
            items = readings.expression
            # The IR has no null inside a type, so that it is noted beside it.
            if readings.nullable:
                inside = ({"nullableItems" if kind == "array" else "nullableValues": True},)
        return (ir.ArrayOf(items=items) if kind == "array" else ir.MapOf(values=items)), inside

    def type_at(self, key: str) -> ir.TypeIR:
        """Return the type of a place in ``types``, which is its name as well."""
        core, kind = self.types[key]
        shape, _ = self.classify(core)
        is_enum, value = kind == "enum", self._values.get(key)
        fields: list[ir.FieldIR] = []
        if value is not None:
            fields.append(self._field("", value, core.place, is_required=True))
        elif not is_enum:
            self._review_object(core, shape)
            discriminators = (note.get("discriminator") for note in shape.notes)
            # OpenAPI names the property in a mapping, Swagger by itself.
            names = [d.get("propertyName") if isinstance(d, dict) else d for d in discriminators]
            told_by = {name for name in names if isinstance(name, str)}
            for name in sorted(shape.required - shape.properties.keys() - told_by):
                self.log.review(core.place, f"{name!r:.60} is required but is not a property")
            for name, parts in shape.properties.items():
                # Because nothing is of the schema ``false``, such a field is never there.
                if not any(part.value is False for part in parts):
                    node = all_of(parts, core.place / "allOf" / "properties" / name)
                    is_required = name in shape.required
                    field_type = self.type_of(node)
                    fields.append(
                        self._field(name, field_type, node.place, is_required=is_required)
                    )
            for name in sorted(told_by - shape.properties.keys()):
                self.log.review(core.place, f"the discriminator {name!r:.60} is declared nowhere")
                # It is on the wire all the same, because readers need it to choose.
                text = ir.Scalar(kind="string")
                fields.append(ir.FieldIR(json_name=name, type=text, required=True))
        return ir.TypeIR(
            name=key,
            schema_id=key,
            kind="alias" if value is not None else "enum" if is_enum else "object",
            description=text_in(shape.notes, "description"),
            fields=tuple(fields),
            enum_values=shape.enum or () if is_enum else (),
            enum_names=shape.labels if is_enum else None,
        )

    def _type_at(self, core: JsonNode, kind: SchemaKind) -> ir.TypeExpr:
        """Return a reference to the type of a place.

        Types that refer to themselves and are merged give a type of the same makeup, level after
        level: there is one of each.
        """
        made_of = shapes.makeup(core)
        if made_of is not None:
            # One for each set of parts, because else there is one for each way that leads to it.
            core = self._merged.setdefault(made_of, core)
            if len(core.place.path) > _MAX_PLACE:
                self.log.review(core.place, "it is merged without end; read as any value")
                return ANY
        self.types[str(core.place)] = (core, kind)
        return ir.Ref(name=str(core.place))

    def classify(self, core: JsonNode) -> tuple[Shape, SchemaKind]:
        """Return the shape of a reduced schema and its kind, with what is doubtful noted."""
        shape = self.schemas.shape(core)
        kind = kind_of(shape)
        where = core.place
        names = " or ".join(sorted(shape.types or ()))
        if kind == "enum":
            only = CoreSchema(core).only_value(shape, kind) if self.language.has_unions else None
            return (shape, kind) if only is not None else self._enum(shape, where)
        # Lists of types: ["string", "integer"] in discord and in JSON Schemas of tools.
        if kind == "any" and shape.types and not shape.doubt and self.language.has_unions:
            return shape, "union"
        if kind != "union" and (shape.doubt or (kind == "any" and names)):
            self.log.review(where, f"{shape.doubt or f'it may be {names}'}; read as any value")
        return shape, kind

    def _enum(self, shape: Shape, where: Pointer) -> tuple[Shape, SchemaKind]:
        """Return an enum of strings or of integers; anything else is its plain type."""
        values = shape.enum or ()
        declared = shape.types
        if declared == frozenset({"integer"}) and all(shapes.is_whole(value) for value in values):
            values = tuple(map(int, values))
        names = {type(value).__name__ for value in values}
        if names == {"str"} and (declared is None or "string" in declared):
            unreadable = [value for value in values if not self.language.has_enum_member(value)]
            # Serializers refuse members without a name, or with blanks around it.
            if unreadable:
                values_said = join_names(map(repr, unreadable), "or")
                self.log.review(
                    where, f"no enum member can stand for {values_said}; read as string"
                )
                return replace(shape, enum=None, types=frozenset({"string"})), "scalar"
            return replace(shape, enum=values), "enum"
        if names == {"int"} and (declared is None or "integer" in declared):
            return replace(shape, enum=values), "enum"
        plain = replace(shape, enum=None, types=declared or types_of(values))
        kind = kind_of(plain)
        read_as = plain.types and len(plain.types) == 1 and next(iter(plain.types))
        if self.language.has_unions and kind == "any" and plain.types and not plain.doubt:
            kind, read_as = "union", " or ".join(sorted(plain.types))
        self.log.review(
            where,
            f"an enum of {' and '.join(sorted(names))} is read as {read_as or 'any value'}; "
            "only strings or integers make an enum",
        )
        return plain, kind

    def _is_cut(self, core: JsonNode, kind: str) -> bool:
        """Return whether an array, a map or a union cannot be followed any further."""
        is_inside_itself = core.place in self._open
        if is_inside_itself:
            why = "contains itself with no object between"
        elif len(self._open) >= _MAX_LEVELS or not self._unions_left:
            why = "is nested too deeply, or too large"
        else:
            return False
        self._cuts += is_inside_itself
        self.log.review(core.place, f"the {kind} {why}; read as any value")
        return True

    # --- unions ---------------------------------------------------------------------------------

    def _union(self, reduced: CoreSchema, shape: Shape, *, is_nullable: bool) -> FieldType:
        """Return what a schema is that allows one of several."""
        core = reduced.core
        notes = (*reduced.overlay, *shape.notes)
        read = self._unions.get(core.place)
        if read is None:
            if self._is_cut(core, "union"):
                return FieldType(ANY, is_nullable, notes)
            cuts = self._cuts
            read = self._read_union(core, shape)
            if cuts == self._cuts:
                # Nothing inside was left out because of where it was met.
                self._unions[core.place] = read
        nullable = is_nullable or read.nullable
        # A union with a name in the document has it in the code: openai.yaml has hundreds.
        is_named = core.place in self._unions and is_component(core.place)
        if is_named and isinstance(read.expression, ir.UnionOf):
            alias = self._alias(core, "union", read)
            if isinstance(alias, ir.Ref):
                return FieldType(alias, nullable, reduced.overlay)
        return FieldType(read.expression, nullable, (*notes, *read.notes))

    def _read_union(self, core: JsonNode, shape: Shape) -> FieldType:
        """Return the union of the options of a schema, with what they say of null inside them."""
        self._unions_left -= 1
        if shape.options:
            self._open.append(core.place)
            readings = [self.type_of(option) for option in shape.options]
            self._open.pop()
            for option in shape.options:
                # What is written in a union is called by its title, if that is a name.
                title = text_in([option.value], "title")
                if title and len(title.split()) <= MAX_TITLE_WORDS:
                    self.option_names[str(option.place)] = title
        else:
            readings = list(self._of_types(core, shape))
        # What an alias stands for, because a union of a union is one of all their options.
        options = [
            self._values[read.expression.name].expression
            if isinstance(read.expression, ir.Ref) and read.expression.name in self._values
            else read.expression
            for read in readings
        ]
        places = [name for option in options for name in ir.referenced_names(option)]
        word = ""
        if isinstance(core.value, dict) and "discriminator" in core.value:
            declared = self.subtypes.of(core, self.log)
            word = declared.word
            self._note_tags(declared, {o.name for o in options if isinstance(o, ir.Ref)})
        enums = {
            place: types_of(self.classify(self.types[place][0])[0].enum or ())
            for place in places
            if self.types[place][1] == "enum"
        }
        expression = one_of(options, enums)
        if sum(1 for _ in ir.expressions_in(expression)) > _MAX_SIZE:
            self.log.review(core.place, "the union is too large; read as any value")
            expression = ANY
        if isinstance(expression, ir.UnionOf):
            expression = expression.model_copy(update={"discriminator": word or None})
        inside = {
            key: True
            for option_read in readings
            for note in option_read.notes
            for key in sorted(_INSIDE)
            if note.get(key) is True
        }
        nullable = any(option_read.nullable for option_read in readings)
        return FieldType(expression, nullable, (inside,) if inside else ())

    def _of_types(self, core: JsonNode, shape: Shape) -> Iterator[FieldType]:
        """Yield what each of the types of a schema is that lists several."""
        declared = (note.get("type") for note in shape.notes)
        order = next((types for types in declared if isinstance(types, list)), [])
        # As the document lists them, because that is the order of the options.
        listed = [name for name in order if name in list(shape.types or ())]
        for name in dict.fromkeys([*listed, *sorted(shape.types or ())]):
            single = replace(shape, types=frozenset({name}), enum=None)
            kind = kind_of(single)
            if kind == "object":
                yield FieldType(self._type_at(core, kind), nullable=False, notes=())
                continue
            # A format is about numbers or about texts; the other type has none.
            if kind == "scalar" and (single.format in _NUMBER_FORMATS) != (name != "string"):
                single = replace(single, format=None)
            expression, inside = self._plain(core, single, kind, ())
            yield FieldType(expression, nullable=False, notes=inside)

    def _subtypes_of(self, core: JsonNode, shape: Shape) -> ir.TypeExpr | None:
        """Return the union of the types that extend a schema by its discriminator; else none.

        The schema itself is one of them, unless each of the others has a value of its own and none
        stands for it.
        """
        mapped = self.subtypes.of(core, self.log)
        subtypes = {
            subtype.place: subtype for subtype in mapped.found if "$ref" not in subtype.value
        }
        if not subtypes or len(subtypes) >= MAX_OPTIONS:
            return None
        if any(kind_of(self.schemas.shape(subtype)) != "object" for subtype in subtypes.values()):
            return None
        values: dict[Pointer, dict[str, None]] = {}
        for value, target in mapped.mapped:
            values.setdefault(target.place, {})[value] = None
        tags: list[str | int | None] = []
        for place, subtype in subtypes.items():
            tag = None
            if parts := self.schemas.shape(subtype).properties.get(mapped.word):
                word = self.schemas.reduce(all_of(parts, place / "allOf" / mapped.word))
                inner = self.schemas.shape(word.core)
                tag = word.only_value(inner, kind_of(inner))
                # Where the schema leaves its value open, the mapping may say it.
                names = list(values.get(place, {}))
                tag = names[0] if tag is None and len(names) == 1 else tag
            tags.append(tag)
        differ = None not in tags and len({*map(repr, tags)}) == len(tags)
        is_told = differ and mapped.word in shape.required
        if not is_told or core.place in values:
            subtypes[core.place] = core
        options = tuple(self._type_at(subtype, "object") for subtype in subtypes.values())
        self._note_tags(mapped, {str(place) for place in subtypes})
        self.bases.add(str(core.place))
        if len(options) == 1:
            return options[0]
        return ir.UnionOf(options=options, discriminator=mapped.word or None)

    def _note_tags(self, declared: SubtypeMap, places: Container[str]) -> None:
        """Note which values stand for which types, by the mapping of a discriminator."""
        for value, target in declared.mapped:
            place = str(self.schemas.reduce(target).core.place)
            if place in places:
                self.tags.setdefault(place, {}).setdefault(declared.word, {})[value] = None

    def _review_object(self, core: JsonNode, shape: Shape) -> None:
        """Note what the fields of an object do not say."""
        where = core.place
        if shape.extra:
            self.log.review(where, "values beside the listed properties are left out")
        merged: dict[str, frozenset[str]] = {}
        for name, own_names in shape.variants:
            merged[name] = merged.get(name, frozenset()) | own_names
        if merged:
            shared = frozenset.intersection(*merged.values())
            read = shape.properties.keys()
            lines = _list_owners({name: (own - shared) & read for name, own in merged.items()})
            self.log.review(
                where,
                f"{join_names(merged, 'and')} are merged into one type",
                "\n".join(["fields that not all of them have:", *lines] if lines else ()),
            )
        # Then the field is a union of those that extend it, and nothing is lost.
        if str(where) in self.bases:
            return
        # Fields of those that extend it are not merged as the branches of a union are, because
        # a base type of large documents is extended by hundreds of others.
        mapped, listed = self.subtypes.of(core, self.log), shape.properties.keys()
        lost = {
            home_name(subtype.place): own_words
            for subtype in mapped.found
            if (own_words := self.subtypes.schemas.shape(subtype).properties.keys() - listed)
        }
        if lost:
            extend = "extends" if len(lost) == 1 else "extend"
            self.log.review(
                where,
                f"{join_names(lost, 'and')} {extend} it by the discriminator {mapped.word!r:.60}, "
                "and their own fields are left out",
                "\n".join(_list_owners(lost)),
            )

    def _field(
        self, name: str, field_type: FieldType, where: Pointer, *, is_required: bool
    ) -> ir.FieldIR:
        notes = field_type.notes
        limits: dict[str, Any] = {}
        for key in (*_CONSTRAINTS, *sorted(_INSIDE)):
            # What stands at the place where a type is used counts before what the type says.
            note = next((note for note in notes if key in note), None)
            if note is not None:
                try:
                    json.dumps(note[key], allow_nan=False)
                    limits[key] = note[key]
                except (ValueError, RecursionError):
                    self.log.review(where, f"{key} is not a plain JSON value and is left out")
        if field_type.const is not None:
            limits["const"] = field_type.const
        elif field_type.narrowed is not None:
            limits["enum"] = list(field_type.narrowed)
        return ir.FieldIR(
            json_name=name,
            type=field_type.expression,
            required=is_required and not _flag(notes, self.absent),
            nullable=field_type.nullable,
            read_only=_flag(notes, "readOnly"),
            write_only=_flag(notes, "writeOnly"),
            deprecated=_flag(notes, "deprecated"),
            description=text_in(notes, "description"),
            constraints=limits,
        )


def text_in(notes: Iterable[Mapping[str, Any]], key: str) -> str | None:
    """Return the first text under ``key``."""
    texts = (note[key] for note in notes if isinstance(note, dict) and key in note)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _list_owners(fields: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a line for each variant and the fields that it has; of many, the first and a count."""
    owners = {name: own_names for name, own_names in fields.items() if own_names}
    lines = [
        f"{name:.60}: {join_names(sorted(owners[name]), 'and')}"
        for name in list(owners)[:_MAX_LINES]
    ]
    left_out = len(owners) - _MAX_LINES
    return [*lines, f"and {left_out:,} more"] if left_out > 0 else lines


def _flag(notes: Iterable[Mapping[str, Any]], key: str) -> bool:
    """Return the first word on ``key``; false where no word says so."""
    return next((note[key] for note in notes if isinstance(note.get(key), bool)), False)


def _scalar(shape: Shape, notes: Iterable[Mapping[str, Any]]) -> ir.Scalar:
    types = shape.types or types_of(shape.enum or ())
    # Where integers and fractions are allowed, all of them are numbers.
    types = types - {"integer"} if "number" in types else types
    scalar = _SCALARS.get(next(iter(types)), ANY) if len(types) == 1 else ANY
    format_ = shape.format or text_in(notes, "format")
    return scalar.model_copy(update={"format": format_}) if format_ and scalar != ANY else scalar
