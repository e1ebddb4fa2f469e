"""What runs in the child: loads the types of a source, says what they are, loads and dumps JSON.

Never imported: its text is sent there. A dump is made of a copy that holds the parsed fields alone:
what a class keeps beside them, the text that it was read from for one, is not there to be handed
back.
"""
# ruff: noqa: BLE001 - code that may raise anything is run here: it is what this is for

import __future__

import dataclasses
import json
import sys
import types
import typing
from enum import Enum
from typing import Any

import pydantic
import pydantic.fields
import pydantic_core
import typing_extensions

if sys.version_info < (3, 12):
    # What pydantic asks for there; the code that is run need not depend on it for that.
    typing.TypedDict = typing_extensions.TypedDict

OPTIONS: dict[str, Any] = {"by_alias": True}
"""How values are dumped; the sender of this text puts its own in."""
MOST = 300
"""Characters kept of a reason."""
ANNOTATIONS = __future__.annotations.compiler_flag
LIMITS = ("ge", "gt", "le", "lt", "max_length", "min_length", "multiple_of", "pattern")

# Taken before any other code is there to replace them.
Adapter: Any = pydantic.TypeAdapter
Model = pydantic.BaseModel
Refusal, encode = pydantic.ValidationError, pydantic_core.to_json
Info, Choices = pydantic.fields.FieldInfo, pydantic.AliasChoices
is_typed_dict, is_dataclass = typing_extensions.is_typeddict, dataclasses.is_dataclass
origin_of, args_of = typing_extensions.get_origin, typing_extensions.get_args
decode = json.loads
new, put = object.__new__, object.__setattr__


def both(*names: str) -> tuple[Any, ...]:
    """Return what ``typing`` and ``typing_extensions`` have of the names: two things, maybe."""
    places = [(source, name) for source in (typing, typing_extensions) for name in names]
    return tuple(getattr(source, name) for source, name in places if hasattr(source, name))


QUALIFIERS = both("ClassVar", "Final", "NotRequired", "ReadOnly", "Required")
UNIONS, LITERALS, ALIASES = (typing.Union, types.UnionType), both("Literal"), both("TypeAliasType")


class StandIn(pydantic.BaseModel):
    """In place of a type that cannot be loaded."""


def prepare() -> None:
    """Do once what each fork would do again: the first model takes longest."""
    Adapter(pydantic.create_model("First", number=(int, pydantic.Field(ge=1))))


# --- loading --------------------------------------------------------------------------------------


def load_source(module: Any, source: str, blocks: list[list[Any]]) -> dict[str, Any]:
    """Run a source piece by piece; return why types, or "" for what is around, are not loaded.

    One after the other, so that what is wrong with one type hides no other: a stand-in of its name
    is there for those that use it.

    Args:
        module: empty.
        source: of the module.
        blocks: first and last line and name of each type, in order.
    """
    path, space = module.__file__, vars(module)
    faults: dict[str, Any] = {}
    lines = source.split("\n")
    flags = at = 0
    for first, last, name in [*blocks, [len(lines) + 1, 0, ""]]:
        for piece, start, end in (("", at, first - 1), (name, first - 1, last)):
            text = "\n" * start + "\n".join(lines[start:end])
            try:
                code = compile(text, path, "exec", flags, dont_inherit=True)
                # The first piece has the import from ``__future__``, and it counts for all.
                flags |= code.co_flags & ANNOTATIONS
                exec(code, space)  # noqa: S102
            except BaseException as error:
                faults.setdefault(piece, fault_of(error, path))
            if piece and (piece in faults or piece not in space):
                space[piece] = types.new_class(piece, (StandIn,))
        at = last
    return faults


def fault_of(error: BaseException, path: str) -> dict[str, Any]:
    """Return an exception as JSON: in words, with the line of the source, and what it misses."""
    line, trace = getattr(error, "lineno", None), error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    missing = error.name if isinstance(error, NameError) else ""
    words = " ".join(str(error).partition("\n\nFor further")[0].split())[:MOST]
    return {"fault": f"{type(error).__name__}: {words}", "line": line, "missing": missing}


# --- what types are -------------------------------------------------------------------------------


