"""The catalogue of the reference writer's faults, each with what a validator must say about it."""

from typing import Any

import reference_writer_edits as edits
from reference_writer_csharp import Member
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


def _also_recased(_request: object, unit: Any) -> tuple[str, ...]:
    return (edits.recased(unit.wire),)


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
        "block_comment_field",
        "MISSING_FIELD",
        edits.edit_text(lambda text: f"/*\n{text}\n*/"),
        suits=lambda request, unit: (
            "*/" not in str(unit.wire) and edits.leaves_something(request, unit)
        ),
        style=PLAIN_CLASS,
    ),
    in_field(
        "rename_field",
        "MISSING_FIELD+PHANTOM_FIELD",
        change(wire=lambda member: edits.respelt(member.wire)),
        names_also=_also_respelt,
    ),
    in_field(
        "recase_field",
        "MISSING_FIELD+PHANTOM_FIELD",
        change(wire=lambda member: edits.recased(member.wire)),
        suits=edits.recases,
        names_also=_also_recased,
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
    in_field("write_field_twice", "DUPLICATE_FIELD", edits.add_copy()),
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
        "list_as_element",
        "WRONG_TYPE",
        retype(lambda spelled: spelled.partition("<")[2][:-1]),
        suits=matches(r"\w*List<.+>"),
    ),
    in_field(
        "element_as_list",
        "WRONG_TYPE",
        retype(lambda spelled: f"List<{spelled}>"),
        suits=matches(r"(?!\w*List<).+"),
    ),
    in_field(
        "wrong_element",
        "WRONG_TYPE",
        retype(edits.wrong_inside),
        suits=matches(r"\w*List<(?!bool>)\w+>"),
    ),
    in_field(
        "wrong_map_value",
        "WRONG_TYPE",
        retype(edits.wrong_inside),
        suits=matches(r"\w*Dictionary<string, (?!bool>)\w+>"),
    ),
    in_field(
        "wrong_map_key",
        "WRONG_TYPE",
        retype(lambda spelled: spelled.replace("<string,", "<int,", 1)),
        suits=matches(r"\w*Dictionary<string, .+>"),
    ),
    in_field("narrowed_integer", "WRONG_TYPE", retype(lambda _: "short"), suits=matches("long")),
    in_field("foreign_type_used", "WRONG_TYPE", edits.other_type, suits=edits.has_other_type),
    in_field("undeclared_type", "UNDECLARED_TYPE", retype(lambda _: _UNDECLARED)),
    in_field(
        "undeclared_required",
        "UNDECLARED_TYPE",
        change(type=_UNDECLARED, is_required=True),
        **_REQUIRED,
    ),
    in_field("undeclared_in_list", "UNDECLARED_TYPE", retype(lambda _: f"List<{_UNDECLARED}>")),
    in_field(
        "undeclared_in_map",
        "UNDECLARED_TYPE",
        retype(lambda _: f"Dictionary<string, {_UNDECLARED}>"),
    ),
    in_field(
        "undeclared_in_array",
        "UNDECLARED_TYPE",
        change(type=f"{_UNDECLARED}[]", is_required=True),
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
        "digit_first",
        "INVALID_IDENTIFIER|SYNTAX",
        change(identifier=lambda member: f"2{member.identifier}"),
        modes=ALL,
        names_field=False,
        style=PLAIN_CLASS,
    ),
    in_field(
        "hyphen_in_name",
        "INVALID_IDENTIFIER|SYNTAX",
        change(identifier=lambda member: f"{member.identifier}-x"),
        modes=ALL,
        names_field=False,
        style=PLAIN_CLASS,
    ),
    in_field(
        "keyword_as_name",
        "INVALID_IDENTIFIER|SYNTAX",
        change(identifier="class"),
        names_field=False,
        style=PLAIN_CLASS,
    ),
    in_field(
        "named_as_its_class",
        "INVALID_IDENTIFIER|DUPLICATE_PROPERTY",
        edits.named_as_class,
        names_field=False,
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
        "recase_value",
        "ENUM_MEMBER",
        change(wire=lambda member: edits.recased(member.wire)),
        suits=edits.recases,
        names_also=_also_recased,
        modes=ENUM_MODES,
    ),
    in_field(
        "duplicate_value",
        "ENUM_MEMBER",
        edits.add_copy(identifier=lambda member: f"{member.identifier}Again"),
        modes=ENUM_MODES,
    ),
    in_page("invent_value", "ENUM_MEMBER", edits.invent_value, modes=ENUM_MODES),
    in_field(
        "comment_out_value",
        "ENUM_MEMBER",
        edits.edit_text(edits.comment_lines),
        suits=edits.leaves_something,
        modes=ENUM_MODES,
        style=PLAIN_CLASS,
    ),
    in_field(
        "duplicate_member_name",
        "DUPLICATE_PROPERTY|ENUM_MEMBER",
        edits.same_identifier,
        suits=edits.has_another,
        names_field=False,
        modes=ENUM_MODES,
    ),
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
    in_page("declares_helper", "FOREIGN_TYPE", edits.on_code(edits.with_helper), modes=FIRST),
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
    in_text("missing_bracket", lambda text: text.replace("]", "", 1)),
    in_text("unterminated_string", lambda text: text.replace('")', ")", 1)),
    in_text("missing_accessor_brace", edits.without_last_brace),
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
        "extra_closing_brace",
        "SYNTAX",
        edits.on_code(edits.extra_brace),
        modes=FIRST | {"fields_only"},
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

