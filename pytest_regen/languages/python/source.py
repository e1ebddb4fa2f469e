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
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import accumulate
from pkgutil import resolve_name
from types import ModuleType
from typing import Final

from pytest_regen.languages import artifacts, base
from pytest_regen.languages.names import word_set
from pytest_regen.languages.python.names import HEADER_CLASSES, RESERVED_TYPE_NAMES
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
_BUILTINS: Final = word_set(
    """
    bool bytes classmethod dict float frozenset int list object property set staticmethod str super
    tuple type
    """
)
"""Builtins that may be called while a module is imported."""
_HOOKS: Final = word_set("__init_subclass__ __set_name__ __class_getitem__ __prepare__")
"""Methods that run while classes are made, before anybody asks for it."""
_FOREIGN: Final = "types import only what types are made of; this is not"
_IMPORTS: Final = (ast.Import, ast.ImportFrom)
_DEFINITIONS: Final = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef)
_STATEMENTS: Final = (*_IMPORTS, *_DEFINITIONS, ast.AnnAssign, ast.Assign, ast.Expr, ast.Pass)
"""Statements that a module or a class may have."""


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


def first_fault(code: str, error: SyntaxError | ValueError) -> base.SyntaxFault:
    """Return the fault of code that the interpreter refuses, in its own words."""
    lines = code.split("\n")
    line = min(getattr(error, "lineno", None) or 1, len(lines))
    # Prose above the code is found by what follows it: the line before is looked at as well.
    for at in (line, line - 1):
        message = artifacts.leftover(lines[at - 1]) if at else None
        if message:
            return base.SyntaxFault(at, message, "ARTIFACT", in_member=False)
    reason = (getattr(error, "msg", None) or str(error)).partition(" (detected at")[0]
    text = lines[line - 1].strip()[:80]
    return base.SyntaxFault(line, f"{reason}: {in_quotes(text)}" if text else reason)


def read(code: str) -> base.SourceFacts:
    """Return what ``code`` declares and must not have; of illegal code its first fault.

    Args:
        code: Python source; a byte order mark and any line ends are allowed.
    """
    code = code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = parse(code)
    except (SyntaxError, ValueError) as error:
        return base.SourceFacts(faults=(first_fault(code, error),))
    declarations: list[base.Declaration] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            # What begins with an underscore is a help to the types of the API.
            if node.name not in HEADER_CLASSES and not node.name.startswith("_"):
                declarations += _class(node, None)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            declarations += _assigned(node)
    faults = [*_refused(tree)]
    for text, line in comments(code):
        # "#:" begins a comment that is a description.
        is_documentation = text.startswith("#:")
        fault = artifacts.fault_of_comment(text, line, is_documentation=is_documentation)
        faults += [fault] if fault else []
    return base.SourceFacts(
        tuple(declarations),
        tuple(sorted(faults, key=lambda fault: fault.line)),
        # What another name stands for may be a type of the API, or help its types.
        aliases=frozenset(names_bound(tree))
        - {entry.name for entry in declarations if entry.kind != "alias"},
    )


