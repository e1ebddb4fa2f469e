"""What runs in the child: loads the types of a source, says what they are, loads and dumps JSON.

Never imported: its text is sent there. A dump is made of a copy that holds the parsed fields alone:
what a class keeps beside them, the text that it was read from for one, is not there to be handed
back.
"""
# ruff: noqa: BLE001 - code that may raise anything is run here: it is what this is for

import __future__

import contextlib
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
LOAD = "model_validate_json"
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
own_load = vars(Model)[LOAD].__func__
QUALIFIERS = {
    getattr(source, name)
    for name in ("ClassVar", "Final", "NotRequired", "ReadOnly", "Required")
    for source in (typing, typing_extensions)
    if hasattr(source, name)
}
UNIONS = (typing.Union, types.UnionType)
LITERALS = (typing.Literal, typing_extensions.Literal)
ALIASES = tuple(
    {
        source.TypeAliasType
        for source in (typing, typing_extensions)
        if hasattr(source, "TypeAliasType")
    }
)


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
    pieces, at = [], 0
    for first, last, name in blocks:
        pieces += [("", at, first - 1), (name, first - 1, last)]
        at = last
    pieces.append(("", at, len(lines)))
    try:
        flags = compile(source, path, "exec", dont_inherit=True).co_flags & ANNOTATIONS
    except SyntaxError as error:
        line, flags = error.lineno or 1, ANNOTATIONS
        name = next((name for name, start, end in pieces if start < line <= end), "")
        faults[name] = fault_of(error, path)
    for name, start, end in pieces:
        if name in faults and name:
            space[name] = types.new_class(name, (StandIn,))
        if name in faults:
            continue
        text = "\n" * start + "\n".join(lines[start:end])
        try:
            exec(compile(text, path, "exec", flags, dont_inherit=True), space)  # noqa: S102
        except BaseException as error:
            faults[name] = fault_of(error, path)
        if name and (name in faults or name not in space):
            space[name] = types.new_class(name, (StandIn,))
    return faults


def built(name: str, told: dict[str, Any], module: Any, failed: list[str]) -> None:
    """Note why pydantic cannot make a model: on the field at fault, else on the model.

    Args:
        name: of a type.
        told: what is known of it.
        module: that declares it.
        failed: names of types that could not be loaded.
    """
    space = vars(module)
    kind = space.get(name)
    if "members" not in told or not isinstance(kind, type) or not issubclass(kind, Model):
        return
    try:
        kind.model_rebuild(raise_errors=False, _types_namespace=space)
    except BaseException as error:
        said = fault_of(error, module.__file__)["fault"]
        if any(repr(other)[1:-1] in said for other in failed):
            return  # What it misses is not its own.
        told["unbuilt"] = said
    fields = fields_of(kind) if "unbuilt" in told else {}
    for one in told["members"] if fields else ():
        info = fields[one["name"]]
        try:
            Adapter(typing.Annotated[info.annotation, info])
        except pydantic.PydanticUndefinedAnnotation:
            pass
        except BaseException as error:
            one["broken"] = fault_of(error, module.__file__)["fault"]


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
    if origin in LITERALS:
        values = [value.value if isinstance(value, Enum) else value for value in args]
        parts = [[repr(value), False, False, []] for value in values if value is not None]
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
    return any(type(one).__name__.endswith("Serializer") for one in metadata)


def join(parts: list[list[Any]]) -> list[Any]:
    """Return a union: ``None`` and ``Unset`` among its parts are marks of the whole."""
    flat: list[list[Any]] = []
    for part in parts:
        flat += part[3] if part[0] == "|" else [part]
    nullable = any(part[1] for part in parts)
    wrapped = any(part[2] for part in parts)
    kept: list[list[Any]] = []
    for name, _, is_wrapped, args in flat:
        plain = [name, False, is_wrapped and name != "Unset", args]
        if name not in ("None", "Unset") and plain not in kept:
            kept.append(plain)
    if not kept:
        return ["None", nullable, wrapped, []]
    if len(kept) == 1:
        return [kept[0][0], nullable, wrapped, kept[0][3]]
    return ["|", nullable, wrapped, kept]


def describe(module: Any, name: str) -> dict[str, Any]:
    """Return what a type is: its style, and what each member is called, holds and demands."""
    space = vars(module)
    kind = space.get(name)
    if isinstance(kind, type) and StandIn in kind.__mro__:
        return {"blocked": True}
    if isinstance(kind, type) and issubclass(kind, Enum):
        values = [[key, one.value] for key, one in kind.__members__.items()]
        return {"style": "enum", "values": plain(values)}
    if origin_of(kind) in LITERALS:
        return {"style": "enum", "values": plain([[repr(one), one] for one in args_of(kind)])}
    if is_typed_dict(kind):
        required = kind.__required_keys__
        members = [
            member(key, annotation, ..., [], space, required=key in required)
            for key, annotation in kind.__annotations__.items()
        ]
        return {"style": "key", "members": members}
    if isinstance(kind, type) and issubclass(kind, Model):
        with contextlib.suppress(Exception):
            kind.model_rebuild(raise_errors=False, _types_namespace=space)
        members = [
            member(key, info.annotation, info, info.metadata, space, required=info.is_required())
            for key, info in fields_of(kind).items()
        ]
        return {"style": "field", "members": members}
    if isinstance(kind, type) and is_dataclass(kind):
        return {
            "style": "dataclass field",
            "members": [of_dataclass(one, space) for one in dataclasses.fields(kind)],
        }
    return {"style": "", "members": []}


