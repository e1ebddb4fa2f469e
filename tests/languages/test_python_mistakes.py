"""What a model gets wrong in Python is found: at its type, on its page, by its code."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from python_kites import KITES, issues_of, pages_of

Mistake = tuple[str, int, str, str, str]
"""Type, page, what stands there ("" for all of it), what is written instead, and the codes."""

IN_FIELDS: Sequence[Mistake] = (
    ("Kite", 1, 'alias="first-name", ', "", "MISSING_FIELD PHANTOM_FIELD"),
    ("Kite", 1, "dt.date | None = None", 'dt.date | None = ""', "NULLABILITY"),
    ("Kite", 2, "    is_new: bool\n", "", "MISSING_FIELD"),
    ("Kite", 2, "length: ", "far: int\n    length: ", "PHANTOM_FIELD"),
    ("Kite", 3, 'Knot | Bow, Field(discriminator="kind")', "Knot, Field()", "WRONG_TYPE"),
    ("Kite", 3, 'Literal["kite"]', 'Literal["xkite"]', "WRONG_TYPE"),
    ("Kite", 3, "int] | None = None", "int] | None = Field(default_factory=dict)", "NULLABILITY"),
    ("Kite", 4, "^[A-Z]{3}$", "^[A-Z]{4}$", "WRONG_TYPE"),
    ("Kite", 4, "class_: ", 'more: str = Field(alias="class")\n    class_: ', "DUPLICATE_FIELD"),
    ("Kite", 4, 'alias="copy"', 'serialization_alias="copy"', "MISSING_FIELD"),
    ("Colour", 1, '"sky-blue"', '"xsky-blue"', "ENUM_MEMBER"),
    ("Level", 2, "VALUE_7 = 7", "VALUE_7 = 7\n    VALUE_8 = 7", "ENUM_MEMBER"),
)
OF_PAGES: Sequence[Mistake] = (
    ("Knot", 1, "(ApiModel)", "", "MISSING_FIELD MISSING_CLASS"),
    ("Bow", 1, "class Bow", "class BowResponse", "MISSING_CLASS"),
    ("Wind", 1, "list[int]", "list[int", "SYNTAX"),
    ("Colour", 2, "", "", "EMPTY_OUTPUT"),
    ("Level", 1, "IntEnum", "StrEnum", "IMPORT_FAILED"),
)
OF_DATACLASSES: Sequence[Mistake] = (
    ("Wind", 1, "    gusts", "    # rest of the fields\n    gusts", "ARTIFACT"),
    ("Knot", 1, "@dataclasses.", "class Tail: ...\n@dataclasses.", "FOREIGN_TYPE"),
    ("Bow", 1, "", "I cannot help with that.", "ARTIFACT"),
    ("Level", 2, "VALUE_1 ", "VALUE-1 ", "SYNTAX"),
)
OF_TYPED_DICTS: Sequence[Mistake] = (
    ("Kite", 2, '        "is_new": "bool",\n', "", "MISSING_FIELD"),
    ("Kite", 3, '"sizes": ', '"sizes": "int",\n        "sizes": ', "DUPLICATE_FIELD"),
    ("Knot", 1, '"NotRequired[int]"', '"int"', "NULLABILITY"),
    ("Bow", 1, "},\n)", "},\n)\n```", "ARTIFACT"),
    ("Colour", 1, '"sky-blue",', '"sky-blue"', "ENUM_MEMBER"),
)


@pytest.mark.parametrize(
    ("profile", "mistakes"),
    [
        ("default", ()),
        ("default", IN_FIELDS),
        ("default", OF_PAGES),
        ("default", [("Kite", 3, '(discriminator="kind"', '(discriminator="x"', "IMPORT_FAILED")]),
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

    assert {(issue.type_name, issue.page, issue.code) for issue in issues} == {
        (name, page, code) for name, page, *_, codes in mistakes for code in codes.split()
    }
