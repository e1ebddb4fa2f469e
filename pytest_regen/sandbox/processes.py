"""One program run in the sandbox: started, fed, limited, read, and ended with all it started."""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_regen.errors import SandboxError
from pytest_regen.sandbox.levels import Level, command, is_weaker, strongest_level
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
    """Kept of standard output, and of standard error; what comes after is thrown away."""
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
    level: Level
    truncated: bool = False
    """More was written to standard output or error than is kept."""

    @property
    def timed_out(self) -> bool:
        """Whether it took longer than it may."""
        return self.stopped == "seconds"


_used: list[Level] = []
_ran: list[Level] = []


def used_level() -> Level | None:
    """Return the weakest level that verdicts of this process came from; ``None``: no code ran."""
    return _used[-1] if _used else None


def has_run() -> bool:
    """Return whether code was run in this process: else all verdicts were kept ones."""
    return bool(_ran)


def note_used_level(level: Level) -> None:
    """Note that code was run at a level, here or in the run whose verdict is used."""
    if not _used or is_weaker(level, _used[-1]):
        _used[:] = [level]


def forget_used_level() -> None:
    """Begin anew, for a run of pytest within a process that has had children before."""
    _used.clear()
    _ran.clear()


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
    python: str = sys.executable,
    watch: Callable[[bytes], bool] | None = None,
) -> Outcome:
    """Run a program in an empty temporary folder and an almost empty environment.

    The program gets no network, no rights and no view of other files or processes as far as the
    level in force keeps it from them: see ``levels``.

    Args:
        argv: the program and its arguments.
        stdin: what it reads from standard input.
        import_path: folders of the project; without names at their top that begin with a dot
            (``bwrap``). Put into ``REGEN_IMPORT_PATH``; nothing imports from there by itself.
        readable: further folders and files that it may read.
        hidden: files of those that read as empty (``bwrap``).
        files: relative names and contents of files in the working folder.
        environ: variables of its environment.
        limits: what it may use.
        python: the interpreter whose installation it may read.
        watch: called with each piece of the report, which is then not kept; ``False`` ends the
            child. ``limits.seconds`` count from the last piece.

    Raises:
        SandboxError: the program cannot be started, or nothing can be run on this system.
        UsageError: ``REGEN_SANDBOX`` asks for a level that does not work here.
    """
    level = strongest_level()
    holder = Path(tempfile.mkdtemp(prefix="regen-")).resolve()
    try:
        mounts = Mounts(
            holder,
            tuple(import_path),
            tuple(readable),
            tuple(hidden),
            limits.folder_size,
            plain_path(python),
        )
        _lay_out(mounts, files or {})
        program = [plain_path(argv[0]), *argv[1:]]
        limited = ["/bin/sh", "-c", _LIMITED, "sh", *_limits(limits, level), *program]
        line = command(level, limited, mounts)
        if line is None:
            raise SandboxError(f"the program of level {level} is gone", hint="install it again")
        environment = _environment(mounts.work, import_path) | dict(environ or {})
        child = _Child(line, mounts.work, environment, limits=limits, stdin=stdin, watch=watch)
        outcome = child.outcome(level)
    except OSError as error:
        raise SandboxError(
            f"the sandbox cannot run {argv[0]}", why=str(error), hint="see docs/sandbox.md"
        ) from None
    finally:
        shutil.rmtree(holder, ignore_errors=True)
    note_used_level(level)
    _ran[:] = [level]
    return outcome


def _lay_out(mounts: Mounts, files: Mapping[str, bytes]) -> None:
    mounts.work.mkdir()
    mounts.empty.touch()
    for name, content in files.items():
        place = mounts.work / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


_LIMITED: Final = """
ulimit -c 0 2>/dev/null; ulimit -t $1 2>/dev/null; ulimit -f $2 2>/dev/null
[ $3 = - ] || ulimit -v $3 2>/dev/null
[ $4 = - ] || ulimit -u $4 2>/dev/null || ulimit -p $4 2>/dev/null
ulimit -n 256 2>/dev/null
shift 4; exec "$@"
"""
"""A shell sets the limits, inside the namespace, where processes are counted apart. Shells differ
in the letter for processes; a limit that a system lacks is left out."""


