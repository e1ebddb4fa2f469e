"""The program that imports what a model wrote, in the child, and answers questions about it.

Never imported by this package: its text is given to an interpreter, and needs nothing but Python.
Standard input holds the work, one JSON object; answers go to the pipe that ``REGEN_REPORT_FD``
names, each as a frame: a secret word, the length, JSON. Each job has a word of its own, which in
its process only the function that sends still knows: code that writes to the pipe by itself is
found out, unless it searches the process for the word.

One process reads the work and makes ready; each job then runs in a fork of it.
"""
# ruff: noqa: BLE001 - code that may raise anything, SystemExit too, is run here

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
from importlib.abc import SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any

MOST = 2000
"""Characters kept of a message."""
LONGEST = 100_000
"""Characters kept of an exception as Python words it, which is compared."""

Send = Callable[..., None]
Handle = Callable[[ModuleType, Any], Any]


class Given(SourceLoader):
    """Finds one module, by the text that was given for it, whatever the import path holds."""

    def __init__(self, module: "dict[str, Any]") -> None:
        """Take the module's name, its text and its ``__file__``."""
        self.module = module

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return how to load the module; ``None`` for any other."""
        if name != self.module["name"]:
            return None
        return spec_from_file_location(name, self.module["path"], loader=self)

    def get_filename(self, fullname: str) -> str:
        """Return the module's ``__file__``; ``__init__.py`` makes it a package."""
        return str(self.module["path"])

    def get_data(self, path: "str | bytes") -> bytes:
        """Return the text, for Python itself, tracebacks and ``inspect``."""
        return str(self.module["source"]).encode("utf-8", "surrogatepass")


def sender(word: str, descriptor: int) -> Send:
    """Return a function that sends a frame; it alone holds the word."""
    # Bound now, because code that is imported later may replace what the modules hold.
    write, encode, head = os.write, json.JSONEncoder().encode, word.encode() + b" %d\n"

    def send(**frame: object) -> None:
        body = encode(frame).encode() + b"\n"
        unsent = memoryview(head % len(body) + body)
        while unsent:
            unsent = unsent[write(descriptor, unsent) :]

    return send


def words_of(make: "Callable[[], object]", most: int = MOST) -> str:
    """Return what a call returns as text, whatever code of others it runs."""
    try:
        # By the class, because an object of a class of its own may say anything about its text.
        text = str.__str__(str(make()))
    except BaseException as error:
        text = f"<{type(error).__name__} while it was put into words>"
    return text if len(text) <= most else text[:most] + "…"


def raised(error: BaseException, paths: "set[str | None]") -> "dict[str, Any]":
    """Return an exception as JSON, with the lines of the files that matter."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename in paths:
            lines.append((trace.tb_lineno, code.co_name, code.co_filename))
        trace = trace.tb_next
    # No frame of its own has code that cannot be compiled.
    if isinstance(error, SyntaxError) and words_of(lambda: error.filename) in paths:
        lines.append((int(error.lineno or 1), "<module>", str(error.filename)))
    # The last ones alone, because endless recursion has a thousand.
    last = [f'File "{path}", line {number}, in {name}' for number, name, path in lines[-8:]]
    return {
        "type": words_of(lambda: type(error).__name__),
        "message": words_of(lambda: error),
        "words": words_of(lambda: traceback.format_exception_only(error)[-1], LONGEST),
        "traceback": "\n".join(last),
        "line": lines[-1][0] if lines else None,
    }


def serve(job: "dict[str, Any]", handle: Handle, send: Send) -> None:
    """Import the module of a job and answer its questions."""
    paths: set[str | None] = {job["path"]}
    for entry in (*job["beside"], job):
        if entry["source"] is not None:
            # In front, because the import path may hold an older text of the same module.
            sys.meta_path.insert(0, Given(entry))
    # Kept from the pipe of standard output, because nobody reads what a module prints.
    sys.stdout = sys.stderr = io.StringIO()
    try:
        module = import_module(job["name"])
    except BaseException as error:
        send(raised=raised(error, paths))
        return
    paths.add(getattr(module, "__file__", None))
    send(loaded=True)
    for number, question in enumerate(job["questions"]):
        try:
            send(answer=number, value=handle(module, question))
        except BaseException as error:
            send(answer=number, raised=raised(error, paths))


def wait(pid: int, seconds: float) -> "int | None":
    """Wait for a fork; return its status, or ``None`` where it took too long and was killed."""
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while time.monotonic() < deadline:
        pid_of_ended, status = os.waitpid(pid, os.WNOHANG)
        if pid_of_ended:
            return status
        # Longer each time, because most jobs take milliseconds, and some take all their time.
        time.sleep(pause)
        pause = min(pause * 1.5, 0.01)
    os.kill(pid, signal.SIGKILL)
    return None


def clear(*, alone: bool) -> None:
    """Kill what a fork left; without a namespace of our own that waits for the end of all."""
    if alone:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0 if alone else os.WNOHANG)[0]:
            pass


def main() -> "tuple[dict[str, Any], Handle, Send] | None":
    """Do the work; in a fork, return the job to serve and what that takes."""
    work = json.loads(sys.stdin.buffer.read())
    # Nothing is left to read, because the words of all jobs stood there.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    descriptor = int(os.environ.pop("REGEN_REPORT_FD"))
    # Programs that code starts do not get it, because they could write frames.
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - takes no keyword
    sys.path[:0] = work["import_path"]
    send = sender(work["word"], descriptor)
    room: dict[str, Any] = {"__name__": "handler"}
    exec(compile(work["handler"], "<handler>", "exec"), room)  # noqa: S102 - of ours
    room.get("prepare", lambda: None)()
    # Asked of the system, because ``kill(-1)`` outside of a namespace ends all that the user has.
    outside = work["namespace"]
    alone = bool(outside) and os.readlink("/proc/self/ns/pid") != outside  # noqa: PTH115
    jobs, beside, seconds = work["jobs"], work["beside"], work["seconds"]
    # So that no fork holds the words of the others, because memory can be searched.
    del work
    for number, job in enumerate(jobs):
        send(begin=number)
        pid = os.fork()
        if not pid:
            # The words of the others must not be here.
            jobs.clear()
            job["beside"] = beside
            return job, room["answer"], sender(job.pop("word"), descriptor)
        status = wait(pid, seconds)
        clear(alone=alone)
        send(end=number, status=status)
    return None


def start() -> None:
    """Do the work, and serve a job in each fork."""
    served = main()
    if served is None:
        return
    # Nothing that is imported finds this module by its name.
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        serve(*served)
    finally:
        # Without what is registered with atexit, and without waiting for threads.
        os._exit(0)


if __name__ == "__main__":
    start()
