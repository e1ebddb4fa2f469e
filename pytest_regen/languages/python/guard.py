"""By what a Python type is tested less than the one that it replaces."""

import ast
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.names import word_set
from pytest_regen.languages.python.source import comments, dotted, last_name, parse, read
from pytest_regen.languages.python.spelling import constraint_arguments
from pytest_regen.languages.weaknesses import AS_ASKED, members_of
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
    yield from _dropped_limits(type_, old, new)


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
        yield from _of_node(node, getattr(node, "lineno", 1))


def _of_node(node: ast.AST, line: int) -> Iterator[Weakness]:
    if isinstance(node, ast.Dict):
        for key, setting in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield from _setting(str(key.value), setting, key.lineno)
        return
    match node:
        case ast.Assign(targets=[target], value=value):
            yield from _setting(dotted(target), value, line)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _setting(dotted(target), value, line)
        case ast.keyword(arg=str(name), value=value):
            yield from _setting(name, value, value.lineno)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if node.name in _METHODS:
                yield _weakness("method", f"adds the method {in_quotes(node.name)}", line)
            yield from _changing(node)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _TAKING_ALL:
            yield _weakness("validator", f"uses {name}", line)


def _weakness(key: str, message: str, line: int) -> Weakness:
    return Weakness((key, message), message, line, AS_ASKED)


def _changing(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Weakness]:
    """Yield the decorators that make a method change values."""
    for decorator in node.decorator_list:
        name = last_name(decorator)
        keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
        # What only checks says so by ``mode="after"``, or by nothing.
        is_before = any(
            one.arg == "mode" and "after" not in ast.unparse(one.value) for one in keywords
        )
        if name in _SERIALIZERS or (name in _VALIDATORS and is_before):
            shown = f"@{ast.unparse(decorator)}"[:80]
            message = f"changes values by {in_quotes(shown)}"
            yield _weakness("validator", message, decorator.lineno)


def _setting(name: str, value: ast.expr, line: int) -> Iterator[Weakness]:
    text = ast.unparse(value)
    if text in _LOOSE.get(name, ()):
        message = f"sets {name} = {text}, by which more is taken"
        yield _weakness("setting", message, line)


def _checks(code: str) -> Iterator[str]:
    """Yield the names of the validators."""
    for node in _nodes(code):
        decorators = getattr(node, "decorator_list", ())
        if not isinstance(node, ast.ClassDef) and _VALIDATORS & {*map(last_name, decorators)}:
            yield str(getattr(node, "name", ""))


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
