"""Code as the reference of the documentation words it: signatures, fields, docstrings, tables.

Read from the source where that says more than objects do: what stands below an attribute, and how
an annotation was written.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, get_args

__all__ = [
    "WIDTH",
    "Docstring",
    "Field",
    "Rows",
    "cell",
    "definition",
    "fields_of",
    "first_paragraph",
    "members",
    "prose",
    "sentence",
    "signature",
    "table",
    "tree_of",
]

Rows = Iterable[tuple[str, ...]]


class Field(NamedTuple):
    """A field of a class: its name, its type in the words of JSON, and what it is for."""

    name: str
    type: str
    text: str


def fields_of(cls: type) -> list[Field]:
    """Return the fields of a class, and what stands below each.

    Raises:
        LookupError: one of them says nothing: there is no reference without that.
    """
    node = definition(cls)
    assert isinstance(node, ast.ClassDef)
    found = [
        Field(name, json_words(kind), cell(text))
        for name, kind, text in attributes(node)
        if not name.startswith("_") and name != "model_config"
    ]
    silent = [field.name for field in found if not field.text]
    if silent:
        raise LookupError(f"{cls.__qualname__}: {', '.join(silent)} without a docstring below")
    return found


def attributes(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr, str]]:
    """Yield annotated attributes: name, annotation, and the text that stands below."""
    for child, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            said = after.value if isinstance(after, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) else ""
            yield child.target.id, child.annotation, inspect.cleandoc(str(text))


_JSON = {
    "str": "text", "StrictStr": "text", "int": "integer", "StrictInt": "integer",
    "bool": "`true`, `false`", "StrictBool": "`true`, `false`", "Any": "any", "object": "any",
    "None": "`null`", "Decimal": "number", "TypeExpr": "type expression",
    "EnumValue": "text or integer",
    "Severity": "`error`, `warning`", "Usage": "object", "PastReason": "text",
    "ScalarKind": "`string`, `integer`, `number`, `boolean`, `any`",
}  # fmt: skip


def json_words(node: ast.expr) -> str:
    """Return an annotation in the words of JSON and TOML."""
    if isinstance(node, ast.Constant):
        if node.value is None:
            return "`null`"
        return json_words(ast.parse(str(node.value), mode="eval").body)
    if isinstance(node, ast.BinOp):
        return f"{json_words(node.left)} or {json_words(node.right)}"
    if isinstance(node, ast.Subscript):
        outer = ast.unparse(node.value)
        if outer == "Literal":
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return ", ".join(f"`{ast.literal_eval(one)}`" for one in inner)
        if outer in {"tuple", "list", "Sequence"}:
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            return f"list of {json_words(first)}"
        return "object"
    name = ast.unparse(node)
    if choices := get_args(getattr(import_module("pytest_regen.modes"), name, None)):
        return ", ".join(f"`{choice}`" for choice in choices)
    return _JSON.get(name, "object")


class Docstring(NamedTuple):
    """What a docstring says, and what it says of each argument, as Markdown."""

    text: str
    arguments: list[tuple[str, str]]

    @classmethod
    def of(cls, docstring: str) -> "Docstring":
        """Take apart what is written in Google's style; what comes after ``Args:`` is left out."""
        text, _, rest = inspect.cleandoc(docstring).partition("\nArgs:\n")
        text = re.split(r"\n(?:Raises|Returns|Yields):\n", text)[0]
        listed = re.split(r"\n(?=\S)", rest)[0]
        found = re.findall(
            r"^ {4}(\*{0,2}\w+): (.*?)(?=^ {4}\S|\Z)",
            textwrap.indent(textwrap.dedent(listed), "    "),
            re.MULTILINE | re.DOTALL,
        )
        return cls(prose(text), [(name, cell(sentence(text))) for name, text in found])


@cache
def tree_of(module: Any) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(inspect.getsource(module))


def first_paragraph(docstring: str) -> str:
    """Return the first paragraph."""
    return " ".join(_plain(docstring.split("\n\n", maxsplit=1)[0]).split())


def _plain(text: str) -> str:
    """Return a docstring as Markdown: code between single back-ticks, no colon before a block."""
    return text.replace("``", "`")


