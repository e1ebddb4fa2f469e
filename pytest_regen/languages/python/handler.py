"""What loads and dumps JSON in the child, by pydantic. Never imported: its text is sent there.

A dump is made of a copy that holds the parsed fields alone: what a class keeps beside them, the
text that it was read from for one, is not there to be handed back.
"""
# ruff: noqa: BLE001 - code that may raise anything is run here: it is what this is for

import dataclasses
import json
import sys
import typing
from enum import Enum
from typing import Any

import pydantic
import pydantic_core
import typing_extensions

if sys.version_info < (3, 12):
    # What pydantic asks for there; the code that is run need not depend on it for that.
    typing.TypedDict = typing_extensions.TypedDict

OPTIONS: dict[str, Any] = {"by_alias": True}
"""How values are dumped; the sender of this text puts its own in."""
MOST = 300
"""Characters kept of a reason."""
LOAD = "model_validate_json"

# Taken before any other code is there to replace them.
Adapter, Model = pydantic.TypeAdapter, pydantic.BaseModel
Refusal, encode = pydantic.ValidationError, pydantic_core.to_json
decode = json.loads
new, put = object.__new__, object.__setattr__
own_load = vars(Model)[LOAD].__func__


def copy(value: Any) -> Any:
    """Return a value made of its fields and items alone."""
    if isinstance(value, Model):
        held: Any = new(type(value))
        # No property of that name can be in the way, and nothing else be carried along.
        given = vars(value)
        put(held, "__dict__", {key: copy(given[key]) for key in fields_of(value) if key in given})
        put(held, "__pydantic_fields_set__", set(value.__pydantic_fields_set__))
        # What the class has no field for is not kept: no field may be carried like that.
        put(held, "__pydantic_extra__", {} if value.__pydantic_extra__ is not None else None)
        put(held, "__pydantic_private__", None)
        return held
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = new(type(value))
        for field in dataclasses.fields(value):
            put(held, field.name, copy(getattr(value, field.name)))
        return held
    if type(value) in {list, tuple, set, frozenset}:
        return type(value)(map(copy, value))
    if type(value) is dict:
        return {key: copy(item) for key, item in value.items()}
    return value


def fields_of(value: Any) -> Any:
    """Return the fields of a model by name; where they are kept depends on the version."""
    found = vars(type(value)).get("__pydantic_fields__")
    return type(value).model_fields if found is None else found


def load(kind: Any, adapter: Any, text: str) -> Any:
    """Return what is loaded, as the users of a type load it.

    Raises:
        TypeError: it is of another type than the one that was asked for.
    """
    is_class = isinstance(kind, type) and not typing.is_typeddict(kind)
    bases = kind.__mro__ if is_class else ()
    own = next((vars(base)[LOAD] for base in bases if LOAD in vars(base)), None)
    if own is not None and getattr(own, "__func__", None) is not own_load:
        value = kind.model_validate_json(text)
    else:
        value = adapter.validator.validate_json(text)
    if is_class and kind not in type(value).__mro__:
        raise TypeError(f"it is loaded as {type(value).__name__}, not as {kind.__name__}")
    return value


def reason(error: BaseException) -> tuple[str, list[Any]]:
    """Return why an instance is refused, and the path to what is wrong, where that is known."""
    if isinstance(error, Refusal):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return str(first["msg"])[:MOST], list(first["loc"])
    return f"{type(error).__name__}: {error}"[:MOST], []


def members(value: Any, names: list[str], unset: Enum | None) -> str:
    """Return what the members hold as a JSON text; what is unset is left out."""
    if not names or not (isinstance(value, Model) or dataclasses.is_dataclass(value)):
        return ""
    held = {}
    for name in names:
        item = getattr(value, name, None)
        if item is not None and item is not unset:
            held[name] = item
    try:
        return encode(held, by_alias=True, fallback=lambda _: None).decode()
    except Exception:
        return ""


def reply(kind: Any, adapter: Any, text: str, names: list[str], unset: Enum | None) -> list[Any]:
    """Return what becomes of one instance: dumped texts, why it is refused and where, members."""
    refused: str | None = None
    path: list[Any] = []
    try:
        adapter.validator.validate_json(text, strict=True)
    except BaseException as error:
        refused, path = reason(error)
    try:
        value = load(kind, adapter, text)
    except BaseException as error:
        return [[], *reason(error), ""]
    try:
        # An unexpected value, such as a string where a number is declared, is an error.
        copied = adapter.serializer.to_json(copy(value), warnings="error", **OPTIONS).decode()
        texts = [copied]
        if isinstance(value, Model):
            other = value.model_dump_json(**OPTIONS)
            if other != copied and decode(other) != decode(copied):
                texts.append(other)
    except BaseException as error:
        why, where = reason(error)
        return [[], f"it cannot be dumped: {why}", where, ""]
    return [texts, refused, path, members(value, names, unset)]


def answer(module: Any, question: dict[str, Any] | None) -> list[Any] | None:
    """Return a reply for each instance of a question about one type; ``None`` asks for nothing."""
    if question is None:
        return None
    kind = getattr(module, question["type"])
    adapter: Any = Adapter(kind)
    unset = getattr(module, "UNSET", None)
    unset = unset if isinstance(unset, Enum) else None
    names = question["members"]
    return [reply(kind, adapter, text, names, unset) for text in question["instances"]]
