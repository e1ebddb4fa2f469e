"""Syntax trees within limits: whatever a text holds, it is parsed in bounded time and depth."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from time import thread_time
from typing import Final

from pytest_regen.extras import needs
from pytest_regen.languages import artifacts
from pytest_regen.languages.base import SyntaxFault
from pytest_regen.text import in_quotes

with needs("openapi", "stores of generated code"):
    import tree_sitter
    from tree_sitter import Parser, Tree

Node = tree_sitter.Node
_DEEPEST: Final = 200
"""Levels of a tree at most, so that code that walks one may recurse. A page has about 15."""
_SHORT: Final = 2_000
"""Bytes that are parsed at once, whatever they are."""
_SECONDS: Final = 0.25
_SECONDS_PER_BYTE: Final = 1e-6
"""Processor time for a longer text. Code takes a tenth of it or less; from some errors a grammar
recovers in time that grows with the square of the text: from ``A<A<A<...`` in C#, for one."""
_CHUNK: Final = 65_536
_MANY: Final = 1_000
_VISIBLE = re.compile(rb"[^\r\n]")
_STRAY: Final = b"\x01"
"""What no language has outside of strings and comments."""


class Grammar:
    """The grammar of one language.

    Args:
        title: what people call the language.
        load: returns the grammar, as a package of tree-sitter has it.
        chains: kinds of nodes that stand in each other as often as there are items, like the unions
            of TypeScript. Such a chain counts as one level; code that walks it must not recurse.
    """

    def __init__(
        self, title: str, load: Callable[[], object], *, chains: frozenset[str] = frozenset()
    ) -> None:
        self.title = title
        self._load = load
        self._chains = chains
        self._too_slow: set[int] = set()
        """Hashes of texts that took too long."""

    @cached_property
    def language(self) -> tree_sitter.Language:
        """The grammar itself, loaded once."""
        return tree_sitter.Language(self._load())

    def parse(self, code: bytes) -> Tree:
        """Return the syntax tree of ``code`` (UTF-8). Never fails: errors are nodes of the tree.

        Of what is nested more than 200 levels deep, or takes too long, it is one error: a stray
        character, and blanks.
        """
        tree = self._parse_in_time(code)
        if tree is None or _too_deep(tree.root_node, self._chains):
            return Parser(self.language).parse(_STRAY + _VISIBLE.sub(b" ", code[1:]))
        return tree

    def why_unreadable(self, code: bytes) -> SyntaxFault | None:
        """Return why ``parse`` gives nothing of a text, if it does not."""
        tree = self._parse_in_time(code)
        if tree is None:
            return SyntaxFault(1, f"this cannot be read: it is far from being {self.title}")
        node = _too_deep(tree.root_node, self._chains)
        message = f"this is nested more than {_DEEPEST} levels deep"
        return SyntaxFault(node.start_point.row + 1, message) if node else None

    def _parse_in_time(self, code: bytes) -> Tree | None:
        """Return the tree as the grammar gives it, or ``None`` where that takes too long."""
        # A new one each time, because a parser that was stopped would go on with its last text.
        parser = Parser(self.language)
        if len(code) <= _SHORT:
            return parser.parse(code)
        if hash(code) in self._too_slow:
            return None
        end = thread_time() + _SECONDS + _SECONDS_PER_BYTE * len(code)
        tree: Tree | None = None
        with suppress(ValueError):
            tree = parser.parse(
                lambda start, _: code[start : start + _CHUNK],
                progress_callback=lambda *_: thread_time() > end,
            )
        if tree is None:
            # Emptied at times, because a session may meet any number of such texts.
            if len(self._too_slow) >= _MANY:
                self._too_slow.clear()
            self._too_slow.add(hash(code))
        return tree


def first_fault(
    grammar: Grammar, code: bytes, is_loose: Callable[[Node], bool]
) -> SyntaxFault | None:
    """Return the first place where ``code`` is not legal; ``None`` where all of it is.

    What follows it is not looked at: a grammar that has lost its way says little that helps, and
    the code is asked for again.

    Args:
        grammar: of its language.
        code: UTF-8.
        is_loose: whether a node at the top level is no declaration, though the grammar takes it.
    """
    root = grammar.parse(code).root_node
    node = next((child for child in root.children if child.has_error or is_loose(child)), None)
    if node is None and not root.has_error:
        return None
    unreadable = grammar.why_unreadable(code)
    if unreadable or node is None:
        return unreadable or SyntaxFault(1, f"not legal {grammar.title}")
    inner = node
    while inner.has_error and not inner.is_missing:
        # The innermost error: an outer one starts long before its cause.
        inside = next((child for child in inner.children if child.has_error), None)
        if inside is None:
            break
        inner = inside
    return _fault_at(grammar.title, code, node, inner)


