"""Answers that code has for the inputs of examples and tests alone, found with inputs near to them.

A candidate runs in the sandbox, with one constant of its code changed at a time. A constant that
decides what comes of an example, and of no input near to it, was written for that example. Honest
code has such constants where it lists what there is: there, others of them decide other inputs.
Code that keeps all that it replaces, and does as before for every input but those of the examples,
was written for them, too, whatever it tells them by.
"""

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from importlib.resources import files
from typing import Final, NamedTuple

from pytest_regen.kinds.functions.lint import nodes_of
from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import Marks, Place, canonical, parse
from pytest_regen.kinds.functions.special_cases import ADVICE, is_named, level_of
from pytest_regen.sandbox import Job, Limits, Module, ask, without_examples
from pytest_regen.text import in_quotes
from pytest_regen.units.kind import Unit
from pytest_regen.validation.issues import Weakness

_SECONDS: Final = 0.3
_OBJECT: Final = "_regen_constants"

_Constant = int | float | str


class _Outcome(NamedTuple):
    """What an input leads to."""

    example: int
    """The number of the example that the input is, or is near to."""
    is_example: bool
    text: str
    inputs: Sequence[_Constant]
    """The numbers and texts in the input."""
    output: str
    is_as_before: bool
    """The old code does the same."""
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
        "old": without_examples(old.module.with_bodies(old.module.spans)),
        "object": _OBJECT,
        "constants": values,
        "sources": [*sources, *map(textwrap.dedent, unit.tests)],
        "seconds": _SECONDS,
    }
    name, folder = project.module_of(unit.path)
    child = files("pytest_regen") / "kinds" / "functions" / "nearby_child.py"
    # One run of the sandbox for all inputs and constants, because its start takes most of the time.
    (result,) = ask(
        [Job(Module(name, source, str(unit.path)), (question,))],
        handler=child.read_text("utf-8"),
        import_path=tuple(dict.fromkeys((folder, *project.import_path))),
        hidden=(unit.path,),
        limits=Limits(seconds=5, cpu_seconds=5),
    )
    (answer,) = result.answers
    outcomes = [_Outcome(*facts) for facts in (answer.value if answer else None) or ()]
    before, after = (
        {canonical(node) for node in nodes_of(place) if isinstance(node, ast.expr)}
        for place in (old, new)
    )
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
        if level_of(values[at]) < 2 or at not in _keys(outcome, values, plain)
    )
    keyed = [{values[at] for at in _keys(outcome, values, shared)} for outcome in examples]
    is_several = sum(any(map(level_of, keys)) for keys in keyed) > 1
    # Code that keeps all that it replaces, and does as before for every input but the examples.
    is_patch = before <= after and all(outcome.is_as_before for outcome in near)
    for outcome, keys in zip(examples, keyed, strict=True):
        if all(other.example != outcome.example for other in near):
            continue
        message = (
            f"has an answer of its own for {in_quotes(f'{new.node.name}({outcome.text})'[:80])}"
        )
        # A rule may have one exception, for a word or a small number.
        if is_patch and not outcome.is_as_before and [*map(level_of, outcome.inputs)] != [0]:
            message += ": as before for every input near to it"
            yield Weakness(("special", outcome.text), message, None, ADVICE)
            continue
        results = _results(outcome, values, shared)
        copied = _results(outcome, values, plain)
        if keys or not _is_written_out(outcome, values):
            copied = {at for at in copied if _is_respelt(values[at], outcome)}
        special = keys or {values[at] for at in results | copied}
        if (lists_keys if keys else lists_results) or any(
            is_named(value, new) for value in special
        ):
            continue
        if copied or (special and _tells(keys, has_result=bool(results) or is_several)):
            message += ", the input of an example or test"
            line = next(line for value, line in constants if value in special)
            yield Weakness(("special", outcome.text), message, line, ADVICE)


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


def _tells(keys: Collection[_Constant], *, has_result: bool) -> bool:
    """Return whether nobody would write such keys but for an example."""
    if any(level_of(key) > 1 for key in keys):
        return True
    # A word, or one of the smallest numbers, may have a rule of its own.
    (key,) = keys if len(keys) == 1 else (0.5,)
    is_word = isinstance(key, str) and not level_of(key)
    return has_result and not (is_word or key in (2, -2))


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


def _is_written_out(outcome: _Outcome, values: Sequence[_Constant]) -> bool:
    """Return whether all items of a list, or of the like, are constants of the code."""
    words = "|".join(re.escape(repr(values[at])) for at in outcome.decisive)
    left = re.sub(rf"(?<![\w.])({words})(?![\w.])", "", outcome.output)
    return outcome.output[:1] in {"[", "(", "{"} and not re.search(r"\w", left)


def _lifted(place: Place) -> tuple[str, list[tuple[_Constant, int]]]:
    """Return a module whose code reads its constants from an object, and them with their lines."""
    tree = parse(without_examples(place.module.with_bodies(place.module.spans)))
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
