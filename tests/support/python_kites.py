"""An IR of kites for tests of Python: fields of every kind, two objects, unions, enums."""

from pytest_regen.documents.ir import (
    IR,
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
from pytest_regen.languages import find_language
from pytest_regen.prompts.values import output_mode
from pytest_regen.sources import assemble
from pytest_regen.validation import PageText, validate_by_type
from pytest_regen.validation.issues import Issue

__all__ = ["KITES", "PYTHON", "issues_of", "pages_of"]

PYTHON = find_language("python")


def _scalar(kind: str, form: str | None = None) -> Scalar:
    return Scalar.model_validate({"kind": kind, "format": form})


def _field(name: str, type_: TypeExpr, marks: str = "", **constraints: object) -> FieldIR:
    """Return a field; ``!`` among the marks is required, ``?`` nullable."""
    return FieldIR(
        json_name=name,
        type=type_,
        required="!" in marks,
        nullable="?" in marks,
        description=f"The {name}." if "d" in marks else None,
        constraints=constraints,
    )


_TEXT = _scalar("string")
_RIBBON = UnionOf(options=(Ref(name="Knot"), Ref(name="Bow")), discriminator="@kind")

_FIELDS = (
    _field("kite_id", _scalar("integer"), "!", minimum=1),
    _field("first-name", _TEXT, "!d", maxLength=40),
    _field("tail-colour", Ref(name="Colour"), "d"),
    _field("flownAt", _scalar("string", "date-time"), "!?"),
    _field("built", _scalar("string", "date")),
    _field("serial", _scalar("string", "uuid"), "!"),
    _field("price", _scalar("number", "decimal"), "!"),
    _field("length", _scalar("number"), "!", minimum=0.5),
    _field("is_new", _scalar("boolean"), "!"),
    _field("notes", ArrayOf(items=_TEXT), "d", maxItems=9),
    _field("knots", ArrayOf(items=Ref(name="Knot")), "!"),
    _field("sizes", MapOf(values=_scalar("integer")), "?"),
    _field("level", Ref(name="Level"), "!"),
    _field("kind", _TEXT, "!", const="kite"),
    _field("ribbon", _RIBBON),
    _field("code", _TEXT, "", pattern="^[A-Z]{3}$"),
    _field("copy", _TEXT),
    _field("class", _TEXT, "!"),
    _field("data", _scalar("any")),
    _field("wind", Ref(name="Wind"), "?"),
)

KITES = IR(
    endpoint=Endpoint(method="GET", path="/kites/{id}"),
    language="python",
    types=(
        TypeIR(
            name="Kite",
            schema_id="#/kite",
            is_root=True,
            kind="object",
            description="A kite in the air.",
            fields=_FIELDS,
        ),
        TypeIR(
            name="Knot",
            schema_id="#/knot",
            kind="object",
            fields=(_field("@kind", _TEXT, "!", const="knot"), _field("turns", _scalar("integer"))),
        ),
        TypeIR(
            name="Bow",
            schema_id="#/bow",
            kind="object",
            fields=(_field("@kind", _TEXT, "!", const="bow"), _field("width", _scalar("number"))),
        ),
        TypeIR(
            name="Wind",
            schema_id="#/wind",
            kind="object",
            fields=(
                _field("speed", _scalar("number"), "!d"),
                _field("gusts", ArrayOf(items=_scalar("integer"))),
                _field("name", _TEXT, "?"),
            ),
        ),
        TypeIR(
            name="Colour",
            schema_id="#/colour",
            kind="enum",
            enum_values=("sky-blue", "moss green", "Red", "red"),
        ),
        TypeIR(name="Level", schema_id="#/level", kind="enum", enum_values=(-1, 0, 1, 7)),
    ),
)


def pages_of(type_: TypeIR, profile: str, size: int = 5) -> list[PageText]:
    """Return a type on pages of ``size`` members, as the language writes them."""
    asked = [type_.units[at : at + size] for at in range(0, len(type_.units), size)]
    return [
        PageText(
            page,
            len(asked),
            units,
            PYTHON.write_page(
                type_,
                units,
                output_mode(type_.kind, is_root=type_.is_root, page=page),
                profile=profile,
            ),
        )
        for page, units in enumerate(asked, 1)
    ]


def issues_of(pages: dict[str, list[PageText]], ir: IR, profile: str) -> list[Issue]:
    """Return the issues of a source that is made of pages."""
    written = [
        (
            each.name,
            PYTHON.stitch(
                [page.output for page in pages[each.name]],
                name=each.name,
                is_enum=each.kind == "enum",
            ).text,
        )
        for each in ir.types
    ]
    source = assemble(written, PYTHON, profile=profile)
    texts = {name: tuple(own) for name, own in pages.items()}
    results = validate_by_type(source, ir, pages=texts, profile=profile)
    return [issue for result in results.values() for issue in result.issues]
