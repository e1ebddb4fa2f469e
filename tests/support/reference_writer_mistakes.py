"""The faults of the reference writer: where each can be made, and what must be said about it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reference_writer_csharp import Draft, Member
from reference_writer_request import ENUM_MODES, OBJECT_MODES, PageRequest, Unit

Edit = Callable[[Draft, Member], None]
PageEdit = Callable[[Draft], None]
Suits = Callable[[PageRequest, Unit], bool]

FIRST_OBJECT = frozenset({"full_class", "class_only"})
FIRST = FIRST_OBJECT | {"enum_only"}
ALL = OBJECT_MODES | ENUM_MODES
PLAIN_CLASS: Mapping[str, Any] = {"shape": "class", "comments": "none", "descriptions": False}
"""A shape in which a fault made by editing text hits what it is meant to hit."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One fault.

    It is either in one field or value of the page, the victim (``edit``), or in the page as a whole
    (``edit_page``).
    """

    name: str
    expects: tuple[frozenset[str], ...]
    """Of each set, at least one code must be reported for the page."""
    edit: Edit | None = None
    edit_page: PageEdit | None = None
    modes: frozenset[str] = OBJECT_MODES
    suits: Suits = lambda _request, _unit: True
    """Which units can be the victim."""
    suits_page: Callable[[PageRequest], bool] = lambda _request: True
    names_also: Callable[[PageRequest, Unit | None], tuple[str, ...]] = lambda _request, _unit: ()
    """Further names under which the fault may be reported."""
    names_field: bool = True
    """Whether an issue must name the victim."""
    style: Mapping[str, Any] = field(default_factory=dict)

    @property
    def codes(self) -> frozenset[str]:
        """Every code that may name the fault."""
        return frozenset().union(*self.expects)

    def applies(self, request: PageRequest) -> bool:
        """Return whether the fault can be made on that page."""
        if request.mode not in self.modes or not self.suits_page(request):
            return False
        return self.edit is None or self.victim(request) is not None

    def victim(self, request: PageRequest, skip: int = 0) -> Unit | None:
        """Return the unit that is hit: of those that suit, number ``skip``, round and round."""
        suitable = [unit for unit in request.units if self.suits(request, unit)]
        return suitable[skip % len(suitable)] if suitable and self.edit else None

    def fields(self, request: PageRequest, skip: int = 0) -> tuple[str, ...]:
        """Return the names of which an issue must give one; none where any place will do."""
        if not self.names_field:
            return ()
        victim = self.victim(request, skip)
        own = () if victim is None else (str(victim.wire),)
        return (*own, *self.names_also(request, victim))

    def make(self, draft: Draft, skip: int = 0) -> None:
        """Spoil the draft."""
        draft.style = replace(draft.style, **self.style)
        if self.edit_page:
            self.edit_page(draft)
        victim = self.victim(draft.request, skip)
        if self.edit and victim:
            self.edit(draft, next(m for m in draft.members if m.wire == victim.wire))


def in_field(name: str, codes: str, edit: Edit, **options: Any) -> Mistake:
    """Return a fault of one field or value.

    ``codes``: ``A|B`` for one of them, ``A+B`` for each of them.
    """
    return Mistake(name, _expects(codes), edit=edit, **options)


def in_page(name: str, codes: str, edit_page: PageEdit, **options: Any) -> Mistake:
    """Return a fault of the page as a whole."""
    return Mistake(name, _expects(codes), edit_page=edit_page, **options)


def _expects(codes: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(group.split("|")) for group in codes.split("+"))


# -- edits of one field --------------------------------------------------------------------------


def drop(draft: Draft, member: Member) -> None:
    draft.members.remove(member)


def add_copy(draft: Draft, member: Member) -> None:
    """Write the victim a second time, under another name."""
    copy = replace(member, identifier=f"{member.identifier}Again")
    draft.members.insert(draft.members.index(member) + 1, copy)


def change(**changes: Any) -> Edit:
    """Return an edit that writes the victim otherwise: what to, or how to make it."""

    def edit(_draft: Draft, member: Member) -> None:
        values = {key: to(member) if callable(to) else to for key, to in changes.items()}
        for key, value in values.items():
            setattr(member, key, value)

    return edit


def retype(to: Callable[[str], str]) -> Edit:
    """Return an edit of the victim's type, its question mark kept."""

    def edit(_draft: Draft, member: Member) -> None:
        mark = "?" if member.type.endswith("?") else ""
        member.type = to(member.type.removesuffix("?")) + mark

    return edit


def respelt(wire: str | int) -> str | int:
    """Return a name that differs in the middle, or a number far away."""
    if isinstance(wire, int):
        return wire + 7001
    middle = len(wire) // 2
    return f"{wire[:middle]}zq{wire[middle:]}"


def same_identifier(draft: Draft, member: Member) -> None:
    other = next(other for other in draft.members if other is not member)
    member.identifier = other.identifier


def lose_semicolon(_draft: Draft, member: Member) -> None:
    member.edit = lambda text: text.replace("{ get;", "{ get", 1)


# -- what suits ----------------------------------------------------------------------------------


def has_several(request: PageRequest, _unit: Unit | None = None) -> bool:
    return len(request.units) > 1


def leaves_something(request: PageRequest, _unit: Unit) -> bool:
    """Return whether the page has code without the unit; else it would be an empty reply."""
    return request.is_first or has_several(request)


def loses_mark(_request: PageRequest, unit: Unit) -> bool:
    # A JsonElement holds null and absence by itself.
    return unit.is_nullable and unit.bare_type != "JsonElement"


