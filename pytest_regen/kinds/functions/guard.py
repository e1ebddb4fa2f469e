"""By what the code of a function passes its tests without doing what they are for.

Some of it shows in the code alone: a branch for the very input of an example, a look at whether a
test runs, an object that equals all others. The rest shows beside the code that is replaced: checks
that are gone, errors that are swallowed, comments that silence a checker. Everything is read from
syntax trees. What cannot be told from honest code is let pass: a false alarm costs a repair.

A check may be worded anew, joined with another, raise another error, or be made by a helper: then
new code decides by what the old check looked at. One that cannot fail is none: it stands where
nothing arrives, or its own error is caught and ignored.
"""

import ast
import builtins
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Final, NamedTuple

from pytest_regen.kinds.functions.lint import nodes_of
from pytest_regen.kinds.functions.source import Place, canonical, names_in, stored
from pytest_regen.kinds.functions.special_cases import find_special_cases
from pytest_regen.text import in_quotes
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
_ADVICE: Final = "keep every check that the old code makes, and correct the rest"
_LOOKUPS: Final = {"IndexError", "KeyError", "LookupError"}
# Functions that are no helper to which a check could have been moved.
_HARMLESS: Final = frozenset(
    {name for owner in (builtins, str, bytes, list, dict, set) for name in dir(owner)}
    | {"critical", "debug", "error", "exception", "info", "log", "warn", "warning"}
)
_PARSERS: Final = frozenset({"complex", "float", "fromhex", "int"})
_NOTHING: Final = frozenset[str]()
# Stands among names for a comparison of values, and not only of how many there are.
_ORDER: Final = "<"

# Statements, the conditions they stand under, and the errors that are ignored there.
_Block = tuple[Sequence[ast.stmt], Sequence[ast.expr], frozenset[str]]


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
            dropped = list(_dropped_checks(theirs, ours, failures))
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


def _read(place: Place) -> "tuple[_Code, list[Weakness]]":
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
    return _Code(nodes, arguments), weaknesses


def _directives(text: str, first_line: int = 0) -> Iterator[Weakness]:
    """Yield the comments that tell a checker to look away."""
    from pytest_regen.suppressions import directive_in

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


class _Check(NamedTuple):
    raised: str
    """The name of the error."""
    tests: tuple[ast.expr, ...]
    """The conditions around it, innermost last; none where it is raised in any case."""
    is_assert: bool

    @property
    def test(self) -> ast.expr:
        """The condition that decides."""
        return self.tests[-1] if self.tests else ast.Constant(value=True)

    @property
    def key(self) -> str:
        return canonical(self.test) if self.tests else self.raised