def resolve(annotation: Any, space: dict[str, Any]) -> Any:
    """Return what an annotation in quotes, or another name for a type, stands for.

    Raises:
        NameError: a name in it is not declared.
    """
    while isinstance(annotation, str | typing.ForwardRef | typing.NewType | typing.TypeVar):
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif isinstance(annotation, typing.TypeVar):
            annotation = annotation.__bound__ or typing.Any
        else:
            text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
            annotation = eval(text, space)  # noqa: S307 - as the interpreter does
    return annotation


def spell(annotation: Any, space: dict[str, Any], extras: list[Any]) -> list[Any]:
    """Return a type: name, whether it may be null, whether a serializer writes it, arguments.

    Args:
        annotation: as a class has it.
        space: of the module.
        extras: takes what ``Annotated`` says of the type, or of a part of a union.
    """
    annotation = resolve(annotation, space)
    if isinstance(annotation, ALIASES):
        if annotation.__module__ != space.get("__name__"):
            return [annotation.__name__, False, False, []]  # Of a library: it may hold itself.
        return spell(annotation.__value__, space, extras)
    origin, args = origin_of(annotation), args_of(annotation)
    if hasattr(annotation, "__metadata__"):
        extras += annotation.__metadata__
        name, nullable, wrapped, inner = spell(args[0], space, extras)
        return [name, nullable, wrapped or is_written(annotation.__metadata__), inner]
    if origin in QUALIFIERS:
        return spell(args[0], space, extras)
    # ``Literal[Unset.UNSET]`` is the class by its only value.
    if origin in LITERALS and [type(value) for value in args] == [space.get("Unset")]:
        return spell(type(args[0]), space, extras)
    if origin in LITERALS:
        values = [value.value if isinstance(value, Enum) else value for value in args]
        plain = [
            one if isinstance(one, str | int) else str(one) for one in values if one is not None
        ]
        parts = [[repr(value), False, False, []] for value in plain]
        return ["Literal", None in values, False, parts]
    if origin in UNIONS:
        return join([spell(part, space, extras) for part in args])
    if annotation is None or annotation is type(None):
        return ["None", True, False, []]
    kind = annotation if origin is None else origin
    name = getattr(kind, "__name__", None) or getattr(kind, "_name", None) or str(kind)
    parts = [
        spell(part, space, []) if part is not ... else ["...", False, False, []] for part in args
    ]
    if isinstance(kind, type) and kind is space.get("Unset"):
        return ["Unset", False, True, []]
    return [str(name)[:MOST], False, False, parts]


def is_written(metadata: Any) -> bool:
    """Return whether a serializer writes the values."""
    return any(type(item).__name__.endswith("Serializer") for item in metadata)


def join(parts: list[list[Any]]) -> list[Any]:
    """Return a union: ``None`` and ``Unset`` among its parts are marks of the whole."""
    kept: list[list[Any]] = []
    for part in parts:
        for name, _, is_wrapped, args in part[3] if part[0] == "|" else [part]:
            plain = [name, False, is_wrapped, args]
            literal = next((part for part in kept if part[0] == name == "Literal"), None)
            if literal is not None:  # Literal["a"] | Literal["b"] is Literal["a", "b"].
                literal[3] += [value for value in args if value not in literal[3]]
            elif name not in ("None", "Unset") and plain not in kept:
                kept.append(plain)
    name, _, _, args = kept[0] if kept else ["None", False, False, []]
    if len(kept) > 1:
        name, args = "|", kept
    return [name, any(part[1] for part in parts), any(part[2] for part in parts), args]


