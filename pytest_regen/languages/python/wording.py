"""What prompts say about Python."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from pytest_regen.languages.base import Nouns, Wording, check_profile
from pytest_regen.languages.python import writer
from pytest_regen.languages.samples import write_samples

PROFILES: Final = ("default", "dataclass", "typeddict")
"""``default``: pydantic models; ``dataclass`` and ``typeddict`` need the standard library alone."""

NOUNS: Final = Nouns()

_TITLES: Final[Mapping[str, str]] = {
    "default": "Python 3.11 with pydantic 2",
    "dataclass": "Python 3.11 with standard dataclasses",
    "typeddict": "Python 3.11 with typing.TypedDict",
}

_COMMON: Final = """\
Write the type exactly as type says, as the annotation of the field; null and absence are part of \
it. Types may be used above the place that declares them: write no quotes around them, but in a \
call of TypedDict.
A field flagged deprecated, read-only, write-only or primary-key is a field like any other.
A description stands on one line; of one longer than 200 characters write the first sentence alone.
Write no import and no file header: the file has them already ({names}).
Indent by four blanks, and the members of a page that continues a type by as many as on its first \
page. Escape text inside string literals as Python requires: quotes, backslashes and line ends. \
Inside a docstring write single quotes for double ones."""

# The default of the document is not asked for, because what was absent must stay absent.
_FIELDS: Final = """\
Write each field as name: type, called as identifier says.
Where json_name differs from identifier, write {alias}, with json_name exactly as given: never \
change its case, its spelling or its punctuation. Where both are equal, write no such thing.
A field that is not flagged required has the default {default}: = {default}, or default={default} \
as the first argument of {call}. A field flagged required has no default, also where it is \
nullable. A default among the constraints is information: never write it."""

_MODELS: Final = """\
Declare each class as class Name(ApiModel):. ApiModel is a pydantic base class that the file has \
already. Add no other base class, decorator, validator, method, constant, model_config or nested \
class.
Write description="..." in Field where the field has a description.
Here constraints are code, whatever section 2 says of them: write those that the request lists as \
arguments of Field. For numbers: minimum is ge=, maximum is le=, exclusiveMinimum is gt=, \
exclusiveMaximum is lt= (where exclusiveMinimum is true, minimum is gt=; where exclusiveMaximum is \
true, maximum is lt=), multipleOf is multiple_of=. For the type str: minLength is min_length=, \
maxLength is max_length=, pattern is pattern=. For list: minItems is min_length=, maxItems is \
max_length=. For dict: minProperties is min_length=, maxProperties is max_length=. All other \
constraints are information: leave them out, and leave constraints out where the type is any \
other, such as dt.datetime, UUID, bool, a class or an enum. Write bounds of the type int without a \
fraction. For DecimalNumber write no multiple_of, and only bounds that are whole numbers.
Write a pattern as a raw string, r"...". Leave a pattern out that has a group beginning with (? \
other than (?:, a backreference such as \\1, or an escape other than \\d \\D \\w \\W \\s \\S \\b \
\\B \\t \\n \\r and escaped punctuation.
Write Field only where it has an argument beside the default. Its arguments come in this order: \
default, alias, description, then constraints."""

_DATACLASSES: Final = """\
Declare each class as a dataclass, with the line @dataclasses.dataclass(slots=True, kw_only=True) \
above class Name:. Add no base class, method, constant or nested class. UNSET is in the file \
already and stands for a field that is not there. Constraints are information: never write them.
Where a field has a description, write it on the line below the field as a docstring."""

_TYPED_DICTS: Final = """\
A field without the flag required has a type of the form NotRequired[...].
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
\"""...\""", and in a call on the line above the field as a comment, #: .... Constraints are \
information: never write them."""

_DOCSTRINGS: Final = """\
Where the request has a DESCRIPTION, write it as the docstring of the class, \"""...\""" (of a \
call of TypedDict or an alias of Literal: as a comment, #: ..., above it). Else write no \
docstring. A class without any field has the body pass where it has no docstring."""

_ENUMS: Final = """\
An enum of strings is declared class Name(StrEnum):, an enum of integers class Name(IntEnum):, and \
an enum of strings and integers class Name(Enum):. Each member is written IDENTIFIER = value, with \
the value exactly as given: a string in quotes, an integer without. Write no auto()."""

_ALIASES: Final = """\
An enum is written as an alias of Literal, never as a class: the line Name: TypeAlias = Literal[, \
each value on a line of its own, indented by four blanks and followed by a comma, and the line ]. \
A string is written in quotes, exactly as given, an integer without. Leave identifier aside."""

_MODEL_FIELDS: Final = _FIELDS.format(alias='alias="..." in Field', default="None", call="Field")
_DATACLASS_FIELDS: Final = _FIELDS.format(
    alias='= dataclasses.field(metadata={"alias": "..."})',
    default="UNSET",
    call="dataclasses.field",
)
_NAMES: Final = "Any, Literal, Enum, IntEnum, StrEnum, UUID, and datetime as dt"
_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "default": (
        _COMMON.format(names=f"ApiModel, DecimalNumber, Field, Annotated, {_NAMES}"),
        *(_MODELS, _MODEL_FIELDS, _DOCSTRINGS, _ENUMS),
    ),
    "dataclass": (
        _COMMON.format(names=f"dataclasses, Unset, UNSET, {_NAMES}"),
        *(_DATACLASSES, _DATACLASS_FIELDS, _DOCSTRINGS, _ENUMS),
    ),
    "typeddict": (
        _COMMON.format(names="Any, Literal, NotRequired, TypeAlias, TypedDict"),
        *(_TYPED_DICTS, _DOCSTRINGS, _ALIASES),
    ),
}


# Kept, because each prompt asks for it, and the samples in it are written every time.
@cache
def wording(profile: str = "default") -> Wording:
    """Return the words for ``profile``.

    Raises:
        UsageError: there is no such profile.
    """
    check_profile(profile, PROFILES, "Python")
    return Wording(
        title=_TITLES[profile],
        nouns=NOUNS,
        rules=tuple("\n".join(_RULES[profile]).splitlines()),
        begin_delimiter=writer.BEGIN,
        end_delimiter=writer.END,
        fence="python",
        examples=write_samples(writer.write_page, profile),
        field_characters=40,
        value_characters=14,
    )
