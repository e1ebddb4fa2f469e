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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Final

from pytest_regen.kinds.functions.checks import Code, dropped_checks
from pytest_regen.kinds.functions.lint import nodes_of
from pytest_regen.kinds.functions.source import ModuleSource, Place
from pytest_regen.kinds.functions.special_cases import find_special_cases
from pytest_regen.suppressions import directive_in
from pytest_regen.validation.issues import WEAKENED, Issue, Weakness, added_weaknesses

_GENERAL: Final = "write code that is right for every input, not for the tested ones alone"
_HONEST: Final = "the code must not know whether, or by what, it is tested"
_BY_NAME: Final = "catch the errors that are expected, by name"

_ENVIRONMENT: Final = frozenset(
    {"CI", "GITHUB_ACTIONS", "TEST", "TESTING", "TEST_MODE", "UNITTEST"}
)
_RUNNERS: Final = frozenset({"_pytest", "doctest", "pytest", "unittest"})
_FRAMES: Final = frozenset(
    (
        *("_current_frames", "_getframe", "currentframe", "extract_stack", "f_back", "f_globals"),
        *("f_locals", "get_objects", "get_referrers", "getouterframes", "getsource"),
        *("getsourcefile", "getsourcelines", "tb_frame", "walk_stack"),
    )
)
_TRACERS: Final = frozenset({"setprofile", "settrace", "settrace_all_threads"})
_EXITS: Final = frozenset({"sys.exit", "exit", "quit", "SystemExit"})
_MODULES: Final = re.compile(r"^sys\.(modules|argv)$|^from sys import .*\b(modules|argv)\b")
_MOCKS: Final = re.compile(
    r"^import (.*, )?(unittest\.)?mock\b"
    r"|^from (unittest\.)?mock import|^from unittest import .*\bmock\b"
)
_TEST_FILE: Final = re.compile(r"(^|/)(test_[^/]*|[^/]+_test)\.py$")
_UNREADABLE: Final = (ArithmeticError, RecursionError, ValueError)
"""What code raises here that is nested too deeply, or has numbers too long to be shown."""


def find_cheats(nodes: Sequence[ast.AST], place: Place) -> Iterator[Issue]:
    """Yield what shows in the code alone; lines count from the first of the code.

    Args:
        nodes: all nodes of the code.
        place: where it stands.
    """
    # What cannot be read is let pass: a false alarm costs a repair, and lint says the rest.
    with suppress(*_UNREADABLE):
        weaknesses = (*find_special_cases(nodes, place), *_alone(nodes))
        yield from [weakness_issue(weakness, place) for weakness in weaknesses]


def compare_code(
    old: tuple[ModuleSource, Place],
    new: tuple[ModuleSource, Place],
    failures: Sequence[str] = (),
) -> Iterator[Issue]:
    """Yield by what new code is tested less than the code that it replaces.

    Args:
        old: the module with the code that stands, and its place.
        new: the module with the candidate, and the place.
        failures: what was wrong with the old code, in words; a check that failed may go.
    """
    with suppress(SyntaxError, *_UNREADABLE):
        ours = _Code(*new)
        # Old code that is not legal has nothing that could be lost.
        before: tuple[Weakness, ...] = ()
        dropped: list[Weakness] = []
        with suppress(SyntaxError):
            theirs = _Code(*old)
            dropped = list(dropped_checks(theirs.code, ours.code, failures))
            before = theirs.weaknesses
        # What the module silences beside this code, it may silence here.
        names = set(old[0].spans) - {old[1].name}
        customs = list(_directives(old[0].with_bodies(names)))
        for weakness in (*added_weaknesses(before, ours.weaknesses), *dropped):
            if not any(custom.covers(weakness) for custom in customs):
                yield weakness_issue(weakness, new[1])


def weakness_issue(weakness: Weakness, place: Place) -> Issue:
    """Return what is told of a weakness; lines count from the first of the code."""
    # A line of the file becomes one of the code; the special cases and comments have that already.
    line = place.marks.line_inside(weakness.line)
    return Issue.of(
        WEAKENED, weakness.message, detail=weakness.detail, type_name=place.name, line=line
    )


class _Code:
    """The code of one function.

    Raises:
        SyntaxError: it is not legal.
    """

    def __init__(self, module: ModuleSource, place: Place) -> None:
        nodes = nodes_of(module, place)
        arguments = (node.arg for node in ast.walk(place.node.args) if isinstance(node, ast.arg))
        self.code = Code(nodes, arguments, module.imports)
        self.place = place
        self._text = module.spans[place.name].text
        self._modules = {
            (alias.asname or alias.name).partition(".")[0]
            for node in (*module.imports, *nodes)
            if isinstance(node, ast.Import)
            for alias in node.names
        }

    @cached_property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """What it is weak in that another code may be weak in as well."""
        weaknesses = list(_directives(self._text, self.place.marks.begin))
        for node in self.code.nodes:
            line = getattr(node, "lineno", None)
            for key, message in (*_looks(node), *_tampers(node, self._modules)):
                weaknesses.append(Weakness((key, message), message, line, _HONEST))
            weaknesses += _evades(node, line)
            for swallowed in _swallowed(node):
                message = "catches every error and goes on as if there were none"
                if isinstance(node, ast.Call):
                    message = "suppresses every error"
                weaknesses.append(Weakness(("swallows",), message, swallowed, _BY_NAME))
        return tuple(weaknesses)


