"""By what the code of a function passes its tests without doing what they are for.

Some of it shows in the code alone: a branch for the very input of an example, a look at whether a
test runs, an object that equals all others. The rest shows beside the code that is replaced: checks
that are gone, errors that are swallowed, comments that silence a checker. Everything is read from
syntax trees. What cannot be told from honest code is let pass: a false alarm costs a repair.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from pytest_regen.kinds.functions.checks import Code, dropped_checks
from pytest_regen.kinds.functions.lint import nodes_of
from pytest_regen.kinds.functions.source import Place, names_in
from pytest_regen.kinds.functions.special_cases import find_special_cases
from pytest_regen.suppressions import directive_in
from pytest_regen.validation.issues import WEAKENED, Issue, Weakness, added_weaknesses

_HONEST: Final = "the code must neither know nor change whether, or by what, it is tested"
_BY_NAME: Final = "catch the errors that are expected, by name"
_VALUE: Final = "return the value itself"

_FRAMES: Final = (
    *("_current_frames", "_getframe", "currentframe", "extract_stack", "f_back", "f_globals"),
    *("f_locals", "get_objects", "get_referrers", "getouterframes", "getsource", "getsourcefile"),
    *("getsourcelines", "inspect.stack", "tb_frame", "walk_stack"),
)
# Names that honest code hardly uses, and what they are for.
_TELLTALE: Final[Mapping[str, str]] = {
    **dict.fromkeys(_FRAMES, "shows who calls it"),
    **dict.fromkeys(
        ("setprofile", "settrace", "settrace_all_threads"), "changes how all code runs"
    ),
    **dict.fromkeys(("pytest", "_pytest"), "runs the tests"),
    **dict.fromkeys(("_exit", "atexit.register"), "ends the process as if all were well"),
    "no_type_check": "keeps types from being checked",
}
# An exit with another code fails the run, as it should.
_EXIT: Final = re.compile(r"(sys\.exit|exit|quit|SystemExit)\((0|None)?\)")
_ENVIRONMENT: Final = frozenset({"CI", "GITHUB_ACTIONS", "TEST", "TESTING", "TEST_MODE"})
_RUNNERS: Final = frozenset({"_pytest", "doctest", "pytest", "unittest"})
_MOCKS: Final = re.compile(r"(import|from) (unittest\.)?mock\b|from unittest import .*\bmock\b")
_TEST_FILE: Final = re.compile(r"(^|/)(test_[^/]*|[^/]+_test)\.py$")
# What is raised for code that is nested too deeply, or has numbers too long to be shown.
_UNREADABLE: Final = (ArithmeticError, RecursionError, SyntaxError, ValueError)


def find_cheats(place: Place) -> Iterator[Issue]:
    """Yield what shows in the code at a place alone; lines count from the first of the code."""
    # What cannot be read is let pass: a false alarm costs a repair, and lint says the rest.
    with suppress(*_UNREADABLE):
        nodes = nodes_of(place)
        weaknesses = list(find_special_cases(nodes, place))
        names = {getattr(node, "attr", getattr(node, "name", "")) for node in nodes}
        looks_at_modules = not names.isdisjoint({"modules", "argv"})
        for node in nodes:
            line = getattr(node, "lineno", None)
            match node:
                case ast.Constant(value=str() as text):
                    if text.startswith("PYTEST_") or (looks_at_modules and text in _RUNNERS):
                        message = f"looks for {text}: it asks whether a test runs"
                        weaknesses.append(Weakness(("runs", text), message, line, _HONEST))
                case ast.FunctionDef(
                    name="__eq__",
                    body=[ast.Return(ast.Constant(True))]
                    | [ast.Expr(), ast.Return(ast.Constant(True))],
                ):
                    message = "makes an object that equals everything"
                    weaknesses.append(Weakness(("equal",), message, line, _VALUE))
                case ast.Import() | ast.ImportFrom() if _MOCKS.match(ast.unparse(node)):
                    message = "imports mock objects, which pass for anything"
                    weaknesses.append(Weakness(("mock",), message, line, _VALUE))
        yield from [weakness_issue(weakness, place) for weakness in weaknesses]


def compare_code(old: Place, new: Place, failures: Sequence[str] = ()) -> Iterator[Issue]:
    """Yield by what new code is tested less than the code that it replaces.

    Args:
        old: where the code stands.
        new: where the candidate does.
        failures: what was wrong with the old code, in words; a check that failed may go.
    """
    with suppress(*_UNREADABLE):
        ours, weaknesses = _read(new)
        before: list[Weakness] = []
        dropped: list[Weakness] = []
        # Old code that is not legal has nothing that could be lost.
        with suppress(SyntaxError):
            theirs, before = _read(old)
            dropped = list(dropped_checks(theirs, ours, failures))
        # What the module silences beside this code, it may silence here.
        customs = list(_directives(old.module.with_bodies(old.module.spans.keys() - {old.name})))
        for weakness in (*added_weaknesses(before, weaknesses), *dropped):
            if not any(custom.covers(weakness) for custom in customs):
                yield weakness_issue(weakness, new)


def weakness_issue(weakness: Weakness, place: Place) -> Issue:
    """Return what is told of a weakness; lines count from the first of the code."""
    line = place.marks.line_inside(weakness.line)
    return Issue.of(
        WEAKENED, weakness.message, detail=weakness.detail, type_name=place.name, line=line
    )


def _read(place: Place) -> tuple[Code, list[Weakness]]:
    """Return the code at a place, and what it is weak in that other code may be weak in as well.

    Raises:
        SyntaxError: it is not legal.
    """
    module, nodes = place.module, nodes_of(place)
    arguments = (node.arg for node in ast.walk(place.node.args) if isinstance(node, ast.arg))
    imports = [node for node in (*module.imports, *nodes) if isinstance(node, ast.Import)]
    modules = {(alias.asname or alias.name) for node in imports for alias in node.names}
    weaknesses = list(_directives(module.spans[place.name].text, place.marks.begin))
    for node in nodes:
        line = getattr(node, "lineno", None)
        words = _looks(node, modules)
        weaknesses += [Weakness(("looks", text), text, line, _HONEST) for text in words]
        message = "catches every error and goes on as if there were none"
        lines = _swallowed(node)
        weaknesses += [Weakness(("swallows",), message, line, _BY_NAME) for line in lines]
    return Code(nodes, arguments), weaknesses


def _directives(text: str, first_line: int = 0) -> Iterator[Weakness]:
    """Yield the comments that tell a checker to look away."""
    with suppress(SyntaxError, tokenize.TokenError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (directive := directive_in(token.string)):
                yield Weakness.of_directive(directive, first_line + token.start[0])


def _looks(node: ast.AST, modules: set[str]) -> Iterator[str]:
    """Yield how the code finds out who calls it, changes the program around it, or ends it."""
    match node:
        case (
            ast.Attribute(attr=name)
            | ast.Name(id="no_type_check" as name)
            | ast.alias(name=name)
            | ast.ImportFrom(module=str() as name)
        ):
            for known in {name.partition(".")[0], ast.unparse(node)} & _TELLTALE.keys():
                yield f"uses {known}, which {_TELLTALE[known]}"
        case ast.Call() if _EXIT.fullmatch(ast.unparse(node)):
            yield "ends the process as if all were well"
        # The ending alone, as code that tells files apart has it, names no file.
        case ast.Constant(value=str() as text) if _TEST_FILE.search(text):
            yield f"names the file {text[:80]!r} of the tests"
    match node:
        case (
            ast.Call(func=ast.Attribute(attr="get" | "getenv"), args=[ast.Constant(key), *_])
            | ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(key))
            | ast.Compare(left=ast.Constant(key), comparators=[ast.Attribute(attr="environ")])
        ) if key in _ENVIRONMENT:
            yield f"reads {key}: it asks whether a test runs"
        case (
            ast.Attribute(value=owner, ctx=ast.Store())
            | ast.Subscript(value=owner, ctx=ast.Store())
            | ast.Call(func=ast.Name("setattr"), args=[owner, *_])
        ):
            place = ast.unparse(owner)
            if place in modules | {"globals()"} or place.startswith("sys.modules"):
                yield f"replaces names of {place} for the whole program"


def _swallowed(node: ast.AST) -> Iterator[int]:
    """Yield the lines where any error at all is caught, and nothing is done about it."""
    match node:
        case ast.Try(body=[ast.Assign() | ast.Expr() | ast.AugAssign()]):
            return  # One step, and not the one that gives the result.
        case ast.Try(handlers=handlers, finalbody=last):
            yield from (statement.lineno for statement in last if isinstance(statement, ast.Return))
            for handler in handlers:
                if _is_broad(handler.type) and all(map(_is_idle, handler.body)):
                    yield handler.lineno
        case ast.Call(func=ast.Name("suppress") | ast.Attribute(attr="suppress"), args=kinds):
            if any(map(_is_broad, kinds)):
                yield node.lineno


def _is_broad(kind: ast.expr | None) -> bool:
    return kind is None or not names_in(kind).isdisjoint({"BaseException", "Exception"})


def _is_idle(node: ast.stmt) -> bool:
    """Return whether a statement of a handler does no more than give a default."""
    if isinstance(node, ast.Return | ast.Assign | ast.AnnAssign | ast.Expr):
        return not any(isinstance(part, ast.Call | ast.Await) for part in ast.walk(node))
    return isinstance(node, ast.Pass | ast.Continue | ast.Break)
