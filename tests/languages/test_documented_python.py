"""What docs/languages.md says of Python is true: what it accepts is accepted, the rest refused."""

from typing import Any

import pytest
from spelling_tables import TYPE, expression, spellings, tables, verdicts
from tables import each

from pytest_regen.documents.ir import FieldIR
from pytest_regen.languages import find_language
from pytest_regen.languages.python.spelling import is_portable
from pytest_regen.validation import validate_generated_code

PYTHON = find_language("python")
BASES = {
    "default": "class {}(ApiModel):\n    {}",
    "dataclass": "@dataclasses.dataclass(slots=True, kw_only=True)\nclass {}:\n    {}",
    "typeddict": "class {}(TypedDict):\n    {}",
}
IMPORTS = """\
import builtins, collections.abc, dataclasses, datetime, enum, typing, uuid
from collections.abc import Mapping, MutableMapping, Sequence
from typing import ClassVar, Dict, List, Optional, TypeAlias, Union
from pydantic import (
    AnyUrl, AwareDatetime, Base64Bytes, HttpUrl, JsonValue, NaiveDatetime, PastDate, SecretStr,
    StrictBool, StrictFloat, StrictInt, StrictStr, conint,
)
"""


def ir_of(*types: dict[str, Any]) -> dict[str, Any]:
    """Return what a document says of some types."""
    return {"endpoint": {"method": "GET", "path": "/"}, "language": "python", "types": types}


def codes(members: list[tuple[dict[str, Any], str]], profile: str = "default") -> list[set[str]]:
    """Return what is said about classes with one member each, of the field beside it."""
    others: list[dict[str, Any]] = [
        {"name": name, "schema_id": name, "kind": "object", "fields": []}
        for name in ("Shape", "Colour")
    ]
    types = [
        {"name": f"T{number}", "schema_id": f"T{number}", "kind": "object", "fields": [field]}
        for number, (field, _) in enumerate(members)
    ]
    ir = ir_of(*types, *others)
    classes = [BASES[profile].format(f"T{at}", member) for at, (_, member) in enumerate(members)]
    classes += [BASES[profile].format(each["name"], "pass") for each in others]
    header = PYTHON.header(namespace="", profile=profile)
    source = "\n".join([header, IMPORTS, *classes]) + "\n"
    issues = validate_generated_code(source, ir, profile=profile).issues
    return [{issue.code for issue in issues if issue.type_name == type_["name"]} for type_ in types]


MORE: dict[str, tuple[list[str], list[str]]] = {
    "string": (["builtins.str"], ["bytes", "list[str]"]),
    "string, date-time": (["datetime.datetime"], ["int", "dt.time"]),
    "number": ([], ["str", "bool", "float | str"]),
    "number, decimal": (["Annotated[Decimal, PlainSerializer(float)]"], []),
    "a type of the store": ([], ["list[Shape]"]),
    "array of string": (["List[str]", "collections.abc.Sequence[str]"], ["str", "list[int]"]),
    "map of integer": (["Dict[str, int]", "MutableMapping[str, int]"], ["list[int]"]),
}
"""What the table has no room for: right, and WRONG_TYPE."""


def test_the_table_of_types() -> None:
    """The first spelling is what prompts ask for, others are as right, and the last are wrong."""
    cases: list[tuple[dict[str, Any], str, set[str]]] = []
    [rows] = tables("Python")
    for row in rows:
        field = {"json_name": "x", "type": expression(row[TYPE]), "required": True}
        right, wrong = spellings(row["right"]), spellings(row["WRONG_TYPE"])
        assert right[0] == PYTHON.spell(FieldIR.model_validate(field), profile="default")
        more_right, more_wrong = MORE.get(row[TYPE], ([], []))
        cases += [(field, each, set()) for each in right + more_right]
        cases += [(field, each, {"WRONG_TYPE"}) for each in wrong + more_wrong]

    found = codes([(field, f"x: {spelled}") for field, spelled, _ in cases])

    differ = [
        (case[1], issues) for case, issues in zip(cases, found, strict=True) if issues != case[2]
    ]
    assert not differ


NULL = {
    "default": (["Union[str, None]"], [], ["str = Field(default=None)"]),
    "dataclass": (["Optional[str]"], [], []),
    "typeddict": (["Optional[str]"], ["typing.NotRequired[str]"], []),
}
"""More of the same table: may be null, optional, NULLABILITY."""