def _fault_at(title: str, code: bytes, node: Node, inner: Node) -> SyntaxFault:
    """Return the fault of the first node that is no code, and of the innermost error in it."""
    lines = code.decode("utf-8", "replace").split("\n")
    first, last = node.start_point.row, inner.end_point.row
    for row in range(first, min(last + 1, len(lines))):
        if lines[row].lstrip().startswith(("/**", "*", "///")):
            # Not a leftover, because the document's own words may look like a list or prose.
            continue
        message = artifacts.leftover(lines[row])
        if message and not inner.is_missing:
            return SyntaxFault(row + 1, message, "ARTIFACT", in_member=False)
    row = inner.start_point.row
    shown = lines[row].strip()[:80] if row < len(lines) else ""
    # Counted, because braces in strings are rare and the answer only chooses between two messages.
    is_open = inner.is_error and code.count(b"{") > code.count(b"}")
    is_last = not code[inner.end_byte :].strip()
    if is_last and (is_open or inner.is_missing or not shown):
        # An error begins with the declaration where nothing closes it: its end is what is wrong.
        row = len(code.rstrip().split(b"\n")) - 1
        return SyntaxFault(row + 1, f"not legal {title}: the code ends too early", in_member=False)
    if inner.is_missing:
        what = f"{in_quotes(inner.type)} is missing after {in_quotes(shown)}"
        return SyntaxFault(row + 1, f"not legal {title}: {what}")
    if not inner.has_error:
        return SyntaxFault(row + 1, f"this stands outside of every type: {in_quotes(shown)}")
    return SyntaxFault(row + 1, f"not legal {title}: {in_quotes(shown)}")


def comment_faults(root: Node, is_documentation: Callable[[str], bool]) -> Iterator[SyntaxFault]:
    """Yield the comments that stand for code, and those that ask for review.

    Args:
        root: of a source.
        is_documentation: whether the text of a comment comes from the document.
    """
    for node in walk(root):
        if node.type == "comment":
            text = text_of(node)
            line = node.start_point.row + 1
            fault = artifacts.fault_of_comment(text, line, is_documentation=is_documentation(text))
            if fault is not None:
                yield fault


def _too_deep(root: Node, chains: frozenset[str]) -> Node | None:
    """Return a node at the deepest level that has nodes below it."""
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth == _DEEPEST:
            return node
        # A branch has no more levels than nodes: nearly all of a source is passed over at once.
        if node.descendant_count > _DEEPEST - depth:
            is_chain = node.type in chains
            waiting += [
                (child, depth if is_chain and child.type == node.type else depth + 1)
                for child in node.children
                if child.child_count
            ]
    return None


def text_of(node: Node) -> str:
    """Return the source text of ``node``."""
    return (node.text or b"").decode("utf-8", "replace")


def child_of(node: Node, kind: str) -> Node | None:
    """Return the first child of a kind."""
    return next((child for child in node.children if child.type == kind), None)


def walk(node: Node) -> Iterator[Node]:
    """Yield ``node`` and all below it, in source order."""
    # No recursion, because a tree may be deeper than the interpreter's stack.
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed(found.children)


def leaves(grammar: Grammar, code: str, atoms: frozenset[str]) -> tuple[str, ...]:
    """Return the tokens and comments of ``code``, without the white space between them.

    White space inside comments is levelled, inside strings it is kept. Text that the grammar
    skips counts too, so that nothing but white space can change unseen.

    Args:
        grammar: of its language.
        code: any text; line ends do not count.
        atoms: kinds of nodes that are one token, whatever is below them.
    """
    plain = code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    data = plain.encode("utf-8", "surrogatepass")
    texts: list[str] = []
    position, waiting = 0, [grammar.parse(data).root_node]
    while waiting:
        node = waiting.pop()
        if node.child_count and node.type not in atoms:
            waiting += reversed(node.children)
            continue
        text = data[node.start_byte : node.end_byte]
        # Beside white space, what stands between two nodes is text that the grammar gave up on.
        texts += _words(data[position : node.start_byte])
        if node.type == "comment":
            texts.append(" ".join(_words(text)))
        elif text:
            texts.append(text.decode("utf-8", "surrogatepass"))
        position = max(position, node.end_byte)
    return (*texts, *_words(data[position:]))


def _words(data: bytes) -> list[str]:
    return data.decode("utf-8", "surrogatepass").split()
