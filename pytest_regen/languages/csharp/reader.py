"""C# source to facts: what it declares, and where it is illegal. By syntax tree only."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pytest_regen.languages.base import Declaration, SourceFacts, SyntaxFault
from pytest_regen.languages.csharp.members import Reading, declarations
from pytest_regen.languages.csharp.names import is_identifier
from pytest_regen.languages.csharp.slips import comment_faults, leftover, slip_repairs
from pytest_regen.languages.csharp.tree import GRAMMAR, constant, parse
from pytest_regen.languages.diagnosis import (
    Change,
    Diagnosis,
    Doctor,
    Place,
    first_on_line,
    insertion,
    insertions,
    line_removals,
    quotes,
    removals,
    rows_of,
)
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.text import in_quotes

_TOKENS: Final = (b";", b",", b"}", b"{", b"]", b")", b">")
_REMOVED: Final = (b"}", b"{", b";", b",")
_QUOTE_PLACES: Final = re.compile(rb"(?<=\()|(?=\))")
_MODIFIER = (
    r"(?:public|private|protected|internal|required|static|virtual|override|abstract|sealed"
    r"|partial|readonly|const|new)"
)
_MEMBER_LINE = re.compile(
    rf"^[ \t]*(?:\[[^\n]*\][ \t]*)?(?:{_MODIFIER}[ \t]+)+[^\s=;{{(][^=;{{(\n]*?[ \t]"
    r"(?P<name>[^\s{;=(]+)[ \t]*(?:[{;(:]|=[^\n]|$)",
    re.MULTILINE,
)
_ENUM_LINE = re.compile(
    r"^[ \t]*(?:\[[^\n]*\][ \t]*)?(?P<name>[^\s,=\[\]{}()\"/;]+)[ \t]*"
    r"(?:=[ \t]*-?\w+[ \t]*)?,?[ \t\r]*(?://[^\n]*)?$",
    re.MULTILINE,
)


def _changes(found: Diagnosis, place: Place) -> Iterator[Change]:
    """Yield changes to try, the most telling first."""
    yield from line_removals(found, place, leftover)
    yield from _renamings(found, place)
    yield from quotes(found, place, _QUOTE_PLACES)
    yield from insertions(place, _TOKENS)
    first = first_on_line(place)
    if first is not None:
        yield insertion(first.start_byte, b"[", first)
    yield from removals(place, _REMOVED)


def _is_loose(node: Node) -> bool:
    return node.type == "global_statement"


_DOCTOR: Final = Doctor(GRAMMAR, _changes, slip_repairs, _is_loose)
diagnose = _DOCTOR.diagnose


def _renamings(found: Diagnosis, place: Place) -> Iterator[Change]:
    """Yield names in the lines of the errors that are no identifiers, with a stand-in for each."""
    first, last = rows_of(place)
    lines = found.code.split(b"\n")
    offset = sum(len(line) + 1 for line in lines[:first])
    text = b"\n".join(lines[first : last + 1]).decode("utf-8", "replace")
    for pattern in (_MEMBER_LINE, _ENUM_LINE):
        for match in pattern.finditer(text):
            name = match["name"]
            if is_identifier(name):
                continue
            start = offset + len(text[: match.start("name")].encode())
            stand_in = f"_Illegal{len(found.renamed)}"
            row = first + text.count("\n", 0, match.start("name"))
            fault = SyntaxFault(row + 1, _illegal_name(name), "INVALID_IDENTIFIER")
            end = start + len(name.encode())
            yield Change(start, end, stand_in.encode(), fault, (stand_in, name))


def _illegal_name(name: str) -> str:
    rule = "write a PascalCase name of letters and digits"
    return f"{in_quotes(name)} is no legal C# identifier; {rule}"


_MODIFIERS = frozenset(
    {"const", "internal", "override", "private", "protected", "public", "readonly", "static"}
)
_DIRECTIVE = re.compile(rb"^[ \t]*(#[ \t]*(?:if|elif|else|endif)\b[^\r\n]*)", re.MULTILINE)
_PARTS = re.compile(r"[^\s\"()\[\],;]+")


def read(code: str) -> SourceFacts:
    """Return what ``code`` declares and where it is illegal.

    Illegal code is read as far as it can be made out; ``unread`` then holds every word and string
    of it, so that a caller does not call missing what may only be unreadable.

    Args:
        code: C# source; a byte order mark and any line ends are allowed.
    """
    data = code.removeprefix("\ufeff").encode("utf-8", "replace")
    if not data.endswith(b"\n"):
        data += b"\n"  # the grammar wants directives ended
    tree = parse(data)
    if not tree.root_node.has_error:
        reading = declarations(tree.root_node)
        faults = [*comment_faults(data, tree.root_node), *_name_faults(reading)]
        return _facts(reading, faults)
    conditional = _without_directives(data)
    if conditional is not None:
        rest, fault = conditional
        facts = read(rest.decode("utf-8", "replace"))
        return replace(facts, faults=(fault, *facts.faults))
    unread = frozenset(_words(data, tree.root_node))
    found = diagnose(data)
    reading = declarations(found.tree.root_node)
    faults = [*found.faults, *comment_faults(found.code, found.tree.root_node)]
    faults += [fault for fault in _name_faults(reading) if fault not in faults]
    facts = _facts(reading, faults)
    named = tuple(_restore_names(entry, found.renamed) for entry in facts.declarations)
    return replace(facts, declarations=named, unread=unread)


def _without_directives(data: bytes) -> tuple[bytes, SyntaxFault] | None:
    """Return the code without ``#if`` and its like, where only they keep it from being read.

    They may stand between any two tokens; the grammar takes them between members.
    """
    first = _DIRECTIVE.search(data)
    if first is None:
        return None
    rest = _DIRECTIVE.sub(lambda match: b" " * len(match[0]), data)
    if parse(rest).root_node.has_error:
        return None
    shown = first[1].decode("utf-8", "replace").strip()
    message = f"{shown!r} stands where it cannot be read; take the directive and its #endif away"
    return rest, SyntaxFault(data.count(b"\n", 0, first.start(1)) + 1, message)


def repair(code: str) -> str:
    """Return ``code`` with the smallest changes that make it more legal; lines do not move.

    Meant for reading what stands around a fault, never for keeping: an illegal name is replaced by
    a stand-in, prose by blanks.
    """
    data = code.encode("utf-8", "replace")
    tree = parse(data + b"\n")
    if not tree.root_node.has_error:
        return code
    return diagnose(data + b"\n").code.decode("utf-8", "replace").removesuffix("\n")


def _facts(reading: Reading, faults: list[SyntaxFault]) -> SourceFacts:
    strays = []
    for node in reading.strays:
        line = node.start_point.row + 1
        strays.append(line)
        shown = text_of(node).strip().split("\n", 1)[0][:80]
        message = leftover(shown)
        if message:
            faults.append(SyntaxFault(line, message, "ARTIFACT"))
        else:
            faults.append(
                SyntaxFault(line, f"this stands outside of every type: {in_quotes(shown)}")
            )
    ordered = sorted(faults, key=lambda fault: fault.line)
    return SourceFacts(
        tuple(reading.declarations),
        tuple(ordered),
        tuple(strays),
        aliases=frozenset(reading.aliases),
    )


def _name_faults(reading: Reading) -> Iterator[SyntaxFault]:
    for node in reading.illegal_names:
        name, line = text_of(node), node.start_point.row + 1
        if name in _MODIFIERS:
            yield SyntaxFault(
                line, f"the declaration that begins with {in_quotes(name)} is not finished"
            )
        else:
            message = f"{in_quotes(name)} is a keyword of C# and cannot be a name"
            yield SyntaxFault(line, message, "INVALID_IDENTIFIER")


def _restore_names(declaration: Declaration, renamed: dict[str, str]) -> Declaration:
    """Return the declaration with the names that the source has, illegal as they are."""
    if not renamed:
        return declaration
    members = tuple(
        replace(member, name=renamed.get(member.name, member.name))
        for member in declaration.members
    )
    name = renamed.get(declaration.name, declaration.name)
    return replace(declaration, name=name, members=members)


def _words(data: bytes, root: Node) -> Iterator[str]:
    """Yield the words of an illegal source: decoded strings, and whatever else is no comment.

    What the grammar skipped is in no node, so the text itself is searched.
    """
    code = bytearray(data)
    for node in walk(root):
        if node.type == "comment":
            code[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
        elif "string" in node.type and node.type.endswith(("literal", "expression")):
            value = constant(node)
            if isinstance(value, str):
                yield value
    yield from _PARTS.findall(code.decode("utf-8", "replace"))
