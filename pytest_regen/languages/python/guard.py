"""By what a Python type is tested less than the one that it replaces."""

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.names import word_set
from pytest_regen.languages.python.source import comments, dotted, last_name, parse, read
from pytest_regen.languages.python.spelling import constraint_arguments
from pytest_regen.languages.weaknesses import AS_ASKED, in_both
from pytest_regen.suppressions import directive_in
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Weakness, added_weaknesses

_LOOSE: Final[Mapping[str, frozenset[str]]] = {
    "extra": frozenset({"'allow'", "'ignore'", "Extra.allow"}),
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
    yield from added_weaknesses(_weaknesses(old), _weaknesses(new))
    kept = set(_checks(new))
    for name in _checks(old):
        if name not in kept:
            message = f"drops the validator {in_quotes(name)}"
            yield Weakness(("validator", name), message, None, f"keep it; {AS_ASKED}")
    for field, before, after in in_both(type_, read(old), read(new)):
        dropped = {entry.name for entry in before.attributes}
        dropped -= {entry.name for entry in after.attributes}
        # Of limits that the document gives, because others it may be right to drop.
        for name, limit in constraint_arguments(field, profile="default").items():
            if name in dropped:
                key, place = ("limit", field.json_name, name), field.json_name
                message = f"drops {name}={limit!r} of {in_quotes(place)}"
                advice = "keep every limit that the request lists"
                yield Weakness(key, message, after.line, advice, place)


def _nodes(code: str) -> Iterator[ast.AST]:
    try:
        yield from ast.walk(parse(code))
    except (SyntaxError, ValueError):
        return  # Illegal code is no replacement.


def _weaknesses(code: str) -> Iterator[Weakness]:
    for text, line in comments(code):
        if directive := directive_in(text):
            yield Weakness.of_directive(directive, line)
    for node in _nodes(code):
        for key, message in _loosened(node):
            yield Weakness((key, message), message, getattr(node, "lineno", 1), AS_ASKED)


def _loosened(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield by what code takes more than it should: of what kind it is, and a message."""
    for name, value in _settings(node):
        text = ast.unparse(value)
        if text in _LOOSE.get(name, ()):
            yield "setting", f"sets {name} = {text}, by which more is taken"
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if node.name in _METHODS:
                yield "method", f"adds the method {in_quotes(node.name)}"
            for decorator in node.decorator_list:
                name, keywords = last_name(decorator), getattr(decorator, "keywords", ())
                # What only checks says so by ``mode="after"``, or by nothing.
                modes = [ast.unparse(word.value) for word in keywords if word.arg == "mode"]
                is_before = name in _VALIDATORS and any("after" not in mode for mode in modes)
                if name in _SERIALIZERS or is_before:
                    shown = f"@{ast.unparse(decorator)}"[:80]
                    yield "validator", f"changes values by {in_quotes(shown)}"
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _TAKING_ALL:
            yield "validator", f"uses {name}"


def _settings(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return the names that a node gives to values."""
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return [
                (str(key.value), setting) for key, setting in pairs if isinstance(key, ast.Constant)
            ]
        case ast.Assign(targets=[target], value=value):
            return [(dotted(target), value)]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return [(dotted(target), value)]
        case ast.keyword(arg=str(name), value=value):
            return [(name, value)]
    return []


def _checks(code: str) -> Iterator[str]:
    """Yield the names of the validators."""
    for node in _nodes(code):
        decorators = getattr(node, "decorator_list", ())
        if not isinstance(node, ast.ClassDef) and _VALIDATORS & {*map(last_name, decorators)}:
            yield str(getattr(node, "name", ""))
