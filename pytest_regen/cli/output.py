"""Where commands speak: what they were asked for on stdout, the rest for people on stderr.

Text from documents and models is rich_text as it is: never read as markup, and control characters,
which could play tricks with a terminal, are spelled out.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from pytest_regen.text import plural, visible

if TYPE_CHECKING:
    from rich.console import Console

    from pytest_regen.errors import RegenError
    from pytest_regen.regeneration.values import HealResult
    from pytest_regen.turns.values import Usage

R = TypeVar("R")

_DIFF_LINES = 200
"""Lines of a diff rich_text; the file itself has the rest."""

_NEXT = "  next: "

_LABEL = 11
"""Width of the words that facts begin with."""

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def say(text: str = "", style: str = "") -> None:
    """Tell people something.

    Args:
        text: one line or more.
        style: colour of the text on a terminal.
    """
    lines = _held_back.get()
    if lines is not None:
        lines.append((text, style))
        return
    folder = f"{os.getcwd()}{os.sep}"
    # Paths below the working directory begin there, because they are shorter and can be pasted.
    text = visible(text if len(folder) == 1 else text.replace(folder, ""))
    _last_line[0] = text
    stream = sys.stdout if _answers[0] else sys.stderr
    if not stream.isatty():
        # In one piece: lines of several threads must not end up in one another.
        encoding = stream.encoding or "utf-8"
        # Without bytes for it a letter is spelled out, because an error would hide all the text.
        stream.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))
        return
    from rich.text import Text

    console(stderr=not _answers[0]).print(Text(text, style), soft_wrap=True, highlight=False)


_last_line = [""]
"""What was told last."""


def said_next() -> bool:
    """Return whether the line that was told last says what to do next, or nothing was told."""
    return not _last_line[0] or _last_line[0].startswith(_NEXT)


_answers = [False]


def answer_on_stdout(*, is_wanted: bool) -> None:
    """Let what is told from now on be what the command was asked for, so that it can be piped."""
    _answers[0] = is_wanted


_held_back: ContextVar[list[tuple[str, str]] | None] = ContextVar("_held_back", default=None)


@contextmanager
def hold_back() -> Iterator[list[tuple[str, str]]]:
    """Keep what is told in the block, as texts and styles for ``say``, and tell nothing."""
    lines: list[tuple[str, str]] = []
    token = _held_back.set(lines)
    try:
        yield lines
    finally:
        _held_back.reset(token)


def tell_in_order(
    names: Sequence[str],
    results: Iterable[tuple[str, R]],
    take: Callable[[int, str, R], None],
) -> None:
    """Take what came of several places; tell of each in its order, however early it is finished.

    Args:
        names: of the places, in their order.
        results: what came of each, by name, as they are finished.
        take: is called with the number of a place, from 0, its name and what came of it, and
            tells it.
    """
    numbers = {name: number for number, name in enumerate(names)}
    waiting: dict[int, list[tuple[str, str]]] = {}
    following = 0
    try:
        for name, result in results:
            with hold_back() as lines:
                take(numbers[name], name, result)
            waiting[numbers[name]] = lines
            while following in waiting:
                tell_again(waiting.pop(following))
                following += 1
    finally:
        # Also when the work is broken off, because what was finished is stored and nobody saw it.
        for number in sorted(waiting):
            tell_again(waiting[number])


def tell_again(lines: Iterable[tuple[str, str]]) -> None:
    """Tell what was held back."""
    for text, style in lines:
        say(text, style)


@cache
def console(*, stderr: bool = True) -> "Console":
    """Return the one console, so that a line of progress and lines beside it know of each other."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def fact(label: str, text: str, style: str = "") -> None:
    """Tell one of several facts, aligned."""
    say(f"  {label:<{_LABEL}} {text}", style)


def next_step(command: str, note: str = "") -> None:
    """Tell the one command to run now, as a shell in this folder takes it.

    Args:
        command: nothing else, so that it can be pasted.
        note: what it does, or what else there is, on a line of its own.
    """
    if note:
        say(f"  note: {note}")
    say(f"{_NEXT}{command}")


_typed: list[str] = []
"""The words of the command line."""


def begin(words: Sequence[str]) -> None:
    """Begin a command: a process may run several."""
    _typed[:] = words
    _last_line[0] = ""
    answer_on_stdout(is_wanted=False)


def command_again(*more: str, without: Sequence[str] = ()) -> str:
    """Return the command that was typed, to be run for good.

    Args:
        more: words behind it.
        without: options that are left out, beside those of a look.
    """
    left_out = {"--dry-run", "--check", "--json", *more, *without}
    words = [word for word in _typed if word not in left_out]
    return shlex.join(["pytest-regen", *words, *more])


