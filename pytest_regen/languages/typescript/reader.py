"""TypeScript source to facts: what it declares, and where it is illegal. By syntax tree only."""

import re
from collections.abc import Iterator
from typing import Final

from pytest_regen.languages.base import SourceFacts, SyntaxFault
from pytest_regen.languages.diagnosis import Doctor
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.languages.typescript.declarations import Reading, declarations
from pytest_regen.languages.typescript.names import is_type_identifier
from pytest_regen.languages.typescript.slips import LEFTOVERS, changes, slip_repairs
from pytest_regen.languages.typescript.tree import GRAMMAR, constant, is_loose, line_of, parse
from pytest_regen.text import in_quotes

_DOCTOR: Final = Doctor(GRAMMAR, changes, slip_repairs, is_loose)
diagnose = _DOCTOR.diagnose

_PARTS: Final = re.compile(r"[^\s\"'`()\[\]{},;:?|]+")
_DECLARATION: Final = re.compile(
    r"\b(?P<word>interface|enum|class|type|const)\s+(?P<name>[\w$]+)"
    r"(?P<rest>[^\n]{0,80}(?:\n[ \t]*[^\n]{1,80})?)"
)
_OBJECT_TYPE: Final = re.compile(r"\s*(?:<[^>]*>)?\s*=\s*\{")
_ENUM_SCHEMA: Final = re.compile(r"\s*=\s*z\s*\.\s*(?:enum|literal|nativeEnum|union|never)\b")
_SCHEMA: Final = re.compile(r"(?::[^=]*)?\s*=\s*z\b")


def read(code: str) -> SourceFacts:
    """Return what ``code`` declares and where it is illegal.

    Illegal code is read as far as it can be made out; ``unread`` then holds every word and string
    of it, so that a caller does not call missing what may only be unreadable.

    Args:
        code: TypeScript source; a byte order mark and any line ends are allowed.
    """
    data = code.removeprefix("\ufeff").encode("utf-8", "replace")
    tree = parse(data)
    if not tree.root_node.has_error and not any(map(is_loose, tree.root_node.named_children)):
        reading = declarations(tree.root_node)
        return _facts(reading, [*LEFTOVERS.comment_faults(data, tree.root_node)], frozenset())
    unread = frozenset(_words(data, tree.root_node))
    found = diagnose(data)
    reading = declarations(found.tree.root_node)
    faults = [*found.faults, *LEFTOVERS.comment_faults(found.code, found.tree.root_node)]
    return _facts(reading, faults, unread)


def _facts(reading: Reading, faults: list[SyntaxFault], unread: frozenset[str]) -> SourceFacts:
    strays = []
    known = {fault.line for fault in faults}
    for node in reading.strays:
        line = line_of(node)
        strays.append(line)
        shown = text_of(node).strip().split("\n", 1)[0][:80]
        message = LEFTOVERS.leftover(shown)
        if line in known:
            continue
        if message:
            faults.append(SyntaxFault(line, message, "ARTIFACT"))
        else:
            message = f"this is no part of a type: {in_quotes(shown)}"
            faults.append(SyntaxFault(line, message))
    for entry in reading.declarations:
        if not is_type_identifier(entry.name):
            message = f"{in_quotes(entry.name)} is a word of TypeScript and cannot be a name"
            faults.append(SyntaxFault(entry.name_line, message, "INVALID_IDENTIFIER"))
    return SourceFacts(
        tuple(reading.declarations),
        tuple(sorted(faults, key=lambda fault: fault.line)),
        tuple(strays),
        unread,
        frozenset(reading.aliases),
    )


def repair(code: str) -> str:
    """Return ``code`` with the smallest changes that make it more legal; lines do not move.

    Meant for reading what stands around a fault, never for keeping.
    """
    data = code.encode("utf-8", "replace")
    if not parse(data).root_node.has_error:
        return code
    return diagnose(data).code.decode("utf-8", "replace")


def declared_kind(code: str, name: str) -> tuple[str, int] | None:
    """Return as what ``code`` declares ``name``, by its words alone, and on which line."""
    for found in _DECLARATION.finditer(code):
        if found["name"] != name:
            continue
        word, rest = found["word"], found["rest"]
        kind = word
        if word == "type":
            kind = "object type" if _OBJECT_TYPE.match(rest) else "enum"
        elif word == "const":
            kind = "schema" if _SCHEMA.match(rest) else "constant"
            kind = "enum" if _ENUM_SCHEMA.match(rest) else kind
        return kind, code.count("\n", 0, found.start("name")) + 1
    return None


def _words(data: bytes, root: Node) -> Iterator[str]:
    """Yield the words of an illegal source: decoded strings, and whatever else is no comment."""
    code = bytearray(data)
    for node in walk(root):
        if node.type == "comment":
            code[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
        elif node.type == "string":
            value = constant(node)
            if isinstance(value, str):
                yield value
    yield from _PARTS.findall(code.decode("utf-8", "replace"))
