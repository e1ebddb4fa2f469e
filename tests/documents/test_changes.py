"""Two IRs of one operation: what changed, and whom it breaks."""

from typing import Any

import pytest

from pytest_regen.documents.changes import Effect, compare_types
from pytest_regen.documents.ir import (
    IR,
    SCHEMAS,
    ArrayOf,
    Endpoint,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
)

TEXT, WHOLE, REAL, ANY = (Scalar(kind=kind) for kind in ("string", "integer", "number", "any"))
COLOUR = TypeIR(name="Colour", schema_id="#/colour", kind="enum", enum_values=("red", "blue"))
MAKER = TypeIR(
    name="Maker",
    schema_id="#/maker",
    kind="object",
    fields=(FieldIR(json_name="name", type=TEXT, required=True),),
)


def ir_of(*fields: FieldIR, others: tuple[TypeIR, ...] = (COLOUR, MAKER)) -> IR:
    """Return an IR whose root has these fields."""
    root = TypeIR(name="Kite", schema_id="#/kite", is_root=True, kind="object", fields=fields)
    return IR(
        endpoint=Endpoint(method="GET", path="/kites"), language="slate", types=(root, *others)
    )


def field(type_: TypeExpr = TEXT, **more: Any) -> FieldIR:
    """Return the one field of a test."""
    return FieldIR(json_name="x", type=type_, **{"required": True, **more})


def effects(old: FieldIR, new: FieldIR) -> list[tuple[str, Effect]]:
    """Return what changed of a field, and what it does."""
    return [(change.kind, change.effect) for change in compare_types(ir_of(old), ir_of(new))]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (WHOLE, REAL),
        (Scalar(kind="string", format="date"), TEXT),
        (Scalar(kind="integer", format="int32"), Scalar(kind="integer", format="int64")),
        (Ref(name="Colour"), TEXT),
        (ArrayOf(items=WHOLE), ArrayOf(items=REAL)),
        (TEXT, UnionOf(options=(TEXT, WHOLE))),
        (UnionOf(options=(TEXT, WHOLE)), UnionOf(options=(WHOLE, TEXT, Ref(name="Maker")))),
    ],
    ids=str,
)
def test_a_wider_type_breaks_readers_alone(old: TypeExpr, new: TypeExpr) -> None:
    """What was never sent may be sent now; the other way round only writers break."""
    assert effects(field(old), field(new)) == [("type", "wider")]
    assert effects(field(new), field(old)) == [("type", "narrower")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ArrayOf(items=TEXT), MapOf(values=TEXT)),
        (Ref(name="Maker"), Ref(name="Colour")),
        (Scalar(kind="string", format="date"), Scalar(kind="string", format="uuid")),
        (UnionOf(options=(TEXT, WHOLE)), UnionOf(options=(Ref(name="Maker"), WHOLE))),
        (UnionOf(options=(TEXT, WHOLE)), Ref(name="Maker")),
    ],
    ids=str,
)
def test_another_type_breaks_both(old: TypeExpr, new: TypeExpr) -> None:
    """Nobody can go on as before."""
    (change,) = compare_types(ir_of(field(old)), ir_of(field(new)))

    assert (change.kind, change.effect) == ("type", "other")
    assert change.breaks("response")
    assert change.breaks("request")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"maximum": 5}),
        ({"maximum": 9}, {"maximum": 5}),
        ({"maximum": 5}, {"maximum": 5, "exclusiveMaximum": True}),
        ({"minimum": 1}, {"exclusiveMinimum": 1}),
        ({}, {"uniqueItems": True}),
        ({"nullableItems": True}, {}),
    ],
    ids=str,
)
def test_a_limit_that_is_stricter_is_safe_for_readers(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    """And breaks writers; taken away it is the other way round."""
    strict = compare_types(ir_of(field(constraints=old)), ir_of(field(constraints=new)))
    loose = compare_types(ir_of(field(constraints=new)), ir_of(field(constraints=old)))

    assert [change.effect for change in strict] == ["narrower"]
    assert [change.effect for change in loose] == ["wider"]
    assert not strict[0].breaks("response")
    assert strict[0].breaks("request")
    assert loose[0].breaks("response")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # OpenAPI 3.0 and 3.1 spell it apart.
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"minimum": 1}, {"minimum": 1, "exclusiveMinimum": False}),
        ({"uniqueItems": False}, {}),
        ({"example": 1}, {"example": 2}),
    ],
    ids=str,
)
def test_limits_that_mean_the_same(old: dict[str, Any], new: dict[str, Any]) -> None:
    """How they are written is no change."""
    assert compare_types(ir_of(field(constraints=old)), ir_of(field(constraints=new))) == ()


def test_values_of_an_enum() -> None:
    """One that is new breaks who knows all of them; one that is gone is not met any more."""
    more = COLOUR.model_copy(update={"enum_values": ("red", "gold")})
    old, new = field(Ref(name="Colour")), field(Ref(name="Colour"))

    found = compare_types(ir_of(old), ir_of(new, others=(more, MAKER)))

    assert [(each.kind, each.field, each.breaks("response")) for each in found] == [
        ("value_removed", "blue", False),
        ("value_added", "gold", True),
    ]


def test_an_enum_of_one_value_is_one_of_more() -> None:
    """Where such an enum is no type of its own, only the values count."""
    one = field(TEXT, constraints={"const": "red"})
    two = field(Ref(name="Colour"))

    assert effects(one, two) == [("value_added", "wider")]
    assert effects(two, one) == [("value_removed", "narrower")]
    assert effects(one, field(TEXT)) == [("values", "wider")]
    assert effects(field(TEXT), one) == [("values", "narrower")]


def test_fields_that_come_and_go() -> None:
    """A reader misses one that is gone; a writer has to send one that is required now."""
    none = IR(
        endpoint=Endpoint(method="GET", path="/kites"),
        language="slate",
        types=(TypeIR(name="Kite", schema_id="#/kite", is_root=True, kind="object"),),
    )
    required, optional = ir_of(field()), ir_of(field(required=False))

    (gone,) = compare_types(required, none)
    (required_now,) = compare_types(none, required)
    (optional_now,) = compare_types(none, optional)

    assert (gone.kind, gone.breaks("response"), gone.breaks("request")) == (
        "field_removed",
        True,
        False,
    )
    assert (required_now.breaks("response"), required_now.breaks("request")) == (False, True)
    assert (optional_now.breaks("response"), optional_now.breaks("request")) == (False, False)


@pytest.mark.parametrize("status", ["200", SCHEMAS])
def test_a_schema_of_another_name_is_no_change_of_the_wire(status: str) -> None:
    """It is told once, and what is in it is compared all the same."""
    renamed = MAKER.model_copy(update={"name": "Builder", "schema_id": "#/builder", "fields": ()})
    endpoint = Endpoint(method="GET", path="/kites", status=status)
    old, new = (
        version.model_copy(update={"endpoint": endpoint})
        for version in (
            ir_of(field(Ref(name="Maker"))),
            ir_of(field(Ref(name="Builder")), others=(COLOUR, renamed)),
        )
    )

    found = compare_types(old, new)

    assert [(each.kind, each.type_name, each.effect) for each in found] == [
        ("renamed", "Builder", "none"),
        ("field_removed", "Builder", "gone"),
    ]
