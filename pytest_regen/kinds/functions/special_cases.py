"""Branches and tables that know the inputs of examples and tests.

``if text == "1h 30m": return …`` passes the example of that input and is right for no other. Such
code differs from honest code, which has branches too, by the input: it is one that no rule of the
docstring singles out. So words, flags and small or round numbers never count, nor do tables that
know other keys beside those of the examples.
"""

import ast
import doctest
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pytest_regen.kinds.functions.source import Place, parse
from pytest_regen.validation.issues import Weakness

__all__ = ["find_special_cases"]

_ADVICE: Final = "write code that is right for every input, without branches or tables for examples"
_SHARE: Final = 0.6
"""Of the keys of a table, how many must be inputs of examples."""
_WORD: Final = re.compile(r"[a-z0-9]+")
_LONGEST: Final = 60


Value = tuple[object, ...]
"""A literal that can be compared with others, whatever its spelling."""


@dataclass
class _Examples:
    """The literals that examples and tests are made of."""

    inputs: dict[Value, str] = field(default_factory=dict)
    """What is given, and how it is written."""
    outputs: dict[str, set[str]] = field(default_factory=dict)
    """Texts that are expected, and the words of what they are expected for."""
    prose: str = ""
    """What the docstring says beside its examples: what it names there is a rule."""


class _Case(NamedTuple):
    """An input that the code tells from all others."""

    subject: str
    """What is compared."""
    literal: ast.expr
    outcome: ast.AST | None
    """What comes of it; ``None`` where that is not one value."""


def find_special_cases(
    nodes: Sequence[ast.AST], place: Place, tests: Sequence[str]
) -> Iterator[Weakness]:
    """Yield each input of an example or a test that the code has an answer of its own for.

    Args:
        nodes: all nodes of the code.
        place: where it stands.
        tests: the sources of the tests that asked for it.
    """
    examples = _read_examples(place, tests)
    if not examples.inputs:
        return
    names = {node.arg for node in ast.walk(place.node.args) if isinstance(node, ast.arg)}
    names |= {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    groups: dict[str, list[_Case]] = {}
    for case in _cases(nodes):
        if _is_named(case.literal, examples.prose):
            continue
        groups.setdefault(case.subject, []).append(case)
    for group in groups.values():
        yield from _judge(group, examples, names)
    yield from _returned(nodes, examples)


def _judge(group: Sequence[_Case], examples: _Examples, names: set[str]) -> Iterator[Weakness]:
    keys = {value for case in group if (value := _value(case.literal))}
    known = [case for case in group if _matches(case.literal, examples)]
    levels = [_level(case.literal) for case in known]
    if not known or len(keys & _all(examples)) < _SHARE * len(keys):
        return
    knows_others = len(known) < len(group)
    if max(levels) <= int(knows_others):
        return
    several = len(known) == len(group) > 1 and min(levels) > 0
    for case, level in zip(known, levels, strict=True):
        is_constant = case.outcome is not None and _is_constant(case.outcome, names)
        tells = is_constant and (level > 1 or (level == 1 and not _is_plain(case.outcome)))
        if tells or several:
            shown = _clip(ast.unparse(case.literal))
            yield Weakness(
                ("special", repr(_value(case.literal))),
                f"has an answer of its own for {shown}, the input of an example or test",
                getattr(case.literal, "lineno", None),
                _ADVICE,
            )


def _is_named(literal: ast.expr, prose: str) -> bool:
    """Return whether a docstring speaks of a literal in its sentences."""
    match literal:
        case ast.Constant(value=str() | int() | float() as value) if str(value).strip():
            shown = re.escape(str(value).strip())
            return re.search(rf"(?<![\w.]){shown}(?!\w)", prose) is not None
    return False


def _all(examples: _Examples) -> set[Value]:
    return set(examples.inputs)


def _matches(literal: ast.expr, examples: _Examples) -> bool:
    value = _value(literal)
    return value is not None and value in examples.inputs


# What the code compares


def _cases(nodes: Sequence[ast.AST]) -> Iterator[_Case]:
    for node in nodes:
        match node:
            case ast.If(test=test, body=[first, *_]):
                yield from _compared(test, _outcome(first))
            case ast.IfExp(test=test, body=body):
                yield from _compared(test, body)
            case ast.Match():
                yield from _matched(node)
            case ast.Dict(keys=keys, values=values) if keys:
                for key, value in zip(keys, values, strict=True):
                    if key is not None:
                        yield _Case(f"table {node.lineno}:{node.col_offset}", key, value)


def _matched(node: ast.Match) -> Iterator[_Case]:
    for case in node.cases:
        for pattern in ast.walk(case.pattern):
            if isinstance(pattern, ast.MatchValue):
                yield _Case(_shown(node.subject), pattern.value, _outcome(case.body[0]))


def _compared(test: ast.expr, outcome: ast.AST | None) -> Iterator[_Case]:
    for node in ast.walk(test):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                literal, subject = (right, left) if _value(right) is not None else (left, right)
                if _value(literal) is not None:
                    yield _Case(_shown(subject), literal, outcome)
            case ast.Compare(
                left=left,
                ops=[ast.In()],
                comparators=[ast.Tuple() | ast.List() | ast.Set() as held],
            ):
                for one in held.elts:
                    yield _Case(_shown(left), one, outcome)


def _shown(node: ast.AST) -> str:
    return ast.dump(node)


def _outcome(node: ast.stmt) -> ast.AST | None:
    match node:
        case ast.Return(value=value) | ast.Assign(value=value) | ast.AnnAssign(value=value):
            return value
        case ast.Expr(value=ast.Yield(value=value)):
            return value
    return None


def _is_constant(node: ast.AST, names: set[str]) -> bool:
    return not any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))


