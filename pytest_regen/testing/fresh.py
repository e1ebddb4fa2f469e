"""Turns taken in a process of its own, which reads and writes JSON."""

import importlib
import json
import os
import pkgutil
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
    model = type(request)
    work = {
        "factory": _reference(make),
        "model": _reference(model),
        "request": request.model_dump_json(),
        "generate": replies.generate,
    }
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}
    child = subprocess.run(
        # Without the folder it is started in, because this process may not import from there.
        [sys.executable, "-P", "-c", "from pytest_regen.testing.fresh import main; main()"],
        input=json.dumps(work),
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **_ELSEWHERE, **path},
        timeout=_SECONDS,
        check=False,
    )
    if child.returncode:
        raise UsageError(
            f"the agent could not take its turn in a process of its own (exit {child.returncode})",
            why=child.stderr.strip()[-600:] or "it said nothing",
            hint="make it importable and free of side effects, or leave the check 'stateless' out: "
            "check_stateless_agent(make, checks=[name for name in CHECKS if name != 'stateless'])",
        )
    # The last line, because an agent may print.
    plain, later = json.loads(child.stdout.rpartition("\n")[2])
    return {"a fresh process": tuple(plain), "another day in another time zone": tuple(later)}


def _reference(thing: Any) -> list[str]:
    name, module = getattr(thing, "__qualname__", "<>"), getattr(thing, "__module__", "")
    if "<" in name or not module:
        raise UsageError(
            f"{thing!r} cannot be found by another process",
            why="a fresh process imports the factory by its name",
            hint="define it at the top of a module: def make_agent(provider): …",
        )
    return [module, name, str(getattr(sys.modules[module], "__file__", ""))]


def main() -> None:
    """Take the turn that standard input describes."""
    work = json.load(sys.stdin)
    replies = Replies(work["generate"])
    make, model = _import(*work["factory"]), _import(*work["model"])
    request = model.model_validate_json(work["request"])

    def turn() -> Any:
        return Agent(make).take(request, replies.render).plain

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


def _import(module: str, name: str, file: str) -> Any:
    try:
        is_same = getattr(importlib.import_module(module), "__file__", file) == file
    except ImportError:
        is_same = False
    # Test modules are often not importable by name, or another one has the same.
    if not is_same:
        sys.modules[module] = pydoc.importfile(file)
    return pkgutil.resolve_name(f"{module}:{name}")
