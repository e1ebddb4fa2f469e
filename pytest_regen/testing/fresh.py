"""Turns taken in a process of its own, which reads and writes JSON."""

import importlib
import json
import os
import pickle
import pydoc
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Final

from pytest_regen.errors import UsageError
from pytest_regen.testing.agents import Agent, AgentFactory, Replies

_ELSEWHERE: Final = {"PYTHONHASHSEED": "4711", "LC_ALL": "C"}
"""What a prompt must not depend on: the order of sets, and language."""
_MAIN: Final = "from pytest_regen.testing.fresh import main; main()"
_SECONDS: Final = 120
_NOT_THEIRS: Final = ("<", str(Path(os.__file__).parent), str(Path(__file__).parents[1]))
"""How the files of Python's own modules, and of ours, begin."""
_ZONE: Final = "Pacific/Kiritimati"
_LATER: Final = timedelta(days=401, hours=7, minutes=13, seconds=17)
"""So far apart, two moments have nothing in common that a prompt could show: not the year, the
month, the day of the month or of the week, the hour, the minute or the second."""


def take_turn_elsewhere(make: AgentFactory, request: Any, replies: Replies) -> dict[str, Any]:
    """Return requests and result, as JSON, of one turn taken twice in a fresh process.

    The first is the turn as it is there; the second is taken after the clock and the time zone have
    changed.

    Raises:
        UsageError: the agent's factory cannot be imported there, or the process fails.
    """
    modules = {sys.modules.get(thing.__module__) for thing in (make, type(request))}
    files = {str(module.__name__): module.__file__ for module in modules if module}
    try:
        work = pickle.dumps((make, request, replies))
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise UsageError(
            f"{make!r} cannot be found by another process",
            why=str(error),
            hint="define it at the top of a module: def make_agent(provider): …",
        ) from None
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}
    child = subprocess.run(
        # Without the folder it is started in, because this process may not import from there.
        [sys.executable, "-P", "-c", _MAIN, json.dumps(files)],
        input=work,
        capture_output=True,
        env={**os.environ, **_ELSEWHERE, **path},
        timeout=_SECONDS,
        check=False,
    )
    if child.returncode:
        raise UsageError(
            f"the agent could not take its turn in a process of its own (exit {child.returncode})",
            why=child.stderr.decode("utf-8", "replace").strip()[-600:] or "it said nothing",
            hint="make it importable and free of side effects, or leave the check 'stateless' out",
        )
    # The last line, because an agent may print.
    plain, later = json.loads(child.stdout.rpartition(b"\n")[2])
    return {"a fresh process": tuple(plain), "another day in another time zone": tuple(later)}


def main() -> None:
    """Take the turn that standard input describes."""
    for name, file in json.loads(sys.argv[1]).items():
        try:
            is_same = getattr(importlib.import_module(name), "__file__", file) == file
        except ImportError:
            is_same = False
        # Test modules are often not importable by name, or another one has the same.
        if not is_same:
            sys.modules[name] = pydoc.importfile(file)
    make, request, replies = pickle.load(sys.stdin.buffer)  # noqa: S301 - it is our own

    def turn() -> Any:
        return Agent(make, replies).take(request).plain

    plain = turn()
    # Only now: all that the agent imports has found the classes that it may subclass or pickle.
    _set_forward(_LATER)
    os.environ["TZ"] = _ZONE
    if hasattr(time, "tzset"):  # not on Windows, where the zone stays
        time.tzset()
    # On a line of its own, because the agent may have printed half a line.
    sys.stdout.write("\n" + json.dumps([plain, turn()]))


def _set_forward(by: timedelta) -> None:
    """Set the clock forward: in ``time`` and ``datetime``, and where the agent imported from them.

    Reached is what Python code asks these two modules for. Libraries that took a name out of them
    keep the real one, because some compare types by identity; so does whatever asks C for the time.
    """
    real, localtime, strftime = time.time, time.localtime, time.strftime

    # A class, because an agent may ask whether a value is one; without ``today``, because Python
    # itself asks ``time`` for that.
    class Datetime(datetime, metaclass=_Standing):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + by

        @classmethod
        def utcnow(cls) -> Any:
            return datetime.now(UTC).replace(tzinfo=None) + by

    def now(moment: float | None = None) -> time.struct_time:
        return localtime(real() + by.total_seconds() if moment is None else moment)

    fakes: dict[int, Any] = {
        id(datetime): Datetime,
        id(real): lambda: real() + by.total_seconds(),
        id(localtime): now,
        id(strftime): lambda form, when=None: strftime(form, when or now()),
    }
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or "<none>"
        is_own = "site-packages" not in file and not file.startswith(_NOT_THEIRS)
        if is_own or name in ("time", "datetime"):
            for member, value in list(vars(module).items()):
                if id(value) in fakes:
                    setattr(module, member, fakes[id(value)])


class _Standing(type):
    """Metaclass of a class that stands for its base, to ``isinstance`` and to pydantic."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)
