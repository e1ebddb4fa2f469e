"""C# source to facts: what it declares, and where it is illegal. By syntax tree only."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import thread_time
from typing import Final

from pytest_regen.languages.base import Declaration, SourceFacts, SyntaxFault
from pytest_regen.languages.csharp.members import Reading, declarations
from pytest_regen.languages.csharp.names import is_identifier
from pytest_regen.languages.csharp.slips import comment_faults, leftover, slip_repairs
from pytest_regen.languages.csharp.tree import Node, Tree, constant, parse, text_of, unreadable_rows
from pytest_regen.languages.trees import walk
from pytest_regen.text import in_quotes

__all__ = ["Diagnosis", "diagnose", "read", "repair"]


_BYTES_TO_SPEND: Final = 3_000_000
"""How much text is parsed, at most, to explain one illegal source: about a second's worth."""
_SECONDS_TO_SPEND: Final = 0.5
"""Processor time at most, where the grammar is slow to recover from errors."""
_BYTES_PER_NODE: Final = 12
"""What a node inside an error costs to look at, as text that could be parsed in the time."""
_ROUNDS: Final = 8
_TOKENS: Final = (b";", b",", b"}", b"{", b"]", b")", b">")
_WINDOW: Final = 8_000
"""How many bytes around the first fault are taken apart into tokens."""
_MANY_LINES: Final = 4_000
_REACH: Final = 60
"""How many tokens around the first fault are looked at."""
_LINES: Final = 4
_BLANKED = re.compile(rb"[^\r]")
_PLACEHOLDER = re.compile(rb"%?\{(\w+)\}")
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


