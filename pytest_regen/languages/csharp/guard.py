"""By what a C# type is tested less than the one that it replaces."""

from collections.abc import Iterator
from typing import Final

from pytest_regen.documents.ir import ArrayOf, FieldIR, MapOf, Scalar, TypeIR
from pytest_regen.languages.base import Member
from pytest_regen.languages.csharp.reader import read
from pytest_regen.languages.csharp.tree import parse
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.languages.weaknesses import AS_ASKED, found_at, members_of, silenced
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Weakness, added_weaknesses

_ATTRIBUTES: Final = word_set(
    """
    AllowNull ExcludeFromCodeCoverage JsonExtensionData JsonNumberHandling
    JsonUnmappedMemberHandling MaybeNull RequiresUnreferencedCode SuppressMessage
    UnconditionalSuppressMessage
    """
)
"""Attributes that silence a check, or by which JSON is taken that the type does not name."""
_CHECKS: Final = word_set(
    """
    AllowedValues Base64String CreditCard DeniedValues EmailAddress Length MaxLength MinLength Phone
    Range RegularExpression StringLength Url
    """
)
"""Attributes that check a value."""


def weakens(type_: TypeIR, old: str, new: str) -> Iterator[Weakness]:
    """Yield by what new code of a type takes more, or checks less, than the old."""
    roots = (parse(code.encode("utf-8", "replace")).root_node for code in (old, new))
    yield from added_weaknesses(*map(_weaknesses, roots))
    yield from _dropped(type_, old, new)


def _weaknesses(root: Node) -> Iterator[Weakness]:
    yield from silenced(root)
    for node in walk(root):
        match node.type:
            case "preproc_nullable" | "preproc_pragma":
                said = text_of(node).strip()
                if "disable" in said.split():
                    advice = "correct the code: silence no check of it"
                    yield found_at(node, "directive", f"adds {in_quotes(said)}", advice)
            case "attribute":
                said = text_of(node).strip()
                name = text_of(node.named_children[0]).rpartition(".")[2].removesuffix("Attribute")
                ignores = name == "JsonIgnore" and "WhenWritingDefault" in said
                if name in _ATTRIBUTES or ignores:
                    yield found_at(node, "attribute", f"adds {in_quotes(f'[{said}]')}")
            case "postfix_unary_expression":
                if [child.type for child in node.children] == ["null_literal", "!"]:
                    yield found_at(node, "null", "says by null! that nothing is missing")
            case "method_declaration" if _equals_all(node):
                yield found_at(node, "equal", "makes an object that equals everything")


def _equals_all(node: Node) -> bool:
    name = node.child_by_field_name("name")
    if name is None or text_of(name) != "Equals":
        return False
    values = [one for one in walk(node) if one.type == "boolean_literal"]
    returned = {"arrow_expression_clause", "return_statement"}
    return len(values) == 1 and any(
        value.parent is not None and value.parent.type in returned and text_of(value) == "true"
        for value in values
    )


def _dropped(type_: TypeIR, old: str, new: str) -> Iterator[Weakness]:
    """Yield what a property no longer demands."""
    before, after = (members_of(read(code).declarations, type_) for code in (old, new))
    for field in type_.fields:
        ours, theirs = after.get(field.json_name), before.get(field.json_name)
        if ours is None or theirs is None:
            continue
        shown = in_quotes(field.json_name)
        names, dropped = ({each.name for each in member.attributes} for member in (ours, theirs))
        dropped -= names
        if field.required and not field.nullable:
            is_lost = _demands(field, theirs) and not _demands(field, ours)
            message = f"{shown} may be left out where it was demanded"
            if not is_lost and "Required" in dropped:
                message = f"drops '[Required]' of {shown}"
            if is_lost or "Required" in dropped:
                yield _of_field(field, ours, "required", message, AS_ASKED)
        for name in sorted(dropped & _CHECKS) if field.constraints else ():
            message = f"drops '[{name}]' of {shown}"
            yield _of_field(field, ours, "validator", message, f"keep it; {AS_ASKED}")


def _of_field(field: FieldIR, member: Member, key: str, message: str, advice: str) -> Weakness:
    return Weakness((key, field.json_name, message), message, member.line, advice, field.json_name)


def _demands(field: FieldIR, member: Member) -> bool:
    """Return whether the serializer, or the compiler, misses a value that is not there.

    A number is there in any case; and where a value is given at once, the keyword is not needed.
    """
    is_reference = isinstance(field.type, ArrayOf | MapOf) or (
        isinstance(field.type, Scalar) and field.type.kind == "string" and not field.type.format
    )
    names = {each.name for each in member.attributes}
    is_demanded = member.is_required or "JsonRequired" in names
    return is_demanded or member.has_initializer or not is_reference
