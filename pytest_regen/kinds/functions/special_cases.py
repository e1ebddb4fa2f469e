"""Answers that code has for the inputs of examples and tests alone.

Some show in the code: ``if text == "1h 30m": return …`` passes the example of that input and is
right for no other. Honest code compares, too: so short words and small or round numbers never count
here, nor what a docstring names in its sentences, nor tables that know other keys beside those of
the examples.

The rest is found with inputs near to those of examples. A candidate runs in the sandbox, with one
constant of its code changed at a time. A constant that decides what comes of an example, and of no
input near to it, was written for that example. Honest code has such constants where it lists what
there is: there, others of them decide other inputs.
"""

import ast
import doctest
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Final, NamedTuple

from pytest_regen import sandbox
from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import Marks, Place, parse
from pytest_regen.text import in_quotes
from pytest_regen.units.kind import Unit
from pytest_regen.validation.issues import Weakness

_ADVICE: Final = "write code that is right for every input, without branches or tables for examples"
# Of what one thing is compared with, how much must be inputs of examples.
_SHARE: Final = 0.6
_LONGEST: Final = 60
_OBJECT: Final = "_regen_constants"

_Constant = int | float | str


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
            if _level_of(value) > 1 and not _is_named(value, place):
                text = ast.unparse(literal)[:_LONGEST]
                message = f"has an answer of its own for {text}, the input of an example or test"
                yield Weakness(("special", text), message, literal.lineno, _ADVICE)


def _is_named(value: object, place: Place) -> bool:
    """Return whether a docstring speaks of a value in its sentences."""
    # Without the examples, because an input stands in each of them anyway.
    prose = re.sub(r"(?m)^\s*>>> .*(\n\s*\S.*)*", "", place.docstring or "")
    words = re.escape(str(value).strip())
    return bool(words) and re.search(rf"(?<![\w.]){words}(?!\w)", prose) is not None


def _level_of(value: object) -> int:
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


class _Outcome(NamedTuple):
    """What an input leads to."""

    example: int
    """The number of the example that the input is, or is near to."""
    is_example: bool
    text: str
    inputs: Sequence[_Constant]
    """The numbers and texts in the input."""
    output: str
    decisive: Sequence[int]
    """The constants of the code that it depends on."""


def find_answers(project: Project, old: Place, new: Place, unit: Unit) -> Iterator[Weakness]:
    """Yield each example, or call of a test, that a candidate has an answer of its own for.

    Args:
        project: that the module belongs to.
        old: where the code stands.
        new: where the candidate does.
        unit: the candidate, with the tests that asked for it.

    Raises:
        SandboxError: nothing can be run.
    """
    source, constants = _lifted(new)
    values = [value for value, _ in constants]
    test = new.module.doctest(unit.name, str(unit.path))
    sources = [example.source for example in test.examples] if test else []
    question = {
        "name": new.qualname,
        "object": _OBJECT,
        "constants": values,
        "sources": [*sources, *map(textwrap.dedent, unit.tests)],
    }
    name, folder = project.module_of(unit.path)
    child = files("pytest_regen") / "kinds" / "functions" / "nearby_child.py"
    # One run of the sandbox for all inputs and constants, because its start takes most of the time.
    (result,) = sandbox.ask(
        [sandbox.Job(sandbox.Module(name, source, str(unit.path)), (question,))],
        handler=child.read_text("utf-8"),
        import_path=tuple(dict.fromkeys((folder, *project.import_path))),
        hidden=(unit.path,),
        limits=sandbox.Limits(seconds=5, cpu_seconds=5),
    )
    (answer,) = result.answers
    outcomes = [_Outcome(*facts) for facts in (answer.value if answer else None) or ()]
    stood = {value for value, _ in _lifted(old)[1]}
    examples = [outcome for outcome in outcomes if outcome.is_example]
    near = [outcome for outcome in outcomes if not outcome.is_example]
    plain = {at for at, value in enumerate(values) if value in ("", 0, 1, -1)}
    usual = plain.union(*(outcome.decisive for outcome in examples))
    # Honest code lists what there is: there, other constants decide other inputs.
    lists_results = any(_results(outcome, values, usual) for outcome in near)
    lists_keys = any(_keys(o, values, usual) - _results(o, values, usual) for o in near)
    # What the old code has was not taken from an example.
    plain |= {at for at, value in enumerate(values) if value in stood}
    # What decides another input is shared, but for parts of a text that this has as well.
    shared = plain.union(
        at
        for outcome in near
        for at in outcome.decisive
        if _level_of(values[at]) < 2 or at not in _keys(outcome, values, plain)
    )
    keyed = [{values[at] for at in _keys(outcome, values, shared)} for outcome in examples]
    is_several = sum(any(map(_level_of, keys)) for keys in keyed) > 1
    for outcome, keys in zip(examples, keyed, strict=True):
        if all(other.example != outcome.example for other in near):
            continue
        results = _results(outcome, values, shared)
        copied = _results(outcome, values, plain)
        # All items of a list, or of the like, may be constants of the code.
        words = "|".join(re.escape(repr(values[at])) for at in outcome.decisive)
        left = re.sub(rf"(?<![\w.])({words})(?![\w.])", "", outcome.output)
        is_written_out = outcome.output[:1] in {"[", "(", "{"} and not re.search(r"\w", left)
        if keys or not is_written_out:
            copied = {at for at in copied if _is_respelt(values[at], outcome)}
        special = keys or {values[at] for at in results | copied}
        if (lists_keys if keys else lists_results) or any(
            _is_named(value, new) for value in special
        ):
            continue
        # A word, or one of the smallest numbers, may have a rule of its own.
        (key,) = keys if len(keys) == 1 else (0.5,)
        has_rule = key in (2, -2) or (isinstance(key, str) and not _level_of(key))
        is_telling = any(_level_of(key) > 1 for key in keys)
        is_telling = is_telling or ((bool(results) or is_several) and not has_rule)
        if copied or (special and is_telling):
            call = in_quotes(f"{new.node.name}({outcome.text})"[:80])
            message = f"has an answer of its own for {call}, the input of an example or test"
            line = next(line for value, line in constants if value in special)
            yield Weakness(("special", outcome.text), message, line, _ADVICE)


