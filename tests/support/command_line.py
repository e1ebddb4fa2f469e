"""Commands run in this process, as real processes, and at a terminal."""

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from warm_python import run_python

from pytest_regen.cli.app import main

_SUPPORT = Path(__file__).parent


@dataclass(frozen=True)
class Ran:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        """Everything that people see."""
        return self.out + self.err

    @property
    def json(self) -> Any:
        """The one JSON document on stdout; fails if there is anything else."""
        return json.loads(self.out)


def command(*words: object) -> Ran:
    """Run a command in this process, not at a terminal."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", io.StringIO()):
        code = _exit_code([str(word) for word in words])
    return Ran(code, _text(out), _text(err))


def _exit_code(words: list[str]) -> int:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert isinstance(end.value.code, int)
    return end.value.code


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def process(
    *words: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    anew: bool = False,
    **options: Any,
) -> Ran:
    """Run ``python -m pytest_regen`` with these words as a real process.

    ``anew`` starts Python for it, where its start itself is looked at.
    """
    command = ["-m", "pytest_regen", *map(str, words)]
    if not anew and not options and "PYTHONIOENCODING" not in (env or {}):
        ended = run_python(command, cwd or Path.cwd(), _environment(env))
        return Ran(ended.returncode, ended.stdout, ended.stderr)
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=_environment(env),
        capture_output=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
        **options,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def at_terminal(
    *words: object,
    cwd: Path,
    typed: str = "",
    env: Mapping[str, str] | None = None,
    module: str = "pytest_regen",
) -> Ran:
    """Run a command as a real process at a terminal of 100 columns; ``err`` is what is seen.

    The stdout of pytest, another ``module``, is a terminal as well, and of what answers there.
    """
    is_seen = module == "pytest" or words[:1] in (("validate",), ("status",))
    ours, theirs = pty.openpty()
    place = os.ttyname(theirs)
    there = {**_environment(None), "TERM": "xterm-256color", "COLUMNS": "100", **(env or {})}
    os.write(ours, typed.encode())
    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(_read_all, ours)
        ended = run_python(
            ["-m", module, *map(str, words)],
            cwd,
            there,
            (place, place if is_seen else "", place),
        )
        os.close(theirs)
    os.close(ours)
    return Ran(ended.returncode, ended.stdout, seen.result())


def _read_all(terminal: int) -> str:
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # Linux's way to say that nobody holds the other end any more.
            break
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks).decode().replace("\r\n", "\n")


def _environment(more: Mapping[str, str] | None) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(_SUPPORT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, **(more or {})}
