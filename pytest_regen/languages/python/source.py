"""What Python source says without being run: what it declares, where, and what must not run.

Types and names on the wire are not worked out here, because the interpreter and pydantic say them:
see ``reflection``. What running cannot tell stays: which line declares a field, a field that is
declared twice, and what a module must not do while it is imported.
"""

import ast
import builtins
import io
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_regen.languages import artifacts
from pytest_regen.languages.base import (
    Attribute,
    Declaration,
    Member,
    SourceFacts,
    SyntaxFault,
    TypeRef,
)
from pytest_regen.languages.names import word_set
from pytest_regen.languages.python.names import HEADER_CLASSES
from pytest_regen.text import in_quotes

MODULES: Final = word_set(
    """
    __future__ abc annotated_types builtins collections dataclasses datetime decimal enum fractions
    functools ipaddress itertools math numbers operator pathlib pydantic pydantic_core re string
    types typing typing_extensions uuid zoneinfo
    """
)
"""Modules that types are made of: a block may import them."""

VERSION: Final = (3, 11)
"""The Python that code is written for, whatever runs this."""

_ENUMS: Final = word_set("Enum Flag IntEnum IntFlag ReprEnum StrEnum")
_FORMS: Final = _ENUMS | {"Literal", "TypedDict"}
_SETTINGS: Final = word_set("Field PrivateAttr conint constr condecimal confloat conlist field")
_BUILTINS: Final = word_set(
    """
    bool bytes classmethod dict float frozenset int list object property set staticmethod str super
    tuple type
    """
)
"""Builtins that may be called while a module is imported."""
_HOOKS: Final = word_set("__init_subclass__ __set_name__ __class_getitem__ __prepare__")
"""Methods that run while classes are made, before anybody asks for it."""
_QUIET: Final = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Import | ast.ImportFrom


def parse(code: str) -> ast.Module:
    """Return the tree of ``code``.

    Raises:
        SyntaxError: the interpreter refuses it.
        ValueError: it holds a null character, or is nested too deeply.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that a later Python will refuse
            return ast.parse(code.removeprefix("\ufeff"), feature_version=VERSION)
    except (MemoryError, RecursionError) as error:
        raise ValueError("this is nested too deeply") from error


def first_fault(code: str, error: SyntaxError | ValueError) -> SyntaxFault:
    """Return the fault of code that the interpreter refuses, in its own words."""
    lines = code.split("\n")
    line = min(getattr(error, "lineno", None) or 1, len(lines))
    # Prose above the code is found by what follows it: the line before is looked at as well.
    for at in (line, line - 1):
        message = artifacts.leftover(lines[at - 1]) if at else None
        if message:
            return SyntaxFault(at, message, "ARTIFACT", in_member=False)
    reason = (getattr(error, "msg", None) or str(error)).partition(" (detected at")[0]
    shown = lines[line - 1].strip()[:80]
    return SyntaxFault(line, f"{reason}: {in_quotes(shown)}" if shown else reason)


def read(code: str) -> SourceFacts:
    """Return what ``code`` declares and must not have; of illegal code its first fault.

    Args:
        code: Python source; a byte order mark and any line ends are allowed.
    """
    code = code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = parse(code)
    except (SyntaxError, ValueError) as error:
        return SourceFacts(faults=(first_fault(code, error),))
    declarations: list[Declaration] = []
    aliases: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            aliases.update(_bound(node))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            if node.name in HEADER_CLASSES or node.name.startswith("_"):
                aliases.add(node.name)  # of the header, or a help to the types of the API
            else:
                declarations += _class(node, None)
        elif isinstance(node, ast.FunctionDef):
            aliases.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and (name := _target(node)):
            declared = _assigned(node, name)
            aliases |= set() if declared else {name}
            declarations += [declared] if declared else []
    faults = [*_refused(tree), *_comment_faults(code)]
    return SourceFacts(
        tuple(declarations),
        tuple(sorted(faults, key=lambda fault: fault.line)),
        aliases=frozenset(aliases),
    )


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    for alias in node.names:
        is_from = isinstance(node, ast.ImportFrom)
        yield alias.asname or (alias.name if is_from else alias.name.partition(".")[0])


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    """Return the name that an assignment gives to a value; empty where it gives not just one."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    only = targets[0]
    return only.id if len(targets) == 1 and isinstance(only, ast.Name) and node.value else ""


def comments(code: str) -> Iterator[tuple[str, int]]:
    """Yield the comments of legal code, and the line of each."""
    if "#" in code:
        try:
            for token in tokenize.generate_tokens(io.StringIO(code).readline):
                if token.type == tokenize.COMMENT:
                    yield token.string, token.start[0]
        except (tokenize.TokenError, SyntaxError):
            return