@pytest.mark.parametrize("profile", BASES)
def test_the_table_of_absence(profile: str) -> None:
    """What may be null, what may be absent, and what mistakes the one for the other."""
    [rows] = tables("Python", "profile | required")
    [cells] = [[*row.values()][1:] for row in rows if profile in row["profile"]]
    null, absent, wrong = (
        spellings(cell) + more for cell, more in zip(cells, NULL[profile], strict=True)
    )
    field: dict[str, Any] = {"json_name": "x", "type": {"kind": "string"}}
    cases = [({**field, "required": True, "nullable": True}, each) for each in null]
    right = [*cases, *((field, each) for each in absent)]
    every = [*right, *((field, each) for each in wrong)]

    found = codes([(field, f"x: {spelled}") for field, spelled in every], profile)

    assert found[: len(right)] == [set()] * len(right)
    assert found[len(right) :] == [{"NULLABILITY"}] * (len(every) - len(right))


def test_the_default_of_the_document_is_right() -> None:
    """Any other default hides that a field was absent."""
    field = {"json_name": "x", "type": {"kind": "string"}, "constraints": {"default": "a"}}

    found = codes([(field, 'x: str | None = "a"'), (field, 'x: str | None = "b"')])

    assert found == [set(), {"NULLABILITY"}]


def test_a_number_of_64_bits_is_whole() -> None:
    """The format says so: a float alone would lose digits of it."""
    field = {"json_name": "x", "type": {"kind": "number", "format": "int64"}, "required": True}
    spelled = ("int", "int | float", "DecimalNumber", "float")

    found = codes([(field, f"x: {each}") for each in spelled])

    assert found == [set(), set(), set(), {"WRONG_TYPE"}]


def test_the_class_of_unset_may_be_written_as_its_only_value() -> None:
    """As people write enums of one member."""
    field = {"json_name": "x", "type": {"kind": "string"}}

    assert codes([(field, "x: str | Literal[Unset.UNSET] = UNSET")], "dataclass") == [set()]
    assert codes([(field, "x: Literal[Unset.UNSET] = UNSET")], "dataclass") == [{"WRONG_TYPE"}]


@each(
    "code",
    [
        "Name = Annotated[str, Field()]\nclass T(ApiModel):\n    x: Name",
        "class _Base(ApiModel):\n    x: str\nclass T(_Base):\n    pass",
        (
            "def plain(value: str) -> str:\n    return value\nclass T(ApiModel):\n    x: str\n"
            "    def shown(self) -> str:\n        return plain(self.x)"
        ),
        (
            "class T(ApiModel):\n    x: str\n    @pydantic.field_validator('x')\n    @classmethod\n"
            "    def same(cls, value: str) -> str:\n        return value"
        ),
    ],
)
def test_what_means_the_same_is_right(code: str) -> None:
    """The interpreter says what a type is, however it is written."""
    field = {"json_name": "x", "type": {"kind": "string"}, "required": True}
    ir = ir_of({"name": "T", "schema_id": "T", "kind": "object", "fields": [field]})
    header = PYTHON.header(namespace="", profile="default")
    source = f"{header}\nimport pydantic, typing\n\n# [REGEN:BEGIN T]\n{code}\n# [REGEN:END T]\n"

    assert validate_generated_code(source, ir).issues == ()


MEMBERS = {
    'other: Annotated[str | None, Field(alias="x-y")] = None': "right",
    'x_y: str | None = Field(default=None, validation_alias="x-y")': "MISSING_FIELD",
    'x_y = Field(default=None, alias="x-y")': "IMPORT_FAILED",
    'x_y: Ghost | None = Field(default=None, alias="x-y")': "UNDECLARED_TYPE",
}


def test_the_table_of_members() -> None:
    """A member has the code that the table names."""
    field = {"json_name": "x-y", "type": {"kind": "string"}}
    members = verdicts("Python", "member", MEMBERS)

    found = codes([(field, member) for member in members])

    for (member, expected), issues in zip(members.items(), found, strict=True):
        assert issues >= expected, member
        assert bool(issues) == bool(expected), member


def test_patterns_that_mean_something_else_elsewhere_are_left_out() -> None:
    """Rust's regular expressions are pydantic's."""
    assert all(map(is_portable, (r"^\d+(?:\.\d+)?$", r"[\w.-]+@[\w-]+")))
    assert not any(map(is_portable, ("^(?!x)y", r"(a)\1", "[[a]", r"\p{L}", r"\Aa\Z", "a{")))


def test_the_table_of_enums() -> None:
    """Declarations of an enum of strings."""
    ir = ir_of({"name": "E", "schema_id": "E", "kind": "enum", "enum_values": ["a-b", "c"]})
    header = PYTHON.header(namespace="", profile="default")
    for code, expected in verdicts("Python", "declaration", {}).items():
        source = f"{header}\n{IMPORTS}\n{code}\n"

        issues = validate_generated_code(source, ir).issues

        assert {issue.code for issue in issues} == expected, code
