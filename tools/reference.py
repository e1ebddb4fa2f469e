"""Write the reference of the documentation from the code: what is true there is said there.

    python tools/reference.py

Writes ``docs/reference/*.md`` and the end of ``docs/commands.md``. A test runs the same and
compares, so that none of them can be out of date.
"""

import ast
import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin

from code_words import (
    WIDTH,
    Docstring,
    Field,
    Rows,
    cell,
    definition,
    fields_of,
    first_paragraph,
    members,
    prose,
    sentence,
    signature,
    table,
    tree_of,
)

__all__ = ["COMMAND", "DOCS", "pages"]

DOCS = Path(__file__).parents[1] / "docs"
COMMAND = "python tools/reference.py"
NOTE = f"<!-- Written by `{COMMAND}`; change the code that it reads. -->\n"


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each file that is written, and its text."""
    for name, (title, intro, body) in _PAGES.items():
        text = f"# {title}\n\n{NOTE}\n{intro}\n\n{body().strip()}\n"
        yield DOCS / "reference" / f"{name}.md", text
    page = DOCS / "commands.md"
    text, count = _PLACE.subn(lambda _: f"\n{_commands()}\n\n", page.read_text("utf-8"))
    if count != 1:
        raise LookupError(f"{page.name} has {count} places for the commands, not one")
    yield page, text


_PLACE = re.compile(r"(?<=<!-- commands -->\n).*(?=<!-- /commands -->)", re.DOTALL)


def main() -> None:
    """Write what has changed."""
    (DOCS / "reference").mkdir(exist_ok=True)
    for path, text in pages():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(path.relative_to(DOCS.parent))


# -- commands


def _commands() -> str:
    import typer

    from pytest_regen.cli.app import COMMANDS

    callbacks: dict[str, tuple[Callable[..., Any], str]] = {}
    for name, (module, summary) in COMMANDS.items():
        found = getattr(import_module(f"pytest_regen.cli.{module}"), name)
        if isinstance(found, typer.Typer):
            for inner in found.registered_commands:
                assert inner.callback is not None
                word = inner.name or inner.callback.__name__
                # The hidden one is what the group does where no command is named.
                full = name if inner.hidden else f"{name} {word}"
                callbacks[full] = inner.callback, inner.help or ""
        else:
            callbacks[name] = found, summary
    options = {name: _parameters_of(function) for name, (function, _) in callbacks.items()}
    counts = Counter(line for _, lines in options.values() for line in lines)
    shared = [line for line, count in counts.items() if count > 1 and line.startswith("- `-")]
    parts = ["### Options of several commands\n\n" + "\n".join(shared)]
    for name, (function, summary) in callbacks.items():
        usage, lines = options[name]
        also = ", ".join(
            re.findall(r"`-[^:]*?`", "".join(each for each in shared if each in lines))
        )
        parts.append(
            f"### `{name}`\n\n{prose(inspect.getdoc(function) or summary)}\n\n"
            f"```text\n{' '.join(['pytest-regen', name, *usage])}\n```\n\n"
            + "\n".join([*(line for line in lines if line not in shared), f"- also: {also}"])
        )
    return "\n\n".join(parts).replace("\\|", "|")  # because a list needs no backslash


def _parameters_of(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """Return the arguments of a command as they are typed, and a line for each option."""
    usage, lines = [], []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        kind, info = parameter.annotation.__origin__, parameter.annotation.__metadata__[0]
        if info.hidden:
            continue
        help_ = cell(info.help or "")
        if type(info).__name__ == "ArgumentInfo":
            shown = (info.metavar or parameter.name.upper()).removesuffix("...")
            more = "..." if any(get_origin(one) is list for one in (kind, *get_args(kind))) else ""
            is_needed = parameter.default is inspect.Parameter.empty
            usage.append(f"{shown}{more}" if is_needed else f"[{shown}]{more}")
            lines.append(f"- `{shown}`: {help_}")
        else:
            # Within Annotated the first of the names arrives as the default.
            decls = [info.default, *(info.param_decls or ())]
            names = [name for name in decls if isinstance(name, str)]
            names = names or [f"--{parameter.name.replace('_', '-')}"]
            shown = f"{', '.join(f'`{name}`' for name in names)} {_value_of(kind, info, names)}"
            lines.append(f"- {shown.strip()}: {help_}{_default(parameter.default, help_)}")
    return usage, lines


def _value_of(kind: Any, info: Any, names: Iterable[str]) -> str:
    """Return what stands behind an option: the choices, or a word for the value."""
    from pytest_regen.cli.app import _METAVARS

    inner = next((one for one in get_args(kind) if one is not type(None)), kind)
    if inner is bool:
        return ""
    if isinstance(inner, type) and issubclass(inner, Enum):
        return f"`{'|'.join(str(choice.value) for choice in inner)}`".replace("|", "\\|")
    known = next((_METAVARS[name] for name in names if name in _METAVARS), "VALUE")
    return f"`{info.metavar or known}`"


def _default(default: Any, help_: str) -> str:
    if default in (None, False, inspect.Parameter.empty, ()) or "default" in help_:
        return ""
    return f" Default: `{getattr(default, 'value', default)}`."


# -- options of pytest


class _Parser:
    """Takes down what the plugin registers, whatever version of pytest is installed."""

    def __init__(self) -> None:
        self.groups: dict[str, Rows] = {}
        self.ini: list[tuple[str, ...]] = []

    def getgroup(self, name: str, description: str = "") -> "_Group":
        del name
        rows: list[tuple[str, ...]] = []
        self.groups[description] = rows
        return _Group(rows)

    def addini(self, name: str, help: str, type: str, default: object = None) -> None:  # noqa: A002 - pytest's
        del default
        written = "one per line, or a TOML list" if type == "linelist" else "text"
        self.ini.append((f"`{name}`", cell(sentence(help)), written))


class _Group:
    def __init__(self, rows: list[tuple[str, ...]]) -> None:
        self._rows = rows

    def addoption(self, *names: str, **attrs: Any) -> None:
        value = attrs.get("metavar") or names[-1].lstrip("-").upper().replace("-", "_")
        if attrs.get("action") == "store_true":
            value = ""
        elif choices := attrs.get("choices"):
            value = "\\|".join(choices)
        shown = f"`{', '.join(names)}`" + (f" `{value}`" if value else "")
        self._rows.append((shown, cell(attrs["help"])))


def _options() -> str:
    from pytest_regen.pytest_plugin import options, recording_plugin

    parser: Any = _Parser()
    options.add_options(parser)
    recording_plugin.pytest_addoption(parser)
    parts = [
        f"## {title[:1].upper()}{title[1:]}\n\n{table(('option', ''), rows)}"
        for title, rows in parser.groups.items()
    ]
    ini = table(("ini value", "", "written as"), parser.ini)
    return "\n\n".join([*parts, f"## Ini values\n\n{ini}"])


# -- settings


def _settings() -> str:
    from pytest_regen import settings
    from pytest_regen.kinds.functions import Function
    from pytest_regen.kinds.translation import Translation

    shipped = {
        "functions": "Functions whose bodies a model wrote: globs, or the tables "
        "[below](#toolpytest-regenfunctions).",
        "translations": "Catalogues, as tables: [below](#toolpytest-regentranslations).",
    }
    own = [row for row in fields_of(settings.Settings) if row.name not in {"shipped", "cassettes"}]
    rows = _toml(own)
    rows += [(f"`{key}`", "list", text) for key, text in shipped.items()]
    head = ("key", "value", "")
    functions = _arguments(Function.__init__, leave_out={"root", "lists"})
    translations = _arguments(Translation.__init__, leave_out={"root"})
    return "\n\n".join(
        [
            f"## `[tool.pytest-regen]`\n\n{table(head, rows)}",
            "## `[tool.pytest-regen.cassettes]`\n\n"
            + table(head, _toml(fields_of(settings.CassetteSettings))),
            '## `[tool.pytest-regen.price."MODEL"]`\n\n'
            + table(head, _toml(fields_of(settings.Price))),
            "## `[[tool.pytest-regen.functions]]`\n\nSee [functions](../functions.md).\n\n"
            + table(("key", ""), functions),
            "## `[[tool.pytest-regen.translations]]`\n\nSee [kinds](../kinds.md#translations).\n\n"
            + table(("key", ""), translations),
        ]
    )


def _toml(fields: Iterable[Field]) -> list[tuple[str, ...]]:
    """Return rows of fields as TOML has them: there is no null, a key is left out."""
    return [(f"`{row.name}`", row.type.replace(" or `null`", ""), row.text) for row in fields]


def _arguments(function: Any, leave_out: set[str]) -> Rows:
    said = Docstring.of(inspect.getdoc(function) or "")
    return [(f"`{name}`", text) for name, text in said.arguments if name not in leave_out]


# -- marks, fixtures, hooks


def _marks() -> str:
    from pytest_regen.pytest_plugin import choices, options, recording_plugin

    arguments = {"regen": fields_of(choices.RegenMark), "cassette": fields_of(choices.CassetteMark)}
    parts = []
    for line in (*options.MARKERS, *recording_plugin.MARKERS):
        call, _, text = line.partition(": ")
        name = call.partition("(")[0]
        shown = f"```python\n{_wrapped_call('@pytest.mark.' + call)}\n```"
        parts += [f"## `{name}`", shown, prose(sentence(text))]
        if name in arguments:
            rows = [(f"`{_RENAMED.get(row.name, row.name)}`", row.text) for row in arguments[name]]
            parts.append(table(("argument", ""), rows))
    return "\n\n".join(parts)


_RENAMED = {"units": "unit"}


def _wrapped_call(call: str) -> str:
    if len(call) <= WIDTH or "(" not in call:
        return call
    name, _, inner = call.removesuffix(")").partition("(")
    return f"{name}(\n" + "".join(f"    {part},\n" for part in inner.split(", ")) + ")"


def _fixtures() -> str:
    from pytest_regen.pytest_plugin import fixtures, recording_plugin

    parts = []
    for title, module in (
        ("For every project", fixtures),
        ("Those of pytest-recording", recording_plugin),
    ):
        parts.append(f"## {title}")
        for node in tree_of(module).body:
            if isinstance(node, ast.FunctionDef) and (found := _fixture_scope(node)):
                scope = "" if found == "function" else f"\n\nScope: {found}."
                said = prose(ast.get_docstring(node) or "")
                parts.append(f"### `{node.name}`\n\n{said}{scope}")
    return "\n\n".join(parts)


def _fixture_scope(node: ast.FunctionDef) -> str:
    """Return the scope of a fixture; empty for another function."""
    for decorator in node.decorator_list:
        words = re.match(r"pytest\.fixture(?:\(.*scope='(\w+)'.*\))?", ast.unparse(decorator))
        if words:
            return words[1] or "function"
    return ""


def _hooks() -> str:
    from pytest_regen.pytest_plugin import hookspecs

    parts = []
    for node in tree_of(hookspecs).body:
        if isinstance(node, ast.FunctionDef):
            said = Docstring.of(ast.get_docstring(node) or "")
            rows = [(f"`{name}`", text) for name, text in said.arguments]
            parts.append(
                f"## `{node.name}`\n\n```python\n{signature(node)}\n```\n\n{said.text}\n\n"
                + table(("argument", ""), rows)
            )
    return "\n\n".join(parts)


# -- formats


def _formats() -> str:
    from pytest_regen.documents import ir
    from pytest_regen.prompts.values import PromptEntry
    from pytest_regen.stores.formats import PagesEnvelope, StoredPage
    from pytest_regen.turns.values import Usage
    from pytest_regen.units.ledger import Entry, PastText
    from pytest_regen.validation.issues import Issue

    def shape(title: str, about: str, *classes: type, level: str = "##", **renamed: str) -> str:
        parts = [f"{level} {title}\n\n{about}"]
        for number, cls in enumerate(classes):
            if number:
                parts.append(
                    f"{level}# {_words(cls)}\n\n{first_paragraph(inspect.getdoc(cls) or '')}"
                )
            rows = [
                (f"`{renamed.get(row.name, row.name)}`", row.type, row.text)
                for row in fields_of(cls)
                if row.name not in _NOT_WRITTEN.get(cls.__name__, ())
            ]
            parts.append(table(("key", "value", ""), rows))
        return "\n\n".join(parts)

    expressions = (ir.Scalar, ir.Ref, ir.ArrayOf, ir.MapOf, ir.UnionOf)
    parts = [
        shape(
            "`ir.json`",
            "What was read from the API description. Validation needs it and the source alone.",
            *(ir.IR, ir.Endpoint, ir.DocumentRef, ir.TypeIR, ir.FieldIR, *expressions),
            ir.Review,
        ),
        shape(
            "`prompts.json`",
            "A list with one entry for each page: exactly what is sent.",
            PromptEntry,
        ),
        shape(
            "`pages.json`",
            "What a model wrote, page by page; the source is made from it.",
            *(PagesEnvelope, StoredPage),
        ),
        shape(
            "The ledger",
            "One file per unit below `.regen/units/`, see [kinds](../kinds.md#the-ledger).",
            *(Entry, Usage, PastText),
            usage="tokens",
        ),
        shape("Issues", "As `--json` and the report have them.", Issue),
        f"## Cassettes\n\n{_OF_CASSETTES}\n\n```yaml\n{_cassette()}```",
        f"## The report\n\n{_OF_REPORTS}",
    ]
    return "\n\n".join(parts).replace("`None`", "`null`")


_OF_CASSETTES = (
    "YAML that vcrpy loads, too; see [cassettes](../cassettes.md). One request and its answer:"
)
_OF_REPORTS = (
    "The keys of `--regen-report FILE.json` are listed with [the report](../pytest.md#the-report)."
)
_NOT_WRITTEN = {
    "Issue": ("excerpt", "finding"),
    "PastText": ("entry",),
    "Usage": ("cost", "requests"),
}
"""Fields that are not written, or whose keys stand one level higher."""


def _words(cls: type) -> str:
    """Return the name of a class as words, as a heading."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cls.__name__.removesuffix("IR")).lower()
    said = {
        "document ref": "document",
        "array of": "array",
        "map of": "map",
        "union of": "union",
        "ref": "reference",
    }
    return said.get(words, words).capitalize()