def _comment_faults(code: str) -> Iterator[SyntaxFault]:
    for text, line in comments(code):
        # "#:" begins a comment that is a description.
        is_documentation = text.startswith("#:")
        fault = artifacts.fault_of_comment(text, line, is_documentation=is_documentation)
        if fault is not None:
            yield fault


# --- declarations ---------------------------------------------------------------------------------


def dotted(node: ast.expr | None) -> str:
    """Return ``a.b`` for a name or an attribute of names, else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := dotted(node.value)):
        return f"{inner}.{node.attr}"
    return ""


def last_name(node: ast.expr | None) -> str:
    """Return the simple name of what is called, subscribed or named."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    return dotted(node).rpartition(".")[2]


def _first_line(node: ast.ClassDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _class(node: ast.ClassDef, outer: str | None) -> Iterator[Declaration]:
    bases = {last_name(base) for base in node.bases}
    is_enum = bool(bases & _ENUMS)
    members: list[Member] = []
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and not is_enum:
            members.append(_field(part, part.target.id, is_key="TypedDict" in bases))
        elif isinstance(part, ast.Assign) and is_enum and not _target(part).startswith("_"):
            members.append(_value(part, part.value, _target(part)))
    yield Declaration(
        node.name,
        "enum" if is_enum else "class",
        _first_line(node),
        node.end_lineno or node.lineno,
        tuple(members),
        outer=outer,
        bases=tuple(TypeRef(last_name(base), line=base.lineno) for base in node.bases),
        name_line=node.lineno,
    )
    for part in node.body:
        # ``Config`` is how pydantic was set up before version 2.
        if isinstance(part, ast.ClassDef) and part.name != "Config":
            yield from _class(part, node.name)


def _field(node: ast.AnnAssign, name: str, *, is_key: bool) -> Member:
    values = _settings(node)
    alias = values.get("alias")
    if values.get("validation_alias") == values.get("serialization_alias") is not None:
        alias = values["validation_alias"]
    wire = name if is_key else alias if isinstance(alias, str) else None
    return Member(
        name,
        "field",
        node.lineno,
        node.end_lineno or node.lineno,
        wire,
        attributes=tuple(
            Attribute(key, (value if isinstance(value, str | int | bool) else repr(value),))
            for key, value in values.items()
        ),
        is_serialized=is_key or not name.startswith("_"),
    )


def _settings(node: ast.AST) -> dict[str, object]:
    """Return the constants that calls of ``Field`` and the like are given, wherever they stand."""
    values: dict[str, object] = {}
    for call in ast.walk(node):
        if not isinstance(call, ast.Call) or last_name(call) not in _SETTINGS:
            continue
        for keyword in call.keywords:
            pairs: Sequence[tuple[str | None, ast.expr]] = [(keyword.arg, keyword.value)]
            if keyword.arg == "metadata" and isinstance(keyword.value, ast.Dict):
                keys = [constant(key) for key in keyword.value.keys]
                pairs = [
                    (str(key), value) for key, value in zip(keys, keyword.value.values, strict=True)
                ]
            for key, value in pairs:
                plain = constant(value)
                if key and plain is not None:
                    values[key] = plain
    return values


def constant(node: ast.expr | None) -> object:
    """Return the value of a literal; ``None`` for anything else."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None


def _value(node: ast.AST, value: ast.expr, name: str) -> Member:
    plain = constant(value)
    wire = plain if isinstance(plain, str | int) and not isinstance(plain, bool) else None
    line = getattr(node, "lineno", value.lineno)
    return Member(
        name,
        "value",
        line,
        getattr(node, "end_lineno", None) or line,
        wire,
        number=wire if isinstance(wire, int) else None,
    )


def _assigned(node: ast.Assign | ast.AnnAssign, name: str) -> Declaration | None:
    """Return the type that an assignment declares: a TypedDict, a Literal, an enum by a call."""
    value = node.value
    form = last_name(value) if isinstance(value, ast.Call | ast.Subscript) else ""
    if form not in _FORMS:
        return None
    members: list[Member] = []
    if isinstance(value, ast.Subscript):
        parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        members = [_value(part, part, ast.unparse(part)[:100]) for part in parts]
    elif isinstance(value, ast.Call) and form == "TypedDict":
        for entries in value.args:
            if isinstance(entries, ast.Dict):
                members += [
                    Member(key, "field", spot.lineno, entry.end_lineno or entry.lineno, key)
                    for spot, entry in zip(entries.keys, entries.values, strict=True)
                    if spot is not None and isinstance(key := constant(spot), str)
                ]
    is_enum = form != "TypedDict"
    return Declaration(
        name,
        "enum" if is_enum else "class",
        node.lineno,
        node.end_lineno or node.lineno,
        tuple(members),
        bases=() if is_enum else (TypeRef("TypedDict", line=node.lineno),),
        name_line=node.lineno,
    )


# --- what must not run ----------------------------------------------------------------------------


def _refused(tree: ast.Module) -> Iterator[SyntaxFault]:
    """Yield imports of what types are not made of, and what would run while types are imported.

    Where nothing shuts a module in, this keeps it from reaching out by what stands in it: only
    plain calls of what types are made of pass. A text that is evaluated as an annotation is not
    looked into; the sandbox alone keeps that in.
    """
    functions = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.If):
            if last_name(node.test) != "TYPE_CHECKING":
                yield _no("an 'if' that is decided at import", node)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            if isinstance(node, ast.Expr) and not is_text and not is_call:
                yield SyntaxFault(
                    node.lineno,
                    f"this stands outside of every class: {in_quotes(ast.unparse(node)[:80])}",
                )
        elif not isinstance(node, _QUIET):
            yield _no("a statement that runs at import", node)
        yield from _calls(node, functions)


def _no(what: str, node: ast.stmt | ast.expr) -> SyntaxFault:
    shown = in_quotes(ast.unparse(node).split("\n", 1)[0][:80])
    return SyntaxFault(node.lineno, f"{what}: {shown}", "NOT_ALLOWED", in_member=False)


def _foreign_imports(node: ast.Import | ast.ImportFrom) -> Iterator[SyntaxFault]:
    for alias in node.names:
        module = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
        is_relative = isinstance(node, ast.ImportFrom) and node.level > 0
        if is_relative or module.partition(".")[0] not in MODULES or alias.name == "*":
            shown = in_quotes(ast.unparse(node))
            message = f"types import only what types are made of; this is not: {shown}"
            yield SyntaxFault(node.lineno, message, "NOT_ALLOWED", in_member=False)
            return


def _calls(node: ast.AST, functions: set[str]) -> Iterator[SyntaxFault]:
    """Yield what runs at import below a statement, bodies of functions left aside."""
    waiting: list[ast.AST] = [node]
    while waiting:
        at = waiting.pop()
        for decorator in getattr(at, "decorator_list", ()):
            if not isinstance(decorator, ast.Call) and not _is_quiet(decorator, functions):
                yield _no("a decorator that runs at import", decorator)
        match at:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if at.name in _HOOKS:
                    yield _no("a method that runs while classes are made", at)
                defaults = [one for one in at.args.kw_defaults if one]
                waiting += [*at.decorator_list, *at.args.defaults, *defaults]
            case ast.Lambda():
                pass
            case ast.Import() | ast.ImportFrom():
                yield from _foreign_imports(at)
            case ast.ClassDef():
                yield from _class_calls(at, waiting)
            case _:
                yield from _call(at, functions)
                waiting += ast.iter_child_nodes(at)


def _class_calls(node: ast.ClassDef, waiting: list[ast.AST]) -> Iterator[SyntaxFault]:
    """Yield what a class must not have, and add what of it runs to what waits to be looked at."""
    if any(one.arg == "metaclass" for one in node.keywords):
        yield _no("a metaclass, which runs while classes are made", node)
    for part in node.body:
        if isinstance(part, ast.Assign | ast.AnnAssign | ast.Expr | ast.Pass | _QUIET):
            waiting.append(part)
        else:
            yield _no("a statement that runs at import", part)
    waiting += [*node.decorator_list, *node.bases, *(one.value for one in node.keywords)]


def _call(node: ast.AST, functions: set[str]) -> Iterator[SyntaxFault]:
    if isinstance(node, ast.Call) and not _is_quiet(node.func, functions):
        yield _no("a call that runs at import", node)
    if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
        yield _no("a name of Python's own, read at import", node)


def _is_quiet(called: ast.expr, functions: set[str]) -> bool:
    """Return whether a call makes part of a type, as far as its name tells.

    What is imported makes types; a name that nothing declares ends the import by itself.
    """
    name = dotted(called).removeprefix("builtins.")
    root, _, last = name.partition(".")
    if not name or root in functions or (hasattr(builtins, root) and root not in _BUILTINS):
        return False
    # The methods of paths read and write files.
    return root not in {"Path", "PurePath", "pathlib"} or last.rpartition(".")[2][:1].isupper()


def why_undefined(name: str) -> str:
    """Return how to make a name known that is declared nowhere, as far as that can be told."""
    for module in ("typing", "pydantic", "datetime", "decimal", "uuid", "enum", "collections.abc"):
        if name in _exports(module):
            return f"add the line: from {module} import {name}"
    return ""


def _exports(module: str) -> frozenset[str]:
    from importlib import import_module

    return frozenset(getattr(import_module(module), "__all__", ()))
