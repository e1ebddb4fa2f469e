"""What is read of Python: what it declares, its first fault, and what it must not do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import scaled
from python_kites import KITES, PYTHON, pages_of

from pytest_regen.documents.ir import TypeIR


@pytest.mark.parametrize(
    ("member", "code", "words"),
    [
        ("a: list[int", "SYNTAX", "was never closed"),
        ("first-name: str", "SYNTAX", "illegal target"),
        ("I am not sure about this one.", "ARTIFACT", "prose"),
        ("```", "ARTIFACT", "fence"),
        ("# ... the rest of the fields", "ARTIFACT", "left out"),
        ("a: int = open('x')", "NOT_ALLOWED", "a call that runs at import"),
        ("a: int = (lambda: 1)()", "NOT_ALLOWED", "a call that runs at import"),
        ("for a in range(3): pass", "NOT_ALLOWED", "a statement that runs at import"),
        ("import os", "NOT_ALLOWED", "import only what types are made of"),
    ],
)
def test_the_first_fault_is_told(member: str, code: str, words: str) -> None:
    """It has the interpreter's own words, and the line."""
    [fault] = PYTHON.read(f"class Kite(ApiModel):\n    length: float\n    {member}\n").faults

    assert (fault.code, fault.line) == (code, 3)
    assert words in fault.message


@pytest.mark.parametrize(
    "code",
    [
        "import datetime as dt\nfrom collections.abc import Sequence",
        "import collections\nfrom collections import abc\nA = collections.abc.Sequence[abc.Sized]",
        "import pydantic.types\nfrom pydantic import alias_generators, types\nA = types.StrictInt",
        "def check(value: str) -> str:\n    return open(value).read()",
        "class _Base(ApiModel):\n    pass",
        "class A(ApiModel):\n    a: int = Field(default_factory=lambda: open('x').fileno())",
        "class A(ApiModel):\n    @field_validator('a')\n    def b(cls, v):\n        return v",
        "Name = Annotated[str, Field(min_length=1)]\nKite.model_rebuild()",
        "A = TypedDict('A', {'print(a)': 'NotRequired[int]'})",
        "if TYPE_CHECKING:\n    from typing import Any",
    ],
)
def test_what_types_are_made_of_is_allowed(code: str) -> None:
    """Imports, helpers, functions that nobody calls yet, and calls that make part of a type."""
    assert not PYTHON.read(code).faults


@pytest.mark.parametrize(
    "code",
    [
        "print('x')",
        "from os import path",
        "from .typing import Any",
        "from typing import *",
        "from typing import sys",
        "from pydantic.types import re",
        "import re\nA = re.enum",
        "from pydantic import fields as f\nf.sys.exit()",
        "typing.sys.exit()",
        "class A(ApiModel):\n    a: int = dataclasses.builtins.open('x').fileno()",
        "class A(ApiModel):\n    a: 'collections._sys.exit()'",
        "class A(ApiModel):\n    a: str = Path.cwd().name",
        "class A(ApiModel, metaclass=M):\n    a: int",
        "class A(ApiModel):\n    def __init_subclass__(cls): ...",
        "def run(): ...\nclass A(ApiModel):\n    a: int = run()",
        "X = ().__class__.__base__.__subclasses__()",
        "class A(ApiModel):\n    a: \"__import__('os')\"",
        "class A(ApiModel):\n    a: list[\"Optional['exec(str())']\"]",
        "A = TypedDict('A', {'a': \"open('x')\"})",
        "A = TypedDict('A', {'a': int}, total=open('x'))",
        "class A(ApiModel):\n    @computed_field\n    def b(self) -> \"open('x')\": ...",
        "read = lambda x=open('x'): x",
        "A[open('x')]: int = 1",
    ],
)
def test_what_runs_at_import_is_not_allowed(code: str) -> None:
    """Where nothing shuts a module in, this is what keeps it from reaching out."""
    assert {fault.code for fault in PYTHON.read(code).faults} == {"NOT_ALLOWED"}


@pytest.mark.parametrize(
    "code",
    [
        "(" * 5_000,
        "-" * 9_000,
    ],
)
def test_hostile_depth_is_refused(code: str) -> None:
    """Text that is nested without end is read in bounded time, and is illegal."""
    assert PYTHON.illegality(f"x = {code}") > 0
    assert PYTHON.read(f"class A(ApiModel):\n    a: int = {code}\n").faults


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
    [lack] = PYTHON.missing_in_header(rest, blocks, profile=profile)
    assert lack.line in header
    assert lack.line.startswith(f"from {module} import ")
