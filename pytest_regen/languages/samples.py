"""Types that no real document has, as a language writes them: the examples in its prompts."""

from collections.abc import Callable
from functools import partial
from typing import Final

from pytest_regen.documents.ir import ArrayOf, FieldIR, Ref, Scalar, TypeIR, UnionOf
from pytest_regen.prompts.values import OutputMode

_needed: Final = partial(FieldIR, required=True)
_TIME: Final = Scalar(kind="string", format="date-time")
_NUMBERS: Final = ArrayOf(items=Scalar(kind="integer"))
_KITE: Final = (
    _needed(
        json_name="kiteId",
        type=Scalar(kind="integer"),
        description="Number sewn on it.",
        constraints={"minimum": 1},
    ),
    _needed(json_name="flown_at", type=_TIME, nullable=True),
    FieldIR(
        json_name="tail-colour", type=Ref(name="KiteColour"), description="Colour of its tail."
    ),
)
_STRING: Final = (
    _needed(json_name="metres", type=Scalar(kind="number")),
    FieldIR(json_name="knots", type=_NUMBERS, constraints={"maxItems": 40}),
    _needed(
        json_name="batchCode", type=Scalar(kind="string"), constraints={"pattern": r"^[A-Z]\d$"}
    ),
)
_FLYER: Final = UnionOf(options=(Ref(name="Kite"), Ref(name="Balloon")))


def write_samples(write_page: Callable[..., str], profile: str) -> dict[OutputMode, str]:
    """Return a page of each mode, for languages with unions.

    Args:
        write_page: of the language; see ``Language.write_page``.
        profile: of a store.
    """
    kite = TypeIR(
        name="Kite", schema_id="", kind="object", description="A kite in the air.", fields=_KITE
    )
    string = TypeIR(name="KiteString", schema_id="", kind="object", fields=_STRING)
    values = ("sky-blue", "moss green")
    colour = TypeIR(name="KiteColour", schema_id="", kind="enum", enum_values=values)
    flyer = TypeIR(
        name="Flyer",
        schema_id="",
        kind="alias",
        description="What may be in the air.",
        fields=(_needed(json_name="", type=_FLYER),),
    )
    pages: dict[OutputMode, tuple[TypeIR, slice]] = {
        "full_class": (kite, slice(3)),
        "class_only": (string, slice(1)),
        "fields_only": (string, slice(1, 3)),
        "enum_only": (colour, slice(1)),
        "enum_values_only": (colour, slice(1, 2)),
        "alias_only": (flyer, slice(0)),
    }
    return {
        mode: write_page(type_, type_.units[units], mode, profile=profile)
        for mode, (type_, units) in pages.items()
    }
