"""Fill the marked places of the documentation from the code: what is true there is said there.

    python tools/reference.py

A place begins with the line ``<!-- NAME -->`` and ends with ``<!-- /NAME -->``. A test does the
same and compares, so that none of them can be out of date.
"""

import ast
import inspect
import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin

from code_words import (
    Field,
    Rows,
    arguments_of,
    bullets,
    definition,
    fields_of,
    first_paragraph,
    inline,
    members,
    prose,
    sentence,
    signature,
    tree_of,
)

__all__ = ["COMMAND", "DOCS", "PLACES", "pages"]

DOCS = Path(__file__).parents[1] / "docs"
COMMAND = "python tools/reference.py"


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page that has marked places, and its text with all of them filled."""
    place = re.compile(rf"(<!-- ({'|'.join(PLACES)}) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
    for page in sorted(DOCS.rglob("*.md")):
        text, count = place.subn(
            lambda match: f"{match[1]}\n{PLACES[match[2]]().strip()}\n\n{match[3]}",
            page.read_text("utf-8"),
        )
        if count:
            yield page, text


def main() -> None:
    """Write what has changed."""
    for page, text in pages():
        if page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")
            print(page.relative_to(DOCS.parent))


# -- commands


def list_commands() -> str:
    import typer

    from pytest_regen.cli.app import COMMANDS

    callbacks: dict[str, tuple[Callable[..., Any], str]] = {}
    for name, (module, summary) in COMMANDS.items():
        command = getattr(import_module(f"pytest_regen.cli.{module}"), name)
        if isinstance(command, typer.Typer):
            for inner in command.registered_commands:
                assert inner.callback is not None
                word = inner.name or inner.callback.__name__
                # The hidden one is what the group does where no command is named.
                full = name if inner.hidden else f"{name} {word}"
                callbacks[full] = inner.callback, inner.help or ""
        else:
            callbacks[name] = command, summary
    options = {name: _parameters_of(function) for name, (function, _) in callbacks.items()}
    counts = Counter(line for _, lines in options.values() for line in lines)
    shared = [line for line, count in counts.items() if count > 1 and line.startswith("- `-")]
    parts = ["### Options of several commands\n\n" + "\n".join(shared)]
    for name, (function, summary) in callbacks.items():
        usage, lines = options[name]
        also = ", ".join(
            re.findall(r"`-[^:]*?`", "".join(line for line in shared if line in lines))
        )
        parts.append(
            f"### `{name}`\n\n{prose(inspect.getdoc(function) or summary)}\n\n"
            f"```text\n{' '.join(['pytest-regen', name, *usage])}\n```\n\n"
            + "\n".join([*(line for line in lines if line not in shared), f"- also: {also}"])
        )
    return "\n\n".join(parts)


def _parameters_of(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """Return the arguments of a command as they are typed, and a line for each option."""
    usage, lines = [], []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        kind, info = parameter.annotation.__origin__, parameter.annotation.__metadata__[0]
        if info.hidden:
            continue
        help_ = inline(info.help or "")
        if type(info).__name__ == "ArgumentInfo":
            label = (info.metavar or parameter.name.upper()).removesuffix("...")
            more = (
                "..."
                if any(get_origin(alternative) is list for alternative in (kind, *get_args(kind)))
                else ""
            )
            is_needed = parameter.default is inspect.Parameter.empty
            usage.append(f"{label}{more}" if is_needed else f"[{label}]{more}")
            lines.append(f"- `{label}`: {help_}")
        else:
            # Within Annotated the first of the names arrives as the default.
            decls = [info.default, *(info.param_decls or ())]
            names = [name for name in decls if isinstance(name, str)]
            names = names or [f"--{parameter.name.replace('_', '-')}"]
            label = f"{', '.join(f'`{name}`' for name in names)} {_value_of(kind, info, names)}"
            default = getattr(parameter.default, "value", parameter.default)
            is_silent = default in (None, False, inspect.Parameter.empty, ()) or "default" in help_
            more = "" if is_silent else f" Default: `{default}`."
            lines.append(f"- {label.strip()}: {help_}{more}")
    return usage, lines


def _value_of(kind: Any, info: Any, names: Iterable[str]) -> str:
    """Return what stands behind an option: the choices, or a word for the value."""
    from pytest_regen.cli.app import _METAVARS

    inner = next(
        (alternative for alternative in get_args(kind) if alternative is not type(None)), kind
    )
    if inner is bool:
        return ""
    if isinstance(inner, type) and issubclass(inner, Enum):
        return f"`{'|'.join(str(choice.value) for choice in inner)}`"
    metavar = next((_METAVARS[name] for name in names if name in _METAVARS), "VALUE")
    return f"`{info.metavar or metavar}`"


# -- options of pytest


class _Parser:
    """Takes down what the plugin registers, whatever version of pytest is installed."""

    def __init__(self) -> None:
        self.groups: dict[str, list[tuple[str, str]]] = {"ini values": []}

    def getgroup(self, name: str, description: str = "") -> "_Group":
        del name
        return _Group(self.groups.setdefault(description, []))

    def addini(self, name: str, help: str, *_: object, **_more: object) -> None:  # noqa: A002 - pytest's
        self.groups["ini values"].append((f"`{name}`", inline(sentence(help))))


class _Group:
    def __init__(self, rows: list[tuple[str, str]]) -> None:
        self._rows = rows

    def addoption(self, *names: str, **attrs: Any) -> None:
        value = attrs.get("metavar") or names[-1].lstrip("-").upper().replace("-", "_")
        if attrs.get("action") == "store_true":
            value = ""
        elif choices := attrs.get("choices"):
            value = "|".join(choices)
        self._rows.append((f"`{' '.join([*names, value]).strip()}`", inline(attrs["help"])))


def list_options() -> str:
    from pytest_regen.pytest_plugin import options, recording_plugin

    parser: Any = _Parser()
    options.add_options(parser)
    recording_plugin.pytest_addoption(parser)
    ini = parser.groups.pop("ini values")
    parts = [
        f"### {title[:1].upper()}{title[1:]}\n\n{bullets(rows)}"
        for title, rows in parser.groups.items()
    ]
    rows = _beside_settings(ini, "settings", "`regen_")
    return "\n\n".join([*parts, f"### Ini values\n\n{bullets(rows)}"])


def _beside_settings(rows: Rows, place: str, prefix: str = "`") -> Rows:
    """Return rows in which names that are those of settings stand together, not explained again."""
    from pytest_regen import settings

    tables = (settings.Settings, settings.CassetteSettings)
    names = {f"{prefix}{row.name}`" for table in tables for row in fields_of(table)}
    same = ", ".join(name for name, _ in rows if name in names)
    return [row for row in rows if row[0] not in names] + [(same, f"As in the {place}.")]


# -- settings


def list_settings() -> str:
    from pytest_regen import settings
    from pytest_regen.kinds.functions import Function
    from pytest_regen.kinds.translation import Translation

    rows = [row for row in fields_of(settings.Settings) if row.name not in {"shipped", "cassettes"}]
    tables = {
        "`[tool.pytest-regen]`": _labelled(rows),
        "`[tool.pytest-regen.cassettes]`": _labelled(fields_of(settings.CassetteSettings)),
        '`[tool.pytest-regen.price."MODEL"]`, in US dollars per million tokens': _labelled(
            fields_of(settings.Price)
        ),
        "`[[tool.pytest-regen.functions]]`, see [functions](functions.md)": _without(
            Function.__init__, "root", "lists"
        ),
        "`[[tool.pytest-regen.translations]]`, see [translations](kinds.md#translations)": _without(
            Translation.__init__, "root"
        ),
    }
    return "\n\n".join(f"{title}:\n\n{bullets(rows)}" for title, rows in tables.items())


def _labelled(fields: Iterable[Field]) -> Rows:
    """Return the name of each field, with the words that it may be, and what it is for."""
    return [
        (f"`{row.name}`" + (f" ({row.choices})" if row.choices else ""), row.text) for row in fields
    ]


def _without(function: Any, *left_out: str) -> Rows:
    return [row for row in arguments_of(function) if row[0].strip("`") not in left_out]


# -- marks, fixtures, hooks


def list_marks() -> str:
    from pytest_regen.pytest_plugin import choices, options, recording_plugin

    arguments = {"regen": fields_of(choices.RegenMark), "cassette": fields_of(choices.CassetteMark)}
    parts = []
    for line in (*options.MARKERS, *recording_plugin.MARKERS):
        call, _, text = line.partition(": ")
        name = call.partition("(")[0]
        rows = [
            (f"`{_RENAMED.get(row.name, row.name)}`", row.text) for row in arguments.get(name, ())
        ]
        label = f"{name}(…)" if rows else call
        parts.append(bullets([(f"`{label}`", inline(sentence(text)))]))
        if rows:
            place = f"[settings](#settings){' of cassettes' if name == 'cassette' else ''}"
            parts.append(textwrap.indent(bullets(_beside_settings(rows, place)), "    "))
    return "\n".join(parts)


_RENAMED = {"units": "unit"}


def list_fixtures() -> str:
    from pytest_regen.pytest_plugin import fixtures, recording_plugin

    return bullets(
        (f"`{node.name}`", inline(ast.get_docstring(node) or ""))
        for module in (fixtures, recording_plugin)
        for node in tree_of(module).body
        if isinstance(node, ast.FunctionDef)
        and any("pytest.fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
    )


def list_hooks() -> str:
    from pytest_regen.pytest_plugin import hookspecs

    return bullets(
        (f"`{signature(node)}`", inline((ast.get_docstring(node) or "").partition("\nArgs:")[0]))
        for node in tree_of(hookspecs).body
        if isinstance(node, ast.FunctionDef)
    )


# -- formats


def keys_of(dotted: str, *, left_out: Iterable[str] = ()) -> Callable[[], str]:
    def write() -> str:
        rows = [row for row in fields_of(_found(dotted)) if row.name not in left_out]
        text = bullets(_labelled(rows)).replace("`None`", "`null`")
        return text.replace("- `usage`", "- `tokens`")  # as the ledger has always written it

    return write


def _found(dotted: str) -> Any:
    module, _, name = f"pytest_regen.{dotted}".rpartition(".")
    return getattr(import_module(module), name)


def show_cassette() -> str:
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
    }
    header = {
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
    return f"```yaml\n{header_text(header)}{interaction_text(recording)}```"


# -- the names of the package

_TASKS: Mapping[str, str] = {
    "Write a kind": "Kind+ Unit+ quoted Issue regions.Region+ regions.Span regions.Marked "
    "regions.JsonStrings regions.JsonValues regions.WholeFile testing.KindConformance",
    "Run from code": "read_document generate_store generate_stores heal_store heal_stores "
    "partial_regenerate PartialRegenResult TurnSettings validate_store validate_generated_code "
    "ValidationResult RegenStore check_staleness stores.find_stores stores.history assemble_cs "
    "strategies.valid strategies.invalid strategies.from_schema",
    "Sessions": "GeneratorSession+ sessions.ItemSession+ sessions.ItemFeedback "
    "sessions.generate_verify_repair sessions.VerifiedItems ScenarioGeneratorSession+ "
    "ScenarioFeedback sessions.TestScenario sessions.ScenarioRequest sessions.ToolAnnotation "
    "compile_verify_repair sessions.LoopParts sessions.LoopSettings sessions.LoopReport",
    "Agents and conversations": "ClarifyingAgent+ ConversationContext context.Conversation "
    "context.ConversationRequest context.ClarificationRequest context.Question "
    "context.ClarificationQuestion context.Ask context.Generate context.InferredContext "
    "context.parse_request context.parse_context context.render_conversation "
    "context.render_context context.Sealer+ context.require_seal "
    "context.meets_confidence_threshold context.overall_confidence",
    "Record and replay": "use_cassette CassetteRun ReplayProvider cassettes.journal "
    "cassettes.read_cassette Emulator emulator.load_script emulator.Rule "
    "emulator.Step emulator.EmulatedReply emulator.Fault",
    "Providers and turns": "Provider+ TurnRequest turns.Message Reply turns.Usage "
    "AnthropicProvider turns.BatchProvider turns.OpenAIProvider turns.OllamaProvider "
    "turns.LiteLLMProvider CallableProvider ScriptedProvider DryRunProvider turns.load_provider "
    "Budget turns.ReplyJournal generate_object_with_repair turns.extract_json "
    "turns.parse_json_with_schema turns.schema_to_prompt_hint turns.cost_of turns.describe_usage",
    "Check stateless agents": "check_stateless_agent testing.http testing.base_url "
    "testing.completion testing.Replies testing.verify_transcript "
    "testing.assert_cache_prefix_stable fail",
    "Errors": "RegenError",
}
"""What people do, and the names that they need for it: what stands behind ``pytest_regen.``."""


def list_names() -> str:
    tasks = (
        f"## {task}\n\n" + "\n".join(map(_public, names.split())) for task, names in _TASKS.items()
    )
    return "\n\n".join(tasks) + f"\n{_errors()}"


def _public(name: str) -> str:
    """Return how something is called and what it does; behind ``+`` each member of a class, too."""
    dotted = name.rstrip("+")
    value = _found(dotted)
    node = definition(value)
    call = dotted + signature(node).removeprefix(node.name)
    line = bullets([(f"`{call}`", inline(first_paragraph(inspect.getdoc(value) or "")))])
    if dotted == name:
        return line
    assert isinstance(node, ast.ClassDef)
    return f"{line}\n{textwrap.indent(bullets(members(node)), '    ')}"


def _errors() -> str:
    from pytest_regen import errors

    # Only those of this module, because others may or may not have been imported by now.
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    rows = []
    for error in classes:
        if errors.RegenError in error.__bases__:
            special = ", ".join(
                f"`{special_error.__name__}`"
                for special_error in classes
                if error in special_error.__bases__
            )
            label = f"`{error.__name__}`" + (f" ({special})" if special else "")
            rows.append((label, inline(first_paragraph(inspect.getdoc(error) or ""))))
    return bullets(rows)


PLACES: Mapping[str, Callable[[], str]] = {
    "commands": list_commands,
    "options": list_options,
    "settings": list_settings,
    "marks": list_marks,
    "fixtures": list_fixtures,
    "hooks": list_hooks,
    "api": list_names,
    "ir": keys_of("documents.ir.IR"),
    "prompts": keys_of("prompts.values.PromptEntry"),
    "store": keys_of("stores.formats.PagesEnvelope"),
    "page": keys_of(
        "stores.formats.StoredPage", left_out=["type_name", "is_root", "page", "total_pages"]
    ),
    "ledger": keys_of("units.ledger.Entry"),
    "issue": keys_of("validation.issues.Issue", left_out=["excerpt", "finding"]),
    "cassette": show_cassette,
}
"""What fills each place, by the name in its comment."""


if __name__ == "__main__":
    main()
