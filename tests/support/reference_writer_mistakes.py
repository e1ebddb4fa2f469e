"""The catalogue of the reference writer's faults, each with what a validator must say about it."""

from typing import Any

import reference_writer_edits as edits
from reference_writer_edits import change, matches, retype
from reference_writer_mistake import (
    ALL,
    FIRST,
    FIRST_OBJECT,
    PLAIN_CLASS,
    Mistake,
    in_field,
    in_page,
    in_text,
)
from reference_writer_request import ENUM_MODES

__all__ = ["MISTAKES", "Mistake", "mistake_named"]

_UNDECLARED = "UndeclaredThing"
_REQUIRED: dict[str, Any] = {"style": {"shape": "class", "required": "keyword"}}
_ANYWHERE: dict[str, Any] = {"modes": ALL, "suits_page": edits.has_units}
_FAILS = "SYNTAX|ARTIFACT|MISSING_CLASS|EMPTY_OUTPUT|MISSING_FIELD|ENUM_MEMBER"


def _also_respelt(_request: object, unit: Any) -> tuple[str, ...]:
    return (str(edits.respelt(unit.wire)),)


def _also(name: str) -> dict[str, Any]:
    return {"names_also": lambda _request, _unit: (name,)}


_FIELDS = (
    in_field("drop_field", "MISSING_FIELD", edits.drop, suits=edits.leaves_something),
    in_field(
        "comment_out_field",
        "MISSING_FIELD",
        edits.edit_text(edits.comment_lines),
        suits=edits.leaves_something,
        style=PLAIN_CLASS,
    ),
    in_field(
        "rename_field",
        "MISSING_FIELD+PHANTOM_FIELD",
        change(wire=lambda member: edits.respelt(member.wire)),
        names_also=_also_respelt,
    ),
    in_field(
        "forget_wire_name",
        "MISSING_FIELD",
        change(has_wire_name=False),
        suits=lambda _request, unit: unit.identifier != unit.wire,
    ),
    in_page("invent_field", "PHANTOM_FIELD", edits.invent, **_also("invented_by_writer")),
    in_page(
        "field_of_other_page",
        "DUPLICATE_FIELD|PHANTOM_FIELD",
        edits.steal,
        suits_page=lambda request: bool(request.other_fields),
        names_also=lambda request, _unit: request.other_fields[:1],
    ),
    in_field(
        "duplicate_field",
        "DUPLICATE_FIELD",
        edits.add_copy(identifier=lambda member: f"{member.identifier}Again"),
    ),
    in_field(
        "duplicate_property",
        "DUPLICATE_PROPERTY",
        edits.same_identifier,
        suits=edits.has_another,
        names_field=False,
    ),
    in_field(
        "misplaced_key",
        "PRIMARY_KEY",
        change(is_key=True),
        suits=edits.is_not_key,
        names_also=lambda request, _unit: (request.primary_key or ("",))[:1],
    ),
    in_page(
        "forget_key",
        "PRIMARY_KEY",
        edits.declares(class_key=False),
        suits_page=lambda request: request.is_xchange and request.primary_key is not None,
        modes=FIRST_OBJECT,
    ),
)

_TYPES = (
    in_field("mistype_field", "WRONG_TYPE", retype(edits.wrong_scalar)),
    in_field(
        "wrong_element",
        "WRONG_TYPE",
        retype(edits.wrong_inside),
        suits=matches(r"\w*List<(?!bool>)\w+>"),
    ),
    in_field("foreign_type_used", "WRONG_TYPE", edits.other_type, suits=edits.has_other_type),
    in_field("undeclared_type", "UNDECLARED_TYPE", retype(lambda _: _UNDECLARED)),
    in_field(
        "undeclared_required",
        "UNDECLARED_TYPE",
        change(type=_UNDECLARED, is_required=True),
        **_REQUIRED,
    ),
    in_field(
        "loses_question_mark",
        "NULLABILITY",
        change(type=lambda member: member.type.removesuffix("?")),
        suits=edits.loses_mark,
    ),
    in_field(
        "gains_question_mark",
        "NULLABILITY",
        change(type=lambda member: f"{member.type}?"),
        suits=edits.gains_mark,
    ),
)

_IDENTIFIERS = (
    in_field(
        "keyword_as_name",
        "INVALID_IDENTIFIER|SYNTAX",
        change(identifier="class"),
        names_field=False,
        style=PLAIN_CLASS,
    ),
)