def names_bound(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return the names that imports, declarations and assignments give, each with its statement."""
    bound: dict[str, ast.stmt] = {}
    for node in (*(part for part in ast.walk(tree) if isinstance(part, _IMPORTS)), *tree.body):
        if isinstance(node, _IMPORTS):
            bound |= dict.fromkeys(_imported(node), node)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            bound[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign) and (name := _target(node)):
            bound[name] = node
    return bound


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return the names that an import gives, and the path to what each stands for."""
    if isinstance(node, ast.ImportFrom):
        place = "." * node.level + (node.module or "")
        return {alias.asname or alias.name: f"{place}.{alias.name}" for alias in node.names}
    names = [(alias.asname, alias.name, alias.name.partition(".")[0]) for alias in node.names]
    return {renamed or root: path if renamed else root for renamed, path, root in names}


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    """Return the name that an assignment gives to a value; empty where it gives not just one."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return dotted(targets[0]) if len(targets) == 1 and node.value else ""


def comments(code: str) -> Iterator[tuple[str, int]]:
    """Yield the comments of legal code, and the line of each."""
    if "#" in code:
        try:
            for token in tokenize.generate_tokens(io.StringIO(code).readline):
                if token.type == tokenize.COMMENT:
                    yield token.string, token.start[0]
        except (tokenize.TokenError, SyntaxError):
            return


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


def _class(node: ast.ClassDef, outer: str | None) -> Iterator[base.Declaration]:
    bases = {last_name(base) for base in node.bases}
    is_enum = bool(bases & _ENUMS)
    members: list[base.Member] = []
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and not is_enum:
            members.append(_field(part, part.target.id, is_key="TypedDict" in bases))
        elif isinstance(part, ast.Assign) and is_enum and not _target(part).startswith("_"):
            members.append(_value(part, part.value, _target(part)))
    yield base.Declaration(
        node.name,
        "enum" if is_enum else "class",
        # Above the name, because decorators belong to the class.
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]),
        node.end_lineno or node.lineno,
        tuple(members),
        outer=outer,
        name_line=node.lineno,
    )
    for part in node.body:
        # ``Config`` is how pydantic was set up before version 2.
        if isinstance(part, ast.ClassDef) and part.name != "Config":
            yield from _class(part, node.name)


def _field(node: ast.AnnAssign, name: str, *, is_key: bool) -> base.Member:
    """Return a field with its JSON name and limits, as far as calls give them as literals."""
    values: dict[object, object] = {}
    # All that stand in it, because ``Field`` may be inside ``Annotated``, an alias in metadata.
    for part in ast.walk(node):
        if isinstance(part, ast.keyword):
            plain = _constant(part.value)
            values |= plain if isinstance(plain, dict) else {part.arg: plain}
    alias = values.get("alias")
    if values.get("validation_alias") == values.get("serialization_alias") is not None:
        alias = values["validation_alias"]
    wire = name if is_key else alias if isinstance(alias, str) else None
    limits = (str(key) for key, value in values.items() if value is not None)
    return base.Member(
        name,
        "field",
        node.lineno,
        node.end_lineno or node.lineno,
        wire,
        attributes=tuple(map(base.Attribute, limits)),
        is_serialized=is_key or not name.startswith("_"),
    )


def _constant(node: ast.expr) -> object:
    """Return the value of a literal; ``None`` for anything else."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None


def _value(node: ast.stmt | ast.expr, value: ast.expr, name: str) -> base.Member:
    plain = _constant(value)
    wire = plain if isinstance(plain, str | int) and not isinstance(plain, bool) else None
    number = wire if isinstance(wire, int) else None
    return base.Member(name, "value", node.lineno, node.end_lineno or 0, wire, number=number)


def _assigned(node: ast.Assign | ast.AnnAssign) -> Iterator[base.Declaration]:
    """Yield what an assignment declares: a TypedDict, a Literal, an enum by a call, an alias."""
    value, name = node.value, _target(node)
    form = last_name(value) if isinstance(value, ast.Call | ast.Subscript) else ""
    if not name or name in RESERVED_TYPE_NAMES:
        return
    members: list[base.Member] = []
    if form == "Literal" and isinstance(value, ast.Subscript):
        parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        members = [_value(part, part, ast.unparse(part)[:100]) for part in parts]
    elif isinstance(value, ast.Call) and form == "TypedDict":
        members = [
            base.Member(str(key.value), "field", key.lineno, entry.end_lineno or 0, str(key.value))
            for entries in value.args
            if isinstance(entries, ast.Dict)
            for key, entry in zip(entries.keys, entries.values, strict=True)
            if isinstance(key, ast.Constant)
        ]
    is_call = form == "TypedDict"
    yield base.Declaration(
        name,
        "class" if is_call else "enum" if form in _FORMS else "alias",
        node.lineno,
        node.end_lineno or node.lineno,
        tuple(members),
        name_line=node.lineno,
    )


# --- what must not run ----------------------------------------------------------------------------


def _refused(tree: ast.Module) -> Iterator[base.SyntaxFault]:
    """Yield imports of what types are not made of, and what would run while types are imported.

    Where nothing shuts a module in, this keeps it from reaching out by what stands in it: only
    plain calls of what types are made of pass.
    """
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    paths = {"dt": "datetime"}  # The header gives this name.
    for node in ast.walk(tree):
        paths |= _imported(node) if isinstance(node, _IMPORTS) else {}
    for node in tree.body:
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant | ast.Call):
            text = in_quotes(ast.unparse(node)[:80])
            yield base.SyntaxFault(node.lineno, f"this stands outside of every class: {text}")
    for part in _running(tree):
        why = _why_refused(part, functions, paths)
        if why and isinstance(part, ast.stmt | ast.expr):
            text = in_quotes(ast.unparse(part).split("\n", 1)[0][:80])
            yield base.SyntaxFault(part.lineno, f"{why}: {text}", "NOT_ALLOWED", in_member=False)


