"""What a model gets wrong in Python is found: at its type, on its page, by its code."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from python_kites import KITES, issues_of, pages_of

Mistake = tuple[str, int, str, str, str]
"""Type, page, what stands there ("" for all of it), what is written instead; codes and fields."""

IN_FIELDS: Sequence[Mistake] = (
    ("Kite", 1, 'alias="first-name", ', "", "MISSING_FIELD first-name; PHANTOM_FIELD first_name"),
    ("Kite", 1, "dt.date | None = None", 'dt.date | None = ""', "NULLABILITY built"),
    ("Kite", 2, "    is_new: bool\n", "", "MISSING_FIELD is_new"),
    ("Kite", 2, "serial: UUID", "serial: UUID\n    serial: UUID", "DUPLICATE_FIELD serial"),
    ("Kite", 2, "length: ", "far: int\n    length: ", "PHANTOM_FIELD far"),
    ("Kite", 3, 'Knot | Bow, Field(discriminator="kind")', "Knot, Field()", "WRONG_TYPE ribbon"),
    ("Kite", 3, 'Literal["kite"]', 'Literal["xkite"]', "WRONG_TYPE kind"),
    (
        "Kite",
        3,
        "int] | None = None",
        "int] | None = Field(default_factory=dict)",
        "NULLABILITY sizes",
    ),
    ("Kite", 4, "^[A-Z]{3}$", "^[A-Z]{4}$", "WRONG_TYPE code"),
    (
        "Kite",
        4,
        "class_: ",
        'more: str = Field(alias="class")\n    class_: ',
        "DUPLICATE_FIELD class",
    ),
    ("Kite", 4, 'alias="copy"', 'serialization_alias="copy"', "MISSING_FIELD copy"),
    ("Colour", 1, '"sky-blue"', '"xsky-blue"', "ENUM_MEMBER sky-blue"),
    ("Level", 2, "VALUE_7 = 7", "VALUE_7 = 7\n    VALUE_8 = 7", "ENUM_MEMBER 7"),
)
OF_PAGES: Sequence[Mistake] = (
    ("Knot", 1, "(ApiModel)", "", "MISSING_FIELD @kind; MISSING_FIELD turns; MISSING_CLASS None"),
    ("Bow", 1, "class Bow", "class BowResponse", "MISSING_CLASS None"),
    ("Wind", 1, "list[int]", "list[int", "SYNTAX gusts"),
    ("Colour", 2, "", "", "EMPTY_OUTPUT None"),
    ("Level", 1, "IntEnum", "StrEnum", "IMPORT_FAILED None"),
)
OF_DATACLASSES: Sequence[Mistake] = (
    ("Wind", 1, "    gusts", "    # rest of the fields\n    gusts", "ARTIFACT None"),
    ("Knot", 1, "@dataclasses.", "class Tail: ...\n@dataclasses.", "FOREIGN_TYPE None"),
    ("Bow", 1, "", "I cannot help with that.", "ARTIFACT None"),
    ("Level", 2, "VALUE_1 ", "VALUE-1 ", "SYNTAX None"),
)
OF_TYPED_DICTS: Sequence[Mistake] = (
    ("Kite", 2, '        "is_new": "bool",\n', "", "MISSING_FIELD is_new"),
    ("Kite", 3, '"sizes": ', '"sizes": "int",\n        "sizes": ', "DUPLICATE_FIELD sizes"),
    ("Knot", 1, '"NotRequired[int]"', '"int"', "NULLABILITY turns"),
    ("Bow", 1, "},\n)", "},\n)\n```", "ARTIFACT None"),
    ("Colour", 1, '"sky-blue",', '"sky-blue"', "ENUM_MEMBER sky-blue; ENUM_MEMBER moss green"),
)


@pytest.mark.parametrize(
    ("profile", "mistakes"),
    [
        ("default", ()),
        ("default", IN_FIELDS),
        ("default", OF_PAGES),
        (
            "default",
            [("Kite", 3, '(discriminator="kind"', '(discriminator="x"', "IMPORT_FAILED ribbon")],
        ),
        ("dataclass", ()),
        ("dataclass", OF_DATACLASSES),
        ("typeddict", ()),
        ("typeddict", OF_TYPED_DICTS),
    ],
)
def test_each_mistake_is_found_where_it_is(profile: str, mistakes: Sequence[Mistake]) -> None:
    """All in one source, since none hides another; of right pages nothing is said."""
    sizes = {"enum": 2, "object": 5}
    pages = {type_.name: pages_of(type_, profile, sizes[type_.kind]) for type_ in KITES.types}
    for name, page, old, new, _ in mistakes:
        right = pages[name][page - 1]
        assert not old or right.output.count(old) == 1, (name, page, old)
        pages[name][page - 1] = replace(
            right, output=right.output.replace(old, new) if old else new
        )

    issues = issues_of(pages, KITES, profile)

    assert {(issue.type_name, issue.page, f"{issue.code} {issue.field}") for issue in issues} == {
        (name, page, code) for name, page, *_, codes in mistakes for code in codes.split("; ")
    }
