"""What the end of a run says of cassettes: one by one, or, where that is too long, by cause."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence

import pytest

from pytest_regen.plurals import counted
from pytest_regen.pytest_plugin.cassettes.notes import CassetteNote
from pytest_regen.pytest_plugin.commands import node_command
from pytest_regen.turns.secrets import scrub_text

__all__ = ["by_cause", "section"]

_SCREEN = 30
"""Lines beyond which notes of a kind are told by cause."""

_MANY = 4
"""Tests beyond which a command reads their names from a file, and failing ones are told again."""

_CAUSES = 8
"""Causes that are told; most tests share the first ones."""

_NAMES = 3
"""Tests that are named below a cause."""

_HEADS = {
    "drift": "replayed recordings of other requests",
    "miss": "asked for what is not recorded",
    "unplayed": "left recordings that nobody asked for",
}


def section(notes: Sequence[CassetteNote], config: pytest.Config) -> list[str]:
    """Return the lines of the section; none where there is nothing to tell.

    Args:
        notes: everything, in the order in which it was noted.
        config: says where files may be written, and how commands name tests.
    """
    lines: list[str] = []
    for kind in ("drift", "miss", "unplayed"):
        lines += _of_kind(kind, [note for note in notes if note.kind == kind], config)
    return [*lines, *(str(note) for note in notes if note.kind in {"orphan", "hint"})]


def by_cause(notes: Iterable[CassetteNote]) -> dict[tuple[str, str], list[str]]:
    """Return the tests of notes by kind and cause, causes that most tests share first."""
    found: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        for cause in note.causes:
            tests = found.setdefault((note.kind, cause), [])
            if note.test not in tests:
                tests.append(note.test)
    return dict(sorted(found.items(), key=lambda one: (-len(one[1]), one[0])))


def _of_kind(kind: str, notes: Sequence[CassetteNote], config: pytest.Config) -> Iterator[str]:
    told = [note for note in notes if not note.failed]
    failed = [note for note in notes if note.failed]
    if len({note.test for note in failed}) > _MANY:
        # Each has told of itself; what they have in common nobody has.
        told = list(notes)
    if not told:
        return
    whole = [line for note in told for line in str(note).splitlines()]
    if len(whole) <= _SCREEN and not any(note.failed for note in told):
        yield from whole
    else:
        yield from _grouped(kind, told, whole, config)
    command = _command(kind, told, config)
    if command:
        yield f"next: {command}"


def _grouped(
    kind: str, notes: Sequence[CassetteNote], whole: Sequence[str], config: pytest.Config
) -> Iterator[str]:
    tests = dict.fromkeys(note.test for note in notes)
    yield f"{kind}: {counted(len(tests), 'test')} {_HEADS[kind]}"
    causes = by_cause(notes)
    if not causes:
        yield f"    {_names(list(tests))}"
    for (_, cause), named in list(causes.items())[:_CAUSES]:
        yield f"    {cause}: {counted(len(named), 'test')}"
        yield f"        {_names(named)}"
    if len(causes) > _CAUSES:
        yield f"    and {counted(len(causes) - _CAUSES, 'other cause')}"
    file = _written(f"{kind}.txt", map(scrub_text, whole), config)
    if file:
        yield f"in full: {file}"


def _names(tests: Sequence[str]) -> str:
    shown, modules = [], ""
    for test in tests[:_NAMES]:
        module, _, name = test.partition("::")
        shown.append(name if module == modules else test)
        modules = module
    more = len(tests) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _command(kind: str, notes: Sequence[CassetteNote], config: pytest.Config) -> str:
    """Return the command that records anew what all of the tests ask for."""
    commands = list(dict.fromkeys(note.next for note in notes if note.next))
    if len(commands) <= 1:
        return "".join(commands)
    ways = dict.fromkeys(tuple(_options(command)) for command in commands)
    options = next(iter(ways)) if len(ways) == 1 else _common_options(commands)
    tests = list(dict.fromkeys(note.test for note in notes))
    # Before 8.2 pytest reads no arguments from a file.
    if len(tests) <= _MANY or pytest.version_tuple[:2] < (8, 2):
        return node_command(config, *tests, options=options)
    named = shlex.split(node_command(config, *tests))[1:]
    # As they are: pytest keeps them in its cache, too.
    file = _written(f"{kind}-tests.txt", named, config)
    if not file:
        return node_command(config, *tests, options=options)
    return shlex.join(["pytest", f"@{file}", *options])


def _common_options(commands: Sequence[str]) -> tuple[str, ...]:
    """Return one way for tests that each would record in their own; both marks heed it."""
    every = " ".join(commands)
    mode = "rewrite" if " rewrite" in every else "new_episodes"
    drop = ("--regen-drop-unplayed",) if "--regen-drop-unplayed" in every else ()
    return ("--regen-record", mode, *drop)


def _options(command: str) -> Iterator[str]:
    words = shlex.split(command)
    start = next((n for n, word in enumerate(words) if word.startswith("--")), len(words))
    yield from words[start:]


def _written(name: str, lines: Iterable[str], config: pytest.Config) -> str:
    """Return where lines were written, as seen from where pytest was called; empty if nowhere."""
    cache: pytest.Cache | None = getattr(config, "cache", None)
    if cache is None:
        return ""
    try:
        file = cache.mkdir("regen") / name
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    except OSError:
        return ""
    return os.path.relpath(file, config.invocation_params.dir)
