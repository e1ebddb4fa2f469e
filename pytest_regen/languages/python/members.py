"""Declarations of a legal Python source: classes, calls of TypedDict, aliases of Literal."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pytest_regen.languages.base import Attribute, Declaration, Member, SyntaxFault, TypeRef
from pytest_regen.languages.python.acceptance import LITERAL
from pytest_regen.languages.python.names import HEADER_CLASSES
from pytest_regen.languages.python.tree import NOTHING, arguments, constant, dotted, last_name
from pytest_regen.languages.python.types import (
    Annotation,
    Settings,
    read_annotation,
    read_type,
    settings_of,
)
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.text import in_quotes, quoted

MODEL_FIELD: Final = "field"
DATACLASS_FIELD: Final = "dataclass field"
KEY: Final = "key"
"""Kinds of members: of a pydantic model, of a dataclass, of a TypedDict."""

_ENUMS: Final = frozenset({"Enum", "Flag", "IntEnum", "IntFlag", "ReprEnum", "StrEnum"})
_BAD_MEMBERS: Final = frozenset({"mro"})
_ALIAS_MAKERS: Final[Mapping[str, Callable[[str], str]]] = {
    "to_camel": lambda name: re.sub(r"_([a-z0-9])", lambda m: m[1].upper(), name.strip("_")),
    "to_pascal": lambda name: "".join(part[:1].upper() + part[1:] for part in name.split("_")),
}
_IGNORED: Final = frozenset({"comment", "pass_statement", "function_definition", "future_import"})
_FOREIGN_WORDS: Final = frozenset({"null", "true", "false", "undefined", "nil"})
_OPEN: Final = "\u2026"


@dataclass(slots=True)
class Reading:
    """What was found in a source."""

    declarations: list[Declaration] = field(default_factory=list)
    strays: list[Node] = field(default_factory=list)
    """Code outside of every declaration."""
    aliases: set[str] = field(default_factory=set)
    """Names that imports and assignments give."""
    faults: list[SyntaxFault] = field(default_factory=list)


def style_of(declaration: Declaration) -> str:
    """Return the kind of a declaration's members, or nothing where it is no kind that is known."""
    if any(attribute.name == "dataclass" for attribute in declaration.attributes):
        return DATACLASS_FIELD
    names = {base.name for base in declaration.bases}
    if "TypedDict" in names:
        return KEY
    return MODEL_FIELD if names else ""


def declarations(root: Node) -> Reading:
    """Return what the tree of a source declares."""
    found = Reading()
    for node in root.named_children:
        _read_top(node, found)
    return found


def _read_top(node: Node, found: Reading) -> None:
    """Read one statement of a module."""
    kind = node.type
    if kind == "class_definition":
        _read_class(node, found, (), None)
    elif kind == "decorated_definition":
        inner = node.child_by_field_name("definition")
        if inner is not None and inner.type == "class_definition":
            decorators = [child for child in node.children if child.type == "decorator"]
            _read_class(inner, found, decorators, None)
        else:
            found.strays.append(node)
    elif kind in {"import_statement", "import_from_statement"}:
        found.aliases |= set(_imported(node))
    elif kind == "expression_statement" and node.named_child_count:
        _read_expression(node, node.named_children[0], found)
    elif kind == "if_statement" and "TYPE_CHECKING" in text_of(node.named_children[0]):
        for inner in walk(node):
            if inner.type in {"import_statement", "import_from_statement"}:
                found.aliases |= set(_imported(inner))
    elif kind not in {"comment", "future_import_statement"}:
        found.strays.append(node)


def _imported(node: Node) -> Iterator[str]:
    for part in node.named_children[(node.type == "import_from_statement") :]:
        name = part.child_by_field_name("alias") if part.type == "aliased_import" else part
        yield dotted(name) or text_of(part)


def _read_expression(statement: Node, node: Node, found: Reading) -> None:
    """Read an assignment, a call such as ``Kite.model_rebuild()``, or a docstring."""
    if node.type in {"string", "concatenated_string"}:
        return
    if node.type == "call" and last_name(node) in {"model_rebuild", "update_forward_refs"}:
        return
    if node.type != "assignment":
        found.strays.append(statement)
        return
    name = dotted(node.child_by_field_name("left"))
    value = node.child_by_field_name("right")
    annotation = last_name(node.child_by_field_name("type"))
    if value is not None and value.type == "call" and last_name(value) == "TypedDict":
        _read_typed_dict(statement, name, value, found)
    elif value is not None and value.type == "subscript" and last_name(value) == LITERAL:
        _read_literal(statement, name, value, found)
    elif _is_alias(name, value, annotation):
        found.aliases.add(name)
    else:
        found.strays.append(statement)


