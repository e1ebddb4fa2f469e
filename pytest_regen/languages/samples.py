"""Types that no real document has, as a language writes them: the examples in its prompts."""

from collections.abc import Callable
from functools import partial
from typing import Final

from pytest_regen.documents.ir import ArrayOf, FieldIR, Ref, Scalar, TypeIR, UnionOf
from pytest_regen.prompts.values import OutputMode

needed: Final = partial(FieldIR, required=True)
type_of: Final = partial(TypeIR, schema_id="")
_TIME: Final = Scalar(kind="string", format="date-time")
_NUMBERS: Final = ArrayOf(items=Scalar(kind="integer"))
_CODE: Final = Scalar(kind="string")
_FLYER: Final = UnionOf(options=(Ref(name="Kite"), Ref(name="Balloon")))
_KITE: Final = type_of(
    name="Kite",
    kind="object",
    description="A kite in the air.",
    fields=(
        needed(
            json_name="kiteId",
            type=Scalar(kind="integer"),
            description="Number sewn on it.",
            constraints={"minimum": 1},
        ),
        needed(json_name="flown_at", type=_TIME, nullable=True),
        FieldIR(
            json_name="tail-colour", type=Ref(name="KiteColour"), description="Colour of its tail."
        ),
    ),
)
_REEL: Final = type_of(
    name="KiteString",
    kind="object",
    fields=(
        needed(json_name="metres", type=Scalar(kind="number")),
        FieldIR(json_name="knots", type=_NUMBERS, constraints={"maxItems": 40}),
        needed(json_name="batchCode", type=_CODE, constraints={"pattern": r"^[A-Z]\d$"}),
    ),
)
_COLOUR: Final = type_of(name="KiteColour", kind="enum", enum_values=("sky-blue", "moss green"))
_UNION: Final = type_of(
    name="Flyer",
    kind="alias",
    description="What may be in the air.",
    fields=(needed(json_name="", type=_FLYER),),
)


def write_samples(
    write_page: Callable[..., str], profile: str, kite: TypeIR = _KITE, reel: TypeIR = _REEL
) -> dict[OutputMode, str]:
    """Return a page of each mode.

    Args:
        write_page: of the language; see ``Language.write_page``.
        profile: of a store.
        kite: a type of one page.
        reel: a type of two pages, of which the first holds one field.
    """
    pages: dict[OutputMode, tuple[TypeIR, slice]] = {
        "full_class": (kite, slice(3)),
        "class_only": (reel, slice(1)),
        "fields_only": (reel, slice(1, 3)),
        "enum_only": (_COLOUR, slice(1)),
        "enum_values_only": (_COLOUR, slice(1, 2)),
        "alias_only": (_UNION, slice(0)),
    }
    return {
        mode: write_page(type_, type_.units[units], mode, profile=profile)
        for mode, (type_, units) in pages.items()
    }