_PLAIN = {"shape": "class", "property_target": False}
_UNSET = {
    "get_only": "{ get; }",
    "private_set": "{ get; private set; }",
    "internal_init": "{ get; internal init; }",
    "private_get": "{ private get; init; }",
    "init_without_get": "{ init; }",
    "three_accessors": "{ get; set; init; }",
}
_WRONG_CONVERTERS = {
    "no_converter": "",
    "foreign_converter": "StringEnumConverter",
    "converter_of_another_enum": "JsonStringEnumConverter<AnotherEnum>",
    "converter_of_numbers": "JsonNumberEnumConverter<AnotherEnum>",
}

_SERIALIZER = (
    *(
        in_field(name, "MISSING_FIELD", change(accessors=accessors), style=_PLAIN)
        for name, accessors in _UNSET.items()
    ),
    in_field("no_access_modifier", "MISSING_FIELD", change(access=""), style=_PLAIN),
    in_field("static_property", "MISSING_FIELD", change(access="public static"), style=_PLAIN),
    in_field(
        "always_ignored",
        "MISSING_FIELD",
        edits.edit_text(
            lambda text: f"[JsonIgnore(Condition = JsonIgnoreCondition.Always)]\n{text}"
        ),
        style=PLAIN_CLASS,
    ),
    in_field(
        "under_a_directive",
        "SYNTAX",
        edits.edit_text(edits.under_directive),
        names_field=False,
        style=PLAIN_CLASS,
        is_grammatical=True,
    ),
    *(
        in_page(
            name,
            "ENUM_MEMBER",
            edits.declares(converter=converter),
            suits_page=edits.is_value_kind("strings"),
            modes=frozenset({"enum_only"}),
        )
        for name, converter in _WRONG_CONVERTERS.items()
    ),
    in_page(
        "invented_converter",
        "UNDECLARED_TYPE",
        edits.declares(converter="InventedConverter"),
        suits_page=edits.is_value_kind("strings"),
        modes=frozenset({"enum_only"}),
    ),
    in_page(
        "converter_of_names",
        "ENUM_MEMBER",
        edits.declares(converter="JsonStringEnumConverter"),
        suits_page=edits.is_value_kind("integers"),
        modes=frozenset({"enum_only"}),
    ),
    in_page(
        "too_narrow_for_its_numbers",
        "ENUM_MEMBER",
        edits.declares(base=" : sbyte"),
        suits_page=lambda request: any(
            isinstance(unit.wire, int) and not -128 <= unit.wire <= 127 for unit in request.units
        ),
        modes=frozenset({"enum_only"}),
    ),
    in_field(
        "attribute_of_properties",
        "ENUM_MEMBER",
        change(wire_attribute="JsonPropertyName"),
        suits=edits.is_text_apart_from_its_name,
        modes=ENUM_MODES,
    ),
    in_field(
        "attribute_of_another_library",
        "ENUM_MEMBER",
        change(wire_attribute="EnumMember"),
        suits=edits.is_text_apart_from_its_name,
        modes=ENUM_MODES,
    ),
    in_page(
        "two_of_one_number",
        "ENUM_MEMBER",
        edits.same_numbers,
        suits_page=lambda request: request.value_kind == "strings" and len(request.units) > 1,
        modes=ENUM_MODES,
        style=PLAIN_CLASS,
    ),
    *(
        in_page(
            name,
            "MISSING_CLASS",
            edit,
            modes=FIRST_OBJECT,
            style={**PLAIN_CLASS, "modifiers": "public"},
        )
        for name, edit in (
            ("abstract_class", edits.in_head("public class", "public abstract class")),
            ("static_class", edits.in_head("public class", "public static class")),
            ("private_constructor", edits.with_constructor),
        )
    ),
    in_page(
        "generic_class",
        "MISSING_CLASS",
        lambda draft: edits.in_head(f" {draft.type_name}", f" {draft.type_name}<T>")(draft),
        modes=FIRST_OBJECT,
        style=PLAIN_CLASS,
    ),
)

