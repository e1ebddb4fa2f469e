"""The tables of docs/python.md are true: what they accept is accepted, refusals are refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.documents.ir import FieldIR
from pytest_regen.languages import find_language
from pytest_regen.languages.python.spelling import is_portable
from pytest_regen.validation import validate_generated_code

DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"
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


def rows(heading: str, first: str) -> list[dict[str, str]]:
    """Return the rows of the table below ``heading`` whose first column is headed ``first``."""
    text = DOCUMENT.read_text("utf-8").partition(f"\n## {heading}\n")[2]
    table = text[text.index(f"| {first}") :].split("\n\n", 1)[0]
    head, _, *lines = (
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line[1:-1])] for line in table.splitlines()
    )
    return [dict(zip(head, cells, strict=True)) for cells in lines]


def spellings(cell: str) -> list[str]:
    """Return the code words of a cell."""
    return [code.replace("\\|", "|") for code in re.findall(r"`([^`]+)`", cell)]


def expression(words: str) -> dict[str, Any]:
    """Return the type expression that the first cell of a row describes."""
    if words.startswith(("array of ", "map of ")):
        kind, inner = words.split(" of ", 1)
        return {"kind": kind, "items" if kind == "array" else "values": expression(inner)}
    if words == "a type of the store":
        return {"kind": "ref", "name": "Shape"}
    kind, _, form = words.partition(", ")
    return {"kind": kind, "format": form or None}


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
    ir = {
        "endpoint": {"method": "GET", "path": "/"},
        "language": "python",
        "types": [*types, *others],
    }
    classes = [BASES[profile].format(f"T{at}", member) for at, (_, member) in enumerate(members)]
    classes += [BASES[profile].format(each["name"], "pass") for each in others]
    header = PYTHON.header(namespace="", profile=profile)
    source = "\n".join([header, IMPORTS, *classes]) + "\n"
    issues = validate_generated_code(source, ir, profile=profile).issues
    return [{issue.code for issue in issues if issue.type_name == type_["name"]} for type_ in types]


def test_the_table_of_types() -> None:
    """The first spelling is what prompts ask for, others are as right, and the last are wrong."""
    cases: list[tuple[dict[str, Any], str, set[str]]] = []
    for row in rows("Types", "type in"):
        field = {"json_name": "x", "type": expression(row["type in `ir.json`"]), "required": True}
        asked = spellings(row["asked for"])
        assert asked == [PYTHON.spell(FieldIR.model_validate(field), profile="default")]
        cases += [(field, each, set()) for each in [*asked, *spellings(row["as right"])]]
        cases += [(field, each, {"WRONG_TYPE"}) for each in spellings(row["WRONG_TYPE"])]

    found = codes([(field, f"x: {spelled}") for field, spelled, _ in cases])

    wrong = [
        (case[1], issues) for case, issues in zip(cases, found, strict=True) if issues != case[2]
    ]
    assert not wrong


@pytest.mark.parametrize("profile", BASES)
def test_the_table_of_absence(profile: str) -> None:
    """What may be null, what may be absent, and what mistakes the one for the other."""
    [row] = [row for row in rows("Types", "profile") if profile in row["profile"]]
    _, null, absent, wrong = row.values()
    field: dict[str, Any] = {"json_name": "x", "type": {"kind": "string"}}
    cases = [({**field, "required": True, "nullable": True}, each) for each in spellings(null)]
    right = [*cases, *((field, each) for each in spellings(absent))]
    every = [*right, *((field, each) for each in spellings(wrong))]

    found = codes([(field, f"x: {spelled}") for field, spelled in every], profile)

    assert found[: len(right)] == [set()] * len(right)
    assert found[len(right) :] == [{"NULLABILITY"}] * (len(every) - len(right))


def test_the_default_of_the_document_is_right() -> None:
    """Any other default hides that a field was absent."""
    field = {"json_name": "x", "type": {"kind": "string"}, "constraints": {"default": "a"}}

    found = codes([(field, 'x: str | None = "a"'), (field, 'x: str | None = "b"')])

    assert found == [set(), {"NULLABILITY"}]


def test_a_number_of_64_bits_may_be_an_integer_or_a_float() -> None:
    """The format of an integer on a number: both hold its values."""
    field = {"json_name": "x", "type": {"kind": "number", "format": "int64"}, "required": True}

    assert codes([(field, "x: int | float")]) == [set()]


def test_the_class_of_unset_may_be_written_as_its_only_value() -> None:
    """As people write enums of one member."""
    field = {"json_name": "x", "type": {"kind": "string"}}

    assert codes([(field, "x: str | Literal[Unset.UNSET] = UNSET")], "dataclass") == [set()]
    assert codes([(field, "x: Literal[Unset.UNSET] = UNSET")], "dataclass") == [{"WRONG_TYPE"}]


@pytest.mark.parametrize(
    "code",
    [
        "Name = Annotated[str, Field()]\nclass T(ApiModel):\n    x: Name",
        "class _Base(ApiModel):\n    x: str\nclass T(_Base):\n    pass",
        (
            "V = typing.TypeVar('V')\nclass _Of(ApiModel, typing.Generic[V]):\n    x: V\n"
            "class T(_Of[str]):\n    pass"
        ),
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
    type_ = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "python", "types": [type_]}
    header = PYTHON.header(namespace="", profile="default")
    source = f"{header}\nimport pydantic, typing\n\n# [REGEN:BEGIN T]\n{code}\n# [REGEN:END T]\n"

    assert validate_generated_code(source, ir).issues == ()


def test_the_table_of_members() -> None:
    """A member has the code that the table names."""
    field = {"json_name": "x-y", "type": {"kind": "string"}}
    table = [tuple(row.values()) for row in rows("Names", "member")]

    found = codes([(field, spellings(first)[0]) for first, _ in table])

    wrong = [
        (first, issues)
        for (first, says), issues in zip(table, found, strict=True)
        if (says not in issues if says != "right" else issues)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("pattern", "is_same"),
    [
        (r"^\d+(?:\.\d+)?$", True),
        (r"[\w.-]+@[\w-]+", True),
        ("^(?!x)y", False),
        (r"(a)\1", False),
        ("[[a]", False),
        (r"\p{L}", False),
        (r"\Aa\Z", False),
        ("a{", False),
    ],
)
def test_patterns_that_mean_something_else_elsewhere_are_left_out(
    pattern: str,
    *,
    is_same: bool,
) -> None:
    """Rust's regular expressions are pydantic's."""
    assert is_portable(pattern) == is_same


def test_the_table_of_enums() -> None:
    """Declarations of an enum of strings."""
    type_ = {"name": "E", "schema_id": "E", "kind": "enum", "enum_values": ["a-b", "c"]}
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "python", "types": [type_]}
    header = PYTHON.header(namespace="", profile="default")
    found = {}
    for row in rows("Enums", "declaration"):
        first, says = row.values()
        (code,) = spellings(first)
        source = f"{header}\n{IMPORTS}\n{code}\n"
        issues = {issue.code for issue in validate_generated_code(source, ir).issues}
        if issues != (set() if says == "right" else {says}):
            found[code] = issues
    assert not found
