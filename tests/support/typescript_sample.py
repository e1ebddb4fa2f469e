"""An IR with everything that TypeScript and zod have words for."""

from collections.abc import Sequence

from pytest_regen.documents.ir import (
    IR,
    ArrayOf,
    Endpoint,
    EnumValue,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
)
from pytest_regen.languages import find_language
from pytest_regen.prompts.values import output_mode

TYPESCRIPT = find_language("typescript")
TEXT, WHOLE = Scalar(kind="string"), Scalar(kind="integer")


def field(name: str, type_: TypeExpr, *marks: str, **constraints: object) -> FieldIR:
    """Return a field; marks are ``required``, ``nullable``, ``described``."""
    return FieldIR(
        json_name=name,
        type=type_,
        required="required" in marks,
        nullable="nullable" in marks,
        description="What it is." if "described" in marks else None,
        constraints=constraints,
    )


def page_of(type_: TypeIR, units: Sequence[EnumValue], number: int, profile: str) -> str:
    """Return a page as the language writes it."""
    mode = output_mode(type_.kind, is_root=type_.is_root, page=number)
    return TYPESCRIPT.write_page(type_, units, mode, profile=profile)


def sample() -> IR:
    """Return an IR with everything that can be got wrong."""
    root = TypeIR(
        name="Kite",
        schema_id="#/kite",
        is_root=True,
        kind="object",
        description="A kite.",
        fields=(
            field("kite_id", WHOLE, "required", "described", minimum=1, maximum=9),
            field("maker_name", TEXT, "required", minLength=1),
            field("tail-colour", Ref(name="Colour"), "nullable"),
            field("metres", Scalar(kind="number"), "required"),
            field("flies", Scalar(kind="boolean")),
            field("max-height", Scalar(kind="number")),
            field("code", TEXT, pattern="^[a-z]+$", maxLength=5),
            field("born", Scalar(kind="string", format="date")),
            field("uid", Scalar(kind="string", format="uuid"), "nullable"),
            field("extra", Scalar(kind="any")),
            field("knots", ArrayOf(items=TEXT), "required"),
            field("winds", ArrayOf(items=Ref(name="Wind"))),
            field("sizes", MapOf(values=WHOLE), "required"),
            field(
                "shape",
                UnionOf(options=(Ref(name="Round"), Ref(name="Square")), discriminator="kind"),
                "required",
            ),
            field("id_or_name", UnionOf(options=(TEXT, WHOLE)), "nullable"),
            field("level", Ref(name="Level"), "required"),
            field("maybe", ArrayOf(items=WHOLE), nullableItems=True, minItems=1),
        ),
    )
    others = (
        TypeIR(
            name="Wind",
            schema_id="#/wind",
            kind="object",
            fields=(
                field("from_side", TEXT, "required"),
                field("knots", WHOLE, minimum=0),
                field("gusts", Ref(name="Wind")),
            ),
        ),
        *(
            TypeIR(
                name=name,
                schema_id=f"#/{name}",
                kind="object",
                fields=(
                    field("kind", TEXT, "required", const=name.lower()),
                    field("area", Scalar(kind="number")),
                ),
            )
            for name in ("Round", "Square")
        ),
        TypeIR(
            name="Colour",
            schema_id="#/colour",
            kind="enum",
            enum_values=("sky-blue", "moss green", "red", "Blue", "grey"),
        ),
        TypeIR(name="Level", schema_id="#/level", kind="enum", enum_values=(-1, 0, 1, 7, 8)),
    )
    return IR(
        endpoint=Endpoint(method="GET", path="/kites"), language="typescript", types=(root, *others)
    )