_COMPILER = (
    in_field(
        "attribute_of_enum_members",
        "MISSING_FIELD",
        change(wire_attribute="JsonStringEnumMemberName"),
        suits=lambda _request, unit: unit.identifier != unit.wire,
        style=_PLAIN,
    ),
    in_field(
        "parameter_without_target",
        "MISSING_FIELD",
        change(target=""),
        suits=lambda _request, unit: unit.identifier != unit.wire,
        modes=FIRST_OBJECT,
        style={"shape": "positional"},
    ),
    in_field("modifier_twice", "MISSING_FIELD", change(access="public public"), style=_PLAIN),
    in_field(
        "attribute_twice",
        "MISSING_FIELD",
        edits.edit_text(lambda text: f"{text.partition(chr(10))[0]}\n{text}"),
        style=PLAIN_CLASS,
    ),
    in_field(
        "wrapped_text",
        "WRONG_TYPE",
        change(type="Nullable<string>"),
        suits=lambda _request, unit: unit.type == "string?",
        style=_PLAIN | {"types": "keyword"},
    ),
    in_page(
        "derived_from_nothing",
        "UNDECLARED_TYPE",
        edits.on_code(lambda _draft, code: f"[JsonDerivedType(typeof({_UNDECLARED}))]\n{code}"),
        modes=FIRST_OBJECT,
        style=PLAIN_CLASS,
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
    in_page(
        "ellipsis", "SYNTAX|ARTIFACT", edits.elide("..."), style={"shape": "class"}, **_ANYWHERE
    ),
    in_page("prose", _FAILS, edits.replies("I would rather not write this today."), **_ANYWHERE),
    in_page("empty", "EMPTY_OUTPUT", edits.replies(""), **_ANYWHERE),
    in_page("white_space", "EMPTY_OUTPUT", edits.replies(" \n\t\n"), **_ANYWHERE),
    in_page("empty_fence", "EMPTY_OUTPUT", edits.replies("```csharp\n```"), **_ANYWHERE),
    in_page("only_a_comment", _FAILS, edits.replies("// nothing to declare"), **_ANYWHERE),
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


def _borrows(name: str) -> Mistake:
    """Return the fault of writing ``name``, a field that another type of the store has."""
    member = Member(name, "BorrowedByWriter", "string?")
    return in_page("borrow_field", "PHANTOM_FIELD", edits.adds(member), **_also(name))


MISTAKES: dict[str, Mistake] = {
    mistake.name: mistake
    for mistake in (
        *_FIELDS,
        _borrows("borrowed_by_writer"),
        *_TYPES,
        *_IDENTIFIERS,
        *_VALUES,
        *_DECLARATIONS,
        *_SYNTAX,
        *_SERIALIZER,
        *_COMPILER,
        *_REPLIES,
    )
}
"""Every fault by name."""


def mistake_named(name: str, *, borrowed: str | None = None) -> Mistake:
    """Return a fault; ``borrowed`` is the foreign field that ``borrow_field`` writes."""
    if name == "borrow_field" and borrowed is not None:
        return _borrows(borrowed)
    return MISTAKES[name]
