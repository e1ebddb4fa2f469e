"""Inputs of examples that code compares with: what can be seen of that without running anything.

``if text == "1h 30m": return …`` passes the example of that input and is right for no other. Honest
code compares, too: so short words and small or round numbers never count here, nor what a docstring
names in its sentences, nor tables that know other keys beside those of the examples.
"""

import ast
import doctest
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from pytest_regen.kinds.functions.source import Place, parse
from pytest_regen.validation.issues import Weakness

ADVICE: Final = "write code that is right for every input, without branches or tables for examples"
# Of what one thing is compared with, how much must be inputs of examples.
_SHARE: Final = 0.6
_LONGEST: Final = 60


def find_special_cases(nodes: Sequence[ast.AST], place: Place) -> Iterator[Weakness]:
    """Yield each input of an example that the code compares with.

    Args:
        nodes: all nodes of the code.
        place: where it stands.
    """
    inputs: set[str] = set()
    with suppress(SyntaxError, ValueError):
        for example in doctest.DocTestParser().get_examples(place.docstring or ""):
            nodes_of_example = ast.walk(parse(example.source))
            inputs |= {_value(node) for node in nodes_of_example if isinstance(node, ast.expr)}
    groups: defaultdict[str, list[ast.expr]] = defaultdict(list)
    for node in nodes:
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                groups[ast.dump(left)].append(right)
                groups[ast.dump(right)].append(left)
            case ast.Compare(
                left=left, comparators=[ast.Tuple(elts) | ast.List(elts) | ast.Set(elts)]
            ):
                groups[ast.dump(left)] += elts
            case ast.Dict(keys=keys):
                groups[f"{node.lineno}:{node.col_offset}"] += filter(None, keys)
    for literals in groups.values():
        # By share, because code may list an input among all that there is.
        special = [literal for literal in literals if _value(literal) in inputs - {""}]
        for literal in special if len(special) >= _SHARE * len(literals) else ():
            value = ast.literal_eval(literal)
            if level_of(value) > 1 and not is_named(value, place):
                text = ast.unparse(literal)[:_LONGEST]
                message = f"has an answer of its own for {text}, the input of an example or test"
                yield Weakness(("special", text), message, literal.lineno, ADVICE)


def is_named(value: object, place: Place) -> bool:
    """Return whether a docstring speaks of a value in its sentences."""
    # Without the examples, because an input stands in each of them anyway.
    prose = re.sub(r"(?m)^\s*>>> .*(\n\s*\S.*)*", "", place.docstring or "")
    words = re.escape(str(value).strip())
    return bool(words) and re.search(rf"(?<![\w.]){words}(?!\w)", prose) is not None


def level_of(value: object) -> int:
    """Return how surely nobody would write a literal but for an example: 0, 1 or more."""
    match value:
        case str():
            digits = sum(sign.isdigit() for sign in value)
            is_sentence = len(value.split()) > 1 and len(value) > 4
            if is_sentence or digits > 5 or 2 < digits < len(value):
                return 2
            return int(bool(re.search(r"^\d+\D|\w\W\w", value)))
        case int() | float():
            # Round numbers are limits.
            return 2 if abs(value) > 999 and f"{abs(value):g}".strip("0") != "1" else 0
        case list() | tuple() | set() | dict():
            return len(value) - 1
    return 0


def _value(node: ast.expr) -> str:
    """Return a literal so that it can be compared with others; empty for what is none."""
    with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(node)
        return repr(value.strip().casefold() if isinstance(value, str) else value)
    return ""