def describe(module: Any, name: str, failed: list[str]) -> dict[str, Any]:
    """Return what a type is: its style, and what each member is called, holds and demands.

    Args:
        module: that declares it.
        name: of the type.
        failed: names of types that could not be loaded.
    """
    space = vars(module)
    kind = space.get(name)
    is_class = isinstance(kind, type)
    if is_class and StandIn in kind.__mro__:
        return {"blocked": True}
    if is_class and issubclass(kind, Enum):
        return values_of([[key, one.value] for key, one in kind.__members__.items()])
    # Each part, because ``Literal["a"] | Literal["b"]`` is an enum too.
    parts = args_of(kind) if origin_of(kind) in UNIONS else (kind,)
    if all(origin_of(part) in LITERALS for part in parts):
        return values_of([[repr(value), value] for part in parts for value in args_of(part)])
    # Before its fields are looked at, because their annotations are texts until it is built.
    unbuilt = why_unbuilt(kind, module, failed) if is_class and issubclass(kind, Model) else ""
    style, fields = fields_of(kind)
    members = [member(field, space) for field in fields]
    if not unbuilt:
        texts = [each.get("wire") for each in members if each.get("type", [""])[0] == "str"]
        return {"style": style, "members": members, "texts": texts}
    for facts, (_, annotation, info, _) in zip(members, fields, strict=True):
        try:
            Adapter(typing.Annotated[annotation, info])
        except pydantic.PydanticUndefinedAnnotation:
            pass
        except BaseException as error:
            facts["broken"] = fault_of(error, module.__file__)["fault"]
    return {"style": style, "members": members, "unbuilt": unbuilt}


def fields_of(kind: Any) -> tuple[str, list[tuple[Any, ...]]]:
    """Return the style of a type, and name, annotation, settings and need of each field."""
    if is_typed_dict(kind):
        needed = kind.__required_keys__
        return "TypedDict", [
            (key, hint, None, key in needed) for key, hint in kind.__annotations__.items()
        ]
    if isinstance(kind, type) and issubclass(kind, Model):
        infos = kind.model_fields.items()
        return "pydantic model", [
            (key, info.annotation, info, info.is_required()) for key, info in infos
        ]
    if isinstance(kind, type) and is_dataclass(kind):
        return "dataclass", list(map(of_dataclass, dataclasses.fields(kind)))
    return "plain class", []


def why_unbuilt(kind: Any, module: Any, failed: list[str]) -> str:
    """Return why pydantic cannot make a model; empty where it can, or others are at fault."""
    try:
        kind.model_rebuild(raise_errors=False, _types_namespace=vars(module))
    except BaseException as error:
        # Because a type that failed is told of by itself.
        words = str(fault_of(error, module.__file__)["fault"])
        return "" if any(repr(other)[1:-1] in words for other in failed) else words
    return ""


def values_of(values: list[list[Any]]) -> dict[str, Any]:
    """Return an enum with its values as JSON has them."""
    plain = [[key, each if type(each) in (str, int) else repr(each)] for key, each in values]
    return {"style": "enum", "values": plain}


def of_dataclass(field: Any) -> tuple[Any, ...]:
    """Return name, type, settings and whether it is required; metadata count as for pydantic."""
    info = field.default
    if not isinstance(info, Info):
        is_required = info is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        info = Info(**{key: value for key, value in field.metadata.items() if isinstance(key, str)})
        info.default = ... if is_required else field.default
        info.init = field.init
    return field.name, field.type, info, info.is_required() or info.default is ...


def member(field: tuple[Any, ...], space: dict[str, Any]) -> dict[str, Any]:
    """Return what one field is."""
    name, annotation, info, is_required = field
    extras = [] if info is None else [info, *info.metadata]
    told: dict[str, Any] = {"name": name, "required": is_required}
    try:
        # ``NotRequired`` decides for a key, wherever ``total`` stands, in ``Annotated`` too.
        annotation = resolve(annotation, space)
        is_annotated = hasattr(annotation, "__metadata__")
        marked = args_of(annotation)[0] if is_annotated else annotation
        outer = str(origin_of(marked)).rpartition(".")[2]
        told["required"] = {"NotRequired": False, "Required": True}.get(outer, is_required)
        kind = spell(annotation, space, extras)
    except NameError as error:
        return told | {"undefined": error.name or str(error)}
    except BaseException as error:
        return told | {"broken": f"{type(error).__name__}: {error}"[:MOST]}
    infos = [item for item in extras if isinstance(item, Info)]
    metadata = [item for info in infos for item in info.metadata] + extras
    kind[2] = kind[2] or is_written(metadata)
    limits = {
        key: value
        for item in metadata
        for key in LIMITS
        if (value := getattr(item, key, None)) is not None and type(value) in (int, float, str)
    }
    told |= {"type": kind, "limits": limits} | wire_of(name, infos)
    if info is not None and not told["required"]:
        told["default"] = repr(info.default)[:MOST]
        if info.default is pydantic_core.PydanticUndefined or info.default is dataclasses.MISSING:
            told["default"] = "a factory"
        elif isinstance(info.default, Enum) and type(info.default) is space.get("Unset"):
            told["default"] = "UNSET"
    return told


