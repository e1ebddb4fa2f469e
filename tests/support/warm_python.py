"""A Python that has imported already: the SDK alone takes a second of each program that uses it.

Run as a program, it imports once and forks a child per command. As a module, it starts that program
where it is first asked for, one for a process of tests, and returns what each command printed.
"""

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path

__all__ = ["run_in", "run_python"]

_LOADED = ("anthropic", "httpx2", "jsonschema", "pydantic", "pytest", "typer", "vcr", "yaml")
"""What programs of tests import, but for the package itself, which pytest rewrites."""


def run_python(
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    terminal: Sequence[str] = ("", "", ""),
) -> subprocess.CompletedProcess[str]:
    """Run ``python COMMAND`` in a process of its own; what it prints is text.

    Threads that run commands at the same time start a Python each.

    Args:
        command: ``-m MODULE``, ``-c CODE`` or a file, and what follows.
        folder: where.
        env: the whole environment.
        terminal: what stands for input, output and errors, if not nothing and pipes; a process
            with a terminal is killed after half a minute.
    """
    if any(terminal):
        assert threading.current_thread() is threading.main_thread()
    elif not hasattr(os, "fork") or threading.current_thread() is not threading.main_thread():
        return subprocess.run(
            [sys.executable, *command],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    asked = {"command": [*map(str, command)], "folder": str(folder), "env": dict(env)}
    server.stdin.write(json.dumps([terminal, asked]) + "\n")
    server.stdin.flush()
    code, out, err = json.loads(server.stdout.readline())
    return subprocess.CompletedProcess([sys.executable, *command], code, out, err)


def run_in(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in ``folder`` at a wide terminal, as a user of the examples does."""
    return run_python(command, folder, {**os.environ, "COLUMNS": "200"})


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    server.communicate()


def _serve() -> None:
    for name in _LOADED:
        import_module(name)
    # Nobody is to be warned that pytest came too late to rewrite what came with the others.
    for name, module in [*sys.modules.items()]:
        if "." not in name:
            module.__doc__ = f"PYTEST_DONT_REWRITE {module.__doc__ or ''}"
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        terminal, asked = json.loads(line)
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        pid = os.fork()
        if not pid:
            if any(terminal):
                # A question that nobody answers must fail the test, not hang it.
                signal.alarm(30)
            for number, end in enumerate((os.open(os.devnull, os.O_RDONLY), to_out, to_err)):
                place = terminal[number]
                os.dup2(os.open(place, os.O_RDWR | os.O_NOCTTY) if place else end, number)
            os.closerange(3, 64)
            _become(**asked)
        for end in (to_out, to_err):
            os.close(end)
        with ThreadPoolExecutor(2) as pool:
            said = [*pool.map(_read, (out, err))]
        _, status = os.waitpid(pid, 0)
        answers.write(json.dumps([os.waitstatus_to_exitcode(status), *said]) + "\n")
        answers.flush()


def _read(pipe: int) -> str:
    with open(pipe, encoding="utf-8", newline="") as file:
        return file.read()


def _become(command: list[str], folder: str, env: dict[str, str]) -> None:
    """Be the program that was asked for, and end as it ends."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - of the process
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.path[0] = ""
    sys.path[1:1] = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    code = 1
    try:
        code = _run(command)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
    except BaseException as error:  # noqa: BLE001 - as Python does
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(command: list[str]) -> int:
    how, *rest = command
    if how == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = command
        sys.path[0] = str(Path(how).absolute().parent)
        runpy.run_path(str(Path(how).absolute()), run_name="__main__")
    return 0


if __name__ == "__main__":
    _serve()
