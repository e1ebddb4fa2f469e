"""Articles of the docs, followed as a reader would follow them, from top to bottom.

What is executed of an article, so that a new one needs no test code of its own:

- a block with a title is a file: ``python title="src/acme/names.py"``; it is written, and read
  where a reader's tool would read it (TOML, YAML);
- a ``diff`` block with a title is an edit of such a file: lines with ``-`` and with a blank must
  stand there, together, once;
- a ``console`` block is a session: each command after ``$`` is run, and the lines below it are
  what it prints, one after the other; ``…`` stands for any number of lines, or for a part of one.
  A command with nothing below it may print what it likes;
- a ``python`` block without a title is run as a program, after those before it;
- a comment ``<!-- given: NAME … -->`` names what the reader's project already has
  (``article_projects``); ``<!-- run: COMMAND -->`` does what the text only says in words;
  ``<!-- level: LEVEL -->`` names the level of the sandbox that the rest is about: where that does
  not work, the article is followed as far as here, and the test is skipped.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from command_line import command
from pages import ROOT, Block, blocks_of, sessions
from sandbox_levels import use_level

from pytest_regen.emulator import Emulator

T = TypeVar("T")

_READ: Mapping[str, Callable[[str], object]] = {
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
    "json": json.loads,
}
_AS_THEY_ARE = frozenset({"cat", "git", "ls", "pip", "rm"})
_ALONE = ("-p", "no:syrupy", "-p", "no:xdist")
"""Without plugins that the reader may not have, and that say something of themselves."""
_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"))
}


def matches(shown: list[str], printed: list[str]) -> bool:
    """Return whether what an article shows is what was printed, but for blanks and durations."""
    pattern = "".join(
        "(?:[^\n]*\n)*?" if line == "…" else re.escape(line).replace("…", "[^\n]*") + "\n"
        for line in map(_plain, shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in map(_plain, printed))) is not None


def _plain(line: str) -> str:
    """Return a line without what differs from run to run: rules, widths, durations, others."""
    line = re.sub(r"\bin \d+\.\d+s\b", "in 0.00s", " ".join(line.split()).strip("= "))
    return re.sub(r"\b(\w+ plugin\w*|plugins): .*", "plugins", line)


def write(file: Path, text: str) -> None:
    """Write a file of the reader's project."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