def _is_alias(name: str, value: Node | None, annotation: str) -> bool:
    """Return whether an assignment of a module may stand among generated types."""
    if value is None or not name:
        return False
    if annotation:
        return annotation in {"Final", "TypeAlias"}
    is_type_like = value.type in {"attribute", "binary_operator", "call", "identifier", "subscript"}
    return name.startswith("__") or (is_type_like and (name[0].isupper() or name[0] == "_"))


# --- classes --------------------------------------------------------------------------------------


def _read_class(node: Node, found: Reading, decorators: Sequence[Node], outer: str | None) -> None:
    name_node = node.child_by_field_name("name")
    body = node.child_by_field_name("body")
    if name_node is None or body is None:
        return
    name = text_of(name_node)
    if name in HEADER_CLASSES:
        found.aliases.add(name)  # of the header, no type of the API
        return
    bases, options = _bases(node)
    attributes = (*(_decorator(each) for each in decorators), *options)
    declaration = Declaration(
        name=name,
        kind="enum" if {base.name for base in bases} & _ENUMS else "class",
        line=(decorators[0] if decorators else node).start_point.row + 1,
        end_line=node.end_point.row + 1,
        attributes=attributes,
        outer=outer,
        bases=bases,
        name_line=name_node.start_point.row + 1,
    )
    at = len(found.declarations)
    found.declarations.append(declaration)
    nested = Reading()
    if declaration.kind == "enum":
        members, faults = _enum_members(body, bases)
    else:
        members, faults = _fields(body, declaration, nested)
    found.declarations[at] = Declaration(
        name=name,
        kind=declaration.kind,
        line=declaration.line,
        end_line=declaration.end_line,
        members=tuple(members),
        attributes=attributes,
        outer=outer,
        bases=bases,
        name_line=declaration.name_line,
        faults=tuple(faults),
        is_value=declaration.kind == "enum",
    )
    found.declarations += nested.declarations


def _bases(node: Node) -> tuple[tuple[TypeRef, ...], tuple[Attribute, ...]]:
    """Return the base classes of a class, and its keyword arguments as attributes."""
    inner = node.child_by_field_name("superclasses")
    bases: list[TypeRef] = []
    options: list[Attribute] = []
    for part in inner.named_children if inner is not None else ():
        if part.type == "keyword_argument":
            name, _, value = text_of(part).partition("=")
            option = (name.strip(), value.strip())
            options.append(Attribute("class", line=part.start_point.row + 1, options=(option,)))
        elif part.type != "comment":
            bases.append(read_type(part))
    return tuple(bases), tuple(options)


def _decorator(node: Node) -> Attribute:
    inner = node.named_children[0]
    options = tuple((name, text_of(value)) for name, value in _call_arguments(inner))
    return Attribute(last_name(inner), line=node.start_point.row + 1, options=options)


def _call_arguments(node: Node) -> Iterator[tuple[str, Node]]:
    if node.type == "call":
        yield from arguments(node)


def _statements(body: Node) -> Iterator[tuple[Node, Node]]:
    """Yield each statement of a class that is an assignment or another expression, and that."""
    for node in body.named_children:
        if node.type == "expression_statement" and node.named_child_count:
            yield node, node.named_children[0]


# --- enums ----------------------------------------------------------------------------------------


