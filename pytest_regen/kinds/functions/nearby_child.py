"""Calls a function with the inputs of its examples and with others near to them.

Never imported by this package: the sandbox runs its text, and asks ``answer``.
"""

import asyncio
import inspect
import io
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal
from itertools import islice, product
from types import ModuleType, SimpleNamespace
from typing import Any

MOST = 300
"""Inputs that are tried."""
SECONDS = 0.3
"""How long they may take, all together."""
Call = list[Any]
"""Arguments, and arguments by name."""


class Late(BaseException):
    """A call took too long."""


def stop(*_: object) -> None:
    """End a call."""
    raise Late


def scalars(value: object) -> Iterator[Any]:
    """Yield the numbers and texts that a value is made of."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from scalars(item)
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield value


def variants(value: Any, constants: "list[Any]") -> Iterator[Any]:
    """Yield values that differ from another in one place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from ({**value, key: other} for other in variants(item, constants))
    elif isinstance(value, list | tuple | set | frozenset):
        items = list(value)
        for at, item in enumerate(items):
            for other in variants(item, constants):
                yield type(value)([*items[:at], other, *items[at + 1 :]])
    elif isinstance(value, str):
        yield from filter(str.strip, texts_near(value, [k for k in constants if type(k) is str]))
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        size = 10 ** (len(str(abs(int(value)))) - 1)
        units = (1, size, size // 10)
        steps = [10, 20, value, 2 * value, *units, *(-unit for unit in units)]
        yield from (value + step for step in steps if (value + step) * value > 0)


def texts_near(text: str, constants: "list[str]") -> Iterator[str]:
    """Yield texts like another: of the same form, longer, shorter, with what the code knows."""
    yield from (text + text[-1:], f"{text} {text}", text[:-1]) if text else ()
    spots = [at for at, sign in enumerate(text) if sign.isalnum()]
    for at in spots[:: max(1, len(spots) // 10)]:
        sign = "1" if text[at] == "9" else chr(ord(text[at]) + (-1 if text[at] in "zZ" else 1))
        yield text[:at] + sign + text[at + 1 :]
    for part in filter(text.__contains__, filter(None, constants)):
        yield from (text.replace(part, constant) for constant in constants)


def recorded(module: ModuleType, owner: Any, name: str, sources: "list[str]") -> "list[Call]":
    """Return the calls of a function that examples and tests make."""
    function = getattr(owner, name)
    calls: list[Call] = []
    running: list[bool] = []

    def record(*args: object, **keywords: object) -> object:
        if not running:
            calls.append(deepcopy([args, keywords]))
        running.append(True)
        try:
            return function(*args, **keywords)
        finally:
            running.pop()

    setattr(owner, name, record)
    room = dict(module.__dict__)
    if any("pytest" in source for source in sources):
        with suppress(ImportError):
            room["pytest"] = __import__("pytest")
    for source in sources:
        before = set(room)
        attempt(exec, source, room)
        # Only what is new, because the module has functions of its own.
        for test in [room[name] for name in room.keys() - before]:
            for case in cases(test) if inspect.isfunction(test) else ():
                attempt(test, **case)
    setattr(owner, name, function)
    return calls


def cases(test: Any) -> "Iterator[dict[str, Any]]":
    """Yield what a test is called with, once for each set of its parameters; no fixture is made."""
    tables = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            names, rows, *_ = mark.args
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
            # `pytest.param` holds its values in a tuple; of one name, a plain row is the value.
            rows = [
                row.values if hasattr(row, "marks") else row if len(names) > 1 else [row]
                for row in rows
            ]
            tables.append([dict(zip(names, row, strict=False)) for row in rows])
    for parts in islice(product(*tables), 50):
        case = dict.fromkeys(inspect.signature(test).parameters)
        for part in parts:
            case |= part
        yield case


def attempt(function: Callable[..., Any], *args: Any, **keywords: Any) -> "tuple[str, ...]":
    """Return how what a call returns is shown, and what it changes or prints."""
    sys.stdout = io.StringIO()
    # By time of the processor, because on a machine under load the clock runs on.
    signal.setitimer(signal.ITIMER_PROF, 0.05)
    try:
        value = function(*args, **keywords)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        if hasattr(value, "__next__"):
            value = [*islice(value, 50)]
        if function is exec:
            return ()
        output, state = (re.sub(r" at 0x\w+", "", repr(part))[:2000] for part in (value, args))
        return output, state + sys.stdout.getvalue()
    except Late:
        return "", ""
    except BaseException as error:  # noqa: BLE001 - any code runs here
        return f"{type(error).__name__}: {error}", ""
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def judged(function: Any, call: Call, constants: SimpleNamespace) -> "list[Any]":
    """Return what comes of a call, and the constants that it depends on."""

    def run() -> "tuple[str, ...]":
        args, keywords = deepcopy(call)
        return attempt(function, *args, **keywords)

    facts = run()
    decisive = []
    # What differs from one call to the next tells nothing: the time, a random number.
    is_stable = facts[0] and run() == facts
    for name, constant in list(vars(constants).items()) if is_stable else ():
        # Far off, because a neighbour might lead to the same result by chance.
        changed = constant + (chr(127) if isinstance(constant, str) else 1000003)
        setattr(constants, name, changed)
        if run() != facts:
            decisive.append(int(name[1:]))
        setattr(constants, name, constant)
    words = [*map(repr, call[0]), *(f"{key}={item!r}" for key, item in call[1].items())]
    return [", ".join(words), [*scalars(call)], facts[0], decisive]


def answer(module: ModuleType, question: "dict[str, Any]") -> "list[list[Any]]":
    """Say of each input what comes of it, and on which constants of the code that depends.

    Nothing is said where that takes too long, or where the function cannot be called.
    """
    signal.signal(signal.SIGPROF, stop)
    *path, name = question["name"].split(".")
    values = question["constants"]
    constants = SimpleNamespace(**{f"k{at}": value for at, value in enumerate(values)})
    setattr(module, question["object"], constants)
    owner: Any = module
    for part in path:
        owner = getattr(owner, part)
    if not inspect.isfunction(vars(owner).get(name)):
        return []
    calls = recorded(module, owner, name, question["sources"])
    inputs = {repr(call): (number, call, True) for number, call in enumerate(calls)}
    for number, call in enumerate(calls):
        for other in variants(call, values):
            # The examples come first, because none of them is near to another.
            inputs.setdefault(repr(other), (number, other, False))
    outcomes = []
    end = time.process_time() + SECONDS
    for number, call, is_example in islice(inputs.values(), max(len(calls), MOST)):
        if time.process_time() > end:
            return []
        outcomes.append([number, is_example, *judged(getattr(owner, name), call, constants)])
    return outcomes