_VALUES = (
    in_field(
        "drop_value",
        "ENUM_MEMBER",
        edits.drop,
        suits=edits.leaves_something,
        modes=ENUM_MODES,
    ),
    in_field(
        "misspell_value",
        "ENUM_MEMBER",
        change(wire=lambda member: edits.respelt(member.wire)),
        names_also=_also_respelt,
        modes=ENUM_MODES,
    ),
    in_field(
        "duplicate_value",
        "ENUM_MEMBER",
        edits.add_copy(identifier=lambda member: f"{member.identifier}Again"),
        modes=ENUM_MODES,
    ),
    in_page("invent_value", "ENUM_MEMBER", edits.invent_value, modes=ENUM_MODES),
    in_page(
        "class_for_enum",
        "MISSING_CLASS|WRONG_TYPE|ENUM_MEMBER|SYNTAX",
        edits.class_for_enum,
        modes=frozenset({"enum_only"}),
    ),
)

_DECLARATIONS = (
    in_page("wrong_class_name", "MISSING_CLASS", edits.declares(type_name=None), modes=FIRST),
    in_page(
        "declares_foreign_type",
        "FOREIGN_TYPE",
        edits.on_code(edits.with_foreign),
        suits_page=lambda request: bool(request.other_types),
        modes=FIRST,
    ),
    in_page(
        "duplicate_class",
        "DUPLICATE_TYPE",
        edits.on_code(lambda _draft, code: f"{code}\n\n{code}"),
        modes=FIRST,
        # Two partial declarations of one class are legal.
        style={"modifiers": "public"},
    ),
)

_SYNTAX = (
    in_text("missing_semicolon", lambda text: text.replace("{ get;", "{ get", 1)),
    in_text(
        "missing_comma",
        lambda text: text.removesuffix(","),
        suits=edits.is_not_last,
        modes=ENUM_MODES,
    ),
    in_page(
        "missing_closing_brace",
        "SYNTAX",
        edits.on_code(lambda _draft, code: edits.without_last_brace(code)),
        modes=FIRST,
        style=PLAIN_CLASS,
    ),
    in_page(
        "swapped_braces",
        "SYNTAX|MISSING_CLASS|MISSING_FIELD",
        edits.on_code(edits.swapped_braces),
        modes=FIRST_OBJECT,
        style=PLAIN_CLASS,
    ),
    in_page(
        "class_closed_early",
        "SYNTAX|MISSING_FIELD|ARTIFACT",
        edits.declares(closes_before_last=True),
        suits_page=lambda request: len(request.units) > 1,
        modes=FIRST_OBJECT,
        style=PLAIN_CLASS,
    ),
)

_SERIALIZER = (
    in_field(
        "get_only",
        "MISSING_FIELD",
        change(accessors="{ get; }"),
        style={"shape": "class"},
    ),
    in_page(
        "no_converter",
        "ENUM_MEMBER",
        edits.declares(has_converter=False),
        suits_page=edits.is_value_kind("strings"),
        modes=frozenset({"enum_only"}),
    ),
    in_page(
        "abstract_class",
        "MISSING_CLASS",
        edits.in_head("public class", "public abstract class"),
        modes=FIRST_OBJECT,
        style={**PLAIN_CLASS, "modifiers": "public"},
    ),
)

_REPLIES = (
    in_page(
        "elided_rest",
        "ARTIFACT|MISSING_FIELD|ENUM_MEMBER",
        edits.elide("// ... the remaining members follow the same pattern"),
        suits_page=lambda request: len(request.units) > 1,
        modes=ALL,
        style={"shape": "class"},
    ),
    in_page("prose", _FAILS, edits.replies("I would rather not write this today."), **_ANYWHERE),
    in_page("empty", "EMPTY_OUTPUT", edits.replies(""), **_ANYWHERE),
    in_page(
        "cut_short",
        "SYNTAX|TRUNCATED|MISSING_FIELD|ENUM_MEMBER",
        edits.on_code(lambda _draft, code: code[: len(code) * 3 // 5]),
        style=PLAIN_CLASS,
        modes=ALL,
        # The number of a last enum member may be left out: cut there, the page is still right.
        suits_page=lambda request: len(request.units) > 2,
    ),
)


MISTAKES: dict[str, Mistake] = {
    mistake.name: mistake
    for mistake in (
        *_FIELDS,
        *_TYPES,
        *_IDENTIFIERS,
        *_VALUES,
        *_DECLARATIONS,
        *_SYNTAX,
        *_SERIALIZER,
        *_REPLIES,
    )
}
"""Every fault by name."""


def mistake_named(name: str) -> Mistake:
    """Return a fault."""
    return MISTAKES[name]