def _enum_members(body: Node, bases: Sequence[TypeRef]) -> tuple[list[Member], list[SyntaxFault]]:
    names = {base.name for base in bases}
    is_text = bool(names & {"StrEnum", "str"})
    is_whole = bool(names & {"IntEnum", "IntFlag", "int"})
    members: list[Member] = []
    faults: list[SyntaxFault] = []
    number = 0
    for statement, node in _statements(body):
        line = statement.start_point.row + 1
        if node.type in {"string", "concatenated_string", "ellipsis"}:
            continue
        if node.type != "assignment":
            message = f"this is no member of an enum: {in_quotes(text_of(node)[:60])}"
            faults.append(SyntaxFault(line, message))
            continue
        name = text_of(node.child_by_field_name("left") or node)
        value_node = node.child_by_field_name("right")
        if name.startswith("_") or value_node is None:
            if value_node is None:
                faults.append(SyntaxFault(line, f"{name!r} has no value"))
            continue
        value = constant(value_node)
        if value_node.type == "call" and last_name(value_node) == "auto":
            value = name.lower() if is_text else number + 1
        own = list(_value_kind_faults(name, value, value_node, line, (is_text, is_whole)))
        is_number = isinstance(value, int) and not isinstance(value, bool)
        number = int(str(value)) if is_number else number
        members.append(
            Member(
                name,
                "member",
                line,
                statement.end_point.row + 1,
                value if isinstance(value, str) else number if is_number else None,
                number=number if is_number else None,
                has_initializer=True,
                faults=tuple(own),
            )
        )
    return members, faults


def _value_kind_faults(
    name: str, value: object, node: Node, line: int, takes: tuple[bool, bool]
) -> Iterator[SyntaxFault]:
    """Yield why an enum that takes text alone, or whole numbers alone, does not take a value."""
    is_text, is_whole = takes
    if node.type in {"tuple", "expression_list"}:
        yield SyntaxFault(line, f"the value of {name!r} is a tuple: a ',' is one too many")
    if is_text and not isinstance(value, str) and value is not NOTHING:
        yield SyntaxFault(line, f"{name!r} is {value!r}, and a StrEnum takes text alone")
    if is_whole and isinstance(value, str):
        yield SyntaxFault(line, f"{name!r} is text, and an IntEnum takes integers alone")
    if name in _BAD_MEMBERS:
        yield SyntaxFault(line, f"an enum must have no member called {name!r}")


# --- objects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Owner:
    """What a class says about all of its fields."""

    style: str
    make_alias: Callable[[str], str] | None = None
    is_total: bool = True
    is_keyword_only: bool = True


def _fields(
    body: Node, declaration: Declaration, nested: Reading
) -> tuple[list[Member], list[SyntaxFault]]:
    owner = _owner(body, declaration)
    members: list[Member] = []
    faults: list[SyntaxFault] = []
    _read_nested(body, declaration, nested)
    for statement, node in _statements(body):
        line = statement.start_point.row + 1
        if node.type in {"string", "concatenated_string", "ellipsis"}:
            continue
        name = text_of(node.child_by_field_name("left") or node)
        if node.type != "assignment":
            message = f"this is no field: {in_quotes(text_of(node)[:60])}"
            faults.append(SyntaxFault(line, message))
        elif node.child_by_field_name("type") is None:
            if name not in {"model_config", "__slots__", "__match_args__"}:
                faults.append(SyntaxFault(line, f"{name!r} has no type: write {name}: <type>"))
        else:
            member = _member(statement, node, owner)
            if member is not None:
                members.append(member)
    if owner.style == DATACLASS_FIELD and not owner.is_keyword_only:
        faults += _out_of_order(members)
    return members, faults


def _read_nested(body: Node, declaration: Declaration, nested: Reading) -> None:
    """Read the classes inside of a class, but for pydantic's old ``Config``."""
    for node in body.named_children:
        if node.type in {"class_definition", "decorated_definition"}:
            inner = node.child_by_field_name("definition") or node
            if inner.type == "class_definition" and _name(inner) != "Config":
                decorators = [child for child in node.children if child.type == "decorator"]
                _read_class(inner, nested, decorators, declaration.name)


def _name(node: Node) -> str:
    name = node.child_by_field_name("name")
    return text_of(name) if name is not None else ""


def _owner(body: Node, declaration: Declaration) -> _Owner:
    style = style_of(declaration) or MODEL_FIELD
    options = {key: value for each in declaration.attributes for key, value in each.options}
    make_alias = None
    for _, node in _statements(body):
        is_config = node.type == "assignment" and dotted(node.child_by_field_name("left"))
        value = node.child_by_field_name("right") if node.type == "assignment" else None
        if is_config == "model_config" and value is not None and value.type == "call":
            for name, argument in arguments(value):
                if name == "alias_generator":
                    make_alias = _ALIAS_MAKERS.get(last_name(argument))
    if "alias_generator" in options:
        make_alias = _ALIAS_MAKERS.get(options["alias_generator"].rpartition(".")[2])
    return _Owner(
        style,
        make_alias,
        is_total=options.get("total") != "False",
        is_keyword_only=options.get("kw_only") == "True" or style != DATACLASS_FIELD,
    )


