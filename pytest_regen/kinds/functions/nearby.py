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
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import (
    Marks,
    ModuleSource,
    canonical,
    function_at,
    parse,
)
from pytest_regen.kinds.functions.special_cases import ADVICE, is_named, level_of
from pytest_regen.sandbox import Job, Limits, Module, ask, without_examples
from pytest_regen.text import in_quotes
from pytest_regen.units.kind import Unit
from pytest_regen.validation.issues import Weakness

_SECONDS: Final = 0.3
_FEWEST: Final = 3
"""Inputs near to an example, without which nothing is said of it."""
_OBJECT: Final = "_regen_constants"

_Constant = int | float | str


@dataclass(frozen=True)
class _Outcome:
    """What an input leads to."""

    example: int
    """The number of the example that the input is, or is near to."""
    is_example: bool
    text: str
    given_values: Sequence[_Constant]
    """The numbers and texts in the input."""
    output: str
    is_value: bool
    """Nothing was raised."""
    equals_all: bool
    is_as_before: bool
    """The old code does the same."""
    decisive: Sequence[int]
    """The constants of the code that it depends on."""

    def keys(self, values: Sequence[_Constant], passed_over: Collection[int]) -> set[int]:
        """Return the constants that tell the input from others."""
        return {
            at
            for at in set(self.decisive).difference(passed_over)
            if any(_is_in(values[at], given) for given in self.given_values)
        }

    def results(self, values: Sequence[_Constant], passed_over: Collection[int]) -> set[int]:
        """Return the constants that are what came of it, or a part of that."""
        return {
            at
            for at in set(self.decisive).difference(passed_over)
            if self.is_value
            and re.search(rf"(?<![\w.]){re.escape(repr(values[at]))}(?![\w.])", self.output)
        }


def find_answers(
    project: Project, old: ModuleSource, new: ModuleSource, unit: Unit
) -> Iterator[Weakness]:
    """Yield each example, or call of a test, that a candidate has an answer of its own for.

    Args:
        project: that the module belongs to.
        old: the module as it stands: what its code knows is not new.
        new: the module with the candidate.
        unit: the candidate, with the tests that asked for it.

    Raises:
        SandboxError: nothing can be run.
    """
    place = new.places[unit.name]
    source, constants = _lifted(new, place.marks)
    values = [value for value, _ in constants]
    # One run of the sandbox for all inputs and constants, because its start takes most of the time.
    outcomes = _outcomes(project, (old, new), unit, source, values)
    examples = [outcome for outcome in outcomes if outcome.is_example]
    near = [outcome for outcome in outcomes if not outcome.is_example]
    # Constants that say nothing: small ones, those of the old code, and what decides all inputs.
    plain = {at for at, value in enumerate(values) if value in ("", 0, 1, -1)}
    users = Counter(at for outcome in near for at in outcome.decisive)
    usual = plain.union(*(outcome.decisive for outcome in examples))
    usual |= {at for at, count in users.items() if count > len(examples)}
    # What the old code knew, the answer did not take from an example.
    before = {value for value, _ in _lifted(old, old.places[unit.name].marks)[1]}
    old_ones = plain | {at for at, value in enumerate(values) if value in before}
    # What decides another input is shared, but for parts of a text that this has as well.
    shared = set(old_ones)
    for outcome in near:
        keys_of_it = outcome.keys(values, ())
        shared |= {
            at for at in outcome.decisive if level_of(values[at]) < 2 or at not in keys_of_it
        }
    lists_keys = any(o.keys(values, usual) - o.results(values, usual) for o in near)
    lists_results = any(outcome.results(values, usual) for outcome in near)
    keyed = [{values[at] for at in outcome.keys(values, shared)} for outcome in examples]
    is_several = sum(any(map(level_of, keys)) for keys in keyed) > 1
    is_patch = all(o.is_as_before for o in near) and _keeps_all(old, new, place.qualname)
    for outcome, keys in zip(examples, keyed, strict=True):
        if outcome.equals_all:
            message = "makes an object that equals everything"
            yield Weakness(("equal",), message, None, "return the value itself")
        call = in_quotes(f"{place.node.name}({outcome.text})"[:80])
        if sum(other.example == outcome.example for other in near) < _FEWEST:
            continue
        # A rule may have one exception, for a word or a small number.
        levels = [level_of(value) for value in outcome.given_values]
        if is_patch and not outcome.is_as_before and levels != [0]:
            message = f"has an answer of its own for {call}: as before for every input near to it"
            yield Weakness(("special", outcome.text), message, None, ADVICE)
            continue
        results = outcome.results(values, shared)
        copied = outcome.results(values, old_ones)
        if keys or not _is_written_out(outcome, values):
            copied = {at for at in copied if _is_respelt(values[at], outcome)}
        special = keys or {values[at] for at in results | copied}
        # Honest code lists what there is: there, other constants decide other inputs.
        is_listed = lists_keys if keys else lists_results
        if is_listed or any(is_named(value, place) for value in special):
            continue
        if copied or (special and _tells(keys, has_result=bool(results) or is_several)):
            message = f"has an answer of its own for {call}, the input of an example or test"
            line = next(line for value, line in constants if value in special)
            yield Weakness(("special", outcome.text), message, line, ADVICE)


