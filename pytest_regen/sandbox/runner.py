"""The program that imports what a model wrote, in the child, and answers questions about it.

Never imported by this package: its text is given to an interpreter, and needs nothing but Python.
Standard input holds the work, one JSON object; answers go to the pipe that ``REGEN_REPORT_FD``
names, each as a frame: a secret word, the length, JSON. Each job has a word of its own, which in
its process only the function that sends still knows: code that writes to the pipe by itself is
found out, unless it searches the process for the word.

One process reads the work and makes ready; each job then runs in a fork of it.
"""

import contextlib
import io
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType
from typing import Any

MOST = 2000
"""Characters kept of a message, and of what was printed."""
LONGEST = 100_000
"""Characters kept of an exception as Python words it, which is compared."""

Send = Callable[..., None]
Handle = Callable[[ModuleType, Any], Any]


class Given(InspectLoader):
    """Finds one module, by the text that was given for it, whatever the import path holds."""

    def __init__(self, name: str, source: str, path: str) -> None:
        """Take the module's name, its text and its ``__file__``."""
        self.name, self.source, self.path = name, source, path

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return how to load the module; ``None`` for any other."""
        if name != self.name:
            return None
        is_package = self.path.endswith("__init__.py")
        spec = spec_from_loader(name, self, origin=self.path, is_package=is_package)
        if spec:
            spec.has_location = True
        return spec

    def get_source(self, fullname: str) -> str:
        """Return the text, for tracebacks and ``inspect``."""
        return self.source

    def get_code(self, fullname: str) -> CodeType:
        """Return the text as code."""
        return compile(self.source, self.path, "exec", dont_inherit=True)


def sender(word: str, descriptor: int) -> Send:
    """Return a function that sends a frame; it alone holds the word."""
    write, encode, head = os.write, json.JSONEncoder().encode, word.encode() + b" %d\n"

    def send(**frame: object) -> None:
        body = encode(frame).encode() + b"\n"
        rest = memoryview(head % len(body) + body)
        while rest:
            rest = rest[write(descriptor, rest) :]

    return send


def text_of(value: object, most: int = MOST) -> str:
    """Return a value as text, whatever its methods do."""
    try:
        text = str.__str__(str(value))
    except BaseException as error:  # noqa: BLE001 - any code may run here
        text = f"<{type(error).__name__} while it was put into words>"
    return text if len(text) <= most else text[:most] + "…"


def words_of(error: BaseException) -> str:
    """Return an exception as Python words it at the end of a traceback."""
    try:
        words = traceback.format_exception_only(type(error), error)[-1]
    except BaseException:  # noqa: BLE001 - its methods may do anything
        words = f"{type(error).__name__}\n"
    return words[:LONGEST]


def raised(error: BaseException, paths: "set[str | None]", *, loading: bool) -> "dict[str, Any]":
    """Return an exception as JSON, with the lines of the files that matter."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename in paths:
            lines.append((trace.tb_lineno, code.co_name, code.co_filename))
        trace = trace.tb_next
    if loading and isinstance(error, SyntaxError) and error.lineno is not None:
        lines.append((int(error.lineno), "<module>", text_of(error.filename)))
    shown = lines if len(lines) <= 8 else [*lines[:4], *lines[-4:]]
    return {
        "type": text_of(type(error).__name__),
        "message": text_of(error),
        "words": words_of(error),
        "traceback": "\n".join(f'File "{path}", line {n}, in {name}' for n, name, path in shown),
        "line": lines[-1][0] if lines else None,
    }


def serve(job: "dict[str, Any]", handle: Handle, send: Send) -> None:
    """Import the module of a job and answer its questions."""
    name, path, source, questions = (job[key] for key in ("name", "path", "source", "questions"))
    paths: set[str | None] = {path}
    for other in job["beside"]:
        sys.meta_path.insert(0, Given(other["name"], other["source"], other["path"]))
    if source is not None:
        sys.meta_path.insert(0, Given(name, source, path))
    sys.stdout = sys.stderr = io.StringIO()
    try:
        module = import_module(name)
    except BaseException as error:  # noqa: BLE001 - SystemExit as well
        send(raised=raised(error, paths, loading=True))
        return
    paths.add(getattr(module, "__file__", None))
    send(loaded=True)
    for number, question in enumerate(questions):
        printed = sys.stdout = sys.stderr = io.StringIO()
        try:
            value = handle(module, question)
            send(answer=number, value=value, output=printed.getvalue()[:MOST])
        except BaseException as error:  # noqa: BLE001 - as above; or a value that is not JSON
            output = printed.getvalue()[:MOST]
            send(answer=number, raised=raised(error, paths, loading=False), output=output)


def wait(pid: int, seconds: float) -> "int | None":
    """Wait for a fork; return its status, or ``None`` where it took too long and was killed."""
    deadline, pause = time.monotonic() + seconds, 0.0005
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        left = deadline - time.monotonic()
        if left <= 0:
            os.kill(pid, signal.SIGKILL)
            return None
        if hasattr(signal, "sigtimedwait"):
            signal.sigtimedwait([signal.SIGCHLD], left)
        else:
            time.sleep(min(pause, left))
            pause = min(pause * 2, 0.05)


def clear(*, alone: bool) -> None:
    """Kill what a fork left; without a namespace of our own that waits for the end of all."""
    if alone:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0 if alone else os.WNOHANG)[0]:
            pass


def is_alone(outside: str) -> bool:
    """Return whether we are in another process namespace than the one of that name."""
    try:
        return bool(outside) and os.readlink("/proc/self/ns/pid") != outside  # noqa: PTH115
    except OSError:
        return False


def main() -> "tuple[dict[str, Any], Handle, Send] | None":
    """Do the work; in a fork, return the job to serve and what that takes."""
    work = json.loads(sys.stdin.buffer.read())
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    descriptor = int(os.environ.pop("REGEN_REPORT_FD"))
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - takes no keyword
    sys.path[:0] = work["import_path"]
    send = sender(work["word"], descriptor)
    room: dict[str, Any] = {"__name__": "handler"}
    exec(compile(work["handler"], "<handler>", "exec"), room)  # noqa: S102 - of ours
    room.get("prepare", lambda: None)()
    alone, jobs, seconds = is_alone(work["namespace"]), work["jobs"], work["seconds"]
    beside = work["beside"]
    del work
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    for number, job in enumerate(jobs):
        send(begin=number)
        pid = os.fork()
        if not pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            jobs.clear()
            job["beside"] = beside
            return job, room["answer"], sender(job.pop("word"), descriptor)
        status = wait(pid, seconds)
        clear(alone=alone)
        send(end=number, status=status)
    return None


def start() -> None:
    """Do the work, and serve a job in each fork."""
    found = main()
    if found is None:
        return
    # Nothing that is imported finds this module by its name.
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        serve(*found)
    finally:
        # Without what is registered with atexit, and without waiting for threads.
        os._exit(0)


if __name__ == "__main__":
    start()
