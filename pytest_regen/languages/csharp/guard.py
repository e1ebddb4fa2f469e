"""By what a C# type is tested less than the one that it replaces."""

import re
from collections.abc import Iterator
from typing import Final

from pytest_regen.documents.ir import ArrayOf, FieldIR, MapOf, Scalar, TypeIR
from pytest_regen.languages.base import Member
from pytest_regen.languages.csharp.reader import read
from pytest_regen.languages.csharp.tree import parse
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.languages.weaknesses import AS_ASKED, found_at, in_both, silenced
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
# Text is taken of these alone, because that of every node would be the source many times over.
_TOLD: Final = frozenset({"preproc_nullable", "preproc_pragma", "attribute"})
_EQUALS_ALL: Final = re.compile(r"\bEquals\s*\([^()]*\)\s*(?:=>|\{\s*return)\s*true\s*;")
"""What returns nothing but true."""
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
    for field, before, after in in_both(type_, read(old), read(new)):
        name = in_quotes(field.json_name)
        dropped = {entry.name for entry in before.attributes}
        dropped -= {entry.name for entry in after.attributes}
        if field.required and not field.nullable:
            # A keyword that went says more than the attribute that went with it.
            if _demands(field, before) and not _demands(field, after):
                message = f"{name} may be left out where it was demanded"
                yield _of_field(field, after, "required", message, AS_ASKED)
            elif "Required" in dropped:
                message = f"drops '[Required]' of {name}"
                yield _of_field(field, after, "required", message, AS_ASKED)
        for check in sorted(dropped & _CHECKS) if field.constraints else ():
            message = f"drops '[{check}]' of {name}"
            yield _of_field(field, after, "validator", message, f"keep it; {AS_ASKED}")


def _weaknesses(root: Node) -> Iterator[Weakness]:
    yield from silenced(root)
    for node in walk(root):
        text = text_of(node).strip() if node.type in _TOLD else ""
        match node.type:
            case "preproc_nullable" | "preproc_pragma" if "disable" in text.split():
                advice = "correct the code: silence no check of it"
                yield found_at(node, "directive", f"adds {in_quotes(text)}", advice)
            case "attribute":
                name = text_of(node.named_children[0]).rpartition(".")[2].removesuffix("Attribute")
                # Not any JsonIgnore, because a field that is not read is told of as missing.
                ignores = name == "JsonIgnore" and "WhenWritingDefault" in text
                if name in _ATTRIBUTES or ignores:
                    yield found_at(node, "attribute", f"adds {in_quotes(f'[{text}]')}")
            case "postfix_unary_expression":
                # By its nodes, because ``null!`` may stand in a string or a comment.
                if [child.type for child in node.children] == ["null_literal", "!"]:
                    yield found_at(node, "null", "says by null! that nothing is missing")
            case "method_declaration" if _EQUALS_ALL.search(text_of(node)):
                yield found_at(node, "equal", "makes an object that equals everything")


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
