"""What prompts say about Python, and what stands above the types of a file."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from pytest_regen.errors import UsageError
from pytest_regen.languages.base import HeaderLine, Nouns, Wording
from pytest_regen.languages.python.names import BASE_MODEL
from pytest_regen.languages.python.writer import BEGIN, END
from pytest_regen.prompts.values import OutputMode

PROFILES: Final = ("default", "dataclass", "typeddict")
"""``default``: pydantic models; ``dataclass`` and ``typeddict`` need the standard library alone."""

NOUNS: Final = Nouns(object="class", enum="enum", member="field", value="member")

_TITLES: Final[Mapping[str, str]] = {
    "default": "Python 3.11 with pydantic 2",
    "dataclass": "Python 3.11 with standard dataclasses",
    "typeddict": "Python 3.11 with typing.TypedDict",
}

_COMMON: Final = """\
Write the type exactly as type says, as the annotation of the field{quoted}; null and absence are \
part of it. Types may be used above the place that declares them: write no quotes around them.{own}
A field flagged deprecated, read-only, write-only or primary-key is a field like any other."""

_MODEL_RULES: Final = """\
Declare each class as class Name(ApiModel):. ApiModel is a pydantic base class that the file has \
already. Add no other base class, decorator, validator, method, constant, model_config or nested \
class.
Write each field as name: type, called as identifier says.
Where json_name differs from identifier, write alias="..." in Field, with json_name exactly as \
given: never change its case, its spelling or its punctuation. Where both are equal, write no alias.
A field that is not flagged required has the default None: = None, or default=None as the first \
argument of Field. A field flagged required has no default, also where it is nullable. A default \
among the constraints is information: never write it.
Write description="..." in Field where the field has a description: the text as a string literal \
on one line; of a text longer than 200 characters its first sentence alone.
Here constraints are code, whatever section 2 says of them: write those that the request lists as \
arguments of Field. For numbers: minimum is ge=, \
maximum is le=, exclusiveMinimum is gt=, exclusiveMaximum is lt= (where exclusiveMinimum is true, \
minimum is gt=; where exclusiveMaximum is true, maximum is lt=), multipleOf is multiple_of=. For \
the type str: minLength is min_length=, maxLength is max_length=, pattern is pattern=. For list: \
minItems is min_length=, maxItems is max_length=. For dict: minProperties is min_length=, \
maxProperties is max_length=. All other constraints are information: leave them out, and leave \
constraints out where the type is any other, such as dt.datetime, UUID, bool, a class or an enum. \
Write bounds of the type int without a fraction. For DecimalNumber write no multiple_of, and only \
bounds that are whole numbers.
Write a pattern as a raw string, r"...". Leave a pattern out that has a group beginning with (? \
other than (?:, a backreference such as \\1, or an escape other than \\d \\D \\w \\W \\s \\S \\b \
\\B \\t \\n \\r and escaped punctuation.
Write Field only where it has an argument beside the default. Its arguments come in this order: \
default, alias, description, then constraints."""

_DATACLASS_RULES: Final = """\
Declare each class as a dataclass, with the line @dataclasses.dataclass(slots=True, kw_only=True) \
above class Name:. Add no base class, method, constant or nested class.
Write each field as name: type, called as identifier says.
Where json_name differs from identifier, write = dataclasses.field(metadata={"alias": "..."}), \
with json_name exactly as given: never change its case, its spelling or its punctuation. Where \
both are equal, write no dataclasses.field.
A field that is not flagged required has the default UNSET: = UNSET, or default=UNSET as the first \
argument of dataclasses.field. UNSET is in the file already and stands for a field that is not \
there. A field flagged required has no default, also where it is nullable. Constraints and a \
default among them are information: never write them.
Where a field has a description, write it on the line below the field as a docstring, \"""...\""", \
on one line; of a text longer than 200 characters its first sentence alone."""

_TYPEDDICT_RULES: Final = """\
The keys are the json_names, exactly as given; leave identifier aside. Where every json_name of \
the type (the fields of other pages included) is a Python identifier that is no keyword and does \
not begin with two underscores, declare it as class Name(TypedDict):, with one field per line, \
json_name: type. Add no method, no default and no other base class.
Where one json_name of the type is not, write the whole type as a call instead: the line \
Name = TypedDict(, the line "Name", indented by four blanks, the line { indented by four blanks, \
each field on a line of its own as "json_name": "type", indented by eight blanks, with the type as \
a string, then the lines }, indented by four blanks and ). On a page that continues such a type, \
write only those lines of the fields.
Where a field has a description, write it in a class on the line below the field as a docstring, \
\"""...\""", and in a call on the line above the field as a comment, #: ...; on one line, of a \
text longer than 200 characters the first sentence alone. Constraints are information: never \
write them.\
"""

_DOCSTRING_RULE: Final = """\
Where the request has a DESCRIPTION, write it as the docstring of the {what}, \"""...\""", on one \
line; of a text longer than 200 characters its first sentence alone. Else write no docstring. A \
class without any field has the body pass where it has no docstring."""

_ENUM_RULES: Final = """\
An enum of strings is declared class Name(StrEnum):, an enum of integers class Name(IntEnum):, and \
an enum of strings and integers class Name(Enum):. Each member is written IDENTIFIER = value, with \
the value exactly as given: a string in quotes, an integer without. Write no auto()."""

_ALIAS_RULES: Final = """\
An enum is written as an alias of Literal, never as a class: the line Name: TypeAlias = Literal[, \
each value on a line of its own, indented by four blanks and followed by a comma, and the line ]. \
A string is written in quotes, exactly as given, an integer without. Leave identifier aside. Where \
the request has a DESCRIPTION, write it on one line above as a comment, #: ...; of a text longer \
than 200 characters its first sentence alone."""

_LIMITS: Final = """\
Write no import and no file header: the file has them already ({names}).
Indent by four blanks, and the members of a page that continues a type by as many as on its first \
page. Escape text inside string literals as Python requires: quotes, backslashes and line ends. \
Inside a docstring write single quotes for double ones."""

_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "default": (
        _COMMON.format(quoted="", own=""),
        _MODEL_RULES,
        _DOCSTRING_RULE.format(what="class"),
        _ENUM_RULES,
        _LIMITS.format(
            names="ApiModel, DecimalNumber, Field, Annotated, Any, Literal, Enum, IntEnum, "
            "StrEnum, UUID, and datetime as dt"
        ),
    ),
    "dataclass": (
        _COMMON.format(quoted="", own=""),
        _DATACLASS_RULES,
        _DOCSTRING_RULE.format(what="class"),
        _ENUM_RULES,
        _LIMITS.format(
            names="dataclasses, Any, Literal, Enum, IntEnum, StrEnum, UUID, Unset, UNSET, and "
            "datetime as dt"
        ),
    ),
    "typeddict": (
        _COMMON.format(
            quoted=" or, in a call, as a string",
            own=" A field without the flag required has a type of the form NotRequired[...].",
        ),
        _TYPEDDICT_RULES,
        _DOCSTRING_RULE.format(what="class (of a call: as a comment, #: ..., above it)"),
        _ALIAS_RULES,
        _LIMITS.format(names="Any, Literal, NotRequired, TypeAlias, TypedDict"),
    ),
}


@cache
def wording(profile: str = "default") -> Wording:
    """Return the words for ``profile``.

    Raises:
        UsageError: there is no such profile.
    """
    if profile not in PROFILES:
        raise UsageError(
            f"unknown profile {profile!r} for Python",
            why="the profile decides what types are declared as",
            hint=f"use --profile with one of: {', '.join(PROFILES)}",
        )
    return Wording(
        title=_TITLES[profile],
        nouns=NOUNS,
        rules=tuple("\n".join(_RULES[profile]).splitlines()),
        begin_delimiter=BEGIN,
        end_delimiter=END,
        fence="python",
        examples=_EXAMPLES[profile],
        field_characters=40,
        value_characters=14,
    )


_ENUM_EXAMPLES: Final[Mapping[OutputMode, str]] = {
    "enum_only": 'class KiteColour(StrEnum):\n    SKY_BLUE = "sky-blue"',
    "enum_values_only": f'{BEGIN}\n    MOSS_GREEN = "moss green"\n{END}',
}

_EXAMPLES: Final[Mapping[str, Mapping[OutputMode, str]]] = {
    "default": {
        "full_class": (
            "class Kite(ApiModel):\n"
            '    """A kite in the air."""\n\n'
            '    kite_id: int = Field(alias="kiteId", description="Number sewn on it.", ge=1)\n'
            "    flown_at: dt.datetime | None\n"
            "    tail_colour: KiteColour | None = Field(\n"
            '        default=None, alias="tail-colour", description="Colour of its tail."\n'
            "    )\n"
            "    notes: list[str] | None = None"
        ),
        "class_only": "class KiteString(ApiModel):\n    metres: float",
        "fields_only": (
            f"{BEGIN}\n"
            "    knots: list[int] | None = Field(default=None, max_length=40)\n"
            '    class_: str = Field(alias="class", pattern=r"^[A-Z]\\d$")\n'
            f"{END}"
        ),
        **_ENUM_EXAMPLES,
    },
    "dataclass": {
        "full_class": (
            "@dataclasses.dataclass(slots=True, kw_only=True)\n"
            "class Kite:\n"
            '    """A kite in the air."""\n\n'
            '    kite_id: int = dataclasses.field(metadata={"alias": "kiteId"})\n'
            '    """Number sewn on it."""\n'
            "    flown_at: dt.datetime | None\n"
            "    tail_colour: KiteColour | Unset = dataclasses.field(\n"
            '        default=UNSET, metadata={"alias": "tail-colour"}\n'
            "    )\n"
            "    notes: list[str] | Unset = UNSET"
        ),
        "class_only": (
            "@dataclasses.dataclass(slots=True, kw_only=True)\nclass KiteString:\n    metres: float"
        ),
        "fields_only": f"{BEGIN}\n    knots: list[int] | Unset = UNSET\n{END}",
        **_ENUM_EXAMPLES,
    },
    "typeddict": {
        "full_class": (
            "Kite = TypedDict(\n"
            '    "Kite",\n'
            "    {\n"
            "        #: Number sewn on it.\n"
            '        "kiteId": "int",\n'
            '        "flown_at": "str | None",\n'
            '        "tail-colour": "NotRequired[KiteColour]",\n'
            "    },\n"
            ")"
        ),
        "class_only": (
            "class KiteString(TypedDict):\n"
            '    """The string that holds a kite."""\n\n'
            "    metres: float\n"
            '    """Length, without the knots."""\n'
            "    knots: NotRequired[list[int]]"
        ),
        "fields_only": f"{BEGIN}\n    colour: NotRequired[KiteColour | None]\n{END}",
        "enum_only": 'KiteColour: TypeAlias = Literal[\n    "sky-blue",\n]',
        "enum_values_only": f'{BEGIN}\n    "moss green",\n{END}',
    },
}


# --- the header -----------------------------------------------------------------------------------

_NOTE: Final = """\
# ruff: noqa: F401
# The imports serve all types of an API; not every file uses each of them.
\"\"\"Types of an HTTP API.\"\"\"
"""
_TIGHT: Final = """\
# fmt: off
# The lines that tell whose text is whose stand close to the types."""

_MODEL_HEADER: Final = f'''\
from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

DecimalNumber = Annotated[Decimal, PlainSerializer(float, when_used="json")]
"""A decimal that is a number in JSON; pydantic would write it as text."""


class {BASE_MODEL}(BaseModel):
    """The base class of all models: what the API sends beyond the fields is kept.

    Read JSON by ``model_validate_json``; write it, what was absent left out, by
    ``model_dump_json(by_alias=True, exclude_unset=True)``.
    """

    model_config = ConfigDict(
        extra="allow", populate_by_name=True, protected_namespaces=()
    )'''

_DATACLASS_HEADER: Final = '''\
from __future__ import annotations

import dataclasses
import datetime as dt
from enum import Enum, IntEnum, StrEnum
from typing import Any, Final, Literal
from uuid import UUID


class Unset(Enum):
    """The type of ``UNSET``, which stands for a field that is not there."""

    UNSET = object()


UNSET: Final = Unset.UNSET'''

_TYPEDDICT_HEADER: Final = """\
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict"""

_HEADERS: Final[Mapping[str, str]] = {
    "default": _MODEL_HEADER,
    "dataclass": _DATACLASS_HEADER,
    "typeddict": _TYPEDDICT_HEADER,
}


def header(*, namespace: str, profile: str) -> str:
    """Return the lines before the first boundary, without a final line end.

    Args:
        namespace: not used, because a module is called as its file.
        profile: decides what is imported.

    Raises:
        UsageError: there is no such profile.
    """
    del namespace
    wording(profile)
    gap = "\n\n\n" if profile == "default" else "\n\n"  # two lines after a class
    return f"{_NOTE}\n{_HEADERS[profile]}{gap}{_TIGHT}"


_ADVICE: Final = (
    "put the line back at the top of the file; where the name comes from another place, leave "
    "MISSING_USING out with `ignore`"
)
_IMPORT: Final = re.compile(r"^(?:import \w+(?: as \w+)?|from [\w.]+ import .+)$", re.MULTILINE)
_BLOCK: Final = re.compile(r"^(?:class )?(DecimalNumber|ApiModel|Unset|UNSET)\b.*$", re.MULTILINE)
_STRING: Final = re.compile(
    r'("""|\'\'\').*?\1|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)


def missing_in_header(
    outside: str, blocks: Mapping[str, str], *, profile: str
) -> Sequence[HeaderLine]:
    """Return the imports and declarations of the header that are gone although a block needs them.

    See ``Language.missing_in_header``. A name that the text outside binds in any way is there.
    """
    own = _provided(_HEADERS.get(profile, ""))
    there = _bound(outside)
    gone = {name: line for name, line in own.items() if name not in there}
    if not gone or ("*" in there):
        return ()
    found: dict[str, HeaderLine] = {}
    for type_name, text in blocks.items():
        for word in _used(text, gone):
            found.setdefault(gone[word], HeaderLine(gone[word], word, type_name, _ADVICE))
    return tuple(found[line] for line in dict.fromkeys(gone.values()) if line in found)


def provided_to(code: str) -> Collection[str]:
    """Return the names that the header of the profile provides for which code was written."""
    is_model = BASE_MODEL in code or "Enum)" in code
    profile = "default" if is_model else "dataclass" if "dataclass" in code else "typeddict"
    return _provided(_HEADERS[profile])


def _provided(text: str) -> dict[str, str]:
    """Return the names that a header binds, and a line for each that binds it."""
    found: dict[str, str] = {}
    for line in _IMPORT.findall(text):
        start, _, names = line.rpartition("import ")
        for name in names.split(", "):
            bound = name.rpartition(" as ")[2]
            found[bound] = f"{start}import {name}"
    found |= {match[1]: match[0].rstrip(":") for match in _BLOCK.finditer(text)}
    found.pop("annotations", None)
    return found


def _bound(outside: str) -> set[str]:
    """Return the names that a text imports or declares at its top level."""
    code = re.sub(r"#[^\n]*", "", _STRING.sub('""', outside))
    found: set[str] = set()
    for match in re.finditer(
        r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]*(\([^)]*\)|[^\n;]*)", code, re.MULTILINE
    ):
        for name in match[1].strip("()").replace("\n", " ").split(","):
            found.add(name.split(" as ")[-1].strip())
    found |= set(re.findall(r"^(?:class[ \t]+)?([^\W\d]\w*)[ \t]*[:(=]", code, re.MULTILINE))
    return found


def _used(text: str, names: Iterable[str]) -> list[str]:
    """Return which of ``names`` stand in the code of a block, attributes of others left aside."""
    words = set(re.findall(r"(?<![\w.])[^\W\d]\w*", re.sub(r"#[^\n]*", "", _quoted_types(text))))
    return [name for name in names if name in words]


def _quoted_types(text: str) -> str:
    """Return the code without its strings but those that are types: the values of a call."""
    return _STRING.sub(lambda match: match[0] if "[" in match[0] else '""', text)