def _member(statement: Node, node: Node, owner: _Owner) -> Member | None:
    """Return the field that an annotated assignment declares; ``None`` where it declares none."""
    name = text_of(node.child_by_field_name("left") or node)
    type_node = node.child_by_field_name("type")
    value = node.child_by_field_name("right")
    if type_node is None:
        return None
    annotation = read_annotation(type_node)
    line = statement.start_point.row + 1
    if "ClassVar" in annotation.qualifiers or annotation.type.name == "KW_ONLY":
        return None
    called = settings_of(value)
    settings = annotation.settings if called is None else annotation.settings.joined(called)
    faults = [*_operator_faults(node), *_value_faults(name, value, line)]
    wire, hint = _wire_name(name, settings, owner)
    is_private = name.startswith("_") and owner.style == MODEL_FIELD
    if is_private:
        message = f"{name!r} begins with an underscore: pydantic takes no such name for a field"
        faults.append(SyntaxFault(line, message, "INVALID_IDENTIFIER"))
    default = _default(value, called, annotation)
    is_required = default is None
    if owner.style == KEY:
        is_required = _is_required_key(annotation, owner)
    is_left_out = settings.values.get("exclude") is True or settings.values.get("init") is False
    return Member(
        name,
        owner.style,
        line,
        statement.end_point.row + 1,
        wire,
        type=annotation.type,
        is_required=is_required,
        has_initializer=default is not None and default != "None",
        attributes=tuple(_attributes(settings, default, line, called=called is not None)),
        is_serialized=not is_private,
        unread="is left out: exclude=True or init=False" if is_left_out else None,
        hint=hint,
        faults=tuple(faults),
    )


def _is_required_key(annotation: Annotation, owner: _Owner) -> bool:
    if "NotRequired" in annotation.qualifiers:
        return False
    return "Required" in annotation.qualifiers or owner.is_total


def _default(value: Node | None, called: Settings | None, annotation: Annotation) -> str | None:
    """Return the text of a field's default; ``None`` where it has none."""
    if called is not None:
        return called.default if called.default is not None else annotation.settings.default
    if value is None or value.type == "ellipsis":
        return annotation.settings.default
    return text_of(value)


def _attributes(
    settings: Settings, default: str | None, line: int, *, called: bool
) -> Iterator[Attribute]:
    """Yield what is said about a field: its default, and each argument of ``Field``."""
    if default is not None:
        yield Attribute("default", (default,), line)
    for name, value in settings.values.items():
        said = value if isinstance(value, str | int | bool) or value is None else repr(value)
        yield Attribute(name, (said,), line)
    del called


def _wire_name(name: str, settings: Settings, owner: _Owner) -> tuple[str | None, str | None]:
    """Return the JSON name that a field is given, and what was written in vain to give it one."""
    alias = settings.values.get("alias")
    reads = settings.values.get("validation_alias", alias)
    writes = settings.values.get("serialization_alias", alias)
    if isinstance(reads, str) and reads == writes:
        return reads, None
    if isinstance(reads, str) and isinstance(writes, str):
        return None, f"it is read from {quoted(reads)} and written as {quoted(writes)}"
    for option in ("validation_alias", "serialization_alias"):
        if isinstance(settings.values.get(option), str):
            done = "read" if option == "validation_alias" else "written"
            return None, f"by {option} alone it is only {done} under that name"
    others = settings.others & {"alias", "serialization_alias", "validation_alias"}
    if others:
        return None, f"its {min(others)} is no string literal"
    if owner.make_alias is not None:
        return owner.make_alias(name), None
    return None, None


def _value_faults(name: str, value: Node | None, line: int) -> Iterator[SyntaxFault]:
    """Yield why the value that a field is given cannot be meant."""
    if value is None:
        return
    if value.type in {"expression_list", "tuple"}:
        yield SyntaxFault(line, f"the value of {name!r} is a tuple: a ',' is one too many")
    for node in walk(value):
        if node.type == "identifier" and text_of(node) in _FOREIGN_WORDS:
            owner = node.parent if node.parent is not None else node
            if owner.type == "keyword_argument" and owner.child_by_field_name("name") == node:
                continue
            message = f"{text_of(node)!r} is no word of Python; write None, True or False"
            yield SyntaxFault(node.start_point.row + 1, message)