def prose(text: str) -> str:
    """Return a docstring's paragraphs as Markdown; an indented block becomes a fenced one."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("    "):
            parts.append(f"```python\n{textwrap.dedent(paragraph)}\n```")
        else:
            parts.append(textwrap.fill(_plain(re.sub(r"::$", ":", paragraph)), 120,
                                       break_long_words=False, break_on_hyphens=False))  # fmt: skip
    return "\n\n".join(parts)


def sentence(text: str) -> str:
    """Return a text that begins with a capital and ends with a full stop."""
    text = " ".join(text.split())
    if not text:
        return text
    word = text.split()[0].rstrip(",.:;")
    start = text[0].upper() if word.isalpha() and word.islower() else text[0]
    return f"{start}{text[1:]}" + ("" if text[-1] in ".!?" else ".")


def cell(text: str) -> str:
    """Return a text as the cell of a table."""
    plain = " ".join(_plain(text).split()).replace("|", "\\|")
    # Between back-ticks it is code; elsewhere Markdown would take it for a tag.
    return re.sub(r"(`[^`]*`)|<", lambda match: match[1] or "&lt;", plain)


def table(head: tuple[str, ...], rows: Rows) -> str:
    """Return a table in Markdown; cells are Markdown already."""
    lines = [head, ("---",) * len(head), *rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return text.replace(" --- ", "---")


# -- how something is called


def definition(value: Any) -> ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef:
    """Return where a class or function is defined."""
    value = inspect.unwrap(value)
    for node in ast.walk(tree_of(sys.modules[value.__module__])):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name == value.__name__:
                    return node
    raise LookupError(value)


def members(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield what a class offers that says what it is for."""
    for name, kind, text in attributes(node):
        del kind
        if text and not name.startswith("_"):
            yield f"`{name}`", cell(text)
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            said = first_paragraph(ast.get_docstring(child) or "")
            if said and not child.name.startswith("_"):
                decorators = {ast.unparse(decorator) for decorator in child.decorator_list}
                is_value = bool(decorators & {"property", "cached_property"})
                call = child.name if is_value else f"{child.name}({_names(child.args)})"
                yield f"`{call}`", cell(said)


def _names(arguments: ast.arguments) -> str:
    """Return the names of a method's arguments, those with a default last as ``…``."""
    listed = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    listed = [name for name in listed if name not in {"self", "cls"}]
    required = listed[: len(listed) - len(arguments.defaults)] if arguments.defaults else listed
    has_more = len(required) < len(listed) or arguments.kwonlyargs or arguments.kwarg
    return ", ".join([*required, *(["…"] if has_more else [])])


WIDTH = 88


def signature(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return how something is called, a line for each argument where that is long."""
    if isinstance(node, ast.ClassDef):
        return _constructor(node)
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {_annotation(node.returns)}" if node.returns else ""
    return _call(f"{word} {node.name}", _parameters(node.args), returns)


def _constructor(node: ast.ClassDef) -> str:
    bases = {ast.unparse(base) for base in node.bases}
    made = next((child for child in node.body if getattr(child, "name", "") == "__init__"), None)
    if isinstance(made, ast.FunctionDef):
        return _call(f"class {node.name}", _parameters(made.args)[1:], "")
    is_data = "Value" in bases or any(
        "dataclass" in ast.unparse(decorator) for decorator in node.decorator_list
    )
    if is_data:
        fields = [
            f"{ast.unparse(child.target)}: {_annotation(child.annotation)}"
            + (f" = {ast.unparse(child.value)}" if child.value else "")
            for child in node.body
            if isinstance(child, ast.AnnAssign)
        ]
        shown = [re.sub(r" = (?:(?:dataclasses\.)?field|Field)\(.*", " = …", one) for one in fields]
        return _call(f"class {node.name}", [one for one in shown if one[0] != "_"], "")
    shown = sorted(bases - {"Generic[Parsed]"})
    return f"class {node.name}" + (f"({', '.join(shown)})" if shown else "")


def _parameters(arguments: ast.arguments) -> list[str]:
    """Return the parameters of a function, as they are written."""
    node = ast.parse(f"def f({ast.unparse(arguments)}): ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    found: list[str] = []
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(plain) - len(node.args.defaults)) + list(node.args.defaults)
    for argument, default in zip(plain, defaults, strict=True):
        found.append(_parameter_text(argument, default))
    if node.args.vararg:
        found.append("*" + _parameter_text(node.args.vararg, None))
    elif node.args.kwonlyargs:
        found.append("*")
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        found.append(_parameter_text(argument, default))
    if node.args.kwarg:
        found.append("**" + _parameter_text(node.args.kwarg, None))
    return found


def _parameter_text(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_annotation(argument.annotation)}" if argument.annotation else ""
    shown = "" if default is None else ast.unparse(default)
    # What is private to a module says nothing to a reader.
    value = (" = " if kind else "=") + ("…" if shown.startswith("_") else shown) if shown else ""
    return argument.arg + kind + value


def _annotation(node: ast.expr) -> str:
    """Return an annotation without quotes that only delay it, and without what validates."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated":
        assert isinstance(node.slice, ast.Tuple)
        return ast.unparse(node.slice.elts[0])
    return ast.unparse(node)


def _call(head: str, parameters: list[str], tail: str) -> str:
    line = f"{head}({', '.join(parameters)}){tail}"
    if len(line) <= WIDTH:
        return line
    return f"{head}(\n" + "".join(f"    {one},\n" for one in parameters) + f"){tail}"