def _limits(limits: Limits, level: Level) -> list[str]:
    # The shell counts files in blocks of 512 bytes and memory in kilobytes.
    memory = "-" if limits.memory is None else str(limits.memory // 1024)
    processes = limits.processes
    if level == "process":
        # The system counts all processes of the user, not those of the child.
        try:
            running = Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[2]
        except OSError:
            return [str(limits.cpu_seconds), str(limits.file_size // 512), memory, "-"]
        processes += int(running) + _OTHERS
    return [str(limits.cpu_seconds), str(limits.file_size // 512), memory, str(processes)]


def _environment(work: Path, import_path: Sequence[Path]) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(work),
        "TMPDIR": str(work),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "REGEN_IMPORT_PATH": os.pathsep.join(map(str, import_path)),
        # Libraries for numbers start a thread for each core, and count address space for each.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }


_PIECE: Final = 1 << 16
_GRACE: Final = 0.5
"""Seconds that a killed child gets until its pipes must be closed."""
_LOOK: Final = 0.05
"""Seconds between two counts of the threads of a child."""
_OURS: Final = 8
"""Processes of the programs that set up the level."""
_OTHERS: Final = 256
"""Processes that the user may start elsewhere while a child runs."""


@dataclass(slots=True)
class _Stream:
    """One pipe of a child: what it wrote there, up to a limit."""

    limit: int
    data: bytearray = field(default_factory=bytearray)
    overflowed: bool = False

    def take(self, piece: bytes) -> None:
        room = self.limit - len(self.data)
        self.data += piece[:room]
        self.overflowed |= len(piece) > room


class _Child:
    """A running child, from its start to its end."""

    def __init__(
        self,
        line: Sequence[str],
        work: Path,
        environ: Mapping[str, str],
        *,
        limits: Limits,
        stdin: bytes,
        watch: Callable[[bytes], bool] | None,
    ) -> None:
        self._limits = limits
        self._watch = watch
        self._stdin = memoryview(stdin)
        self._stopped: str | None = None
        reading, writing = os.pipe()
        try:
            self._process = subprocess.Popen(  # this is what the sandbox is for
                line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=work,
                env={**environ, "REGEN_REPORT_FD": str(writing)},
                pass_fds=[writing],
                start_new_session=True,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._report = open(reading, "rb", buffering=0)  # noqa: SIM115, PTH123 - closed in outcome
        self._streams = {
            "stdout": _Stream(limits.output),
            "stderr": _Stream(limits.output),
            "report": _Stream(limits.report),
        }

    def outcome(self, level: Level) -> Outcome:
        """Wait until the child is done, or ended for a limit, and return what it came to."""
        process = self._process
        pipes: dict[str, Any] = {
            "stdin": process.stdin,
            "stdout": process.stdout,
            "stderr": process.stderr,
            "report": self._report,
        }
        try:
            with selectors.DefaultSelector() as selector:
                for name, pipe in pipes.items():
                    os.set_blocking(pipe.fileno(), False)
                    event = selectors.EVENT_WRITE if name == "stdin" else selectors.EVENT_READ
                    selector.register(pipe, event, name)
                self._attend(selector)
                self._kill()
                self._drain(selector)
        finally:
            self._kill()
            for pipe in pipes.values():
                pipe.close()
            process.wait()
        streams = self._streams
        return Outcome(
            process.returncode,
            bytes(streams["stdout"].data),
            bytes(streams["stderr"].data),
            bytes(streams["report"].data),
            self._stopped,
            level,
            streams["stdout"].overflowed or streams["stderr"].overflowed,
        )

    def _attend(self, selector: selectors.BaseSelector) -> None:
        """Feed and read the child until it ends or must be ended."""
        allowed = self._limits.seconds
        deadline = time.monotonic() + allowed
        look = time.monotonic() + _LOOK
        waiting = 0.001
        while not self._stopped and not self._has_ended():
            now = time.monotonic()
            if now >= deadline:
                self._stopped = "seconds"
                break
            if now >= look:
                look = now + _LOOK
                if _tasks(self._process.pid) > self._limits.processes + _OURS:
                    self._stopped = "processes"
                    break
            # A child that closes its pipes and goes on is only seen to end by asking again.
            is_silent = not selector.get_map()
            ready = [] if is_silent else selector.select(min(_LOOK, deadline - now))
            if is_silent:
                time.sleep(min(waiting, _LOOK))
                waiting *= 2
            for key, _ in ready:
                if self._serve(selector, key) and key.data == "report" and self._watch:
                    deadline = time.monotonic() + allowed

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what is left in the pipes; a process that still holds them is not waited for."""
        until = time.monotonic() + _GRACE
        while selector.get_map() and (left := until - time.monotonic()) > 0:
            ready = selector.select(left)
            if not ready:
                break
            for key, _ in ready:
                self._serve(selector, key)

    def _serve(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
        """Feed or read one pipe once; return whether anything came."""
        pipe: Any = key.fileobj
        try:
            if key.data == "stdin":
                self._stdin = self._stdin[os.write(pipe.fileno(), self._stdin[:_PIECE]) :]
                piece = b""
                is_done = not self._stdin
            else:
                piece = os.read(pipe.fileno(), _PIECE)
                is_done = not piece
        except BlockingIOError:
            return False
        except OSError:  # the process does not read its input
            piece, is_done = b"", True
        if is_done:
            selector.unregister(pipe)
            pipe.close()
            return False
        if key.data == "stdin":
            return False
        stream = self._streams[key.data]
        if key.data == "report" and self._watch:
            stream.overflowed = not self._watch(piece)
        else:
            stream.take(piece)
        if self._streams["report"].overflowed:
            self._stopped = self._stopped or "report"
        return True

    def _kill(self) -> None:
        """End the child and its process group; a namespace ends with its first process.

        Not once the child is waited for: its number may then be that of another.
        """
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _has_ended(self) -> bool:
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        options = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self._process.pid, options) is not None


def _tasks(pid: int) -> int:
    """Return how many threads a process and all that it started have, as far as Linux tells."""
    count = 0
    waiting = [pid]
    while waiting:
        folder = f"/proc/{waiting.pop()}/task"
        # A process may end while it is looked at: then it has no threads, or fewer.
        with suppress(OSError):
            for thread in os.listdir(folder):  # noqa: PTH208 - names alone, hundreds of times
                count += 1
                with suppress(OSError):
                    children = Path(folder, thread, "children").read_text("ascii")
                    waiting += map(int, children.split())
    return count
