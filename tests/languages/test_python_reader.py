"""What is read of Python: what it declares, its first fault, and what it must not do."""

import pytest
from python_kites import KITES, PYTHON, pages_of
from tables import each

from pytest_regen.documents.ir import TypeIR


@each(
    ("member", "code", "words"),
    [
        ("a: list[int", "SYNTAX", "was never closed"),
        ("first-name: str", "SYNTAX", "illegal target"),
        ("I am not sure about this one.", "ARTIFACT", "prose"),
        ("```", "ARTIFACT", "fence"),
        ("# ... the rest of the fields", "ARTIFACT", "left out"),
        ("a: int = open('x')", "NOT_ALLOWED", "a call that runs at import"),
        ("for a in range(3): pass", "NOT_ALLOWED", "a statement that runs at import"),
        ("import os", "NOT_ALLOWED", "import only what types are made of"),
    ],
)
def test_the_first_fault_is_told(member: str, code: str, words: str) -> None:
    """It has the interpreter's own words, and the line."""
    [fault] = PYTHON.read(f"class Kite(ApiModel):\n    length: float\n    {member}\n").faults

    assert (fault.code, fault.line) == (code, 3)
    assert words in fault.message


@each(
    "code",
    [
        "import datetime as dt\nfrom collections.abc import Sequence",
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


@each(
    "code",
    [
        "print('x')",
        "from os import path",
        "from typing import *",
        "from typing import sys",
        "from pydantic.types import re",
        "from pydantic import fields as f\nf.sys.exit()",
        "class A(ApiModel):\n    a: int = dataclasses.builtins.open('x').fileno()",
        "class A(ApiModel):\n    a: 'collections._sys.exit()'",
        "class A(ApiModel):\n    a: str = Path.cwd().name",
        "class A(ApiModel, metaclass=M):\n    a: int",
        "class A(ApiModel):\n    def __init_subclass__(cls): ...",
        "def run(): ...\nclass A(ApiModel):\n    a: int = run()",
        "X = ().__class__.__base__.__subclasses__()",
        "class A(ApiModel):\n    a: \"__import__('os')\"",
        "A = TypedDict('A', {'a': \"open('x')\"})",
        "class A(ApiModel):\n    @computed_field\n    def b(self) -> \"open('x')\": ...",
        "read = lambda x=open('x'): x",
    ],
)
def test_what_runs_at_import_is_not_allowed(code: str) -> None:
    """Where nothing shuts a module in, this is what keeps it from reaching out."""
    assert {fault.code for fault in PYTHON.read(code).faults} == {"NOT_ALLOWED"}


@each("code", ["(" * 5_000, "-" * 9_000])
def test_hostile_depth_is_refused(code: str) -> None:
    """Text that is nested without end is read in bounded time, and is illegal."""
    assert PYTHON.illegality(f"x = {code}") > 0
    assert PYTHON.read(f"class A(ApiModel):\n    a: int = {code}\n").faults


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
