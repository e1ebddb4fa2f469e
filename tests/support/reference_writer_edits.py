"""The ways in which the reference writer spoils a page, and what they need to be possible."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reference_writer_csharp import Draft, Member
from reference_writer_mistake import Edit, PageEdit, Suits
from reference_writer_request import PageRequest, Unit

# -- edits of one field --------------------------------------------------------------------------


def drop(draft: Draft, member: Member) -> None:
    draft.members.remove(member)


def add_copy(**changes: Any) -> Edit:
    """Return an edit that writes the victim a second time, otherwise."""

    def edit(draft: Draft, member: Member) -> None:
        values = {name: filled(value, member) for name, value in changes.items()}
        draft.members.insert(draft.members.index(member) + 1, replace(member, **values))

    return edit


def change(**changes: Any) -> Edit:
    """Return an edit that writes the victim otherwise."""

    def edit(_draft: Draft, member: Member) -> None:
        values = {name: filled(value, member) for name, value in changes.items()}
        for name, value in values.items():
            setattr(member, name, value)

    return edit


def filled(value: Any, member: Member) -> Any:
    return value(member) if callable(value) else value


def retype(change: Callable[[str], str]) -> Edit:
    """Return an edit of the victim's type, its question mark kept."""

    def edit(_draft: Draft, member: Member) -> None:
        mark = "?" if member.type.endswith("?") else ""
        member.type = change(member.type.removesuffix("?")) + mark

    return edit


def edit_text(change: Callable[[str], str]) -> Edit:
    """Return an edit of the victim's finished text."""

    def edit(_draft: Draft, member: Member) -> None:
        member.edit = change

    return edit


def comment_lines(text: str) -> str:
    return "\n".join(f"// {line}" for line in text.split("\n"))


def respelt(wire: str | int) -> str | int:
    """Return a name that differs in the middle, or a number far away."""
    if isinstance(wire, int):
        return wire + 7001
    middle = len(wire) // 2
    return f"{wire[:middle]}zq{wire[middle:]}"


def wrong_scalar(spelled: str) -> str:
    return "bool" if spelled != "bool" else "int"


def wrong_inside(spelled: str) -> str:
    """Return a generic type with its last argument replaced."""
    return re.sub(r"\w+>$", "bool>", spelled)


def other_type(draft: Draft, member: Member) -> None:
    mark = "?" if member.type.endswith("?") else ""
    name = next(name for name, _ in draft.request.other_types if not uses(member.type, name))
    member.type = f"{name}{mark}"


def same_identifier(draft: Draft, member: Member) -> None:
    other = next(other for other in draft.members if other is not member)
    member.identifier = other.identifier


# -- what suits ----------------------------------------------------------------------------------


def has_another(request: PageRequest, _unit: Unit) -> bool:
    return len(request.units) > 1


def leaves_something(request: PageRequest, _unit: Unit) -> bool:
    """Return whether the page has code without the unit; else it would be an empty reply."""
    return request.is_first or len(request.units) > 1


def is_not_key(request: PageRequest, unit: Unit) -> bool:
    """Return whether the type has a key, marked on a property, and it is not this one."""
    return bool(request.primary_key and not request.is_xchange) and "primary-key" not in unit.flags


def is_not_last(request: PageRequest, unit: Unit) -> bool:
    return unit is not request.units[-1]


def uses(spelled: str, name: str) -> bool:
    return name in re.findall(r"\w+", spelled)


def has_other_type(request: PageRequest, unit: Unit) -> bool:
    return any(not uses(unit.type, name) for name, _ in request.other_types)


def matches(pattern: str) -> Suits:
    """Return a test of the victim's type without its question mark."""
    return lambda _request, unit: bool(re.fullmatch(pattern, unit.bare_type))


def loses_mark(_request: PageRequest, unit: Unit) -> bool:
    # A JsonElement holds null and absence by itself.
    return unit.is_nullable and unit.bare_type != "JsonElement"


def gains_mark(_request: PageRequest, unit: Unit) -> bool:
    return not unit.is_nullable and unit.type != "JsonElement"


def has_units(request: PageRequest) -> bool:
    return bool(request.units)


# -- edits of the page ---------------------------------------------------------------------------


def on_code(change: Callable[[Draft, str], str]) -> PageEdit:
    def edit(draft: Draft) -> None:
        draft.edit_code = lambda code: change(draft, code)

    return edit


def replies(text: str) -> PageEdit:
    def edit(draft: Draft) -> None:
        draft.edit_reply = lambda _reply: text

    return edit


def elide(line: str) -> PageEdit:
    """Return an edit that puts ``line`` in place of the second half of the members."""

    def edit(draft: Draft) -> None:
        del draft.members[len(draft.members) // 2 :]
        draft.loose.append(line)

    return edit


def without_last_brace(text: str) -> str:
    before, _, after = text.rpartition("}")
    return before + after


def swapped_braces(_draft: Draft, code: str) -> str:
    first, last = code.index("{"), code.rindex("}")
    return f"{code[:first]}}}{code[first + 1 : last]}{{{code[last + 1 :]}"


def with_foreign(draft: Draft, code: str) -> str:
    name, kind = draft.request.other_types[0]
    keyword = "enum" if kind == "enum" else "class"
    return f"{code}\n\npublic {keyword} {name}\n{{\n}}"


def declares(**changes: Any) -> PageEdit:
    def edit(draft: Draft) -> None:
        for name, value in changes.items():
            setattr(draft, name, f"{draft.type_name}Dto" if value is None else value)

    return edit


def is_value_kind(kind: str) -> Callable[[PageRequest], bool]:
    """Return a test of a page that declares an enum whose values are such."""
    return lambda request: request.value_kind.startswith(kind)


def in_head(old: str, new: str) -> PageEdit:
    """Return an edit of the line that declares the type."""
    return on_code(lambda _draft, code: code.replace(old, new, 1))


def invent(draft: Draft) -> None:
    draft.members.append(Member("invented_by_writer", "InventedByWriter", "string?"))


def steal(draft: Draft) -> None:
    name = draft.request.other_fields[0]
    draft.members.append(Member(name, "StolenFromOtherPage", "string?"))


def invent_value(draft: Draft) -> None:
    wire: str | int = "invented by writer"
    if draft.request.value_kind.startswith("integers"):
        wire = 90_210
    draft.members.append(Member(wire, "InventedByWriter", ""))


def class_for_enum(draft: Draft) -> None:
    draft.edit_code = lambda _code: f"public class {draft.type_name}\n{{\n}}"