def _cassette() -> str:
    from pytest_regen.cassettes.files.format import header_text, interaction_text
    from pytest_regen.cassettes.interactions import Interaction

    question = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 200,
        "messages": [{"role": "user", "content": "What grows on a north wall?"}],
    }
    answer = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Ivy."}],
        "usage": {"input_tokens": 25, "output_tokens": 4},
    }
    told = {
        "recorded_at": "2026-11-22",
        "recorded_by": {"pytest-regen": "0.1.0"},
        "source": "live",
        "models": ["claude-sonnet-5-5"],
    }
    kind = {"content-type": ("application/json",)}
    recording = Interaction(
        method="POST",
        uri="https://api.anthropic.com/v1/messages",
        request_body=json.dumps(question).encode(),
        status=200,
        reason="OK",
        response_body=json.dumps(answer).encode(),
        request_headers=kind,
        response_headers=kind,
    )
    return header_text(told) + interaction_text(recording)


# -- the names of the package


def _api() -> str:
    import pytest_regen
    from pytest_regen.facade import _homes

    homes: dict[str, list[str]] = {}
    for name, module in sorted(_homes("pytest_regen").items()):
        home = module.partition(".")[2].partition(".")[0]
        homes.setdefault(home or name, []).append(name)
    parts = []
    for home, names in sorted(homes.items()):
        if names != [home]:
            parts.append(f"## {home}")
        parts += [_public(pytest_regen, name) for name in names]
    return "\n\n".join(parts)


