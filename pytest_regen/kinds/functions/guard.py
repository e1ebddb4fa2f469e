"""By what the code of a function passes its tests without doing what they are for.

Some of it shows in the code alone: a branch for the very input of an example, a look at whether a
test runs, an object that equals all others. The rest shows beside the code that is replaced: checks
that are gone, errors that are swallowed, comments that silence a checker. Everything is read from
syntax trees. What cannot be told from honest code is let pass: a false alarm costs a repair.
"""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
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

_ENVIRONMENT: Final = frozenset(
    {"CI", "GITHUB_ACTIONS", "TEST", "TESTING", "TEST_MODE", "UNITTEST"}
)
_RUNNERS: Final = frozenset({"_pytest", "doctest", "pytest", "unittest"})
_HARNESS: Final = frozenset({"_pytest", "pytest"})
_FRAMES: Final = frozenset(
    """_current_frames _getframe currentframe extract_stack f_back f_globals f_locals get_objects
    get_referrers getouterframes getsource getsourcefile getsourcelines tb_frame walk_stack
    """.split()  # noqa: SIM905 - a list of so many words is no better to read
)
_TRACERS: Final = frozenset({"setprofile", "settrace", "settrace_all_threads"})
_UNREADABLE: Final = (ArithmeticError, RecursionError, ValueError)
"""What code raises here that is nested too deeply, or has numbers too long to be shown."""
_BROAD: Final = frozenset({"BaseException", "Exception"})


def find_cheats(nodes: Sequence[ast.AST], place: Place) -> Iterator[Issue]:
    """Yield what shows in the code alone; lines count from the first of the code.

    Args:
        nodes: all nodes of the code.
        place: where it stands.
    """
    with suppress(*_UNREADABLE):
        found = (*find_special_cases(nodes, place), *_alone(nodes))
        yield from [weakness_issue(one, place) for one in found]


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
        dropped: tuple[Weakness, ...] = ()
        before: tuple[Weakness, ...] = ()
        with suppress(SyntaxError):
            theirs = _Code(*old)
            dropped = tuple(dropped_checks(theirs.code, ours.code, failures))
            before = theirs.weaknesses
        # What the module silences beside this code, it may silence here.
        names = set(old[0].spans) - {old[1].name}
        customs = list(_directives(old[0].with_bodies(names)))
        added = [
            found
            for found in added_weaknesses(before, ours.weaknesses)
            if not any(custom.covers(found) for custom in customs)
        ]
        yield from [weakness_issue(found, new[1]) for found in (*added, *dropped)]


def weakness_issue(found: Weakness, place: Place) -> Issue:
    """Return what is told of a weakness; lines count from the first of the code."""
    # A line of the file becomes one of the code; the special cases and comments have that already.
    line = place.marks.line_inside(found.line)
    return Issue.of(WEAKENED, found.message, detail=found.detail, type_name=place.name, line=line)


class _Code:
    """The code of one function.

    Raises:
        SyntaxError: it is not legal.
    """

    def __init__(self, module: ModuleSource, place: Place) -> None:
        self.nodes = nodes_of(module, place)
        arguments = (node.arg for node in ast.walk(place.node.args) if isinstance(node, ast.arg))
        self.code = Code(self.nodes, arguments, module.imports)
        self.place = place
        self._text = module.spans[place.name].text
        self._modules = {
            (alias.asname or alias.name).partition(".")[0]
            for node in (*module.imports, *self.nodes)
            if isinstance(node, ast.Import)
            for alias in node.names
        }

    @cached_property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """What it is weak in that another code may be weak in as well."""
        return (
            *_directives(self._text, self.place.marks.begin),
            *self._reaches(),
            *_swallowed(self.nodes),
        )

    def _reaches(self) -> Iterator[Weakness]:
        """Yield how the code reaches into the program that calls it."""
        for node in self.nodes:
            for key, message, advice in _reach(node, self._modules):
                yield Weakness((key, message), message, getattr(node, "lineno", None), advice)


