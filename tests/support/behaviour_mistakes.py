"""Mistakes that only running the code shows: each a change of a right page that reads as right.

All mistakes of a profile are made in one store, each in a type of its own, so that one run shows
all of them. A mistake is in a field of ``Sample``, or in the whole of a type.
"""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from small_documents import document_of

__all__ = [
    "INTERFACES",
    "PYTHON",
    "READ_AS_RIGHT",
    "ZOD",
    "BehaviourMistake",
    "document_with",
]


@dataclass(frozen=True, slots=True)
class BehaviourMistake:
    """One way to get a type wrong that its syntax does not show."""

    name: str
    """In small letters with underscores: the name of the type follows from it."""
    fields: frozenset[str]
    """JSON names of the fields that suffer, at least one of which has to be told of."""
    changes: tuple[tuple[str, str], ...]
    """Regular expressions and what takes the place of their first match, all on one page."""
    codes: frozenset[str] = frozenset({"ROUND_TRIP"})
    profile: str = "default"
    base: str = "Sample"
    """The schema that the type is a copy of: ``Sample`` of several pages, or one of the others."""

    @property
    def type_name(self) -> str:
        """The type that has the mistake."""
        return self.base + "".join(word.capitalize() for word in self.name.split("_"))

    def make(self, text: str) -> str | None:
        """Return a page with the mistake; ``None`` where this page has nothing of the kind."""
        for pattern, by in self.changes:
            text, count = re.subn(pattern, by, text, count=1, flags=re.MULTILINE)
            if not count:
                return None
        return text


_SCHEMAS: dict[str, Any] = {
    "Sample": {
        "type": "object",
        "required": ["id", "fee", "startsAt", "windIn", "windOut", "name"],
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "name": {"type": "string"},
            "motto": {"type": ["string", "null"]},
            "startsAt": {"type": "string", "format": "date-time"},
            "fee": {"type": "number"},
            "windIn": {"type": "number"},
            "windOut": {"type": "number"},
            "laps": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
            "spare": {"type": "integer"},
            "open": {"type": "boolean"},
            "firstMate": {"type": "string"},
            "lastMate": {"type": "string"},
            "state": {"$ref": "#/components/schemas/Calm"},
            "prize": {
                "oneOf": [
                    {"$ref": "#/components/schemas/Cup"},
                    {"$ref": "#/components/schemas/Purse"},
                ],
            },
        },
    },
    "Short": {
        "type": "object",
        "required": ["name", "at", "fee"],
        "properties": {
            "name": {"type": "string"},
            "at": {"type": "string", "format": "date-time"},
            "fee": {"type": "number"},
        },
    },
    "State": {"type": "string", "enum": ["planned", "on-water", "over"]},
    "Level": {"type": "integer", "enum": [1, 2, 3]},
}
_SCHEMAS["Sealed"] = {
    "type": "object",
    "required": ["kind", "code", "fee"],
    "properties": {
        "kind": {"const": "seal"},
        "code": {"type": "string", "pattern": "^[a-z]+$"},
        "laps": {"type": "integer", "minimum": 1},
        "fee": {"type": "number"},
    },
}
"""With a literal and a pattern: for languages that tell both apart when run alone."""
_OTHERS: dict[str, Any] = {
    "Calm": {"type": "string", "enum": ["calm", "rough-sea"]},
    "Cup": {
        "type": "object",
        "required": ["kind", "metal"],
        "properties": {"kind": {"const": "cup"}, "metal": {"type": "string"}},
    },
    "Purse": {
        "type": "object",
        "required": ["kind", "amount"],
        "properties": {"kind": {"const": "purse"}, "amount": {"type": "integer"}},
    },
}


def document_with(mistakes: tuple[BehaviourMistake, ...]) -> dict[str, Any]:
    """Return a document with a type for each mistake, and a right one of each sort."""
    copies = {each.type_name: _SCHEMAS[each.base] for each in mistakes}
    copies |= {f"Right{name}": schema for name, schema in _SCHEMAS.items()}
    root = {
        "type": "object",
        "properties": {
            name[0].lower() + name[1:]: {"$ref": f"#/components/schemas/{name}"} for name in copies
        },
    }
    return document_of({"$ref": "#/components/schemas/All"}, {"All": root, **copies, **_OTHERS})


def _mistake(
    profile: str,
    name: str,
    fields: str,
    *changes: tuple[str, str],
    codes: str = "ROUND_TRIP",
    base: str = "Sample",
) -> BehaviourMistake:
    return BehaviourMistake(
        name, frozenset(fields.split()), changes, frozenset(codes.split()), profile, base
    )