class _Code:
    """The code of a function as far as checks are concerned.

    Args:
        nodes: all nodes of the code.
        parameters: the names that the function is given.
    """

    def __init__(self, nodes: Sequence[ast.AST], parameters: Iterable[str]) -> None:
        self.nodes = nodes
        self.parameters = frozenset(parameters)

    @cached_property
    def checks(self) -> Sequence[_Check]:
        """The checks that can fail."""
        inside = {id(child) for node in self.nodes for child in ast.iter_child_nodes(node)}
        body = [n for n in self.nodes if isinstance(n, ast.stmt) and id(n) not in inside]
        return list(self._checks_in(sorted(body, key=lambda node: node.lineno), (), _NOTHING))

    @cached_property
    def _sources(self) -> dict[str, set[str]]:
        """What the value of each variable is made from."""
        sources: defaultdict[str, set[str]] = defaultdict(set)
        for node in self.nodes:
            if isinstance(node, ast.stmt):
                parts = [p for p in ast.iter_child_nodes(node) if not isinstance(p, ast.stmt)]
                for name in stored(node for part in parts for node in ast.walk(part)):
                    sources[name].update(*map(_atoms, parts))
        return sources

    def made_from(self, trees: Iterable[ast.AST]) -> set[str]:
        """Return all that expressions look at, directly or through variables."""
        atoms = set[str]().union(*map(_atoms, trees))
        while more := set[str]().union(*(self._sources.get(a, ()) for a in atoms)) - atoms:
            atoms |= more
        return atoms

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """The calls by the name of what is called, but for those that make an error."""
        # `raise Error(text)` is a call, too, but makes no check.
        errors = {id(node.exc) for node in self.nodes if isinstance(node, ast.Raise)}
        calls: defaultdict[str, list[ast.Call]] = defaultdict(list)
        for node in self.nodes:
            if isinstance(node, ast.Call) and id(node) not in errors:
                calls[_name_of(node.func)].append(node)
        return calls

    def _checks_in(
        self, body: Iterable[ast.stmt], tests: tuple[ast.expr, ...], ignored: frozenset[str]
    ) -> Iterator[_Check]:
        for node in body:
            raised = ""
            test: tuple[ast.expr, ...] = ()
            match node:
                case ast.Assert(test=condition):
                    raised, test = "AssertionError", (condition,)
                case ast.Raise(exc=ast.Call(func=error) | (ast.Name() as error)):
                    raised = _name_of(error)
            # What is no class of Python's own is an error of the project.
            bases = getattr(getattr(builtins, raised, None), "__mro__", Exception.__mro__)
            names = {raised, *(base.__name__ for base in bases)}
            # NotImplementedError says that there is no code yet.
            if raised not in {"", "NotImplementedError"} and names.isdisjoint(ignored):
                yield _Check(raised, (*tests, *test), bool(test))
            for block, conditions, idle in self._blocks(node):
                yield from self._checks_in(block, (*tests, *conditions), ignored | idle)
            if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
                return  # Nothing arrives below.

    def _blocks(self, node: ast.stmt) -> Iterator[_Block]:
        body, otherwise = getattr(node, "body", ()), getattr(node, "orelse", ())
        match node:
            case ast.If(test=test) | ast.While(test=test):
                yield body, (test,), _NOTHING
                yield otherwise, (test,), _NOTHING
            case ast.Match(subject=subject, cases=cases):
                yield from ((case.body, (subject,), _NOTHING) for case in cases)
            case ast.Try(handlers=handlers, finalbody=last):
                idle = set[str]()
                for handler in handlers:
                    yield handler.body, (), _NOTHING
                    # A handler without a `raise` lets the error of a check pass.
                    if not any(isinstance(part, ast.Raise) for part in ast.walk(handler)):
                        idle |= names_in(handler.type) if handler.type else {"BaseException"}
                yield body, (), frozenset(idle)
                yield [*otherwise, *last], (), _NOTHING
            case ast.With(items=items):
                names = names_in(*items)
                yield body, (), frozenset(names if "suppress" in names else ())
            case _:
                yield [*body, *otherwise], (), _NOTHING


def _dropped_checks(old: _Code, new: _Code, failures: Sequence[str]) -> Iterator[Weakness]:
    """Yield the checks of old code that new code does not make in any form.

    Args:
        old: the code that stands.
        new: what is to replace it.
        failures: what was wrong with the old code, in words; a check that failed may go.
    """
    wanted, got = "", ""
    for words in failures:
        before, _, after = words.rpartition("got:")
        if "DID NOT RAISE" in words:
            before, after = words, ""
        wanted, got = wanted + before, got + after
    old_keys = {check.key for check in old.checks}
    reworded = [check for check in new.checks if check.key not in old_keys]
    # What is raised in any case stands for a check only if the old code has it less often.
    ours, theirs = (
        Counter(check.raised for check in code.checks if not check.tests) for code in (new, old)
    )
    certain = ours - theirs
    passed_over = {check.key for check in new.checks}
    for check in old.checks:
        # A name in small letters is a variable: an error that is passed on.
        if check.key in passed_over or not check.raised[0].isupper():
            continue
        passed_over.add(check.key)
        has_failed = (
            f"assert {ast.unparse(check.test)}" if check.is_assert else check.raised
        ) in got
        if (
            has_failed
            or check.raised in certain
            or any(_stands_for(other, check, old, new, wanted) for other in reworded)
            or _is_made_by_call(check, old, new)
            or _is_made_by_python(check, old, new)
            or (check.raised == "AssertionError" and _is_needless(check, old, new))
        ):
            continue
        action = "asserts" if check.is_assert else f"raises {check.raised}"
        if check.tests:
            where = "" if check.is_assert else " where"
            action += f"{where} {in_quotes(ast.unparse(check.test)[:160])}"
        message = f"drops a check: it no longer {action}"
        yield Weakness(("check", check.raised, check.key), message, None, _ADVICE)