def gains_mark(_request: PageRequest, unit: Unit) -> bool:
    return not unit.is_nullable and unit.type != "JsonElement"


def has_units(request: PageRequest) -> bool:
    return bool(request.units)


# -- edits of the page ---------------------------------------------------------------------------


def on_code(to: Callable[[Draft, str], str]) -> PageEdit:
    def edit(draft: Draft) -> None:
        draft.edit_code = lambda code: to(draft, code)

    return edit


def replies(text: str) -> PageEdit:
    def edit(draft: Draft) -> None:
        draft.edit_reply = lambda _reply: text

    return edit


def elide(draft: Draft) -> None:
    """Put a comment in place of the second half of the members."""
    del draft.members[len(draft.members) // 2 :]
    draft.loose.append("// ... the remaining members follow the same pattern")


def declares(**changes: Any) -> PageEdit:
    def edit(draft: Draft) -> None:
        for name, value in changes.items():
            setattr(draft, name, f"{draft.type_name}Dto" if value is None else value)

    return edit


def invent(draft: Draft) -> None:
    draft.members.append(Member("invented_by_writer", "InventedByWriter", "string?"))


def class_for_enum(draft: Draft) -> None:
    draft.edit_code = lambda _code: f"public class {draft.type_name}\n{{\n}}"


# -- the catalogue -------------------------------------------------------------------------------

_ANYWHERE: dict[str, Any] = {"modes": ALL, "suits_page": has_units}
_IN_ENUM: dict[str, Any] = {"modes": frozenset({"enum_only"})}
_FAILS = "SYNTAX|ARTIFACT|MISSING_CLASS|EMPTY_OUTPUT|MISSING_FIELD|ENUM_MEMBER"
_RESPELL: dict[str, Any] = {
    "edit": change(wire=lambda member: respelt(member.wire)),
    "names_also": lambda _request, unit: (str(respelt(unit.wire)),),
}

_FIELDS = (
    in_field("drop_field", "MISSING_FIELD", drop, suits=leaves_something),
    in_field("rename_field", "MISSING_FIELD+PHANTOM_FIELD", **_RESPELL),
    in_field(
        "forget_wire_name",
        "MISSING_FIELD",
        change(has_wire_name=False),
        suits=lambda _request, unit: unit.identifier != unit.wire,
    ),
    in_page(
        "invent_field",
        "PHANTOM_FIELD",
        invent,
        names_also=lambda _request, _unit: ("invented_by_writer",),
    ),
    in_field("duplicate_field", "DUPLICATE_FIELD", add_copy),
    in_field(
        "duplicate_property",
        "DUPLICATE_PROPERTY",
        same_identifier,
        suits=has_several,
        names_field=False,
    ),
    in_page(
        "forget_key",
        "PRIMARY_KEY",
        declares(class_key=False),
        suits_page=lambda request: request.is_xchange and request.primary_key is not None,
        modes=FIRST_OBJECT,
    ),
    in_field(
        "mistype_field", "WRONG_TYPE", retype(lambda type_: "bool" if type_ != "bool" else "int")
    ),
    in_field("undeclared_type", "UNDECLARED_TYPE", retype(lambda _: "UndeclaredThing")),
    in_field(
        "loses_question_mark",
        "NULLABILITY",
        change(type=lambda member: member.type.removesuffix("?")),
        suits=loses_mark,
    ),
    in_field(
        "gains_question_mark",
        "NULLABILITY",
        change(type=lambda member: f"{member.type}?"),
        suits=gains_mark,
    ),
)

_VALUES = (
    in_field("drop_value", "ENUM_MEMBER", drop, suits=leaves_something, modes=ENUM_MODES),
    in_field("misspell_value", "ENUM_MEMBER", **_RESPELL, modes=ENUM_MODES),
    in_field("duplicate_value", "ENUM_MEMBER", add_copy, modes=ENUM_MODES),
    in_page(
        "class_for_enum",
        "MISSING_CLASS|WRONG_TYPE|ENUM_MEMBER|SYNTAX",
        class_for_enum,
        **_IN_ENUM,
    ),
    in_page(
        "no_converter",
        "ENUM_MEMBER",
        declares(has_converter=False),
        suits_page=lambda request: request.value_kind.startswith("strings"),
        **_IN_ENUM,
    ),
)

_PAGES = (
    in_page("wrong_class_name", "MISSING_CLASS", declares(type_name=None), modes=FIRST),
    in_field(
        "missing_semicolon",
        "SYNTAX",
        lose_semicolon,
        suits=lambda _request, unit: bool(re.fullmatch(r"\w+", str(unit.wire), re.ASCII)),
        names_field=False,
        style=PLAIN_CLASS,
    ),
    in_page(
        "elided_rest",
        "ARTIFACT|MISSING_FIELD|ENUM_MEMBER",
        elide,
        suits_page=has_several,
        modes=ALL,
        style={"shape": "class"},
    ),
    in_page("prose", _FAILS, replies("I would rather not write this today."), **_ANYWHERE),
    in_page("empty", "EMPTY_OUTPUT", replies(""), **_ANYWHERE),
    in_page(
        "cut_short",
        "SYNTAX|TRUNCATED|MISSING_FIELD|ENUM_MEMBER",
        on_code(lambda _draft, code: code[: len(code) * 3 // 5]),
        style=PLAIN_CLASS,
        modes=ALL,
        # The number of a last enum member may be left out: cut there, the page is still right.
        suits_page=lambda request: len(request.units) > 2,
    ),
)

MISTAKES = {mistake.name: mistake for mistake in (*_FIELDS, *_VALUES, *_PAGES)}
"""Every fault by name."""