def fail(what: str, *, why: str = "", hint: str = "") -> None:
    """Tell an error: the value, the reason, what to do next."""
    is_on_stdout, _answers[0] = _answers[0], False
    say(f"error: {what}", "red")
    if why:
        say(f"  why:  {why}")
    if hint:
        next_step(hint)
    _answers[0] = is_on_stdout


def emit_text(text: str) -> None:
    """Print what people asked a command for; what stdout has no bytes for is spelled out."""
    encoding = sys.stdout.encoding or "utf-8"
    print(visible(text).encode(encoding, "backslashreplace").decode(encoding))


@contextmanager
def stdout_for_json() -> Iterator[None]:
    """Keep stdout for the command's one JSON document; what kinds print goes to stderr."""
    token = _json_output.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _json_output.reset(token)


_json_output: ContextVar[TextIO | None] = ContextVar("_json_output", default=None)


def emit_json(value: Any) -> None:
    """Print the command's one JSON document, as UTF-8 whatever the locale."""
    stdout = _json_output.get() or sys.stdout
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    # Half a surrogate pair has no bytes; as an escape it stays JSON.
    data = text.encode("utf-8", "backslashreplace")
    # What was printed before stands in another buffer, and would come behind it.
    stdout.flush()
    stdout.buffer.write(data)
    stdout.buffer.flush()


def is_terminal() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, *, default: bool = False) -> bool:
    """Ask a person; anything but a yes is a no.

    Args:
        question: without its question mark's brackets.
        default: what Enter alone means; the end of the input is a no.
    """
    answer = ask(f"{question} {'[Y/n]' if default else '[y/N]'}")
    return answer in {"y", "yes", *([""] if default else [])}


def ask(question: str) -> str | None:
    """Return what a person answers, in small letters; ``None`` where the input has ended."""
    # Not by `input`, because that writes to stdout, where the answer of the command goes.
    print(f"{question} ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.strip().lower() if line else None


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines with columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in rows)
    return [line.rstrip() for line in lines]


def show_diff(diff: str, lines: int | None = _DIFF_LINES) -> None:
    """Show a unified diff: its first lines, or all of them."""
    all_lines = diff.splitlines()
    for line in all_lines[:lines]:
        say(line, _DIFF_STYLES.get(line[:1], ""))
    if lines is not None and len(all_lines) > lines:
        say(f"… {len(all_lines) - lines} more lines")


def show_edit(lines: Iterable[str]) -> None:
    """Show lines that come into a file, with ``+`` before them, and lines that go, with ``-``."""
    for line in lines:
        say(f"  {line[0]} {line[1:]}".rstrip(), _DIFF_STYLES[line[0]])


def show_stopped(results: "Iterable[HealResult]") -> None:
    """Tell why answers were not kept, and why no other was asked for."""
    from pytest_regen.regeneration.answers import why_lines

    for result in results:
        if result.stop_reason not in {None, "clean"}:
            fact("stopped", f"{result.name} ({result.stop_reason})", "yellow")
            for line in why_lines(result):
                say(f"    {line}")


def show_failures(failures: "Sequence[RegenError]") -> None:
    """Tell what ended the work, each thing once."""
    for what, why, hint in dict.fromkeys((f.what, f.why, f.hint) for f in failures):
        fail(what, why=why, hint=hint)


def usage_line(calls: int, usage: "Usage") -> str:
    """Return what was spent, in words."""
    counts = {
        "in": usage.input_tokens,
        "out": usage.output_tokens,
        "read from cache": usage.cache_read_tokens,
        "written to cache": usage.cache_write_tokens,
    }
    tokens = [f"{number:,} tokens {word}" for word, number in counts.items() if number]
    return ", ".join(filter(None, [plural(calls, "call"), *tokens, str(usage.cost or "")]))


def money_json(usage: "Usage") -> dict[str, Any]:
    """Return what a run cost as JSON: US dollars as text; ``None`` where a price is not known."""
    return {"cost_usd": usage.cost and usage.cost.json}


def describe_failure(failure: "RegenError") -> dict[str, Any]:
    """Return an error as JSON."""
    described = {"error": type(failure).__name__, "what": failure.what, "why": failure.why}
    return {**described, "next": failure.hint}


# Options of several commands: no text is longer than its line of ``--help`` in 80 columns.

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
UnitNames = Annotated[
    list[str] | None,
    typer.Option("--unit", "--type", help="Only this unit, or type of a store; repeatable."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be asked; write nothing.")]
