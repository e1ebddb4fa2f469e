"""Why code is illegal: the smallest changes that make it legal, each with what it says of a fault.

A grammar tells where it lost its way, which is often far behind the fault. So likely slips near
that place are undone one by one, and what helps is the fault. Lines never move.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from time import thread_time
from typing import Final, NamedTuple

from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.trees import Grammar, Node, Tree
from pytest_regen.text import in_quotes

_BYTES_TO_SPEND: Final = 3_000_000
"""How much text is parsed, at most, to explain one illegal source: about a second's worth."""
_SECONDS_TO_SPEND: Final = 0.5
"""Processor time at most, where the grammar is slow to recover from errors."""
_BYTES_PER_NODE: Final = 12
"""What a node inside an error costs to look at, as text that could be parsed in the time."""
_ROUNDS: Final = 8
_WINDOW: Final = 8_000
"""How many bytes around the first fault are taken apart into tokens."""
_MANY_LINES: Final = 4_000
_REACH: Final = 60
"""How many tokens around the first fault are looked at."""
_LINES: Final = 4
_BLANKED: Final = re.compile(rb"[^\r]")
_PLACEHOLDER: Final = re.compile(rb"%?\{(\w+)\}")


class SlipRepair(NamedTuple):
    """Code without a kind of slip, and the faults that were undone."""

    code: bytes
    faults: tuple[SyntaxFault, ...]


class Cut(NamedTuple):
    """Where and how a reply ends too early."""

    line: int
    message: str
    code: bytes
    """The reply without its unfinished end, every bracket closed."""

    def repair(self) -> SlipRepair:
        """Return the closed code; that it ends too early is no fault of its last member."""
        return SlipRepair(self.code, (SyntaxFault(self.line, self.message, in_member=False),))


@dataclass(slots=True)
class Diagnosis:
    """A source made as legal as it could be, and what had to be changed for it."""

    code: bytes
    tree: Tree
    faults: list[SyntaxFault] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    """Stand-ins for illegal names, to what the source says."""


@dataclass(frozen=True, slots=True)
class Change:
    """A candidate: ``code[start:end]`` becomes ``text``."""

    start: int
    end: int
    text: bytes
    fault: SyntaxFault
    renamed: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Place:
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


