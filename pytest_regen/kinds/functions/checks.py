"""Checks of old code that new code no longer makes in any form.

A check may be worded anew, joined with another, raise another error, or be made by a helper: then
new code decides by what the old check looked at. One that cannot fail is none: its condition never
holds, it stands where nothing arrives, or its own error is caught and ignored.
"""

import ast
import builtins
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pytest_regen.kinds.functions.source import Import, canonical, stored
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Weakness

_KEEP: Final = "keep every check that the old code makes, and correct the rest"
_ASSERTION: Final = "AssertionError"
_LOOKUPS: Final = frozenset({"KeyError", "IndexError", "LookupError"})
_NATURAL: Final = _LOOKUPS | {"OverflowError", "TypeError", "ValueError", "ZeroDivisionError"}
"""What functions of the standard library raise for input that they cannot take."""
_HARMLESS: Final = frozenset(
    name
    for owner in (builtins, str, bytes, int, float, list, dict, set)
    for name in dir(owner)
    if not isinstance(getattr(owner, name), type) or owner is builtins
) | {"critical", "debug", "error", "exception", "info", "log", "warn", "warning"}
"""Functions that are no helper to which a check could have been moved."""
_PARSERS: Final = {"complex", "float", "fromhex", "int"}
_JUMPS: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True)
class _Check:
    raised: str
    """The name of the error."""
    tests: tuple[ast.expr, ...]
    """The conditions around it, innermost last; none where it is raised in any case."""
    is_assert: bool = False

    @property
    def test(self) -> ast.expr:
        """The condition that decides."""
        return self.tests[-1] if self.tests else ast.Constant(value=True)

    @property
    def key(self) -> str:
        return canonical(self.test) if self.tests else self.raised


class Code:
    """The code of a function as far as checks are concerned.

    Args:
        nodes: all nodes of the code.
        parameters: the names that the function is given.
        imports: the imports of the module.
    """

    def __init__(
        self,
        nodes: Sequence[ast.AST],
        parameters: Iterable[str] = (),
        imports: Iterable[Import] = (),
    ) -> None:
        self.nodes = nodes
        self.parameters = frozenset(parameters)
        self._imports = (*imports, *(node for node in nodes if isinstance(node, Import)))

    @cached_property
    def checks(self) -> tuple[_Check, ...]:
        """The checks that can fail."""
        inside = {id(child) for node in self.nodes for child in ast.iter_child_nodes(node)}
        top = [n for n in self.nodes if isinstance(n, ast.stmt) and id(n) not in inside]
        top.sort(key=lambda node: node.lineno)
        return tuple(self._checks_in(top, (), frozenset()))

    @cached_property
    def _sources(self) -> dict[str, set[str]]:
        """What the value of each variable is made from."""
        sources: defaultdict[str, set[str]] = defaultdict(set)
        for node in self.nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    pass
                case (
                    ast.AnnAssign(target=target, value=value)
                    | ast.AugAssign(target=target, value=value)
                    | ast.NamedExpr(target=target, value=value)
                    | ast.For(target=target, iter=value)
                    | ast.comprehension(target=target, iter=value)
                    | ast.withitem(optional_vars=target, context_expr=value)
                ) if target and value:
                    targets = [target]
                case _:
                    continue
            for name in set().union(*map(_names_in, targets)):
                sources[name] |= _atoms(value)
        return sources

    def made_from(self, trees: Iterable[ast.AST]) -> set[str]:
        """Return all that expressions look at, directly or through variables."""
        atoms = {atom for tree in trees for atom in _atoms(tree)}
        while more := {a for atom in atoms for a in self._sources.get(atom, ())} - atoms:
            atoms |= more
        return atoms

    @cached_property
    def numbers(self) -> set[float]:
        """The numbers in the code, and those next to them: ``< 65536`` is ``<= 65535``."""
        numbers = {value for value in map(_constant, self.nodes) if isinstance(value, int | float)}
        return {number + more for number in numbers for more in (-1, 0, 1)}

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

    @cached_property
    def standard(self) -> set[str]:
        """The names that imports from the standard library bind."""
        names = set()
        for node in self._imports:
            for alias in node.names:
                module = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
                if module.partition(".")[0] in sys.stdlib_module_names:
                    names.add((alias.asname or alias.name).partition(".")[0])
        return names

    def _checks_in(
        self, body: Iterable[ast.stmt], tests: tuple[ast.expr, ...], caught: frozenset[str]
    ) -> Iterator[_Check]:
        """Yield the checks in statements, below conditions and with errors that are ignored."""
        for node in body:
            raised = _raised(node)
            # What is no class of Python's own is an error of the project, or a variable.
            kind, *parents = (getattr(builtins, name, None) for name in (raised, *caught))
            kind = kind if isinstance(kind, type) else Exception
            is_caught = issubclass(kind, tuple(p for p in parents if isinstance(p, type)))
            if raised and raised not in caught and not is_caught:
                last = (node.test,) if isinstance(node, ast.Assert) else ()
                yield _Check(raised, (*tests, *last), is_assert=bool(last))
            for inner, condition, idle in self._blocks(node):
                yield from self._checks_in(inner, (*tests, *condition), caught | idle)
            if isinstance(node, _JUMPS):
                return  # Nothing arrives below.

    def _blocks(
        self, node: ast.stmt
    ) -> Iterator[tuple[Sequence[ast.stmt], Sequence[ast.expr], set[str]]]:
        """Yield what a statement holds, under which condition, and the errors ignored there."""
        inner = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
        match node:
            case ast.If(test=test, body=body, orelse=otherwise):
                yield [] if _truth(test) is False else body, (test,), set()
                yield [] if _truth(test) else otherwise, (test,), set()
            case ast.Match(subject=subject, cases=cases):
                yield from ((case.body, (subject,), set()) for case in cases)
            case ast.Try(body=body, handlers=handlers, orelse=otherwise, finalbody=last):
                # A handler without a `raise` lets the error of a check pass.
                kinds = ([type(part) for part in ast.walk(handler)] for handler in handlers)
                idle = [
                    h.type
                    for h, parts in zip(handlers, kinds, strict=True)
                    if ast.Raise not in parts
                ]
                names = [_names_in(kind) if kind else {"BaseException"} for kind in idle]
                yield body, (), set().union(*names)
                for block in (*(handler.body for handler in handlers), otherwise, last):
                    yield block, (), set()
            case ast.With(items=items) | ast.AsyncWith(items=items):
                names = [_names_in(item.context_expr) for item in items]
                yield inner, (), set().union(*(n for n in names if "suppress" in n))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if any(isinstance(n, ast.Name) and n.id == node.name for n in self.nodes):
                    yield inner, (), set()
            case ast.While(test=test) if _truth(test) is False:
                pass
            case _:
                yield inner, (), set()


