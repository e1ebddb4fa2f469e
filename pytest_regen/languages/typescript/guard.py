"""By what a TypeScript type is tested less than the one that it replaces."""

from collections.abc import Iterator
from typing import Final

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.languages.typescript.spelling import checks_of
from pytest_regen.languages.typescript.tree import parse
from pytest_regen.languages.weaknesses import AS_ASKED, found_at, silenced
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Weakness, added_weaknesses

_OPEN: Final = word_set("any unknown object Function")
_LOOSE: Final = word_set(
    """
    catch catchall custom deepPartial loose looseObject looseRecord nonstrict partial passthrough
    preprocess strip
    """
)
"""Calls by which a schema takes more than it names."""
_CHECKS: Final = word_set("check refine strict strictObject superRefine")


def weakens(type_: TypeIR, old: str, new: str) -> Iterator[Weakness]:
    """Yield by what new code of a type takes more than the old."""
    before, after = (parse(code.encode("utf-8", "replace")).root_node for code in (old, new))
    yield from added_weaknesses(_weaknesses(before), _weaknesses(after))
    # By name, because what a check is given may be written in other ways.
    names = {*_calls(after)}
    lost = [name for name in dict.fromkeys(_calls(before)) if name not in names]
    old, new = ("".join(code.split()) for code in (old, new))
    calls = [check.call for field in type_.fields for check in checks_of(field)]
    # Lengths have two right forms, and are told apart by running alone.
    plain = [call for call in calls if not call.endswith("/su)")]
    lost += [call for call in plain if old.count(call) > new.count(call)]
    for call in lost:
        message = f"drops the check by {in_quotes(call)}"
        yield Weakness(("validator", call), message, None, f"keep it; {AS_ASKED}")


def _weaknesses(root: Node) -> Iterator[Weakness]:
    yield from silenced(root)
    for node in walk(root):
        match node.type:
            # As the type of a property it is a map, of which the validator knows more.
            case "index_signature" if not _stands_in(node, "property_signature"):
                message = f"takes properties of any name by {in_quotes(text_of(node))}"
                yield found_at(node, "open", message)
            case "extends_type_clause" if _has_open(node):
                message = f"takes more by {in_quotes(text_of(node))}"
                yield found_at(node, "open", message)
            case "as_expression" if _has_open(node.named_children[-1]):
                target = text_of(node.named_children[-1])
                yield found_at(node, "cast", f"casts to {in_quotes(target)}")
            case "non_null_expression":
                yield found_at(node, "cast", "says by ! that nothing is missing")
            case "property_identifier" if text_of(node) in _LOOSE and _is_called(node):
                yield found_at(node, "open", f"takes more by {in_quotes(text_of(node))}")


def _has_open(node: Node) -> bool:
    return any(
        part.type in {"predefined_type", "type_identifier"} and text_of(part) in _OPEN
        for part in walk(node)
    )


def _stands_in(node: Node, kind: str) -> bool:
    above = node.parent
    return above is not None and (above.type == kind or _stands_in(above, kind))


def _is_called(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "member_expression"


def _calls(root: Node) -> Iterator[str]:
    for node in walk(root):
        if node.type == "property_identifier" and text_of(node) in _CHECKS and _is_called(node):
            yield text_of(node)