@dataclass(slots=True)
class Diagnosis:
    """A source made as legal as it could be, and what had to be changed for it."""

    code: bytes
    tree: Tree
    faults: list[SyntaxFault] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    """Stand-ins for illegal names, to what the source says."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A candidate: ``code[start:end]`` becomes ``text``."""

    start: int
    end: int
    text: bytes
    fault: SyntaxFault
    renamed: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the first fault stands, among the tokens near it."""

    leaves: tuple[Node, ...]
    index: int
    errors: tuple[Node, ...]
    last: Node | None
    """The last token of the source."""


@dataclass(slots=True)
class _Budget:
    """What may still be spent on one source."""

    bytes: int = _BYTES_TO_SPEND
    ends: float = field(default_factory=lambda: thread_time() + _SECONDS_TO_SPEND)

    def covers(self, size: int) -> bool:
        """Take ``size`` bytes; return whether they were there."""
        self.bytes -= size
        return self.bytes >= 0 and thread_time() <= self.ends


@lru_cache(maxsize=64)
def diagnose(code: bytes) -> Diagnosis:
    """Return what is wrong with ``code``. The result is shared: callers must not change it."""
    found = Diagnosis(code, parse(code))
    found.faults += [SyntaxFault(row + 1, why) for row, why in unreadable_rows(code).items()]
    if found.faults:
        return found
    certain = _without_slips(found)
    budget = _Budget()
    for _ in range(_ROUNDS):
        change = _best_change(found, budget)
        if change is None:
            break
        found.faults.append(change.fault)
        if change.renamed:
            found.renamed[change.renamed[0]] = change.renamed[1]
    if found.tree.root_node.has_error:
        found.faults.append(_unknown_fault(found, code))
    found.faults = [*certain, *_without_echoes(found.faults, certain)]
    return found


def _without_slips(found: Diagnosis) -> list[SyntaxFault]:
    """Undo slips that spoil code as text, as far as that makes it more legal; return them."""
    certain: list[SyntaxFault] = []
    for undo in slip_repairs(found.code):
        badness, _ = _badness(found.tree.root_node)
        undone = undo(found.code) if badness != (0, 0) else None
        if undone is None:
            continue
        tree = parse(undone.code)
        if _badness(tree.root_node)[0] < badness:
            found.code, found.tree = undone.code, tree
            certain += undone.faults
    return certain


def _best_change(found: Diagnosis, budget: _Budget) -> _Change | None:
    """Make the change that helps most and return it; ``None`` where nothing helps or is needed."""
    badness, looked_at = _badness(found.tree.root_node)
    best: tuple[tuple[int, int], _Change, bytes, Tree] | None = None
    for change in _changes(found) if badness != (0, 0) else ():
        if not budget.covers(len(found.code) + _BYTES_PER_NODE * looked_at):
            break
        candidate = found.code[: change.start] + change.text + found.code[change.end :]
        changed = parse(candidate)
        score, _ = _badness(changed.root_node)
        if score < badness and (best is None or score < best[0]):
            best = score, change, candidate, changed
        if score == (0, 0):
            break
    if best is None:
        return None
    _, change, found.code, found.tree = best
    return change


def _without_echoes(faults: list[SyntaxFault], certain: list[SyntaxFault]) -> list[SyntaxFault]:
    """Return the faults without those that only follow from the one found just before, nearby."""
    kept = list(certain)
    for fault in faults:
        if not any(abs(fault.line - other.line) <= _LINES for other in kept):
            kept.append(fault)
    return kept[len(certain) :]


def _badness(root: Node) -> tuple[tuple[int, int], int]:
    """Return how many errors and loose statements a tree has and how many bytes errors cover.

    With it comes how many nodes were looked at for it.
    """
    errors, looked_at = _errors(root)
    loose = sum(child.type == "global_statement" for child in root.named_children)
    size = sum(node.end_byte - node.start_byte for node in errors)
    return (loose + len(errors), size), looked_at


def _errors(root: Node) -> tuple[tuple[Node, ...], int]:
    """Return error and missing nodes in source order, outer ones first, of all nodes looked at."""
    found: list[Node] = []
    looked_at = 0
    waiting = [root]
    while waiting:
        node = waiting.pop()
        looked_at += 1
        if node.is_error or node.is_missing or _is_lost_name(node):
            found.append(node)
        if node.has_error:
            waiting += reversed(node.children)
    return tuple(found), looked_at


def _is_lost_name(node: Node) -> bool:
    return node.child_count == 0 and node.has_error and node.start_byte == node.end_byte


def _leaves(node: Node, low: int, high: int) -> Iterator[Node]:
    """Yield the tokens between two positions, comments left out."""
    if node.end_byte < low or node.start_byte > high or node.type == "comment":
        return
    if node.child_count == 0:
        if node.end_byte > node.start_byte:
            yield node
        return
    for child in node.children:
        yield from _leaves(child, low, high)


def _place(found: Diagnosis) -> _Place:
    root = found.tree.root_node
    errors, _ = _errors(root)
    start = min((error.start_byte for error in _innermost(errors)), default=0)
    leaves = tuple(_leaves(root, start - _WINDOW, start + _WINDOW))
    index = next((at for at, leaf in enumerate(leaves) if leaf.end_byte > start), len(leaves) - 1)
    last = tuple(_leaves(root, root.end_byte - _WINDOW, root.end_byte))[-1:]
    return _Place(leaves, max(index, 0), errors, last[0] if last else None)


def _innermost(errors: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the errors that hold no other error: an outer one starts long before its cause."""
    inner = tuple(
        error for error in errors if error.is_missing or not any(map(_has_error, error.children))
    )
    return inner or errors


def _has_error(node: Node) -> bool:
    return node.is_error or node.has_error


def _changes(found: Diagnosis) -> Iterator[_Change]:
    """Yield changes to try, the most telling first."""
    place = _place(found)
    yield from _line_removals(found, place)
    yield from _renamings(found, place)
    yield from _quotes(found, place)
    yield from _insertions(place)
    yield from _brace_removals(place)


def _line_removals(found: Diagnosis, place: _Place) -> Iterator[_Change]:
    """Yield lines inside errors that are no code at all: fences, prose, placeholders."""
    first, last = _rows(place)
    lines = found.code.split(b"\n")
    offset = sum(len(line) + 1 for line in lines[:first])
    run: list[_Change] = []
    for row in range(first, min(last + 1, len(lines))):
        line = lines[row]
        message = leftover(line.decode("utf-8", "replace"))
        if message:
            fault = SyntaxFault(row + 1, message, "ARTIFACT")
            run.append(_Change(offset, offset + len(line), _BLANKED.sub(b" ", line), fault))
            yield from _placeholders(line, offset, fault)
        offset += len(line) + 1
    if len(run) > 1:
        # A fence alone does not make its pair legal.
        for row in {change.fault.line - 1 for change in run}:
            lines[row] = _BLANKED.sub(b" ", lines[row])
        yield _Change(0, len(found.code), b"\n".join(lines), run[0].fault)
    yield from run