def _raised(node: ast.stmt) -> str:
    """Return the name of the error that a statement raises; empty where it passes one on."""
    match node:
        case ast.Assert(test=test) if not _truth(test):
            return _ASSERTION
        case ast.Raise(exc=ast.Call(func=kind) | (ast.Name() as kind)):
            name = _name_of(kind)
            return "" if name == "NotImplementedError" else name  # That says: no code yet.
    return ""


def dropped_checks(old: Code, new: Code, failures: Sequence[str]) -> Iterator[Weakness]:
    """Yield the checks of old code that new code does not make in any form.

    Args:
        old: the code that stands.
        new: what is to replace it.
        failures: what was wrong with the old code, in words; a check that failed may go.
    """
    old_keys = {check.key for check in old.checks}
    reworded = [check for check in new.checks if check.key not in old_keys]
    # What is raised in any case stands for a check only if the old code has it less often.
    spare = Counter(check.raised for check in new.checks if not check.tests)
    spare.subtract(check.raised for check in old.checks if not check.tests)
    passed_over = {check.key for check in new.checks}
    for check in old.checks:
        # A name in small letters is a variable: an error that is passed on.
        if check.key in passed_over or not check.raised[0].isupper():
            continue
        passed_over.add(check.key)
        if (
            spare[check.raised] > 0
            or _has_failed(check, failures)
            or any(_stands_for(one, check, old, new, failures) for one in reworded)
            or _is_made_by_call(check, old, new)
            or _is_made_by_python(check, old, new)
            or (check.raised == _ASSERTION and _is_needless(check, old, new))
        ):
            continue
        action = "asserts" if check.is_assert else f"raises {check.raised}"
        if check.tests:
            where = "" if check.is_assert else " where"
            action += f"{where} {in_quotes(ast.unparse(check.test)[:160])}"
        message = f"drops a check: it no longer {action}"
        yield Weakness(("check", check.raised, check.key), message, None, _KEEP)


def _stands_for(check: _Check, gone: _Check, old: Code, new: Code, failures: Sequence[str]) -> bool:
    """Return whether a new check looks at all that one of the old code looked at."""
    test = gone.test
    names = _atoms(test) & (old.parameters | (_atoms(test) - _names_in(test)))
    if not names <= new.made_from(check.tests):
        return False
    if check.raised != gone.raised and not gone.is_assert and not names:
        return False
    if _compares_order(test) and not any(map(_compares_order, check.tests)):
        return False
    # Another limit is a check of something else, unless the tests failed as none was kept.
    is_wanted = any(
        gone.raised in (words if "DID NOT RAISE" in words else words.rpartition("got:")[0])
        for words in failures
    )
    return is_wanted or _numbers(test) <= new.numbers