class Doctor:
    """Finds what is wrong with code of one language.

    Args:
        grammar: of the language.
        changes: yields what may be tried near a fault, the most telling first.
        slips: yields what undoes each kind of slip that spoils code as text.
        loose: whether a node at the top level is no declaration, though the grammar takes it.
    """

    def __init__(
        self,
        grammar: Grammar,
        changes: Callable[[Diagnosis, Place], Iterator[Change]],
        slips: Callable[[bytes], Iterator[Callable[[bytes], SlipRepair | None]]],
        loose: Callable[[Node], bool],
    ) -> None:
        self._grammar = grammar
        self._changes = changes
        self._slips = slips
        self._loose = loose
        self.diagnose = lru_cache(maxsize=64)(self._diagnose)
        """Return what is wrong with code. The result is shared: callers must not change it."""

    def _diagnose(self, code: bytes) -> Diagnosis:
        found = Diagnosis(code, self._grammar.parse(code))
        rows = self._grammar.unreadable_rows(code)
        found.faults += [SyntaxFault(row + 1, why) for row, why in rows.items()]
        if found.faults:
            return found
        certain = self._without_slips(found)
        budget = _Budget()
        for _ in range(_ROUNDS):
            change = self._best_change(found, budget)
            if change is None:
                break
            found.faults.append(change.fault)
            if change.renamed:
                found.renamed[change.renamed[0]] = change.renamed[1]
        if found.tree.root_node.has_error:
            found.faults.append(self._unknown_fault(found, code))
        found.faults = [*certain, *_without_echoes(found.faults, certain)]
        return found

    def _without_slips(self, found: Diagnosis) -> list[SyntaxFault]:
        """Undo slips that spoil code as text, as far as that makes it more legal; return them."""
        certain: list[SyntaxFault] = []
        for undo in self._slips(found.code):
            badness, _ = self._badness(found.tree.root_node)
            undone = undo(found.code) if badness != (0, 0) else None
            if undone is None:
                continue
            tree = self._grammar.parse(undone.code)
            if self._badness(tree.root_node)[0] < badness:
                found.code, found.tree = undone.code, tree
                certain += undone.faults
        return certain

    def _best_change(self, found: Diagnosis, budget: _Budget) -> Change | None:
        """Make the change that helps most and return it; ``None`` where nothing helps or must."""
        badness, looked_at = self._badness(found.tree.root_node)
        best: tuple[tuple[int, int], Change, bytes, Tree] | None = None
        tried = self._changes(found, _place(found)) if badness != (0, 0) else ()
        for change in tried:
            if not budget.covers(len(found.code) + _BYTES_PER_NODE * looked_at):
                break
            candidate = found.code[: change.start] + change.text + found.code[change.end :]
            changed = self._grammar.parse(candidate)
            score, _ = self._badness(changed.root_node)
            if score < badness and (best is None or score < best[0]):
                best = score, change, candidate, changed
            if score == (0, 0):
                break
        if best is None:
            return None
        _, change, found.code, found.tree = best
        return change

    def _badness(self, root: Node) -> tuple[tuple[int, int], int]:
        """Return how many errors and loose statements a tree has and how many bytes errors cover.

        With it comes how many nodes were looked at for it.
        """
        errors, looked_at = _errors(root)
        loose = sum(map(self._loose, root.named_children))
        size = sum(node.end_byte - node.start_byte for node in errors)
        return (loose + len(errors), size), looked_at

    def _unknown_fault(self, found: Diagnosis, original: bytes) -> SyntaxFault:
        """Return a fault for the first error that no small change repairs."""
        errors = innermost_errors(_errors(found.tree.root_node)[0])
        row = min((error.start_point.row for error in errors), default=0)
        lines = original.decode("utf-8", "replace").split("\n")
        shown = lines[row].strip()[:80] if row < len(lines) else ""
        title = self._grammar.title
        if not shown:
            message = f"not legal {title}: the code ends too early"
            return SyntaxFault(row + 1, message, in_member=False)
        return SyntaxFault(row + 1, f"not legal {title}: {in_quotes(shown)}")


def _without_echoes(faults: list[SyntaxFault], certain: list[SyntaxFault]) -> list[SyntaxFault]:
    """Return the faults without those that only follow from the one found just before, nearby."""
    kept = list(certain)
    for fault in faults:
        if not any(abs(fault.line - other.line) <= _LINES for other in kept):
            kept.append(fault)
    return kept[len(certain) :]


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