def _operator_faults(node: Node) -> Iterator[SyntaxFault]:
    """Yield ``//``, which divides and begins no comment."""
    for inner in walk(node):
        if inner.type == "//":
            message = "a comment begins with '#' in Python, not with '//'"
            yield SyntaxFault(inner.start_point.row + 1, message)


def _out_of_order(members: Sequence[Member]) -> Iterator[SyntaxFault]:
    """Yield a field without a default after one that has one, which a dataclass refuses."""
    has_default = False
    for member in members:
        if member.is_required and has_default:
            message = (
                f"{member.name!r} has no default and stands after a field that has one; write "
                "@dataclasses.dataclass(slots=True, kw_only=True)"
            )
            yield SyntaxFault(member.line, message)
            return
        has_default = has_default or not member.is_required


# --- calls and aliases ----------------------------------------------------------------------------


def _read_typed_dict(statement: Node, name: str, call: Node, found: Reading) -> None:
    entries: list[Node] = []
    options: list[tuple[str, str]] = []
    given = ""
    for key, value in arguments(call):
        if value.type == "dictionary":
            entries += [pair for pair in value.named_children if pair.type == "pair"]
        elif key:
            options.append((key, text_of(value)))
        elif isinstance(said := constant(value), str):
            given = said
    owner = _Owner(KEY, is_total=("total", "False") not in options)
    members = [member for pair in entries for member in _entry(pair, owner)]
    faults = []
    if given != name:
        message = f"the name in the call is {in_quotes(given)}; it must be {name!r}"
        faults.append(SyntaxFault(statement.start_point.row + 1, message))
    line = statement.start_point.row + 1
    base = TypeRef("TypedDict", line=line)
    end = statement.end_point.row + 1
    found.declarations.append(
        Declaration(
            name,
            "class",
            line,
            end,
            tuple(members),
            bases=(base,),
            name_line=line,
            faults=tuple(faults),
        )
    )


def _entry(pair: Node, owner: _Owner) -> Iterator[Member]:
    key = constant(pair.child_by_field_name("key"))
    value = pair.child_by_field_name("value")
    if not isinstance(key, str) or value is None:
        return
    annotation = read_annotation(value)
    line = pair.start_point.row + 1
    faults = []
    if value.type == "concatenated_string":
        faults.append(SyntaxFault(line, "a ',' is missing between two strings"))
    elif annotation.type.name[:1] in {'"', "'"}:
        message = f"{in_quotes(annotation.type.name[:60])} is no type: a bracket is missing"
        faults.append(SyntaxFault(line, message))
    yield Member(
        key,
        KEY,
        line,
        pair.end_point.row + 1,
        key,
        type=annotation.type,
        is_required=_is_required_key(annotation, owner),
        attributes=tuple(_attributes(annotation.settings, None, line, called=False)),
        faults=tuple(faults),
    )


def _read_literal(statement: Node, name: str, node: Node, found: Reading) -> None:
    """Read ``Name = Literal[...]``: an enum without a class."""
    members: list[Member] = []
    for part in node.named_children[1:]:
        inner = part.named_children if part.type == "tuple" else [part]
        members += [member for each in inner for member in _literal_member(each)]
    line = statement.start_point.row + 1
    found.declarations.append(
        Declaration(
            name,
            "enum",
            line,
            statement.end_point.row + 1,
            tuple(members),
            attributes=(Attribute(LITERAL, line=line),),
            name_line=line,
            is_value=True,
        )
    )


def _literal_member(node: Node) -> Iterator[Member]:
    value = constant(node)
    if node.type == "comment" or not isinstance(value, str | int) or isinstance(value, bool):
        return
    line = node.start_point.row + 1
    faults: list[SyntaxFault] = []
    if node.type == "concatenated_string":
        last = text_of(node.named_children[0])
        faults.append(SyntaxFault(line, f"a ',' is missing after {in_quotes(last)}"))
    yield Member(
        text_of(node)[:100],
        "value",
        line,
        node.end_point.row + 1,
        value,
        number=value if isinstance(value, int) else None,
        faults=tuple(faults),
    )
