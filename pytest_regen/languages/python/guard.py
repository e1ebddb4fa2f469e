"""By what a Python type is tested less than the one that it replaces."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.names import word_set
from pytest_regen.languages.python.reader import read
from pytest_regen.languages.python.spelling import constraint_arguments
from pytest_regen.languages.python.tree import dotted, last_name, parse
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.languages.weaknesses import AS_ASKED, found_at, members_of, silenced
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Weakness, added_weaknesses

_LOOSE: Final[Mapping[str, frozenset[str]]] = {
    "extra": frozenset({'"allow"', "'allow'", '"ignore"', "'ignore'", "Extra.allow"}),
    "arbitrary_types_allowed": frozenset({"True"}),
    "coerce_numbers_to_str": frozenset({"True"}),
    "from_attributes": frozenset({"True"}),
    "strict": frozenset({"False"}),
}
"""Settings of a class, and the values with which it takes more."""
_METHODS: Final = word_set(
    """
    __eq__ __get_pydantic_core_schema__ __getattr__ __getattribute__ __init__ __init_subclass__
    __instancecheck__ __ne__ __new__ __post_init__ __setattr__ _missing_ model_construct model_dump
    model_post_init model_validate
    """
)
"""Methods that decide what a class takes, or what it equals."""
_VALIDATORS: Final = word_set("field_validator model_validator root_validator validator")
_SERIALIZERS: Final = word_set("field_serializer model_serializer")
_TAKING_ALL: Final = word_set(
    "BeforeValidator InstanceOf PlainValidator SkipValidation WrapValidator"
)


def weakens(type_: TypeIR, old: str, new: str) -> Iterator[Weakness]:
    """Yield by what new code of a type takes more, or shows less, than the old."""
    before, after = parse(old).root_node, parse(new).root_node
    yield from added_weaknesses(_weaknesses(before), _weaknesses(after))
    kept = set(_checks(after))
    for name in _checks(before):
        if name not in kept:
            message = f"drops the validator {in_quotes(name)}"
            yield Weakness(("validator", name), message, None, f"keep it; {AS_ASKED}")
    yield from _dropped_limits(type_, old, new)


def _weaknesses(root: Node) -> Iterator[Weakness]:
    yield from silenced(root)
    for node in walk(root):
        match node.type:
            case "assignment" | "keyword_argument":
                yield from _setting(node)
            case "pair":
                yield from _pair(node)
            case "function_definition":
                name = text_of(node.child_by_field_name("name") or node)
                if name in _METHODS:
                    yield found_at(node, "method", f"adds the method {in_quotes(name)}")
            case "decorator" if last_name(node.named_children[0]) in _VALIDATORS | _SERIALIZERS:
                # Which only checks says so by ``mode="after"``, or by nothing.
                if _is_before(node) or last_name(node.named_children[0]) in _SERIALIZERS:
                    said = text_of(node)[:80]
                    yield found_at(node, "validator", f"changes values by {in_quotes(said)}")
            case "identifier" if text_of(node) in _TAKING_ALL:
                yield found_at(node, "validator", f"uses {text_of(node)}")


def _is_before(node: Node) -> bool:
    return any(
        part.type == "keyword_argument"
        and text_of(part).partition("=")[0].strip() == "mode"
        and "after" not in text_of(part)
        for part in walk(node)
    )


def _setting(node: Node) -> Iterator[Weakness]:
    name_node = node.child_by_field_name("name") or node.child_by_field_name("left")
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    name = dotted(name_node) if name_node is not None else ""
    if value is not None and text_of(value) in _LOOSE.get(name, ()):
        yield found_at(node, "setting", f"sets {name} = {text_of(value)}, by which more is taken")


def _pair(node: Node) -> Iterator[Weakness]:
    """Yield a setting of a class that is written as a dictionary."""
    key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
    if key is None or value is None:
        return
    name = text_of(key).strip("\"'")
    if text_of(value) in _LOOSE.get(name, ()):
        yield found_at(node, "setting", f"sets {name} = {text_of(value)}, by which more is taken")


def _checks(root: Node) -> Iterator[str]:
    """Yield the names of the validators of a tree."""
    for node in walk(root):
        if node.type != "decorated_definition":
            continue
        function = node.child_by_field_name("definition")
        names = {
            last_name(one.named_children[0]) for one in node.children if one.type == "decorator"
        }
        if function is not None and names & _VALIDATORS:
            yield text_of(function.child_by_field_name("name") or function)


def _dropped_limits(type_: TypeIR, old: str, new: str) -> Iterator[Weakness]:
    """Yield limits that the document gives and the old code has, where a field has lost them."""
    before, after = (members_of(read(code).declarations, type_) for code in (old, new))
    for field in type_.fields:
        ours, theirs = after.get(field.json_name), before.get(field.json_name)
        if ours is None or theirs is None:
            continue
        wanted: Mapping[str, Any] = constraint_arguments(field, profile="default")
        had = {entry.name for entry in theirs.attributes}
        has = {entry.name for entry in ours.attributes}
        for name in wanted:
            if name in had and name not in has:
                message = f"drops {name}={wanted[name]!r} of {in_quotes(field.json_name)}"
                yield Weakness(
                    ("limit", field.json_name, name),
                    message,
                    ours.line,
                    "keep every limit that the request lists",
                    field.json_name,
                )