def _placeholders(line: bytes, offset: int, fault: SyntaxFault) -> Iterator[_Change]:
    """Yield a name for a template's placeholder, so that the line around it can be read."""
    for match in _PLACEHOLDER.finditer(line):
        name = f"_{match[1].decode()}_"
        start, end = offset + match.start(), offset + match.end()
        yield _Change(start, end, name.encode(), fault, (name, match[0].decode()))


def _rows(place: _Place) -> tuple[int, int]:
    rows = [row for error in place.errors for row in (error.start_point.row, error.end_point.row)]
    first = max(min(rows, default=0) - 1, 0)
    return first, min(max(rows, default=0), first + _MANY_LINES)


def _renamings(found: Diagnosis, place: _Place) -> Iterator[_Change]:
    """Yield names in the lines of the errors that are no identifiers, with a stand-in for each."""
    first, last = _rows(place)
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
            yield _Change(start, end, stand_in.encode(), fault, (stand_in, name))


def _illegal_name(name: str) -> str:
    rule = "write a PascalCase name of letters and digits"
    return f"{in_quotes(name)} is no legal C# identifier; {rule}"


def _insertions(place: _Place) -> Iterator[_Change]:
    """Yield a lost token at the ends of the lines up to the first fault, near it, and at the end.

    The grammar notices a loss only later: a missing enum comma, at the member after.
    """
    leaves, index = place.leaves, place.index
    if not leaves:
        return
    near = range(max(index - _REACH, 0), min(index + _REACH, len(leaves) - 1))
    line_ends = [at for at in near if _row(leaves[at]) < _row(leaves[at + 1])]
    before = [at for at in line_ends if at < index][-_LINES:]
    on_row = [at for at in line_ends if at >= index][:1]
    positions = dict.fromkeys((*before, index - 1, index, *on_row))
    for leaf in (*(leaves[at] for at in positions if at >= 0), place.last):
        if leaf is not None:
            for token in _TOKENS:
                yield _insertion(leaf.end_byte, token, leaf)
    first = next((leaf for leaf in leaves if _row(leaf) == _row(leaves[index])), leaves[index])
    yield _insertion(first.start_byte, b"[", first)


def _row(node: Node) -> int:
    return node.end_point.row


def _quotes(found: Diagnosis, place: _Place) -> Iterator[_Change]:
    """Yield a lost quotation mark in the first line of the errors that has an odd number."""
    first, last = _rows(place)
    offset = 0
    for row, line in enumerate(found.code.split(b"\n")):
        if first <= row <= last and line.count(b'"') % 2:
            for match in re.finditer(rb"(?<=\()|(?=\))", line):
                at = offset + match.start()
                fault = SyntaxFault(row + 1, "a quotation mark is missing in this line")
                yield _Change(at, at, b'"', fault)
        offset += len(line) + 1


def _insertion(position: int, token: bytes, near: Node) -> _Change:
    text = (near.text or b"").decode("utf-8", "replace")[:40]
    side = "before" if position == near.start_byte else "after"
    message = f"a {in_quotes(token.decode())} is missing {side} {in_quotes(text)}"
    # Between blanks, so that the token joins nothing; a comment never follows on the same line.
    return _Change(
        position, position, b" " + token + b" ", SyntaxFault(near.end_point.row + 1, message)
    )


def _brace_removals(place: _Place) -> Iterator[_Change]:
    """Yield braces near the first fault that may be one too many."""
    leaves, index = place.leaves, place.index
    for at in reversed(range(max(index - 2, 0), min(index + 2, len(leaves)))):
        leaf = leaves[at]
        if leaf.text in (b"}", b"{", b";", b","):
            message = f"this {in_quotes(leaf.text.decode())} is one too many"
            fault = SyntaxFault(leaf.start_point.row + 1, message)
            yield _Change(leaf.start_byte, leaf.end_byte, b" ", fault)


def _unknown_fault(found: Diagnosis, original: bytes) -> SyntaxFault:
    """Return a fault for the first error that no small change repairs."""
    errors = _innermost(_errors(found.tree.root_node)[0])
    row = min((error.start_point.row for error in errors), default=0)
    lines = original.decode("utf-8", "replace").split("\n")
    shown = lines[row].strip()[:80] if row < len(lines) else ""
    if not shown:
        return SyntaxFault(row + 1, "not legal C#: the code ends too early", in_member=False)
    return SyntaxFault(row + 1, f"not legal C#: {in_quotes(shown)}")


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