def _added(after: str, code: str) -> tuple[str, str]:
    """Return a change that adds lines to a class, below a field."""
    lines = "\n".join(f"    {line}" if line else "" for line in code.split("\n"))
    return rf"(^    {after}: [^\n]*$)", "\\1\n\n" + lines.replace("\\", r"\\")


def _config(options: str) -> tuple[str, str]:
    return (
        r"^class (\w+)\(ApiModel\):$",
        rf"class \1(ApiModel):\n    model_config = ConfigDict({options})\n",
    )


def _loaded(field: str, code: str) -> tuple[str, str]:
    """Return a change that works on what was loaded, below a field."""
    return _added(field, f"def model_post_init(self, context: Any) -> None:\n    {code}")


def _before(field: str, expression: str) -> tuple[str, str]:
    """Return a change that works on what a field is to be made of."""
    return _added(
        field,
        "from pydantic import field_validator\n\n"
        f'@field_validator("{field}", mode="before")\n'
        "@classmethod\n"
        f"def _prepare(cls, value: Any) -> Any:\n    return {expression}",
    )


def _missing(code: str) -> tuple[str, str]:
    """Return a change that adds a look-up to an enum."""
    return (
        r"(^class \w+\(\w+Enum\):\n(?:    .*\n?)+)",
        f"\\1\n\n    @classmethod\n    def _missing_(cls, value: object) -> Any:\n        {code}\n",
    )


_python = partial(_mistake, "default")

PYTHON = (
    _python("strips", "name", _config("str_strip_whitespace=True"), base="Short"),
    _python(
        "zone_dropped",
        "at",
        _config("json_encoders={dt.datetime: lambda at: at.replace(tzinfo=None).isoformat()}"),
        base="Short",
    ),
    _python(
        "swapped",
        "windIn windOut",
        (r'alias="windIn"', 'alias="?"'),
        (r'alias="windOut"', 'alias="windIn"'),
        (r'alias="\?"', 'alias="windOut"'),
    ),
    _python("fills_absence", "laps", _loaded("laps", "self.laps = self.laps or 1")),
    _python(
        "truncates",
        "laps",
        _before("laps", "int(value) if isinstance(value, float) else value"),
        codes="ACCEPTS_INVALID",
    ),
    _python(
        "null_is_absent",
        "motto",
        _loaded("motto", 'self.model_fields_set.discard("" if self.motto else "motto")'),
    ),
    _python(
        "enum_by_name",
        "",
        _missing("return cls.__members__.get(str(value))"),
        codes="ACCEPTS_INVALID",
        base="State",
    ),
)


def _checked(name: str, type_: str, effect: str) -> tuple[str, str]:
    """Return a change that gives a field a check, which only seems to look at the value."""
    return (
        rf"^(  {name}: {re.escape(type_)})",
        rf"\1.check((seen) => {{ {effect} }})",
    )


def _refined(name: str, type_: str, effect: str) -> tuple[str, str]:
    """Return a change that gives a field a condition, which changes what it looks at."""
    return (
        rf"^(  {name}: {re.escape(type_)})",
        rf"\1.refine((value) => {{ {effect} return true; }})",
    )


_zod = partial(_mistake, "zod")
_TEXT, _TEXTS = "z.string()", "z.array(z.string())"

ZOD = (
    _zod("trims", "name", _checked("name", _TEXT, "seen.value = seen.value.trim();")),
    _zod(
        "null_is_absent",
        "motto",
        _checked("motto", "z.string().nullable().optional()", "seen.value ??= undefined;"),
    ),
    _zod(
        "zone_dropped",
        "startsAt",
        _checked("startsAt", _TEXT, "seen.value = seen.value.slice(0, 19);"),
    ),
    _zod("sorted_tags", "tags", _refined("tags", _TEXTS, "value.sort();")),
)

_sealed = partial(_mistake, "zod", base="Sealed")

READ_AS_RIGHT = (
    _sealed("dropped", "laps", (r"\.min\(1\)", ""), codes="ACCEPTS_INVALID"),
    _sealed("other_pattern", "code", (r"\[a-z\]", "[b-z]")),
    _sealed("no_literal", "kind", (r'z\.literal\("seal"\)', _TEXT), codes="ACCEPTS_INVALID"),
)
"""What only zod itself knows."""

_plain = partial(_mistake, "default", base="Sealed")

INTERFACES = (
    _plain("other_literal", "kind", (r'"seal"', '"eel"'), codes="ROUND_TRIP ACCEPTS_INVALID"),
    _plain("no_literal", "kind", (r'kind: "seal"', "kind: string"), codes="ACCEPTS_INVALID"),
    _plain("only_literal", "code", (r"code: string", 'code: "fixed"')),
)
"""What only the compiler of TypeScript tells."""