def _is_made_by_call(gone: _Check, old: Code, new: Code) -> bool:
    """Return whether a function is called, as the old code did not, that may check the same."""
    # A check may move into a helper, which then gets what the check looked at.
    looked_at = old.made_from(gone.tests[-1:]) or old.parameters
    is_parsed = gone.raised == "ValueError" and not _compares_order(gone.test)
    harmless = _HARMLESS - _PARSERS if is_parsed else _HARMLESS
    for name in new.calls.keys() - old.calls.keys() - harmless:
        for call in new.calls[name]:
            values = [*call.args, *(keyword.value for keyword in call.keywords)]
            # The standard library raises nothing but its own errors.
            may_raise = gone.raised in _NATURAL or not _names_in(call.func) & new.standard
            if may_raise and looked_at & new.made_from(values):
                return True
    return False


def _is_made_by_python(gone: _Check, old: Code, new: Code) -> bool:
    """Return whether new code raises the same error by itself, as ``table[key]`` does."""
    # With a `try`, what Python raises may be caught at once.
    if any(isinstance(node, ast.Try) for node in new.nodes):
        return False
    names = _names_in(gone.test) or old.parameters
    for node in new.nodes:
        match node:
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()):
                is_same = not gone.tests or _names_in(value) & names
                if is_same and _names_in(index) & names and gone.raised in _LOOKUPS:
                    return True
            case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=ast.Name(id=name)):
                if name in names and gone.raised == "ZeroDivisionError":
                    return True
            case (
                ast.Assign(targets=[ast.Tuple()], value=value)
                | ast.Call(func=ast.Name(id="zip"), args=[value, *_], keywords=[_])
            ) if "len" in _names_in(gone.test):
                if _names_in(value) & names and gone.raised == "ValueError":
                    return True
    return False


def _is_needless(gone: _Check, old: Code, new: Code) -> bool:
    """Return whether what an assert rules out is dealt with now, or cannot come up any more.

    ``assert False`` marks a line that is never reached; ``assert match is not None`` tells the type
    of a variable, and goes with the variable.
    """
    test = gone.test
    old_conditions = {canonical(condition) for condition in _conditions(old.nodes)}
    for condition in _conditions(new.nodes):
        is_new = canonical(condition) not in old_conditions
        if is_new and _atoms(test) <= _atoms(condition) and _numbers(test) <= _numbers(condition):
            return True
    match test:
        case ast.Constant():
            return True
        case (
            ast.Name(id=name)
            | ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()])
            | ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), _])
        ):
            return name in stored(old.nodes) - stored(new.nodes)
    return False


def _conditions(nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Yield what code decides by."""
    for node in nodes:
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                if _truth(test) is not False:
                    yield test
            case ast.comprehension(ifs=tests):
                yield from tests


def _has_failed(gone: _Check, failures: Sequence[str]) -> bool:
    """Return whether a check is what the tests failed with: then it was wrong."""
    trace = f"assert {ast.unparse(gone.test)}" if gone.is_assert else gone.raised
    outputs = (words.rpartition("got:")[2] for words in failures if "DID NOT RAISE" not in words)
    return any(trace in words for words in outputs)


def _truth(test: ast.expr) -> bool | None:
    """Return what a condition is for every input; ``None`` where that depends."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Compare(left=ast.Constant(), ops=[ast.Eq()], comparators=[ast.Constant()]):
            return _constant(test.left) == _constant(test.comparators[0])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            truth = _truth(operand)
            return None if truth is None else not truth
        case ast.BoolOp(op=operator, values=values):
            decides = isinstance(operator, ast.Or)
            truths = {_truth(value) for value in values}
            return decides if decides in truths else None if None in truths else not decides
    return None


def _compares_order(test: ast.expr) -> bool:
    """Return whether a condition compares values, and not only how many there are."""
    for node in ast.walk(test):
        match node:
            case ast.Compare(ops=ops) if "len" not in _names_in(node):
                if any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in ops):
                    return True
            case ast.Call(func=ast.Name(id="abs" | "max" | "min" | "range")):
                return True
    return False


def _atoms(tree: ast.AST) -> set[str]:
    """Return the names and the attributes of an expression."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return _names_in(tree) | {node.attr for node in nodes if id(node) not in called}


def _names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _numbers(tree: ast.AST) -> set[float]:
    """Return the numbers that say something: 0 and 1 are written in many ways."""
    values = map(_constant, ast.walk(tree))
    return {value for value in values if isinstance(value, int | float) and abs(value) > 1}


def _constant(node: ast.AST) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
