"""Whether a request fits the types of the vendor's SDK; what these do not name is noted."""

import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from importlib import import_module
from operator import or_
from typing import Annotated, Any, Literal, Required, Union, get_args, get_origin, get_type_hints

from pytest_regen.emulator.values import ApiError

_LISTS = (Iterable, Sequence, list)
_TAGS = ("type", "role")


def check_shape(body: Mapping[str, Any], *, beta: bool) -> list[str]:
    """Return notes on the parts of a request that the installed SDK has no type for.

    Args:
        body: the JSON body.
        beta: it came through the SDK's beta client, which has types of its own.

    Raises:
        ApiError: 400, with the first field that does not fit its type.
    """
    notes: list[str] = []
    module = import_module(f"anthropic.types.{'beta.' if beta else ''}message_create_params")
    stream = "" if body.get("stream") else "Non"
    _check_object(body, getattr(module, f"MessageCreateParams{stream}Streaming"), "", notes)
    return notes


def _check(value: object, annotation: Any, where: str, notes: list[str]) -> None:
    # Pydantic judges what is flat. It cannot judge the whole: it leaves an Iterable unread until
    # somebody iterates, and ignores the keys that a TypedDict does not have.
    from pydantic import ValidationError

    branches = _branches(annotation)
    objects = [branch for branch in branches if hasattr(branch, "__required_keys__")]
    lists = [branch for branch in branches if get_origin(branch) in _LISTS]
    flat = [branch for branch in branches if branch not in (*objects, *lists)]
    # A tool's schema is typed as an InputSchema or any other object, so it is any.
    is_any = any(get_origin(branch) is dict for branch in flat)
    if isinstance(value, dict) and objects and not is_any:
        _check_tagged(value, objects, where, notes)
    elif isinstance(value, list) and lists:
        for number, item in enumerate(value):
            _check(item, get_args(lists[0])[0], f"{where}.{number}", notes)
    else:
        complaint = "Input should be an object"
        try:
            if flat:
                _adapter(tuple(flat)).validate_python(value, strict=True)
                return
        except ValidationError as error:
            complaint = str(error.errors()[0]["msg"])
        if lists:
            complaint = "Input should be a valid list"
        raise ApiError(f"{where}: {complaint}")


def _check_tagged(value: dict[str, Any], objects: list[Any], where: str, notes: list[str]) -> None:
    """Check an object by the type whose tag it carries."""
    is_alone = len(objects) == 1 and "type" in _tags(objects[0])
    tag = next((key for key in _TAGS if key in _fields(objects[0])), "type")
    for kind in objects:
        if is_alone or all(value.get(key) in tags for key, tags in _tags(kind).items()):
            _check_object(value, kind, where, notes)
            return
    if not isinstance(value.get(tag), str):
        raise ApiError(f"{where}.{tag}: Field required")
    notes.append(f"{where}.{tag}: the SDK has no type for {value[tag]!r:.80}")


def _check_object(value: Mapping[str, Any], kind: Any, where: str, notes: list[str]) -> None:
    prefix = f"{where}." if where else ""
    fields = _fields(kind)
    for key, annotation in fields.items():
        if get_origin(annotation) is Required and key not in value:
            raise ApiError(f"{prefix}{key}: Field required")
    for key, inner in value.items():
        if key not in fields:
            notes.append(f"{prefix}{key}: the SDK has no field of this name")
        elif inner is not None or get_origin(fields[key]) is Required:
            # Null is as good as absent: the API takes it for every field that it does not require.
            _check(inner, fields[key], f"{prefix}{key}", notes)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def _tags(kind: Any) -> dict[str, tuple[Any, ...]]:
    """Return the values of the fields that tell an object's type; ``None`` where it may lack."""
    fields = _fields(kind)
    tags = {
        key: tuple(tag for branch in _branches(fields[key]) for tag in get_args(branch) or (None,))
        for key in _TAGS
        if key in fields
    }
    # What has no tag by its type is something newer where the request gives it one.
    return tags or {"type": (None,)}


@cache
def _branches(annotation: Any) -> tuple[Any, ...]:
    """Return the alternatives of an annotation, without the classes of responses."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Required, Annotated}:
        return _branches(arguments[0])
    if origin in {Union, types.UnionType}:
        return tuple(branch for argument in arguments for branch in _branches(argument))
    return () if hasattr(annotation, "model_fields") else (annotation,)


@cache
def _adapter(branches: tuple[Any, ...]) -> Any:
    from pydantic import TypeAdapter

    # A file of an image is typed as an open file or a path too, which no JSON holds.
    of_json = {str, int, float, bool, types.NoneType, object}
    flat = [b for b in branches if b in of_json or get_origin(b) in {Literal, dict}]
    return TypeAdapter(reduce(or_, flat))