def plain(values: list[list[Any]]) -> list[list[Any]]:
    """Return values of an enum as JSON has them."""
    return [[key, one if type(one) in (str, int) else repr(one)] for key, one in values]


def of_dataclass(field: Any, space: dict[str, Any]) -> dict[str, Any]:
    """Return what a field is; pydantic takes the metadata of a dataclass as those of ``Field``."""
    info = field.default
    if not isinstance(info, Info):
        is_required = info is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        info = Info(**{key: value for key, value in field.metadata.items() if isinstance(key, str)})
        info.default = ... if is_required else field.default
        info.init = field.init
    required = info.is_required() or info.default is ...
    return member(field.name, field.type, info, [info, *info.metadata], space, required=required)


def member(
    name: str,
    annotation: Any,
    info: Any,
    extras: list[Any],
    space: dict[str, Any],
    *,
    required: bool,
) -> dict[str, Any]:
    """Return what one field is."""
    extras = list(extras)
    try:
        # ``NotRequired`` decides for a key, wherever ``total`` stands.
        annotation = resolve(annotation, space)
        outer = str(origin_of(annotation)).rpartition(".")[2]
        required = {"NotRequired": False, "Required": True}.get(outer, required)
        kind = spell(annotation, space, extras)
    except NameError as error:
        return {"name": name, "undefined": error.name or str(error), "required": required}
    except BaseException as error:
        words = f"{type(error).__name__}: {error}"[:MOST]
        return {"name": name, "broken": words, "required": required}
    infos = [one for one in [info, *extras] if isinstance(one, Info)]
    metadata = [each for one in infos for each in one.metadata] + extras
    kind[2] = kind[2] or is_written(metadata)
    told = {"name": name, "type": kind, "required": required} | wire_of(name, infos)
    told["limits"] = {
        key: value
        for one in metadata
        for key in LIMITS
        if (value := getattr(one, key, None)) is not None and type(value) in (int, float, str)
    }
    if infos and not required:
        told["default"] = default_of(infos, space)
    return told


def default_of(infos: list[Any], space: dict[str, Any]) -> str:
    """Return the default of a field as text."""
    for info in infos:
        if info.default is pydantic_core.PydanticUndefined or info.default is dataclasses.MISSING:
            continue
        if isinstance(info.default, Enum) and type(info.default) is space.get("Unset"):
            return "UNSET"
        return repr(info.default)[:MOST]
    return "a factory"


def wire_of(name: str, infos: list[Any]) -> dict[str, Any]:
    """Return what a field is called in JSON, or why it is not both read and written by one name."""
    said: dict[str, Any] = {}
    reads: Any = None
    writes: Any = None
    for info in infos:
        reads = reads if info.validation_alias is None else info.validation_alias
        reads = info.alias if reads is None else reads
        writes = writes if info.serialization_alias is None else info.serialization_alias
        writes = info.alias if writes is None else writes
        if info.exclude is True or info.init is False:
            said["unread"] = "is left out: exclude=True or init=False"
    names = reads.choices if isinstance(reads, Choices) else [name if reads is None else reads]
    written = name if writes is None else writes
    if written in names:
        said["wire"] = written
    else:
        texts = [one for one in names if isinstance(one, str)]
        shown = repr(texts[0]) if texts else "a place of its own"
        said["unread"] = f"is read from {shown} and written as {written!r}"
    return said


# --- JSON -----------------------------------------------------------------------------------------


def copy(value: Any) -> Any:
    """Return a value made of its fields and items alone."""
    if isinstance(value, Model):
        held: Any = new(type(value))
        # No property of that name can be in the way, and nothing else be carried along.
        given = vars(value)
        put(
            held,
            "__dict__",
            {key: copy(given[key]) for key in fields_of(type(value)) if key in given},
        )
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


def fields_of(kind: Any) -> Any:
    """Return the fields of a model by name; where they are kept depends on the version."""
    found = vars(kind).get("__pydantic_fields__")
    return kind.model_fields if found is None else found


def load(kind: Any, adapter: Any, text: str) -> Any:
    """Return what is loaded, as the users of a type load it.

    Raises:
        TypeError: it is of another type than the one that was asked for.
    """
    is_class = isinstance(kind, type) and not is_typed_dict(kind)
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


def answer(module: Any, question: dict[str, Any]) -> Any:
    """Return what a question asks: faults and types of pieces, or replies to instances."""
    if "source" in question:
        blocks = question["blocks"]
        told: dict[str, Any] = load_source(module, question["source"], blocks)
        failed = [name for name in told if name]
        for *_, name in blocks:
            if name not in told:
                try:
                    told[name] = describe(module, name)
                    built(name, told[name], module, failed)
                    told[name]["texts"] = [
                        one.get("wire")
                        for one in told[name].get("members", ())
                        if "type" in one and one["type"][0] == "str"
                    ]
                except BaseException as error:
                    told[name] = fault_of(error, module.__file__)
        return told
    kind = getattr(module, question["type"])
    adapter: Any = Adapter(kind)
    unset = getattr(module, "UNSET", None)
    unset = unset if isinstance(unset, Enum) else None
    names = question["members"]
    return [reply(kind, adapter, text, names, unset) for text in question["instances"]]