def _keys(outcome: _Outcome, values: Sequence[_Constant], passed_over: set[int]) -> set[int]:
    """Return the constants that tell an input from others."""
    return {
        at
        for at in set(outcome.decisive) - passed_over
        if any(_is_in(values[at], given) for given in outcome.inputs)
    }


def _results(outcome: _Outcome, values: Sequence[_Constant], passed_over: set[int]) -> set[int]:
    """Return the constants that are what came of an input, or a part of that."""
    return {
        at
        for at in set(outcome.decisive) - passed_over
        if re.search(rf"(?<![\w.]){re.escape(repr(values[at]))}(?![\w.])", outcome.output)
    }


def _letters(value: _Constant) -> str:
    return re.sub(r"\W", "", str(value)).casefold()


def _is_in(value: _Constant, given: _Constant) -> bool:
    if not isinstance(value, str) or not isinstance(given, str):
        return value == given
    part, whole = _letters(value) or value, _letters(given) or given
    return part == whole or (len(part) > 3 and part in whole)


def _is_respelt(value: _Constant, outcome: _Outcome) -> bool:
    """Return whether a text is made of the letters of what is given."""
    texts = [given for given in outcome.inputs if isinstance(given, str)]
    letters = _letters(value)
    is_text = isinstance(value, str) and len(letters) > 2
    return is_text and not Counter(letters) - Counter("".join(texts).casefold())


def _lifted(place: Place) -> tuple[str, list[tuple[_Constant, int]]]:
    """Return a module whose code reads its constants from an object, and them with their lines."""
    tree = parse(sandbox.without_examples(place.module.with_bodies(place.module.spans)))
    lifter = _Lifter(place.marks)
    lifter.visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree)), lifter.constants


class _Lifter(ast.NodeTransformer):
    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self.constants: list[tuple[_Constant, int]] = []

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # The text between its values has to stay a constant.

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        # A number with a sign, or one with a part that is imaginary, has to stay one.
        return self.generic_visit(node) if isinstance(node.value, ast.Constant) else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, _Constant):
            return node
        if not self._marks.line_inside(node.lineno):
            return node
        self.constants.append((value, node.lineno))
        owner = ast.Name(_OBJECT, ast.Load())
        return ast.Attribute(owner, f"k{len(self.constants) - 1}", ast.Load())