def _stands_for(check: _Check, gone: _Check, old: _Code, new: _Code, wanted: str) -> bool:
    """Return whether a new check looks at all that one of the old code looked at."""
    looked_at = _atoms(gone.test) - (names_in(gone.test) - old.parameters)
    if not looked_at <= new.made_from(check.tests):
        return False
    # Conditions on variables alone have no names in common: the error is what tells them apart.
    if check.raised != gone.raised and not gone.is_assert and looked_at <= {_ORDER}:
        return False
    # Another limit is a check of something else, unless the tests failed as none was kept.
    numbers = {near + more for near in _numbers(*new.nodes) for more in (-1, 0, 1)}
    return gone.raised in wanted or {n for n in _numbers(gone.test) if abs(n) > 1} <= numbers


def _is_made_by_call(gone: _Check, old: _Code, new: _Code) -> bool:
    """Return whether a function is called, as the old code did not, that may check the same."""
    # A check may move into a helper, which then gets what the check looked at.
    looked_at = old.made_from(gone.tests[-1:]) - {_ORDER} or old.parameters
    is_parsed = gone.raised == "ValueError" and _ORDER not in _atoms(gone.test)
    harmless = _HARMLESS - _PARSERS if is_parsed else _HARMLESS
    names = new.calls.keys() - old.calls.keys() - harmless
    calls = [call for name in names for call in new.calls[name]]
    return any(looked_at & new.made_from([*call.args, *call.keywords]) for call in calls)


def _is_made_by_python(gone: _Check, old: _Code, new: _Code) -> bool:
    """Return whether new code raises the same error by itself, as ``table[key]`` does."""
    looked_at = names_in(gone.test) or old.parameters
    # With a `try`, what Python raises may be caught at once.
    if any(isinstance(node, ast.Try) for node in new.nodes):
        return False
    for node in new.nodes:
        match node:
            case ast.Subscript(ctx=ast.Load()):
                errors, used = _LOOKUPS, names_in(node)
            case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=right):
                errors, used = {"ZeroDivisionError"}, names_in(right)
            case ast.Assign(targets=[ast.Tuple()]) | ast.Call(func=ast.Name("zip"), keywords=[_]):
                errors, used = {"ValueError"} if "len" in looked_at else set(), names_in(node)
            case _:
                continue
        if gone.raised in errors and looked_at - {"len"} <= used:
            return True
    return False


def _is_needless(gone: _Check, old: _Code, new: _Code) -> bool:
    """Return whether what an assert rules out is dealt with now, or cannot come up any more.

    ``assert False`` marks a line that is never reached; ``assert match is not None`` tells the type
    of a variable, and goes with the variable.
    """
    before, after = (
        {canonical(node.test): node.test for node in code.nodes if isinstance(node, _DECIDES)}
        for code in (old, new)
    )
    for test in (after[key] for key in after.keys() - before.keys()):
        if _atoms(gone.test) <= _atoms(test) and _numbers(gone.test) <= _numbers(test):
            return True
    match gone.test:
        case (
            ast.Name(id=name)
            | ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()])
            | ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), _])
        ):
            return name in stored(old.nodes) - stored(new.nodes)
    return isinstance(gone.test, ast.Constant)


_DECIDES = ast.If | ast.IfExp | ast.While


def _atoms(tree: ast.AST) -> set[str]:
    """Return the names and attributes of an expression, ``_ORDER``, and no methods it calls."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    atoms = names_in(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if id(node) not in called:
                atoms.add(name)
            case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE(), *_]) if (
                "len" not in names_in(node)
            ):
                atoms.add(_ORDER)
            case ast.Call(func=ast.Name(id="abs" | "max" | "min" | "range")):
                atoms.add(_ORDER)
    return atoms


def _numbers(*trees: ast.AST) -> set[float]:
    nodes = [node for tree in trees for node in ast.walk(tree)]
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return {value for value in values if isinstance(value, int | float)}


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