def _is_plain(node: ast.AST | None) -> bool:
    """Return whether a constant is one that many inputs may lead to: a flag, nothing, zero."""
    match node:
        case ast.Constant(value=value):
            return value is None or value in {"", 0, 1, -1}  # and so are False and True
        case ast.List(elts=held) | ast.Tuple(elts=held) | ast.Set(elts=held):
            return not held
        case ast.Dict(keys=keys):
            return not keys
        case ast.UnaryOp(operand=operand):
            return _is_plain(operand)
        case ast.Name() | ast.Attribute():
            return True
    return False


# Literals


def _value(node: ast.AST | None) -> Value | None:
    """Return a literal, or a call of literals, so that it can be compared; ``None`` for others."""
    match node:
        case ast.Constant(value=str() as text):
            return _of_text(text)
        case ast.Constant(value=bool() | None):
            return None
        case ast.Constant(value=number):
            return (
                ("number", number) if isinstance(number, int | float) else ("other", repr(number))
            )
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return "number", -number
        case ast.Tuple(elts=held) | ast.List(elts=held) | ast.Set(elts=held):
            # In any order: what is compared may be sorted before.
            values = [_value(one) for one in held]
            return None if None in values else ("several", *sorted(map(repr, values)))
        case ast.Dict(keys=keys, values=held):
            pairs = [(_value(key), _value(one)) for key, one in zip(keys, held, strict=True)]
            is_known = all(None not in pair for pair in pairs)
            return ("pairs", *sorted(map(repr, pairs))) if is_known else None
        case ast.Call(func=ast.Name() | ast.Attribute() as func, args=[_, *_] as args, keywords=[]):
            values = [_value(one) for one in args]
            return None if None in values else ("call", ast.unparse(func), *map(repr, values))
    return None


def _of_text(text: str) -> Value:
    if text[:1] in {"[", "(", "{"}:
        with suppress(SyntaxError, ValueError, MemoryError, RecursionError):
            inner = _value(ast.parse(text, mode="eval").body)
            if inner is not None:
                return inner
    return "text", text.strip().casefold()


def _level(node: ast.expr) -> int:
    """Return how surely nobody would write a literal but for an example: 0, 1 or 2."""
    match node:
        case ast.Constant(value=str() as text):
            return _level_of_text(text.strip())
        case ast.Constant(value=int() | float() as number):
            return _level_of_number(number)
        case ast.UnaryOp(operand=operand):
            return _level(operand)
        case ast.Tuple(elts=held) | ast.List(elts=held) | ast.Set(elts=held):
            return 2 if len(held) > 2 else int(len(held) == 2)
        case ast.Dict(keys=keys):
            return 2 if len(keys) > 1 else len(keys)
        case ast.Call(args=args):
            return max(map(_level, args), default=0)
    return 0


def _level_of_text(text: str) -> int:
    digits = sum(character.isdigit() for character in text)
    if len(text.split()) > 1 and len(text) > 4:
        return 2
    if text[:1] in {"[", "("}:
        return 2
    if digits > 2 and len(text) > digits:
        return 2
    return int(bool(digits) and digits < len(text) > 2 and text[0].isdigit())


def _level_of_number(number: float) -> int:
    size = abs(number)
    if size != int(size):
        return 1 if len(f"{size:g}".replace(".", "")) > 2 else 0
    size = int(size)
    is_round = size < 100 or size % 10 in {0, 5} or size & (size - 1) == 0
    is_round = is_round or (size + 1) & size == 0 or (size + 1) % 10 == 0
    if is_round:
        return 0
    return 2 if size > 999 else 1


# Texts that are returned as they are expected


def _returned(nodes: Sequence[ast.AST], examples: _Examples) -> Iterator[Weakness]:
    """Yield texts that are returned as they are expected, though they are made of the input."""
    returns = [node for node in nodes if isinstance(node, ast.Return)]
    for node in returns if len(returns) > 1 else ():
        match node.value:
            case ast.Constant(value=str() as text):
                words = _words(text)
                given = examples.outputs.get(text, set())
                if len(words) > 1 and words <= given:
                    message = f"returns {_clip(repr(text))}, just what an example or test expects"
                    yield Weakness(("returned", text), message, node.lineno, _ADVICE)


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _words(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return set(_WORD.findall(plain))


# Examples


def _read_examples(place: Place, tests: Sequence[str]) -> _Examples:
    found = _Examples()
    if place.docstring and ">>>" in place.docstring:
        with suppress(ValueError):
            for part in doctest.DocTestParser().parse(place.docstring):
                if isinstance(part, str):
                    found.prose += part
                else:
                    _read(part.source, part.want, found)
    for test in tests:
        _read(test, "", found)
    return found


def _read(source: str, want: str, found: _Examples) -> None:
    """Take the literals of an example, or of a test."""
    try:
        tree = parse(_dedented(source))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            value = _value(node)
            if value is not None:
                found.inputs.setdefault(value, ast.unparse(node))
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                for one, other in ((left, right), (right, left)):
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        found.outputs.setdefault(one.value, set()).update(_given(other))
    with suppress(SyntaxError, ValueError, MemoryError, RecursionError):
        expected: object = ast.literal_eval(want.strip()) if want.strip() else None
        if isinstance(expected, str):
            found.outputs.setdefault(expected, set()).update(_given(tree))


def _given(node: ast.AST) -> set[str]:
    """Return the words in the texts of an expression."""
    texts = (
        one.value
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    )
    return {word for text in texts for word in _words(text)}


def _dedented(source: str) -> str:
    lines = source.split("\n")
    first = next((line for line in lines if line.strip()), "")
    width = len(first) - len(first.lstrip())
    return "\n".join(line[width:] if not line[:width].strip() else line for line in lines)