def _running(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what runs while a module is imported: all but the bodies of functions.

    A text that stands for a type counts as the code that it is, because pydantic evaluates it.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        # A decorator without brackets is called all the same.
        calls = [
            each if isinstance(each, ast.Call) else ast.copy_location(ast.Call(each, [], []), each)
            for each in getattr(node, "decorator_list", ())
        ]
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                # pydantic evaluates what some functions return, such as computed fields.
                returned = [unquoted(node.returns)] if node.returns else []
                waiting += [*calls, node.args, *returned]
            case ast.ClassDef():
                waiting += [*calls, *node.bases, *node.keywords, *node.body]
            case ast.Lambda():
                waiting.append(node.args)
            case ast.stmt() if not isinstance(node, (*_STATEMENTS, ast.If)):
                pass  # What stands in it is not told, because it is refused as a whole.
            case ast.Subscript(slice=part) if last_name(node) != "Literal":
                parts = part.elts if isinstance(part, ast.Tuple) else [part]
                waiting += [node.value, *map(unquoted, parts)]
            case ast.Call(args=[_, ast.Dict(values=values)]) if last_name(node) == "TypedDict":
                texts = [unquoted(value) for value in values if isinstance(value, ast.Constant)]
                waiting += [*ast.iter_child_nodes(node), *texts]
            case ast.AnnAssign(annotation=annotation, value=value):
                waiting += [node.target, unquoted(annotation), *([value] if value else [])]
            case _:
                waiting += ast.iter_child_nodes(node)


def unquoted(annotation: ast.expr) -> ast.expr:
    """Return the type that a text stands for, or what is no such text as it is."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            inner = ast.parse(annotation.value.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return annotation
        for node in ast.walk(inner):
            ast.copy_location(node, annotation)
        return inner
    return annotation


def _why_refused(node: ast.AST, functions: set[str], paths: Mapping[str, str]) -> str:
    """Return what is wrong with code that runs at import, or nothing."""
    match node:
        case ast.If(test=test) if last_name(test) == "TYPE_CHECKING":
            return ""
        case ast.Import() | ast.ImportFrom() if any(
            path.partition(".")[0] not in MODULES or path.endswith("*") or _leads_away(path, {})
            for path in _imported(node).values()
        ):
            return _FOREIGN
        case ast.Attribute() if _leads_away(dotted(node), paths):
            return "a module that types are not made of"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in _HOOKS:
            return "a method that runs while classes are made"
        case ast.ClassDef(keywords=keywords) if any(word.arg == "metaclass" for word in keywords):
            return "a metaclass, which runs while classes are made"
        case ast.Call(func=called) if not _is_quiet(called, functions):
            return "a call that runs at import"
        case ast.Attribute(attr=name) if name.startswith("__"):
            return "a name of Python's own, read at import"
        case ast.stmt() if not isinstance(node, _STATEMENTS):
            return "a statement that runs at import"
    return ""


def _leads_away(path: str, paths: Mapping[str, str]) -> bool:
    """Return whether a path goes through a module that another one imported: ``typing.sys``.

    Args:
        path: names with dots between them.
        paths: what its first name may stand for.
    """
    root, *names = path.split(".")
    root, *inner = paths.get(root, root).split(".")
    if root in MODULES:
        # Step by step, because what an attribute of the foreign module is does not matter.
        for place in accumulate((root, *inner, *names), "{}.{}".format):
            with suppress(AttributeError, ImportError), warnings.catch_warnings(action="ignore"):
                value = resolve_name(place)
                if isinstance(value, ModuleType) and value.__name__ != place:
                    return True
    return False


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
        if name in getattr(import_module(module), "__all__", ()):
            return f"add the line: from {module} import {name}"
    return ""