def _directives(text: str, first_line: int = 0) -> Iterator[Weakness]:
    """Yield the comments that tell a checker to look away."""
    with suppress(SyntaxError, tokenize.TokenError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (said := directive_in(token.string)):
                yield Weakness.of_directive(said, first_line + token.start[0])


# What shows in the code alone


def _alone(nodes: Sequence[ast.AST]) -> Iterator[Weakness]:
    looks_at_modules = any(_is_of(node, "sys", {"modules", "argv"}) for node in nodes)
    for node in nodes:
        line = getattr(node, "lineno", None)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_runner = looks_at_modules and node.value in _RUNNERS
            if is_runner or node.value.startswith("PYTEST_"):
                message = f"looks for {node.value}: it asks whether a test runs"
                yield Weakness(("runs", node.value), message, line, _HONEST)
        elif _equals_all(node):
            message = "makes an object that equals everything"
            yield Weakness(("equal",), message, line, "return the value itself")
        elif _brings_mocks(node):
            message = "imports mock objects, which pass for anything"
            yield Weakness(("mock",), message, line, "return the value itself")


def _equals_all(node: ast.AST) -> bool:
    """Return whether a method ``__eq__`` is always true."""
    match node:
        case ast.FunctionDef(name="__eq__", body=[*said, ast.Return(ast.Constant(value=True))]):
            return all(isinstance(one, ast.Expr) for one in said)
    return False


def _brings_mocks(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(module="unittest", names=names):
            return _has(names, {"mock"})
        case ast.ImportFrom(module="unittest.mock" | "mock"):
            return True
        case ast.Import(names=names):
            return _has(names, {"unittest.mock", "mock"})
    return False


def _has(names: Iterable[ast.alias], wanted: set[str]) -> bool:
    return any(alias.name in wanted for alias in names)


def _is_of(node: ast.AST, owner: str, attributes: set[str]) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return name == owner and attribute in attributes
        case ast.ImportFrom(module=module, names=names):
            return module == owner and _has(names, attributes)
    return False


# What shows beside the old code


def _reach(node: ast.AST, modules: set[str]) -> Iterator[tuple[str, str, str]]:
    """Yield a key, what a node does, and what to do in its place."""
    yield from _looks(node)
    if said := _tampers(node, modules):
        yield "tampers", said, _HONEST
    match node:
        case ast.Call(func=func, args=args) if _ends_well(func, args):
            yield "exit", "ends the process as if all were well", "return a result, or raise"
        case ast.Name(id="no_type_check") | ast.alias(name="no_type_check"):
            yield "typing", "adds no_type_check", "correct the types"


def _looks(node: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Yield how the code finds out who calls it, and where."""
    match node:
        case ast.Attribute(attr=name) | ast.alias(name=name) if name in _FRAMES:
            yield "frames", f"uses {name}, which shows who calls it", _HONEST
        case ast.Call(func=ast.Attribute(value=ast.Name(id="inspect"), attr="stack")):
            yield "frames", "uses inspect.stack, which shows who calls it", _HONEST
        case ast.Constant(value=str() as text) if _is_test_file(text):
            yield "file", f"names the file {text[:80]!r} of the tests", _HONEST
        case (
            ast.Call(func=ast.Attribute(attr="get" | "getenv"), args=[ast.Constant(value=key), *_])
            | ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=key))
            | ast.Compare(left=ast.Constant(value=key), comparators=[ast.Attribute(attr="environ")])
        ) if key in _ENVIRONMENT:
            yield "runs", f"reads {key}: it asks whether a test runs", _HONEST


def _tampers(node: ast.AST, modules: set[str]) -> str:
    """Return how the code changes the program around it; empty where it does not."""
    match node:
        case ast.Attribute(attr=name) | ast.alias(name=name) if name in _TRACERS:
            return f"uses {name}, which changes how all code runs"
        case ast.Import(names=names) if any(_is_harness(alias.name) for alias in names):
            return "imports what runs the tests"
        case ast.ImportFrom(module=str() as module) if _is_harness(module):
            return "imports what runs the tests"
        case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Store()):
            return f"replaces {name}.{attribute} for the whole program" if name in modules else ""
        case ast.Subscript(
            value=ast.Call(func=ast.Name(id="globals")) | ast.Attribute(attr="modules"),
            ctx=ast.Store(),
        ):
            return "replaces names of a module"
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=name), *_]):
            return f"replaces names of {name}" if name in modules else ""
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Subscript(), *_]):
            return "replaces names of a module"
    return ""


def _is_harness(module: str) -> bool:
    return module.partition(".")[0] in _HARNESS


def _is_test_file(text: str) -> bool:
    name = text.rpartition("/")[2]
    # The ending alone, as code that tells files apart has it, names no file.
    ends = name.endswith("_test.py") and name != "_test.py"
    return ends or (name.startswith("test_") and name.endswith(".py"))


def _ends_well(func: ast.expr, args: Sequence[ast.expr]) -> bool:
    match func:
        case ast.Attribute(value=ast.Name(id="os"), attr="_exit"):
            return True
        case ast.Attribute(value=ast.Name(id="atexit"), attr="register"):
            return True
        case (
            ast.Attribute(value=ast.Name(id="sys"), attr="exit")
            | ast.Name(id="exit" | "quit" | "SystemExit")
        ):
            first = args[0] if args else ast.Constant(0)
            return isinstance(first, ast.Constant) and first.value in {0, None}
    return False


def _swallowed(nodes: Sequence[ast.AST]) -> Iterator[Weakness]:
    """Yield where any error at all is caught, and nothing is done about it."""
    advice = "catch the errors that are expected, by name"
    for node in nodes:
        match node:
            case ast.Try(body=body, handlers=handlers, finalbody=last) if _is_much(body):
                lines = [one.lineno for one in last if isinstance(one, ast.Return)]
                lines += [
                    handler.lineno
                    for handler in handlers
                    if _is_broad(handler.type) and all(map(_is_idle, handler.body))
                ]
                for line in lines:
                    message = "catches every error and goes on as if there were none"
                    yield Weakness(("swallows",), message, line, advice)
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress")):
                if any(_is_broad(argument) for argument in node.args):
                    message = "suppresses every error"
                    yield Weakness(("swallows",), message, node.lineno, advice)


def _is_much(body: Sequence[ast.stmt]) -> bool:
    """Return whether more than one step is guarded, or the step that gives the result."""
    return len(body) > 1 or not isinstance(body[0], ast.Assign | ast.Expr | ast.AugAssign)


def _is_broad(kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.Tuple):
        return any(map(_is_broad, kind.elts))
    return kind is None or (isinstance(kind, ast.Name) and kind.id in _BROAD)


def _is_idle(node: ast.stmt) -> bool:
    """Return whether a statement of a handler does no more than give a default."""
    match node:
        case ast.Pass() | ast.Continue() | ast.Break() | ast.Return(value=None):
            return True
        case ast.Return(value=value) | ast.Assign(value=value) | ast.AnnAssign(value=value):
            return value is not None and not any(
                isinstance(one, ast.Call | ast.Await) for one in ast.walk(value)
            )
        case ast.Expr(value=ast.Constant()):
            return True
    return False
