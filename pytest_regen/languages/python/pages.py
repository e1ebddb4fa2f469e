"""The pages of a Python type joined into one declaration, with every line accounted."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from pytest_regen.languages.base import PageFault, StitchedType
from pytest_regen.languages.lines import (
    Line,
    as_type,
    join_lines,
    plain_page,
    reindent,
    trim,
)
from pytest_regen.languages.pages import Units, cannot_split, first_members
from pytest_regen.languages.python.diagnosis import diagnose
from pytest_regen.languages.python.members import declarations
from pytest_regen.languages.python.slips import without_comment
from pytest_regen.languages.python.tree import (
    GRAMMAR,
    constant,
    dedent,
    dotted,
    is_legal,
    last_name,
    parse,
    why_illegal,
)
from pytest_regen.languages.trees import Node, join_leaves, text_of
from pytest_regen.prompts.values import OutputMode

Container = Literal["body", "entries", "values"]
"""What members stand in: a class, the dictionary of a TypedDict, the brackets of a Literal."""

_INDENT: Final = "    "
_DELIMITER: Final = re.compile(r"[ \t]*#[ \t]*(BEGIN|END)_FIELDS[ \t]*")
_IMPORT: Final = re.compile(r"(?:from[ \t]+[\w.]+[ \t]+import|import[ \t]+[\w.]+)\b")
_WRAPS: Final[dict[Container, tuple[str, str]]] = {
    "body": ("class PageWrapper:\n", "\n    pass"),
    "entries": ("PageWrapper = {\n", "\n}"),
    "values": ("PageWrapper = [\n", "\n]"),
}
_MEMBERS: Final = frozenset({"assignment", "concatenated_string", "ellipsis", "string"})
_CLASSES: Final = frozenset({"class_definition", "decorated_definition"})


# --- how legal, and which tokens ------------------------------------------------------------------


def illegality(code: str) -> int:
    """Return how far ``code`` is from a page: 0 is legal, more is worse.

    Legal are declarations and imports, bare fields, enum members, and entries of a call.

    Args:
        code: any text, with LF line ends.
    """
    lines = code.split("\n")
    text = _level("\n".join(line for line in lines if not _DELIMITER.fullmatch(line)))
    if GRAMMAR.is_unreadable(text.encode("utf-8", "replace")) or not _has_code(text):
        return len(text) + 1
    if any(_is_right(text, container) for container in ("body", "entries", "values")):
        return 0
    if is_legal(text):
        root = parse(text).root_node
        found = declarations(root)
        if found.declarations:
            return sum(node.end_byte - node.start_byte for node in found.strays)
        return len(text) + 1
    found_out = diagnose(text)
    kept = sum(len(line.strip()) + 1 for line in found_out.code.split("\n") if line.strip())
    whole = sum(len(line.strip()) + 1 for line in text.split("\n") if line.strip())
    return max(whole - kept, 0) + sum(1 for fault in found_out.faults) + 1


def _has_code(text: str) -> bool:
    lines = (line.strip() for line in text.split("\n"))
    return any(line and not line.startswith("#") for line in lines)


def _is_right(text: str, container: Container) -> bool:
    """Return whether a text is members of a container and nothing else."""
    wrapped = _wrapped(text, container)
    if not is_legal(wrapped):
        return False
    inner = _inner(parse(wrapped).root_node, container)
    if inner is None:
        return False
    nodes = [node for node in inner.named_children if node.type != "comment"]
    if container == "entries":
        return bool(nodes) and all(node.type == "pair" for node in nodes)
    if container == "values":
        return bool(nodes) and all(isinstance(constant(node), str | int) for node in nodes)
    nodes = [node for node in nodes if node.type != "pass_statement"]
    fields = [node for node in nodes if _is_member(node)]
    rest = [node for node in nodes if not _is_member(node) and node.type != "function_definition"]
    return bool(fields) and not rest and any(_assigned(node) is not None for node in fields)


def _wrapped(text: str, container: Container) -> str:
    head, tail = _WRAPS[container]
    inner = textwrap.indent(_level(text), _INDENT) if container == "body" else text
    return f"{head}{inner}{tail}"


def _inner(root: Node, container: Container) -> Node | None:
    """Return the node whose children are the members of a wrapped page."""
    if root.named_child_count != 1:
        return None
    top = root.named_children[0]
    if container == "body":
        return top.child_by_field_name("body")
    value = top.named_children[0].child_by_field_name("right") if top.named_children else None
    return value if value is not None and value.type in {"dictionary", "list"} else None


def _is_member(node: Node) -> bool:
    return node.type == "expression_statement" and node.named_children[0].type in _MEMBERS


def _assigned(node: Node) -> Node | None:
    inner = node.named_children[0] if node.type == "expression_statement" else node
    return inner if inner.type == "assignment" else None


def _level(code: str) -> str:
    """Return a text without the indentation that all of its lines share.

    The first line may have lost its own, where a reply was trimmed.
    """
    text = code.replace("\t", _INDENT)
    first, newline, rest = text.lstrip("\n").partition("\n")
    if first and not first[0].isspace() and newline:
        shown = [line for line in rest.split("\n") if line.strip()]
        own = min((len(line) - len(line.lstrip()) for line in shown), default=0)
        opens = without_comment(first).endswith((":", "(", "[", "{", ","))
        if own and not opens:
            return f"{first}\n{dedent(rest)}"
    return dedent(text)


def leaves(code: str) -> tuple[str, ...]:
    """Return the tokens and comments of ``code``, and marks where its blocks begin and end.

    White space inside comments and docstrings is levelled, inside other strings it is kept.

    Args:
        code: any text; line ends do not count.
    """
    data = _level(plain_page(code)).encode("utf-8", "surrogatepass")
    return join_leaves(data, _tokens(GRAMMAR.parse(data).root_node), _is_prose)


def _is_prose(node: Node) -> bool:
    is_docstring = (
        node.type == "string"
        and node.parent is not None
        and node.parent.type == "expression_statement"
    )
    return is_docstring or node.type == "comment"


def _tokens(node: Node) -> Iterator[Node | str]:
    if node.child_count == 0 or node.type == "string":
        yield node
        return
    if node.type == "block":
        yield "<indent>"
    for child in node.children:
        yield from _tokens(child)
    if node.type == "block":
        yield "<dedent>"


# --- a declaration, and where members go in it ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Item:
    """A member of a declaration."""

    unit: str | int | None
    """Its JSON name or value; ``None`` for what belongs to the member before it."""
    first: int
    last: int
    """Rows, counted from 0; comments above it included."""


@dataclass(frozen=True, slots=True)
class _Shell:
    """The declaration of page 1, which takes up the members of the other pages."""

    container: Container
    items: tuple[_Item, ...]
    start: int
    """The row of its first line, decorators included."""
    end: int
    """The row before which members of other pages go."""
    indent: str


def _find_shell(text: str, name: str | None) -> _Shell | None:
    """Return the declaration of ``name`` in a legal text, or its only one."""
    root = parse(text).root_node
    nodes = [node for node in root.named_children if _declared_name(node)]
    named = [node for node in nodes if _declared_name(node) == name]
    chosen = named or (nodes if len(nodes) == 1 else [])
    if not chosen:
        return None
    found = {entry.name: entry for entry in reversed(declarations(root).declarations)}
    declared = found.get(_declared_name(chosen[0]))
    if declared is None:
        return None
    units = {
        member.line: member.name if member.wire_name is None else member.wire_name
        for member in declared.members
    }
    return _shell_of(chosen[0], units, text.split("\n"))


def _declared_name(node: Node) -> str:
    """Return the name of the type that a statement declares, if it declares one."""
    if node.type in _CLASSES:
        inner = node.child_by_field_name("definition") or node
        name = inner.child_by_field_name("name")
        return text_of(name) if name is not None and inner.type == "class_definition" else ""
    assigned = _assigned(node) if node.type == "expression_statement" else None
    if assigned is None:
        return ""
    value = assigned.child_by_field_name("right")
    is_type = value is not None and last_name(value) in {"Literal", "TypedDict"}
    return dotted(assigned.child_by_field_name("left")) if is_type else ""


def _shell_of(node: Node, units: dict[int, str | int], lines: list[str]) -> _Shell | None:
    start = node.start_point.row
    inner = node.child_by_field_name("definition") or node
    if inner.type == "class_definition":
        body = inner.child_by_field_name("body")
        if body is None:
            return None
        rows = [child.start_point.row for child in body.named_children]
        if not rows or rows[0] == inner.start_point.row:
            return None  # all on one line
        at = body.named_children[0].start_point.column
        items = _items([c for c in body.named_children if c.type != "comment"], units, lines)
        return _Shell("body", items, start, _last_row(body) + 1, " " * at)
    container: Container = "entries" if "TypedDict" in lines[start] else "values"
    holder = _holder(inner, container)
    if holder is None or holder.start_point.row == holder.end_point.row:
        return None
    kinds = {"entries": {"pair"}}.get(container)
    nodes = [
        child
        for child in (holder.named_children[(container == "values") :])
        if child.type != "comment" and (kinds is None or child.type in kinds)
    ]
    indent = " " * nodes[0].start_point.column if nodes else _INDENT * 2
    return _Shell(container, _items(nodes, units, lines), start, holder.end_point.row, indent)


def _holder(node: Node, container: Container) -> Node | None:
    """Return the dictionary of a call, or the subscript of a Literal."""
    wanted = {"entries": {"dictionary"}, "values": {"subscript", "generic_type"}}[container]
    waiting = [node]
    while waiting:
        found = waiting.pop(0)
        if found.type in wanted:
            return found
        waiting += found.named_children
    return None


def _last_row(body: Node) -> int:
    """Return the row of the last line of a class: comments below it are not part of it."""
    return body.named_children[-1].end_point.row


def _items(
    nodes: Sequence[Node], units: dict[int, str | int], lines: list[str]
) -> tuple[_Item, ...]:
    """Return the members among nodes; what says nothing on the wire belongs to the one before."""
    found: list[_Item] = []
    for node in nodes:
        first, last = node.start_point.row, node.end_point.row
        unit = units.get(first + 1)
        is_text = node.type == "expression_statement" and _assigned(node) is None
        if found and (is_text or unit is None):
            found[-1] = replace(found[-1], last=last)
            continue
        while first > 0 and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        found.append(_Item(unit, first, last))
    return tuple(found)


# --- joining --------------------------------------------------------------------------------------


def stitch(outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
    """Return the pages of one type as one declaration.

    Page 1 declares the type; the members of the other pages go to the end of its class, or before
    the bracket that closes its call. Each page is parsed alone. One that is not legal alone is a
    fault and stands where it would, unchanged but for its indentation.

    Args:
        outputs: code of the pages, page 1 first; any line ends.
        name: of the type.
        is_enum: not needed: page 1 shows what kind of type it is.
    """
    del is_enum
    codes = [plain_page(output) for output in outputs]
    if len(codes) <= 1:
        return as_type(_only_page(codes[0] if codes else ""))
    text = dedent(codes[0])
    why = why_illegal(text)
    shell = _find_shell(text, name) if why is None else None
    faults: list[PageFault] = []
    if shell is None:
        faults.append(_shell_fault(text, name))
    container: Container = shell.container if shell is not None else "body"
    pieces: list[list[Line]] = []
    for number, code in enumerate(codes[1:], 2):
        lines, fault = _members(code, number, name, container)
        indent = _INDENT if shell is None else shell.indent
        pieces.append(reindent(lines, indent) if fault is None else _leveled(lines, indent))
        faults += [fault] if fault is not None else []
    first = [Line(line, 1, number) for number, line in enumerate(text.split("\n"), 1)]
    if shell is None:
        return as_type(join_lines(trim(first), pieces, is_apart=False), faults)
    if container != "body":
        first = _separated(first, shell.end, is_needed=any(pieces))
        pieces = [_separated(piece, len(piece), is_needed=True) for piece in pieces]
    head, tail = first[: shell.end], first[shell.end :]
    joined = join_lines(_without_surroundings(head), pieces, is_apart=False)
    rest = _without_surroundings(tail)
    return as_type(trim(joined + rest), faults)


def _leveled(lines: list[Line], indent: str) -> list[Line]:
    return reindent(lines, indent) if lines else lines


def _separated(lines: list[Line], end: int, *, is_needed: bool) -> list[Line]:
    """Return the lines with a comma after the last entry before ``end``, where others follow."""
    for at in range(min(end, len(lines)) - 1, -1, -1):
        code = without_comment(lines[at].text)
        if not code.strip():
            continue
        if is_needed and not code.endswith((",", "{", "[", "(")):
            text = f"{code},{lines[at].text[len(code) :]}"
            return [*lines[:at], replace(lines[at], text=text), *lines[at + 1 :]]
        break
    return lines


def _without_surroundings(lines: list[Line]) -> list[Line]:
    """Return the lines without imports and delimiters, which the file has or does not need."""
    kept: list[Line] = []
    is_open = False
    for line in lines:
        if is_open:
            is_open = ")" not in line.text
        elif _IMPORT.match(line.text):
            is_open = "(" in line.text and ")" not in line.text
        elif not _DELIMITER.fullmatch(line.text):
            kept.append(line)
    return kept


def _only_page(code: str) -> list[Line]:
    """Return the lines of a page that is a whole declaration."""
    lines = [Line(text, 1, number) for number, text in enumerate(code.split("\n"), 1)]
    if "import" in code or "_FIELDS" in code:
        lines = _without_surroundings(lines)
    return trim(lines)


def _shell_fault(text: str, name: str) -> PageFault:
    for fault in diagnose(text).faults:
        return PageFault(1, fault.line, fault.code, fault.message, fault.in_member)
    message = f"the page declares no type called {name!r}"
    return PageFault(1, 1, "MISSING_CLASS", message, in_member=False)


def _members(
    code: str, number: int, name: str | None, container: Container
) -> tuple[list[Line], PageFault | None]:
    """Return the members of a continuation page, whatever was put around them."""
    lines = [Line(text, number, at) for at, text in enumerate(code.split("\n"), 1)]
    for part in _parts(lines):
        plain = trim(_unindented(_without_surroundings(part)))
        text = "\n".join(line.text for line in plain)
        if not text.strip():
            continue
        if _is_right(text, container):
            return plain, None
        inside = _declared_again(plain, text, name, container)
        if inside is not None:
            return inside, None
    plain = trim(_unindented(_without_surroundings(lines)))
    if not any(line.text.strip() and not line.text.lstrip().startswith("#") for line in plain):
        return plain, None  # an empty page is no illegal one
    return plain, _page_fault(plain, number, container)


def _parts(lines: list[Line]) -> Iterator[list[Line]]:
    """Yield what may be the members of a page: all of it, then what stands between delimiters."""
    yield lines
    marks = [(at, m[1]) for at, line in enumerate(lines) if (m := _DELIMITER.fullmatch(line.text))]
    start = next((at + 1 for at, word in marks if word == "BEGIN"), 0)
    end = next((at for at, word in reversed(marks) if word == "END"), len(lines))
    if marks and start < end:
        yield lines[start:end]


def _unindented(lines: list[Line]) -> list[Line]:
    """Return the lines without shared indentation; the first may have lost its own."""
    if not lines:
        return lines
    leveled = _level("\n".join(line.text for line in trim(lines))).split("\n")
    return [replace(line, text=text) for line, text in zip(trim(lines), leveled, strict=False)]


def _declared_again(
    lines: list[Line], text: str, name: str | None, container: Container
) -> list[Line] | None:
    """Return the members of a page that declares its type once more around them."""
    if not is_legal(text):
        return None
    root = parse(text).root_node
    nodes = [node for node in root.named_children if node.type != "comment"]
    if len(nodes) != 1 or (name is not None and _declared_name(nodes[0]) != name):
        return None
    shell = _find_shell(text, _declared_name(nodes[0]) or None)
    if shell is None or shell.container != container or not shell.items:
        return None
    kept = lines[shell.items[0].first : shell.items[-1].last + 1]
    return reindent(kept, "")


def _page_fault(lines: list[Line], number: int, container: Container) -> PageFault:
    """Return why the members of a page cannot stand in their type."""
    text = "\n".join(line.text for line in lines)

    def at(line: int) -> int:
        return lines[min(max(line, 1), len(lines)) - 1].number if lines else 1

    for fault in diagnose(text).faults:
        if fault.code == "ARTIFACT":
            return PageFault(number, at(fault.line), fault.code, fault.message, fault.in_member)
    for other in ("body", "entries", "values"):
        if other != container and _is_right(text, other):
            forms = {
                "body": "fields of a class, name: type",
                "entries": 'entries of a call, "name": "type",',
                "values": 'values of a Literal, "value",',
            }
            message = f"the page holds {forms[other]}; page 1 needs {forms[container]}"
            return PageFault(number, at(1), "SYNTAX", message, in_member=False)
    if is_legal(text):
        root = parse(text).root_node
        foreign = next((node for node in root.named_children if _declared_name(node)), None)
        if foreign is not None:
            message = f"the page declares {_declared_name(foreign)!r} instead of members alone"
            line = at(foreign.start_point.row + 1)
            return PageFault(number, line, "FOREIGN_TYPE", message, in_member=False)
    head, tail = _WRAPS[container]
    inner = textwrap.indent(text, _INDENT) if container == "body" else text
    if container != "body":
        head = (
            "PageWrapper = TypedDict('PageWrapper', {\n"
            if container == "entries"
            else ("PageWrapper: TypeAlias = Literal[\n")
        )
        tail = "\n})" if container == "entries" else "\n]"
    faults = diagnose(f"{head}{inner}{tail}").faults
    if faults:
        fault = faults[0]
        return PageFault(number, at(fault.line - 1), fault.code, fault.message, fault.in_member)
    return PageFault(number, at(1), "SYNTAX", "the page holds no members", in_member=False)


def unwrap_page(code: str, mode: OutputMode) -> str:
    """Return what a page contributes: its members, or its declaration without imports.

    Args:
        code: the page's text.
        mode: what the page was asked for.
    """
    text = plain_page(code)
    if mode not in {"fields_only", "enum_values_only"}:
        return "\n".join(line.text for line in _only_page(text))
    for container in ("body", "entries", "values"):
        lines, fault = _members(text, 1, None, container)
        if fault is None:
            return "\n".join(line.text for line in lines)
    lines, _ = _members(text, 1, None, "body")
    return "\n".join(line.text for line in lines)


# --- taking apart ---------------------------------------------------------------------------------


def split(code: str, *, name: str, units: Units) -> tuple[str, ...]:
    """Return the pages of a declaration; joined again, they are the same but for white space.

    A member goes to the page that asks for its JSON name or value. Members stay in their order: one
    that stands before another page's members stays on the page of those.

    Args:
        code: the whole declaration.
        name: of the type.
        units: for each page, the JSON names or enum values it asks for.

    Raises:
        SourceError: the declaration is illegal, or its members are so mixed that a page would be
            left without any.
    """
    if len(units) <= 1:
        return (code,)
    text = plain_page(code)
    shell = _find_shell(text, name) if is_legal(text) else None
    if shell is None:
        raise cannot_split(name, "it is no legal declaration of that name")
    page_of = {str(unit): page for page, own in enumerate(units) for unit in own}
    pages_of = [page_of.get(str(item.unit), -1) for item in shell.items]
    starts = first_members(name, pages_of, len(units))
    lines = text.split("\n")
    cuts = [*(shell.items[at].first for at in starts), shell.items[-1].last + 1]
    first = [*lines[: cuts[0]], *lines[cuts[-1] :]]
    while first[: cuts[0]] and not first[cuts[0] - 1].strip() and cuts[0] > 1:
        del first[cuts[0] - 1]
        cuts[0] -= 1
    cuts[0] = shell.items[starts[0]].first
    pages = ["\n".join(first)]
    pages += [
        "\n".join(line.text for line in trim([Line(text, 1, 1) for text in lines[start:stop]]))
        for start, stop in pairwise(cuts)
    ]
    joined = stitch(pages, name=name, is_enum=shell.container == "values").text
    if leaves(joined) != leaves(code):
        raise cannot_split(name, "its pages would not be the same when joined again")
    return tuple(pages)
