"""What loads and dumps JSON in the child, by pydantic. Never imported: its text is sent there.

A dump is made of a copy that holds the parsed fields alone: what a class keeps beside them, the
text that it was read from for one, is not there to be handed back.
"""

import dataclasses
import json
import sys
import typing
from enum import Enum

import pydantic
import pydantic_core
import typing_extensions

if sys.version_info < (3, 12):
    # What pydantic asks for there; the code that is run need not depend on it for that.
    typing.TypedDict = typing_extensions.TypedDict

OPTIONS = {"by_alias": True}
"""How values are dumped; whoever sends this text puts its own in."""
MOST = 300
"""Characters kept of a reason."""

Adapter, Model = pydantic.TypeAdapter, pydantic.BaseModel
Refusal, encode = pydantic.ValidationError, pydantic_core.to_json
decode, write = json.loads, json.dumps
new, put = object.__new__, object.__setattr__


def copy(value):
    """Return a value made of its fields and items alone."""
    if isinstance(value, Model):
        held = new(type(value))
        fields = {key: copy(item) for key, item in value.__dict__.items()}
        put(held, "__dict__", fields)
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
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(copy, value))
    if type(value) is dict:
        return {key: copy(item) for key, item in value.items()}
    return value


def reason(error):
    """Return why an instance is refused, and the path to what is wrong, where that is known."""
    if isinstance(error, Refusal):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return str(first["msg"])[:MOST], list(first["loc"])
    return f"{type(error).__name__}: {error}"[:MOST], []


def members(value, names, unset):
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


def reply(adapter, text, names, unset):
    """Return what becomes of one instance: dumped texts, why it is refused and where, members."""
    refused, path = None, []
    try:
        adapter.validator.validate_json(text, strict=True)
    except Exception as error:
        refused, path = reason(error)
    try:
        value = adapter.validator.validate_json(text)
    except Exception as error:
        return [[], *reason(error), ""]
    try:
        serializer = adapter.serializer
        # An unexpected value, such as a string where a number is declared, is an error.
        texts = [serializer.to_json(copy(value), warnings="error", **OPTIONS).decode()]
        if isinstance(value, Model):
            other = value.model_dump_json(**OPTIONS)
            if other != texts[0] and decode(other) != decode(texts[0]):
                texts.append(other)
    except Exception as error:
        why, where = reason(error)
        return [[], f"it cannot be dumped: {why}", where, ""]
    return [texts, refused, path, members(value, names, unset)]


def answer(module, question):
    """Return a reply for each instance of a question about one type; ``None`` asks for nothing."""
    if question is None:
        return None
    adapter = Adapter(getattr(module, question["type"]))
    unset = getattr(module, "UNSET", None)
    unset = unset if isinstance(unset, Enum) else None
    names = question["members"]
    return [reply(adapter, text, names, unset) for text in question["instances"]]
