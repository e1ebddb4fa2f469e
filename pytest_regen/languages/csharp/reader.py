"""C# source to facts: what it declares, as System.Text.Json sees it, and where it is illegal."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_regen.languages import trees
from pytest_regen.languages.base import (
    Attribute,
    Declaration,
    Member,
    SourceFacts,
    SyntaxFault,
    TypeRef,
)
from pytest_regen.languages.csharp import tree
from pytest_regen.languages.csharp.attributes import converter_of, ignored_by, wire_name
from pytest_regen.languages.csharp.names import is_identifier, is_type_identifier
from pytest_regen.languages.csharp.tree import GRAMMAR, Constant, constant, parse, type_ref
from pytest_regen.languages.csharp.types import COLLECTIONS, is_value, plain, show_type
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, text_of
from pytest_regen.text import in_quotes

_KINDS: Final = word_set("class delegate enum interface record struct")
_HEADS: Final = frozenset({"using_directive", "file_scoped_namespace_declaration"})
_ACCESS: Final = ("public", "private", "protected", "internal", "file")
_BITS: Final[Mapping[str, int]] = {"sbyte": 7, "short": 15, "int": 31, "long": 63}
_UNSIGNED_BITS: Final[Mapping[str, int]] = {"byte": 8, "ushort": 16, "uint": 32, "ulong": 64}
_RANGES: Final = {name: range(-(2**bits), 2**bits) for name, bits in _BITS.items()} | {
    name: range(2**bits) for name, bits in _UNSIGNED_BITS.items()
}
"""What an enum may be based on, and the numbers it then holds."""
_ACCESSORS: Final = frozenset({"get", "set", "init"})
_COMPUTED: Final = "is computed, so nothing is read into it; write { get; init; }"
_EXPLICIT: Final = "explicit_interface_specifier"
"""Stands in a member that is seen through an interface only."""
_ALWAYS: Final = re.compile(r"#\s*if\s+(?:true|NET(?:\d_0(?:_OR_GREATER)?)?)")
"""What .NET 9 is sure to compile."""
_WRITE: Final = "write { get; init; }"


def first_fault(code: bytes) -> SyntaxFault:
    """Return where illegal code begins to be illegal."""
    fault = trees.first_fault(GRAMMAR, code, _is_loose)
    return fault or SyntaxFault(1, "not legal C#")


def _is_loose(node: Node) -> bool:
    """Return whether a node at the top level is a statement, which the grammar takes there."""
    return node.type == "global_statement"


def read(code: str) -> SourceFacts:
    """Return what ``code`` declares, or where it is illegal.

    Args:
        code: C# source; a byte order mark and any line ends are allowed.
    """
    data = code.removeprefix("\ufeff").encode("utf-8", "replace")
    if not data.endswith(b"\n"):
        data += b"\n"  # because the grammar wants directives ended
    root = parse(data).root_node
    if root.has_error or any(map(_is_loose, root.children)):
        return SourceFacts(faults=(first_fault(data),))
    reading = _Reading()
    if b"const " in data:
        reading.collect_constants(root)
    declarations = tuple(reading.space(reading.flat(root), None))
    if b"//" in data or b"/*" in data:
        reading.faults += trees.comment_faults(root, lambda text: text.startswith(("///", "/**")))
    faults = tuple(sorted(reading.faults, key=lambda fault: fault.line))
    heads = [node.start_point.row + 1 for node in root.named_children if node.type in _HEADS]
    aliases = frozenset(reading.aliases)
    return SourceFacts(declarations, faults, aliases=aliases, heads=tuple(heads))


@dataclass(frozen=True, slots=True)
class _Constructor:
    """A constructor as the serializer sees it."""

    parameters: Mapping[str, str]
    """Names in lower case, because they match those of properties whatever the case, and types."""
    is_public: bool = True
    is_marked: bool = False
    """Whether it has ``[JsonConstructor]``."""


@dataclass(slots=True)
class _Reading:
    """One walk over a tree, and what is noted on the way."""

    faults: list[SyntaxFault] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    """Names that ``using Name = Type;`` gives."""

    def collect_constants(self, root: Node) -> None:
        """Read ``const`` fields first, because attributes above them may use them."""
        for node in trees.walk(root):
            if node.type == "variable_declarator" and node.named_child_count > 1:
                name, *_, value = node.named_children
                self.constants[text_of(name)] = constant(value, self.constants)

    def flat(self, space: Node) -> Iterator[Node]:
        """Yield what stands in a file or a body, in branches of directives and namespaces too."""
        for node in space.named_children:
            head = text_of(node).split("\n", 1)[0].strip() if node.type == "preproc_if" else ""
            if head and not _ALWAYS.fullmatch(head):
                # What a project defines is not known, so such code may be there or not.
                message = f"{in_quotes(head)} may leave code out; take the directive away"
                self.faults.append(SyntaxFault(node.start_point.row + 1, message))
            if node.type.startswith(("preproc_if", "preproc_el", "namespace_", "declaration_list")):
                yield from self.flat(node)
            else:
                yield node

    def space(self, nodes: Iterable[Node], outer: Declaration | None) -> Iterator[Declaration]:
        """Yield the declarations among ``nodes``, each before those nested in it."""
        comment: Node | None = None
        for node in nodes:
            if node.type == "comment":
                comment = comment or node
                continue
            if node.type.removesuffix("_declaration") in _KINDS:
                yield from self.declaration(node, (comment or node).start_point.row + 1, outer)
            elif node.type == "using_directive" and (alias := node.child_by_field_name("name")):
                self.aliases.add(text_of(alias))
            comment = None

    def name(self, node: Node, *, is_type: bool = False) -> str:
        """Return the name without ``@``, noting one that the language does not allow."""
        name = node.child_by_field_name("name") or node
        text = text_of(name)
        if not (is_type_identifier if is_type else is_identifier)(text):
            message = f"{in_quotes(text)} is a keyword of C# and cannot be a name"
            line = name.start_point.row + 1
            self.faults.append(SyntaxFault(line, message, "INVALID_IDENTIFIER"))
        return text.removeprefix("@")

    def attributes(self, node: Node) -> tuple[Attribute, ...]:
        """Return the attributes of a declaration or a member."""
        return tuple(tree.read_attributes(node, self.constants))

    def declaration(
        self, node: Node, line: int, outer: Declaration | None
    ) -> Iterator[Declaration]:
        """Yield a declaration, then those nested in it."""
        kind, body = node.type.removesuffix("_declaration"), node.child_by_field_name("body")
        modifiers, attributes = _modifiers(node), self.attributes(node)
        parts = {part.type: part for part in node.named_children if part != body}
        is_partial = "partial" in modifiers
        # Another part of a partial type may be the one that says it is public.
        is_public = "public" in modifiers or (is_partial and not _access(modifiers))
        generics, bases = parts.get("type_parameter_list"), parts.get("base_list")
        declaration = Declaration(
            name=self.name(node, is_type=True),
            kind=kind,
            line=line,
            end_line=node.end_point.row + 1,
            attributes=attributes,
            outer=outer.name if outer else None,
            is_partial=is_partial,
            type_parameters=tuple(map(self.name, generics.named_children)) if generics else (),
            bases=tuple(map(_base, bases.named_children)) if bases else (),
            name_line=(node.child_by_field_name("name") or node).start_point.row + 1,
            is_public=is_public and (outer is None or outer.is_public),
        )
        inside = [*self.flat(body)] if body else []
        if kind == "enum":
            kept = [each for each in inside if each.type == "enum_member_declaration"]
            values = map(self.value, kept)
            yield _with_numbers(replace(declaration, members=tuple(values)))
            return
        parameters = parts.get("parameter_list")
        constructors = [*self.constructors(inside, parameters, attributes)]
        members = [*self.parameters(parameters)] if kind == "record" and parameters else []
        filled = frozenset(name for each in constructors for name in each.parameters)
        for each in inside:
            members += self.members(each, filled)
        declaration = replace(declaration, members=tuple(members))
        if why := _why_uncreatable(declaration, modifiers, constructors):
            message = f"System.Text.Json cannot create {declaration.name!r}: it {why}"
            fault = SyntaxFault(declaration.name_line, message, "MISSING_CLASS")
            declaration = replace(declaration, faults=(fault,))
        yield declaration
        yield from self.space(inside, declaration)

    def constructors(
        self, inside: Sequence[Node], primary: Node | None, attributes: Sequence[Attribute]
    ) -> Iterator[_Constructor]:
        """Yield the constructors of a type, the one in its head first."""
        if primary:
            yield _Constructor(_signature(primary), is_marked=_is_marked(attributes))
        for node in inside:
            modifiers = _modifiers(node)
            if node.type == "constructor_declaration" and "static" not in modifiers:
                listed = node.child_by_field_name("parameters")
                is_marked = _is_marked(self.attributes(node))
                yield _Constructor(_signature(listed or node), "public" in modifiers, is_marked)

    def parameters(self, listed: Node) -> Iterator[Member]:
        """Yield the properties that the parameters of a positional record declare."""
        is_late = False
        for node in listed.named_children:
            if node.type == "parameter":
                name, type_ = (node.child_by_field_name(key) for key in ("name", "type"))
                last = node.named_children[-1]
                is_required = last in (name, type_)
                member = self.member(node, "parameter", type_, ("public",))
                has_value = not is_required and _is_value(last, member)
                if is_late and is_required:
                    member = replace(member, unread="stands after one that has a default value")
                is_late = is_late or not is_required
                yield replace(member, is_required=is_required, has_initializer=has_value)

    def members(self, node: Node, filled: frozenset[str]) -> Iterator[Member]:
        """Yield what a node in a body declares; constructors set the members ``filled``."""
        modifiers = _modifiers(node)
        if node.type == "field_declaration":
            for part in node.named_children:
                type_ = part.child_by_field_name("type")
                for each in part.named_children if type_ else ():
                    if each.type == "variable_declarator":
                        member = self.member(node, "field", type_, modifiers)
                        last = each.named_children[-1]
                        has_value = each.named_child_count > 1 and _is_value(last, member)
                        yield replace(member, name=self.name(each), has_initializer=has_value)
        elif node.type == "property_declaration" and not _has(node, _EXPLICIT):
            type_, value = (node.child_by_field_name(key) for key in ("type", "value"))
            member = self.member(node, "property", type_, modifiers)
            is_computed = value is not None and value.type == "arrow_expression_clause"
            if member.name.lower() not in filled:
                has_value = value is not None and not is_computed and _is_value(value, member)
                member = replace(member, has_initializer=has_value)
                why = _COMPUTED if is_computed else _why_lost(node, member)
                member = replace(member, unread=member.unread or why)
            yield member

    def member(self, node: Node, kind: str, type_: Node | None, modifiers: Sequence[str]) -> Member:
        """Return a member as its modifiers and attributes make the serializer see it."""
        attributes = self.attributes(node)
        reference = type_ref(type_) if type_ else None
        hidden = _why_hidden(kind, modifiers, attributes)
        unread = hidden if reference else "has no type"
        ignore = "".join(each.text for each in attributes if each.name == "JsonIgnore")
        is_never_null = reference and is_value(reference) and not reference.nullable
        if unread is None and reference and is_never_null and "WhenWritingNull" in ignore:
            shown = show_type(reference)
            unread = f"has WhenWritingNull, which the serializer refuses on {shown!r}"
        return Member(
            name="" if kind == "field" else self.name(node),
            kind=kind,
            line=node.start_point.row + 1,
            end_line=node.end_point.row + 1,
            wire_name=wire_name(attributes, "JsonPropertyName"),
            type=reference,
            is_required="required" in modifiers,
            attributes=attributes,
            is_serialized=hidden is None,
            unread=unread,
            is_public="public" in modifiers,
        )

    def value(self, node: Node) -> Member:
        """Return a member of an enum with its number, where one is written."""
        attributes, value = self.attributes(node), node.child_by_field_name("value")
        number = constant(value, self.constants) if value else None
        number = number if isinstance(number, int) else None
        name, wire = self.name(node), wire_name(attributes, "JsonStringEnumMemberName")
        self.constants[name] = number  # because other members may be made of it
        return Member(
            name=name,
            kind="enum_member",
            line=node.start_point.row + 1,
            end_line=node.end_point.row + 1,
            wire_name=number if wire is None else wire,
            has_initializer=value is not None,
            attributes=attributes,
            number=number,
        )


def _modifiers(node: Node) -> tuple[str, ...]:
    return tuple(text_of(child) for child in node.children if child.type in {"modifier", "ref"})


def _access(modifiers: Sequence[str]) -> str:
    return " ".join(word for word in modifiers if word in _ACCESS)


def _signature(listed: Node) -> dict[str, str]:
    """Return the names of parameters in lower case, and their types."""
    found = {}
    for node in listed.named_children:
        name, type_ = (node.child_by_field_name(key) for key in ("name", "type"))
        if name and type_:
            found[text_of(name).removeprefix("@").lower()] = _exact(type_ref(type_))
    return found


def _exact(reference: TypeRef) -> str:
    """Return a type as the serializer compares it: of what is no value, ``?`` says nothing."""
    return plain(reference) + "?" * (reference.nullable and is_value(reference))


def _has(node: Node, kind: str) -> bool:
    return any(child.type == kind for child in node.named_children)


def _is_marked(attributes: Sequence[Attribute]) -> bool:
    return any(attribute.name == "JsonConstructor" for attribute in attributes)


def _is_value(node: Node, member: Member) -> bool:
    """Return whether an initial value is given, or promised by ``default!``."""
    is_nullable = member.type is not None and member.type.nullable
    text = text_of(node)
    return (text.rstrip("!") if is_nullable else text) not in {"null", "default"}


def _base(node: Node) -> TypeRef:
    is_called = node.type == "primary_constructor_base_type"
    return type_ref(node.named_children[0] if is_called else node)


def _with_numbers(enum: Declaration) -> Declaration:
    """Return an enum with the numbers of its members: one without a number counts on."""
    number: int | None = -1
    members: list[Member] = []
    for member in enum.members:
        if member.number is not None:
            number = member.number
        elif number is not None:
            number = None if member.has_initializer else number + 1
        members.append(replace(member, number=number))
    base = plain(enum.bases[0]) if enum.bases else "int"
    beyond = [each for each in members if (each.number or 0) not in _RANGES.get(base, range(0))]
    faults: tuple[SyntaxFault, ...] = ()
    if beyond:
        message = f"{beyond[0].name!r} is {beyond[0].number}, which an enum of {base} cannot hold"
        message += f"; declare 'enum {enum.name} : long'"
        faults = (SyntaxFault(enum.name_line, message, "ENUM_MEMBER"),)
    return replace(enum, members=tuple(members), bases=(), faults=faults)


def _why_hidden(kind: str, modifiers: Sequence[str], attributes: Sequence[Attribute]) -> str | None:
    """Return why the serializer does not see a member; ``None`` if it does."""
    names = [attribute.name for attribute in attributes if attribute.name.startswith("Json")]
    for word, count in Counter([*modifiers, *names]).items():
        if count > 1:
            return f"has {word!r} twice; write it once"
    is_included = "JsonInclude" in names
    for word in ("static", "const", "readonly"):
        if word in modifiers:
            return f"is {word}, which is not serialized; make it a property of the object"
    if kind == "field" and not is_included:
        return "is a field, which is not serialized; make it a property"
    if "public" not in modifiers and not is_included:
        access = _access(modifiers)
        why = f"is {access}, which is" if access else "has no access modifier, so it is private and"
        return f"{why} not serialized; make it public"
    if ignore := ignored_by(attributes):
        return f"has {ignore}, so it is not serialized; take the attribute away"
    return None


def _why_lost(node: Node, member: Member) -> str | None:
    """Return why the accessors of a property let a value not come in, or not out again."""
    attributes = {attribute.name for attribute in member.attributes}
    listed = node.child_by_field_name("accessors")
    accessors = [
        [*_modifiers(child), *(part.type for part in child.children if part.type in _ACCESSORS)]
        for child in (listed.named_children if listed else ())
        if child.type == "accessor_declaration"
    ]
    narrow = next((words for words in accessors if len(words) > 1), None)
    if narrow and "JsonInclude" not in attributes:
        lost = "written" if narrow[-1] == "get" else "read into it"
        return f"has '{' '.join(narrow)}', so nothing is {lost}; {_WRITE}"
    names = sorted(words[-1] for words in accessors if words)
    if names == ["get"]:
        # What stands in it already may be filled.
        is_filled = "JsonObjectCreationHandling" in attributes and member.has_initializer
        return None if is_filled else f"has no set or init, so nothing is read into it; {_WRITE}"
    is_pair = names in (["get", "init"], ["get", "set"])
    return None if is_pair else f"has accessors {text_of(listed or node)}; {_WRITE}"


def _why_uncreatable(
    declaration: Declaration, modifiers: Sequence[str], constructors: Sequence[_Constructor]
) -> str | None:
    """Return why the serializer cannot create a type; ``None`` where it can."""
    if converter := converter_of(declaration.attributes):
        return None if converter.reads == "unknown" else f"has {converter.text}, which reads enums"
    is_base = any(each.name == "JsonDerivedType" for each in declaration.attributes)
    for word in ("abstract", "static", "ref"):
        if word in modifiers and not (word == "abstract" and is_base):
            return f"is {word}; take the modifier away"
    if declaration.type_parameters:
        return "is generic, and no type is given for its parameters; take them away"
    for base in declaration.bases:
        if base.name in COLLECTIONS:
            what = f"is a collection, {show_type(base)}, whose properties are passed over"
            return f"{what}; take the base away"
    has_own = constructors and declaration.kind != "struct"
    return _why_not_called(declaration, constructors) if has_own else None


def _why_not_called(declaration: Declaration, constructors: Sequence[_Constructor]) -> str | None:
    """Return why the serializer can call none of the constructors."""
    chosen = [each for each in constructors if each.is_marked]
    if not chosen:
        chosen = [each for each in constructors if each.is_public]
        chosen = [each for each in chosen if not each.parameters] or chosen
    if len(chosen) != 1:
        what = "several constructors that may be called" if chosen else "no public constructor"
        return f"has {what}; take its constructors away"
    types = {each.name.lower(): _exact(each.type) for each in declaration.members if each.type}
    for name, type_ in chosen[0].parameters.items() if not declaration.bases else ():
        if types.get(name) != type_:
            which = "matches no property" + (" by its type" if name in types else "")
            return f"has a constructor whose parameter {name!r} {which}; take it away"
    return None