@dataclass
class Reader:
    """Somebody who does what an article says, in the folder of a test."""

    pytester: pytest.Pytester
    monkeypatch: pytest.MonkeyPatch
    given: Mapping[str, Any]
    """Name to function of the reader: what a project already has."""
    differences: list[str] = field(default_factory=list)
    _open: ExitStack = field(default_factory=ExitStack)
    _names: dict[str, Any] = field(default_factory=dict)
    _ports: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the reader's project lies."""
        return self.pytester.path

    def follow(self, page: Path) -> None:
        """Do all of an article; fail with every difference between it and what happens."""
        self.monkeypatch.setenv("COLUMNS", "100")
        self.monkeypatch.setenv("NO_COLOR", "1")
        for name, value in _AUTHOR.items():
            self.monkeypatch.setenv(name, value)
        with self._open:
            for block in blocks_of(page):
                self._take(block)
        assert not self.differences, "\n\n".join([f"{page.relative_to(ROOT)}:", *self.differences])

    def enter(self, context: AbstractContextManager[T]) -> T:
        """Enter a context that is left when the article ends."""
        return self._open.enter_context(context)

    def serve(self, emulator: Emulator) -> None:
        """Let a model answer until the article ends, as if the reader had a key."""
        running = self.enter(emulator)
        self.monkeypatch.setenv("ANTHROPIC_BASE_URL", running.base_url)
        self.monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-planted-0123456789")

    def run(self, line: str) -> list[str]:
        """Run a command; return what it prints, without blank lines."""
        words = shlex.split(line)
        with self.monkeypatch.context() as patch_here:
            while "=" in words[0]:
                name, _, value = words.pop(0).partition("=")
                patch_here.setenv(name, value)
            with _as_a_new_process(self.folder):
                printed = self._run(words, line)
        return [text for text in map(str.rstrip, printed.splitlines()) if text]

    def _take(self, block: Block) -> None:
        if block.language == "given":
            for name in block.text.split():
                self.given[name](self)
        elif block.language == "run":
            self.run(block.text)
        elif block.language == "level":
            assert not self.differences, "\n\n".join(self.differences)
            use_level(block.text, self.monkeypatch)  # type: ignore[arg-type]  # it is looked up
        elif block.language == "console":
            self._hold(block.text)
        elif block.title and block.language == "diff":
            self._edit(self.folder / block.title, block.text)
        elif block.title:
            if (read := _READ.get(block.language)) is not None:
                read(block.text)  # because a reader's tool would refuse what is none
            write(self.folder / block.title, block.text)
        elif block.language == "python":
            with _as_a_new_process(self.folder):
                exec(block.text, self._names)

    def _hold(self, session: str) -> None:
        """Run the commands of a session; keep what is not as shown."""
        for line, shown in sessions(session):
            printed = self.run(line)
            if shown and not matches(shown, printed):
                self.differences.append("\n".join([f"$ {line}", *printed]))

    def _edit(self, file: Path, text: str) -> None:
        lines = text.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        before = file.read_text("utf-8")
        assert before.count(old) == 1, f"{file.name} has not once:\n{old}\n{before}"
        file.write_text(before.replace(old, new), "utf-8")

    def _run(self, words: list[str], line: str) -> str:
        program, *options = words
        if program == "pytest":
            return self._pytest(options)
        if program == "pytest-regen":
            if options[0] == "emulator":
                return self._emulate(options[1:])
            done = command(*options)
            return done.out + done.err
        if program in {"export", "unset"}:
            for name, _, value in (option.partition("=") for option in options):
                if program == "unset":
                    self.monkeypatch.delenv(name, raising=False)
                else:
                    self.monkeypatch.setenv(name, self._ports.get(value, value))
            return ""
        if program == "sed":
            return self._substitute(*options)
        assert program in _AS_THEY_ARE, f"the reader does not know {program!r}"
        return "" if program == "pip" else self._process(["sh", "-c", line])

    def _pytest(self, options: list[str]) -> str:
        if "-n" in options:
            return self._process([sys.executable, "-m", "pytest", "-p", "no:syrupy", *options])
        modules = KeptModules()
        ran = self.pytester.runpytest_inprocess(*_ALONE, *options, plugins=[modules])
        modules.put_back()
        return f"{ran.stdout}\n{ran.stderr}"

    def _substitute(self, option: str, script: str, name: str) -> str:
        """Do what ``sed -i s/OLD/NEW/ FILE`` does, which not every machine has."""
        assert option == "-i"
        _, old, new, _ = script.split("/")
        file = self.folder / name
        file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
        return ""

    def _emulate(self, options: list[str]) -> str:
        """Serve a script; the article names a port, here any free one will do."""
        script, port = (options[options.index(name) + 1] for name in ("--replies", "--port"))
        running = self._open.enter_context(Emulator(script=self.folder / script))
        shown = f"http://127.0.0.1:{port}"
        self._ports[shown] = running.base_url
        return (
            f"emulator of the Messages API on {shown}; stop it with Ctrl-C\n"
            f"next: export ANTHROPIC_BASE_URL={shown} ANTHROPIC_API_KEY=any-key\n"
        )

    def _process(self, words: list[str]) -> str:
        done = subprocess.run(
            words, cwd=self.folder, capture_output=True, text=True, check=False, timeout=120
        )
        return done.stdout + done.stderr


class KeptModules:
    """What was imported: pytester drops it, and then half of a package would come back twice."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def pytest_unconfigure(self) -> None:
        """Keep what is there, at the end of a run or whenever it is called."""
        self._loaded = dict(sys.modules)

    def put_back(self) -> None:
        """Let nothing that was kept be imported again."""
        for name, module in self._loaded.items():
            sys.modules.setdefault(name, module)


@contextmanager
def _as_a_new_process(folder: Path) -> Iterator[None]:
    """Know no module of a project when the block begins, and none of this one when it has ended."""
    path, cwd = list(sys.path), Path.cwd()
    # Other tests leave modules of their projects, which lie beside this one and have like names.
    aside = _modules_below(folder.parent)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(cwd)
        sys.path[:] = path
        _modules_below(folder.parent)
        sys.modules.update(aside)


def _modules_below(folder: Path) -> dict[str, Any]:
    """Take the modules out whose files, or whose package without one, lie in a folder."""
    below = {}
    for name, module in list(sys.modules.items()):
        folders = getattr(module, "__path__", None) or [""]
        place = str(getattr(module, "__file__", None) or next(iter(folders)))
        if place.startswith(f"{folder}{os.sep}"):
            below[name] = sys.modules.pop(name)
    return below
