"""Python is read as far as it goes: a fault in one place hides nothing in another."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import scaled
from python_kites import KITES, PYTHON, pages_of

from pytest_regen.documents.ir import TypeIR

CLASS = """\
class Kite(ApiModel):
    {}
    length: float = Field(ge=0.5)

    {}
    notes: list[str] | None = None
"""


def members(code: str) -> list[str]:
    """Return the names of the members that are read of the first declaration."""
    return [member.name for member in PYTHON.read(code).declarations[0].members]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("a: list[int", 'b: str = Field(alias="c"', ["']' is missing", "')' is missing"]),
        ("first-name: str", "class: int", ["'first_name'", "'class_'"]),
        ('a: int = Field(default=None alias="x")', "b int", ["',' is missing", "':' is missing"]),
        ("a: str? = None", "b: int = 3 // note", ["'| None'", "'#'"]),
        ("I am not sure about this one.", "```", ["prose", "fence"]),
        ('a: str = Field(description="say "a" b")', "b: str Field()", ["not escaped", "'='"]),
        ("a: dict[str, int]]", "    b: int", ["one too many", "indented by 8 blanks"]),
        ("a: int = null", "b = 3", ["no word of Python", "has no type"]),
    ],
)
def test_each_fault_is_told(first: str, second: str, told: list[str]) -> None:
    """Two members are illegal, each is told what it lacks, and those beside them are read."""
    code = CLASS.format(first, second)
    facts = PYTHON.read(code)
    found = [fault.message for fault in facts.faults]
    for entry in facts.declarations:
        found += [fault.message for fault in entry.faults]
        found += [fault.message for member in entry.members for fault in member.faults]

    assert all(any(words in message for message in found) for words in told), found
    assert {"length", "notes"} <= set(members(code))


def test_a_class_without_its_colon_is_read() -> None:
    """The first line of a class is mended alone."""
    assert members("class Kite(ApiModel)\n    a: int\n    b: str\n") == ["a", "b"]


def test_classes_after_an_illegal_one_are_read() -> None:
    """What stands below is no part of the fault."""
    code = 'class A(ApiModel):\n    a: str = Field("\n\n\nclass B(ApiModel):\n    b: int\n'

    assert [entry.name for entry in PYTHON.read(code).declarations] == ["A", "B"]


def test_an_answer_that_was_cut_off_is_told() -> None:
    """The last line is named, and what stands above it is read."""
    code = "class Kite(ApiModel):\n    a: int\n    b: str | None = Field(default=None, ali"
    facts = PYTHON.read(code)

    assert "cut off" in facts.faults[0].message
    assert members(code) == ["a"]
    assert "ali" in facts.unread


@pytest.mark.parametrize(
    "code", ["(" * 5_000, "[" * 900 + "]" * 900, "-" * 9_000, "a." * 9_000, "\x00"]
)
def test_hostile_depth_is_refused(code: str) -> None:
    """Text that is nested without end is read in bounded time, and is illegal."""
    assert PYTHON.illegality(f"x = {code}") > 0
    assert PYTHON.read(f"class A(ApiModel):\n    a: int = {code}\n").declarations[0].name == "A"


def test_nothing_is_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Code is only read, whatever stands in it."""
    mark = tmp_path_factory.mktemp("run") / "mark"
    PYTHON.read(f"open({str(mark)!r}, 'w').close()\nclass A(ApiModel):\n    a: int\n")

    assert not mark.exists()


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["class", "copy", "json", "model_dump", "_id", "__x", "dt", "str", "", "1st", "ﬁ", "ß", "日本"]
)


@given(st.lists(names, unique=True, min_size=1, max_size=8))
@settings(max_examples=scaled(60), deadline=None)
def test_pages_of_any_names_are_legal(units: list[str]) -> None:
    """Whatever fields and values are called, the code is legal and reads back as it was meant."""
    entries = [{"json_name": name, "type": {"kind": "string"}} for name in units]
    thing = TypeIR.model_validate(
        {"name": "Thing", "schema_id": "T", "kind": "object", "fields": entries}
    )
    colour = TypeIR(name="Colour", schema_id="C", kind="enum", enum_values=tuple(units))
    for profile in ("default", "dataclass", "typeddict"):
        for type_, mode in ((thing, "class_only"), (colour, "enum_only")):
            code = PYTHON.write_page(type_, type_.units, mode, profile=profile)  # type: ignore[arg-type]
            facts = PYTHON.read(code)
            (entry,) = facts.declarations
            carried = [m.name if m.wire_name is None else m.wire_name for m in entry.members]

            assert not facts.faults
            assert not entry.faults
            assert carried == units


def test_names_of_fields_never_meet() -> None:
    """No identifier is the JSON name of another field: models are filled by either."""
    entries = [
        {"json_name": name, "type": {"kind": "string"}}
        for name in ("first-name", "first_name", "first_name_2", "firstName")
    ]
    type_ = TypeIR.model_validate(
        {"name": "T", "schema_id": "T", "kind": "object", "fields": entries}
    )

    assert PYTHON.member_names(type_) == {
        "first-name": "first_name_3",
        "first_name": "first_name",
        "first_name_2": "first_name_2",
        "firstName": "first_name_4",
    }


@pytest.mark.parametrize("profile", ["default", "dataclass", "typeddict"])
def test_a_lost_import_is_told(profile: str) -> None:
    """Of the header, what the types need is missed, and nothing else."""
    header = PYTHON.header(namespace="", profile=profile)
    blocks = {
        each.name: "\n".join(page.output for page in pages_of(each, profile, 99))
        for each in KITES.types
    }
    module = {"default": "pydantic", "dataclass": "enum", "typeddict": "typing"}[profile]
    rest = "\n".join(line for line in header.split("\n") if f"from {module} " not in line)

    assert not PYTHON.missing_in_header(header, blocks, profile=profile)
    lines = {lack.line for lack in PYTHON.missing_in_header(rest, blocks, profile=profile)}
    assert (
        lines
        == {
            "default": {"from pydantic import Field"},
            "dataclass": {"from enum import StrEnum", "from enum import IntEnum"},
            "typeddict": {
                f"from typing import {name}"
                for name in ("Any", "Literal", "NotRequired", "TypeAlias", "TypedDict")
            },
        }[profile]
    )