def _outcomes(
    project: Project,
    modules: tuple[ModuleSource, ModuleSource],
    unit: Unit,
    source: str,
    values: Sequence[_Constant],
) -> list[_Outcome]:
    old, new = modules
    test = new.doctest(unit.name, str(unit.path))
    examples = [example.source for example in test.examples] if test else []
    question = {
        "name": new.places[unit.name].qualname,
        "old": without_examples(old.with_bodies(old.spans)),
        "object": _OBJECT,
        "constants": values,
        "sources": [*examples, *map(textwrap.dedent, unit.tests)],
        "seconds": _SECONDS,
    }
    name, folder = project.module_of(unit.path)
    child = files("pytest_regen") / "kinds" / "functions" / "nearby_child.py"
    (result,) = ask(
        [Job(Module(name, source, str(unit.path)), (question,))],
        handler=child.read_text("utf-8"),
        import_path=tuple(dict.fromkeys((folder, *project.import_path))),
        hidden=(unit.path,),
        limits=Limits(seconds=5, cpu_seconds=5),
    )
    (answer,) = result.answers
    return [_Outcome(*facts) for facts in (answer.value if answer else None) or ()]


def _keeps_all(old: ModuleSource, new: ModuleSource, function: str) -> bool:
    """Return whether all that the statements of old code are made of stands in new code as well."""
    before, after = (
        function_at(parse(module.with_bodies(module.spans)), function) for module in (old, new)
    )
    if before is None or after is None:
        return False
    statements = [node for node in list(ast.walk(before))[1:] if isinstance(node, ast.stmt)]
    children = [part for node in statements for part in ast.iter_child_nodes(node)]
    parts = {canonical(part) for part in children if isinstance(part, ast.expr)}
    return parts <= {canonical(node) for node in ast.walk(after) if isinstance(node, ast.expr)}


def _tells(keys: Collection[_Constant], *, has_result: bool) -> bool:
    """Return whether nobody would write such keys but for an example."""
    levels = [level_of(key) for key in keys]
    numbers = [key for key in keys if not isinstance(key, str)]
    is_much = len(numbers) > 1 or any(abs(number) > 2 for number in numbers)
    return max(levels, default=0) > 1 or (has_result and (not keys or any(levels) or is_much))


def _letters(value: _Constant) -> str:
    return re.sub(r"\W", "", str(value)).casefold()


def _is_in(value: _Constant, given: _Constant) -> bool:
    if not isinstance(value, str) or not isinstance(given, str):
        return value == given
    part, whole = _letters(value) or value, _letters(given) or given
    return part == whole or (len(part) > 3 and part in whole)


def _is_respelt(value: _Constant, outcome: _Outcome) -> bool:
    """Return whether a text is returned that is made of the letters of what is given."""
    texts = [given for given in outcome.given_values if isinstance(given, str)]
    if not isinstance(value, str) or value in texts or outcome.output != repr(value):
        return False
    letters = _letters(value)
    return len(letters) > 2 and not Counter(letters) - Counter("".join(texts).casefold())


def _is_written_out(outcome: _Outcome, values: Sequence[_Constant]) -> bool:
    """Return whether all items of a list, or of the like, are constants of the code."""
    words = "|".join(re.escape(repr(values[at])) for at in outcome.decisive)
    left, count = re.subn(rf"(?<![\w.])({words})(?![\w.])", "", outcome.output)
    return outcome.output[:1] in {"[", "(", "{"} and count > 1 and not re.search(r"\w", left)


def _lifted(module: ModuleSource, marks: Marks) -> tuple[str, list[tuple[_Constant, int]]]:
    """Return a module whose code reads its constants from an object, and them with their lines."""
    tree = parse(without_examples(module.with_bodies(module.spans)))
    lifter = _Lifter(marks)
    lifter.visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree)), lifter.constants


class _Lifter(ast.NodeTransformer):
    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self.constants: list[tuple[_Constant, int]] = []

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        return self.generic_visit(node) if isinstance(node.value, ast.Constant) else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = node.value
        if not isinstance(value, _Constant) or isinstance(value, bool):
            return node
        if not self._marks.line_inside(node.lineno):
            return node
        self.constants.append((value, node.lineno))
        owner = ast.Name(_OBJECT, ast.Load())
        return ast.Attribute(owner, f"k{len(self.constants) - 1}", ast.Load())
