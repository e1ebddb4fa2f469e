"""A turn taken in a process of its own: ``python -m pytest_regen.testing.fresh``.

Reads the turn as JSON from standard input and writes what was sent and answered to standard output.
"""

import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Final

from pytest_regen.context.requests import ClarificationRequest, parse_request
from pytest_regen.errors import UsageError
from pytest_regen.testing.agents import AgentFactory, Replies, observe, plain_result

FRESH: Final = "a fresh process"
_SECONDS: Final = 60
_ELSEWHERE: Final = {"PYTHONHASHSEED": "4711", "LC_ALL": "C"}
"""What a prompt must not depend on: the order of sets, and language."""
_ANOTHER_ZONE: Final = "Pacific/Kiritimati"
_LATER: Final = timedelta(days=401, hours=7, minutes=13, seconds=17)
"""So far apart, two moments have nothing in common that a prompt could show: not the year, the
month, the day of the month or of the week, the hour, the minute or the second."""


def take_turn_elsewhere(
    make: AgentFactory, request: ClarificationRequest, replies: Replies
) -> dict[str, tuple[Any, Any]]:
    """Return requests and result, as JSON, of one turn taken twice in a fresh process.

    The context goes there as JSON. The first is the turn as it is there, by the name ``FRESH``; the
    second is taken after the clock and the time zone have changed.

    Raises:
        UsageError: the agent's factory cannot be imported there, or the process fails.
    """
    work = {
        "factory": _reference(make),
        "path": [entry for entry in sys.path if entry],
        "request": request.model_dump(mode="json", by_alias=True),
        "replies": [replies.generate, replies.ask, list(replies.unusable)],
    }
    done = subprocess.run(
        [sys.executable, "-c", "from pytest_regen.testing.fresh import main; main()"],
        input=json.dumps(work),
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **_ELSEWHERE, "PYTHONUTF8": "1"} | _importable(),
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        raise UsageError(
            "the agent could not take its turn in a process of its own",
            why=done.stderr.strip()[-600:],
            hint="give a factory that works in any process: python -c 'import …' must find it",
        )
    plain, later = json.loads(done.stdout.rpartition("\n")[2])
    return {FRESH: tuple(plain), "another day in another time zone": tuple(later)}


def _importable() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


def _reference(make: AgentFactory) -> list[str]:
    name = getattr(make, "__qualname__", "")
    module = getattr(make, "__module__", "")
    if not name or "<" in name or not module:
        raise UsageError(
            f"{make!r} cannot be found by another process",
            why="a fresh process imports the factory by its name",
            hint="define it at the top of a module: def make_agent(provider): …",
        )
    try:
        file = inspect.getsourcefile(make)
    except TypeError:
        file = None
    return [module, name, file or ""]


def main() -> None:
    """Take the turn that standard input describes."""
    work = json.load(sys.stdin)
    sys.path[:] = work["path"]
    generate, ask, unusable = work["replies"]
    replies = Replies(generate, ask, tuple(unusable))
    # Before the agent is imported: it may take names out of these modules.
    shift = _shiftable_clock()
    make, request = _import(*work["factory"]), parse_request(work["request"])

    def turn() -> list[Any]:
        seen = observe(make)(request, lambda _, request: replies.render(request))
        return [seen.wire, repr(seen.error) if seen.error else plain_result(seen.result)]

    plain = turn()
    shift(_LATER)
    os.environ["TZ"] = _ANOTHER_ZONE
    if hasattr(time, "tzset"):  # not on Windows, where the zone stays
        time.tzset()
    sys.stdout.write("\n" + json.dumps([plain, turn()]))


def _shiftable_clock() -> Callable[[timedelta], None]:
    """Put a clock in the place of this process's, and return what sets it forward.

    Reached is what Python code asks the modules ``time`` and ``datetime`` for: more is not needed
    to tell whether a prompt shows the time, and a process of its own ends right after it.
    """
    forward = [timedelta()]
    real_time, real_ns = time.time, time.time_ns
    localtime, gmtime, strftime = time.localtime, time.gmtime, time.strftime

    class Datetime(datetime, metaclass=_Standing):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + forward[0]

        @classmethod
        def utcnow(cls) -> Any:
            return datetime.now(UTC).replace(tzinfo=None) + forward[0]

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    class Date(date, metaclass=_Standing):
        @classmethod
        def today(cls) -> Any:
            return Datetime.now().date()

    def seconds() -> float:
        return real_time() + forward[0].total_seconds()

    def at(moment: float | None) -> float:
        return seconds() if moment is None else moment

    fakes: dict[str, Any] = {
        "time": seconds,
        "time_ns": lambda: real_ns() + round(forward[0].total_seconds()) * 10**9,
        "localtime": lambda moment=None: localtime(at(moment)),
        "gmtime": lambda moment=None: gmtime(at(moment)),
        "ctime": lambda moment=None: time.asctime(localtime(at(moment))),
        "strftime": lambda form, when=None: strftime(form, when or localtime(seconds())),
    }
    for name, fake in fakes.items():
        setattr(time, name, fake)
    module: Any = sys.modules["datetime"]
    module.datetime, module.date = Datetime, Date

    def shift(by: timedelta) -> None:
        forward[0] = by

    return shift


class _Standing(type):
    """Metaclass of a class that stands for its base, to ``isinstance`` and to pydantic."""

    def __instancecheck__(cls, value: object) -> bool:
        base = cls.__bases__[0]
        # A class of the agent's own, made from one that stands for its base, does not.
        stands = not isinstance(base, _Standing)
        return isinstance(value, base) if stands else super().__instancecheck__(value)

    def __get_pydantic_core_schema__(cls, _: object, handler: Callable[[object], Any]) -> Any:
        return handler(cls.__bases__[0])


def _import(module: str, name: str, file: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        found = None
    # Test modules are often not importable by name, or another one has the same.
    if found is None or (file and getattr(found, "__file__", file) != file):
        spec = importlib.util.spec_from_file_location(Path(file).stem, file)
        if spec is None or spec.loader is None:
            raise ImportError(module)
        found = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = found
        spec.loader.exec_module(found)
    for part in name.split("."):
        found = getattr(found, part)
    return found
