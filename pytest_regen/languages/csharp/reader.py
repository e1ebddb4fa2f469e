"""C# source to facts: what it declares, as System.Text.Json sees it, and where it is illegal."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pytest_regen.languages import trees
from pytest_regen.languages.base import Attribute, Declaration, Member, SourceFacts, SyntaxFault
from pytest_regen.languages.csharp import names, rules, tree, types
from pytest_regen.languages.csharp.tree import Constant, constant, type_ref
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, text_of
from pytest_regen.text import in_quotes

_KINDS: Final = word_set("class delegate enum interface record struct")
_HEADS: Final = frozenset({"using_directive", "file_scoped_namespace_declaration"})
_ACCESS: Final = frozenset({"private", "protected", "internal", "file"})
_ALWAYS_PUBLIC: Final = frozenset({"enum_member", "parameter"})
_OF_TYPE: Final = frozenset({"static", "const", "readonly"})
_IGNORING: Final = frozenset({"JsonIgnore", "JsonExtensionData"})
_SIGNED: Final = {"sbyte": 7, "short": 15, "int": 31, "long": 63}
_BITS: Final[Mapping[str, int]] = _SIGNED | {"byte": 8, "ushort": 16, "uint": 32}
"""What an enum may be based on, and how many bits of a number it then holds."""


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
    root = tree.parse(data).root_node
    if root.has_error or any(map(_is_loose, root.children)):
        fault = trees.first_fault(tree.GRAMMAR, data, _is_loose)
        return SourceFacts(faults=(fault or SyntaxFault(1, "not legal C#"),))
    reading = _Reading()
    # First, because attributes above constants may use them.
    for node in trees.walk(root) if b"const " in data else ():
        if node.type == "variable_declarator" and node.named_child_count > 1:
            name, *_, value = node.named_children
            reading.constants[text_of(name)] = constant(value, reading.constants)
    declarations = tuple(reading.space(reading.flat(root), None))
    if b"//" in data or b"/*" in data:
        reading.faults += trees.comment_faults(root, lambda text: text.startswith(("///", "/**")))
    faults = tuple(sorted(reading.faults, key=lambda fault: fault.line))
    heads = [node.start_point.row + 1 for node in root.named_children if node.type in _HEADS]
    aliases = frozenset(reading.aliases)
    return SourceFacts(declarations, faults, aliases=aliases, heads=tuple(heads))


class _Constructor(NamedTuple):
    """A constructor as the serializer sees it."""

    parameters: Mapping[str, str]
    """Names in lower case, because they match those of properties whatever the case, and types."""
    attributes: Sequence[Attribute]
    is_public: bool


@dataclass(slots=True)
class _Reading:
    """One walk over a tree, and what is noted on the way."""

    faults: list[SyntaxFault] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    """Names that ``using Name = Type;`` gives."""

    def flat(self, space: Node) -> Iterator[Node]:
        """Yield what stands in a file or a body, in branches of directives and namespaces too."""
        for node in space.named_children:
            if node.type == "preproc_if":
                # What a project defines is not known, so such code may be there or not.
                head = text_of(node).split("\n", 1)[0].strip()
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
        if not (names.is_type_identifier if is_type else names.is_identifier)(text):
            message = f"{in_quotes(text)} is a keyword of C# and cannot be a name"
            line = name.start_point.row + 1
            self.faults.append(SyntaxFault(line, message, "INVALID_IDENTIFIER"))
        return text.removeprefix("@")

    def declaration(
        self, node: Node, line: int, outer: Declaration | None
    ) -> Iterator[Declaration]:
        """Yield a declaration, then those nested in it."""
        body, modifiers = node.child_by_field_name("body"), _modifiers(node)
        parts = {part.type: part for part in node.named_children if part != body}
        generics, listed = parts.get("type_parameter_list"), parts.get("base_list")
        bases = listed.named_children if listed else ()
        # Another part of a partial type may be the one that says it is public.
        is_partial = "partial" in modifiers
        is_public = "public" in modifiers or (is_partial and _ACCESS.isdisjoint(modifiers))
        declaration = Declaration(
            name=self.name(node, is_type=True),
            kind=node.type.removesuffix("_declaration"),
            line=line,
            end_line=node.end_point.row + 1,
            attributes=tree.read_attributes(node, self.constants),
            outer=outer.name if outer else None,
            is_partial=is_partial,
            type_parameters=tuple(map(self.name, generics.named_children)) if generics else (),
            # That of a primary constructor is called: its type comes first.
            bases=tuple(
                type_ref(base.named_children[0] if base.type.startswith("primary_") else base)
                for base in bases
            ),
            name_line=(node.child_by_field_name("name") or node).start_point.row + 1,
            is_public=is_public and (outer is None or outer.is_public),
        )
        inside = [*self.flat(body)] if body else []
        if declaration.kind == "enum":
            yield self.enum(declaration, inside)
            return
        primary = parts.get("parameter_list")
        constructors = [
            _Constructor(
                _signature(entry.child_by_field_name("parameters")),
                tree.read_attributes(entry, self.constants),
                is_public="public" in _modifiers(entry),
            )
            for entry in inside
            if entry.type == "constructor_declaration" and "static" not in _modifiers(entry)
        ]
        # That of the head is one of them, because the serializer sees no difference.
        if primary:
            attributes = declaration.attributes
            constructors.append(_Constructor(_signature(primary), attributes, is_public=True))
        members: list[Member] = []
        if declaration.kind == "record" and primary:
            members += self.parameters(primary)
        filled = frozenset(name for entry in constructors for name in entry.parameters)
        # What an interface asks for is no second property beside the one that gives it.
        for entry in inside if declaration.kind != "interface" else ():
            members += self.members(entry, filled)
        declaration = replace(declaration, members=tuple(members))
        if why := _why_uncreatable(declaration, modifiers, constructors):
            message = f"System.Text.Json cannot create {declaration.name!r}: it {why}"
            fault = SyntaxFault(declaration.name_line, message, "MISSING_CLASS")
            declaration = replace(declaration, faults=(fault,))
        yield declaration
        yield from self.space(inside, declaration)

    def parameters(self, listed: Node) -> Iterator[Member]:
        """Yield the properties that the parameters of a positional record declare."""
        for node in listed.named_children:
            if node.type == "parameter":
                last = node.named_children[-1]
                parts = node.child_by_field_name("name"), node.child_by_field_name("type")
                is_required = last in parts
                member = self.member(node, node, "parameter", None if is_required else last)
                yield replace(member, is_required=is_required)

    def members(self, node: Node, filled: frozenset[str]) -> Iterator[Member]:
        """Yield what a node in a body declares; constructors set the members ``filled``."""
        if node.type == "field_declaration":
            for part in node.named_children:
                for entry in part.named_children if part.type == "variable_declaration" else ():
                    if entry.type == "variable_declarator":
                        value = entry.named_children[-1] if entry.named_child_count > 1 else None
                        yield self.member(node, entry, "field", value, part)
        elif node.type == "property_declaration":
            value = node.child_by_field_name("value")
            is_computed = value is not None and value.type == "arrow_expression_clause"
            member = self.member(node, node, "property", None if is_computed else value)
            if member.name.lower() in filled:
                yield replace(member, has_initializer=False)
            else:
                yield replace(member, unread=member.unread or _why_lost(node, member))

    def member(
        self, node: Node, entry: Node, kind: str, value: Node | None, part: Node | None = None
    ) -> Member:
        """Return a member as its modifiers and attributes make the serializer see it.

        Args:
            node: what the modifiers and attributes stand in.
            entry: what the name stands in: of a field, one of several.
            kind: as facts call it.
            value: the initial value, if there is one.
            part: what the type stands in, if that is not ``node``.
        """
        attributes, modifiers = tree.read_attributes(node, self.constants), _modifiers(node)
        type_ = (part or node).child_by_field_name("type")
        reference = type_ref(type_) if type_ else None
        hidden = _why_hidden(kind, modifiers, attributes)
        # ``default!`` promises a value, but not where null is one.
        is_nullable = reference is not None and reference.nullable
        initial = text_of(value).rstrip("!" if is_nullable else "") if value else "null"
        carrier = "JsonStringEnumMemberName" if kind == "enum_member" else "JsonPropertyName"
        values = [a.arguments[0] for a in attributes if a.name == carrier and a.arguments]
        return Member(
            name=self.name(entry),
            kind=kind,
            line=node.start_point.row + 1,
            end_line=node.end_point.row + 1,
            wire_name=values[0] if values else None,
            type=reference,
            is_required="required" in modifiers,
            has_initializer=initial not in {"null", "default"},
            attributes=attributes,
            is_serialized=hidden is None,
            unread=hidden,
            is_public=kind in _ALWAYS_PUBLIC or "public" in modifiers,
        )

    def enum(self, declaration: Declaration, inside: Iterable[Node]) -> Declaration:
        """Return an enum with its members: one without a number counts on."""
        members: list[Member] = []
        number: int | None = -1
        for node in inside:
            if node.type != "enum_member_declaration":
                continue
            member = self.member(node, node, "enum_member", None)
            value = node.child_by_field_name("value")
            written = constant(value, self.constants)
            written = written if isinstance(written, int) else None
            number = written if value else None if number is None else number + 1
            self.constants[member.name] = number  # because other members may be made of it
            wire = written if member.wire_name is None else member.wire_name
            members.append(replace(member, wire_name=wire, number=number))
        # Told here, because the compiler refuses such a number, whatever the document says.
        base = types.plain(declaration.bases[0]) if declaration.bases else "int"
        faults: tuple[SyntaxFault, ...] = ()
        # 64 bits of a base that is not known, because it may be right.
        most = 2 ** _BITS.get(base, 64)
        beyond = [entry for entry in members if not -most <= (entry.number or 0) < most]
        if beyond:
            message = f"{beyond[0].name!r} is {beyond[0].number}, which an enum of {base} cannot"
            message += f" hold; declare 'enum {declaration.name} : long'"
            faults = (SyntaxFault(declaration.name_line, message, "ENUM_MEMBER"),)
        return replace(declaration, members=tuple(members), bases=(), faults=faults)


def _modifiers(node: Node) -> tuple[str, ...]:
    return tuple(text_of(child) for child in node.children if child.type == "modifier")


def _signature(listed: Node | None) -> dict[str, str]:
    """Return the names of parameters in lower case, and their types."""
    return {
        text_of(name).removeprefix("@").lower(): types.plain(type_ref(type_))
        for node in (listed.named_children if listed else ())
        if (name := node.child_by_field_name("name"))
        and (type_ := node.child_by_field_name("type"))
    }


def _why_hidden(kind: str, modifiers: Sequence[str], attributes: Sequence[Attribute]) -> str | None:
    """Return why the serializer does not see a member; ``None`` if it does."""
    texts = {entry.name: entry.text for entry in attributes if entry.name.startswith("Json")}
    words = [*modifiers, *(entry.name for entry in attributes if entry.name in texts)]
    access = " ".join(word for word in modifiers if word in _ACCESS)
    for word in words:
        if words.count(word) > 1:
            return f"has {word!r} twice; write it once"
        if word in _OF_TYPE:
            return f"is {word}, which is not serialized; make it a property of the object"
        if word in _IGNORING and not re.search("Never|WhenWriting", texts[word]):
            return f"has [{word}{texts[word]}], so it is not serialized; take the attribute away"
    if "JsonInclude" in texts or kind in _ALWAYS_PUBLIC:
        return None
    if kind == "field":
        return "is a field, which is not serialized; make it a property"
    why = f"is {access}, which is" if access else "has no access modifier, so it is private and"
    return None if "public" in modifiers else f"{why} not serialized; make it public"


def _why_lost(node: Node, member: Member) -> str | None:
    """Return why the accessors of a property let a value not come in, or not out again."""
    texts = {entry.name: entry.text for entry in member.attributes}
    listed = node.child_by_field_name("accessors")
    accessors = {
        text_of(name): " ".join(_modifiers(child))
        for child in (listed.named_children if listed else ())
        if (name := child.child_by_field_name("name"))
    }
    narrow = [f"'{access} {name}'" for name, access in accessors.items() if access]
    what = f"has accessors {text_of(listed)}" if listed else "is computed"
    if narrow and "JsonInclude" not in texts:
        what = f"has {narrow[0]}"
    elif accessors.keys() == {"get"}:
        what = "has no set or init"
    elif "get" in accessors and len(accessors) == len(("get", "set")):
        return None
    lost = "read into it" if accessors.get("get", "") == "" else "written"
    return f"{what}, so nothing is {lost}; write {{ get; init; }}"


def _why_uncreatable(
    declaration: Declaration, modifiers: Sequence[str], constructors: Sequence[_Constructor]
) -> str | None:
    """Return why the serializer cannot create a type; ``None`` where it can."""
    attributes = declaration.attributes
    derived = [entry for entry in attributes if entry.name == "JsonDerivedType"]
    # A converter creates the type itself; what a name in JSON tells of is created in its place.
    is_abstract = "abstract" in modifiers and any(len(entry.arguments) > 1 for entry in derived)
    if rules.converter_of(attributes) or is_abstract:
        return None
    # Whatever its constructors are, because the modifier alone decides.
    for word in ("abstract", "static"):
        if word in modifiers:
            return f"is {word}; take the modifier away"
    if declaration.type_parameters:
        return "is generic, and no type is given for its parameters; take them away"
    if not constructors or declaration.kind == "struct":
        return None
    marks = ((entry, attribute.name) for entry in constructors for attribute in entry.attributes)
    chosen = [entry for entry, name in marks if name == "JsonConstructor"]
    if not chosen:
        chosen = [entry for entry in constructors if entry.is_public]
        chosen = [entry for entry in chosen if not entry.parameters] or chosen
    if len(chosen) != 1:
        what = "several constructors that may be called" if chosen else "no public constructor"
        return f"has {what}; take its constructors away"
    properties = {entry.name.lower(): entry.type for entry in declaration.members if entry.type}
    for name, type_ in chosen[0].parameters.items() if not declaration.bases else ():
        if name not in properties or types.plain(properties[name]) != type_:
            which = "matches no property" + (" by its type" if name in properties else "")
            return f"has a constructor whose parameter {name!r} {which}; take it away"
    return None