def innermost_errors(errors: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the errors that hold no other error: an outer one starts long before its cause."""
    inner = tuple(
        error for error in errors if error.is_missing or not any(map(_has_error, error.children))
    )
    return inner or errors


def _has_error(node: Node) -> bool:
    return node.is_error or node.has_error


def _leaves(top: Node, low: int, high: int) -> Iterator[Node]:
    """Yield the tokens between two positions, comments left out."""
    waiting = [top]
    while waiting:
        node = waiting.pop()
        if node.end_byte < low or node.start_byte > high or node.type == "comment":
            continue
        if node.child_count:
            waiting += reversed(node.children)
        elif node.end_byte > node.start_byte:
            yield node


def _place(found: Diagnosis) -> Place:
    root = found.tree.root_node
    errors, _ = _errors(root)
    start = min((error.start_byte for error in innermost_errors(errors)), default=0)
    leaves = tuple(_leaves(root, start - _WINDOW, start + _WINDOW))
    index = next((at for at, leaf in enumerate(leaves) if leaf.end_byte > start), len(leaves) - 1)
    last = tuple(_leaves(root, root.end_byte - _WINDOW, root.end_byte))[-1:]
    return Place(leaves, max(index, 0), errors, last[0] if last else None)


# --- changes that any language may try -----------------------------------------------------------


def rows_of(place: Place) -> tuple[int, int]:
    """Return the first and the last line, counted from 0, on which errors stand."""
    rows = [row for error in place.errors for row in (error.start_point.row, error.end_point.row)]
    first = max(min(rows, default=0) - 1, 0)
    return first, min(max(rows, default=0), first + _MANY_LINES)


def line_removals(
    found: Diagnosis, place: Place, leftover: Callable[[str], str | None]
) -> Iterator[Change]:
    """Yield lines inside errors that are no code at all: fences, prose, placeholders.

    Args:
        found: the code so far.
        place: of the errors.
        leftover: returns what is wrong with a line that no compiler would ever take.
    """
    first, last = rows_of(place)
    lines = found.code.split(b"\n")
    offset = sum(len(line) + 1 for line in lines[:first])
    run: list[Change] = []
    for row in range(first, min(last + 1, len(lines))):
        line = lines[row]
        message = leftover(line.decode("utf-8", "replace"))
        if message:
            fault = SyntaxFault(row + 1, message, "ARTIFACT")
            run.append(Change(offset, offset + len(line), _BLANKED.sub(b" ", line), fault))
            yield from _placeholders(line, offset, fault)
        offset += len(line) + 1
    if len(run) > 1:
        # A fence alone does not make its pair legal.
        for row in {change.fault.line - 1 for change in run}:
            lines[row] = _BLANKED.sub(b" ", lines[row])
        yield Change(0, len(found.code), b"\n".join(lines), run[0].fault)
    yield from run


def _placeholders(line: bytes, offset: int, fault: SyntaxFault) -> Iterator[Change]:
    """Yield a name for a template's placeholder, so that the line around it can be read."""
    for match in _PLACEHOLDER.finditer(line):
        name = f"_{match[1].decode()}_"
        start, end = offset + match.start(), offset + match.end()
        yield Change(start, end, name.encode(), fault, (name, match[0].decode()))


def insertions(place: Place, tokens: tuple[bytes, ...]) -> Iterator[Change]:
    """Yield a lost token at the ends of the lines up to the first fault, near it, and at the end.

    A grammar notices a loss only later: a missing comma, at the item after.
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
            for token in tokens:
                yield insertion(leaf.end_byte, token, leaf)


def first_on_line(place: Place) -> Node | None:
    """Return the first token on the line of the first fault."""
    leaves, index = place.leaves, place.index
    if not leaves:
        return None
    return next((leaf for leaf in leaves if _row(leaf) == _row(leaves[index])), leaves[index])


def _row(node: Node) -> int:
    return node.end_point.row


def insertion(position: int, token: bytes, near: Node) -> Change:
    """Return a lost token put at ``position``; the message names the token ``near`` it."""
    text = (near.text or b"").decode("utf-8", "replace")[:40]
    side = "before" if position == near.start_byte else "after"
    message = f"a {in_quotes(token.decode())} is missing {side} {in_quotes(text)}"
    # Between blanks, so that the token joins nothing; a comment never follows on the same line.
    return Change(
        position, position, b" " + token + b" ", SyntaxFault(near.end_point.row + 1, message)
    )


def removals(place: Place, tokens: tuple[bytes, ...]) -> Iterator[Change]:
    """Yield tokens near the first fault that may be one too many."""
    leaves, index = place.leaves, place.index
    for at in reversed(range(max(index - 2, 0), min(index + 2, len(leaves)))):
        leaf = leaves[at]
        if leaf.text in tokens:
            message = f"this {in_quotes(leaf.text.decode())} is one too many"
            fault = SyntaxFault(leaf.start_point.row + 1, message)
            yield Change(leaf.start_byte, leaf.end_byte, b" ", fault)


def quotes(found: Diagnosis, place: Place, ends: re.Pattern[bytes]) -> Iterator[Change]:
    """Yield a lost quotation mark in the lines of the errors that have an odd number.

    Args:
        found: the source.
        place: of the fault.
        ends: matches the empty text where a mark may have stood.
    """
    first, last = rows_of(place)
    offset = 0
    for row, line in enumerate(found.code.split(b"\n")):
        if first <= row <= last and line.count(b'"') % 2:
            for match in ends.finditer(line):
                at = offset + match.start()
                fault = SyntaxFault(row + 1, "a quotation mark is missing in this line")
                yield Change(at, at, b'"', fault)
        offset += len(line) + 1