def wire_of(name: str, infos: list[Any]) -> dict[str, Any]:
    """Return what a field is called in JSON, or why it is not both read and written by one name."""
    keys = ("alias", "validation_alias", "serialization_alias")
    alias, reads, writes = (
        next((value for info in infos if (value := getattr(info, key)) is not None), None)
        for key in keys
    )
    default = name if alias is None else alias
    reads, writes = (default if alias is None else alias for alias in (reads, writes))
    names = reads.choices if isinstance(reads, Choices) else [reads]
    if any(info.exclude is True or info.init is False for info in infos):
        return {"wire": writes, "unread": "is left out: exclude=True or init=False"}
    if writes in names:
        return {"wire": writes}
    texts = [repr(alias) for alias in names if isinstance(alias, str)]
    place = texts[0] if texts else "a place of its own"
    return {"unread": f"is read from {place} and written as {writes!r}"}


# --- JSON -----------------------------------------------------------------------------------------


def copy(value: Any) -> Any:
    """Return a value made of its fields and items alone."""
    if isinstance(value, Model):
        copied: Any = new(type(value))
        # No property of that name can be in the way, and nothing else be carried along.
        items, fields = vars(value), type(value).model_fields
        put(copied, "__dict__", {key: copy(items[key]) for key in fields if key in items})
        put(copied, "__pydantic_fields_set__", set(value.__pydantic_fields_set__))
        # What the class has no field for is not kept: no field may be carried like that.
        put(copied, "__pydantic_extra__", {} if value.__pydantic_extra__ is not None else None)
        put(copied, "__pydantic_private__", None)
        return copied
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        copied = new(type(value))
        for field in dataclasses.fields(value):
            put(copied, field.name, copy(getattr(value, field.name)))
        return copied
    if type(value) in {list, tuple, set, frozenset}:
        return type(value)(map(copy, value))
    if type(value) is dict:
        return {key: copy(item) for key, item in value.items()}
    return value


def load(kind: Any, adapter: Any, text: str) -> Any:
    """Return what is loaded, as the users of a type load it.

    Raises:
        TypeError: it is of another type than the one that was asked for.
    """
    is_class = isinstance(kind, type) and not is_typed_dict(kind)
    if is_class and issubclass(kind, Model):
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
    values = {name: getattr(value, name, None) for name in names}
    values = {name: item for name, item in values.items() if item is not None and item is not unset}
    try:
        return encode(values, by_alias=True, fallback=lambda _: None).decode()
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
        if isinstance(value, Model | list | dict):  # Models inside keep more than their fields.
            whole = adapter.serializer.to_json(value, **OPTIONS).decode()
            whole = value.model_dump_json(**OPTIONS) if isinstance(value, Model) else whole
            if whole != copied and decode(whole) != decode(copied):
                texts.append(whole)
    except BaseException as error:
        why, where = reason(error)
        return [[], f"it cannot be dumped: {why}", where, ""]
    return [texts, refused, path, members(value, names, unset)]


def answer(module: Any, question: dict[str, Any]) -> Any:
    """Return what a question asks: faults and types of pieces, or replies to instances."""
    if "source" in question:
        told: dict[str, Any] = load_source(module, question["source"], question["blocks"])
        failed = [name for name in told if name]
        for *_, name in question["blocks"]:
            try:
                told[name] = told.get(name) or describe(module, name, failed)
                kind = vars(module)[name]
                if getattr(kind, "__name__", "") != name:  # another name for a type
                    told[name]["value"] = member((name, kind, None, True), vars(module))
            except BaseException as error:
                told[name] = fault_of(error, module.__file__)
        return told
    kind = getattr(module, question["type"])
    adapter: Any = Adapter(kind)
    unset = getattr(module, "UNSET", None)
    unset = unset if isinstance(unset, Enum) else None
    names = question["members"]
    return [reply(kind, adapter, text, names, unset) for text in question["instances"]]
