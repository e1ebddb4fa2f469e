"""Code as the reference of the documentation words it: signatures, fields, docstrings, lists.

Read from the source where that says more than objects do: what stands below an attribute, and how
an annotation was written.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, get_args

__all__ = [
    "Field",
    "Rows",
    "arguments_of",
    "bullets",
    "definition",
    "fields_of",
    "first_paragraph",
    "inline",
    "is_data",
    "members",
    "prose",
    "sentence",
    "signature",
    "tree_of",
]

Rows = Iterable[tuple[str, ...]]


class Field(NamedTuple):
    """A field of a class: its name, the words that it may be, and what it is for."""

    name: str
    choices: str
    text: str


def fields_of(cls: type) -> list[Field]:
    """Return the fields of a class, and what stands below each.

    Raises:
        LookupError: one of them says nothing: there is no reference without that.
    """
    node = definition(cls)
    assert isinstance(node, ast.ClassDef)
    fields = [
        Field(name, choices_of(child.annotation), inline(text))
        for child, name, text in _attributes(node)
        if not name.startswith("_") and name != "model_config"
    ]
    silent = [field.name for field in fields if not field.text]
    if silent:
        raise LookupError(f"{cls.__qualname__}: {', '.join(silent)} without a docstring below")
    return fields


def _attributes(node: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign, str, str]]:
    """Yield annotated attributes, the name of each, and the text that stands below."""
    for child, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            below = after.value if isinstance(after, ast.Expr) else None
            text = below.value if isinstance(below, ast.Constant) else ""
            yield child, child.target.id, inspect.cleandoc(str(text))


def choices_of(annotation: ast.expr) -> str:
    """Return the words that an annotation allows, or nothing where it allows any."""
    name = ast.unparse(annotation).removesuffix(" | None").removeprefix("modes.")
    allowed = get_args(getattr(import_module("pytest_regen.modes"), name, None))
    if name.startswith("Literal["):
        allowed = ast.literal_eval(f"({name[8:-1]},)")
    return ", ".join(f"`{choice}`" for choice in allowed)


def arguments_of(function: Any) -> list[tuple[str, str]]:
    """Return what a docstring in Google's style says of each argument."""
    _, _, arguments = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    listed = re.split(r"\n(?=\S)", arguments)[0]
    texts = re.findall(r"^ {4}(\w+): (.*?)(?=^ {4}\S|\Z)", listed, re.MULTILINE | re.DOTALL)
    return [(f"`{name}`", inline(sentence(text))) for name, text in texts]


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


def inline(text: str) -> str:
    """Return a text of a docstring as Markdown on one line."""
    # Between back-ticks it is code; elsewhere Markdown would take it for a tag.
    plain = " ".join(_plain(text).split())
    return re.sub(r"(`[^`]*`)|<", lambda match: match[1] or "&lt;", plain)


def bullets(rows: Rows) -> str:
    """Return a list in Markdown of names, and what each is for."""
    lines = (f"{name}: {text}" if text else name for name, text in rows)
    return "\n".join(f"- {line}" for line in lines)


# -- how something is called


def definition(value: Any) -> ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef:
    """Return where a class or function is defined."""
    value = inspect.unwrap(value)
    tree = tree_of(sys.modules[value.__module__])
    nodes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == value.__name__
    ]
    # The last one, because overloads come before what they stand for.
    return [node for node in nodes if node in tree.body or len(nodes) == 1][-1]


def is_data(node: ast.AST) -> bool:
    """Return whether something is a class that is made of its fields."""
    return isinstance(node, ast.ClassDef) and (
        any(ast.unparse(base) == "Value" for base in node.bases)
        or any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    )


def members(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield what a class offers that says what it is for, without asynchronous twins."""
    names = {getattr(child, "name", "") for child in node.body}
    for field, name, text in _attributes(node):
        if text and not name.startswith("_"):
            kind = "" if is_data(node) else f": {annotation_text(field.annotation)}"
            yield f"`{name}{kind}`", inline(text)
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            summary = first_paragraph(ast.get_docstring(child) or "")
            is_twin = isinstance(child, ast.AsyncFunctionDef) and child.name[1:] in names
            if summary and not is_twin and not child.name.startswith("_"):
                decorators = {ast.unparse(decorator) for decorator in child.decorator_list}
                is_value = bool(decorators & {"property", "cached_property"})
                yield f"`{child.name if is_value else signature(child)}`", inline(summary)


_LONG = 140


def signature(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return how something is called, on one line; a long one without the types of arguments."""
    if not isinstance(node, ast.ClassDef):
        line = _call(node)
        if len(line) <= _LONG:
            return line
        bare = deepcopy(node)
        for argument in ast.walk(bare.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return _call(bare)
    for child in node.body:
        # Who makes a store does so by its ``open``, because its constructor is ours alone.
        if isinstance(child, ast.FunctionDef) and child.name in {"__init__", "open"}:
            return f"{node.name}.{signature(child)}".replace(".__init__", "")
    if not is_data(node):
        return node.name
    fields = [
        ast.unparse(field.target) + (default and f"={default}")
        for field, name, _ in _attributes(node)
        if not name.startswith("_") and (default := _default(field.value)) != "…"
    ]
    return f"{node.name}({', '.join(fields)})"


def _call(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = node.returns and annotation_text(node.returns)
    parameters = [
        parameter for parameter in _parameters(node.args) if parameter not in {"self", "cls"}
    ]
    tail = f" -> {returns}" if returns not in {None, "None"} else ""
    word = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{word}{node.name}({', '.join(parameters)}){tail}"


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    """Yield the parameters of a function, as they are written."""
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in zip(plain, defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.vararg:
        yield "*" + _parameter(arguments.vararg, None)
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.kwarg:
        yield "**" + _parameter(arguments.kwarg, None)


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {annotation_text(argument.annotation)}" if argument.annotation else ""
    value = _default(default)
    return argument.arg + kind + (value and (" = " if kind else "=") + value)


def _default(value: ast.expr | None) -> str:
    """Return a default; what is long, worked out or private to a module says nothing here."""
    text = ast.unparse(value) if value else ""
    is_worked_out = "(" in text.replace("()", "") or text.startswith(("_", "lambda"))
    return "…" if is_worked_out or len(text) > 30 else text


def annotation_text(node: ast.expr) -> str:
    """Return an annotation without quotes that only delay it, and without what validates."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "ClassVar":
        return ast.unparse(node.slice)
    return ast.unparse(node)