def _directives(text: str, first_line: int = 0) -> Iterator[Weakness]:
    """Yield the comments that tell a checker to look away."""
    with suppress(SyntaxError, tokenize.TokenError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (directive := directive_in(token.string)):
                yield Weakness.of_directive(directive, first_line + token.start[0])


# What shows in the code alone


def _alone(nodes: Sequence[ast.AST]) -> Iterator[Weakness]:
    looks_at_modules = any(
        _MODULES.search(ast.unparse(node))
        for node in nodes
        if isinstance(node, ast.Attribute | ast.ImportFrom)
    )
    for node in nodes:
        line = getattr(node, "lineno", None)
        match node:
            case ast.Constant(value=str() as text):
                if text.startswith("PYTEST_") or (looks_at_modules and text in _RUNNERS):
                    message = f"looks for {text}: it asks whether a test runs"
                    yield Weakness(("runs", text), message, line, _HONEST)
            case ast.FunctionDef(name="__eq__", body=[*texts, ast.Return(ast.Constant(True))]):
                if all(isinstance(text, ast.Expr) for text in texts):
                    message = "makes an object that equals everything"
                    yield Weakness(("equal",), message, line, "return the value itself")
            case ast.Import() | ast.ImportFrom() if _MOCKS.search(ast.unparse(node)):
                message = "imports mock objects, which pass for anything"
                yield Weakness(("mock",), message, line, "return the value itself")


# What shows beside the old code


def _looks(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield a key, and how the code finds out who calls it, and where."""
    match node:
        case ast.Attribute(attr=name) | ast.alias(name=name) if name in _FRAMES:
            yield "frames", f"uses {name}, which shows who calls it"
        case ast.Call(func=ast.Attribute(value=ast.Name("inspect"), attr="stack")):
            yield "frames", "uses inspect.stack, which shows who calls it"
        # The ending alone, as code that tells files apart has it, names no file.
        case ast.Constant(value=str() as text) if _TEST_FILE.search(text):
            yield "file", f"names the file {text[:80]!r} of the tests"
        case (
            ast.Call(func=ast.Attribute(attr="get" | "getenv"), args=[ast.Constant(key), *_])
            | ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(key))
            | ast.Compare(left=ast.Constant(key), comparators=[ast.Attribute(attr="environ")])
        ) if key in _ENVIRONMENT:
            yield "runs", f"reads {key}: it asks whether a test runs"


def _tampers(node: ast.AST, modules: set[str]) -> Iterator[tuple[str, str]]:
    """Yield a key, and how the code changes the program around it."""
    match node:
        case ast.Attribute(attr=name) | ast.alias(name=name) if name in _TRACERS:
            yield "tampers", f"uses {name}, which changes how all code runs"
        case ast.alias(name=name) | ast.ImportFrom(module=str() as name):
            if name.partition(".")[0] in {"_pytest", "pytest"}:
                yield "tampers", "imports what runs the tests"
        case ast.Attribute(value=ast.Name(name), attr=attribute, ctx=ast.Store()):
            if name in modules:
                yield "tampers", f"replaces {name}.{attribute} for the whole program"
        case (
            ast.Subscript(value=ast.Call(func=ast.Name("globals")), ctx=ast.Store())
            | ast.Subscript(value=ast.Attribute(attr="modules"), ctx=ast.Store())
            | ast.Call(func=ast.Name("setattr"), args=[ast.Subscript(), *_])
        ):
            yield "tampers", "replaces names of a module"
        case ast.Call(func=ast.Name("setattr"), args=[ast.Name(name), *_]) if name in modules:
            yield "tampers", f"replaces names of {name}"


def _evades(node: ast.AST, line: int | None) -> Iterator[Weakness]:
    """Yield how the code ends a run early, or keeps its types from being checked."""
    match node:
        case ast.Call(func=func, args=args):
            name, codes = ast.unparse(func), [ast.unparse(argument) for argument in args[:1]]
            # An exit with another code fails the run, as it should.
            is_well = name in _EXITS and codes in ([], ["0"], ["None"])
            if is_well or name in {"os._exit", "atexit.register"}:
                message = "ends the process as if all were well"
                yield Weakness(("exit", message), message, line, "return a result, or raise")
        case ast.Name("no_type_check") | ast.alias("no_type_check"):
            message = "adds no_type_check"
            yield Weakness(("typing", message), message, line, "correct the types")


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
    return kind is None or any(
        isinstance(node, ast.Name) and node.id in {"BaseException", "Exception"}
        for node in ast.walk(kind)
    )


def _is_idle(node: ast.stmt) -> bool:
    """Return whether a statement of a handler does no more than give a default."""
    match node:
        case ast.Return() | ast.Assign() | ast.AnnAssign() | ast.Expr():
            return not any(isinstance(part, ast.Call | ast.Await) for part in ast.walk(node))
    return isinstance(node, ast.Pass | ast.Continue | ast.Break)
