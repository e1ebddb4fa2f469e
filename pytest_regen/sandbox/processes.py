"""One program run in the sandbox: started, fed, limited, read, and ended with all it started."""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from threading import Thread
from typing import Final

from pytest_regen.errors import SandboxError
from pytest_regen.sandbox.levels import command, note_used_level, strongest_level
from pytest_regen.sandbox.mounts import Mounts, plain_path


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may use. Sizes are in bytes."""

    seconds: float = 10.0
    """By the clock on the wall; then the child is killed, and all it started."""
    cpu_seconds: int = 10
    """Of each process."""
    memory: int | None = 2 << 30
    """Address space of each process; ``None`` for programs that reserve much and use little."""
    file_size: int = 16 << 20
    """Of each file that is written."""
    folder_size: int = 64 << 20
    """Of all that is written (``bwrap`` only)."""
    processes: int = 32
    """At one time, threads included. Without a namespace, and for root, whom the kernel does not
    limit, they are counted from outside, and who starts more is ended."""
    output: int = 1 << 20
    """Kept of standard output, and of standard error; more than ``file_size`` is not taken."""
    report: int = 64 << 20
    """A larger report ends the child."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a child came to."""

    returncode: int
    """Negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes
    report: bytes
    """What was written to the file descriptor that ``REGEN_REPORT_FD`` names."""
    stopped: str | None
    """The limit that it was ended for: ``seconds``, ``processes``, ``report``; or ``None``."""


def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    import_path: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    files: Mapping[str, bytes] | None = None,
    environ: Mapping[str, str] | None = None,
    limits: Limits = Limits(),
    watch: Callable[[bytes], bool] | None = None,
) -> Outcome:
    """Run a program in an empty temporary folder and an almost empty environment.

    The program gets no network, no rights and no view of other files or processes as far as the
    level in force keeps it from them: see ``levels``.

    Args:
        argv: the program and its arguments.
        stdin: what it reads from standard input.
        import_path: folders of the project; without names at their top that begin with a dot
            (``bwrap``). Nothing imports from there by itself.
        readable: further folders and files that it may read.
        hidden: files of those that read as empty (``bwrap``).
        files: relative names and contents of files in the working folder.
        environ: variables of its environment.
        limits: what it may use.
        watch: called with each piece of the report, which is then not kept; ``False`` ends the
            child. ``limits.seconds`` count from the last piece.

    Raises:
        SandboxError: the program cannot be started, or nothing can be run on this system.
        UsageError: ``REGEN_SANDBOX`` asks for a level that does not work here.
    """
    level = strongest_level()
    received = bytearray()

    def keep(piece: bytes) -> bool:
        received.extend(piece)
        return len(received) <= limits.report

    holder = Path(tempfile.mkdtemp(prefix="regen-")).resolve()
    mounts = Mounts(holder, import_path, readable, hidden, limits.folder_size)
    try:
        mounts.work.mkdir()
        mounts.empty.touch()
        for name, content in (files or {}).items():
            place = mounts.work / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        program = [plain_path(argv[0]), *argv[1:]]
        processes: int | str = limits.processes
        if level == "process":
            # The system counts all processes of the user, not those of the child.
            load = Path("/proc/loadavg")
            running = load.read_text("ascii").split()[3].partition("/")[2] if load.exists() else ""
            processes = limits.processes + int(running) + _OTHERS if running else "-"
        # The shell counts files in blocks of 512 bytes and memory in kilobytes.
        memory = "-" if limits.memory is None else limits.memory // 1024
        words = map(str, (limits.cpu_seconds, limits.file_size // 512, memory, processes))
        limited = ["/bin/sh", "-c", _LIMITED, "sh", *words, *program]
        line = command(level, limited, mounts)
        if line is None:
            raise SandboxError(f"the program of level {level} is gone", hint="install it again")
        places = {"HOME": str(mounts.work), "TMPDIR": str(mounts.work)}
        variables = {**_ENVIRONMENT, **places, **(environ or {})}
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            reading, writing = os.pipe()
            with os.fdopen(reading, "rb", buffering=0) as pipe:
                try:
                    process = subprocess.Popen(  # this is what the sandbox is for
                        line,
                        stdin=subprocess.PIPE,
                        stdout=stdout,
                        stderr=stderr,
                        cwd=mounts.work,
                        env={**variables, "REGEN_REPORT_FD": str(writing)},
                        pass_fds=[writing],
                        start_new_session=True,
                    )
                finally:
                    # Ours would keep the pipe open after the child's end.
                    os.close(writing)
                report = _Report(pipe, watch or keep, renews=watch is not None)
                stopped = _attend(process, stdin, report, limits)
            stdout.seek(0)
            stderr.seek(0)
            printed = stdout.read(limits.output), stderr.read(limits.output)
    except OSError as error:
        raise SandboxError(
            f"the sandbox cannot run {argv[0]}", why=str(error), hint="see docs/sandbox.md"
        ) from None
    finally:
        shutil.rmtree(holder, ignore_errors=True)
    note_used_level(level, is_kept=False)
    return Outcome(process.returncode, *printed, bytes(received), stopped)


_LIMITED: Final = """
ulimit -c 0 2>/dev/null; ulimit -f $2 2>/dev/null
ulimit -S -t $1 2>/dev/null; ulimit -H -t $(($1 + 1)) 2>/dev/null
[ $3 = - ] || ulimit -v $3 2>/dev/null
[ $4 = - ] || ulimit -u $4 2>/dev/null || ulimit -p $4 2>/dev/null
ulimit -n 256 2>/dev/null
shift 4; exec "$@"
"""
"""A shell sets the limits, inside the namespace, where processes are counted apart. Shells differ
in the letter for processes; a limit that a system lacks is left out. Of CPU time the soft limit
comes first, because its signal tells what it was, and that of the hard one is SIGKILL."""


_ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    # Libraries for numbers start a thread for each core, and count address space for each.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}
"""All that a child sees of the environment: ours holds secrets."""

_PIECE: Final = 1 << 16
_GRACE: Final = 0.5
"""Seconds that a killed child gets until its pipe must be closed."""
_LOOK: Final = 0.05
"""Seconds between two counts of the threads of a child."""
_SOON: Final = 0.002
"""Seconds between two looks at a child that has closed its pipe, as it does when it ends."""
_OURS: Final = 8
"""Processes of the programs that set up the level."""
_OTHERS: Final = 256
"""Processes that the user may start elsewhere while a child runs."""


@dataclass(slots=True)
class _Report:
    """What a child writes to the pipe of its report."""

    pipe: FileIO
    watch: Callable[[bytes], bool]
    renews: bool
    """Whether each piece gives the child its time anew."""
    is_closed: bool = False
    is_refused: bool = False

    def take(self, seconds: float) -> bool:
        """Wait so long for a piece; return whether one came."""
        if self.is_closed:
            time.sleep(_SOON)  # Whoever waits for the child's end must not spin.
            return False
        poll = select.poll()  # Not ``select``, because that refuses descriptors above 1,023.
        poll.register(self.pipe, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return False
        piece = os.read(self.pipe.fileno(), _PIECE)
        self.is_closed = not piece
        self.is_refused = bool(piece) and not self.watch(piece)
        return bool(piece)


def _attend(
    process: "subprocess.Popen[bytes]", stdin: bytes, report: _Report, limits: Limits
) -> str | None:
    """Feed and read a child until it ends, or must be ended; return for which limit."""

    def feed() -> None:
        assert process.stdin is not None  # it is a pipe
        with suppress(OSError), process.stdin as channel:
            channel.write(stdin)

    def has_ended() -> bool:
        # Looked at, not waited for, because its number must stay its own until it is killed.
        flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
        can_look = hasattr(os, "waitid")  # macOS can since Python 3.13.
        return (os.waitid(os.P_PID, process.pid, flags) if can_look else process.poll()) is not None

    # In a thread, because a child may write its report before it has read all.
    Thread(target=feed, daemon=True).start()
    deadline = time.monotonic() + limits.seconds
    look = 0.0
    stopped = None
    try:
        while not stopped and not report.is_refused and not has_ended():
            now = time.monotonic()
            if now >= deadline:
                stopped = "seconds"
            elif now >= look:
                look = now + _LOOK
                # From outside, because for root the kernel sets no such limit.
                if count_threads(process.pid) > limits.processes + _OURS:
                    stopped = "processes"
            elif report.take(min(_LOOK, deadline - now)) and report.renews:
                deadline = now + limits.seconds
    finally:
        # Not once it is waited for, because its number may then be that of another. A namespace
        # ends with its first process.
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # Not to its end, because a process that left the group may hold the pipe, and write on.
    until = time.monotonic() + _GRACE
    while not report.is_closed and not report.is_refused and time.monotonic() < until:
        report.take(_GRACE)
    return "report" if report.is_refused else stopped


def count_threads(pid: int) -> int:
    """Return how many threads a process and all that it started have, as far as Linux tells."""
    count = 0
    waiting = [pid]
    while waiting:
        # By thread, because each lists the children that it started itself.
        folder = f"/proc/{waiting.pop()}/task"
        # A process may end while it is looked at: then it has no threads, or fewer.
        with suppress(OSError):
            for thread in os.scandir(folder):
                count += 1
                with suppress(OSError):
                    children = Path(thread, "children").read_text("ascii")
                    waiting += map(int, children.split())
    return count