def _public(package: Any, name: str) -> str:
    value = getattr(package, name)
    said = Docstring.of(inspect.getdoc(value) or "")
    if inspect.ismodule(value):
        inner = [
            (
                f"`{name}.{inner}`",
                cell(first_paragraph(inspect.getdoc(getattr(value, inner)) or "")),
            )
            for inner in value.__all__
            if inspect.isclass(getattr(value, inner)) or inspect.isfunction(getattr(value, inner))
        ]
        return f"## `{name}`\n\n{said.text}\n\n{table(('name', ''), inner)}"
    node = definition(value)
    parts = [f"### `{name}`", f"```python\n{signature(node)}\n```", said.text]
    if said.arguments:
        rows = [(f"`{argument}`", text) for argument, text in said.arguments]
        parts.append(table(("argument", ""), rows))
    if isinstance(node, ast.ClassDef) and (rows := list(members(node))):
        parts.append(table(("member", ""), rows))
    return "\n\n".join(filter(None, parts))


_PAGES: Mapping[str, tuple[str, str, Callable[[], str]]] = {
    "options": (
        "pytest: every option and ini value",
        "As `pytest --help` says it. [pytest](../pytest.md) says how they are used.",
        _options,
    ),
    "settings": (
        "Settings in pyproject.toml",
        ("Read by the plugin and by all commands; in a project without pyproject.toml, from "
        "`.pytest-regen.toml`. A key that is not here is an error."),
        _settings,
    ),
    "marks": ("Marks", "As `pytest --markers` says it.", _marks),
    "fixtures": ("Fixtures", "As `pytest --fixtures` says it.", _fixtures),
    "hooks": (
        "Hooks",
        "Implemented in a `conftest.py` or a plugin; leave out arguments that you do not need.",
        _hooks,
    ),
    "formats": (
        "Formats of files",
        "What stands in the files that are committed. `null` means that nothing is said.",
        _formats,
    ),
    "api": (
        "Names of the package",
        "What `from pytest_regen import …` brings. Errors are in `pytest_regen.errors`.",
        _api,
    ),
}  # fmt: skip


if __name__ == "__main__":
    main()
