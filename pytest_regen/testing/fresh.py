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
from pathlib import Path
from typing import Any, Final

from pytest_regen.context.requests import ClarificationRequest, parse_request
from pytest_regen.errors import UsageError
from pytest_regen.testing.observing import AgentFactory, Replies, observe, plain_result

__all__ = ["taken_elsewhere"]

_SECONDS: Final = 60
_ELSEWHERE: Final = {"PYTHONHASHSEED": "4711", "LC_ALL": "C", "TZ": "Pacific/Kiritimati"}
"""What a prompt must not depend on: the order of sets, language, the clock's zone."""


def taken_elsewhere(make: AgentFactory, request: ClarificationRequest, replies: Replies) -> Any:  # noqa: ANN401 - JSON
    """Return requests and result, as JSON, of one turn in a fresh process.

    The context goes there as JSON.

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
    return json.loads(done.stdout.rpartition("\n")[2])


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
    take = observe(_found(*work["factory"]))
    seen = take(parse_request(work["request"]), lambda _, request: replies.written(request))
    result = repr(seen.error) if seen.error else plain_result(seen.result)
    sys.stdout.write("\n" + json.dumps([seen.wire, result]))


def _found(module: str, name: str, file: str) -> Any:  # noqa: ANN401 - any factory
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
